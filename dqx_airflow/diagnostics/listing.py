"""Lists in a message: the first items, and the number of the others."""

from __future__ import annotations

from collections.abc import Sequence

MOST_LISTED = 10


def listed(items: Sequence[str], between: str = ", ", most: int = MOST_LISTED) -> str:
    """The items with a separator between them: `a, b, c`, or `a, b, c and 90 more`."""
    more = len(items) - most
    return between.join(items[:most]) + (f" and {more} more" if more > 0 else "")
