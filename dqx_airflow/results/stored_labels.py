"""Labels of verdicts by users: whether there was a real issue.

A label is about the verdict that its author saw. It also counts for a later run that has found the
same value, and not for one that has found another: its data was repaired, or damaged, since.

The store is append-only, and the last label of a verdict counts. Any number of processes may write
concurrently, and be killed: a label is stored once, or not at all.
"""

from __future__ import annotations

import math
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from typing import Any, TypeAlias

from dqx_airflow.results import schema
from dqx_airflow.results.query import (
    RunsWanted,
    StoredResults,
    is_in,
    map_index_of,
    of_dates,
    opened,
)
from dqx_airflow.results.report_rows import value_from_row
from dqx_airflow.results.schema import as_utc
from dqx_airflow.values import MetricValue
from dqx_airflow.values.exact import NUMBERS, nearest_float

LabelKey: TypeAlias = tuple[str, date, int, str, str]
"""A gate, a date of its data, a map index, a check, and the name of an assertion."""

RunPlace: TypeAlias = tuple[str, date, int]
"""A gate, a date of its data, and a map index, of which one run counts."""


@dataclass(frozen=True, slots=True)
class Label:
    """Whether there was a real issue in what an assertion of a gate checked on a date.

    With `ground_truth` False, a failure was a false alarm; with True, a pass missed an issue.
    `run_id` is the run whose verdict the author saw, `map_index` the index of the instance of a
    mapped gate, -1 if the gate is not mapped. `at` is in UTC.
    """

    gate: str
    date: date
    check: str
    name: str
    ground_truth: bool
    author: str
    reason: str | None = None
    suite: str = ""
    run_id: str | None = None
    map_index: int = -1
    at: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    id: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def key(self) -> LabelKey:
        """The labelled verdict: the gate, the date, the instance, the check and the assertion."""
        return self.gate, self.date, self.map_index, self.check, self.name

    @property
    def place(self) -> RunPlace:
        """The place of the labelled run."""
        return self.gate, self.date, self.map_index

    @property
    def content(self) -> tuple[bool, str, str | None]:
        """The content of the label, its author, and the reason."""
        return self.ground_truth, self.author, self.reason

    @property
    def row(self) -> dict[str, Any]:
        """The row of the label in the table `labels`."""
        return {
            "run_id": self.run_id,
            "label_id": self.id,
            "gate": self.gate,
            "dataset_date": self.date,
            "map_index": self.map_index,
            "suite": self.suite,
            "check": self.check,
            "name": self.name,
            "ground_truth": self.ground_truth,
            "reason": self.reason,
            "author": self.author,
            "labelled_at": as_utc(self.at),
        }


def write_labels(results: StoredResults | str, labels: Iterable[Label]) -> tuple[Label, ...]:
    """Appends labels in one commit, and returns those that were appended.

    A label that repeats the last label of the same verdict is not appended. So an interrupted call
    can be repeated safely.

    :raises StoreError: the store cannot be written.
    """
    wanted = list(labels)
    results = opened(results)
    stored = {
        label.key: (label.run_id, label.content)
        for label in read_labels(results, gates={label.gate for label in wanted})
    }
    new = []
    for label in wanted:
        content = label.run_id, label.content
        if stored.get(label.key) != content:
            new.append(label)
            stored[label.key] = content
    if new:
        results.write(schema.LABELS, {label.id: label.row for label in new})
    return tuple(new)


def read_labels(
    results: StoredResults | str,
    *,
    gates: Collection[str] | None = None,
    since: date | None = None,
    until: date | None = None,
    all_versions: bool = False,
) -> tuple[Label, ...]:
    """The labels of some gates on data of some days, oldest label first.

    A label of an older version has no map index: it belongs to the instance of the labelled run.

    :param all_versions: also labels that a later label replaces.
    :raises StoreError: the store exists and cannot be read.
    """
    results = opened(results)
    wanted = RunsWanted(gates, since=since, until=until)
    if wanted.is_nothing:
        return ()
    order = 'ORDER BY "labelled_at", "label_id"'
    rows = results.select(schema.LABELS, schema.LABELS_SCHEMA.names, wanted.conditions, order)
    instances: Mapping[str, int] = {}
    if any(row.get("map_index") is None for row in rows):
        instances = _mapped_runs(results, wanted)
    unique = {label.id: label for label in (_label(row, instances) for row in rows)}
    if all_versions:
        return tuple(unique.values())
    last: dict[LabelKey, Label] = {}
    for label in unique.values():
        last.pop(label.key, None)
        last[label.key] = label
    return tuple(last.values())


def labels_of_runs(results: StoredResults | str, runs: Mapping[RunPlace, str]) -> tuple[Label, ...]:
    """The labels that count for the verdicts of some runs, oldest label first.

    :param runs: the ids of the runs by their places.
    :raises StoreError: the store exists and cannot be read.
    """
    last: dict[LabelKey, Label] = {}
    for label, is_about in _labels_and_runs(opened(results), runs):
        if is_about:
            last.pop(label.key, None)
            last[label.key] = label
    return tuple(last.values())


def labelled_instead(
    results: StoredResults | str, runs: Mapping[RunPlace, str]
) -> dict[RunPlace, str]:
    """The ids of the runs whose verdicts people have labelled, where these labels do not count for
    the runs of some places: of several, the last with a real issue, or else the last.

    A place whose run has labels of its own is left out, unless only the other run had a real issue.

    :param runs: the ids of the runs by their places.
    :raises StoreError: the store exists and cannot be read.
    """
    last = {
        (label.key, label.run_id): (label, is_about)
        for label, is_about in _labels_and_runs(opened(results), runs)
    }
    own: dict[RunPlace, bool] = {}
    other: dict[RunPlace, tuple[bool, str]] = {}
    for label, is_about in last.values():
        place = label.place
        if is_about:
            own[place] = own.get(place, False) or label.ground_truth
        elif label.run_id is not None and (label.ground_truth or not other.get(place, (False,))[0]):
            other[place] = label.ground_truth, label.run_id
    return {
        place: run_id
        for place, (had_issue, run_id) in other.items()
        if place not in own or (had_issue and not own[place])
    }


_OF_FINDINGS = ("run_id", "check", "name", "expression", "value", "value_text", "value_kind")


def _labels_and_runs(
    results: StoredResults, runs: Mapping[RunPlace, str]
) -> Iterator[tuple[Label, bool]]:
    """All labels of the places of some runs, oldest first, and whether each is about its run: given
    for it, or for one that has found the same value. One without a run, of an older version, is
    about each."""
    if not runs:
        return
    gates = {gate for gate, _, _ in runs}
    since, until = min(on for _, on, _ in runs), max(on for _, on, _ in runs)
    labels = [
        label
        for label in read_labels(results, gates=gates, since=since, until=until, all_versions=True)
        if label.place in runs
    ]
    elsewhere = [label for label in labels if label.run_id not in (None, runs[label.place])]
    ids = {runs[label.place] for label in elsewhere}
    found = _findings(results, elsewhere, ids)
    for label in labels:
        yield label, _is_about(label, runs[label.place], found)


_Findings: TypeAlias = Mapping[tuple[str, str, str], schema.Row]
"""What runs have found, by their ids, checks and names of assertions."""


def _findings(
    results: StoredResults, labels: Sequence[Label], run_ids: Collection[str] = ()
) -> _Findings:
    """What the labelled runs have found, and other runs on the same days."""
    if not labels:
        return {}
    ids = {label.run_id or "" for label in labels} | {*run_ids}
    days = [label.date for label in labels]
    where = [is_in("run_id", ids), *of_dates(min(days), max(days))]
    rows = results.select(schema.RESULTS, _OF_FINDINGS, where)
    return {(row["run_id"], row["check"], row["name"]): row for row in rows}


def _is_about(label: Label, run_id: str | None, found: _Findings) -> bool:
    """Whether a label is about the verdict of a run: given for it, or for one that has found the
    same. One without a run, of an older version, is about each."""
    if label.run_id is None or run_id is None or label.run_id == run_id:
        return True
    seen = found.get((label.run_id, label.check, label.name))
    now = found.get((run_id, label.check, label.name))
    return seen is not None and now is not None and _is_same(seen, now)


_SUM_DIFFERS = 1e-9
"""By how much, relative to it, the sum of the same rows may differ in another run."""


def _is_same(one: schema.Row, other: schema.Row) -> bool:
    """True if two verdicts on an assertion have found the same."""
    return one["expression"] == other["expression"] and _are_equal(
        value_from_row(one, "value"), value_from_row(other, "value")
    )


def _are_equal(one: MetricValue, other: MetricValue) -> bool:
    if isinstance(one, NUMBERS) and isinstance(other, NUMBERS):
        return math.isclose(nearest_float(one), nearest_float(other), rel_tol=_SUM_DIFFERS)
    return one == other


def contradictions(
    results: StoredResults | str,
    gates: Collection[str],
    *,
    since: date | None = None,
    until: date | None = None,
) -> tuple[tuple[Label, Label], ...]:
    """The labels that count and contradict the label of another person for the same verdict, each
    with the last label of that person.

    :raises StoreError: the store exists and cannot be read.
    """
    results = opened(results)
    by_verdict: defaultdict[LabelKey, list[Label]] = defaultdict(list)
    for label in read_labels(results, gates=gates, since=since, until=until, all_versions=True):
        by_verdict[label.key].append(label)
    opposite = {
        key: labels
        for key, labels in by_verdict.items()
        if len({label.ground_truth for label in labels}) > 1
    }
    found = _findings(results, [label for labels in opposite.values() for label in labels])
    pairs = []
    for *earlier, last in opposite.values():
        others = [
            label
            for label in earlier
            if label.author != last.author and _is_about(label, last.run_id, found)
        ]
        if others and others[-1].ground_truth != last.ground_truth:
            pairs.append((last, others[-1]))
    return tuple(pairs)


def _mapped_runs(results: StoredResults, wanted: RunsWanted) -> dict[str, int]:
    """The map indexes of runs of mapped gates, by their ids."""
    mapped = [*wanted.conditions, "right(\"scheduler_run\", 1) = ']'"]
    rows = results.select(schema.RUNS, ("run_id", "gate", "dataset_date", "scheduler_run"), mapped)
    return {row["run_id"]: map_index_of(row) for row in rows}


def _label(row: schema.Row, instances: Mapping[str, int]) -> Label:
    """The label of a row of the table `labels`.

    :param instances: the map indexes of mapped runs, for a label that has none.
    """
    run_id = row.get("run_id")
    map_index = row.get("map_index")
    if map_index is None:
        map_index = instances.get(run_id or "", -1)
    return Label(
        gate=row["gate"],
        date=row["dataset_date"],
        check=row["check"],
        name=row["name"],
        ground_truth=bool(row["ground_truth"]),
        author=row["author"],
        reason=row.get("reason"),
        suite=row.get("suite") or "",
        run_id=run_id,
        map_index=map_index,
        at=as_utc(row["labelled_at"]),
        id=row["label_id"],
    )
