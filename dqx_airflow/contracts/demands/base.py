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

    column_fields: ClassVar[tuple[str, ...]] = ()
    """Its fields that hold a column of the model, several, or None."""

    @property
    def named_columns(self) -> tuple[str, ...]:
        """The columns of the model that it names."""
        columns = (getattr(self, name) for name in self.column_fields)
        return tuple(
            name
            for value in columns
            for name in ((value,) if isinstance(value, str) else value or ())
        )

    @property
    def text(self) -> str:
        """The demand in a few words: `>= 1`, `one of A, B`, `unique by (a, b)`."""
        raise NotImplementedError


class ValueDemand(DemandBase):
    """A demand that each value satisfies or not, independently of the others."""

    __slots__ = ()

    dimension: ClassVar[str | None] = "conformity"
    is_about_each_value: ClassVar[bool] = True


class ServiceLevel(DemandBase):
    """A demand on the time and volume of deliveries."""

    __slots__ = ()

    is_service_level: ClassVar[bool] = True
