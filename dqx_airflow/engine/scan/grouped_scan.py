"""The scan of one dataset by groups: one pass for all requests with the same grouping.

The results of all groups on a date are one state, so that a window reads earlier days from there.
It is stored as a JSON list of `[group, value]`: exact, and a string like other results.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dqx_airflow.engine.scan.collect import AggregateRequest, ScanResults, collect, date_of
from dqx_airflow.engine.scan.frames import DATE, ReferenceTables, rows_of_dates, with_named_columns
from dqx_airflow.engine.scan.fused_pass import bisected, reshaped
from dqx_airflow.engine.scan.passes import describe_pass, split_into_passes
from dqx_airflow.engine.scan.states import StateCache
from dqx_airflow.engine.session.concurrency import jobs_called, side_by_side
from dqx_airflow.engine.session.spark_errors import explain, spark_failures
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.builtin.values import rows_where
from dqx_airflow.metrics.metric import Aggregate
from dqx_airflow.metrics.spark_values import is_finite
from dqx_airflow.metrics.sql import OVERFLOW, has_overflown, quote_name
from dqx_airflow.plan.masks import reveals
from dqx_airflow.plan.model import Group, Grouping, GroupValues, Lookup, MetricRequest, Scanned
from dqx_airflow.plan.predicates import (
    aggregates_of,
    fail_undecided,
    only_listed,
    predicate_sql,
    show_columns,
    show_group,
    too_many_groups,
    undecided_rows,
    voids_of,
)
from dqx_airflow.plan.row_values import RowTypes
from dqx_airflow.plan.schema_check import INFINITE, nan_detail
from dqx_airflow.values import MASK, MetricValue, Origin
from dqx_airflow.values.exact import exact_text, parse_exact

Known: TypeAlias = dict[Group, MetricValue]

_EXACT = "exact"


def scan_groups(
    spark: SparkSession,
    dataset: OpenDataset,
    requests: Sequence[MetricRequest],
    lookups: Sequence[Lookup],
    references: ReferenceTables,
    types: RowTypes,
    cache: StateCache | None = None,
) -> Scanned:
    """Computes valid requests that have a grouping.

    :param lookups: those of the dataset that are possible.
    :param references: the datasets that they look into.
    :param cache: the states of earlier runs; without it everything is computed.
    """
    by_grouping: dict[Grouping, list[MetricRequest]] = {}
    for request in requests:
        assert request.grouping is not None
        by_grouping.setdefault(request.grouping, []).append(request)
    scans = [
        _GroupedScan(spark, dataset, grouping, tuple(of_grouping), lookups, references, types)
        for grouping, of_grouping in by_grouping.items()
    ]
    answers = ScanResults()
    aggregate_requests = [request for scan in scans for request in scan.aggregate_requests]
    if cache is not None:
        cache.recall(dataset, references, aggregate_requests, answers)
    missing = [request for request in aggregate_requests if request not in answers]
    stored = frozenset(answers.values)
    known = {key: _from_json(str(text)) for key, text in answers.values.items()}
    for results in side_by_side(spark, lambda scan: scan.read(missing, answers.broken), scans):
        known.update(results)
    if cache is not None and missing:
        for (on, sql), values in known.items():
            if (on, sql) not in answers.values:
                answers.add(on, {sql: _to_json(values)}, Origin.SCAN)
        cache.keep(dataset, references, missing, answers)
    scanned = Scanned()
    for scan in scans:
        scan.answer(known, stored, answers.broken, scanned)
    return scanned


@dataclass(frozen=True)
class _GroupedScan:
    """The scan of a dataset by one grouping."""

    spark: SparkSession
    dataset: OpenDataset
    grouping: Grouping
    requests: tuple[MetricRequest, ...]
    lookups: Sequence[Lookup]
    references: ReferenceTables
    types: RowTypes

    @cached_property
    def parts(self) -> dict[MetricRequest, tuple[Aggregate, ...]]:
        """The aggregates of each request."""
        return {request: aggregates_of(request, self.types) for request in self.requests}

    @cached_property
    def filters(self) -> dict[MetricRequest, tuple[Aggregate, ...]]:
        """For each filtered request, the number of rows of a group that it selects, and of those
        that it cannot decide, if any."""
        return {
            request: tuple(
                filter(
                    None,
                    (
                        rows_where(predicate_sql(request.where.node, self.types)),
                        undecided_rows(request.where, self.types),
                    ),
                )
            )
            for request in self.requests
            if request.where is not None
        }

    @cached_property
    def aggregate_requests(self) -> tuple[AggregateRequest, ...]:
        """The aggregates to compute, each once, by the key of its state."""
        aggregate_requests: dict[AggregateRequest, None] = {}
        for request, aggregates in self.parts.items():
            for part in (*aggregates, *self.filters.get(request, ())):
                item = replace(part, sql=self._key(part.sql), merge=None, shortcut=None)
                aggregate_requests[AggregateRequest.of(request, item, self.dataset.ref)] = None
        return tuple(aggregate_requests)

    def read(
        self, missing: Collection[AggregateRequest], broken: dict[str, str]
    ) -> dict[tuple[date | None, str], Known]:
        """The results from the rows, by date and key; the reasons for failures go to `broken`."""
        wanted = set(missing)
        wanted_requests = [request for request in self.aggregate_requests if request in wanted]
        values: dict[tuple[date | None, str], Known] = {}
        for of_pass in split_into_passes(self.dataset, wanted_requests):
            keys = list(dict.fromkeys(request.aggregate.sql for request in of_pass))
            try:
                by_date, failed = self._pass(of_pass, keys)
            except DatasetError as error:
                by_date, failed = {}, dict.fromkeys(keys, error.in_one_line)
            broken.update(failed)
            for request in of_pass:
                place = request.date, request.aggregate.sql
                if request.aggregate.sql not in failed:
                    values[place] = by_date.get(place, {})
        return values

    def _pass(
        self, of_pass: Sequence[AggregateRequest], keys: Sequence[str]
    ) -> tuple[dict[tuple[date | None, str], Known], dict[str, str]]:
        dates = {request.date for request in of_pass}
        name, aggregates = self.dataset.ref.name, [request.aggregate for request in of_pass]
        sql = {key: key.removeprefix(self._prefix) for key in keys}
        columns = show_columns(self.grouping.columns)
        with jobs_called(self.spark, f"{name}: {describe_pass(aggregates)} for each {columns}"):
            try:
                with spark_failures():
                    frame = self._frame(of_pass, dates)
            except PySparkException as error:
                return {}, dict.fromkeys(keys, explain(error))
            items = {
                sql[aggregate.sql]: replace(aggregate, sql=sql[aggregate.sql])
                for aggregate in aggregates
            }
            by_key, failed = bisected(frame, [*items], partial(self._rows, frame, dates, items))
        reasons = {self._key(text): reason for text, reason in failed.items()}
        if crowded := self._crowded(on for on, _ in by_key):
            return {}, dict.fromkeys(keys, crowded)
        by_place: dict[tuple[date | None, str], Known] = {
            (on, key): {} for on in {on for on, _ in by_key} for key in keys if key not in reasons
        }
        for text, key in ((sql[key], key) for key in keys if key not in reasons):
            for (on, group), values in by_key.items():
                by_place[on, key][group] = values[text]
        return by_place, reasons

    def _frame(self, of_pass: Sequence[AggregateRequest], dates: set[date | None]) -> DataFrame:
        dataset = self.dataset
        frame = rows_of_dates(dataset, dates)
        looked_into = {name for request in of_pass for name in request.looks_into}
        wanted = [lookup for lookup in self.lookups if lookup.reference in looked_into]
        frame = with_named_columns(
            self.spark, frame, dataset, self.requests, wanted, self.references
        )
        only = only_listed(self.grouping, self.types)
        return frame if only is None else frame.where(predicate_sql(only.node, self.types))

    def _rows(
        self,
        frame: DataFrame,
        dates: Collection[date | None],
        items: Mapping[str, Aggregate],
        texts: Sequence[str],
    ) -> list[tuple[tuple[date | None, Group], tuple[MetricValue, ...]]]:
        """The values of the aggregates for each date and group that has rows, up to a few groups
        more than allowed, to detect that there are too many."""
        by_date = [quote_name(DATE)] if len(dates) > 1 else []
        columns = [*by_date, *map(self._group_column, self.grouping.columns)]
        if items[texts[0]].over is None:
            grouped = frame.groupBy(*map(F.expr, columns)).agg(*map(F.expr, texts))
        else:
            grouped = reshaped(frame, columns, [items[text] for text in texts])
        first, width = len(by_date), len(columns)
        rows = collect(grouped.limit(self.grouping.most * len(dates) + 1), keys=width)
        (alone,) = dates if not by_date else (None,)
        return [
            ((date_of(row[0]) if by_date else alone, row[first:width]), row[width:]) for row in rows
        ]

    def _group_column(self, column: str) -> str:
        name = quote_name(column)
        is_truth = self.types.of_column(column) == "boolean"
        return f"CAST({name} AS STRING)" if is_truth else name

    def _crowded(self, dates: Iterable[date | None]) -> str | None:
        """Why there are too many groups, or None."""
        most = self.grouping.most
        crowded = [on for on, count in Counter(dates).items() if count > most]
        if not crowded:
            return None
        return too_many_groups(self.dataset.ref.name, self.grouping, crowded[0])

    @cached_property
    def _prefix(self) -> str:
        """The common prefix of the state keys of this grouping."""
        columns = ", ".join(map(quote_name, self.grouping.columns))
        only = only_listed(self.grouping, self.types)
        where = "" if only is None else f" where {predicate_sql(only.node, self.types)}"
        return f"by {columns}{where}: "

    def _key(self, sql: str) -> str:
        return f"{self._prefix}{sql}"

    def answer(
        self,
        known: Mapping[tuple[date | None, str], Known],
        stored: Collection[tuple[date | None, str]],
        broken: Mapping[str, str],
        scanned: Scanned,
    ) -> None:
        """Adds the values of the requests by group, or why they have none.

        :param stored: results found before.
        """
        for request, aggregates in self.parts.items():
            filters = self.filters.get(request, ())
            keys = [self._key(aggregate.sql) for aggregate in (*aggregates, *filters)]
            if failed := [broken[key] for key in keys if key in broken]:
                scanned.failures[request] = failed[0]
                continue
            columns = [known[request.date, key] for key in keys]
            is_stored = all((request.date, key) in stored for key in keys)
            scanned.origins[request] = Origin.STATE if is_stored else Origin.SCAN
            if any(column.keys() != columns[0].keys() for column in columns):
                scanned.failures[request] = "the data changed while it was read"
                continue
            groups = list(columns[0])
            if filters:
                chosen, *undecided = columns[len(aggregates) :]
                open_rows = sum(
                    int(count or 0) for column in undecided for count in column.values()
                )
                if open_rows:
                    fail_undecided(request, open_rows, self.types, scanned)
                    continue
                groups = [group for group in groups if chosen[group]]
            self._answer(request, columns[: len(aggregates)], groups, scanned)

    def _answer(
        self,
        request: MetricRequest,
        columns: Sequence[Known],
        groups: Sequence[Group],
        scanned: Scanned,
    ) -> None:
        """Adds the values of a request for some groups, from the results of its aggregates."""
        aggregates = self.parts[request]
        voids = tuple(voids_of(request, self.types))
        types = tuple(map(self.types.of_column, self.grouping.columns))
        width, values = len(aggregates) - len(voids), GroupValues(types=types)
        value_of, arguments = request.definition.value, request.arguments
        may_overflow = has_overflown(aggregates, (None, 1), self.types.of_column)
        by_column = [[column[group] for group in groups] for column in columns]
        is_plain = not voids and not any(float in set(map(type, column)) for column in by_column)
        for group, *several in zip(groups, *by_column, strict=True):
            results = tuple(several)
            if may_overflow and has_overflown(aggregates, results, self.types.of_column):
                is_hidden = reveals(request, {self.dataset.ref.name: self.dataset.ref.masked})
                shown = MASK if is_hidden else show_group(group)
                scanned.failures[request] = f"{OVERFLOW} ({shown})"
                return
            if is_plain or (not voids and all(map(is_finite, results))):
                values.values[group] = value_of(arguments, results)
                continue
            pairs = zip(voids, results[width:], strict=True)
            nan_counts = {column: int(count or 0) for column, count in pairs}
            if any(nan_counts.values()):
                values.values[group] = None
                values.details[group] = nan_detail(nan_counts)
            elif not all(map(is_finite, results[:width])):
                values.values[group] = None
                values.details[group] = INFINITE
            else:
                values.values[group] = value_of(arguments, results[:width])
        scanned.groups[request] = values


def _to_json(values: Known) -> str:
    """The values of all groups as JSON."""
    rows = [[[*map(_exactly, group)], _exactly(value)] for group, value in values.items()]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":"))


def _from_json(text: str) -> Known:
    return {tuple(map(_plain, group)): _plain(value) for group, value in json.loads(text)}


def _exactly(value: MetricValue) -> Any:
    return {_EXACT: exact_text(value)} if isinstance(value, Fraction) else value


def _plain(written: Any) -> MetricValue:
    if isinstance(written, dict):
        return parse_exact(written[_EXACT])
    value: MetricValue = written
    return value
