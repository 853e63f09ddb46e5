"""Which failures have one cause, so that a person gets one alert for them.

- All failures of a dataset on a date are one.
- So are those of several datasets of a DAG whose rows, or else whose sums or means, are on the same
  side of their limits on a date: a campaign, a holiday or a late source moves all of them.
- A failure that goes on, on the same side as on the date before, is the alert that is open.
- A gate that fails by nothing but such a movement says what an earlier gate of its DAG has said.

Nothing is dropped: an alert names its datasets and its failures. The order in which failures are
given does not matter.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum
from itertools import groupby
from typing import TypeAlias

from dqx_airflow.plan.term_values import REPEATED
from dqx_airflow.values import GateReport, Status, Verdict
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
        return cls(
            assertion=(gate, verdict.check, verdict.name),
            dag=dag,
            datasets=tuple((gate, name) for name in verdict.datasets),
            date=on,
            before=before,
            metric=verdict.metric,
            side=_side_of(verdict),
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
            left: list[Failure] = []
            for one in together:
                movement = one.dataset, one.movement
                cause = open_causes.get(one.going_on) or moving.get(movement, left)
                cause.append(one)
                open_causes[one.open_key] = cause
            # Without those that go on, the others may have nothing in common.
            for cause in _moved_together(left):
                causes.append(cause)
                open_causes |= dict.fromkeys((one.open_key for one in cause), cause)
    return causes


def dag_in_name(gate: str) -> str:
    """The key of the DAG in the name of a gate without a suite, `lake` of `lake.gate`, where only
    the store is known. The ids of DAGs and tasks may contain dots: gates of two DAGs never have the
    same key, and those in different groups of tasks have different ones. So have gates with names
    of their own, such as `shop/orders`."""
    return gate.rpartition(".")[0] or gate


def says_nothing_new(own: Sequence[Failure], earlier: Sequence[Failure]) -> bool:
    """Whether what stops a gate is only that its datasets moved as those of an earlier gate of its
    DAG on the date, so that both have one cause.

    Any other failure may be another thing, even one of the same dataset.

    :param own: all failures that stop the gate.
    :param earlier: all failures that stopped the earlier gate.
    """
    movements = {failure.movement for failure in own}
    if len(movements) != 1 or None in movements:
        return False
    before = {id(failure) for failure in earlier}
    mine = {id(failure) for failure in own}
    for together in causes_of([*earlier, *own]):
        members = {id(failure) for failure in together}
        if members & before and mine <= members:
            return True
    return False


def cause_numbers(failures: Sequence[Failure | None]) -> list[int]:
    """For each failure the number of its cause, from 1 on; 0 for a pass."""
    numbers = {
        id(failure): number
        for number, together in enumerate(causes_of(filter(None, failures)), start=1)
        for failure in together
    }
    return [numbers.get(id(failure), 0) for failure in failures]


def failures_of(reports: Sequence[GateReport]) -> list[Failure | None]:
    """The failures among the verdicts of the reports of a task, one report after the other; None
    for a verdict that is not a failure."""
    dates: dict[str, set[Day]] = {}
    for report in reports:
        dates.setdefault(report.run_key.gate, set()).add(report.run_key.date)
    found: list[Failure | None] = []
    for report in reports:
        key = report.run_key
        before = max((on for on in dates[key.gate] if on < key.date), default=None)
        for verdict in report.verdicts:
            failure = None
            if verdict.status is Status.FAILED:
                failure = Failure.of(verdict, gate=key.gate, dag=None, on=key.date, before=before)
            found.append(failure)
    return found


_WITHOUT_A_SIDE = ("in ", "not ")


def _side_of(verdict: Verdict) -> Side | None:
    """The side of the limits on which the value of a verdict is; None if it has none: it repeats an
    earlier one, or is not among some values."""
    value = verdict.scaled_value
    limit = verdict.threshold  # the lower one of two limits
    if not isinstance(value, NUMBERS) or not isinstance(limit, NUMBERS):
        return None
    if REPEATED in (verdict.reason or "") or verdict.expected.startswith(_WITHOUT_A_SIDE):
        return None
    if value < limit:
        return Side.BELOW
    return Side.ABOVE if value > limit else None


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
    """How a dataset moved: in its rows, or else in its sums, or else in its means; None if these
    are on both sides of their limits."""
    for metric in MOVING_TOGETHER:
        moved = {failure.movement for failure in failures if failure.metric == metric} - {None}
        if moved:
            return moved.pop() if len(moved) == 1 else None
    return None
