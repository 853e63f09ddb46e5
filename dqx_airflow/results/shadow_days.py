"""The verdicts of shadow suites on past days, beside those of their gates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import TypeAlias

from dqx_airflow.results.conditions import is_in, of_dates, of_suite
from dqx_airflow.results.labels import labels_from
from dqx_airflow.results.past import one_gate, runs_that_count
from dqx_airflow.results.query import selecting
from dqx_airflow.results.schema import RESULTS, RUNS
from dqx_airflow.values import ShadowReport, Status, from_json

_Key: TypeAlias = tuple[str, str]
_COLUMNS = ("name", "check", "status")


@dataclass(frozen=True, slots=True)
class ShadowDay:
    """A day on which a gate, or an instance of a mapped gate, had a shadow. Statuses and labels are
    by check and name; a label is True if there was a real issue. `problem` says why the shadow was
    not judged."""

    date: date
    shadow: str
    own: Mapping[_Key, Status] = field(default_factory=dict)
    other: Mapping[_Key, Status] = field(default_factory=dict)
    labels: Mapping[_Key, bool] = field(default_factory=dict)
    problem: str | None = None
    map_index: int = -1


def shadow_days(
    root: str,
    suite: str,
    since: date,
    until: date,
    *,
    gate: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> tuple[ShadowDay, ...]:
    """The days on which a gate had a shadow, oldest first: one for each instance of a mapped gate.

    :param suite: the name of the suite of the gate, as in its file.
    :raises RequestError: several gates run the suite, and none is named.
    :raises StoreError: the store exists and cannot be read.
    """
    select = selecting(root, storage_options)
    runs = runs_that_count(select, of_suite(suite, gate), since, until, _COLUMNS)
    name = one_gate(runs)
    if name is None:
        return ()
    of_runs = [is_in("run_id", [run.run_id for run in runs]), *of_dates(since, until)]
    reports = {
        row["run_id"]: from_json(ShadowReport, row["shadow_run"])
        for row in select(RUNS, ("run_id", "shadow_run"), of_runs)
        if row.get("shadow_run")
    }
    others: dict[str, dict[_Key, Status]] = {}
    for row in select(RESULTS, ("run_id", *_COLUMNS), of_runs, shadows=True):
        by_key = others.setdefault(row["run_id"], {})
        by_key[row["check"], row["name"]] = Status(row["status"])
    labels: dict[tuple[date, int], dict[_Key, bool]] = {}
    for label in labels_from(select, [name], since, until):
        of_run = labels.setdefault((label.date, label.map_index), {})
        of_run[label.check, label.name] = label.ground_truth
    return tuple(
        ShadowDay(
            run.date,
            reports[run.run_id].name,
            {(row["check"], row["name"]): Status(row["status"]) for row in run.rows},
            others.get(run.run_id, {}),
            labels.get((run.date, run.map_index), {}),
            reports[run.run_id].problem,
            run.map_index,
        )
        for run in runs
        if run.run_id in reports
    )
