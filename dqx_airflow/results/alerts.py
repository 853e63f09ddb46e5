"""The failures of past days, and their labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum

from dqx_airflow.diagnostics.nearest import did_you_mean
from dqx_airflow.errors import RequestError
from dqx_airflow.results.column import Row
from dqx_airflow.results.labels import Label, read_labels
from dqx_airflow.results.past import PastRun, past_runs
from dqx_airflow.results.report_rows import verdict_from_row
from dqx_airflow.results.schema import RESULTS_SCHEMA
from dqx_airflow.values import Status, Verdict

OF_VERDICTS = tuple(
    name for name in RESULTS_SCHEMA.names if name not in ("month", "run_id", "position")
)
"""The columns of `results` that form a verdict."""


class LabelKind(str, Enum):
    """What a label can say about a verdict."""

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
    """A verdict of a past day, with its label if it has one. `map_index` is that of an instance of
    a mapped gate, -1 for others."""

    gate: str
    date: date
    run_id: str
    verdict: Verdict
    label: Label | None = None
    suite: str = ""
    map_index: int = -1

    @property
    def label_kind(self) -> LabelKind | None:
        """What its label says about the verdict; None without a label."""
        if self.label is None:
            return None
        failed = self.verdict.status is Status.FAILED
        return LabelKind.of(failed=failed, ground_truth=self.label.ground_truth)


def alerts(
    root: str,
    suite: str,
    since: date,
    until: date,
    *,
    gate: str | None = None,
    map_index: int | None = None,
    unlabelled: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> tuple[Alert, ...]:
    """The failures of a suite on data of given days, oldest day first, and the passes labelled as
    missed issues.

    :param suite: the name of the suite, as in its file.
    :param map_index: only this instance of a mapped gate.
    :param unlabelled: only those without a label.
    :raises StoreError: the store exists and cannot be read.
    """
    runs = past_runs(
        root,
        suite,
        since,
        until,
        OF_VERDICTS,
        gate=gate,
        map_index=map_index,
        storage_options=storage_options,
    )
    labels = read_labels(
        root,
        gates={run.gate for run in runs},
        since=since,
        until=until,
        storage_options=storage_options,
    )
    judged = alerts_among(runs, labels)
    return tuple(alert for alert in judged if not (unlabelled and alert.label))


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
                verdict = verdict_from_row(row)
                suite, index = row.get("suite") or "", run.map_index
                listed.append(Alert(run.gate, run.date, run.run_id, verdict, label, suite, index))
    return tuple(listed)


@dataclass(frozen=True, slots=True)
class NewLabel:
    """A user's judgement on one verdict. `map_index` is that of an instance of a mapped gate; None
    if it is not given."""

    date: date
    assertion: str
    kind: LabelKind
    reason: str | None = None
    check: str | None = None
    map_index: int | None = None


def labels_for(
    root: str,
    suite: str,
    new_labels: Sequence[NewLabel],
    author: str,
    *,
    gate: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> tuple[tuple[Label, ...], tuple[str, ...]]:
    """The labels for judgements, and the errors of those without one.

    :raises RequestError: several gates run the suite, and none is named.
    :raises StoreError: the store exists and cannot be read.
    """
    if not new_labels:
        return (), ()
    days = [new.date for new in new_labels]
    columns = ("name", "check", "status")
    runs = past_runs(
        root, suite, min(days), max(days), columns, gate=gate, storage_options=storage_options
    )
    labels, problems = [], []
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
    gates, checks = (
        _different(run.gate for run, _ in matches),
        _different(row["check"] for _, row in matches),
    )
    if len(gates) > 1:
        raise RequestError(f"several gates ran it: {', '.join(gates)}", "add --gate NAME")
    if len(checks) > 1:
        raise RequestError(f"several checks have it: {', '.join(checks)}", "add --check NAME")
    if len(matches) > 1:
        listed = ", ".join(f"{run.map_index} ({row['status']})" for run, row in matches)
        raise RequestError(f"several instances ran it: {listed}", "add --map-index NUMBER")
    ((run, row),) = matches
    status, is_failure = row["status"], row["status"] == Status.FAILED
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
    map_index: int, matches: Sequence[tuple[PastRun, Row]]
) -> list[tuple[PastRun, Row]]:
    """:raises RequestError: other instances have a verdict, but this one has none."""
    own = [(run, row) for run, row in matches if run.map_index == map_index]
    if matches and not own:
        indexes = sorted({run.map_index for run, _ in matches})
        if indexes == [-1]:
            raise RequestError("the gate was not mapped", "remove the map index")
        listed = ", ".join(map(str, indexes))
        raise RequestError(f"instance {map_index} has no results", f"instances: {listed}")
    return own


def _different(names: Iterable[str]) -> list[str]:
    return sorted(set(names))
