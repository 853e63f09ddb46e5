"""Checks that the regular expressions in Spark SQL are bounded, from Spark's own tokens.

Spark gets them as they are written, so none of them may need rewriting. An expression must be a
literal: the contents of a column could take unlimited time. One that is bounded only for strings of
limited length needs a test of that length before it: `length(x) <= 700 AND x RLIKE '...'`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from dqx_airflow.dql.sql.spark_tokens import Token
from dqx_airflow.metrics.patterns.bounds import bounded, bounded_like, ended
from dqx_airflow.metrics.patterns.syntax import PatternError
from dqx_airflow.metrics.text_formats import TEXT_FORMATS, whole

_OPERATORS = {"rlike": False, "regexp": False, "like": True, "ilike": True}
"""By name, whether the pattern is one of LIKE. They may be called as functions, too."""
_FUNCTIONS = {
    "regexp_like": (1,),
    "regexp_count": (1,),
    "regexp_extract": (1,),
    "regexp_extract_all": (1,),
    "regexp_instr": (1,),
    "regexp_replace": (1,),
    "regexp_substr": (1,),
    "split": (1,),
    "str_to_map": (1, 2),
}
"""The positions of regular expressions among the arguments of functions."""
_GO_ON = frozenset({"||", "+", "-", "*", "/", "%", ".", "[", "::", "&", "^", "|"})


@dataclass(frozen=True, slots=True)
class _Use:
    """A pattern: its tokens, and those of the value that it is matched with, if known."""

    pattern: Sequence[Token]
    before: Sequence[Token]
    is_like: bool


def objection_to_patterns(tokens: Sequence[Token]) -> str | None:
    """Why the patterns in a text are not allowed; None if they are."""
    for at in range(len(tokens)):
        for use in _uses(tokens, at):
            objection = _objection(use)
            if objection is not None:
                return objection
    return None


def _uses(tokens: Sequence[Token], at: int) -> Iterator[_Use]:
    token = tokens[at]
    if token.kind == "sign":
        return
    is_called = at + 1 < len(tokens) and tokens[at + 1].text == "("
    name = token.name
    if is_called and (name in _FUNCTIONS or name in _OPERATORS):
        arguments = list(arguments_of(tokens, at + 1))
        if name in _FUNCTIONS:
            for number in _FUNCTIONS[name]:
                if number < len(arguments):
                    yield _Use(arguments[number], (), is_like=False)
            return
        yield _Use(arguments[min(1, len(arguments) - 1)], tokens[:at], is_like=_OPERATORS[name])
        return
    if name not in _OPERATORS or token.kind != "word":
        return
    rest = tokens[at + 1 :]
    if rest and rest[0].kind == "word" and rest[0].name in ("any", "some", "all"):
        for argument in arguments_of(tokens, at + 2):
            yield _Use(argument, (), is_like=_OPERATORS[name])
        return
    end = 1
    while end < len(rest) and (rest[end].kind == "string" or rest[end].text in _GO_ON):
        end += 1
    if end < len(rest) and rest[end].text.lower() == "collate":
        end += 1
    yield _Use(rest[:end], tokens[:at], is_like=_OPERATORS[name])


def arguments_of(tokens: Sequence[Token], opening: int) -> Iterator[Sequence[Token]]:
    """The tokens of each argument of a call, whose parenthesis is at `opening`."""
    depth, start = 0, opening + 1
    for at in range(opening, len(tokens)):
        text = tokens[at].text
        depth += (text in "([") - (text in ")]") if tokens[at].kind == "sign" else 0
        if depth == 0 or (depth == 1 and text == "," and tokens[at].kind == "sign"):
            yield tokens[start:at]
            start = at + 1
        if depth == 0:
            return


def _objection(use: _Use) -> str | None:
    if len(use.pattern) != 1 or use.pattern[0].kind != "string":
        return "a pattern in SQL must be a literal, because its run time must be bounded"
    pattern = use.pattern[0].value
    if pattern in _formats():
        return None
    try:
        longest = bounded_like(pattern) if use.is_like else bounded(
            pattern, is_as_written=True
        ).longest  # fmt: skip
    except PatternError as error:
        return f"the pattern {use.pattern[0].text}: {error.problem}"
    if longest is None or _is_short(use.before, longest):
        return None
    return (
        f"the pattern {use.pattern[0].text} only handles strings of up to {longest:,} characters: "
        f"use `matches`, or write length(x) <= {longest} AND x RLIKE ..."
    )


@cache
def _formats() -> frozenset[str]:
    """The expressions of our formats, which reject long strings first, as contracts do."""
    written = {whole(entry.pattern) for entry in TEXT_FORMATS.values()}
    return frozenset({*written, *map(ended, written)})


def _is_short(before: Sequence[Token], longest: int) -> bool:
    """True for `length(x) <= 700 AND x`, also with a NOT."""
    texts = [token.text.lower() for token in before]
    for size in range(1, len(texts) // 2):
        operand, rest = texts[-size:], texts[:-size]
        if operand[:1] == ["not"]:
            continue
        if rest[-1:] == ["not"]:
            rest = rest[:-1]
        if rest[-4:-2] == ["<", "="] and rest[-1] == "and" and rest[-2].isdigit():
            guard = ["length", "(", *operand, ")"]
            if rest[:-4][-len(guard) :] == guard and int(rest[-2]) <= longest:
                return True
    return False
