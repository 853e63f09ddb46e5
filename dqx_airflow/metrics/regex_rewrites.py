"""Regular expressions written so that Java answers them sooner, and the same.

Java looks up single characters of a class in a table, and asks each range of it one after the
other, in two calls. So `[0-9a-f]` takes more than twice as long as `[0123456789abcdef]`.

What is repeated without end it reads in one loop, what is repeated so many times in a call for each
time. So where the length of a text tells how often, `[0123456789abcdef]+` takes half as long as
`[0123456789abcdef]{64}`. And for what is literal Spark need not ask Java, for whom it decodes every
text.
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
_BRACKETS = re.compile(
    rf"\[\^?-?(?:{_RANGE}|{_PUNCTUATION}|[^\\&-])*-?\]",
    re.DOTALL,
)
_UNSURE = re.compile(r"\\Q|\\c|\(\?(?![ims]*(?:-[ims]+)?[:)])[a-zA-Z-]")
"""Quoted text and the flags for comments and Unicode change what brackets are, or what is in them;
`\\c` takes any character behind it."""

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
"""What takes as many octets of a text as it is repeated, and how often that is."""
_WORTH, _MOST = 4, 10
"""As often something is repeated at least, and so many literals are there at most."""


@dataclass(frozen=True, slots=True)
class Sized:
    """Texts of so many octets in which this finds something: in them the other finds it, too."""

    pattern: str
    least: int
    most: int | None


def quick_pattern(pattern: str) -> str:
    """The same expression with its ranges of ASCII letters and digits written out.

    >>> quick_pattern("^M[0-9]{4}$")
    '^M[0123456789]{4}$'

    Brackets that hold anything else stay as they are, and so does all of an expression in which
    it is not plain where brackets begin and end.
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
    """All characters of a range; nothing for what is none."""
    if first is None or last is None:
        return ""
    return "".join(map(chr, range(ord(first), ord(last) + 1)))


def quicker(column: str, pattern: str) -> str | None:
    """Spark SQL that is true for no text of a column but those in which `pattern` finds something.

    For most of these it is, and costs less. None where there is no such condition.
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
        # Not by `=`: there Spark pads the literal to the length of a column of the type `char`.
        return " OR ".join(
            f"octet_length({column}) = {len(text)} AND startswith({column}, {quote_literal(text)})"
            for text in texts
        )
    if len(texts) > 1:
        return None
    function = "startswith" if literal["start"] else "endswith" if literal["end"] else "contains"
    return f"{function}({column}, {quote_literal(texts[0])})"


def sized_pattern(pattern: str) -> Sized | None:
    """What is asked first, where it is quicker than an expression for whole texts.

    >>> sized_pattern("^M[0123456789]{4}$")
    Sized(pattern='(?-i)^M[0123456789]+\\\\z', least=5, most=5)

    One of its repetitions becomes one without end, the longest; the others have to be of one
    length each. None where that does not hold, or does not pay.
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
    # Where a collation ignores case, `[k]` finds the sign of the kelvin, too, of three octets.
    return Sized(
        rf"(?-i)^{written}\z", fixed + least[loose], None if ends is None else fixed + ends
    )


def _most(piece: re.Match[str]) -> int | None:
    """How often at most; None without end."""
    if piece["open"] is None:
        return int(piece["least"] or 1)
    return int(piece["most"]) if piece["most"] else None
