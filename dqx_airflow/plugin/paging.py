"""Long lists on several pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Paging:
    """Page `number` of `pages`, counted from 1, with at most `size` items."""

    number: int
    pages: int
    size: int

    @classmethod
    def of(cls, wanted: int, total: int, size: int) -> Paging:
        """The nearest page to the wanted one."""
        pages = max(math.ceil(total / size), 1)
        return cls(min(max(wanted, 1), pages), pages, size)

    @property
    def skipped(self) -> int:
        """The number of items on the pages before."""
        return (self.number - 1) * self.size

    def shown(self, items: Sequence[T]) -> tuple[T, ...]:
        """The items of the page."""
        return tuple(items[self.skipped : self.skipped + self.size])
