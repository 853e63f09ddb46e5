"""The scan of one dataset: stored results first, then one pass over the rows that are needed.

What cannot be computed is found from the schema before the pass, or else by the pass itself; all
other requests still get their values. Nothing is read that the transaction log answers, or that an
earlier run found in the same files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from fractions import Fraction

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from dqx_airflow.engine.scan.collect import AggregateRequest, ScanResults
from dqx_airflow.engine.scan.frames import ReferenceTables, rows_of_dates, with_named_columns
from dqx_airflow.engine.scan.fused_pass import (
    PassResult,
    aggregate,
    aggregate_reshaped,
    count_distinct,
    merged,
)
from dqx_airflow.engine.scan.grouped_scan import scan_groups
from dqx_airflow.engine.scan.passes import (
    ask_log,
    describe_pass,
    scan_in_two_phases,
    split_into_passes,
    take_shortcuts,
    with_sound_shortcut,
)
from dqx_airflow.engine.scan.states import StateCache, added_file_passes
from dqx_airflow.engine.session.concurrency import jobs_called, side_by_side
from dqx_airflow.engine.session.spark_errors import explain, spark_failures
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.footers import NO_DRIFT, SchemaDrift, drift_of
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.metric import Aggregate, Scan
from dqx_airflow.metrics.spark_values import is_finite
from dqx_airflow.metrics.sql import OVERFLOW, has_overflown
from dqx_airflow.plan.model import Lookup, MetricRequest, Scanned
from dqx_airflow.plan.passes import MOST_COMPILED
from dqx_airflow.plan.predicates import aggregates_of, fail_undecided, undecided_rows, voids_of
from dqx_airflow.plan.row_values import RowTypes
from dqx_airflow.plan.schema_check import (
    Schema,
    answer_from_schema,
    columns_of,
    names_only_columns,
    objection_to,
    objection_to_lookup,
    void_with_nan,
    void_without_end,
)


def scan(
    spark: SparkSession,
    dataset: OpenDataset,
    requests: Sequence[MetricRequest],
    lookups: Sequence[Lookup],
    references: ReferenceTables,
    cache: StateCache | None = None,
) -> Scanned:
    """Computes the requests of one dataset, except for queries.

    :param lookups: those of this dataset.
    :param references: the datasets that they look into; a missing one could not be opened, and
        fails the requests that need it.
    :param cache: the states of earlier runs; without it everything is computed.
    """
    scanned = Scanned()
    read = dataset.schema
    drift = _drift(spark, dataset, read, requests, references)
    schema = replace(read, unread=drift.unread)
    _answer_from_columns(read, drift, requests, scanned)
    _answer_from_log(dataset, requests, scanned)
    requests = [request for request in requests if request.definition.scan is Scan.FLAT]
    schemas = {name: reference.schema for name, reference in references.opened.items()}
    reasons = {
        lookup: objection_to_lookup(lookup, schema, schemas.get(lookup.reference))
        for lookup in lookups
    }
    usable = [lookup for lookup, reason in reasons.items() if reason is None]
    unusable = {lookup: reason for lookup, reason in reasons.items() if reason is not None}
    possible = []
    for request in requests:
        reason = objection_to(request, schema, unusable)
        if reason is not None:
            scanned.failures[request] = reason
        elif request.definition.is_of_texts and dataset.texts is None:
            scanned.values[request] = request.definition.empty
        else:
            possible.append(request)
    types = RowTypes(schema.type_of)
    grouped = [request for request in possible if request.grouping is not None]
    if grouped:
        scanned.add(scan_groups(spark, dataset, grouped, usable, references, types, cache))
    possible = [request for request in possible if request.grouping is None]
    parts = {request: aggregates_of(request, types) for request in possible}
    undecided = {
        request: undecided_rows(request.where, types) for request in possible if request.where
    }
    aggregate_requests = _aggregate_requests_of(parts, undecided, dataset, schema)
    answers = ScanResults()
    ask_log(dataset, aggregate_requests, answers)
    if cache is not None:
        cache.recall(dataset, references, aggregate_requests, answers)
    missing = [request for request in aggregate_requests if request not in answers]
    if missing:
        for files, news in added_file_passes(dataset, missing, answers.partial_states):
            added = ScanResults()
            part = dataset.of_files(files)
            _scan_rows(spark, part, news, possible, usable, references, added)
            answers.complete(news, added)
        rest = [request for request in missing if request not in answers]
        rest = [request for request in rest if request.aggregate.sql not in answers.broken]
        first, later = scan_in_two_phases(rest, dataset, schema.type_of, answers)
        _scan_rows(spark, dataset, first, possible, usable, references, answers)
        take_shortcuts(later, schema.type_of, answers)
        late = [request for request in later if request not in answers]
        _scan_rows(spark, dataset, late, possible, usable, references, answers)
        if cache is not None:
            cache.keep(dataset, references, missing, answers)
    for request, aggregates in parts.items():
        _answer(request, aggregates, undecided.get(request), types, answers, scanned)
    return scanned


def _drift(
    spark: SparkSession,
    dataset: OpenDataset,
    schema: Schema,
    requests: Sequence[MetricRequest],
    references: ReferenceTables,
) -> SchemaDrift:
    """The schema drift of the files, if a request is about their columns."""
    is_asked = any(
        request.definition.scan is Scan.SCHEMA
        or (request.definition.scan is not Scan.LOG and not names_only_columns(request, schema))
        for request in requests
    )
    return drift_of(spark, dataset, references.date) if is_asked else NO_DRIFT


def _answer_from_columns(
    schema: Schema, drift: SchemaDrift, requests: Iterable[MetricRequest], scanned: Scanned
) -> None:
    """Answers requests about the columns themselves: those in the files of the date."""
    date_schema = drift.in_schema(schema)
    for request in requests:
        if request.definition.scan is not Scan.SCHEMA:
            continue
        answer_from_schema(request, date_schema, scanned)
        places = filter(None, map(schema.find, columns_of(request, schema)))
        difference = next(filter(None, (drift.difference(place.path[0]) for place in places)), None)
        if difference:
            scanned.details[request] = difference


def _answer_from_log(
    dataset: OpenDataset, requests: Iterable[MetricRequest], scanned: Scanned
) -> None:
    """Answers the age of the data from the transaction log."""
    for request in requests:
        if request.definition.scan is not Scan.LOG:
            continue
        ask = dataset.log.committed_at if dataset.log is not None else dataset.last_commit
        committed = ask() if ask is not None else None
        if committed is None:
            unknown = "its log has no commit that changed the data of its newest version"
            reason = "it is not a Delta table" if ask is None else unknown
            scanned.failures[request] = f"dataset '{dataset.ref.name}': {reason}"
        else:
            age = datetime.now(timezone.utc) - committed
            scanned.values[request] = Fraction(age // timedelta(microseconds=1), 10**6)


def _scan_rows(
    spark: SparkSession,
    dataset: OpenDataset,
    aggregate_requests: Sequence[AggregateRequest],
    requests: Sequence[MetricRequest],
    lookups: Sequence[Lookup],
    references: ReferenceTables,
    answers: ScanResults,
) -> None:
    """Adds results from the rows, or the reason if files cannot be read."""

    def frame_for(of_pass: Sequence[AggregateRequest]) -> DataFrame:
        frame = rows_of_dates(dataset, {request.date for request in of_pass})
        looked_into = {name for request in of_pass for name in request.looks_into}
        wanted = [lookup for lookup in lookups if lookup.reference in looked_into]
        return with_named_columns(spark, frame, dataset, requests, wanted, references)

    def read(of_pass: Sequence[AggregateRequest]) -> PassResult[date | None]:
        try:
            with spark_failures():
                frame = frame_for(of_pass)
        except PySparkException as error:
            if len(of_pass) == 1:
                return {}, {of_pass[0].aggregate.sql: explain(error)}
            half = len(of_pass) // 2
            return merged(read(of_pass[:half]), read(of_pass[half:]))
        dates = {request.date for request in of_pass}
        aggregates = list(dict.fromkeys(request.aggregate for request in of_pass))
        with jobs_called(spark, f"{dataset.ref.name}: {describe_pass(aggregates)}"):
            if all(item.distinct for item in aggregates):
                return count_distinct(frame, aggregates, dataset.schema, dates)
            if all(item.over for item in aggregates):
                return aggregate_reshaped(frame, aggregates, dates)
            return aggregate(frame, [item.sql for item in aggregates], dates)

    parts = list(split_into_passes(dataset, aggregate_requests, _most_compiled(spark)))
    try:
        for of_pass, computed in zip(parts, side_by_side(spark, read, parts), strict=True):
            texts = dict.fromkeys(request.aggregate.sql for request in of_pass)
            answers.add_pass({request.date for request in of_pass}, tuple(texts), *computed)
    except DatasetError as error:
        # Lookups may be the cause, and requests without any can still be computed.
        independent = [
            request for request in aggregate_requests if lookups and not request.looks_into
        ]
        answers.broken.update(
            {
                request.aggregate.sql: error.in_one_line
                for request in aggregate_requests
                if request not in independent
            }
        )
        if independent:
            _scan_rows(spark, dataset, independent, requests, (), references, answers)


def _most_compiled(spark: SparkSession) -> int:
    """The maximum number of aggregates in a pass; a session passed in has its own limit."""
    fields = spark.conf.get("spark.sql.codegen.maxFields", str(2 * MOST_COMPILED))
    return max(1, min(MOST_COMPILED, int(fields or 0) // 2))


def _aggregate_requests_of(
    parts: Mapping[MetricRequest, Iterable[Aggregate]],
    undecided: Mapping[MetricRequest, Aggregate | None],
    dataset: OpenDataset,
    schema: Schema,
) -> list[AggregateRequest]:
    """The aggregates that requests need, each once, with the shortcuts that the types allow.

    :param undecided: by request, a count of the rows that its filter may be unable to decide.
    """
    aggregate_requests: dict[AggregateRequest, None] = {}
    for request, aggregates in parts.items():
        for part in (*aggregates, *filter(None, [undecided.get(request)])):
            item = with_sound_shortcut(part, schema.type_of)
            aggregate_requests[AggregateRequest.of(request, item, dataset.ref)] = None
    return list(aggregate_requests)


def _answer(
    request: MetricRequest,
    aggregates: Sequence[Aggregate],
    undecided: Aggregate | None,
    types: RowTypes,
    answers: ScanResults,
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
            fail_undecided(request, int(count), types, scanned)
            return
        results = tuple(values)
    if has_overflown(aggregates, results, types.of_column):
        scanned.failures[request] = OVERFLOW
        return
    columns = tuple(voids_of(request, types))
    width = len(results) - len(columns)
    pairs = zip(columns, results[width:], strict=True)
    nan_counts = {column: int(count or 0) for column, count in pairs}
    if any(nan_counts.values()):
        void_with_nan(request, nan_counts, scanned)
    elif not all(map(is_finite, results[:width])):
        void_without_end(request, scanned)
    else:
        scanned.values[request] = request.definition.value(request.arguments, results[:width])
