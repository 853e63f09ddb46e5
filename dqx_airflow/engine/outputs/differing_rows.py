"""The rows that differ between two datasets which are matched by keys."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest
from typing import Any

from pyspark.sql import Row, SparkSession

from dqx_airflow.engine.outputs.shown_rows import shown_cell
from dqx_airflow.engine.scan.frames import ReferenceTables
from dqx_airflow.engine.scan.matching import Sides
from dqx_airflow.engine.session.concurrency import jobs_called
from dqx_airflow.metrics.sql import quote_literal
from dqx_airflow.plan.masks import is_masked
from dqx_airflow.plan.model import MetricRequest, Plan
from dqx_airflow.plan.schema_check import ColumnPair, Match, pair_columns
from dqx_airflow.values import FailingRow

_MISSING = "missing"
_EXTRA = "extra"
_CHANGED = "changed"
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
    left = references.opened[match.dataset]
    right = references.opened[match.reference]
    columns = pair_columns(match, left.schema, right.schema)
    sides = Sides.of(match, columns, references)
    kinds = _KINDS.get(request.metric, _ALL_KINDS)
    masked = (*plan.masked.get(match.dataset, ()), *plan.masked.get(match.reference, ()))
    keys = _object(columns.keys, sides.key_parts, masked)
    row = "'{}'"
    if columns.compared:
        parts = [[f"row.{name}" for name in names] for names in sides.compared_parts]
        row = _object(columns.compared, parts, masked)
    differing = _differing(sides, columns.compared)
    with jobs_called(spark, f"{match.dataset}: rows that differ from {match.reference}"):
        rows = (
            sides.unmatched(most, " OR ".join(_WITH_KIND[kind] for kind in kinds))
            .selectExpr(
                f"{keys} AS key",
                f"transform(lefts, row -> {row}) AS lefts",
                f"transform(rights, row -> {row}) AS rights",
                f"transform(arrays_zip(lefts, rights), pair -> {differing}) AS differing",
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


def _object(
    pairs: Sequence[ColumnPair], parts: Sequence[Sequence[str]], masked: Sequence[str]
) -> str:
    """The displayed columns of a row as JSON; `parts` are the expressions of each column."""
    shown = (
        f"{quote_literal(pair.name)}, {_cell(pair, values, masked)}"
        for pair, values in zip(pairs, parts, strict=True)
    )
    return f"to_json(named_struct({', '.join(shown)}), map('ignoreNullFields', 'false'))"


def _differing(sides: Sides, compared: Sequence[ColumnPair]) -> str:
    """The names of the columns that differ in a pair of rows."""
    if not compared:
        return "array()"
    differing = (
        f"CASE WHEN NOT {sides.is_same(number, 'pair.lefts', 'pair.rights')} "
        f"THEN {quote_literal(pair.name)} END"
        for number, pair in enumerate(compared)
    )
    return f"array_compact(array({', '.join(differing)}))"


def _cell(pair: ColumnPair, values: Sequence[str], masked: Sequence[str]) -> str:
    is_hidden = is_masked(pair.name, masked)
    if len(values) == 1:
        return shown_cell(values[0], pair.left.type, is_hidden=is_hidden)
    number = f"coalesce({', '.join(f'CAST({value} AS STRING)' for value in values)})"
    return shown_cell(number, pair.left.type, is_hidden=is_hidden)


def _failing_rows_of(dataset: str, reference: str, row: Row) -> Iterator[tuple[str, FailingRow]]:
    """The failing rows of one key, each with the name of its difference."""
    key = json.loads(row["key"])
    for left, right, differing in zip_longest(row["lefts"], row["rights"], row["differing"]):
        if right is None:
            cells = {**key, **json.loads(left)}
            yield _EXTRA, FailingRow(dataset, f"extra in {dataset}", _json(cells))
        elif left is None:
            cells = {**key, **json.loads(right)}
            yield _MISSING, FailingRow(reference, f"missing in {dataset}", _json(cells))
        else:
            left_cells = json.loads(left)
            right_cells = json.loads(right)
            cells = dict(key)
            for column in differing:
                cells[f"{dataset}.{column}"] = left_cells[column]
                cells[f"{reference}.{column}"] = right_cells[column]
            verb = "differs" if len(differing) == 1 else "differ"
            yield _CHANGED, FailingRow(dataset, f"{', '.join(differing)} {verb}", _json(cells))


def _json(cells: dict[str, Any]) -> str:
    return json.dumps(cells, ensure_ascii=False)
