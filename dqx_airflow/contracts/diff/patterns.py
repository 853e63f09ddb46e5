"""Two regular expressions: is it certain that one of them matches all that the other one does?

Only a simple form is compared: a row of characters, classes and groups of plain words, each with
how often it may come. For everything else nobody can tell, and that is the answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import inf

from dqx_airflow.contracts.diff.order import Order, admitting, all_of, falling, rising


def compare_patterns(old: str, new: str) -> Order:
    """The order of two patterns that a text has to match somewhere."""
    if old == new:
        return Order.SAME
    if _admits_all(old) or _admits_all(new):
        both = _admits_all(old) and _admits_all(new)
        return Order.SAME if both else Order.LOOSER if _admits_all(new) else Order.TIGHTER
    before, after = _pieces(old), _pieces(new)
    if before is None or after is None or len(before) != len(after):
        return Order.OTHER
    return all_of(*map(_compare, before, after))


@dataclass(frozen=True, slots=True)
class _Piece:
    """What comes, and how often: characters of a class, or one of several words."""

    kind: str
    admitted: frozenset[str]
    fewest: float
    most: float


_ATOM = re.compile(
    r"(?P<anchor>[\^$])|\[(?P<class>[^\[\]\\^][^\[\]\\]*)\]|\((?:\?:)?(?P<words>[\w|-]+)\)"
    r"|(?P<known>\\[dwsDWS])|\\(?P<escaped>[^\w\s])|(?P<any>\.)|(?P<plain>[^\\()\[\]{}|*+?.^$])"
)
_TIMES = re.compile(r"\*|\+|\?|\{(\d{1,6})(?:(,)(\d{1,6})?)?\}")
_CLASSES = {r"\d": "0123456789"}
_ALL = (".*", "^.*", ".*$", "^.*$", "")


def _admits_all(pattern: str) -> bool:
    return pattern in _ALL


def _pieces(pattern: str) -> tuple[_Piece, ...] | None:
    """The pattern as a row of pieces; None where it is not that simple."""
    pieces, position = [], 0
    while position < len(pattern):
        atom = _ATOM.match(pattern, position)
        if atom is None:
            return None
        position = atom.end()
        fewest, most = 1.0, 1.0
        times = _TIMES.match(pattern, position)
        if times is not None:
            fewest, most = _times(times)
            position = times.end()
            if pattern[position : position + 1] in ("?", "+"):
                return None
        piece = _piece(atom, fewest, most)
        if piece is None or (piece.kind == "anchor" and times is not None):
            return None
        pieces.append(piece)
    return tuple(pieces)


def _times(found: re.Match[str]) -> tuple[float, float]:
    signs = {"*": (0.0, inf), "+": (1.0, inf), "?": (0.0, 1.0)}
    if found[0] in signs:
        return signs[found[0]]
    fewest = float(found[1])
    return fewest, float(found[3]) if found[3] else inf if found[2] else fewest


def _piece(atom: re.Match[str], fewest: float, most: float) -> _Piece | None:
    found = atom.lastgroup or ""
    text = atom[found]
    match found:
        case "words":
            return _Piece("words", frozenset(text.split("|")), fewest, most)
        case "class":
            letters = _letters(text)
            return _Piece("letter", letters, fewest, most) if letters is not None else None
        case "plain" | "escaped":
            return _Piece("letter", frozenset(text), fewest, most)
        case "known" if text in _CLASSES:
            return _Piece("letter", frozenset(_CLASSES[text]), fewest, most)
    return _Piece(found, frozenset((text,)), fewest, most)


def _letters(text: str) -> frozenset[str] | None:
    """The characters of a class such as `A-Z0-9_`."""
    letters: set[str] = set()
    position = 0
    while position < len(text):
        if text[position + 1 : position + 2] == "-" and position + 2 < len(text):
            first, last = ord(text[position]), ord(text[position + 2])
            if last < first or last - first > 0xFFFF:
                return None
            letters.update(map(chr, range(first, last + 1)))
            position += 3
        else:
            letters.add(text[position])
            position += 1
    return frozenset(letters)


def _compare(old: _Piece, new: _Piece) -> Order:
    if old.kind != new.kind:
        return Order.OTHER
    times = all_of(rising(old.fewest, new.fewest), falling(old.most, new.most))
    return all_of(admitting(old.admitted, new.admitted), times)
