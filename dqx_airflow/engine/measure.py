"""Measures what a plan asks for: opens its datasets, scans each once, runs its queries."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from dqx_airflow.engine.scan.dataset_scan import scan
from dqx_airflow.engine.scan.frames import References
from dqx_airflow.engine.scan.matching import run_matches
from dqx_airflow.engine.scan.sql_queries import run_queries
from dqx_airflow.engine.scan.states.cache import StateCache
from dqx_airflow.engine.session.concurrency import side_by_side
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.registry import Scan
from dqx_airflow.plan.model import Plan, Scanned, row_count
from dqx_airflow.plan.predicates import lookups_of
from dqx_airflow.plan.snapshots import snapshot_of
from dqx_airflow.values import DatasetRef, DatasetSnapshot

_log = logging.getLogger("dqx.gate")


def measure(
    spark: SparkSession,
    refs: Sequence[DatasetRef],
    plan: Plan,
    memory: StateCache | None = None,
) -> tuple[dict[str, OpenDataset], Scanned]:
    """The datasets that could be opened, by name, and what was found out about the requests.

    :param memory: what earlier runs found out; without it all is computed.
    """
    opened, unreadable = _open_all(spark, refs)
    measured = Scanned()
    for name, reason in unreadable.items():
        requests = [item for item in plan.requests if item.dataset == name]
        measured.failures.update(dict.fromkeys(requests, reason))
    references = References(opened, plan.date)

    def scan_one(dataset: OpenDataset) -> Scanned:
        name = dataset.ref.name
        requests = [item for item in plan.requests if item.dataset == name]
        lookups = [lookup for lookup in plan.lookups if lookup.dataset == name]
        return scan(spark, dataset, requests, lookups, references, memory)

    for scanned in side_by_side(spark, scan_one, tuple(opened.values())):
        measured.add(scanned)
    queries = [
        item
        for item in plan.requests
        if item.definition.scan is Scan.QUERY and item not in measured.failures
    ]
    measured.add(run_queries(spark, queries, opened, plan.date))
    matches = [
        item
        for item in plan.requests
        if item.definition.scan is Scan.MATCH and item not in measured.failures
    ]
    if matches:
        measured.add(run_matches(spark, matches, references, _rows_on_the_date(plan, measured)))
    for dataset in opened.values():
        _distrust_changed(dataset, measured)
    return opened, measured


def _rows_on_the_date(plan: Plan, measured: Scanned) -> dict[str, int]:
    """How many rows datasets have, where that was found out."""
    return {
        request.dataset: value
        for request, value in measured.values.items()
        if request in (row_count(request.dataset, None), row_count(request.dataset, plan.date))
        if isinstance(value, int)
    }


def _distrust_changed(dataset: OpenDataset, measured: Scanned) -> None:
    """Takes back what was found in files that are not the same any more."""
    change = dataset.change
    if change is None:
        return
    name = dataset.ref.name
    for request in (*measured.values, *measured.groups):
        references = {lookup.reference for lookup in lookups_of(request)}
        # A query sees all datasets.
        if name in {*request.datasets, *references} or request.definition.scan is Scan.QUERY:
            measured.values.pop(request, None)
            measured.groups.pop(request, None)
            measured.failures[request] = change


def snapshots(
    refs: Sequence[DatasetRef], opened: Mapping[str, OpenDataset], plan: Plan, measured: Scanned
) -> tuple[DatasetSnapshot, ...]:
    """What a report tells of the datasets that were measured."""
    told = []
    for ref in refs:
        dataset = opened.get(ref.name)
        if dataset is None:
            told.append(snapshot_of(ref, plan, measured))
            continue
        location, version, fields = dataset.location, dataset.version, dataset.fields
        told.append(
            snapshot_of(ref, plan, measured, location=location, version=version, fields=fields)
        )
    return tuple(told)


def _open_all(
    spark: SparkSession, refs: Sequence[DatasetRef]
) -> tuple[dict[str, OpenDataset], dict[str, str]]:
    """The datasets that could be opened, and why the others could not."""
    opened, unreadable = {}, {}
    for ref in refs:
        try:
            opened[ref.name] = open_dataset(spark, ref)
        except DatasetError as error:
            _log.error("%s", error)
            unreadable[ref.name] = error.in_one_line
    return opened, unreadable
