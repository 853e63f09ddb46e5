"""From an observed table to a first suite: what its columns promise, without limits on values."""

from __future__ import annotations

from collections.abc import Iterator

from dqx_airflow.contracts.column_paths import column_path
from dqx_airflow.contracts.drafting.observed import ObservedTable
from dqx_airflow.dql.formatter import format_source
from dqx_airflow.values import SourceFile


def draft_suite(table: ObservedTable) -> str:
    """The text of a suite over a dataset with the name of the table: rows, keys, columns without
    NULL, and the age of the newest row. All observed rows satisfy it, except for their age."""
    lines = [f'suite "{table.name}" {{', *_checks(table), "}"]
    return format_source(SourceFile(f"{table.name}.dql", "\n".join(lines) + "\n"))


def _checks(table: ObservedTable) -> Iterator[str]:
    name = table.name
    yield f'check "Rows" on {name} {{'
    yield f'assert num_rows() > 0 name "{name}.rows" severity P1'
    yield "}"
    if table.key:
        columns = ", ".join(map(column_path, table.key))
        yield f'check "Keys" on {name} {{'
        yield f'assert duplicate_count([{columns}]) == 0 name "{name}.key" severity P0'
        yield "}"
    complete = [column for column in table.columns if table.rows and column.nulls == 0]
    if complete:
        yield f'check "Completeness" on {name} {{'
        for column in complete:
            path, label = column_path(column.name), column.name.replace('"', "'")
            severity = "P0" if column.name in table.key else "P1"
            yield f'assert null_count({path}) == 0 name "{name}.{label}.complete"'
            yield f"severity {severity}"
        yield "}"
    if table.clock is not None:
        yield f'check "Freshness" on {name} {{'
        yield "# This warns if an old date is checked again, for example in a backfill."
        yield f'assert freshness({column_path(table.clock)}) < 2 days name "{name}.fresh"'
        yield "severity P3"
        yield "}"
