"""The states of earlier runs, and how they grow with new files."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property

from pyspark.sql import SparkSession

from dqx_airflow.engine.scan.collect import AggregateRequest, PartialState, ScanResults
from dqx_airflow.engine.scan.frames import ReferenceTables
from dqx_airflow.engine.scan.passes import has_few_rows
from dqx_airflow.engine.scan.states.fingerprints import (
    FileSnapshot,
    InputFiles,
    files_now,
    files_when_opened,
    scope_of,
)
from dqx_airflow.engine.session.spark_session import settings_of
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.listing import DataFile
from dqx_airflow.errors import StoreError
from dqx_airflow.results.states import State, StateStore
from dqx_airflow.values import Origin


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
            groups.setdefault((request.date, len(partial_states[request].added)), []).append(
                request
            )
    are_all = sum(map(len, groups.values())) == len(requests)
    if not are_all and has_few_rows(dataset, {request.date for request in requests}):
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

    Does neither for a session that does not expose its settings.
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
            self._scopes[name] = scope_of(dataset, self._settings or {}, self.spark.version)
        return self._scopes[name]

    def recall(
        self,
        dataset: OpenDataset,
        references: ReferenceTables,
        requests: Iterable[AggregateRequest],
        answers: ScanResults,
    ) -> None:
        """Adds results stored for exactly the current files, and partial results for some."""
        if self._settings is None:
            return
        wanted = {
            (request.date, request.aggregate.sql): (request, input_files)
            for request in requests
            if request not in answers
            and (input_files := self._before.inputs_of(request, dataset, references))
        }
        if not wanted:
            return
        dates = list(dict.fromkeys(on for on, _ in wanted))
        try:
            states = self.store.recall(self._scope_of(dataset), dates)
        except StoreError as error:
            _log.warning("stored states are not used: %s", error)
            return
        for state in states:
            expressions = [sql for sql in state.fingerprints if (state.date, sql) in wanted]
            valid = []
            for sql in expressions:
                request, input_files = wanted[state.date, sql]
                if input_files.fingerprint == state.fingerprints[sql]:
                    valid.append(sql)
                elif (partial := _partial_state(dataset, request, input_files, state)) is not None:
                    answers.partial_states[request] = partial
            if state.results is not None:
                results = {sql: state.results[sql] for sql in valid}
                answers.add(state.date, results, Origin.STATE)
            elif valid:
                answers.absent[state.date] = Origin.STATE

    def keep(
        self,
        dataset: OpenDataset,
        references: ReferenceTables,
        requests: Iterable[AggregateRequest],
        answers: ScanResults,
    ) -> None:
        """Stores results, unless files have changed meanwhile, or may have changed undetected."""
        if self._settings is None:
            return
        now = FileSnapshot(files_now, self._scope_of)
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


def _state(on: date | None, fingerprints: Mapping[str, str], answers: ScanResults) -> State:
    if on in answers.absent:
        return State(on, None, fingerprints)
    return State(on, {sql: answers.values[on, sql] for sql in fingerprints}, fingerprints)
