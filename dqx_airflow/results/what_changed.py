"""The changes between the last good run of a gate and a bad one, in words: for the page of an
incident, the tab of a gate and the terminal.

Only the reports of both runs are compared, in which masked values are hidden; neither the data nor
its log is read. The failing rows are the stored ones: the first rows that failed, not a random
sample.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from dqx_airflow.diagnostics.verdicts import format_in_unit, format_percent
from dqx_airflow.plan.groupings import show_group
from dqx_airflow.plan.measurements import measurements_from
from dqx_airflow.results.incidents import Incident, rows_in
from dqx_airflow.results.query import RunsWanted, StoredResults
from dqx_airflow.results.report_rows import RunRow
from dqx_airflow.values import MASK, DatasetSnapshot, GateReport, Outcome, Status, Verdict
from dqx_airflow.values.exact import NUMBERS
from dqx_airflow.values.report import Arrival
from dqx_airflow.values.typed_values import days_before

_LOOKED_BACK = 60
"""How many days before the bad data a good run is looked for."""

_MOST_LINES, _MOST_MOVED, _MOST_ASSERTIONS = 20, 6, 10

_MOST_COLUMNS, _MOST_SEGMENTS, _LONGEST_VALUE = 20, 5, 60

_LEAST_MOVE = 0.05
"""The least change of a value that is listed, as a share of the larger one."""

_SEVERAL = re.compile(r"\d+ rows")
"""The reason of a row that stands for several equal ones."""

Changes: TypeAlias = Mapping[str, Sequence[str]]
"""Descriptions of changes: lines of text by topic."""


_SOURCE = "source "


class Difference(str):
    """A line about a fact or a value that differs: `rows of orders: 3,846, was 3,447 (+11.6%)`.

    Its parts are `what`, `now`, `was`, and the `change` of a number as a share, empty for others.
    `file` is the name of a source that differs, empty for other facts.
    """

    __slots__ = ("change", "file", "now", "was", "what")
    file: str
    what: str
    now: str
    was: str
    change: str

    @classmethod
    def of(cls, what: str, now: str, was: str, change: str = "", ending: str = "") -> Difference:
        """The line of its parts.

        :param ending: the end of the line, such as the change in brackets.
        """
        line = cls(f"{what}: {now}, was {was}{ending}")
        line.what = what
        line.now = now
        line.was = was
        line.change = change
        line.file = what.removeprefix(_SOURCE) if what.startswith(_SOURCE) else ""
        return line


class Arrived(str):
    """A line about a commit or a file: `orders version 61, 2024-03-21 02:10:00 UTC: added ...`.

    Its parts are the time `at`, None if it is unknown, the `words` about the rows, and `by`, the
    operation that brought them; None of a line about several commits.
    """

    __slots__ = ("at", "by", "words")
    at: datetime | None
    words: str
    by: str | None

    @classmethod
    def of(
        cls, line: str, words: str, at: datetime | None = None, by: str | None = None
    ) -> Arrived:
        """The line with its parts."""
        made = cls(line)
        made.at = at
        made.words = words
        made.by = by
        return made


def changes_before(results: StoredResults, incident: Incident) -> tuple[tuple[str, Changes], ...]:
    """The changes before the first bad run of an incident, with the name of the gate: one entry for
    each suite that was bad.

    :raises StoreError: the store exists and cannot be read.
    """
    firsts = {run.run_key.gate: run for run in incident.runs}
    index = incident.map_index if incident.map_index >= 0 else None
    since = days_before(incident.date, _LOOKED_BACK)
    wanted = RunsWanted(firsts.keys(), since=since, until=incident.date, map_index=index)
    good: dict[str, RunRow] = {}
    for run in results.runs(wanted, _LOOKED_BACK * len(firsts)):
        if is_good_before(run, firsts[run.run_key.gate]):
            good.setdefault(run.run_key.gate, run)
    attempts = {run.attempt.id for run in (*incident.runs, *good.values())}
    reports = {report.run_id: report for report in results.reports_of(attempts)}
    before = {gate: reports[run.run_id] for gate, run in good.items() if run.run_id in reports}
    judged: dict[str, list[GateReport]] = {}
    for run in reversed(incident.runs):
        if run.run_id in reports:
            judged.setdefault(run.run_key.gate, []).append(reports[run.run_id])
    return tuple((gate, what_changed(own, before.get(gate))) for gate, own in judged.items())


def is_good_before(run: RunRow | GateReport, bad: RunRow | GateReport) -> bool:
    """Whether a complete run found earlier data of the same slice good, or the same data
    earlier. That a person accepted data does not make it good."""
    when, then = ((one.run_key.date, one.started_at) for one in (run, bad))
    is_good = run.outcome in (Outcome.PASSED, Outcome.WARNED) and run.partial is None
    return is_good and when < then and rows_in(run.slice) == rows_in(bad.slice)


def what_changed(judged: Sequence[GateReport], good: GateReport | None) -> Changes:
    """Describes the changes from a good report to a bad one; without a good one, the bad report.

    :param judged: the bad reports on the slice, the first one first.
    """
    bad = judged[0]
    last = {one.name: one for one in good.datasets} if good else {}
    found: dict[str, list[str]] = {
        "What brought the rows": [],
        "First bad and last good content": [],
        "Where the failing rows are": [*_segments(bad)],
    }
    arrived, contents, _ = found.values()
    for dataset in bad.datasets:
        before = last.get(dataset.name)
        arrived += _arrivals(dataset, before)
        first = f"first bad {_rows(dataset)} of {bad.run_key.date}"
        known = f"{_rows(before)} of {good.run_key.date}" if before and good else "unknown"
        again = _read_again(dataset.name, judged)
        contents.append(f"{dataset.name}: {first}, last good {known}{again}; {dataset.location}")
    if good is not None:
        found[f"What else changed since {good.run_key.date}"] = _differences(bad, good)
    return {topic: lines for topic, lines in found.items() if lines}


def _arrivals(dataset: DatasetSnapshot, good: DatasetSnapshot | None) -> Iterator[Arrived]:
    """The commits and files that brought rows, the newest first; then the other new commits, of
    which those that changed nothing here are only counted."""
    known = good.version if good is not None and good.location == dataset.location else None
    if known is not None and known > (dataset.version or 0):
        known = None  # the table was replaced, or the good run came later
    brought = [one for one in dataset.arrivals if one.files or not one.name.isdecimal()]
    others = [
        one
        for one in dataset.arrivals
        if one not in brought and (known is None or int(one.name) > known)
    ]
    silent = [one for one in others if not one.removed] if brought else []
    for one in brought:
        yield _arrival(dataset.name, one, known)
    for one in others:
        if one not in silent:
            yield _arrival(dataset.name, one, known)
    if silent:
        versions = [int(one.name) for one in silent]
        named = f"version {versions[0]}"
        if len(versions) > 1:
            named = f"{len(versions)} commits, versions {min(versions)} to {max(versions)}"
        line = f"{dataset.name}: {named}, added no files of this date"
        yield Arrived.of(line, line)


def _arrival(dataset: str, one: Arrival, known: int | None) -> Arrived:
    """A commit or a file in words.

    :param known: the version of the last good run; None if that is unknown.
    """
    at = f"{one.at:%Y-%m-%d %H:%M:%S} UTC" if one.at else "at an unknown time"
    if not one.name.isdecimal():
        size = f"{one.size:,} bytes"
        line = f"{dataset}: {one.name}, {at}, {size}"
        return Arrived.of(line, f"{dataset}: {one.name}, {size}", one.at, one.by)
    files = f"{one.files or 'no'} file{'' if one.files == 1 else 's'} of this date"
    rows = "" if one.rows is None else f" with {one.rows:,} rows"
    removed = f", removed {one.removed}" if one.removed else ""
    is_new = known is None or int(one.name) > known
    old = "" if is_new else f"; already in the last good version {known}"
    named = f"{dataset} version {one.name}"
    added = f"added {files}{rows}{removed}"
    line = f"{named}, {at}: {added}; {one.by}{old}"
    return Arrived.of(line, f"{named}: {added}{old}", one.at, one.by)


def _read_again(name: str, judged: Sequence[GateReport]) -> str:
    """Whether all bad runs have read the same rows."""
    datasets = (one for report in judged for one in report.datasets if one.name == name)
    contents = [one.fingerprint for one in datasets if one.fingerprint]
    kinds = len({*contents})
    words = "the same rows" if kinds == 1 else f"{kinds} different contents"
    return f"; {len(contents)} bad runs read {words}" if len(contents) > 1 else ""


def _rows(dataset: DatasetSnapshot) -> str:
    version = "" if dataset.version is None else f"version {dataset.version}, "
    content = f"content {dataset.fingerprint[:8]}, " if dataset.fingerprint else ""
    rows = "unknown" if dataset.rows is None else f"{dataset.rows:,}"
    return f"{version}{content}{rows} rows"


def _segments(report: GateReport) -> Iterator[str]:
    """The values that most of the stored failing rows of an assertion share."""
    known = _rows_by_value(report)
    date_cell = show_group((report.run_key.date.isoformat(),))
    for verdict in report.with_status(Status.FAILED)[:_MOST_ASSERTIONS]:
        for dataset, rows in _sampled_rows(verdict).items():
            columns = [*dict.fromkeys(name for row in rows for name in row)][:_MOST_COLUMNS]
            segments = []
            for column in columns:
                in_all_rows = known.get((dataset, column), {})
                segment = _segment_of(column, rows, in_all_rows)
                if segment is None or segment.value == date_cell or column in rows_in(report.slice):
                    continue
                is_fault = segment.value == "NULL" and column in verdict.failing_rows[0].reason
                if not is_fault:
                    segments.append(segment)
            segments.sort(key=lambda segment: -segment.rows)
            head = f"{verdict.name}: of the {len(rows)} stored failing rows"
            for segment in segments[:_MOST_SEGMENTS]:
                yield f"{head} {segment.rows} have {segment.words}"


@dataclass(frozen=True, slots=True)
class _Segment:
    """A value of a column that many failing `rows` share. `total` rows were counted by the column,
    `usual` of them with this value; 0 if they were not counted."""

    column: str
    value: str
    rows: int
    usual: int
    total: int

    @property
    def words(self) -> str:
        of_all = f", as {self.usual:,} of all {self.total:,} rows" if self.total else ""
        return f"{self.column} = {self.value[:_LONGEST_VALUE]}{of_all}"


def _segment_of(
    column: str, rows: Sequence[dict[str, Any]], in_all_rows: Mapping[str, int]
) -> _Segment | None:
    """The value of a column that half of the failing rows share, more than of all rows; None if
    there is none, or if values are masked.

    :param in_all_rows: the number of all rows with each value; empty if they were not counted.
    """
    values = [show_group((row[column],)) for row in rows if column in row]
    (value, count), *_ = Counter(values).most_common(1)
    if count < max(2, len(rows) / 2) or any(MASK in one for one in values):
        return None
    usual = in_all_rows.get(value, 0)
    total = sum(in_all_rows.values())
    is_usual = total > 0 and count * total <= usual * len(rows)
    return None if is_usual else _Segment(column, value, count, usual, total)


def _sampled_rows(verdict: Verdict) -> dict[str, list[dict[str, Any]]]:
    """The stored failing rows of a verdict, by dataset; none of a verdict on groups."""
    samples: dict[str, list[dict[str, Any]]] = {}
    if verdict.groups is not None:
        return samples
    for failing in verdict.failing_rows:
        row = json.loads(failing.row)
        if isinstance(row, dict) and not _SEVERAL.fullmatch(failing.reason):
            samples.setdefault(failing.dataset, []).append(row)
    return samples


def _rows_by_value(report: GateReport) -> dict[tuple[str, str], dict[str, int]]:
    """The number of rows with each value of the columns by which an assertion counted them."""
    found: dict[tuple[str, str], dict[str, int]] = {}
    for verdict in report.verdicts:
        for key, groups in measurements_from(verdict.measured).groups.items():
            dataset, metric, arguments, lag, columns = json.loads(key)
            if (metric, arguments, lag or 0, len(columns)) == ("num_rows", [], 0, 1):
                found[dataset, columns[0]] = {
                    show_group(value): rows
                    for value, rows in groups.values.items()
                    if isinstance(rows, int)
                }
    return found


def _differences(bad: GateReport, good: GateReport) -> list[str]:
    """The differences between two reports apart from failures: facts, then changed values."""
    read = [{one.name for one in report.datasets if one.fields} for report in (bad, good)]
    new, old = (_facts(report, read[0] & read[1]) for report in (bad, good))
    changed = [fact for fact in {**new, **old} if new.get(fact) != old.get(fact)][:_MOST_LINES]
    moved = _moved_rows(bad, good)
    lines: list[str] = [
        Difference.of(
            fact,
            new.get(fact, "none"),
            old.get(fact, "none"),
            moved.get(fact, ""),
            f" ({moved[fact]})" if fact in moved else "",
        )
        for fact in changed
    ]
    values = _measured(bad)
    past = _measured(good)
    moves = []
    for label, (now, text) in values.items():
        then, before = past.get(label, (now, text))
        move = abs(now - then) / (max(abs(now), abs(then)) or 1)
        if move >= _LEAST_MOVE:
            change = _share_of_change(now, then)
            moves.append((move, Difference.of(label, text, before, change)))
    lines += [line for _, line in sorted(moves, reverse=True)[:_MOST_MOVED]]
    return lines or ["nothing that the reports show"]


def _moved_rows(bad: GateReport, good: GateReport) -> dict[str, str]:
    """The changes of the numbers of rows, as shares of the good ones: `+2.3%`."""
    before = {one.name: one.rows for one in good.datasets}
    moved = {}
    for one in bad.datasets:
        rows = before.get(one.name)
        if rows and one.rows is not None:
            moved[f"rows of {one.name}"] = _share_of_change(one.rows, rows)
    return moved


def _share_of_change(now: float, then: float) -> str:
    """The change of a number, as a share of the earlier one: `+2.3%`; empty if that is zero."""
    if not then:
        return ""
    sign = "+" if now > then else "-"
    return f"{sign}{format_percent(abs((now - then) / then))}"


def _facts(report: GateReport, readable: Collection[str]) -> dict[str, str]:
    """The facts in a report other than measured values, by their labels."""
    facts = {"blocks from": report.fail_on.value, "Spark": report.spark_version or "unknown"}
    for one in report.datasets:
        facts[f"rows of {one.name}"] = "unknown" if one.rows is None else f"{one.rows:,}"
        fields = one.fields if one.name in readable else ()
        facts |= {f"column {field.name} of {one.name}": field.type for field in fields}
    facts |= {f"{_SOURCE}{one.file}": f"content {one.digest[:8]}" for one in report.sources}
    if report.contract is not None:
        facts[f"contract {report.contract.id}"] = report.contract.version or "without a version"
    for verdict in report.verdicts:
        facts |= {f"profile {name}": "active" for name in verdict.profiles}
        if verdict.waived_by is not None:
            facts[f"waiver of {verdict.name}"] = verdict.waived_by
    return facts


def _measured(report: GateReport) -> dict[str, tuple[float, str]]:
    """The NULL shares and the values of passed assertions, each as a number and as shown."""
    found = {
        f"NULL share of {one.name}.{metric.column}": (share, format_percent(share))
        for one in report.datasets
        for metric in one.metrics
        if metric.metric == "null_count" and isinstance(metric.value, int) and one.rows
        for share in [metric.value / one.rows]
    }
    for verdict in report.with_status(Status.PASSED):
        value = verdict.scaled_value
        name = ", ".join(verdict.datasets)
        nulls = f"NULL share of {name}.{verdict.column}"
        is_shown = nulls in found and "null_count(" in verdict.expression
        if isinstance(value, NUMBERS) and verdict.groups is None and not is_shown:
            found[verdict.name] = float(value), format_in_unit(value, verdict)
    return found
