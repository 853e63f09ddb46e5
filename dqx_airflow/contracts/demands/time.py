"""Demands on the age and the number of rows: service levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dqx_airflow.contracts.demands.base import ServiceLevel
from dqx_airflow.contracts.demands.wording import (
    duration_text,
    number_text,
    percent_text,
    range_text,
)


class DemandOnPeriod(ServiceLevel):
    """A demand on the time between the values of a column and something else."""

    __slots__ = ()

    odcs_property: ClassVar[str]
    """What `slaProperties` of ODCS call it."""
    column: str | None

    @property
    def seconds(self) -> float:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Fresh(DemandOnPeriod):
    """The latest value of the column is at most this many seconds old. Without a column it is the
    only timestamp of the model, or the date column of its dataset."""

    dimension: ClassVar[str | None] = "timeliness"
    odcs_property: ClassVar[str] = "freshness"
    column_fields: ClassVar[tuple[str, ...]] = ("column",)

    column: str | None
    age_s: float

    @property
    def seconds(self) -> float:
        return self.age_s

    @property
    def text(self) -> str:
        return f"{self.column or 'data'} at most {duration_text(self.age_s)} old"


@dataclass(frozen=True, slots=True)
class Prompt(ServiceLevel):
    """`processed` is at most this many seconds after `source`, for this share of the rows."""

    dimension: ClassVar[str | None] = "timeliness"
    column_fields: ClassVar[tuple[str, ...]] = ("source", "processed")

    source: str
    processed: str
    delay_s: float
    share: float = 1.0

    @property
    def text(self) -> str:
        share = "" if self.share >= 1 else f" for {percent_text(self.share)} of the rows"
        between = f"from {self.source} to {self.processed}"
        return f"{between} at most {duration_text(self.delay_s)}{share}"


@dataclass(frozen=True, slots=True)
class Retained(DemandOnPeriod):
    """The earliest value of the column is at most this many seconds old.

    Without a column it is found as that of `Fresh`.
    """

    dimension: ClassVar[str | None] = "conformity"
    odcs_property: ClassVar[str] = "retention"
    column_fields: ClassVar[tuple[str, ...]] = ("column",)

    column: str | None
    period_s: float

    @property
    def seconds(self) -> float:
        return self.period_s

    @property
    def text(self) -> str:
        return f"{self.column or 'data'} at most {duration_text(self.period_s)} back"


@dataclass(frozen=True, slots=True)
class Volume(ServiceLevel):
    """The rows of a day, or their mean over several days, compared with a baseline.

    Without `baseline` it is the mean of the `days` before. `low` and `high` are its multiples.
    """

    dimension: ClassVar[str | None] = "coverage"

    low: float | None
    high: float | None
    baseline: float | None = None
    days: int = 1

    @property
    def text(self) -> str:
        times = range_text(self.low, self.high)
        base = "the mean of the days before"
        if self.baseline is not None:
            base = f"{number_text(self.baseline)} rows"
        return f"{times} times {base}" + (f", over {self.days} days" * (self.days > 1))


@dataclass(frozen=True, slots=True)
class HourlyVolume(ServiceLevel):
    """The rows of each hour of the column are within the bounds, including hours without rows.
    Without a column it is found as for `Fresh`."""

    dimension: ClassVar[str | None] = "coverage"
    column_fields: ClassVar[tuple[str, ...]] = ("column",)

    column: str | None
    low: float | None
    high: float | None

    @property
    def text(self) -> str:
        of_column = f" of {self.column}" if self.column else ""
        return f"{range_text(self.low, self.high)} rows an hour{of_column}"


@dataclass(frozen=True, slots=True)
class Arrives(DemandOnPeriod):
    """Every interval of this many seconds has new rows, on any day of it; with a `schedule` since
    the last delivery day: `monthly`, or a cron expression."""

    dimension: ClassVar[str | None] = "timeliness"
    odcs_property: ClassVar[str] = "frequency"
    column_fields: ClassVar[tuple[str, ...]] = ("column",)

    column: str | None
    interval_s: float
    schedule: str | None = None

    @property
    def seconds(self) -> float:
        return self.interval_s

    @property
    def text(self) -> str:
        when = f" ({self.schedule})" if self.schedule else ""
        return f"new rows every {duration_text(self.interval_s)}{when}"
