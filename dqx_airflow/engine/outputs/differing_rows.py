"""A sample of the rows that differ between two datasets: the key, the column, both values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest
from typing import Any

from pyspark.sql import Row, SparkSession

from dqx_airflow.engine.outputs.shown_cells import shown_cell
from dqx_airflow.engine.scan.frames import ReferenceTables
from dqx_airflow.engine.scan.matching import Sides
from dqx_airflow.engine.session.concurrency import jobs_called
from dqx_airflow.metrics.sql import quote_literal
from dqx_airflow.plan.masks import is_masked
from dqx_airflow.plan.matching import ColumnPair, Match, pair_columns
from dqx_airflow.plan.model import MetricRequest, Plan
from dqx_airflow.values import FailingRow

_MISSING, _EXTRA, _CHANGED = "missing", "extra", "changed"
_KINDS = {"missing_count": (_MISSING,), "extra_count": (_EXTRA,), "changed_count": (_CHANGED,)}
_ALL_KINDS = (_MISSING, _EXTRA, _CHANGED)
_WITH_KIND = {
    _MISSING: "size(rights) > size(lefts)",
    _EXTRA: "size(lefts) > size(rights)",
    _CHANGED: "size(lefts) > 0 AND size(rights) > 0",
}


def differing_rows(
    spark: SparkSession, request: MetricRequest, references: ReferenceTables, plan: Plan, most: int
) -> tuple[FailingRow, ...]:
    """The first rows that a request counts, in the order of their keys, up to a limit."""
    match = Match.of(request)
    left, right = (references.opened[name] for name in (match.dataset, match.reference))
    columns = pair_columns(match, left.schema, right.schema)
    sides = Sides.of(match, columns, references)
    kinds = _KINDS.get(request.metric, _ALL_KINDS)
    masked = (*plan.masked.get(match.dataset, ()), *plan.masked.get(match.reference, ()))

    def cells(pairs: Sequence[ColumnPair], parts: Sequence[Sequence[str]], row: str = "") -> str:
        shown = (
            f"{quote_literal(pair.name)}, {_cell(pair, [row + name for name in names], masked)}"
            for pair, names in zip(pairs, parts, strict=True)
        )
        return f"to_json(named_struct({', '.join(shown)}), map('ignoreNullFields', 'false'))"

    compared = columns.compared
    of_row = cells(compared, sides.compared_parts, "row.") if compared else "'{}'"
    differing = (
        f"CASE WHEN NOT {sides.is_same(number, 'pair.lefts', 'pair.rights')} "
        f"THEN {quote_literal(pair.name)} END"
        for number, pair in enumerate(compared)
    )
    names = f"array_compact(array({', '.join(differing)}))" if compared else "array()"
    with jobs_called(spark, f"{match.dataset}: rows that differ from {match.reference}"):
        rows = (
            sides.unmatched(most, " OR ".join(_WITH_KIND[kind] for kind in kinds))
            .selectExpr(
                f"{cells(columns.keys, sides.key_parts)} AS key",
                f"transform(lefts, row -> {of_row}) AS lefts",
                f"transform(rights, row -> {of_row}) AS rights",
                f"transform(arrays_zip(lefts, rights), pair -> {names}) AS differing",
            )
            .collect()
        )
    failing_rows = (
        failing
        for row in rows
        for kind, failing in _failing_rows_of(match.dataset, match.reference, row)
        if kind in kinds
    )
    return tuple(islice(failing_rows, most))


def _cell(pair: ColumnPair, values: Sequence[str], masked: Sequence[str]) -> str:
    is_hidden = is_masked(pair.name, masked)
    if len(values) == 1:
        return shown_cell(values[0], pair.left.type, is_masked=is_hidden)
    number = f"coalesce({', '.join(f'CAST({value} AS STRING)' for value in values)})"
    return shown_cell(number, pair.left.type, is_masked=is_hidden)


def _failing_rows_of(dataset: str, reference: str, row: Row) -> Iterator[tuple[str, FailingRow]]:
    """The rows of one key, each with its kind."""
    key = json.loads(row["key"])
    for left, right, differing in zip_longest(row["lefts"], row["rights"], row["differing"]):
        if right is None:
            cells = {**key, **json.loads(left)}
            yield _EXTRA, FailingRow(dataset, f"extra in {dataset}", _json(cells))
        elif left is None:
            cells = {**key, **json.loads(right)}
            yield _MISSING, FailingRow(reference, f"missing in {dataset}", _json(cells))
        else:
            values = ((dataset, json.loads(left)), (reference, json.loads(right)))
            differing_cells = {
                f"{name}.{at}": row_cells[at] for at in differing for name, row_cells in values
            }
            verb = "differs" if len(differing) == 1 else "differ"
            reason = f"{', '.join(differing)} {verb}"
            yield _CHANGED, FailingRow(dataset, reason, _json({**key, **differing_cells}))


def _json(cells: dict[str, Any]) -> str:
    return json.dumps(cells, ensure_ascii=False)
