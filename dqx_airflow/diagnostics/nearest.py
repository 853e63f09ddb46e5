"""The nearest known name, for help lines."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from itertools import islice

_SHOWN = 12
_COMPARED = 600
"""So many names are looked at: thousands of errors among thousands of names take seconds."""
_LONGEST = 200
"""A longer word is no slip of anything."""


def did_you_mean(word: str, known: Collection[str]) -> str | None:
    """`did you mean 'x'?`, else the list of what there is; None where there is nothing."""
    names = [name for name in dict.fromkeys(islice(known, _COMPARED)) if name]
    near = nearest(word, names)
    if near:
        return f"did you mean '{near}'?"
    if not names:
        return None
    more = len(names) - _SHOWN + max(0, len(known) - _COMPARED)
    rest = f" and {more} more" if more > 0 else ""
    return f"there is {', '.join(names[:_SHOWN])}{rest}"


def nearest(word: str, known: Collection[str]) -> str | None:
    """The known name that `word` is most likely a slip of: a typo or an abbreviation."""
    if len(word) > _LONGEST:
        return None
    names = list(islice(known, _COMPARED))
    near = get_close_matches(word, names, n=1, cutoff=0.6)
    if not near and len(word) > 1:
        # `avg` is no typo of `average`, but its letters are there in this order.
        near = [name for name in names if _abbreviates(word, name)]
    return near[0] if near else None


def _abbreviates(word: str, name: str) -> bool:
    letters = iter(name)
    return word[:1] == name[:1] and all(letter in letters for letter in word)
