"""Measures the requests of plans: opens their datasets, scans each once, runs their queries."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from typing import NamedTuple

from pyspark.sql import SparkSession

from dqx_airflow.dql.watches import Watched, claims_on
from dqx_airflow.engine.proof import sql_on_sail
from dqx_airflow.engine.proof.engine_key import KnownEngine, known_engine
from dqx_airflow.engine.proof.objection import objection_to_engine
from dqx_airflow.engine.proof.operations import measured_as
from dqx_airflow.engine.scan.dataset_scan import scan
from dqx_airflow.engine.scan.frames import ReferenceTables
from dqx_airflow.engine.scan.matching import run_matches
from dqx_airflow.engine.scan.queries import run_queries
from dqx_airflow.engine.scan.rows import log_passes
from dqx_airflow.engine.scan.states import StateCache
from dqx_airflow.engine.session.concurrency import side_by_side
from dqx_airflow.engine.session.sail import INSTEAD, sail_version
from dqx_airflow.engine.session.spark_session import objection_to_sql
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.footers import has_drift
from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.metric import Scan
from dqx_airflow.plan.masks import snapshot_of, without_values
from dqx_airflow.plan.model import MetricRequest, Plan, Scanned, joined, row_count
from dqx_airflow.plan.passes import match_passes, query_passes, shared_requests
from dqx_airflow.plan.predicates import lookups_of
from dqx_airflow.values import DatasetRef, DatasetSnapshot

_log = logging.getLogger("dqx.gate")


def measure(
    spark: SparkSession, refs: Sequence[DatasetRef], plan: Plan, cache: StateCache | None = None
) -> tuple[dict[str, OpenDataset], Scanned]:
    """The datasets that could be opened, by name, and the results of the requests.

    :param cache: the states of earlier runs; without it everything is computed.
    """
    opened, (scanned,) = measure_together(spark, refs, [plan], cache)
    return opened, scanned


def measure_together(
    spark: SparkSession,
    refs: Sequence[DatasetRef],
    plans: Sequence[Plan],
    cache: StateCache | None = None,
    engine: KnownEngine | None = None,
) -> tuple[dict[str, OpenDataset], tuple[Scanned, ...]]:
    """The datasets that could be opened, by name, and for each plan the results of `measure`.

    One scan of each dataset serves all plans. What depends on the judged date, and what fails in
    that scan, is measured again for each date alone.

    :param refs: the datasets of all plans.
    :param cache: as for `measure`.
    :param engine: the proofs for this engine: requests with traits in doubt are not measured. None
        for the proofs in the package.
    :raises SparkError: there is no proof, and this engine needs one.
    """
    engine = engine or known_engine(spark)
    objection = objection_to_sql(spark, ansi=plans[0].ansi)
    opened, unreadable = _open_all(spark, refs, objection)
    found = _refused(plans, opened, objection, engine, sail_version(spark))
    date_columns = {name: dataset.ref.date_column for name, dataset in opened.items()}
    shared = shared_requests(plans, date_columns)
    wanted = [request for request in shared if request not in found]
    if wanted:
        dates = [plan.date for plan in plans]
        found.add(_measure_shared(spark, opened, wanted, dates, cache))
    measured: dict[_Scope, Scanned] = {}
    for scope, plans_of_scope in _by_scope(plans).items():
        whole = joined(plans_of_scope)
        names = scope.reads or {ref.name for ref in refs}
        datasets = {name: dataset for name, dataset in opened.items() if name in names}
        known = found.of(whole.requests)
        measured[scope] = measure_plan(
            spark, datasets, whole, known, unreadable=unreadable, cache=cache
        )
    for dataset in opened.values():
        _distrust_changed(dataset, measured.values())
    return opened, tuple(measured[_Scope.of(plan)].of(plan.requests) for plan in plans)


_UNJOINED_ARRAYS = re.compile(r"array<.*(struct<|\b(float|double)\b)")
"""Types with arrays that are rewritten so that equal values have one form."""


class _Scope(NamedTuple):
    """The date and the datasets of plans that are measured together."""

    date: date
    reads: frozenset[str]

    @classmethod
    def of(cls, plan: Plan) -> _Scope:
        return cls(plan.date, frozenset(plan.reads))


def _by_scope(plans: Iterable[Plan]) -> dict[_Scope, list[Plan]]:
    by_scope: dict[_Scope, list[Plan]] = {}
    for plan in plans:
        by_scope.setdefault(_Scope.of(plan), []).append(plan)
    return by_scope


def _refused(
    plans: Sequence[Plan],
    opened: Mapping[str, OpenDataset],
    objection: str | None,
    engine: KnownEngine,
    sail: str | None,
) -> Scanned:
    """The requests that are not measured on this engine, with the reasons.

    :param objection: the reason for not evaluating SQL that a user wrote; None if it is evaluated.
    :param sail: the version of Sail if that is the engine.
    """
    refused = Scanned()
    requests = dict.fromkeys(request for plan in plans for request in plan.requests)
    if objection is not None:
        for request in requests:
            if request.definition.is_sql:
                refused.failures[request] = objection
    seen = measured_as(opened)
    for undated, dated in _by_metric(requests).items():
        doubt = None if sail is None else _objection_to_lookups(sail, undated, opened)
        if sail is not None and undated.definition.is_sql and objection is None:
            doubt = doubt or sql_on_sail.objection_to_request(sail, undated, seen)
        if engine.doubts:
            doubt = objection_to_engine(undated, seen, engine) or doubt
        if doubt is not None:
            refused.failures.update(dict.fromkeys(dated, doubt))
    return refused


def _objection_to_lookups(
    sail: str, request: MetricRequest, opened: Mapping[str, OpenDataset]
) -> str | None:
    """The reason for not looking up values on Sail, which cannot plan a join by such arrays: the
    error would be one of all assertions in the scan."""
    for lookup in lookups_of(request):
        sides = ((lookup.dataset, lookup.column), (lookup.reference, lookup.reference_column))
        for name, column in sides:
            place = opened[name].schema.find(column) if name in opened else None
            if place is not None and _UNJOINED_ARRAYS.search(place.type):
                return f"Sail {sail} looks up no '{column}' ({place.type}): {INSTEAD}"
    return None


def _by_metric(requests: Iterable[MetricRequest]) -> dict[MetricRequest, list[MetricRequest]]:
    """The requests by what they ask of any date: no engine computes one date otherwise than
    another."""
    by_metric: dict[MetricRequest, list[MetricRequest]] = {}
    for request in requests:
        by_metric.setdefault(replace(request, date=None), []).append(request)
    return by_metric


def _measure_shared(
    spark: SparkSession,
    opened: Mapping[str, OpenDataset],
    requests: Sequence[MetricRequest],
    dates: Sequence[date],
    cache: StateCache | None,
) -> Scanned:
    """The values of requests that do not depend on the judged date.

    :param dates: the judged dates.
    """
    references = ReferenceTables(opened, dates[0])

    def scan_one(dataset: OpenDataset) -> Scanned:
        own = [request for request in requests if request.dataset == dataset.ref.name]
        if not own or has_drift(spark, dataset, set(dates)):
            return Scanned()
        return scan(spark, dataset, own, references, cache)

    shared = Scanned()
    for scanned in side_by_side(spark, scan_one, tuple(opened.values())):
        shared.add(scanned)
    # A date whose rows cannot be read, or fail an expression, fails the others in the scan too, but
    # not alone.
    return shared.of(request for request in requests if request not in shared.failures)


def measure_plan(
    spark: SparkSession,
    opened: Mapping[str, OpenDataset],
    plan: Plan,
    known: Scanned,
    *,
    unreadable: Mapping[str, str] | None = None,
    cache: StateCache | None = None,
) -> Scanned:
    """Measures the requests of a plan for its date, not the ones for other dates.

    :param known: earlier results, to which the new ones are added.
    :param unreadable: by dataset, the reason why it could not be opened.
    :param cache: as for `measure`.
    """
    measured = known
    wanted = [request for request in plan.requests if request not in known]
    for request in wanted:
        for name in request.datasets:
            if unreadable is not None and name in unreadable:
                measured.failures[request] = unreadable[name]
                break
    references = ReferenceTables(opened, plan.date)

    def scan_one(dataset: OpenDataset) -> Scanned:
        requests = [request for request in wanted if request.dataset == dataset.ref.name]
        if not requests:
            return Scanned()
        return scan(spark, dataset, requests, references, cache)

    for scanned in side_by_side(spark, scan_one, tuple(opened.values())):
        measured.add(scanned)
    queries = _unfailed(wanted, Scan.QUERY, measured)
    if queries:
        log_passes(query_passes(queries))
        measured.add(run_queries(spark, queries, opened, plan.date))
    matches = _unfailed(wanted, Scan.MATCH, measured)
    if matches:
        for dataset in opened.values():
            log_passes(match_passes(matches, plan.date, dataset.ref))
        measured.add(run_matches(spark, matches, references, _rows_on_the_date(plan, measured)))
    return measured


def _unfailed(
    requests: Sequence[MetricRequest], kind: Scan, measured: Scanned
) -> list[MetricRequest]:
    """The requests of a kind of scan that have not failed."""
    of_kind = [request for request in requests if request.definition.scan is kind]
    return [request for request in of_kind if request not in measured.failures]


def _rows_on_the_date(plan: Plan, measured: Scanned) -> dict[str, int]:
    """The number of rows on the judged date, by dataset, where it is known."""
    return {
        request.dataset: value
        for request, value in measured.values.items()
        if request in (row_count(request.dataset, None), row_count(request.dataset, plan.date))
        if isinstance(value, int)
    }


def _distrust_changed(dataset: OpenDataset, scanned: Iterable[Scanned]) -> None:
    """Discards the results of a dataset whose files have changed since it was opened."""
    change = dataset.change
    if change is None:
        return
    name = dataset.ref.name
    for measured in scanned:
        for request in (*measured.values, *measured.groups):
            references = {lookup.reference for lookup in lookups_of(request)}
            if name in {*request.datasets, *references}:
                measured.values.pop(request, None)
                measured.groups.pop(request, None)
                measured.failures[request] = change


def watched_columns(
    spark: SparkSession, refs: Iterable[DatasetRef]
) -> dict[str, tuple[Watched, ...]]:
    """The assertions of `watch` on columns, by dataset, for the watched datasets that can be
    read."""
    columns = {}
    for ref in refs:
        if ref.name not in columns:
            with suppress(DatasetError):  # the scan reports it
                types = open_dataset(spark, ref).schema.types
                columns[ref.name] = claims_on(types, ref)
    return columns


def snapshots(
    refs: Sequence[DatasetRef], opened: Mapping[str, OpenDataset], plan: Plan, measured: Scanned
) -> tuple[DatasetSnapshot, ...]:
    """The snapshots of the measured datasets, for a report."""
    described = []
    for ref in refs:
        snapshot = snapshot_of(ref, plan, measured)
        dataset = opened.get(ref.name)
        if dataset is not None:
            snapshot = replace(
                snapshot,
                location=dataset.location,
                version=dataset.version,
                fields=dataset.fields,
                snapshot=dataset.snapshot,
                branch=dataset.branch,
            )
        described.append(snapshot)
    return tuple(described)


def _open_all(
    spark: SparkSession, refs: Sequence[DatasetRef], objection: str | None
) -> tuple[dict[str, OpenDataset], dict[str, str]]:
    """The datasets that could be opened, and the reasons for the others, both by name.

    :param objection: the reason for not evaluating SQL that a user wrote; None if it is evaluated.
    """
    opened = {}
    unreadable = {}
    for ref in refs:
        try:
            if objection is not None and (ref.filter or (ref.query and ref.conn_id is None)):
                part = "filter" if ref.filter else "query"
                raise DatasetError(f"the {part} of dataset '{ref.name}': {objection}")
            opened[ref.name] = open_dataset(spark, ref)
        except DatasetError as error:
            unreadable[ref.name] = without_values(error.in_one_line, ref.masked)
            _log.error("%s", unreadable[ref.name] if ref.masked else error)
    return opened, unreadable
