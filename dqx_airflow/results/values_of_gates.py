"""The values that gates stored about datasets, whichever suite asked for them: they judge a suite
that was renamed or split, or that no gate runs yet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from dqx_airflow.plan.measurements import Measurements, measurements_from
from dqx_airflow.results.past_days import PastDay
from dqx_airflow.results.past_runs import PastRun, past_runs
from dqx_airflow.results.query import RunsWanted, StoredResults, literal
from dqx_airflow.results.schema import as_utc


@dataclass(frozen=True, slots=True)
class DaysOfGates:
    """The days of a suite with the values of all gates that read its datasets in the same way.

    `gates` are the gates that added values. `doubts` are sentences about datasets that several
    gates read differently, so that no value could be taken.
    """

    days: tuple[PastDay, ...]
    gates: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def with_values_of_gates(
    results: StoredResults,
    days: Sequence[PastDay],
    datasets: Collection[str],
    since: date,
    until: date,
    *,
    gate: str | None = None,
) -> DaysOfGates:
    """The days, and the days on which other gates measured these datasets.

    A value that the suite has itself takes precedence. Mapped gates add nothing, and nothing is
    added to their days: an instance is known by its data alone.

    :param days: the days of the suite itself, oldest first; it may have none.
    :param gate: only values of this gate are taken.
    :raises StoreError: the store exists and cannot be read.
    """
    if not datasets or any(day.map_index >= 0 for day in days):
        return DaysOfGates(tuple(days))
    wanted = RunsWanted(None if gate is None else [gate], since=since, until=until)
    reads_one = " OR ".join(f'array_has("datasets", {literal(name)})' for name in datasets)
    runs = [
        run
        for run in past_runs(
            results, wanted, ("measured", "datasets"), row_conditions=[f"({reads_one})"]
        )
        if run.map_index < 0
    ]
    readings, doubts = _readings(days, runs, datasets)
    by_date = {day.date: day for day in days}
    gates: dict[str, None] = {}
    for run in runs:
        measured = Measurements()
        for of_row in _comparable(run, readings):
            measured |= of_row
        if not (measured.values or measured.groups or measured.failures):
            continue
        day = by_date.get(run.date)
        if day is None:
            now = as_utc(run.started_at)
            day = PastDay(run.date, Measurements(), now, fail_on=run.fail_on)
        if not measured.values.keys() <= day.measured.values.keys():
            gates[run.gate] = None
        by_date[run.date] = replace(day, measured=measured | day.measured)
    ordered = tuple(by_date[on] for on in sorted(by_date))
    return DaysOfGates(ordered, tuple(gates), tuple(doubts))


def _readings(
    days: Sequence[PastDay], runs: Sequence[PastRun], datasets: Collection[str]
) -> tuple[Mapping[str, str], list[str]]:
    """How the suite reads each dataset now; if it has no results, how all gates read it.

    Returns the readings by dataset, and a sentence for each dataset that gates read differently.
    """
    readings = {name: reading for day in days for name, reading in day.measured.reads.items()}
    by_gate: dict[str, dict[str, str]] = defaultdict(dict)
    for run in runs:
        for row in run.rows:
            for name, reading in measurements_from(row.get("measured")).reads.items():
                by_gate[name][run.gate] = reading
    doubts = []
    for name in datasets:
        of_gates = by_gate.get(name, {})
        if name in readings or not of_gates:
            continue
        if len(set(of_gates.values())) == 1:
            readings[name] = next(iter(of_gates.values()))
            continue
        listed = ", ".join(sorted(of_gates))
        doubts.append(f"dataset '{name}' is read differently by the gates {listed}: add --gate")
    return readings, doubts


def _comparable(run: PastRun, readings: Mapping[str, str]) -> Iterator[Measurements]:
    """Yields the measurements of each assertion whose datasets were all read as in the readings."""
    for row in run.rows:
        measured = measurements_from(row.get("measured"))
        names = row.get("datasets") or ()
        # Whoever stored no reading is too old to be compared.
        if all(
            name in measured.reads and measured.reads[name] == readings.get(name) for name in names
        ):
            yield measured
