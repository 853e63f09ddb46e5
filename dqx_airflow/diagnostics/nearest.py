"""The nearest known name, for help lines."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_SHOWN = 12


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """`did you mean 'x'?`, else the list of what there is; None where there is nothing."""
    names = list(dict.fromkeys(known))
    near = nearest(word, names)
    if near:
        return f"did you mean '{near}'?"
    if not names:
        return None
    rest = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"there is {', '.join(names[:_SHOWN])}{rest}"


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name that `word` is most likely a slip of: a typo or an abbreviation."""
    names = list(known)
    near = get_close_matches(word, names, n=1, cutoff=0.6)
    if not near and len(word) > 1:
        # `avg` is no typo of `average`, but its letters are there in this order.
        near = [name for name in names if _abbreviates(word, name)]
    return near[0] if near else None


def _abbreviates(word: str, name: str) -> bool:
    letters = iter(name)
    return word[0] == name[0] and all(letter in letters for letter in word)
