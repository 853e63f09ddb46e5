"""Checks the functions and patterns that Spark SQL calls, from Spark's own tokens.

A name before a parenthesis is a call, a keyword, or the name of a table with its columns. A name
that is not certainly one of the latter two counts as a call, and is rejected unless the function is
allowed.
"""

from __future__ import annotations

from collections.abc import Sequence

from dqx_airflow.dql.sql.pattern_arguments import objection_to_patterns
from dqx_airflow.dql.sql.result_sizes import objection_to_sizes
from dqx_airflow.dql.sql.spark_functions import objection_to_call, objection_to_word
from dqx_airflow.dql.sql.spark_tokens import Token, UnreadableError, spark_tokens

_WORDS_OF_SQL = """
    aggregate all and anti any as between by case cluster cross cube desc asc distinct distribute
    else end escape except exists extend filter for from full group grouping having ilike in inner
    intersect interval is join lateral left like limit minus natural not nulls offset on or order
    outer over partition pivot qualify regexp respect right rlike select semi set sets some sort
    table tablesample then union unpivot using values when where window with within
"""
_WORDS_OF_HINTS = """
    broadcast broadcastjoin mapjoin merge shufflemerge mergejoin shuffle_hash shuffle_replicate_nl
    coalesce repartition repartition_by_range rebalance skew
"""
_KEYWORDS, _HINTS = frozenset(_WORDS_OF_SQL.split()), frozenset(_WORDS_OF_HINTS.split())


def objection_to_calls(text: str) -> str | None:
    """Why SQL may not run because of its calls; None if it may.

    >>> objection_to_calls("max(xpath_int(document, 'a'))")
    'xpath_int() may open files and URLs named in its XML'
    """
    try:
        tokens = spark_tokens(text)
    except UnreadableError as error:
        return f"invalid Spark SQL: {error}"
    in_hint = False
    for at, token in enumerate(tokens):
        if token.text in ("/*+", "*/"):
            in_hint = token.text == "/*+"
        objection = _objection(tokens, at, in_hint=in_hint)
        if objection is not None:
            return objection
    return objection_to_patterns(tokens) or objection_to_sizes(tokens)


def _objection(tokens: Sequence[Token], at: int, *, in_hint: bool) -> str | None:
    token = tokens[at]
    if token.kind == "sign":
        return None
    before = tokens[at - 1].text.lower() if at else ""
    following = tokens[at + 1] if at + 1 < len(tokens) else None
    if before == "using" and token.kind == "string":
        return "scripts with USING are not allowed"
    if following is None or following.text != "(":
        return None if before == "." or token.kind != "word" else objection_to_word(token.name)
    if before == ".":
        return f"the function {token.name}() of a catalog is not allowed"
    if in_hint and token.name in _HINTS:
        return None
    if token.kind == "word" and token.name in _KEYWORDS:
        return None
    is_table = before in ("as", "with", ")", "recursive") or (
        before == "," and _is_defined(tokens, at + 1)
    )
    return None if is_table else objection_to_call(token.name)


def _is_defined(tokens: Sequence[Token], opening: int) -> bool:
    """True for `(a, b) AS (`, which begins a query in WITH after its name."""
    for at in range(opening + 1, len(tokens)):
        if tokens[at].text == ")":
            after = [token.text.lower() for token in tokens[at + 1 : at + 3]]
            return after == ["as", "("]
        if tokens[at].kind == "sign" and tokens[at].text != ",":
            return False
    return False
