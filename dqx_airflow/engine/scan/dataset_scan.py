"""The scan of one dataset, in four steps: collect the aggregates, split them into passes, run the
passes, answer the requests. The planner, `plan.passes`, does the first two.

Errors are found from the schema before the passes, or else by the passes themselves; all other
requests still get their values. Nothing is read that the transaction log answers, or that an
earlier run found in the same files. Requests by groups have passes for each grouping.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from fractions import Fraction

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dqx_airflow.engine.scan import frames
from dqx_airflow.engine.scan.aggregates import (
    PassResult,
    aggregate,
    aggregate_reshaped,
    count_distinct,
    describe_pass,
    merged,
)
from dqx_airflow.engine.scan.groups import scan_groups
from dqx_airflow.engine.scan.rows import DatasetRows, limits_of, log_passes
from dqx_airflow.engine.scan.states import PartialState, StateCache, added_file_passes, complete
from dqx_airflow.engine.session.concurrency import jobs_called, side_by_side
from dqx_airflow.engine.session.spark_errors import explain, spark_failures
from dqx_airflow.engine.sources.broken_lines import located
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.footers import NO_DRIFT, SchemaDrift, drift_of
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.metric import Scan
from dqx_airflow.plan import predicates, schema_check
from dqx_airflow.plan.answers import answer
from dqx_airflow.plan.model import Lookup, MetricRequest, Scanned
from dqx_airflow.plan.passes import (
    AggregateRequest,
    AggregateResults,
    Needed,
    Pass,
    answer_from_log,
    collect,
    dates_of,
    passes_for,
    plan_late_passes,
    plan_passes,
)
from dqx_airflow.plan.row_types import RowTypes
from dqx_airflow.plan.schema_check import Schema


def scan(
    spark: SparkSession,
    dataset: OpenDataset,
    requests: Sequence[MetricRequest],
    references: frames.ReferenceTables,
    cache: StateCache | None = None,
) -> Scanned:
    """Computes the requests of one dataset, except for queries and comparisons of rows.

    :param references: the datasets of their lookups. A missing dataset could not be opened, and
        fails the requests that need it.
    :param cache: the states of earlier runs; without it everything is computed.
    """
    scanned = Scanned()
    drift = _drift(spark, dataset, requests, references)
    schema = replace(dataset.schema, unread=drift.unread)
    lookups, impossible = _lookups(requests, schema, references)
    _answer_without_rows(dataset, requests, drift, references.date, scanned)
    computable = _computable(dataset, requests, schema, impossible, scanned)
    types = RowTypes(schema.type_of)
    grouped: list[Needed] = []
    for needed in collect(dataset.ref, computable, types):
        if needed.grouping is None:
            rows = DatasetRows(spark, dataset, lookups, references, types, tuple(needed.parts))
            _scan_rows(rows, needed, cache, scanned)
        else:
            grouped.append(needed)
    if grouped:
        rows = DatasetRows(spark, dataset, lookups, references, types, tuple(computable))
        scanned.add(scan_groups(rows, grouped, cache))
    return scanned


def _answer_without_rows(
    dataset: OpenDataset,
    requests: Sequence[MetricRequest],
    drift: SchemaDrift,
    on: date,
    scanned: Scanned,
) -> None:
    """Answers the requests about the columns of the dataset, and about its transaction log."""
    schema_on_date = drift.in_schema(dataset.schema)
    about_columns = [one for one in requests if one.definition.scan is Scan.SCHEMA]
    misread = _misread_files(dataset, on) if about_columns else None
    for request in about_columns:
        if misread is None:
            _answer_from_columns(request, schema_on_date, dataset.schema, drift, scanned)
        else:
            scanned.failures[request] = misread
    for request in requests:
        if request.definition.scan is Scan.LOG:
            _answer_from_log(request, dataset, scanned)


def _misread_files(dataset: OpenDataset, on: date) -> str | None:
    """The problem if a file of a date has other columns than those as which it is read."""
    if dataset.check_files is None:
        return None
    try:
        dataset.check_files({on})
    except DatasetError as error:
        return error.in_one_line
    return None


def _computable(
    dataset: OpenDataset,
    requests: Iterable[MetricRequest],
    schema: Schema,
    impossible: Mapping[Lookup, str],
    scanned: Scanned,
) -> list[MetricRequest]:
    """The requests whose values are computed from rows; answers the others.

    :param impossible: the reasons for lookups that are not possible.
    """
    computable = []
    for request in requests:
        if request.definition.scan is not Scan.FLAT:
            continue
        reason = schema_check.objection_to(request, schema, impossible)
        if reason is not None:
            scanned.failures[request] = reason
        elif request.definition.is_of_texts and dataset.texts is None:
            scanned.values[request] = request.definition.empty
        else:
            computable.append(request)
    return computable


def _lookups(
    requests: Sequence[MetricRequest], schema: Schema, references: frames.ReferenceTables
) -> tuple[tuple[Lookup, ...], dict[Lookup, str]]:
    """The possible lookups of some requests, and the reason for each that is not possible."""
    usable: list[Lookup] = []
    unusable: dict[Lookup, str] = {}
    for lookup in predicates.lookups_of(*requests):
        reference = references.opened.get(lookup.reference)
        reference_schema = None if reference is None else reference.schema
        reason = schema_check.objection_to_lookup(lookup, schema, reference_schema)
        if reason is None:
            usable.append(lookup)
        else:
            unusable[lookup] = reason
    return tuple(usable), unusable


def _scan_rows(
    rows: DatasetRows, needed: Needed, cache: StateCache | None, scanned: Scanned
) -> None:
    """Splits the aggregates of requests without a grouping into passes, runs the passes, and
    answers the requests."""
    dataset = rows.dataset
    results = AggregateResults()
    partial_states: dict[AggregateRequest, PartialState] = {}
    answer_from_log(dataset, needed.aggregate_requests, results)
    if cache is not None:
        wanted = needed.aggregate_requests
        partial_states = cache.recall(dataset, rows.references, wanted, results)
    missing = [request for request in needed.aggregate_requests if request not in results]
    if missing:
        _read_added_files(rows, needed, missing, partial_states, results)
        _run_passes(rows, needed, results)
        if cache is not None:
            cache.keep(dataset, rows.references, missing, results)
    answer(needed, results, scanned)


def _run_passes(rows: DatasetRows, needed: Needed, results: AggregateResults) -> None:
    """Plans the passes for the aggregates without a result, and runs them: first those on which
    the late ones depend."""
    of_column = rows.types.of_column
    limits = limits_of(rows.spark)
    passes = plan_passes(needed, rows.dataset, results, of_column, limits)
    _run([one for one in passes if not one.is_late], rows, needed, results)
    late = [one for one in passes if one.is_late]
    if late:
        late = plan_late_passes(needed, late, rows.dataset, results, of_column, limits)
        _run(late, rows, needed, results)


def _read_added_files(
    rows: DatasetRows,
    needed: Needed,
    missing: Sequence[AggregateRequest],
    partial_states: dict[AggregateRequest, PartialState],
    results: AggregateResults,
) -> None:
    """Completes partial states: reads the files added since, and adds the merged results."""
    if not partial_states:
        return
    for files, news in added_file_passes(rows.dataset, missing, partial_states):
        of_files = replace(rows, dataset=rows.dataset.of_files(files))
        added = AggregateResults()
        passes = passes_for(needed, news, of_files.dataset, limits_of(rows.spark))
        _run(passes, of_files, needed, added)
        complete(partial_states, news, added, results)


def _run(
    passes: Sequence[Pass], rows: DatasetRows, needed: Needed, results: AggregateResults
) -> None:
    """Adds the results of passes, or the reason if files cannot be read."""
    log_passes(passes)

    def read(scan_pass: Pass) -> PassResult[date | None]:
        return _read(rows, scan_pass.aggregates)

    try:
        computed = list(side_by_side(rows.spark, read, passes))
    except DatasetError as error:
        _run_without_lookups(passes, rows, needed, results, error)
        return
    for scan_pass, (by_date, broken) in zip(passes, computed, strict=True):
        texts = tuple(dict.fromkeys(one.aggregate.sql for one in scan_pass.aggregates))
        results.add_pass(dates_of(scan_pass.aggregates), texts, by_date, broken)


def _run_without_lookups(
    passes: Sequence[Pass],
    rows: DatasetRows,
    needed: Needed,
    results: AggregateResults,
    error: DatasetError,
) -> None:
    """Adds the results of the aggregates without lookups, and the error for the others: a lookup
    may be its cause."""
    independent = []
    problem = located(rows.dataset.ref, error.in_one_line)
    for request in (request for scan_pass in passes for request in scan_pass.aggregates):
        if rows.lookups and not request.looks_into:
            independent.append(request)
        else:
            results.broken[request.aggregate.sql] = problem
    if independent:
        alone = replace(rows, lookups=())
        again = passes_for(needed, independent, rows.dataset, limits_of(rows.spark))
        _run(again, alone, needed, results)


def _read(rows: DatasetRows, requests: Sequence[AggregateRequest]) -> PassResult[date | None]:
    """Reads one pass. If its frame fails, the requests are halved until the failing request is
    alone."""
    try:
        with spark_failures():
            frame = rows.frame(requests)
    except PySparkException as error:
        if len(requests) == 1:
            return {}, {requests[0].aggregate.sql: explain(error)}
        half = len(requests) // 2
        return merged(_read(rows, requests[:half]), _read(rows, requests[half:]))
    dates = dates_of(requests)
    aggregates = list(dict.fromkeys(request.aggregate for request in requests))
    title = f"{rows.dataset.ref.name}: {describe_pass(aggregates)}"
    with jobs_called(rows.spark, title):
        if all(item.distinct for item in aggregates):
            return count_distinct(frame, aggregates, rows.dataset.schema, dates)
        if aggregates[0].over is not None:
            return aggregate_reshaped(frame, aggregates, dates)
        return aggregate(frame, [item.sql for item in aggregates], dates)


def _drift(
    spark: SparkSession,
    dataset: OpenDataset,
    requests: Sequence[MetricRequest],
    references: frames.ReferenceTables,
) -> SchemaDrift:
    """The schema drift of the files, if a request is about their columns."""
    is_asked = any(
        request.definition.scan is Scan.SCHEMA
        or (
            request.definition.scan is not Scan.LOG
            and not schema_check.names_only_columns(request, dataset.schema)
        )
        for request in requests
    )
    return drift_of(spark, dataset, references.date) if is_asked else NO_DRIFT


def _answer_from_columns(
    request: MetricRequest,
    schema_on_date: Schema,
    schema: Schema,
    drift: SchemaDrift,
    scanned: Scanned,
) -> None:
    """Answers a request about the columns themselves, from the columns in the files of the date."""
    schema_check.answer_from_schema(request, schema_on_date, scanned)
    for column in schema_check.columns_of(request, schema):
        place = schema.find(column)
        difference = None if place is None else drift.difference(place.path[0])
        if difference:
            scanned.details[request] = difference
            return


def _answer_from_log(request: MetricRequest, dataset: OpenDataset, scanned: Scanned) -> None:
    """Answers the age of the data from the transaction log."""
    committed_at = dataset.log.committed_at if dataset.log is not None else dataset.last_commit
    committed = committed_at() if committed_at is not None else None
    if committed is not None:
        age = datetime.now(timezone.utc) - committed
        scanned.values[request] = Fraction(age // timedelta(microseconds=1), 10**6)
        return
    reason = "its log has no commit that changed the data of its newest version"
    if committed_at is None:
        reason = "it is not a Delta table"
    scanned.failures[request] = f"dataset '{dataset.ref.name}': {reason}"
