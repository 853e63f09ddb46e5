"""Finds Spark SQL that builds values of a size given by a number in it, from Spark's own tokens.

`repeat('x', 2000000000)` ends the JVM of a gate, for any amount of data. So the number must be a
small literal; and such functions must not be nested, since their sizes would multiply.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from dqx_airflow.dql.sql.pattern_arguments import arguments_of
from dqx_airflow.dql.sql.spark_tokens import Token

MOST = 10_000
"""The maximum number of characters or items that such a function may build."""

_SIZED = {
    "array_repeat": 1,
    "format_number": 1,
    "lpad": 1,
    "randstr": 0,
    "repeat": 1,
    "rpad": 1,
    "space": 0,
    "stack": 0,
}
"""Functions, with the argument that is the size of their result."""
_FINEST = {"approx_count_distinct": (1, 0.001), "count_min_sketch": (1, 0.00001)}
"""Sketches, with the argument for their accuracy, and its minimum."""
_UNITS = "hour day week month quarter year"
_STEPS = frozenset(_UNITS.split()) | {f"{unit}s" for unit in _UNITS.split()}
_FOLDS, _FORMATS = frozenset({"aggregate", "reduce"}), frozenset({"format_string", "printf"})
_SCALARS = """
    bigint boolean byte date decimal double float int integer long short smallint timestamp tinyint
"""


def objection_to_sizes(tokens: Sequence[Token]) -> str | None:
    """Why values that a text builds may be too large; None if they are not."""
    for at, token in enumerate(tokens[:-1]):
        if token.kind == "sign" or tokens[at + 1].text != "(":
            continue
        objection = _objection(token.name, list(arguments_of(tokens, at + 1)))
        if objection is not None:
            return objection
    return None


def _objection(name: str, arguments: Sequence[Sequence[Token]]) -> str | None:
    if name in _SIZED:
        size = _number(arguments, _SIZED[name])
        if size is None or size > MOST:
            return f"the size of {name}() must be a number up to {MOST:,}, to fit in memory"
    elif name == "sequence":
        if not _is_short(arguments):
            return (
                f"sequence() needs numbers that are at most {MOST:,} apart, or dates with a step "
                "such as INTERVAL 1 DAY, to fit in memory"
            )
    elif name in _FINEST:
        at, least = _FINEST[name]
        share = _number(arguments, at) if at < len(arguments) else 1
        if share is None or share < least:
            return f"the accuracy of {name}() must be a number from {least:g}"
        return None
    elif name in _FOLDS:
        if len(arguments) > 1 and not _is_scalar(arguments[1]):
            return (
                f"{name}() must begin with a number, a date or a boolean: "
                "a string or an array could double with each item"
            )
        return None
    elif name in _FORMATS:
        return (
            None
            if _is_short_format(arguments)
            else f"the format of {name}() must be one literal, with widths up to {MOST:,}"
        )
    else:
        return None
    inner = next(
        (builder for part in arguments for builder in _calls(part) if builder in _BUILDERS), None
    )
    return f"{inner}() within {name}(): the sizes would multiply" if inner else None


_BUILDERS = frozenset({*_SIZED, "sequence"})


def _calls(tokens: Sequence[Token]) -> list[str]:
    return [a.name for a, b in pairwise(tokens) if b.text == "("]


def _number(arguments: Sequence[Sequence[Token]], at: int) -> float | None:
    """The number of an argument; None if it is anything else."""
    if at >= len(arguments):
        return None
    text = "".join(token.text for token in arguments[at])
    try:
        return float(text) if text.lstrip("+-").replace(".", "", 1).isdecimal() else None
    except ValueError:
        return None


def _is_short(arguments: Sequence[Sequence[Token]]) -> bool:
    """True for a sequence with few items for any data."""
    first, last = _number(arguments, 0), _number(arguments, 1)
    if first is not None and last is not None:
        step = _number(arguments, 2) if len(arguments) > 2 else 1
        return bool(step) and abs((last - first) / (step or 1)) < MOST
    words = [token.text.lower() for token in arguments[2]] if len(arguments) > 2 else []
    return len(words) == 3 and words[0] == "interval" and words[2] in _STEPS


def _is_scalar(tokens: Sequence[Token]) -> bool:
    words = [token.text.lower() for token in tokens]
    if _number([tokens], 0) is not None or words in (["true"], ["false"]):
        return True
    if words[0][:1].isdigit():  # 0L, 0.0D, 1e3, 0BD
        return all(word == "." or word[:1].isdigit() for word in words)
    if words[:2] in (["cast", "("], ["try_cast", "("]) and words[-1] == ")" and "as" in words:
        kind = words[len(words) - words[::-1].index("as")]
        return kind in _SCALARS.split()
    return words[:1] in (["date"], ["timestamp"], ["-"], ["+"]) and len(words) <= 4


def _is_short_format(arguments: Sequence[Sequence[Token]]) -> bool:
    if not arguments or len(arguments[0]) != 1 or arguments[0][0].kind != "string":
        return False
    digits = "".join(c if c.isdigit() else " " for c in arguments[0][0].value).split()
    return all(len(number) < 6 and int(number) <= MOST for number in digits)
