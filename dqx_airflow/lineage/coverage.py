"""Which tables and columns of a flow no assertion sees: the flow from OpenLineage events of any
producer, the assertions from these events, and what else is added.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from dqx_airflow.lineage.names import is_path, name_of_data, trimmed
from dqx_airflow.values import GateReport


@dataclass(slots=True, eq=False)
class Table:
    """The facts about a table, as collected from events and reports.

    `columns` are the columns in its schemas. `read` are the columns from which columns downstream
    are derived. `asserted` are the names in assertions, which may be more than columns. `read` and
    `asserted` are folded as Spark compares names. `checks` are the gates and suites with such
    assertions, each with the day of its last run; empty if no run is known. `readers` are the jobs
    other than gates that read the table.
    """

    columns: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    asserted: set[str] = field(default_factory=set)
    checks: dict[str, str] = field(default_factory=dict)
    readers: set[tuple[str, str]] = field(default_factory=set)

    def add_check(self, by: str, day: str, columns: Iterable[str | None]) -> None:
        self.checks[by] = max(day, self.checks.get(by, ""))
        self.asserted |= _folded(filter(None, columns))


@dataclass(frozen=True, slots=True)
class TableCoverage:
    """The coverage of a table by assertions; columns in lower case.

    `unseen` are the columns that no assertion reads. `unseen_but_read` are the unseen columns from
    which columns downstream are derived.

    :param last_run: the day of the last run of a check, `2026-11-23`; empty if none is known.
    :param columns: the number of its known columns.
    :param readers: the number of jobs that read the table, or data derived from it, without a gate
        in between.
    """

    location: str
    checked_by: tuple[str, ...]
    last_run: str
    columns: int
    unseen: tuple[str, ...]
    unseen_but_read: tuple[str, ...]
    readers: int


class Flow:
    """The tables of a flow, and the jobs that read and write them."""

    def __init__(self) -> None:
        self._tables = defaultdict[tuple[str, str], Table](Table)
        self._written = defaultdict[tuple[str, str], set[Table]](set)
        self._named = defaultdict[str, set[Table]](set)

    def of_event(self, dataset: Mapping[str, Any]) -> Table:
        """The table with the name of a dataset in an event."""
        table = self._tables[dataset["namespace"], trimmed(dataset["name"])]
        self._named[dataset["name"]].add(table)
        return table

    def at(self, place: str) -> Table:
        """The table at a path, or with a name in a catalog. The name selects a table of earlier
        events if exactly one has it."""
        if is_path(place):
            named = name_of_data(place)
            return self._tables[named.namespace, named.name]
        name = place.replace("`", "").removeprefix("spark_catalog.")
        same = self._named[name]
        return next(iter(same)) if len(same) == 1 else self._tables["", name]

    def add_file(
        self,
        file: Path,
        is_wanted: Callable[[Mapping[str, Any]], bool] = lambda _: True,
        most_bytes: int | None = None,
    ) -> list[int]:
        """Adds the events in a file of JSON lines, or the single event of a JSON file.

        :param is_wanted: whether an event counts.
        :param most_bytes: of a longer file only the events in this many bytes at its end are added.
        :return: the lines that are not events, counted from 1.
        :raises OSError: the file cannot be read.
        """
        with file.open("rb") as opened:
            if most_bytes is not None and (skipped := file.stat().st_size - most_bytes) > 0:
                opened.seek(skipped)
                opened.readline()
            text = opened.read().decode("utf-8-sig", errors="replace")
        lines = text.split("\n")
        has_lines = lines[0].startswith("{") and lines[0].rstrip().endswith("}")
        wrong = []
        for number, part in enumerate(lines if has_lines else [text], start=1):
            try:
                if part.strip() and is_wanted(event := json.loads(part)):
                    self.add_event(event)
            except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
                wrong.append(number)
        return wrong

    def add_report(self, report: GateReport) -> None:
        """Adds the datasets of a run, and the tables to which it promoted rows."""
        gate = report.run_key.gate
        day = f"{report.finished_at:%Y-%m-%d}"
        for found in report.datasets:
            if found.format != "query":
                columns = [one.column for one in report.verdicts if found.name in one.datasets[:1]]
                promoted = [found.promotion.location] if found.promotion else []
                for table in map(self.at, (found.lineage_name or found.location, *promoted)):
                    table.columns.update(column.name for column in found.fields)
                    table.add_check(gate, day, columns)

    def add_event(self, event: Mapping[str, Any]) -> None:
        """Adds the datasets and columns in a run event, a job event or a dataset event.

        :raises (AttributeError, KeyError, TypeError): it is not an event.
        """
        day = (event.get("eventTime") or "")[:10]
        if "dataset" in event:
            self._add_dataset(event["dataset"], "", day)
            return
        kind = _facet(event["job"], "jobType").get("jobType")
        if kind == "BLOCK":
            return  # its input is a contract, not a table
        suffix = ".gate" if kind == "GATE" else ""  # without it, a gate is named as in the results
        job = event["job"]["namespace"], event["job"]["name"].removesuffix(suffix)
        inputs = [self._add_dataset(one, job[1], day) for one in event.get("inputs") or ()]
        outputs = [self._add_dataset(one, job[1], day) for one in event.get("outputs") or ()]
        for table in outputs:
            if kind == "GATE":  # what it promotes is what it has judged
                table.add_check(job[1], day, chain(*(one.asserted for one in inputs)))
            else:
                self._written[job].add(table)
        for table in inputs:
            if kind != "GATE":
                table.readers.add(job)

    def _add_dataset(self, dataset: Mapping[str, Any], job: str, day: str) -> Table:
        table = self.of_event(dataset)
        for symlink in _facet(dataset, "symlinks").get("identifiers", ()):
            self._named[symlink["name"]].add(table)
        fields = _facet(dataset, "schema").get("fields") or ()
        table.columns.update(_folded(one["name"] for one in fields))
        lineage = _facet(dataset, "columnLineage")
        derived = (column["inputFields"] for column in lineage.get("fields", {}).values())
        for source in chain(lineage.get("dataset") or (), *derived):
            self.of_event(source).read |= _folded([source["field"]])
        for key in ("facets", "inputFacets"):
            if found := _facet(dataset, "dataQualityAssertions", key).get("assertions"):
                table.add_check(job, day, (one.get("column") for one in found))
        return table

    def places(self) -> list[str]:
        """The paths and names of all tables, as they are in `coverage`."""
        return [_place_of(namespace, name) for namespace, name in self._tables]

    def readers_of(self, place: str) -> int:
        """The number of jobs that read the table at a path, or with a name in a catalog, or data
        derived from it."""
        return len(self._jobs_behind(self.at(place)))

    def coverage(self) -> list[TableCoverage]:
        """The coverage of all tables: tables without a check first, then by number of readers."""
        covered = []
        for (namespace, name), table in self._tables.items():
            columns = table.read | _folded(table.columns)
            unseen = columns - table.asserted
            one = TableCoverage(
                _place_of(namespace, name),
                tuple(sorted(table.checks)),
                max(table.checks.values(), default=""),
                len(columns),
                tuple(sorted(unseen)),
                tuple(sorted(unseen & table.read)),
                len(self._jobs_behind(table)),
            )
            covered.append(one)
        return sorted(covered, key=lambda one: (bool(one.checked_by), -one.readers, one.location))

    def _jobs_behind(self, table: Table) -> set[tuple[str, str]]:
        """The jobs that read a table, or data derived from it before the next check."""
        jobs = set[tuple[str, str]]()
        found = {table}
        left = [table]
        while left:
            at = left.pop()
            for job in at.readers - jobs:
                written = self._written[job]
                # A job that merges into a table reads it, too.
                if at not in written and (written or job[1] not in at.checks):
                    jobs.add(job)
                    left += [one for one in written - found if not one.checks]
                    found |= written
        return jobs


def _place_of(namespace: str, name: str) -> str:
    """The path of a table, or its name in a catalog."""
    return name if namespace in ("", "file") else f"{namespace}/{name.lstrip('/')}"


def event_files(path: Path) -> list[Path]:
    """The files with events at a path: the file itself, or the files in a folder; may be empty."""
    if path.is_dir():
        return sorted(path.rglob("*.json*"))
    return [path] if path.exists() else []


def jobs_of(event: Mapping[str, Any]) -> set[str]:
    """The names of the job of an event and of the jobs that started it; empty if it has no job.

    :raises (AttributeError, KeyError, TypeError): it is not an event.
    """
    parent = _facet(event.get("run") or {}, "parent")
    jobs = (event.get("job"), parent.get("job"), (parent.get("root") or {}).get("job"))
    return {job["name"] for job in jobs if job}


def _facet(part: Mapping[str, Any], name: str, key: str = "facets") -> Any:
    return (part.get(key) or {}).get(name) or {}


def _folded(names: Iterable[str]) -> set[str]:
    """The columns as Spark compares them; of the field of a struct, its column."""
    return {name.replace("`", "").partition(".")[0].casefold() for name in names}
