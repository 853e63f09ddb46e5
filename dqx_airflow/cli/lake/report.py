"""The report of `dql init` over many tables: a row for each, and what is wrong today."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

import typer

from dqx_airflow.cli.lake.drafts import KeptDraft
from dqx_airflow.cli.reports import print_table
from dqx_airflow.contracts.export.html import digest_of_style, page_style
from dqx_airflow.diagnostics.renderers import without_controls
from dqx_airflow.diagnostics.templates import filled
from dqx_airflow.tuning.lake.calls import MONTH_DAYS, ExpectedClaim, expected_claims
from dqx_airflow.tuning.lake.past_claims import PastClaim
from dqx_airflow.tuning.lake.references import Reference
from dqx_airflow.tuning.lake.table_draft import TableDraft

_HEAD = (
    *("table", "rows", "days", "newest", "key", "refers to", "a night", "warns a month"),
    "wrong today",
)
_READERS = "read by"
_UNITS = ("B", "kB", "MB", "GB", "TB")

_DRIVER_S = 8
"""The time until a Spark driver of its own begins to read (docs/evidence.md)."""

_S_PER_GB = 24
"""The time that a gate with ten assertions reads a compressed gigabyte (docs/evidence.md)."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """A table in the report.

    :param place: its path below the folder of tables.
    :param state: `new`, `known` (drafted before), `gone`, or `not read`.
    :param rows: the rows from which it was drafted: of the last days, or all.
    :param references: the columns that refer to other tables: `customer_id -> customers.id`.
    :param bytes_a_night: the bytes of a usual day, or of the table without days; before compression
        of columns that a gate does not read.
    :param warnings_per_month: the days of a month on which its gate would warn, from past days
        that the draft had not seen; None without such days.
    :param minutes_a_night: the minutes of its gate with a Spark driver of its own, estimated.
    :param readers: the jobs that read it, or data derived from it; None without lineage events.
    :param wrong: what is wrong in its data today.
    :param new_columns: the columns that it did not have when it was drafted.
    :param problem: why no suite could be drafted; empty if there is one.
    :param source: its path, or its full name in a catalog.
    """

    name: str
    place: str
    state: str
    rows: int = 0
    days: int | None = None
    newest: date | None = None
    key: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    bytes_a_night: int = 0
    minutes_a_night: float = 0.0
    warnings_per_month: float | None = None
    readers: int | None = None
    wrong: tuple[str, ...] = ()
    new_columns: tuple[str, ...] = ()
    problem: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class LakeReport:
    """All tables of a lake, in the order of their places, or with the most jobs that read them
    first; and their claims, by the calls that they would make if they blocked."""

    tables: tuple[TableRow, ...]
    claims: tuple[ExpectedClaim, ...] = ()

    @property
    def blocking(self) -> list[ExpectedClaim]:
        """The claims that may block within the calls that are wanted."""
        return [claim for claim in self.claims if claim.blocks]

    def ranked(self, readers_of: Callable[[str], int]) -> LakeReport:
        """The report with the tables first that most jobs read, and of these the faulty ones."""
        rows = [
            replace(row, readers=readers_of(row.source)) if row.source else row
            for row in self.tables
        ]
        rows.sort(key=lambda row: (-(row.readers or 0), not row.wrong, row.place))
        return replace(self, tables=tuple(rows))

    @property
    def drafted(self) -> list[TableRow]:
        """The tables for which there is a suite."""
        return [row for row in self.tables if not row.problem]

    @property
    def usual_day(self) -> date | None:
        """The newest day that most tables have; None if no table has days."""
        newest = Counter(row.newest for row in self.tables if row.newest and row.days)
        return newest.most_common(1)[0][0] if newest else None


def lake_report(
    drafts: Sequence[TableDraft],
    references: Sequence[Reference],
    known: Mapping[str, KeptDraft],
    gone: Sequence[str],
    claims: Mapping[str, Sequence[PastClaim]],
    enforced: Collection[str] = (),
    calls_per_month: float | None = None,
) -> LakeReport:
    """The report on drafts, with the references between their tables.

    :param known: the drafts of earlier runs, by name.
    :param gone: the names of gates whose tables are no longer there.
    :param claims: the claims that the suites have, by table.
    :param enforced: the names of claims that block already.
    :param calls_per_month: the most calls of all claims that may block.
    """
    rows = [
        _row(draft, [one for one in references if one.table == draft.name], known.get(draft.name))
        for draft in drafts
    ]
    rows += [TableRow(name, name, "gone", problem="the table is gone") for name in gone]
    past = {draft.name: draft.claims for draft in drafts}
    expected = expected_claims(claims, calls_per_month, enforced, past)
    return LakeReport(tuple(rows), tuple(expected))


def _row(draft: TableDraft, references: Sequence[Reference], earlier: KeptDraft | None) -> TableRow:
    table = draft.table
    source = table.location.encode(errors="backslashreplace").decode()
    if draft.problem:
        row = TableRow(table.name, table.place, "not read", problem=draft.problem)
        return replace(row, source=source)
    missing = [
        f"{one.missing_rows} rows have {one.column} values that are not in {one.to_table}"
        for one in references
        if one.missing
    ]
    new_columns: list[str] = []
    if earlier is not None:
        had = {column.name for column in earlier.draft.columns}
        new_columns = [column.name for column in draft.columns if column.name not in had]
    bytes_a_night = table.size // (draft.all_days or 1)
    return TableRow(
        name=table.name,
        place=table.place,
        state="new" if earlier is None else "known",
        rows=draft.rows,
        days=draft.days,
        newest=draft.newest,
        key=draft.key,
        references=tuple(f"{one.column} -> {one.to_table}.{one.to_column}" for one in references),
        bytes_a_night=bytes_a_night,
        minutes_a_night=round((_DRIVER_S + _S_PER_GB * bytes_a_night / 1e9) / 60, 2),
        warnings_per_month=_per_month(draft.failing_days),
        wrong=(*draft.wrong, *missing),
        new_columns=tuple(new_columns),
        source=source,
    )


def _per_month(failing_days: tuple[int, int]) -> float | None:
    failed, judged = failing_days
    return MONTH_DAYS * failed / judged if judged else None


def print_report(report: LakeReport) -> None:
    """Prints a row for each table, and a sentence about all of them."""
    print_table(_head(report), [_cells(row) for row in report.tables])
    typer.echo()
    for sentence in (*_totals(report), *changes_of(report)):
        typer.echo(sentence)


def report_page(report: LakeReport, title: str, now: datetime) -> str:
    """The report as a page in one file, without scripts, which can be printed."""
    style = page_style()
    text = filled(
        __package__,
        "report.html",
        title=title,
        style=style,
        digest=digest_of_style(style),
        read_on=f"{now:%Y-%m-%d %H:%M} UTC",
        head=_head(report),
        rows=[(row, _cells(row)) for row in report.tables],
        totals=[*_totals(report), *changes_of(report)],
        claims=report.blocking,
    )
    return without_controls(text, keep="\n")


def _totals(report: LakeReport) -> Iterator[str]:
    """What is said about all tables together."""
    drafted = report.drafted
    faulty = sum(bool(row.wrong) for row in drafted)
    unread = len(report.tables) - len(drafted)
    bytes_a_night = sum(row.bytes_a_night for row in drafted)
    yield (
        f"{len(report.tables)} tables: {len(drafted)} drafted, {unread} not; something is wrong "
        f"today in {faulty}; about {_size(bytes_a_night)} a night"
    )
    alone = sum(row.minutes_a_night for row in drafted)
    together = (_DRIVER_S + _S_PER_GB * bytes_a_night / 1e9) / 60
    yield (
        f"about {alone:.1f} minutes a night with a Spark driver for each gate, "
        f"{together:.1f} with one for all"
    )
    if report.blocking:
        calls = sum(claim.calls_per_month for claim in report.blocking)
        yield (
            f"{len(report.blocking)} of {len(report.claims)} assertions may block, with about "
            f"{calls:.1f} calls a month together"
        )


def changes_of(report: LakeReport) -> Iterator[str]:
    """How known tables have changed since they were drafted."""
    for row in report.tables:
        if row.new_columns:
            columns = ", ".join(row.new_columns)
            yield f"{row.place} has new columns, which are watched: {columns}"
        elif row.state == "gone":
            yield f"{row.place} is gone: remove [gates.{row.name}] if it does not come back"


def _has_readers(report: LakeReport) -> bool:
    return any(row.readers is not None for row in report.tables)


def _head(report: LakeReport) -> tuple[str, ...]:
    return (_HEAD[0], _READERS, *_HEAD[1:]) if _has_readers(report) else _HEAD


def _cells(row: TableRow) -> tuple[str, ...]:
    readers = () if row.readers is None else (str(row.readers),)
    if row.problem:
        empty = [""] * (len(_HEAD) - 2)
        return row.place, *readers, *empty, f"{row.state}: {row.problem}"
    return (
        row.place,
        *readers,
        str(row.rows),
        "" if row.days is None else str(row.days),
        str(row.newest or ""),
        ", ".join(row.key),
        ", ".join(row.references),
        _size(row.bytes_a_night),
        "" if row.warnings_per_month is None else f"{row.warnings_per_month:.1f}",
        "; ".join(row.wrong),
    )


def _size(size: int) -> str:
    """A number of bytes with a unit: `12 MB`."""
    value = float(size)
    for unit in _UNITS:
        if value < 1000 or unit == _UNITS[-1]:
            break
        value /= 1000
    return f"{value:.0f} {unit}"
