"""The properties of every demand."""

from __future__ import annotations

from typing import ClassVar


class DemandBase:
    """A demand on data. `contracts.compile.demands` defines its claim in DQL,
    `contracts.diff.demands` which of two is stricter, and `contracts.export` its form in other
    formats."""

    __slots__ = ()

    dimension: ClassVar[str | None] = None
    """The quality dimension that it measures, in the terms of ODCS; None if that depends on its
    rule."""
    is_about_each_value: ClassVar[bool] = False
    """Whether each value satisfies it or not, independently of the others."""
    is_service_level: ClassVar[bool] = False
    """Whether it is about the time and volume of deliveries."""

    @property
    def text(self) -> str:
        """The demand in a few words: `>= 1`, `one of A, B`, `unique by (a, b)`."""
        raise NotImplementedError
