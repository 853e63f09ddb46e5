"""Scans a dataset by groups, with separate passes for each grouping."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property, partial
from typing import TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dqx_airflow.engine.scan.aggregates import bisected, describe_pass, reshaped
from dqx_airflow.engine.scan.collected_values import collect, date_of
from dqx_airflow.engine.scan.frames import DATE
from dqx_airflow.engine.scan.rows import DatasetRows, limits_of, log_passes
from dqx_airflow.engine.scan.states import StateCache, plain_result, result_in
from dqx_airflow.engine.session.concurrency import jobs_called, side_by_side
from dqx_airflow.engine.session.spark_errors import explain, spark_failures
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.metric import Aggregate
from dqx_airflow.metrics.sql import OVERFLOW, has_overflown, quote_name
from dqx_airflow.plan import groupings, predicates
from dqx_airflow.plan.answers import value_of
from dqx_airflow.plan.masks import reveals
from dqx_airflow.plan.model import Group, Grouping, GroupValues, MetricRequest, Scanned
from dqx_airflow.plan.passes import (
    AggregateRequest,
    AggregateResults,
    Needed,
    Pass,
    dates_of,
    passes_for,
    state_prefix,
)
from dqx_airflow.values import MASK, MetricValue, Origin

Known: TypeAlias = dict[Group, MetricValue]
"""The results of an aggregate by group. All groups on a date are one state, so that a window reads
earlier days from there: a JSON list of `[group, value]`, exact, and a string like other results."""


def scan_groups(rows: DatasetRows, needed: Sequence[Needed], cache: StateCache | None) -> Scanned:
    """Computes valid requests that have a grouping.

    :param needed: the aggregates of each grouping.
    """
    scans = [_GroupedScan(replace(rows, requests=tuple(one.parts)), one) for one in needed]
    results = AggregateResults()
    wanted = [request for one in needed for request in one.aggregate_requests]
    if cache is not None:
        cache.recall(rows.dataset, rows.references, wanted, results)
    missing = [request for request in wanted if request not in results]
    stored = frozenset(results.values)
    known = {key: _from_json(str(text)) for key, text in results.values.items()}
    for values in side_by_side(rows.spark, lambda scan: scan.read(missing, results.broken), scans):
        known.update(values)
    if cache is not None and missing:
        for (on, sql), by_group in known.items():
            if (on, sql) not in results.values:
                results.add(on, {sql: _to_json(by_group)}, Origin.SCAN)
        cache.keep(rows.dataset, rows.references, missing, results)
    scanned = Scanned()
    for scan in scans:
        scan.answer(known, stored, results.broken, scanned)
    return scanned


@dataclass(frozen=True)
class _GroupedScan:
    """The scan of a dataset by one grouping."""

    rows: DatasetRows
    needed: Needed

    @property
    def grouping(self) -> Grouping:
        """The columns by which the rows are grouped."""
        grouping = self.needed.grouping
        assert grouping is not None
        return grouping

    @cached_property
    def _prefix(self) -> str:
        return state_prefix(self.grouping, self.rows.types)

    def read(
        self, missing: Collection[AggregateRequest], broken: dict[str, str]
    ) -> dict[tuple[date | None, str], Known]:
        """The results from the rows, by date and key; the reasons for failures go to `broken`."""
        asked = set(missing)
        wanted = [request for request in self.needed.aggregate_requests if request in asked]
        values: dict[tuple[date | None, str], Known] = {}
        limits = limits_of(self.rows.spark)
        for scan_pass in passes_for(self.needed, wanted, self.rows.dataset, limits):
            log_passes([scan_pass])
            keys = list(dict.fromkeys(one.aggregate.sql for one in scan_pass.aggregates))
            try:
                by_date, failed = self._run(scan_pass, keys)
            except DatasetError as error:
                by_date = {}
                failed = dict.fromkeys(keys, error.in_one_line)
            broken.update(failed)
            for request in scan_pass.aggregates:
                place = request.date, request.aggregate.sql
                if request.aggregate.sql not in failed:
                    values[place] = by_date.get(place, {})
        return values

    def _run(
        self, scan_pass: Pass, keys: Sequence[str]
    ) -> tuple[dict[tuple[date | None, str], Known], dict[str, str]]:
        """The results of a pass by date and key, and the reason for each key that failed."""
        spark = self.rows.spark
        name = self.rows.dataset.ref.name
        dates = dates_of(scan_pass.aggregates)
        aggregates = [request.aggregate for request in scan_pass.aggregates]
        sql = {key: key.removeprefix(self._prefix) for key in keys}
        columns = groupings.show_columns(self.grouping.columns)
        with jobs_called(spark, f"{name}: {describe_pass(aggregates)} for each {columns}"):
            try:
                with spark_failures():
                    frame = self._frame(scan_pass)
            except PySparkException as error:
                return {}, dict.fromkeys(keys, explain(error))
            items = {
                sql[aggregate.sql]: replace(aggregate, sql=sql[aggregate.sql])
                for aggregate in aggregates
            }
            by_key, failed = bisected(frame, [*items], partial(self._grouped, frame, dates, items))
        reasons = {f"{self._prefix}{text}": reason for text, reason in failed.items()}
        if crowded := self._crowded(on for on, _ in by_key):
            return {}, dict.fromkeys(keys, crowded)
        computed = [key for key in keys if key not in reasons]
        by_place: dict[tuple[date | None, str], Known] = {
            (on, key): {} for on in {on for on, _ in by_key} for key in computed
        }
        for key in computed:
            for (on, group), values in by_key.items():
                by_place[on, key][group] = values[sql[key]]
        return by_place, reasons

    def _frame(self, scan_pass: Pass) -> DataFrame:
        frame = self.rows.frame(scan_pass.aggregates)
        only = groupings.only_listed(self.grouping, self.rows.types)
        if only is None:
            return frame
        return frame.where(predicates.predicate_sql(only.node, self.rows.types))

    def _grouped(
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
        first = len(by_date)
        width = len(columns)
        rows = collect(grouped.limit(self.grouping.most * len(dates) + 1), keys=width)
        (alone,) = dates if not by_date else (None,)
        return [
            ((date_of(row[0]) if by_date else alone, row[first:width]), row[width:]) for row in rows
        ]

    def _group_column(self, column: str) -> str:
        name = quote_name(column)
        is_truth = self.rows.types.of_column(column) == "boolean"
        return f"CAST({name} AS STRING)" if is_truth else name

    def _crowded(self, dates: Iterable[date | None]) -> str | None:
        """The reason if there are too many groups; None otherwise."""
        most = self.grouping.most
        crowded = [on for on, count in Counter(dates).items() if count > most]
        if not crowded:
            return None
        return groupings.too_many_groups(self.rows.dataset.ref.name, self.grouping, crowded[0])

    def answer(
        self,
        known: Mapping[tuple[date | None, str], Known],
        stored: Collection[tuple[date | None, str]],
        broken: Mapping[str, str],
        scanned: Scanned,
    ) -> None:
        """Adds the values of the requests by group, or the reasons why they have none.

        :param stored: results found before.
        """
        for request, aggregates in self.needed.parts.items():
            filters = self.needed.filters.get(request, ())
            keys = [f"{self._prefix}{aggregate.sql}" for aggregate in (*aggregates, *filters)]
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
                    predicates.fail_undecided(request, open_rows, self.rows.types, scanned)
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
        aggregates = self.needed.parts[request]
        voids = tuple(predicates.voids_of(request, self.rows.types))
        types = tuple(map(self.rows.types.of_column, self.grouping.columns))
        values = GroupValues(types=types)
        may_overflow = has_overflown(aggregates, (None, 1), self.rows.types.of_column)
        by_column = [[column[group] for group in groups] for column in columns]
        is_plain = not voids and not any(float in set(map(type, column)) for column in by_column)
        for group, *several in zip(groups, *by_column, strict=True):
            results = tuple(several)
            if may_overflow and has_overflown(aggregates, results, self.rows.types.of_column):
                is_hidden = reveals(
                    request, {self.rows.dataset.ref.name: self.rows.dataset.ref.masked}
                )
                shown = MASK if is_hidden else groupings.show_group(group)
                scanned.failures[request] = f"{OVERFLOW} ({shown})"
                return
            if is_plain:
                values.values[group] = request.definition.value(request.arguments, results)
                continue
            values.values[group], detail = value_of(request, results, voids)
            if detail is not None:
                values.details[group] = detail
        scanned.groups[request] = values


def _to_json(values: Known) -> str:
    """The values of all groups as JSON."""
    rows = [[[*map(plain_result, group)], plain_result(value)] for group, value in values.items()]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":"))


def _from_json(text: str) -> Known:
    pairs = json.loads(text)
    return {tuple(map(result_in, group)): result_in(value) for group, value in pairs}
