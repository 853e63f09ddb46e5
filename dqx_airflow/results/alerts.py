"""The failures of past days with their labels: of one suite, or recent ones of several gates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, timezone
from enum import Enum
from typing import TypeAlias

from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.errors import RequestError
from dqx_airflow.plan.measurements import measurements_from
from dqx_airflow.results import schema
from dqx_airflow.results.causes import Day, Failure, cause_numbers, dag_in_name
from dqx_airflow.results.past_runs import PastRun, past_runs, runs_of_suite
from dqx_airflow.results.query import RunsWanted, StoredResults, equals, is_in, opened
from dqx_airflow.results.report_rows import verdict_from_row
from dqx_airflow.results.stored_labels import Label, labels_of_runs
from dqx_airflow.values import FailingRow, RunKey, Status, Verdict

OF_VERDICTS = tuple(
    name for name in schema.RESULTS_SCHEMA.names if name not in ("month", "run_id", "position")
)
"""The columns of `results` that form a verdict."""
_OF_VALUES = (
    *("name", "check", "datasets", "expression", "expected", "severity", "status", "multiplier"),
    *("value_text", "value_kind", "scaled_value_text", "scaled_value_kind"),
    *("threshold_text", "threshold_kind", "profiles"),
)
"""The columns of `results` that a chart of values needs."""


AssertionOfGate: TypeAlias = tuple[str, int, str, str]
"""A gate, a map index, a check, and the name of an assertion."""


class LabelKind(str, Enum):
    """The meaning of a label: whether the verdict was right."""

    FALSE_POSITIVE = "false positive"
    TRUE_POSITIVE = "true positive"
    MISSED = "missed"
    TRUE_NEGATIVE = "true negative"

    @property
    def ground_truth(self) -> bool:
        """Whether there was a real issue."""
        return self in (LabelKind.TRUE_POSITIVE, LabelKind.MISSED)

    @property
    def is_of_failure(self) -> bool:
        """Whether the assertion had failed."""
        return self in (LabelKind.FALSE_POSITIVE, LabelKind.TRUE_POSITIVE)

    @classmethod
    def of(cls, *, failed: bool, ground_truth: bool) -> LabelKind:
        """The meaning of a label for a verdict."""
        if failed:
            return cls.TRUE_POSITIVE if ground_truth else cls.FALSE_POSITIVE
        return cls.MISSED if ground_truth else cls.TRUE_NEGATIVE


@dataclass(frozen=True, slots=True)
class Alert:
    """A verdict of a past day, with its label if it has one.

    `map_index` is the index of the instance of a mapped gate, -1 if the gate is not mapped. `job`
    is the name of the gate without a suite.
    `attempt_id` is the id of the scheduler's attempt. If the failure is a dataset without rows,
    `explains` are the names of the other failures on that dataset. `cause` is the number of its
    cause among the alerts that were asked for, from 1 on, and `since` the first date of the cause
    among them; 0 and None for a pass."""

    gate: str
    date: date
    run_id: str
    verdict: Verdict
    label: Label | None = None
    suite: str = ""
    map_index: int = -1
    attempt_id: str = ""
    scheduler_run: str = ""
    job: str = ""
    explains: tuple[str, ...] = ()
    cause: int = 0
    since: Day | None = None

    @property
    def key(self) -> AssertionOfGate:
        """The assertion: its gate, the instance, its check, its name."""
        return self.gate, self.map_index, self.verdict.check, self.verdict.name

    @property
    def label_kind(self) -> LabelKind | None:
        """The meaning of the label for this verdict; None without a label."""
        if self.label is None:
            return None
        failed = self.verdict.status is Status.FAILED
        return LabelKind.of(failed=failed, ground_truth=self.label.ground_truth)


def alerts(
    results: StoredResults | str,
    suite: str,
    since: date,
    until: date,
    *,
    gate: str | None = None,
    map_index: int | None = None,
    unlabelled: bool = False,
) -> tuple[Alert, ...]:
    """The failures of a suite on data of given days, oldest day first, and the passes labelled as
    missed issues.

    :param suite: the name of the suite, as in its file.
    :param map_index: only this instance of a mapped gate.
    :param unlabelled: only failures without a label.
    :raises StoreError: the store exists and cannot be read.
    """
    results = opened(results)
    wanted = runs_of_suite(suite, since, until, gate, map_index)
    runs = past_runs(results, wanted, OF_VERDICTS)
    labels = labels_of_runs(results, {run.place: run.run_id for run in runs})
    judged = with_causes(alerts_among(runs, labels), runs)
    return tuple(alert for alert in judged if not (unlabelled and alert.label))


def with_causes(
    alerts: Sequence[Alert],
    runs: Iterable[PastRun],
    judged: Mapping[str, Collection[date]] | None = None,
) -> tuple[Alert, ...]:
    """The alerts with the number and the first date of their cause.

    :param runs: all runs of their gates on these days, so that the date before is known.
    :param judged: for each gate the dates that it judged, if `runs` are only those that failed. An
        instance of a mapped gate is then known by its map index.
    """
    instances = _instances(runs) if judged is None else {}
    dates: dict[tuple[str, Hashable], set[date]] = {}
    for (gate, on, _), instance in instances.items():
        dates.setdefault((gate, instance), set()).add(on)
    failures: list[Failure | None] = []
    for alert in alerts:
        failure = None
        if alert.verdict.status is Status.FAILED:
            instance = instances.get((alert.gate, alert.date, alert.map_index), alert.map_index)
            known = dates.get((alert.gate, instance), ()) if judged is None else judged[alert.gate]
            before = max((on for on in known if on < alert.date), default=None)
            failure = _failure(alert, instance, before)
        failures.append(failure)
    numbers = cause_numbers(failures)
    since: dict[int, date] = {}
    for cause, alert in zip(numbers, alerts, strict=True):
        since[cause] = min(since.get(cause, alert.date), alert.date)
    return tuple(
        replace(alert, cause=cause, since=since[cause]) if cause else alert
        for cause, alert in zip(numbers, alerts, strict=True)
    )


def _instances(runs: Iterable[PastRun]) -> dict[tuple[str, date, int], Hashable]:
    """The instance of a mapped gate behind each gate, date and map index, as it is known across
    dates: by the data that it reads; by its map index if others read the same on the date."""
    found: dict[tuple[str, date, int], Hashable] = {}
    for run in runs:
        found[run.gate, run.date, run.map_index] = _reads(run) or run.map_index
    counts = Counter((gate, on, instance) for (gate, on, _), instance in found.items())
    return {
        (gate, on, index): index if counts[gate, on, instance] > 1 else instance
        for (gate, on, index), instance in found.items()
    }


def _reads(run: PastRun) -> Hashable:
    """What an instance of a mapped gate reads; empty if the gate is not mapped."""
    if run.map_index < 0:
        return None
    measured = (measurements_from(row.get("measured")) for row in run.rows)
    return frozenset(item for one in measured for item in one.reads.items())


def _failure(alert: Alert, instance: Hashable, before: date | None) -> Failure:
    return Failure.of(
        alert.verdict,
        gate=(alert.gate, instance),
        dag=(dag_in_name(alert.job), alert.map_index),
        on=alert.date,
        before=before,
    )


def alerts_among(runs: Iterable[PastRun], labels: Iterable[Label]) -> tuple[Alert, ...]:
    """The failures of these runs, and the passes labelled as missed issues.

    :param runs: with the columns `OF_VERDICTS` of their rows.
    """
    by_key = {label.key: label for label in labels}
    listed = []
    for run in runs:
        for row in run.rows:
            label = by_key.get((run.gate, run.date, run.map_index, row["check"], row["name"]))
            failed = row["status"] == Status.FAILED
            if failed or (label and label.ground_truth):
                listed.append(
                    Alert(
                        run.gate,
                        run.date,
                        run.run_id,
                        verdict_from_row(row),
                        label,
                        suite=row.get("suite") or "",
                        map_index=run.map_index,
                        attempt_id=run.attempt_id,
                        scheduler_run=run.scheduler_run,
                        job=run.job,
                    )
                )
    return tuple(listed)


@dataclass(frozen=True, slots=True)
class NewLabel:
    """A user's judgement on one verdict. `map_index` is the index of an instance of a mapped gate;
    None if it is not given."""

    date: date
    assertion: str
    kind: LabelKind
    reason: str | None = None
    check: str | None = None
    map_index: int | None = None


def labels_for(
    results: StoredResults | str,
    suite: str,
    new_labels: Sequence[NewLabel],
    author: str,
    *,
    gate: str | None = None,
) -> tuple[tuple[Label, ...], tuple[str, ...]]:
    """Creates labels for judgements; returns the labels, and the errors of invalid judgements.

    :raises RequestError: several gates run the suite, and none is named.
    :raises StoreError: the store exists and cannot be read.
    """
    if not new_labels:
        return (), ()
    days = [new.date for new in new_labels]
    wanted = runs_of_suite(suite, min(days), max(days), gate)
    runs = past_runs(results, wanted, ("name", "check", "status"))
    labels = []
    problems = []
    for new in new_labels:
        on_day = [run for run in runs if run.date == new.date]
        try:
            labels.append(_label(suite, new, on_day, author))
        except RequestError as error:
            instance = "" if new.map_index is None else f"[{new.map_index}]"
            problems.append(f"{new.date}{instance} {new.assertion}: {error.in_one_line}")
    return tuple(labels), tuple(problems)


def _label(suite: str, new: NewLabel, runs: Sequence[PastRun], author: str) -> Label:
    """:raises RequestError: no verdict matches, or several, or one with another status."""
    if not runs:
        raise RequestError(f"suite '{suite}' has no results for this date")
    matches = [
        (run, row)
        for run in runs
        for row in run.rows
        if row["name"] == new.assertion and new.check in (None, row["check"])
    ]
    if new.map_index is not None:
        matches = _of_instance(new.map_index, matches)
    if not matches:
        names = sorted({row["name"] for run in runs for row in run.rows})
        raise RequestError("unknown assertion", did_you_mean(new.assertion, names) or "")
    gates = sorted({run.gate for run, _ in matches})
    checks = sorted({row["check"] for _, row in matches})
    if len(gates) > 1:
        raise RequestError(f"several gates ran it: {', '.join(gates)}", "add --gate NAME")
    if len(checks) > 1:
        raise RequestError(f"several checks have it: {', '.join(checks)}", "add --in-check NAME")
    if len(matches) > 1:
        listed = ", ".join(f"{run.map_index} ({row['status']})" for run, row in matches)
        raise RequestError(f"several instances ran it: {listed}", "add --map-index NUMBER")
    ((run, row),) = matches
    status = row["status"]
    is_failure = row["status"] == Status.FAILED
    if is_failure != new.kind.is_of_failure:
        flags = (
            "--false-positive or --true-positive" if is_failure else "--missed or --true-negative"
        )
        raise RequestError(f"it {status}, so it cannot be a {new.kind.value}", f"say {flags}")
    return Label(
        run.gate,
        run.date,
        row["check"],
        row["name"],
        new.kind.ground_truth,
        author,
        new.reason,
        suite,
        run.run_id,
        run.map_index,
    )


def _of_instance(
    map_index: int, matches: Sequence[tuple[PastRun, schema.Row]]
) -> list[tuple[PastRun, schema.Row]]:
    """:raises RequestError: other instances have a verdict, but this one has none."""
    own = [(run, row) for run, row in matches if run.map_index == map_index]
    if matches and not own:
        indexes = sorted({run.map_index for run, _ in matches})
        if indexes == [-1]:
            raise RequestError("the gate was not mapped", "remove the map index")
        listed = ", ".join(map(str, indexes))
        raise RequestError(f"instance {map_index} has no results", f"instances: {listed}")
    return own


DAYS = 30
"""An alert is recent if its date is among this many last days of the gate's data."""

_FAILED = f"\"status\" = '{Status.FAILED.value}'"


def recent_alerts(results: StoredResults, gates: Collection[str]) -> tuple[Alert, ...]:
    """The failures of some gates in the last 30 days of data, oldest day first, with their causes.
    A dataset without rows counts as one failure, which explains the others.

    :raises StoreError: the store exists and cannot be read.
    """
    listed: list[Alert] = []
    runs = _runs(results, gates, OF_VERDICTS)
    for run, labels in runs:
        causes = _causes(run.rows)
        alerts_of_run = {alert.key[2:]: alert for alert in alerts_among([run], labels)}
        listed += [replace(alerts_of_run[key], explains=tuple(causes[key])) for key in causes]
    return with_causes(listed, (), _judged_dates(results, [run for run, _ in runs]))


def _judged_dates(results: StoredResults, runs: Sequence[PastRun]) -> dict[str, set[date]]:
    """For each gate the dates that it judged, from the first to the last of some runs."""
    if not runs:
        return {}
    days = [run.date for run in runs]
    wanted = RunsWanted({run.gate for run in runs}, since=min(days), until=max(days))
    dates: dict[str, set[date]] = {}
    for row in results.run_rows(wanted, ("gate", "dataset_date")):
        dates.setdefault(row["gate"], set()).add(row["dataset_date"])
    return dates


def _causes(failures: Sequence[schema.Row]) -> Mapping[tuple[str, str], Sequence[str]]:
    """The failures of a run, each with the names of the failures that it explains: if a dataset has
    no rows, its implicit assertion explains all others."""
    empty = {
        row["datasets"][0]: (row["check"], row["name"])
        for row in failures
        if row["check"] == "implicit" and row["expression"] == "num_rows()"
    }
    causes: dict[tuple[str, str], list[str]] = {}
    for row in failures:
        own = row["check"], row["name"]
        cause = next((empty[name] for name in row["datasets"] or () if name in empty), own)
        causes.setdefault(cause, []).extend([row["name"]] if cause != own else [])
    return causes


def unlabelled_counts(
    results: StoredResults, gates: Collection[str]
) -> tuple[tuple[str, int], ...]:
    """The number of recent failures without a label for each gate that has any.

    :raises StoreError: the store exists and cannot be read.
    """
    counts: Counter[str] = Counter()
    for run, labels in _runs(results, gates, ("name", "check", "datasets", "expression")):
        labelled = {(label.map_index, label.check, label.name) for label in labels}
        counts[run.gate] += sum((run.map_index, *key) not in labelled for key in _causes(run.rows))
    return tuple((gate, count) for gate, count in counts.items() if count)


def alert_of(results: StoredResults, run: schema.Row, check: str, name: str) -> tuple[Alert, ...]:
    """The failure of an assertion in a run; none if it did not fail, or another run counts.

    :param run: its id, gate and dataset_date.
    :raises StoreError: the store exists and cannot be read.
    """
    gates = [run["gate"]]
    day = run["dataset_date"]
    rows = [_FAILED, equals("check", check), equals("name", name)]
    wanted = RunsWanted(gates, since=day, until=day)
    runs = past_runs(results, wanted, OF_VERDICTS, row_conditions=rows)
    own = [one for one in runs if one.run_id == run["run_id"]]
    return alerts_among(own, labels_of_runs(results, {one.place: one.run_id for one in own}))


def labels_of(results: StoredResults, key: RunKey, run_id: str) -> tuple[Label, ...]:
    """The labels of the verdicts of a run.

    :raises StoreError: the store exists and cannot be read.
    """
    return labels_of_runs(results, {(key.gate, key.date, key.map_index): run_id})


def histories(
    results: StoredResults, assertions: Collection[AssertionOfGate], until: date
) -> Mapping[AssertionOfGate, Sequence[tuple[date, Verdict]]]:
    """The verdicts of some assertions in 30 days, oldest first, with the dates of their data; only
    with what a chart of their values needs.

    :raises StoreError: the store exists and cannot be read.
    """
    wanted = _of_last_days({gate for gate, *_ in assertions}, until)
    names = [is_in("name", [name for *_, name in assertions])] if assertions else []
    by_assertion: dict[AssertionOfGate, list[tuple[date, Verdict]]] = {
        key: [] for key in assertions
    }
    for run in past_runs(results, wanted, _OF_VALUES, row_conditions=names):
        for row in run.rows:
            key = run.gate, run.map_index, row["check"], row["name"]
            if key in by_assertion:
                by_assertion[key].append((run.date, verdict_from_row(row)))
    return by_assertion


def with_failing_rows(results: StoredResults, alerts: Sequence[Alert]) -> tuple[Alert, ...]:
    """The alerts with the sampled rows that failed.

    :raises StoreError: the store exists and cannot be read.
    """
    if not alerts:
        return ()
    days = [alert.date for alert in alerts]
    gates = {alert.gate for alert in alerts}
    where = [
        is_in("run_id", {alert.run_id for alert in alerts}),
        *RunsWanted(gates, since=min(days), until=max(days)).conditions,
    ]
    sampled: dict[tuple[str, str, str], dict[int, FailingRow]] = {}
    for row in results.select(schema.FAILING_ROWS, schema.FAILING_ROWS_SCHEMA.names, where):
        key = row["run_id"], row["check"], row["name"]
        failing = FailingRow(row["dataset"], row["reason"], row["row"])
        sampled.setdefault(key, {})[row["number"]] = failing
    listed = []
    for alert in alerts:
        verdict = alert.verdict
        rows = sampled.get((alert.run_id, verdict.check, verdict.name), {})
        failing_rows = tuple(row for _, row in sorted(rows.items()))
        listed.append(replace(alert, verdict=replace(verdict, failing_rows=failing_rows)))
    return tuple(listed)


def _runs(
    results: StoredResults, gates: Collection[str], columns: Sequence[str]
) -> list[tuple[PastRun, tuple[Label, ...]]]:
    """The runs that count, with the rows that failed, and the labels of their days."""
    tomorrow = datetime.now(timezone.utc).date() + timedelta(days=1)
    until = results.newest_date(RunsWanted(gates, until=tomorrow))
    if until is None:
        return []
    wanted = replace(_of_last_days(gates, until), failing=True)
    runs = past_runs(results, wanted, columns, row_conditions=[_FAILED])
    labels: dict[tuple[str, date], list[Label]] = {}
    for label in labels_of_runs(results, {run.place: run.run_id for run in runs}):
        labels.setdefault((label.gate, label.date), []).append(label)
    return [(run, tuple(labels.get((run.gate, run.date), ()))) for run in runs]


def _of_last_days(gates: Collection[str], until: date) -> RunsWanted:
    return RunsWanted(gates, since=until - timedelta(days=DAYS - 1), until=until)
