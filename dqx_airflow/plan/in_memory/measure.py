"""Measures the requests of a plan over tables in memory, and compares the rows of two of them one
by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import compress
from typing import Any

from dqx_airflow.metrics import spark_values
from dqx_airflow.metrics.builtin.counts import count_nan
from dqx_airflow.metrics.metric import ArgumentKind, Scan
from dqx_airflow.metrics.sql import OVERFLOW
from dqx_airflow.plan import model, schema_check
from dqx_airflow.plan.groupings import only_listed, too_many_groups
from dqx_airflow.plan.in_memory.predicates import EvaluatedRow, Known, UntranslatablePatternError
from dqx_airflow.plan.in_memory.table import Table
from dqx_airflow.plan.number_comparison import is_within
from dqx_airflow.plan.predicates import fail_undecided, voids_of
from dqx_airflow.plan.row_types import RowTypes, TypeObjection
from dqx_airflow.values import DatasetRef, MetricValue
from dqx_airflow.values.exact import Number

_Row = tuple[Any, ...]
_Rows = list[tuple[_Row, _Row]]
"""The values of the keys, and those that are compared, of each row."""
_Test = Callable[[tuple[_Row, _Row], tuple[_Row, _Row]], bool]


def differences(
    columns: schema_check.PairedColumns, tolerance: Number | None, lefts: _Rows, rights: _Rows
) -> schema_check.Differences:
    """The differences between two tables: equal rows are paired first, then near ones, then those
    with the same key."""

    def have_same_key(left: tuple[_Row, _Row], right: tuple[_Row, _Row]) -> bool:
        return _all_same(columns.keys, left[0], right[0], None)

    def agree_within(margin: Number | None) -> _Test:
        return lambda left, right: (
            have_same_key(left, right) and _all_same(columns.compared, left[1], right[1], margin)
        )

    rows = len(lefts)
    for margin in (None, tolerance):
        lefts, rights = _without_pairs(lefts, rights, agree_within(margin))
    extra, missing = _without_pairs(lefts, rights, have_same_key)
    return schema_check.Differences(len(missing), len(extra), len(lefts) - len(extra), rows)


def _without_pairs(lefts: _Rows, rights: _Rows, belong: _Test) -> tuple[_Rows, _Rows]:
    """The rest of both sides when each row has been paired with the first one that fits."""
    alone = []
    rest = list(rights)
    for left in lefts:
        place = next((at for at, right in enumerate(rest) if belong(left, right)), None)
        if place is None:
            alone.append(left)
        else:
            del rest[place]
    return alone, rest


def _all_same(
    pairs: Sequence[schema_check.ColumnPair], left: _Row, right: _Row, margin: Number | None
) -> bool:
    return all(_is_same(*of_column, margin) for of_column in zip(pairs, left, right, strict=True))


def _is_same(pair: schema_check.ColumnPair, left: Any, right: Any, margin: Number | None) -> bool:
    if left is None or right is None:
        return left is right
    left_key, right_key = spark_values.comparable(left, pair.left.type, right, pair.right.type)
    if left_key == right_key or margin is None or not pair.is_number:
        return bool(left_key == right_key)
    a = spark_values.metric_value(left)
    b = spark_values.metric_value(right)
    if a is None or b is None or isinstance(a, str) or isinstance(b, str):
        return False
    if pair.is_floating:
        return is_within(float(a), float(b), margin)
    return is_within(a, b, margin)


def measure(
    plan: model.Plan, refs: Sequence[DatasetRef], tables: Mapping[str, Table]
) -> model.Scanned:
    """The results of the requests of a plan.

    :param tables: by the name of the dataset; the requests of a missing one fail.
    """
    readable = {ref.name: _Dataset.of(ref, tables[ref.name]) for ref in refs if ref.name in tables}
    measuring = _Measuring(plan, readable)
    for ref in refs:
        measuring.answer_dataset(ref)
    for request in plan.requests:
        if request.definition.scan is Scan.MATCH and request not in measuring.scanned.failures:
            measuring.answer_match(request)
    return measuring.scanned


@dataclass(frozen=True, slots=True)
class _Measuring:
    """The requests of a plan over the tables that can be read, and their results so far."""

    plan: model.Plan
    readable: Mapping[str, _Dataset]
    scanned: model.Scanned = field(default_factory=model.Scanned)

    def answer_dataset(self, ref: DatasetRef) -> None:
        """Adds the results of all requests of a dataset, except for comparisons of rows."""
        requests = [request for request in self.plan.requests if request.dataset == ref.name]
        failures = self.scanned.failures
        reason = None
        if ref.name not in self.readable:
            reason = f"missing table for dataset '{ref.name}'"
        elif ref.filter is not None:
            reason = f"the filter of dataset '{ref.name}' needs Spark"
        if reason is not None:
            failures.update(dict.fromkeys(requests, reason))
            return
        dataset, unusable = self._with_lookups(self.readable[ref.name])
        for request in requests:
            reason = schema_check.objection_to(request, dataset.schema, unusable)
            if request.definition.scan is Scan.SCHEMA:
                schema_check.answer_from_schema(request, dataset.schema, self.scanned)
            elif request.definition.scan is Scan.LOG:
                failures[request] = f"`{request.metric}` needs a Delta table"
            elif request.definition.scan is Scan.MATCH:
                continue
            elif request.definition.in_python is None:
                failures[request] = f"`{request.metric}` needs Spark"
            elif reason is not None:
                failures[request] = reason
            else:
                try:
                    _answer(request, dataset, self.scanned)
                except spark_values.SumOverflow:
                    failures[request] = OVERFLOW
                except UntranslatablePatternError as error:
                    failures[request] = f"a regular expression needs Spark: {error}"

    def _with_lookups(self, dataset: _Dataset) -> tuple[_Dataset, dict[model.Lookup, str]]:
        """The dataset with the values for its lookups; and the lookups that are not possible, with
        the reasons."""
        known: dict[model.Lookup, Known] = {}
        unusable: dict[model.Lookup, str] = {}
        for lookup in self.plan.lookups:
            if lookup.dataset != dataset.ref.name:
                continue
            reference = self.readable.get(lookup.reference)
            schema = None if reference is None else reference.schema
            reason = schema_check.objection_to_lookup(lookup, dataset.schema, schema)
            if reference is None or reason is not None:
                unusable[lookup] = reason or ""
            else:
                rows = reference.rows_on(self.plan.date)
                values = reference.column(lookup.reference_column, rows)
                known[lookup] = Known.of(values, dataset.schema.type_of(lookup.column))
        return replace(dataset, known=known), unusable

    def answer_match(self, request: model.MetricRequest) -> None:
        """Adds the result of comparing the rows, or the columns, of two datasets."""
        left, right = (self.readable.get(name) for name in request.datasets)
        if left is None or right is None or right.ref.filter is not None:
            reason = f"dataset '{request.reference}' could not be read"
            self.scanned.failures[request] = reason
            return
        if not schema_check.is_about_rows(request):
            schema_check.answer_columns(request, left.schema, right.schema, self.scanned)
            return
        match = schema_check.Match.of(request)
        try:
            columns = schema_check.pair_columns(match, left.schema, right.schema)
        except TypeObjection as objection:
            self.scanned.failures[request] = str(objection)
            return
        sides = []
        for dataset in (left, right):
            rows = dataset.rows_on(self.plan.date)
            names = ([column.name for column in pairs] for pairs in columns.both)
            values = ([dataset.column(name, rows).values for name in part] for part in names)
            keys, compared = (list(zip(*part, strict=True)) or [()] * len(rows) for part in values)
            sides.append(list(zip(keys, compared, strict=True)))
        found = differences(columns, match.tolerance, *sides)
        schema_check.answer_match(request, found, self.scanned)


@dataclass(frozen=True, slots=True)
class _Dataset:
    """A table, the positions of its columns, the values of other tables that its lookups need, and
    its rows by date, as far as they were requested."""

    ref: DatasetRef
    table: Table
    schema: schema_check.Schema
    positions: Mapping[str, int]
    known: Mapping[model.Lookup, Known] = field(default_factory=dict)
    rows: dict[date | None, list[tuple[Any, ...]]] = field(default_factory=dict)

    @classmethod
    def of(cls, ref: DatasetRef, table: Table) -> _Dataset:
        schema = schema_check.Schema.of(ref.name, table.fields)
        positions = {name: position for position, name in enumerate(schema.types)}
        return cls(ref, table, schema, positions)

    @property
    def types(self) -> RowTypes:
        return RowTypes(self.schema.type_of)

    def rows_on(self, on: date | None) -> list[tuple[Any, ...]]:
        """The rows of a date, or all rows of a dataset without dates."""
        if on not in self.rows:
            self.rows[on] = self._read(on)
        return self.rows[on]

    def _read(self, on: date | None) -> list[tuple[Any, ...]]:
        if self.ref.date_column is None or on is None:
            return list(self.table.rows)
        column = self.ref.date_column
        dates = self._values(column, self.table.rows)
        rows = zip(self.table.rows, dates, strict=True)
        is_read = self.table.texts is not None
        return [
            row
            for row, timestamp in rows
            if _is_on(timestamp, on)
            or (is_read and timestamp is None and not row[-1].isdisjoint((column, None)))
        ]

    def malformed(
        self, request: model.MetricRequest, rows: Iterable[tuple[Any, ...]]
    ) -> spark_values.ColumnValues:
        """Whether one of the strings of a request is malformed, for each row."""
        if self.table.texts is None:
            return spark_values.ColumnValues("boolean", ())
        texts = schema_check.texts_of(request, self.schema, self.table.texts)
        wanted = (*texts.columns, None) if texts.has_lines else texts.columns
        return spark_values.ColumnValues(
            "boolean", tuple(not row[-1].isdisjoint(wanted) for row in rows)
        )

    def column(self, name: str, rows: Iterable[tuple[Any, ...]]) -> spark_values.ColumnValues:
        """The column or struct field of a name."""
        return spark_values.ColumnValues(self.schema.type_of(name), self._values(name, rows))

    def _values(self, name: str, rows: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
        place = self.schema.find(name)
        assert place is not None
        column, *fields = place.path
        position = self.positions[column]
        values = [row[position] for row in rows]
        for inner in fields:
            values = [None if value is None else value[inner] for value in values]
        return tuple(values)

    def evaluated(self, row: tuple[Any, ...]) -> EvaluatedRow:
        """A row on which predicates are tested."""

        def value_of(name: str) -> Any:
            return self._values(name, [row])[0]

        return EvaluatedRow(value_of, self.types, self.ref.name, self.known)

    def grouped(
        self, grouping: model.Grouping, rows: Sequence[tuple[Any, ...]]
    ) -> dict[model.Group, list[tuple[Any, ...]]]:
        """The rows of each group."""
        keys = [self.column(column, rows).values for column in grouping.columns]
        groups: dict[model.Group, list[tuple[Any, ...]]] = {}
        for row, *values in zip(rows, *keys, strict=True):
            groups.setdefault(tuple(map(_group_value, values)), []).append(row)
        return groups

    def valued(
        self, request: model.MetricRequest, rows: Sequence[tuple[Any, ...]]
    ) -> tuple[MetricValue, str | None]:
        """The value of a request for some rows, and why it has none if NaN or infinity is the
        reason."""
        voids = voids_of(request, self.types)
        nan_counts = {column: count_nan(self.column(column, rows)) for column in voids}
        if any(nan_counts.values()):
            return None, schema_check.nan_detail(nan_counts)
        value = self._computed(request, rows)
        if not spark_values.is_finite(value):
            return None, schema_check.INFINITE
        return spark_values.metric_value(value), None

    def _computed(self, request: model.MetricRequest, rows: Sequence[tuple[Any, ...]]) -> Any:
        """The result as a Python value, which may be infinite."""
        compute = request.definition.in_python
        assert compute is not None
        if request.definition.is_of_texts:
            return compute(self.malformed(request, rows))
        arguments: list[Any] = []
        for argument, given in request.given:
            if isinstance(given, model.RowPredicate):
                truths = (self.evaluated(row).holds(given.node) for row in rows)
                arguments.append(spark_values.ColumnValues("boolean", tuple(truths)))
            elif given is None or argument.kind not in (ArgumentKind.COLUMN, ArgumentKind.COLUMNS):
                arguments.append(given)
            elif isinstance(given, str):
                arguments.append(self.column(given, rows))
            else:
                arguments.append([self.column(name, rows) for name in given])
        return compute(*(arguments or [spark_values.ColumnValues("struct<>", tuple(rows))]))


def _answer(request: model.MetricRequest, dataset: _Dataset, scanned: model.Scanned) -> None:
    """Adds the value of a request over the rows of a dataset, or why it has none."""
    rows = dataset.rows_on(request.date)
    types = dataset.types
    grouping = request.grouping
    if grouping is not None:
        if (only := only_listed(grouping, types)) is not None:
            rows = [row for row in rows if dataset.evaluated(row).holds(only.node) is True]
        if len(dataset.grouped(grouping, rows)) > grouping.most:
            scanned.failures[request] = too_many_groups(dataset.ref.name, grouping, request.date)
            return
    if request.where is not None:
        where = request.where.node
        candidates = [*map(dataset.evaluated, rows)]
        chosen = [row.holds(where) is True for row in candidates]
        left_out = [row.holds(where, is_opposite=True) is not False for row in candidates]
        undecided = sum(
            not (is_chosen or is_left_out)
            for is_chosen, is_left_out in zip(chosen, left_out, strict=True)
        )
        if undecided:
            fail_undecided(request, undecided, types, scanned)
            return
        rows = list(compress(rows, chosen))
    if grouping is not None:
        answer = model.GroupValues(types=tuple(map(types.of_column, grouping.columns)))
        for group, members in dataset.grouped(grouping, rows).items():
            answer.values[group], detail = dataset.valued(request, members)
            if detail is not None:
                answer.details[group] = detail
        scanned.groups[request] = answer
        return
    scanned.values[request], detail = dataset.valued(request, rows)
    if detail is not None:
        scanned.details[request] = detail


def _group_value(value: Any) -> MetricValue:
    return (
        ("true" if value else "false")
        if isinstance(value, bool)
        else spark_values.metric_value(value)
    )


def _is_on(value: Any, on: date) -> bool:
    if isinstance(value, str):
        return value == on.isoformat()
    timestamp = spark_values.timestamp_of(value)
    return timestamp is not None and timestamp.date() == on
