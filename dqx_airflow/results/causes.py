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
    open is another alert, unless it moves as that one does."""
    causes: list[list[Failure]] = []
    open_causes: dict[Hashable, list[Failure]] = {}
    in_order = sorted(failures, key=lambda one: one.date)
    for _, on_date in groupby(in_order, key=lambda one: one.date):
        for together in _moved_together([*on_date]):
            going_on = [one for one in together if one.going_on in open_causes]
            moving = {one.movement for one in going_on} - {None}
            new = [one for one in together if one not in going_on and one.movement not in moving]
            joining = [one for one in together if one not in new]
            if joining:
                open_causes[going_on[0].going_on].extend(joining)
                cause = open_causes[going_on[0].going_on]
                open_causes |= {one.open_key: cause for one in joining}
            if new:
                causes.append(new)
                open_causes |= {one.open_key: new for one in new}
    return causes


def _moved_together(failures: Sequence[Failure]) -> list[list[Failure]]:
    """The failures of a date by dataset, and datasets of a DAG that moved in the same way."""
    of_dataset: dict[Hashable, list[Failure]] = {}
    for failure in failures:
        dataset = failure.datasets[0] if failure.datasets else failure.assertion
        of_dataset.setdefault((failure.dag, dataset), []).append(failure)
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
