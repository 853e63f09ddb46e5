"""The size of a change in wording: a corrected typo, other words, or another meaning."""

from __future__ import annotations

import re
from collections import Counter
from difflib import SequenceMatcher
from enum import Enum
from importlib.resources import files

from dqx_airflow.diagnostics.diagnostic import edits


class Wording(Enum):
    """The size of the difference between two texts, from the least to the most."""

    SAME = "same"
    CORRECTED = "corrected"
    REWORDED = "reworded"
    OTHER_MEANING = "other meaning"


def compare_wording(old: str, new: str) -> Wording:
    """The difference between two texts.

    `CORRECTED`: only punctuation, capitals and typos. `OTHER_MEANING`: numbers, symbols, and words
    that reverse a meaning, such as `not` or `excludes`, have changed.
    """
    if " ".join(old.split()) == " ".join(new.split()):
        return Wording.SAME
    before, after = _words(old), _words(new)
    if _is_corrected(before, after):
        return Wording.CORRECTED
    if Counter(map(_stem, filter(_weighs, before))) != Counter(map(_stem, filter(_weighs, after))):
        return Wording.OTHER_MEANING
    return Wording.REWORDED


_WORD = re.compile(r"(?:(?<![\w.])[-+])?\d+(?:[.,:]\d+)*|[^\W\d_]+(?:'[^\W\d_]+)?|[%$€£¥<>=≤≥≠]")
_ARTICLES = {"a", "an", "the"}
_MOST_WORDS = 3000
_SHORTEST_TYPO = 4
_TWO_SLIPS = 8


def _words(text: str) -> list[str]:
    """Words, numbers and symbols; a hyphen separates words like a space. Contracted negations are
    in a countable form: `doesn't` is a `not`."""
    words = _WORD.findall(text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"))
    return ["not" if word.endswith("n't") else word for word in words]


def _stem(word: str) -> str:
    """A word without its grammatical ending: `includes` and `including` are equal."""
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


_WEIGHTY_STEMS = frozenset(
    map(_stem, files(__package__).joinpath("weighty_words.txt").read_text("utf-8").split())
)


def _weighs(word: str) -> bool:
    """True for a token that changes a meaning by itself: numbers, symbols, negations, bounds,
    units."""
    return not word.isalpha() or _stem(word) in _WEIGHTY_STEMS


def _is_corrected(before: list[str], after: list[str]) -> bool:
    if len(before) + len(after) > _MOST_WORDS:
        return before == after
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    return all(
        step == "equal" or _is_slip(before, start, end, after[other_start:other_end])
        for step, start, end, other_start, other_end in matcher.get_opcodes()
    )


def _is_slip(before: list[str], start: int, end: int, words: list[str]) -> bool:
    """True if the old words were typos of these, or are unnecessary."""
    slips = before[start:end]
    if len(slips) == len(words):
        return all(map(_is_typo, slips, words))
    if "".join(slips) == "".join(words) and "".join(slips).isalpha():
        return True
    if slips and words:
        return False
    around = before[start - 1 : start] + before[end : end + 1]
    return all(word in _ARTICLES or (slips and word in around) for word in slips or words)


def _is_typo(old: str, new: str) -> bool:
    """True if a word is a misspelling of another by a letter or two, and not a different word."""
    if not (old.isalpha() and new.isalpha()):
        return old == new
    if old == new or {old, new} <= _ARTICLES:
        return True
    if _weighs(old) and _weighs(new):
        return _stem(old) == _stem(new)
    distance = edits(old, new, 2)
    shortest = min(len(old), len(new))
    if shortest < _SHORTEST_TYPO:
        return distance == 1 and (sorted(old) == sorted(new) or _stem(old) == _stem(new))
    if old[0] != new[0] and sorted(old) != sorted(new):
        return False
    return distance <= (2 if shortest >= _TWO_SLIPS else 1)
