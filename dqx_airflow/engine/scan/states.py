"""The states of earlier runs, the results of aggregates over the files of a date: where they are
stored, how they grow with new files, and whether one describes the same bytes, read in the same
way (see `fingerprints`; without a fingerprint nothing is reused). The newest one of a scope, date
and aggregate is its state; older ones are obsolete.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from dqx_airflow.engine.scan.fingerprints import (
    FileSnapshot,
    InputFiles,
    files_now,
    files_when_opened,
    scope_of,
)
from dqx_airflow.engine.scan.frames import ReferenceTables
from dqx_airflow.engine.session.sail import engine_version
from dqx_airflow.engine.session.spark_session import settings_of
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.listing import DataFile
from dqx_airflow.errors import StoreError
from dqx_airflow.metrics.metric import Merge
from dqx_airflow.plan.passes import AggregateRequest, AggregateResults, dates_of
from dqx_airflow.results.query import StoredResults, equals
from dqx_airflow.results.schema import STATES, TABLES
from dqx_airflow.results.store import append, dated, open_or_create, tidy
from dqx_airflow.results.tables import ResultsRoot, committed, store_errors
from dqx_airflow.values import MetricValue, Origin
from dqx_airflow.values.exact import exact_text, parse_exact


@dataclass(frozen=True, slots=True)
class PartialState:
    """The result of an aggregate over all files of a date except those added since.

    :param spark_type: of the aggregated values.
    """

    result: MetricValue
    merge: Merge
    spark_type: str
    files: tuple[DataFile, ...]
    added: tuple[DataFile, ...]

    def merged(self, other: MetricValue) -> tuple[MetricValue] | None:
        """The result over all files, given the result over the added files; None if not exact."""
        merged_result = self.merge.merged(self.result, other)
        is_exact = all(
            self.merge.is_exact(self.spark_type, result) for result in (other, merged_result)
        )
        return (merged_result,) if is_exact else None


def complete(
    partial_states: Mapping[AggregateRequest, PartialState],
    requests: Iterable[AggregateRequest],
    added: AggregateResults,
    results: AggregateResults,
) -> None:
    """Merges partial results with the results over the added files. Aggregates whose results
    cannot be merged exactly remain open."""
    for request in requests:
        partial = partial_states[request]
        sql = request.aggregate.sql
        if sql in added.broken:
            results.broken[sql] = added.broken[sql]
            continue
        is_absent = request.date in added.absent
        merged = (partial.result,) if is_absent else partial.merged(added.values[request.date, sql])
        if merged is not None:
            results.add(request.date, {sql: merged[0]}, Origin.MERGED)


def added_file_passes(
    dataset: OpenDataset,
    requests: Sequence[AggregateRequest],
    partial_states: Mapping[AggregateRequest, PartialState],
) -> Iterator[tuple[Sequence[DataFile], list[AggregateRequest]]]:
    """The files of each pass over added files, and the aggregates that it completes.

    With few rows there is none if all files have to be read anyway: another pass costs more than
    reading these files again.
    """
    groups: dict[tuple[date | None, int], list[AggregateRequest]] = {}
    for request in requests:
        if request in partial_states:
            key = request.date, len(partial_states[request].added)
            groups.setdefault(key, []).append(request)
    are_all = sum(map(len, groups.values())) == len(requests)
    if not are_all and dataset.has_few_rows(dates_of(requests)):
        return
    growths: list[_Growth] = []
    for group in groups.values():
        part = partial_states[group[0]]
        growth = next((growth for growth in growths if growth.suits(part)), None)
        if growth is None:
            growths.append(growth := _Growth())
        growth.take(part, group)
    for growth in growths:
        yield list(growth.files), growth.requests


@dataclass(slots=True)
class _Growth:
    """Files that are read together: all of the aggregates lack all of them."""

    files: dict[DataFile, None] = field(default_factory=dict)
    requests: list[AggregateRequest] = field(default_factory=list)
    parts: list[PartialState] = field(default_factory=list)

    def suits(self, part: PartialState) -> bool:
        together = self.files.keys() | set(part.added)
        return all(
            together.intersection(state.files) == set(state.added) for state in (*self.parts, part)
        )

    def take(self, part: PartialState, requests: Sequence[AggregateRequest]) -> None:
        self.files |= dict.fromkeys(part.added)
        self.requests += requests
        self.parts.append(part)


_log = logging.getLogger("dqx.gate")

_SKEW_NS = 2_000_000_000
"""The maximum clock skew of an object store."""


@dataclass
class StateCache:
    """Recalls and stores the states of one run, which began `at` a timestamp.

    Does neither for a session that hides its settings.

    """

    spark: SparkSession
    store: StateStore
    run_id: str
    at: datetime
    _scopes: dict[str, str] = field(default_factory=dict)

    @cached_property
    def _settings(self) -> Mapping[str, str | None] | None:
        return settings_of(self.spark)

    @cached_property
    def _before(self) -> FileSnapshot:
        return FileSnapshot(files_when_opened, self._scope_of)

    def _scope_of(self, dataset: OpenDataset) -> str:
        name = dataset.ref.name
        if name not in self._scopes:
            self._scopes[name] = scope_of(dataset, self._settings or {}, engine_version(self.spark))
        return self._scopes[name]

    def recall(
        self,
        dataset: OpenDataset,
        references: ReferenceTables,
        requests: Iterable[AggregateRequest],
        answers: AggregateResults,
    ) -> dict[AggregateRequest, PartialState]:
        """Adds the results stored for exactly the current files; returns partial results, over all
        files but some that were added since."""
        partial_states: dict[AggregateRequest, PartialState] = {}
        if self._settings is None:
            return partial_states
        wanted = {
            (request.date, request.aggregate.sql): (request, input_files)
            for request in requests
            if request not in answers
            and (input_files := self._before.inputs_of(request, dataset, references))
        }
        if not wanted:
            return partial_states
        dates = list(dict.fromkeys(on for on, _ in wanted))
        try:
            states = self.store.recall(self._scope_of(dataset), dates)
        except StoreError as error:
            _log.warning("stored states are not used: %s", error)
            return partial_states
        for state in states:
            expressions = [sql for sql in state.fingerprints if (state.date, sql) in wanted]
            valid = []
            for sql in expressions:
                request, input_files = wanted[state.date, sql]
                if input_files.fingerprint == state.fingerprints[sql]:
                    valid.append(sql)
                elif (partial := _partial_state(dataset, request, input_files, state)) is not None:
                    partial_states[request] = partial
            if state.results is not None:
                results = {sql: state.results[sql] for sql in valid}
                answers.add(state.date, results, Origin.STATE)
            elif valid:
                answers.absent[state.date] = Origin.STATE
        return partial_states

    def keep(
        self,
        dataset: OpenDataset,
        references: ReferenceTables,
        requests: Iterable[AggregateRequest],
        answers: AggregateResults,
    ) -> None:
        """Stores results, unless files have changed meanwhile, or may have changed undetected."""
        if self._settings is None:
            return
        requests = list(requests)
        dates = {request.date for request in requests} | {references.date}
        now = FileSnapshot(partial(files_now, dates=dates), self._scope_of)
        begun_ns = int(self.at.timestamp() * 1_000_000_000) - _SKEW_NS
        by_date: dict[date | None, dict[str, str]] = {}
        for request in requests:
            before = self._before.inputs_of(request, dataset, references)
            after = now.inputs_of(request, dataset, references)
            is_same = before and after and before.fingerprint == after.fingerprint
            if request in answers and before and is_same and before.is_older_than(begun_ns):
                by_date.setdefault(request.date, {})[request.aggregate.sql] = before.fingerprint
        states = [_state(on, fingerprints, answers) for on, fingerprints in by_date.items()]
        try:
            self.store.keep(self._scope_of(dataset), self.run_id, self.at, states)
        except StoreError as error:
            _log.warning("states are not stored: %s", error)


def _partial_state(
    dataset: OpenDataset, request: AggregateRequest, input_files: InputFiles, state: State
) -> PartialState | None:
    """The partial result in an older state, or None if it is of no use."""
    merge, column = request.aggregate.merge, request.aggregate.column
    if merge is None or dataset.read_files is None or state.results is None:
        return None
    added = input_files.added_since(state.fingerprints[request.aggregate.sql])
    if added is None:
        return None
    result = state.results[request.aggregate.sql]
    spark_type = "bigint" if column is None else dataset.schema.type_of(column)
    is_exact = merge.is_exact(spark_type, result)
    return (
        PartialState(result, merge, spark_type, input_files.own.files, added) if is_exact else None
    )


def _state(on: date | None, fingerprints: Mapping[str, str], answers: AggregateResults) -> State:
    if on in answers.absent:
        return State(on, None, fingerprints)
    return State(on, {sql: answers.values[on, sql] for sql in fingerprints}, fingerprints)


_EXACT = "exact"


@dataclass(frozen=True, slots=True)
class State:
    """The results of aggregates, by their SQL, over the rows of a date.

    `results` is None if the date had no rows at all. `fingerprints` are per aggregate: those that
    look into other datasets also depend on the files of these.
    """

    date: date | None
    results: Mapping[str, MetricValue] | None
    fingerprints: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StateStore:
    """The states below a results root."""

    location: ResultsRoot

    def recall(self, scope: str, dates: Sequence[date | None]) -> tuple[State, ...]:
        """The newest states of a scope for some dates.

        :raises StoreError: the store exists and cannot be read.
        """
        results = StoredResults(self.location.root, self.location.storage_options)
        days = ", ".join(f"DATE '{on}'" for on in dates if on)
        conditions = [f'"dataset_date" IN ({days})'] if days else []
        conditions += ['"dataset_date" IS NULL'] if None in dates else []
        where = [equals("scope", scope), f"({' OR '.join(conditions)})"]
        columns = ("dataset_date", "aggregate", "result", "fingerprint")
        return tuple(_states(results.select(STATES, columns, where, 'ORDER BY "stored_at"')))

    def keep(self, scope: str, run_id: str, at: datetime, states: Iterable[State]) -> None:
        """Appends states.

        :raises StoreError: the store cannot be written.
        """
        rows = [
            {
                "run_id": run_id,
                "scope": scope,
                "dataset_date": state.date,
                "aggregate": aggregate,
                "result": None
                if state.results is None
                else json.dumps(plain_result(state.results[aggregate])),
                "fingerprint": fingerprint,
                "stored_at": at,
            }
            for state in states
            for aggregate, fingerprint in state.fingerprints.items()
        ]
        if not rows:
            return
        definition = TABLES[STATES]
        with store_errors(self.location, "write"):
            added = dated(rows, definition)

            def commit() -> DeltaTable:
                table = open_or_create(self.location, definition)
                append(table, added)
                return table

            table = committed(commit)
        tidy(self.location, definition, table)


def plain_result(result: MetricValue) -> Any:
    """A result as a part of JSON: an exact number that is not an integer as `{"exact": "0.1"}`."""
    return {_EXACT: exact_text(result)} if isinstance(result, Fraction) else result


def result_in(plain: Any) -> MetricValue:
    """The result from the output of `plain_result`."""
    value: MetricValue = parse_exact(plain[_EXACT]) if isinstance(plain, dict) else plain
    return value


def _states(rows: Iterable[Mapping[str, object]]) -> Iterable[State]:
    """One state for each date; of the rows of an aggregate the last one counts."""
    newest: dict[object, dict[str, Mapping[str, object]]] = {}
    for row in rows:
        newest.setdefault(row["dataset_date"], {})[str(row["aggregate"])] = row
    for on, by_aggregate in newest.items():
        present = {sql: row for sql, row in by_aggregate.items() if row["result"] is not None}
        absent = {sql: row for sql, row in by_aggregate.items() if row["result"] is None}
        for group in (present, absent):
            if group:
                results = {
                    sql: result_in(json.loads(str(row["result"]))) for sql, row in present.items()
                }
                yield State(
                    on if isinstance(on, date) else None,
                    results if group is present else None,
                    {sql: str(row["fingerprint"]) for sql, row in group.items()},
                )
