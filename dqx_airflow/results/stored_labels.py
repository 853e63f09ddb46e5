"""Labels of verdicts by users: whether there was a real issue.

The store is append-only, and the last label of a verdict counts. Any number of processes may write
concurrently, and be killed: a label is stored once, or not at all.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from typing import Any, TypeAlias

from dqx_airflow.results import schema
from dqx_airflow.results.query import RunsWanted, StoredResults, map_index_of, opened
from dqx_airflow.results.schema import as_utc

LabelKey: TypeAlias = tuple[str, date, int, str, str]
"""A gate, a date of its data, a map index, a check, and the name of an assertion."""


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
        label.key: label.content
        for label in read_labels(results, gates={label.gate for label in wanted})
    }
    new = []
    for label in wanted:
        if stored.get(label.key) != label.content:
            new.append(label)
            stored[label.key] = label.content
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
    by_verdict: defaultdict[LabelKey, list[Label]] = defaultdict(list)
    for label in read_labels(results, gates=gates, since=since, until=until, all_versions=True):
        by_verdict[label.key].append(label)
    found = []
    for *earlier, last in by_verdict.values():
        others = [label for label in earlier if label.author != last.author]
        if others and others[-1].ground_truth != last.ground_truth:
            found.append((last, others[-1]))
    return tuple(found)


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
