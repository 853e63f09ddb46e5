"""The states of earlier runs, the results of aggregates over the files of a date: where they are
stored, how they grow with new files, and whether one describes the same bytes, read in the same
way. The newest one of a scope, date and aggregate is its state; older ones are obsolete.

Spark has a hundred ways to ask for the time: `now()`, `current_date` without parentheses,
`TIMESTAMP'now'`, `at <= 'today'`, `` `localtimestamp` ``, a variable, a function of the catalog. So
this is an allowlist: a filter is fixed if each of its tokens is known, that is, if it compares
columns of the dataset with plain literals. For any other filter, no stored state is used.

Added files are recognised as well: the fingerprint of the earlier files is a link in the chain that
leads to that of all files. Without a fingerprint nothing is reused: neither for catalog tables, nor
for paths whose files cannot be listed.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from fractions import Fraction
from functools import cached_property
from operator import attrgetter
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import SparkSession

import dqx_airflow
from dqx_airflow.engine.scan.frames import ReferenceTables
from dqx_airflow.engine.session.sail import engine_version
from dqx_airflow.engine.session.spark_session import settings_of
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.listing import DataFile, files_at
from dqx_airflow.errors import StoreError
from dqx_airflow.metrics.metric import Merge
from dqx_airflow.plan.passes import AggregateRequest, AggregateResults, dates_of
from dqx_airflow.results.query import StoredResults, equals
from dqx_airflow.results.schema import STATES, TABLES
from dqx_airflow.results.store import append, dated, open_or_create, tidy
from dqx_airflow.results.tables import ResultsRoot, committed, store_errors
from dqx_airflow.values import DatasetRef, MetricValue, Origin
from dqx_airflow.values.exact import exact_text, parse_exact
from dqx_airflow.values.files import table_rows


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
        partial, sql = partial_states[request], request.aggregate.sql
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
            groups.setdefault((request.date, len(partial_states[request].added)), []).append(
                request
            )
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


def _state(on: date | None, fingerprints: Mapping[str, str], answers: AggregateResults) -> State:
    if on in answers.absent:
        return State(on, None, fingerprints)
    return State(on, {sql: answers.values[on, sql] for sql in fingerprints}, fingerprints)


_TOKEN = re.compile(
    r"""\s*(?:
    (?P<text>'[^'\\$]*')
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:BD|[LSYDF])?(?!\w))
    |(?P<quoted>`[^`$]+`)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<sign><=>|<=|>=|<>|!=|==|--|/\*|[=<>+*/%.,()-])
    )\s*""",
    re.VERBOSE | re.ASCII | re.IGNORECASE,
)
"""A backslash or a dollar may begin an escape or a substitution: strings with one are rejected."""

_WORDS = frozenset({"and", "or", "not", "in", "is", "null", "between", "like", "true", "false"})
_TYPED = frozenset({"date", "timestamp", "timestamp_ntz", "timestamp_ltz"})
_WITH_OPERAND = _WORDS - {"null", "true", "false"}
_COMMENTS = ("--", "/*")
_CLOCK = re.compile(r"'\s*(epoch|now|today|tomorrow|yesterday)", re.IGNORECASE)
"""Strings that Spark reads as a time when a timestamp is compared with them."""
_FUNCTIONS = frozenset(
    {*(f"current_{name}" for name in ("date", "time", "timestamp", "timezone", "user"))}
    | {"current_catalog", "current_database", "current_schema", "localtime", "localtimestamp"}
    | {"user", "session_user", "system_user"}
)
"""Columns with these names may be read as functions, which need no parentheses."""


def is_fixed(condition: str, columns: Collection[str]) -> bool:
    """True for a filter that depends only on the columns of a row; False if that is not certain.

    :param columns: the columns of the dataset.
    """
    known = {name.casefold() for name in columns}
    position, before, kind_before = 0, "", ""
    while position < len(condition):
        token = _TOKEN.match(condition, position)
        if token is None or token.lastgroup is None:
            return False
        position, kind = token.end(), token.lastgroup
        part = token[kind]
        word = part.casefold()
        if kind == "text":
            if _CLOCK.match(part) or not _may_follow(before, kind_before):
                return False
        elif kind in ("quoted", "word"):
            is_literal = kind == "word" and (
                word in _WORDS or (word in _TYPED and condition[position : position + 1] == "'")
            )
            name = part.strip("`")
            is_field = before == "."
            is_column = name.casefold() in known and name.casefold() not in _FUNCTIONS
            if not (is_literal or is_field or is_column):
                return False
        elif part in _COMMENTS or (part == "(" and not _may_open(before, kind_before)):
            return False
        before, kind_before = word, kind
    return True


def _may_open(before: str, kind: str) -> bool:
    """False if a parenthesis opens what may be a function call."""
    if kind == "word":
        return before in _WITH_OPERAND
    return kind in ("", "sign") and before != ")"


def _may_follow(before: str, kind: str) -> bool:
    """False for a string that continues the token before it: `'n' 'ow'` and `X'6E6F77'`."""
    return kind in ("", "sign") or (kind == "word" and before in _WITH_OPERAND | _TYPED)


@dataclass(frozen=True, slots=True)
class LookedInto:
    """A dataset of a lookup that a result depends on: how it is read, on which date, and its
    files."""

    scope: str
    date: date | None
    chain: Chain

    @property
    def fingerprint(self) -> str:
        text = f"{self.scope} {self.date} {self.chain.fingerprint}"
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class InputFiles:
    """The files that a result depends on: the files of its dataset, and of the datasets of its
    lookups."""

    own: Chain
    looked_into: tuple[LookedInto, ...]

    @property
    def fingerprint(self) -> str:
        return " ".join(
            (self.own.fingerprint, *(reference.fingerprint for reference in self.looked_into))
        )

    def added_since(self, fingerprint: str) -> tuple[DataFile, ...] | None:
        """The files added to the dataset; None if anything else has changed."""
        of_dataset, *looked_into = fingerprint.split(" ")
        is_same = looked_into == [reference.fingerprint for reference in self.looked_into]
        return self.own.added_since(of_dataset) if is_same else None

    def is_older_than(self, moment_ns: int) -> bool:
        """False if a file may have been rewritten since a timestamp and look the same."""
        return self.own.is_older_than(moment_ns) and all(
            reference.chain.is_older_than(moment_ns) for reference in self.looked_into
        )


@dataclass(slots=True)
class FileSnapshot:
    """The files of datasets at one point in time.

    :param listed: returns the files at a path.
    :param scope: returns how a dataset is read.
    """

    listed: Callable[[OpenDataset], Sequence[DataFile] | None]
    scope: Callable[[OpenDataset], str]
    _files: dict[str, Sequence[DataFile] | None] = field(default_factory=dict)
    _chains: dict[tuple[str, date | None], Chain | None] = field(default_factory=dict)

    def inputs_of(
        self, request: AggregateRequest, dataset: OpenDataset, references: ReferenceTables
    ) -> InputFiles | None:
        """All files that an aggregate depends on; None if they are unknown."""
        if not request.is_storable:
            return None
        own_chain = self._chain(dataset, request.date)
        if own_chain is None:
            return None
        looked_into = []
        for name in request.looks_into:
            reference = references.opened[name]
            on = references.date if reference.ref.date_column else None
            chain = self._chain(reference, on)
            if chain is None:
                return None
            looked_into.append(LookedInto(self.scope(reference), on, chain))
        return InputFiles(own_chain, tuple(looked_into))

    def _chain(self, dataset: OpenDataset, on: date | None) -> Chain | None:
        name = dataset.ref.name
        if name not in self._files:
            self._files[name] = self.listed(dataset)
        if (name, on) not in self._chains:
            self._chains[name, on] = chain_of(dataset, on, self._files[name])
        return self._chains[name, on]


def files_when_opened(dataset: OpenDataset) -> Sequence[DataFile] | None:
    """The files at the time a dataset was opened."""
    return dataset.files


def files_now(dataset: OpenDataset) -> Sequence[DataFile] | None:
    """The current files."""
    return None if dataset.files is None else files_at(dataset.location)


STATE_FORMAT = 4
"""Incremented whenever a state of the same aggregate and files changes its form or meaning."""

WITHOUT_EFFECT: dict[str, str] = dict(table_rows(__package__, "states.txt", "without effect"))
"""Why a dataset setting does not affect states. All other settings do."""

_COARSE_NS = 1_000_000_000
"""Object stores report times in whole seconds."""


@dataclass(frozen=True)
class Chain:
    """The files that may hold the rows of a date, oldest first, and everything else that affects a
    state.

    Each link is the fingerprint of the files up to one of them: the first of none, the last of all.
    """

    ground: str
    files: tuple[DataFile, ...]

    @property
    def fingerprint(self) -> str:
        return next(reversed(self._links))

    def added_since(self, fingerprint: str) -> tuple[DataFile, ...] | None:
        """The files added since a fingerprint; None if anything else has changed."""
        start = self._links.get(fingerprint)
        return None if start is None else self.files[start:]

    def is_older_than(self, moment_ns: int) -> bool:
        """False if a file may have been rewritten since a timestamp and look the same: its time is
        in whole seconds and not before that timestamp."""
        return all(
            (time := file.changed_ns or file.modified_ns) % _COARSE_NS
            or time + _COARSE_NS <= moment_ns
            for file in self.files
        )

    @cached_property
    def _links(self) -> dict[str, int]:
        """The number of files of each link."""
        digest = hashlib.sha256(self.ground.encode())
        links = {digest.hexdigest(): 0}
        for number, file in enumerate(self.files, start=1):
            digest.update(_json(_OF_FILE(file)).encode())
            links[digest.hexdigest()] = number
        return links


_OF_FILE = attrgetter(*(field.name for field in fields(DataFile)))


def scope_of(dataset: OpenDataset, settings: Mapping[str, str | None], spark_version: str) -> str:
    """The part of a fingerprint that does not depend on files: the location of a dataset, how it is
    read, and by which engine."""
    return _digest(
        {
            "state format": STATE_FORMAT,
            "versions": [dqx_airflow.__version__, spark_version],
            "settings": dict(settings),
            "location": dataset.location,
            "read by": _read_by(dataset.ref),
        }
    )


def _read_by(ref: DatasetRef) -> dict[str, Any]:
    """The settings that affect how a dataset is read: all of them, except for those listed."""
    names = (field.name for field in fields(ref) if field.name not in WITHOUT_EFFECT)
    return {name: getattr(ref, name) for name in names}


def chain_of(
    dataset: OpenDataset, on: date | None, listed: Sequence[DataFile] | None
) -> Chain | None:
    """The chain of the files of a date; None if they are unknown, or if a filter may select other
    rows tomorrow.

    :param listed: the files at the path of a dataset without a transaction log.
    """
    condition = dataset.ref.filter
    if condition is not None and not is_fixed(condition, dataset.struct.names):
        return None
    version = None
    if dataset.log is not None:
        logged = dataset.log.files_held(on)
        if logged is None:
            return None
        files = logged
        # Rows deleted in place leave the files as they are, and the log does not list them.
        version = dataset.log.version if dataset.log.features else None
    elif dataset.files is not None and listed is not None:
        files = dataset.files_on(on, listed)
    else:
        return None
    columns = [(column.name, column.type) for column in dataset.fields]
    by_age = sorted(files, key=lambda file: (file.modified_ns, file.path))
    return Chain(_json([columns, version]), tuple(by_age))


def fingerprint_of(dataset: OpenDataset, on: date | None, opened_at: datetime) -> str | None:
    """The digest that identifies the rows of a date in a dataset, however often they are read; None
    if unknown, also for files that may have been rewritten since and look the same.

    :param opened_at: when its files were listed, or before.
    """
    chain = chain_of(dataset, on if dataset.dates is not None else None, dataset.files)
    if chain is None or not chain.is_older_than(int(opened_at.timestamp() * 1_000_000_000)):
        return None
    read = {"location": dataset.location, "read by": _read_by(dataset.ref)}
    return _digest({**read, "files": chain.fingerprint})


def _digest(content: Any) -> str:
    return hashlib.sha256(_json(content).encode()).hexdigest()


def _json(content: Any) -> str:
    return json.dumps(content, default=str, sort_keys=True)


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
