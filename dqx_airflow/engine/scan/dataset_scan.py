"""The scan of one dataset: stored results first, then one pass over the rows that are needed.

What cannot be computed is found from the schema before the pass, or else by the pass itself; all
other requests still get their values. Nothing is read that the transaction log answers, or that an
earlier run found in the same files. Requests by groups have a pass for each grouping.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, timezone
from fractions import Fraction
from functools import cached_property, partial
from typing import TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dqx_airflow.engine.scan import frames, passes
from dqx_airflow.engine.scan.passes import PassResult, aggregate, aggregate_reshaped, bisected
from dqx_airflow.engine.scan.states import StateCache, added_file_passes, plain_result, result_in
from dqx_airflow.engine.session.concurrency import jobs_called, side_by_side
from dqx_airflow.engine.session.sail import sail_version
from dqx_airflow.engine.session.spark_errors import explain, spark_failures
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.footers import NO_DRIFT, SchemaDrift, drift_of
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.builtin.values import rows_where
from dqx_airflow.metrics.metric import Aggregate, Scan
from dqx_airflow.metrics.spark_values import is_finite
from dqx_airflow.metrics.sql import OVERFLOW, has_overflown, quote_name
from dqx_airflow.plan import predicates, schema_check
from dqx_airflow.plan.masks import reveals
from dqx_airflow.plan.model import Group, Grouping, GroupValues, Lookup, MetricRequest, Scanned
from dqx_airflow.plan.passes import MOST_COMPILED
from dqx_airflow.plan.row_values import RowTypes
from dqx_airflow.plan.schema_check import Schema
from dqx_airflow.values import MASK, MetricValue, Origin


def scan(
    spark: SparkSession,
    dataset: OpenDataset,
    requests: Sequence[MetricRequest],
    references: frames.ReferenceTables,
    cache: StateCache | None = None,
) -> Scanned:
    """Computes the requests of one dataset, except for queries.

    :param references: the datasets that they look into; a missing one could not be opened, and
        fails the requests that need it.
    :param cache: the states of earlier runs; without it everything is computed.
    """
    scanned = Scanned()
    read = dataset.schema
    drift = _drift(spark, dataset, read, requests, references)
    schema, date_schema = replace(read, unread=drift.unread), drift.in_schema(read)
    usable, unusable = [], {}
    for lookup in predicates.lookups_of(*requests):
        reference = references.opened.get(lookup.reference)
        its_schema = None if reference is None else reference.schema
        reason = schema_check.objection_to_lookup(lookup, schema, its_schema)
        if reason is None:
            usable.append(lookup)
        else:
            unusable[lookup] = reason
    possible: list[MetricRequest] = []
    grouped: list[MetricRequest] = []
    for request in requests:
        if request.definition.scan is Scan.SCHEMA:
            _answer_from_columns(request, read, date_schema, drift, scanned)
        elif request.definition.scan is Scan.LOG:
            _answer_from_log(request, dataset, scanned)
        if request.definition.scan is not Scan.FLAT:
            continue
        reason = schema_check.objection_to(request, schema, unusable)
        if reason is not None:
            scanned.failures[request] = reason
        elif request.definition.is_of_texts and dataset.texts is None:
            scanned.values[request] = request.definition.empty
        else:
            (possible if request.grouping is None else grouped).append(request)
    types = RowTypes(schema.type_of)
    rows = _Rows(spark, dataset, tuple(usable), references, types)
    if grouped:
        scanned.add(_scan_groups(rows, grouped, cache))
    parts = {request: predicates.aggregates_of(request, types) for request in possible}
    undecided = {
        request: predicates.undecided_rows(request.where, types)
        for request in possible
        if request.where
    }
    aggregate_requests = _aggregate_requests_of(parts, undecided, dataset, schema)
    answers = passes.ScanResults()
    passes.ask_log(dataset, aggregate_requests, answers)
    if cache is not None:
        cache.recall(dataset, references, aggregate_requests, answers)
    missing = [request for request in aggregate_requests if request not in answers]
    if missing:
        _read_missing(rows, missing, possible, answers)
        if cache is not None:
            cache.keep(dataset, references, missing, answers)
    for request, aggregates in parts.items():
        _answer(request, aggregates, undecided.get(request), types, answers, scanned)
    return scanned


def _read_missing(
    rows: _Rows,
    missing: Sequence[passes.AggregateRequest],
    requests: Sequence[MetricRequest],
    answers: passes.ScanResults,
) -> None:
    """Adds results that are not known: from added files, where the states of the others are, and
    then in one pass over all files or in two."""
    dataset, type_of = rows.dataset, rows.types.of_column
    if answers.partial_states:
        for files, news in added_file_passes(dataset, missing, answers.partial_states):
            added = passes.ScanResults()
            _scan_rows(replace(rows, dataset=dataset.of_files(files)), news, requests, added)
            answers.complete(news, added)
    rest = [
        request
        for request in missing
        if request not in answers and request.aggregate.sql not in answers.broken
    ]
    first, later = passes.scan_in_two_phases(rest, dataset, type_of, answers)
    _scan_rows(rows, first, requests, answers)
    if later:
        passes.take_shortcuts(later, type_of, answers)
        late = [request for request in later if request not in answers]
        _scan_rows(rows, late, requests, answers)


def _drift(
    spark: SparkSession,
    dataset: OpenDataset,
    schema: Schema,
    requests: Sequence[MetricRequest],
    references: frames.ReferenceTables,
) -> SchemaDrift:
    """The schema drift of the files, if a request is about their columns."""
    is_asked = any(
        request.definition.scan is Scan.SCHEMA
        or (
            request.definition.scan is not Scan.LOG
            and not schema_check.names_only_columns(request, schema)
        )
        for request in requests
    )
    return drift_of(spark, dataset, references.date) if is_asked else NO_DRIFT


def _answer_from_columns(
    request: MetricRequest,
    schema: Schema,
    date_schema: Schema,
    drift: SchemaDrift,
    scanned: Scanned,
) -> None:
    """Answers a request about the columns themselves: those in the files of the date."""
    schema_check.answer_from_schema(request, date_schema, scanned)
    places = filter(None, map(schema.find, schema_check.columns_of(request, schema)))
    difference = next(filter(None, (drift.difference(place.path[0]) for place in places)), None)
    if difference:
        scanned.details[request] = difference


def _answer_from_log(request: MetricRequest, dataset: OpenDataset, scanned: Scanned) -> None:
    """Answers the age of the data from the transaction log."""
    ask = dataset.log.committed_at if dataset.log is not None else dataset.last_commit
    committed = ask() if ask is not None else None
    if committed is None:
        unknown = "its log has no commit that changed the data of its newest version"
        reason = "it is not a Delta table" if ask is None else unknown
        scanned.failures[request] = f"dataset '{dataset.ref.name}': {reason}"
    else:
        age = datetime.now(timezone.utc) - committed
        scanned.values[request] = Fraction(age // timedelta(microseconds=1), 10**6)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a dataset, and the lookups that its requests may make in others."""

    spark: SparkSession
    dataset: OpenDataset
    lookups: tuple[Lookup, ...]
    references: frames.ReferenceTables
    types: RowTypes

    def frame(
        self, of_pass: Sequence[passes.AggregateRequest], requests: Sequence[MetricRequest]
    ) -> DataFrame:
        """Those of the dates of a pass, with all columns that the SQL of the requests names."""
        frame = frames.rows_of_dates(self.dataset, passes.dates_of(of_pass))
        wanted = [
            lookup
            for lookup in self.lookups
            if any(lookup.reference in request.looks_into for request in of_pass)
        ]
        return frames.with_named_columns(frame, self.dataset, requests, wanted, self.references)


def _scan_rows(
    rows: _Rows,
    aggregate_requests: Sequence[passes.AggregateRequest],
    requests: Sequence[MetricRequest],
    answers: passes.ScanResults,
) -> None:
    """Adds results from the rows, or the reason if files cannot be read."""
    spark, dataset = rows.spark, rows.dataset

    def read(of_pass: Sequence[passes.AggregateRequest]) -> PassResult[date | None]:
        try:
            with spark_failures():
                frame = rows.frame(of_pass, requests)
        except PySparkException as error:
            if len(of_pass) == 1:
                return {}, {of_pass[0].aggregate.sql: explain(error)}
            half = len(of_pass) // 2
            return passes.merged(read(of_pass[:half]), read(of_pass[half:]))
        dates = passes.dates_of(of_pass)
        aggregates = list(dict.fromkeys(request.aggregate for request in of_pass))
        with jobs_called(spark, f"{dataset.ref.name}: {passes.describe_pass(aggregates)}"):
            if all(item.distinct for item in aggregates):
                return passes.count_distinct(frame, aggregates, dataset.schema, dates)
            if aggregates[0].over is not None:
                return aggregate_reshaped(frame, aggregates, dates)
            return aggregate(frame, [item.sql for item in aggregates], dates)

    # Beside something else, Sail takes ten microseconds for each key.
    fuses, most = sail_version(spark) is None, _most_compiled(spark)
    parts = list(passes.split_into_passes(dataset, aggregate_requests, most, fuses_keys=fuses))
    try:
        for of_pass, computed in zip(parts, side_by_side(spark, read, parts), strict=True):
            texts = dict.fromkeys(request.aggregate.sql for request in of_pass)
            answers.add_pass(passes.dates_of(of_pass), tuple(texts), *computed)
    except DatasetError as error:
        # Lookups may be the cause, and requests without any can still be computed.
        independent = [
            request for request in aggregate_requests if rows.lookups and not request.looks_into
        ]
        answers.broken.update(
            {
                request.aggregate.sql: error.in_one_line
                for request in aggregate_requests
                if request not in independent
            }
        )
        if independent:
            _scan_rows(replace(rows, lookups=()), independent, requests, answers)


def _most_compiled(spark: SparkSession) -> int:
    """The maximum number of aggregates in a pass; a session passed in has its own limit."""
    fields = spark.conf.get("spark.sql.codegen.maxFields", str(2 * MOST_COMPILED))
    return max(1, min(MOST_COMPILED, int(fields or 0) // 2))


def _aggregate_requests_of(
    parts: Mapping[MetricRequest, Iterable[Aggregate]],
    undecided: Mapping[MetricRequest, Aggregate | None],
    dataset: OpenDataset,
    schema: Schema,
) -> list[passes.AggregateRequest]:
    """The aggregates that requests need, each once, with the shortcuts that the types allow.

    :param undecided: by request, a count of the rows that its filter may be unable to decide.
    """
    aggregate_requests: dict[passes.AggregateRequest, None] = {}
    for request, aggregates in parts.items():
        for part in (*aggregates, *filter(None, [undecided.get(request)])):
            is_sound = part.shortcut is None or part.shortcut.fits(schema.type_of)
            item = part if is_sound else replace(part, shortcut=None)
            aggregate_requests[passes.AggregateRequest.of(request, item, dataset.ref)] = None
    return list(aggregate_requests)


def _answer(
    request: MetricRequest,
    aggregates: Sequence[Aggregate],
    undecided: Aggregate | None,
    types: RowTypes,
    answers: passes.ScanResults,
    scanned: Scanned,
) -> None:
    """The value of a request, computed from its aggregates, or why it has none.

    :param undecided: a count of the rows that its filter may be unable to decide.
    """
    parts = [item.sql for item in (*aggregates, *filter(None, [undecided]))]
    broken = [answers.broken[sql] for sql in parts if sql in answers.broken]
    if broken:
        scanned.failures[request] = broken[0]
        return
    scanned.origins[request] = answers.origin(request.date, parts)
    if request.date in answers.absent:
        scanned.values[request] = request.definition.empty
        return
    results = tuple(answers.values[request.date, sql] for sql in parts)
    if undecided is not None:
        *values, count = results
        if count:
            predicates.fail_undecided(request, int(count), types, scanned)
            return
        results = tuple(values)
    if has_overflown(aggregates, results, types.of_column):
        scanned.failures[request] = OVERFLOW
        return
    scanned.values[request], detail = _value_of(
        request, results, tuple(predicates.voids_of(request, types))
    )
    if detail is not None:
        scanned.details[request] = detail


def _value_of(
    request: MetricRequest, results: Sequence[MetricValue], voids: Sequence[str]
) -> tuple[MetricValue, str | None]:
    """The value of a request, and why it has none if NaN or infinity is the reason.

    :param results: of its aggregates, and of the counts of NaN in the columns `voids`.
    """
    width = len(results) - len(voids)
    pairs = zip(voids, results[width:], strict=True)
    nan_counts = {column: int(count or 0) for column, count in pairs}
    if any(nan_counts.values()):
        return None, schema_check.nan_detail(nan_counts)
    own = tuple(results[:width])
    if not all(map(is_finite, own)):
        return None, schema_check.INFINITE
    return request.definition.value(request.arguments, own), None


Known: TypeAlias = dict[Group, MetricValue]
"""The results of an aggregate by group. All groups on a date are one state, so that a window reads
earlier days from there: a JSON list of `[group, value]`, exact, and a string like other results."""


def _scan_groups(
    rows: _Rows, requests: Sequence[MetricRequest], cache: StateCache | None
) -> Scanned:
    """Computes valid requests that have a grouping: one pass for all with the same one."""
    by_grouping: dict[Grouping, list[MetricRequest]] = {}
    for request in requests:
        assert request.grouping is not None
        by_grouping.setdefault(request.grouping, []).append(request)
    scans = [_GroupedScan(rows, grouping, tuple(own)) for grouping, own in by_grouping.items()]
    answers = passes.ScanResults()
    aggregate_requests = [request for scan in scans for request in scan.aggregate_requests]
    if cache is not None:
        cache.recall(rows.dataset, rows.references, aggregate_requests, answers)
    missing = [request for request in aggregate_requests if request not in answers]
    stored = frozenset(answers.values)
    known = {key: _from_json(str(text)) for key, text in answers.values.items()}
    for results in side_by_side(rows.spark, lambda scan: scan.read(missing, answers.broken), scans):
        known.update(results)
    if cache is not None and missing:
        for (on, sql), values in known.items():
            if (on, sql) not in answers.values:
                answers.add(on, {sql: _to_json(values)}, Origin.SCAN)
        cache.keep(rows.dataset, rows.references, missing, answers)
    scanned = Scanned()
    for scan in scans:
        scan.answer(known, stored, answers.broken, scanned)
    return scanned


@dataclass(frozen=True)
class _GroupedScan:
    """The scan of a dataset by one grouping."""

    rows: _Rows
    grouping: Grouping
    requests: tuple[MetricRequest, ...]

    @property
    def dataset(self) -> OpenDataset:
        """The dataset whose rows it groups."""
        return self.rows.dataset

    @property
    def types(self) -> RowTypes:
        """The types of its columns."""
        return self.rows.types

    @cached_property
    def parts(self) -> dict[MetricRequest, tuple[Aggregate, ...]]:
        """The aggregates of each request."""
        return {request: predicates.aggregates_of(request, self.types) for request in self.requests}

    @cached_property
    def filters(self) -> dict[MetricRequest, tuple[Aggregate, ...]]:
        """For each filtered request, the number of rows of a group that it selects, and of those
        that it cannot decide, if any."""
        return {
            request: tuple(
                filter(
                    None,
                    (
                        rows_where(predicates.predicate_sql(request.where.node, self.types)),
                        predicates.undecided_rows(request.where, self.types),
                    ),
                )
            )
            for request in self.requests
            if request.where is not None
        }

    @cached_property
    def aggregate_requests(self) -> tuple[passes.AggregateRequest, ...]:
        """The aggregates to compute, each once, by the key of its state."""
        aggregate_requests: dict[passes.AggregateRequest, None] = {}
        for request, aggregates in self.parts.items():
            for part in (*aggregates, *self.filters.get(request, ())):
                item = replace(part, sql=self._key(part.sql), merge=None, shortcut=None)
                aggregate_requests[passes.AggregateRequest.of(request, item, self.dataset.ref)] = (
                    None
                )
        return tuple(aggregate_requests)

    def read(
        self, missing: Collection[passes.AggregateRequest], broken: dict[str, str]
    ) -> dict[tuple[date | None, str], Known]:
        """The results from the rows, by date and key; the reasons for failures go to `broken`."""
        wanted = set(missing)
        wanted_requests = [request for request in self.aggregate_requests if request in wanted]
        values: dict[tuple[date | None, str], Known] = {}
        for of_pass in passes.split_into_passes(self.dataset, wanted_requests):
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
        self, of_pass: Sequence[passes.AggregateRequest], keys: Sequence[str]
    ) -> tuple[dict[tuple[date | None, str], Known], dict[str, str]]:
        dates = passes.dates_of(of_pass)
        name, aggregates = self.dataset.ref.name, [request.aggregate for request in of_pass]
        sql = {key: key.removeprefix(self._prefix) for key in keys}
        columns = predicates.show_columns(self.grouping.columns)
        with jobs_called(
            self.rows.spark, f"{name}: {passes.describe_pass(aggregates)} for each {columns}"
        ):
            try:
                with spark_failures():
                    frame = self._frame(of_pass)
            except PySparkException as error:
                return {}, dict.fromkeys(keys, explain(error))
            items = {
                sql[aggregate.sql]: replace(aggregate, sql=sql[aggregate.sql])
                for aggregate in aggregates
            }
            by_key, failed = bisected(frame, [*items], partial(self._grouped, frame, dates, items))
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

    def _frame(self, of_pass: Sequence[passes.AggregateRequest]) -> DataFrame:
        frame = self.rows.frame(of_pass, self.requests)
        only = predicates.only_listed(self.grouping, self.types)
        return (
            frame if only is None else frame.where(predicates.predicate_sql(only.node, self.types))
        )

    def _grouped(
        self,
        frame: DataFrame,
        dates: Collection[date | None],
        items: Mapping[str, Aggregate],
        texts: Sequence[str],
    ) -> list[tuple[tuple[date | None, Group], tuple[MetricValue, ...]]]:
        """The values of the aggregates for each date and group that has rows, up to a few groups
        more than allowed, to detect that there are too many."""
        by_date = [quote_name(frames.DATE)] if len(dates) > 1 else []
        columns = [*by_date, *map(self._group_column, self.grouping.columns)]
        if items[texts[0]].over is None:
            grouped = frame.groupBy(*map(F.expr, columns)).agg(*map(F.expr, texts))
        else:
            grouped = passes.reshaped(frame, columns, [items[text] for text in texts])
        first, width = len(by_date), len(columns)
        rows = frames.collect(grouped.limit(self.grouping.most * len(dates) + 1), keys=width)
        (alone,) = dates if not by_date else (None,)
        return [
            ((frames.date_of(row[0]) if by_date else alone, row[first:width]), row[width:])
            for row in rows
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
        return predicates.too_many_groups(self.dataset.ref.name, self.grouping, crowded[0])

    @cached_property
    def _prefix(self) -> str:
        """The common prefix of the state keys of this grouping."""
        columns = ", ".join(map(quote_name, self.grouping.columns))
        only = predicates.only_listed(self.grouping, self.types)
        where = "" if only is None else f" where {predicates.predicate_sql(only.node, self.types)}"
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
                    predicates.fail_undecided(request, open_rows, self.types, scanned)
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
        voids = tuple(predicates.voids_of(request, self.types))
        types = tuple(map(self.types.of_column, self.grouping.columns))
        values = GroupValues(types=types)
        may_overflow = has_overflown(aggregates, (None, 1), self.types.of_column)
        by_column = [[column[group] for group in groups] for column in columns]
        is_plain = not voids and not any(float in set(map(type, column)) for column in by_column)
        for group, *several in zip(groups, *by_column, strict=True):
            results = tuple(several)
            if may_overflow and has_overflown(aggregates, results, self.types.of_column):
                is_hidden = reveals(request, {self.dataset.ref.name: self.dataset.ref.masked})
                shown = MASK if is_hidden else predicates.show_group(group)
                scanned.failures[request] = f"{OVERFLOW} ({shown})"
                return
            if is_plain:
                values.values[group] = request.definition.value(request.arguments, results)
                continue
            values.values[group], detail = _value_of(request, results, voids)
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
