"""Which failures have one cause, so that a person gets one alert for them.

- All failures of a dataset on a date are one.
- So are those of several datasets of a DAG whose rows, or else whose sums or means, are on the same
  side of their limits on a date: a campaign, a holiday or a late source moves all of them.
- A failure that goes on, on the same side as on the date before, is the alert that is open.

Nothing is dropped: an alert names its datasets and its failures.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum
from itertools import groupby
from typing import TypeAlias

from dqx_airflow.plan.term_values import REPEATED
from dqx_airflow.values import Status, Verdict
from dqx_airflow.values.exact import NUMBERS

Day: TypeAlias = date
"""The type of dates in classes that have a field `date`."""

MOVING_TOGETHER = ("num_rows", "sum", "average")
"""The metrics whose side shows how a dataset moved, in order of precedence."""


class Side(str, Enum):
    """The side of the limits on which a value is."""

    ABOVE = "above"
    BELOW = "below"


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure of a date, as a cause sees it.

    :param assertion: a key of the assertion, with its gate and instance.
    :param dag: a key of what runs together; failures of others have other causes.
    :param datasets: keys of its datasets.
    :param date: of its data.
    :param before: the date that its gate judged before; None if it is not known.
    :param metric: the metric, if it is about one alone.
    :param side: None if it has no limits, or no value.
    """

    assertion: Hashable
    dag: Hashable
    datasets: tuple[Hashable, ...]
    date: Day
    before: Day | None
    metric: str | None = None
    side: Side | None = None

    @classmethod
    def of(
        cls, verdict: Verdict, *, gate: Hashable, dag: Hashable, on: Day, before: Day | None = None
    ) -> Failure:
        """The failure of a verdict.

        :param gate: a key of the gate, with its instance.
        :param on: the date of its data.
        """
        value, limit = verdict.scaled_value, verdict.threshold  # the lower one of two limits
        side = None
        is_beyond = REPEATED not in (verdict.reason or "") and value != limit
        if is_beyond and isinstance(value, NUMBERS) and isinstance(limit, NUMBERS):
            side = Side.BELOW if value < limit else Side.ABOVE
        return cls(
            assertion=(gate, verdict.check, verdict.name),
            dag=dag,
            datasets=tuple((gate, name) for name in verdict.datasets),
            date=on,
            before=before,
            metric=verdict.metric,
            side=side,
        )

    @property
    def dataset(self) -> Hashable:
        """The key of its first dataset; an assertion about none stands for itself."""
        return self.datasets[0] if self.datasets else self.assertion

    @property
    def open_key(self) -> Hashable:
        """The key under which its alert stays open on its date."""
        return self.assertion, self.side, self.date

    @property
    def going_on(self) -> Hashable:
        """The key of the failure that it continues."""
        return self.assertion, self.side, self.before

    @property
    def movement(self) -> tuple[str, Side] | None:
        """How its dataset moved, in rows or in means; None if it says neither. A sum goes with the
        rows."""
        if self.metric not in MOVING_TOGETHER or self.side is None:
            return None
        return "average" if self.metric == "average" else "num_rows", self.side


def causes_of(failures: Iterable[Failure]) -> list[list[Failure]]:
    """The failures by their cause, in the order of dates. What fails in addition while an alert is
    open is another alert, unless its dataset is the one that moves in this way."""
    causes: list[list[Failure]] = []
    open_causes: dict[Hashable, list[Failure]] = {}
    in_order = sorted(failures, key=lambda one: one.date)
    for _, on_date in groupby(in_order, key=lambda one: one.date):
        for together in _moved_together([*on_date]):
            moving: dict[Hashable, list[Failure]] = {
                (one.dataset, one.movement): open_causes[one.going_on]
                for one in together
                if one.going_on in open_causes and one.movement is not None
            }
            new: list[Failure] = []
            for one in together:
                moved = moving.get((one.dataset, one.movement), new)
                cause = open_causes.get(one.going_on, moved)
                cause.append(one)
                open_causes[one.open_key] = cause
            if new:
                causes.append(new)
    return causes


def cause_numbers(verdicts: Sequence[Verdict], on: Day) -> list[int]:
    """For each verdict of a report the number of its cause, from 1 on; 0 for those that did not
    fail.

    :param on: the date of the data.
    """
    failures = {
        position: Failure.of(verdict, gate=None, dag=None, on=on)
        for position, verdict in enumerate(verdicts)
        if verdict.status is Status.FAILED
    }
    numbers = {
        id(failure): number
        for number, together in enumerate(causes_of(failures.values()), start=1)
        for failure in together
    }
    return [numbers.get(id(failures.get(position)), 0) for position in range(len(verdicts))]


def _moved_together(failures: Sequence[Failure]) -> list[list[Failure]]:
    """The failures of a date by dataset, and datasets of a DAG that moved in the same way."""
    of_dataset: dict[Hashable, list[Failure]] = {}
    for failure in failures:
        of_dataset.setdefault((failure.dag, failure.dataset), []).append(failure)
    together: dict[Hashable, list[Failure]] = {}
    for dataset, own in of_dataset.items():
        moved = _movement(own)
        key = dataset if moved is None else (own[0].dag, *moved)
        together.setdefault(key, []).extend(own)
    return [*together.values()]


def _movement(failures: Sequence[Failure]) -> tuple[str, Side] | None:
    """How a dataset moved: in its rows, or else in its sums, or else in its means."""
    for metric in MOVING_TOGETHER:
        for failure in failures:
            if failure.metric == metric and failure.movement is not None:
                return failure.movement
    return None
