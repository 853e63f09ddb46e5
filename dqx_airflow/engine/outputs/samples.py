"""Samples of failing rows, bounded and masked.

All faults of a dataset share one pass. It keeps only the first rows of each fault, and no value of
a masked column leaves Spark.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.engine.scan import frames
from dqx_airflow.engine.scan.frames import ReferenceTables
from dqx_airflow.engine.scan.matching import Sides
from dqx_airflow.engine.session.concurrency import jobs_called, side_by_side
from dqx_airflow.engine.session.spark_errors import explain
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.declared_texts import TextColumns
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.metrics.types import ColumnPath, Family, family_of
from dqx_airflow.plan.failing import FailingRows
from dqx_airflow.plan.masks import is_masked, without_values
from dqx_airflow.plan.model import MetricRequest, Plan
from dqx_airflow.plan.predicates import lookups_of
from dqx_airflow.plan.schema_check import ColumnPair, Match, pair_columns, texts_of
from dqx_airflow.values import MASK, FailingRow, Verdict

_LONGEST_TEXT = 200
_LONGEST_BINARY = 32


def shown_cell(value: str, spark_type: str, *, is_masked: bool) -> str:
    """A Spark SQL expression for the displayed form of a value."""
    if is_masked:
        return f"CASE WHEN {value} IS NOT NULL THEN {quote_literal(MASK)} END"
    match family_of(spark_type):
        case Family.TEXT:
            return cut(value)
        case Family.OTHER if spark_type == "binary":
            return f"hex(substring({value}, 1, {_LONGEST_BINARY}))"
        case Family.ARRAY | Family.MAP:
            return cut(f"to_json({value})")
        case Family.OTHER if spark_type.startswith("struct"):
            return cut(f"to_json({value})")
        case Family.OTHER:
            return cut(f"CAST({value} AS STRING)")
        case _:
            return value


def cut(text: str) -> str:
    """A Spark SQL expression that truncates a long string."""
    beginning = f"concat(left({text}, {_LONGEST_TEXT - 1}), '\N{HORIZONTAL ELLIPSIS}')"
    return f"CASE WHEN char_length({text}) > {_LONGEST_TEXT} THEN {beginning} ELSE {text} END"


WHOLE_LINE = "(the whole line)"
"""The column name under which a line is shown that is malformed as a whole."""


def with_malformed_texts(
    failing: FailingRow, columns: Collection[str], texts: Mapping[str, str]
) -> FailingRow:
    """The row with the original strings instead of their NULLs.

    Numbers keep all of their digits, since nothing else in the row is parsed.

    >>> row = FailingRow("orders", "amount is NULL", '{"id":1.10,"amount":null}')
    >>> with_malformed_texts(row, ["amount"], {"amount": "twelve"})
    FailingRow(dataset='orders', reason='amount is malformed: amount is NULL', \
row='{"id":1.10,"amount":"twelve"}')

    :param columns: the columns at fault: the reason contains the malformed ones.
    :param texts: the original strings by malformed column; for a malformed line, the line.
    """
    row = failing.row
    for column, text in texts.items():
        cell = f"{json.dumps(column, ensure_ascii=False)}:"
        shown = cell + json.dumps(text, ensure_ascii=False)
        row = f"{row[:-1]},{shown}}}" if column == WHOLE_LINE else row.replace(f"{cell}null", shown)
    if WHOLE_LINE in texts:
        return replace(failing, row=row, reason=f"the line is malformed: {failing.reason}")
    names = ", ".join(column for column in columns if column in texts)
    verb = "are" if "," in names else "is"
    reason = f"{names} {verb} malformed: {failing.reason}" if names else failing.reason
    return replace(failing, row=row, reason=reason)


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
            values = ((dataset, json.loads(left)), (reference, json.loads(right)))
            differing_cells = {
                f"{name}.{at}": row_cells[at] for at in differing for name, row_cells in values
            }
            verb = "differs" if len(differing) == 1 else "differ"
            reason = f"{', '.join(differing)} {verb}"
            yield _CHANGED, FailingRow(dataset, reason, _json({**key, **differing_cells}))


def _json(cells: dict[str, Any]) -> str:
    return json.dumps(cells, ensure_ascii=False)


_log = logging.getLogger("dqx.gate")

_MOST_COLUMNS = 50
_NO_TEXT = "CAST(NULL AS STRING)"
_FAULT = "dqx: fault"
_RANK = "dqx: rank"
_COUNT = "dqx: count"


def with_failing_rows(
    spark: SparkSession,
    opened: Mapping[str, OpenDataset],
    plan: Plan,
    verdicts: Sequence[Verdict],
    faults: Sequence[tuple[FailingRows, ...]],
    most: int,
) -> tuple[Verdict, ...]:
    """The verdicts with a sample of at most `most` failing rows each.

    An error here does not change a verdict: its note reports the error.

    :param faults: the faults of each verdict.
    """
    # Equal faults of several assertions count as one.
    distinct = (
        dict.fromkeys(fault for of_verdict in faults for fault in of_verdict) if most > 0 else {}
    )
    names = dict.fromkeys(fault.request.dataset for fault in distinct)
    samples: dict[FailingRows, _Sample] = {}
    for name in filter(opened.__contains__, names):
        of_dataset = [fault for fault in distinct if fault.request.dataset == name]
        of_two = [fault for fault in of_dataset if fault.is_of_two_datasets]
        of_dataset = [fault for fault in of_dataset if not fault.is_of_two_datasets]
        references = ReferenceTables(opened, plan.date)
        samples.update(
            {fault: _differing(spark, fault, references, plan, most) for fault in of_two}
        )
        sampler = _Sampler(spark, opened[name], references, most)
        samples.update(sampler.samples(of_dataset))
    return tuple(
        _with_sample(verdict, [samples[fault] for fault in of_verdict if fault in samples], most)
        for verdict, of_verdict in zip(verdicts, faults, strict=True)
    )


def rows_with_faults(
    dataset: OpenDataset, references: ReferenceTables, faults: Sequence[FailingRows]
) -> DataFrame:
    """The rows of the target date, with all columns that the conditions of the faults refer to."""
    requests = [fault.request for fault in faults]
    frame = frames.rows_with_texts(dataset, {references.date})
    return frames.with_named_columns(frame, dataset, requests, lookups_of(*requests), references)


def with_conditions(
    dataset: OpenDataset, references: ReferenceTables, faults: Sequence[FailingRows]
) -> tuple[DataFrame, dict[FailingRows, str]]:
    """The rows of the target date, and for each fault the Spark SQL condition of its failing
    rows."""
    frame = rows_with_faults(dataset, references, faults)
    conditions = {}
    for number, fault in enumerate(faults):
        condition = fault.condition or "true"
        if fault.repeated:
            count_column = f"dqx: rows like this by fault {number}"
            keys = ", ".join(map(quote_name, fault.repeated))
            counted = f"CASE WHEN {condition} THEN 1 END"
            rows_alike = F.expr(f"count({counted}) OVER (PARTITION BY {keys})")
            frame = frame.withColumn(count_column, rows_alike)
            condition = f"({condition}) AND {quote_name(count_column)} > 1"
        conditions[fault] = condition
    return frame, conditions


@dataclass(frozen=True, slots=True)
class _Sample:
    rows: tuple[FailingRow, ...] = ()
    note: str | None = None


def _with_sample(verdict: Verdict, samples: Sequence[_Sample], most: int) -> Verdict:
    rows = (*verdict.failing_rows, *(row for sample in samples for row in sample.rows))
    all_notes = (verdict.note, *(sample.note for sample in samples))
    notes = dict.fromkeys(note for note in all_notes if note)
    return replace(verdict, failing_rows=rows[:most], note="; ".join(notes) or None)


def _differing(
    spark: SparkSession, fault: FailingRows, references: ReferenceTables, plan: Plan, most: int
) -> _Sample:
    """A sample of the rows that differ between two datasets; an error does not change the
    verdict."""
    for name in fault.request.datasets:
        sampler = _Sampler(spark, references.opened[name], references, most)
        objection = sampler.objection()
        if objection is not None:
            return sampler.failed([fault], objection)[fault]
    try:
        return _Sample(differing_rows(spark, fault.request, references, plan, most))
    except Exception as error:
        masked = [column for columns in plan.masked.values() for column in columns]
        return _failed(fault.request.dataset, _reason(error), masked)


def _reason(error: Exception) -> str:
    return explain(error) if isinstance(error, PySparkException) else type(error).__name__


def _failed(dataset: str, reason: str, masked: Sequence[str]) -> _Sample:
    """A sample without rows, with the reason: it changes no verdict."""
    reason = without_values(reason, masked)
    _log.warning("cannot show failing rows of dataset '%s': %s", dataset, reason)
    return _Sample(note=f"failing rows cannot be shown: {reason}")


@dataclass(frozen=True, slots=True)
class _Sampler:
    """Takes samples of one dataset."""

    spark: SparkSession
    dataset: OpenDataset
    references: ReferenceTables
    most: int

    def samples(self, faults: Sequence[FailingRows]) -> dict[FailingRows, _Sample]:
        objection = self.objection()
        if objection is not None:
            return self.failed(faults, objection)
        passes = [[fault for fault in faults if not fault.repeated]]
        passes += [[fault] for fault in faults if fault.repeated]
        samples: dict[FailingRows, _Sample] = {}
        try:
            with jobs_called(self.spark, f"{self.dataset.ref.name}: failing rows"):
                for taken in side_by_side(self.spark, self._attempt, list(filter(None, passes))):
                    samples.update(taken)
        except Exception as error:  # Spark is gone, and the verdicts are final
            return self.failed(faults, type(error).__name__)
        return samples

    def objection(self) -> str | None:
        """The reason for taking no samples: a masked column is missing, which may be a typo that
        leaves another column unmasked. None without one."""
        schema, ref = self.dataset.schema, self.dataset.ref
        for purpose, columns in (("to mask", ref.masked), ("for the keys of rows", ref.keys)):
            for column in columns:
                if schema.find(column) is None:
                    hint = did_you_mean(column, schema.types)
                    return f"dataset '{ref.name}' has no column '{column}' {purpose}: {hint}"
        return None

    def _attempt(self, faults: Sequence[FailingRows]) -> dict[FailingRows, _Sample]:
        """The samples of faults of one kind; a failing condition is isolated by halving."""
        try:
            if faults[0].repeated:
                return {faults[0]: self._repeated(faults[0])}
            return self._matching(faults)
        except Exception as error:  # whatever it is, the verdicts are final
            if isinstance(error, PySparkException) and len(faults) > 1:
                half = len(faults) // 2
                return {**self._attempt(faults[:half]), **self._attempt(faults[half:])}
            return self.failed(faults, _reason(error))

    def failed(self, faults: Sequence[FailingRows], reason: str) -> dict[FailingRows, _Sample]:
        ref = self.dataset.ref
        return dict.fromkeys(faults, _failed(ref.name, reason, ref.masked))

    def _matching(self, faults: Sequence[FailingRows]) -> dict[FailingRows, _Sample]:
        """Rows that match the conditions of the faults, in one pass.

        Each partition keeps the first rows of each fault, before anything is shuffled.
        """
        frame = rows_with_faults(self.dataset, self.references, faults)
        keys = {key: self._place(key) for key in self.dataset.ref.keys}
        frame = frames.with_places(frame, {k: p for k, p in keys.items() if k not in frame.columns})
        conditions = [f"({fault.condition})" for fault in faults]
        broken = [f"CASE WHEN {text} THEN {nr} END" for nr, text in enumerate(conditions)]
        fault = quote_name(_FAULT)
        rank = quote_name(_RANK)
        frame = (
            frame.where(" OR ".join(conditions))
            .withColumn(_FAULT, F.explode(F.expr(f"array_compact(array({', '.join(broken)}))")))
            .withColumn(
                _RANK, F.expr(f"row_number() OVER (PARTITION BY {fault} ORDER BY {self._order()})")
            )
            .where(f"{rank} <= {self.most}")
        )
        shown = [f"WHEN {nr} THEN {self._json(fault)}" for nr, fault in enumerate(faults)]
        causes = [
            f"WHEN {fault} = {nr} AND {cause.sql} THEN {at}"
            for nr, item in enumerate(faults)
            for at, cause in enumerate(item.causes)
        ]
        cause_of_row = f"CASE {' '.join(causes)} END" if causes else "CAST(NULL AS INT)"
        row = f"CASE {fault} {' '.join(shown)} END"
        frame = frame.selectExpr(fault, rank, row, cause_of_row, self._malformed(faults))
        rows: list[list[FailingRow]] = [[] for _ in faults]
        ranked = sorted(frame.collect(), key=lambda row: (row[0], row[1]))
        for number, _, text, at, malformed in ranked:
            item = faults[number]
            reason = item.reason if at is None else f"{item.causes[at].words}: {item.reason}"
            failing = FailingRow(self.dataset.ref.name, reason, text)
            if malformed is not None:
                failing = with_malformed_texts(failing, item.columns, json.loads(malformed))
            rows[number].append(failing)
        return {fault: _Sample(tuple(sampled)) for fault, sampled in zip(faults, rows, strict=True)}

    def _repeated(self, fault: FailingRows) -> _Sample:
        """The combinations that several rows share, the most frequent first."""
        frame = rows_with_faults(self.dataset, self.references, [fault])
        frame = frame.where(fault.condition) if fault.condition else frame
        columns = [F.expr(quote_name(column)) for column in fault.repeated]
        count = quote_name(_COUNT)
        grouped = frame.groupBy(*columns).agg(F.count(F.lit(1)).alias(_COUNT))
        groups = grouped.where(f"{count} > 1").orderBy(F.desc(count), *columns).limit(self.most)
        shown = groups.selectExpr(f"{self._object(fault.repeated)} AS shown", count)
        return _Sample(
            tuple(
                FailingRow(self.dataset.ref.name, f"{times} rows", text)
                for text, times in shown.collect()
            )
        )

    def _json(self, fault: FailingRows) -> str:
        """The row as JSON: its keys and the columns at fault, or all columns if it has no keys."""
        if fault.request.definition.is_of_texts and self.dataset.texts is not None:
            return self._json_of_texts(fault, self.dataset.texts)
        return self._object(self._columns(fault))

    def _columns(self, fault: FailingRows) -> tuple[str, ...]:
        """The displayed columns of the failing rows of a fault."""
        rest = () if self.dataset.ref.keys else self.dataset.struct.names
        columns = dict.fromkeys((*self.dataset.ref.keys, *fault.columns, *rest))
        return tuple(columns)[:_MOST_COLUMNS]

    def _object(self, columns: Sequence[str]) -> str:
        pairs = ", ".join(f"{quote_literal(column)}, {self._cell(column)}" for column in columns)
        return f"to_json(named_struct({pairs}), map('ignoreNullFields', 'false'))"

    def _json_of_texts(self, fault: FailingRows, text_columns: TextColumns) -> str:
        """The keys and the malformed strings, or all strings, or the line if it is malformed."""
        ref = self.dataset.ref
        checked = texts_of(fault.request, self.dataset.schema, text_columns.columns).columns
        cells = {key: self._text_cell(key, text_columns) for key in ref.keys}
        for column in dict.fromkeys((*checked, *(() if ref.keys else text_columns.columns))):
            if column in cells:
                continue
            is_shown = text_columns.is_misfit(column) if ref.keys else "true"
            cell = self._text_cell(column, text_columns)
            cells[column] = f"CASE WHEN {text_columns.line} IS NULL AND {is_shown} THEN {cell} END"
        whole = f"{quote_literal(WHOLE_LINE)}, {self._line(text_columns)}"
        shown = list(cells.items())[:_MOST_COLUMNS]
        pairs = [f"{quote_literal(column)}, {cell}" for column, cell in shown]
        return f"to_json(named_struct({', '.join([*pairs, whole])}))"

    def _line(self, text_columns: TextColumns) -> str:
        """The displayed form of a malformed line, which may contain masked values."""
        line = quote_literal(MASK) if self.dataset.ref.masked else cut(text_columns.line)
        return f"CASE WHEN {text_columns.line} IS NOT NULL THEN {line} END"

    def _malformed(self, faults: Sequence[FailingRows]) -> str:
        """The malformed strings of the displayed columns, as JSON: their values are NULL.

        For a malformed line, the line. NULL if nothing is malformed, and for faults that display
        strings anyway.
        """
        texts = self.dataset.texts
        fault = quote_name(_FAULT)
        if texts is None:
            return _NO_TEXT
        cases = []
        for number, item in enumerate(faults):
            if item.request.definition.is_of_texts:
                continue
            cells = {}
            for column in filter(texts.cast.__contains__, self._columns(item)):
                cell = self._text_cell(column, texts)
                cells[column] = f"CASE WHEN {texts.is_misfit(column)} THEN {cell} END"
            if texts.has_lines:
                cells[WHOLE_LINE] = self._line(texts)
            if cells:
                pairs = ", ".join(f"{quote_literal(name)}, {cell}" for name, cell in cells.items())
                cases.append(f"WHEN {number} THEN to_json(named_struct({pairs}))")
        return f"nullif(CASE {fault} {' '.join(cases)} END, '{{}}')" if cases else _NO_TEXT

    def _text_cell(self, column: str, text_columns: TextColumns) -> str:
        """The display of the string of a column."""
        if column not in text_columns.cast or is_masked(column, self.dataset.ref.masked):
            return self._cell_of(column, text_columns.text(column))
        return cut(text_columns.text(column))

    def _cell(self, column: str) -> str:
        """The display of a column: masked, and truncated if it may be long."""
        return self._cell_of(column, quote_name(column))

    def _cell_of(self, column: str, name: str) -> str:
        """The display of a column, given as Spark SQL."""
        spark_type = self._place(column).type
        is_hidden = is_masked(column, self.dataset.ref.masked)
        return shown_cell(name, spark_type, is_masked=is_hidden)

    def _order(self) -> str:
        """The order of failing rows as Spark SQL: by the keys, or else by all columns, so that
        equal data give the same sample."""
        schema = self.dataset.schema
        keys = [key for key in self.dataset.ref.keys if _is_simple(self._place(key).type)]
        if keys:
            return ", ".join(map(quote_name, keys))
        simple = [quote_name(name) for name, type_ in schema.types.items() if _is_simple(type_)]
        return f"xxhash64({', '.join(simple)})" if simple else "1"

    def _place(self, column: str) -> ColumnPath:
        place = self.dataset.schema.find(column)
        assert place is not None
        return place


def _is_simple(spark_type: str) -> bool:
    return family_of(spark_type) not in (Family.ARRAY, Family.MAP, Family.OTHER)
