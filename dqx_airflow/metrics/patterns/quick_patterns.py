"""Expressions that Java evaluates faster, with the same matches.

Java looks up single characters of a class in a table, but tests each range of it separately, in
two calls. So `[0-9a-f]` takes more than twice as long as `[0123456789abcdef]`.

An unbounded repetition is a loop, whereas a counted one is a call for each time. So if the length
of a string determines the count, `[0123456789abcdef]+` takes half as long as
`[0123456789abcdef]{64}`. And for literals Spark need not call Java, for which it decodes every
string.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dqx_airflow.metrics.sql import quote_literal

_PART = re.compile(
    r"(?P<plain>(?:\\.|[^\\\[])+)|(?P<brackets>\[\^?(?:\\.|[^\\\[\]])+\])", re.DOTALL
)
_RANGE = r"[0-9]-[0-9]|[A-Z]-[A-Z]|[a-z]-[a-z]"
_PUNCTUATION = r"\\[^0-9A-Za-z]"
_ITEM = re.compile(rf"(?P<first>\w)-(?P<last>\w)|{_PUNCTUATION}|.", re.DOTALL)
_BRACKETS = re.compile(rf"\[\^?-?(?:{_RANGE}|{_PUNCTUATION}|[^\\&-])*-?\]", re.DOTALL)
_UNSURE = re.compile(r"\\Q|\\c|\(\?(?![ims]*(?:-[ims]+)?[:)])[a-zA-Z-]")
r"""Quoted text and the flags for comments and Unicode change what brackets mean; `\c` takes any
following character."""

_WHOLE = re.compile(
    r"\^(?P<group>\()?(?P<pieces>.*)(?(group)\))(?:\$|\\z)(?:\(\?!\\n\))?", re.DOTALL
)
_LETTER = r"[0-9A-Za-z _:;,/@%&=<>!\"'~`#-]|\\[!-/:-@\[-`{-~]"
_LITERAL = re.compile(
    rf"(?P<start>\^)?(?P<group>\((?:\?:)?)?(?P<texts>(?:{_LETTER})+(?:\|(?:{_LETTER})+)*)"
    r"(?(group)\))(?P<end>(?:\$|\\z)(?:\(\?!\\n\))?)?"
)
_PIECE = re.compile(
    rf"(?P<atom>{_LETTER}|\\[dw]"
    r"|\[-?[0-9A-Za-z _:;,/@%=<>!\"'~`#.+*?(){}|$]*-?\])"
    r"(?:\{(?P<least>[0-9]{1,6})(?P<open>,(?P<most>[0-9]{1,6})?)?\})?"
)
"""A piece that matches one byte per repetition, and the number of repetitions."""
_WORTH = 4
_MOST = 10
"""The minimum number of repetitions, and the maximum number of literals."""


@dataclass(frozen=True, slots=True)
class Sized:
    """A pattern for strings with a number of bytes in a range: in these it matches whenever the
    other pattern does."""

    pattern: str
    least: int
    most: int | None


def quick_pattern(pattern: str) -> str:
    """The same expression with its ranges of ASCII letters and digits written out.

    >>> quick_pattern("^M[0-9]{4}$")
    '^M[0123456789]{4}$'

    Brackets with anything else stay as they are, and so does an expression in which it is not clear
    where brackets begin and end.
    """
    parts = list(_PART.finditer(pattern))
    if _UNSURE.search(pattern) or "".join(part[0] for part in parts) != pattern:
        return pattern
    return "".join(
        part[0] if part["brackets"] is None else _listed(part["brackets"]) for part in parts
    )


def _listed(brackets: str) -> str:
    if not _BRACKETS.fullmatch(brackets):
        return brackets
    return _ITEM.sub(lambda item: _characters(item["first"], item["last"]) or item[0], brackets)


def _characters(first: str | None, last: str | None) -> str:
    """All characters of a range; empty if it is not one."""
    if first is None or last is None:
        return ""
    return "".join(map(chr, range(ord(first), ord(last) + 1)))


def quicker(column: str, pattern: str) -> str | None:
    """Spark SQL that is true only for strings in which `pattern` matches.

    It is true for most of these, and faster. None if the pattern has no such condition.
    """
    literal = _LITERAL.fullmatch(pattern)
    if literal is not None:
        return _literally(column, literal)
    sized = sized_pattern(pattern)
    if sized is None:
        return None
    size = f"octet_length({column})"
    if sized.least == sized.most:
        is_fit = f"{size} = {sized.least}"
    elif sized.most is None:
        is_fit = f"{size} >= {sized.least}"
    else:
        is_fit = f"{size} BETWEEN {sized.least} AND {sized.most}"
    return f"{is_fit} AND {column} RLIKE {quote_literal(sized.pattern)}"


def _literally(column: str, literal: re.Match[str]) -> str | None:
    written = re.findall(rf"(?:{_LETTER})+", literal["texts"])
    texts = [re.sub(r"\\(.)", r"\1", text) for text in written]
    if len(texts) > _MOST:
        return None
    if literal["start"] and literal["end"] and (literal["group"] or len(texts) == 1):
        # Not by `=`: there Spark pads the literal to the length of a `char` column.
        return " OR ".join(
            f"octet_length({column}) = {len(text)} AND startswith({column}, {quote_literal(text)})"
            for text in texts
        )
    if len(texts) > 1:
        return None
    function = "startswith" if literal["start"] else "endswith" if literal["end"] else "contains"
    return f"{function}({column}, {quote_literal(texts[0])})"


def sized_pattern(pattern: str) -> Sized | None:
    r"""A faster first test for an expression that matches whole strings.

    >>> sized_pattern("^M[0123456789]{4}$")
    Sized(pattern='(?-i)^M[0123456789]+\\z', least=5, most=5)

    The longest of its repetitions becomes unbounded; the others must have a fixed length. None if
    they have not, or if it does not pay.
    """
    whole = _WHOLE.fullmatch(pattern)
    if whole is None:
        return None
    pieces = list(_PIECE.finditer(whole["pieces"]))
    if not pieces or "".join(piece[0] for piece in pieces) != whole["pieces"]:
        return None
    least = [int(piece["least"] or 1) for piece in pieces]
    most = [_most(piece) for piece in pieces]
    loose = max(range(len(pieces)), key=lambda at: (least[at] != most[at], least[at]))
    is_one_length = all(
        a == b for at, (a, b) in enumerate(zip(least, most, strict=True)) if at != loose
    )
    if not is_one_length or least[loose] < 1 or (most[loose] or _WORTH) < _WORTH:
        return None
    fixed = sum(least) - least[loose]
    written = "".join(
        f"{piece['atom']}+" if at == loose else piece[0] for at, piece in enumerate(pieces)
    )
    ends = most[loose]
    # If a collation ignores case, `[k]` also matches the Kelvin sign, which has three bytes.
    return Sized(
        rf"(?-i)^{written}\z", fixed + least[loose], None if ends is None else fixed + ends
    )


def _most(piece: re.Match[str]) -> int | None:
    """The maximum number of repetitions; None if unbounded."""
    if piece["open"] is None:
        return int(piece["least"] or 1)
    return int(piece["most"]) if piece["most"] else None
