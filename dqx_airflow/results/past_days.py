"""The past days of a suite as the input of a backtest: stored metric values, verdicts, labels."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import reduce
from operator import or_

from dqx_airflow.plan.measured import Measurements, measurements_from
from dqx_airflow.results.column import as_utc, value_from_row
from dqx_airflow.results.labels import read_labels
from dqx_airflow.results.past import PastRun, one_gate, past_runs
from dqx_airflow.tuning.past_days import PastDay, StoredVerdict
from dqx_airflow.values import Status

_COLUMNS = ("name", "check", "status", "expression", "measured")
_OF_VALUE = ("value", "value_text", "value_kind")


def past_days(
    root: str,
    suite: str,
    since: date,
    until: date,
    *,
    gate: str | None = None,
    map_index: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> tuple[PastDay, ...]:
    """The days for which a gate left results, oldest first, with their labels: one for each
    instance of a mapped gate.

    :param suite: the name of the suite, as in its file.
    :param map_index: only this instance of a mapped gate.
    :raises RequestError: several gates run the suite, and none is named.
    :raises StoreError: the store exists and cannot be read.
    """
    runs = past_runs(
        root,
        suite,
        since,
        until,
        (*_COLUMNS, *_OF_VALUE),
        gate=gate,
        map_index=map_index,
        storage_options=storage_options,
    )
    name = one_gate(runs)
    if name is None:
        return ()
    labels: dict[tuple[date, int], dict[tuple[str, str], bool]] = {}
    stored = read_labels(
        root, gates={name}, since=since, until=until, storage_options=storage_options
    )
    for label in stored:
        of_run = labels.setdefault((label.date, label.map_index), {})
        of_run[label.check, label.name] = label.ground_truth
    return tuple(_day(run, labels.get((run.date, run.map_index), {})) for run in runs)


def _day(run: PastRun, labels: Mapping[tuple[str, str], bool]) -> PastDay:
    measured = reduce(
        or_, (measurements_from(row.get("measured")) for row in run.rows), Measurements()
    )
    verdicts = {
        (row["check"], row["name"]): StoredVerdict(
            Status(row["status"]), row["expression"], value_from_row(row, "value")
        )
        for row in run.rows
    }
    now = as_utc(run.started_at)
    return PastDay(run.date, measured, now, verdicts, labels, run.run_id, run.map_index)
