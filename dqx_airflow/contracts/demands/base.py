"""What every demand says of itself."""

from __future__ import annotations

from typing import ClassVar


class DemandBase:
    """A demand on data. What it claims in DQL is said by `contracts.compile.demands`, which of two
    is stricter by `contracts.diff.demands`, its form elsewhere by `contracts.export`."""

    __slots__ = ()

    dimension: ClassVar[str | None] = None
    """The quality dimension that it measures, in the words of ODCS; None where that depends on the
    rule that carries it."""
    is_about_each_value: ClassVar[bool] = False
    """Whether each value satisfies it or not, whatever the others are."""
    is_service_level: ClassVar[bool] = False
    """Whether it is about when data comes, and how much."""

    @property
    def text(self) -> str:
        """The demand in a few words: `>= 1`, `one of A, B`, `unique by (a, b)`."""
        raise NotImplementedError
