"""The text of the suite of a table of a lake, with its references to other tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from dqx_airflow.diagnostics.templates import filled
from dqx_airflow.dql.formatter import format_source
from dqx_airflow.dql.printer import show_name, show_text
from dqx_airflow.tuning.lake.references import Reference
from dqx_airflow.tuning.lake.table_draft import TableDraft
from dqx_airflow.values import SourceFile


def drafted_suite(
    draft: TableDraft, references: Sequence[Reference], wholes: Mapping[str, str], today: date
) -> str:
    """The text of the suite, formatted.

    :param references: the references of this table.
    :param wholes: the datasets of all days of tables that have days, by the names of the tables.
    """
    parts = [*draft.parts]
    if references:
        parts.append(_references(draft.name, references, wholes))
    text = filled(
        __package__,
        "suite_draft.txt",
        draft=draft,
        parts=parts,
        title=show_text(draft.name),
        place=" ".join(draft.table.place.splitlines()),
        today=today,
    )
    return format_source(SourceFile("", text))


def _references(table: str, references: Sequence[Reference], wholes: Mapping[str, str]) -> str:
    targets = {one.to_table: wholes.get(one.to_table, one.to_table) for one in references}
    datasets = ", ".join(map(show_name, (table, *sorted(set(targets.values())))))
    claims = [_claim(one, targets[one.to_table]) for one in references]
    return f'check "References" on {datasets} {{\n' + "\n\n".join(claims) + "\n}"


def _claim(reference: Reference, target: str) -> str:
    evidence = f"{reference.values} different values are all in {reference.to_table}"
    if reference.missing:
        evidence = (
            f"{reference.missing} of {reference.values} different values, in "
            f"{reference.missing_rows} rows, are not in {reference.to_table}"
        )
    column = show_name(reference.column)
    name = show_text(f"{reference.table}.{reference.column}.known")
    return (
        f"# {evidence}\n@experimental\n"
        f"assert values({column}, dataset {show_name(reference.table)}) in "
        f"values({show_name(reference.to_column)}, dataset {show_name(target)})\n    name {name}"
    )
