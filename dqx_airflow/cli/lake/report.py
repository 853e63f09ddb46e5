"""The report of `dql init` over a folder of tables: a row for each, and what is wrong today."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import typer

from dqx_airflow.cli.lake.drafts import KeptDraft
from dqx_airflow.cli.reports import print_table
from dqx_airflow.tuning.lake.calls import MONTH_DAYS, ExpectedClaim, expected_claims
from dqx_airflow.tuning.lake.past_claims import PastClaim
from dqx_airflow.tuning.lake.references import Reference
from dqx_airflow.tuning.lake.table_draft import TableDraft

_HEAD = (
    *("table", "rows", "days", "newest", "key", "refers to", "a night", "warns a month"),
    "wrong today",
)
_UNITS = ("B", "kB", "MB", "GB", "TB")


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
    :param wrong: what is wrong in its data today.
    :param new_columns: the columns that it did not have when it was drafted.
    :param problem: why no suite could be drafted; empty if there is one.
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
    warnings_per_month: float | None = None
    wrong: tuple[str, ...] = ()
    new_columns: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class LakeReport:
    """All tables of a lake, in the order of their places; and their claims, by the calls that they
    would make if they blocked."""

    tables: tuple[TableRow, ...]
    claims: tuple[ExpectedClaim, ...] = ()

    @property
    def blocking(self) -> list[ExpectedClaim]:
        """The claims that may block within the calls that are wanted."""
        return [claim for claim in self.claims if claim.blocks]

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
    expected = expected_claims(claims, calls_per_month, enforced)
    return LakeReport(tuple(rows), tuple(expected))


def _row(draft: TableDraft, references: Sequence[Reference], earlier: KeptDraft | None) -> TableRow:
    table = draft.table
    if draft.problem:
        return TableRow(table.name, table.place, "not read", problem=draft.problem)
    missing = [
        f"{one.missing_rows} rows have {one.column} values that are not in {one.to_table}"
        for one in references
        if one.missing
    ]
    new_columns: list[str] = []
    if earlier is not None:
        had = {column.name for column in earlier.draft.columns}
        new_columns = [column.name for column in draft.columns if column.name not in had]
    return TableRow(
        name=table.name,
        place=table.place,
        state="new" if earlier is None else "known",
        rows=draft.rows,
        days=draft.days,
        newest=draft.newest,
        key=draft.key,
        references=tuple(f"{one.column} -> {one.to_table}.{one.to_column}" for one in references),
        bytes_a_night=table.size // (draft.all_days or 1),
        warnings_per_month=_per_month(draft.failing_days),
        wrong=(*draft.wrong, *missing),
        new_columns=tuple(new_columns),
    )


def _per_month(failing_days: tuple[int, int]) -> float | None:
    failed, judged = failing_days
    return MONTH_DAYS * failed / judged if judged else None


def print_report(report: LakeReport) -> None:
    """Prints a row for each table, and a sentence about all of them."""
    print_table(_HEAD, [_cells(row) for row in report.tables])
    drafted = [row for row in report.tables if not row.problem]
    faulty = sum(bool(row.wrong) for row in drafted)
    unread = len(report.tables) - len(drafted)
    bytes_a_night = _size(sum(row.bytes_a_night for row in drafted))
    typer.echo(
        f"\n{len(report.tables)} tables: {len(drafted)} drafted, {unread} not; something is wrong "
        f"today in {faulty}; about {bytes_a_night} a night"
    )
    if report.blocking:
        calls = sum(claim.calls_per_month for claim in report.blocking)
        typer.echo(
            f"{len(report.blocking)} of {len(report.claims)} assertions may block, with about "
            f"{calls:.1f} calls a month together"
        )
    for row in drafted:
        if row.new_columns:
            typer.echo(
                f"{row.place} has new columns, which are watched: {', '.join(row.new_columns)}"
            )


def _cells(row: TableRow) -> tuple[str, ...]:
    if row.problem:
        return row.place, *[""] * (len(_HEAD) - 2), f"{row.state}: {row.problem}"
    return (
        row.place,
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
