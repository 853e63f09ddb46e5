"""The passes over the rows of a dataset: one planner for a run, `dql explain` and coverage.

1. collect: `collect` lists the aggregates that requests need, each once for a date.
2. split: `plan_passes` decides which of them are read together, by the size of the dataset.
3. run: `engine.scan.dataset_scan` reads each pass, and then the late ones that are still needed.
4. answer: it computes the value of each request from the results of its aggregates.

With few rows, everything is one pass, up to a hundred columns and a few thousand aggregates,
because a pass is cheaper than starting another job. Aggregates that are not over the rows
themselves have passes of their own. With many rows, distinct values are counted separately, a day
that only serves as a baseline is not read for the aggregates of the target date, and no pass has
more aggregates than Spark compiles. No pass has more columns than Java compiles.
An aggregate that the extremes of a column may answer is late: it is read only if they do not.

Beside other aggregates, `count(DISTINCT ...)` makes Spark carry all of them through a shuffle of
every key, and several of them multiply the rows. Keys that should be unique are counted by a hash:
if no hash occurs twice, no key does. If one does, the keys are counted exactly.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import date
from enum import Enum
from types import MappingProxyType
from typing import Protocol

from dqx_airflow.metrics.builtin.values import rows_where
from dqx_airflow.metrics.metric import Aggregate, Frequencies, Scan, Statistic, Steps, TypeOf
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.plan.columns_read import columns_of, spark_sql_of
from dqx_airflow.plan.groupings import only_listed
from dqx_airflow.plan.masks import reveals_parts
from dqx_airflow.plan.model import Grouping, MetricRequest, Plan
from dqx_airflow.plan.predicates import (
    UNTYPED,
    aggregates_of,
    lookups_of,
    predicate_sql,
    undecided_rows,
)
from dqx_airflow.plan.row_types import RowTypes
from dqx_airflow.plan.schema_check import (
    Schema,
    is_about_rows,
    objection_to,
    objection_to_lookup,
    shared_matches,
)
from dqx_airflow.values import DatasetRef, MetricValue, Origin

MOST_ROWS_FUSED = 250_000
"""Up to this many rows, one pass over everything is cheaper than starting another job."""

MOST_BYTES_FUSED = 4_000_000
"""Files up to this size, in bytes, have few rows whatever their format."""

MOST_COMPILED = 250
"""The maximum number of aggregates in a pass over many rows. Spark compiles two fields for each, up
to `spark.sql.codegen.maxFields`; several compiled passes are faster than one that is interpreted.
"""

MOST_COLUMNS = 100
"""The maximum number of columns that a pass reads. One method that Spark generates reads all of
them, and Java only interprets a method of more than 8,000 bytes: from about 130 columns on, a pass
takes four times as long for each of them. Two passes are as fast over a thousand rows, too.
"""

MOST_FUSED = 2_500
"""The maximum number of aggregates in a pass over few rows: Spark's planning time grows faster than
their number, and its stack is limited."""

MOST_DISTINCT = 50
"""The maximum number of columns or keys whose distinct values one pass counts: Spark copies the
rows for each of them."""

_LEAST_WASTE = 0.5
"""Days are read separately if one pass would waste at least this share of its work."""


def are_few(rows: int) -> bool:
    """True for a number of rows that one pass reads for everything."""
    return rows <= MOST_ROWS_FUSED


def are_small(size: int) -> bool:
    """True for files that have few rows, by their size in bytes."""
    return size <= MOST_BYTES_FUSED


class PassKind(Enum):
    """The kind of a pass; its value is the reason for a separate pass."""

    ROWS = f"each row is read once, for all metrics of up to {MOST_COLUMNS} columns"
    EVERYTHING = "few rows: all metrics share a pass, also those that count distinct values"
    KEYS = (
        "keys need a shuffle: one pass counts the hashes of all keys, and repeated hashes are "
        "counted exactly"
    )
    VALUES = "distinct values need a shuffle of their own"
    FREQUENCIES = "values are counted first: one pass for each list of columns and each filter"
    STEPS = "rows are sorted, because each is compared with the previous one"
    MATCHED = "rows of two datasets are compared: their keys and values are shuffled once"
    QUERY = "a query in the suite runs as a separate SELECT"


class KnownDataset(Protocol):
    """A dataset before its rows are read: the facts on which its passes depend."""

    @property
    def ref(self) -> DatasetRef:
        """The reference to the dataset in the gate."""

    @property
    def schema(self) -> Schema | None:
        """Its columns; None if they are not known yet."""

    def has_few_rows(self, dates: Collection[date | None]) -> bool:
        """True if the rows of the dates are known to be few."""

    def answers_of_log(
        self, aggregates: Iterable[Aggregate], on: date | None
    ) -> Mapping[str, MetricValue]:
        """The exact results that a transaction log has for a date, by the SQL of the aggregate."""


@dataclass(frozen=True, slots=True)
class UnknownDataset:
    """A dataset of which only the name is known: it is planned as if it had many rows."""

    ref: DatasetRef
    schema: None = None

    def has_few_rows(self, dates: Collection[date | None]) -> bool:
        """False: nothing is known."""
        return False

    def answers_of_log(
        self, aggregates: Iterable[Aggregate], on: date | None
    ) -> Mapping[str, MetricValue]:
        """Nothing: there is no log to read."""
        return {}


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """The limits of an engine: `most_compiled` aggregates in a pass over many rows, and whether it
    `fuses_keys`, that is, counts the keys of few rows beside other aggregates."""

    most_compiled: int = MOST_COMPILED
    fuses_keys: bool = True


SPARK = EngineLimits()


@dataclass(frozen=True, slots=True)
class AggregateRequest:
    """An aggregate over the rows of a date. `looks_into` are the datasets of its lookups.

    Results that may change over the same rows, and those that reveal masked columns, are not
    `is_storable`.
    """

    date: date | None
    aggregate: Aggregate
    looks_into: tuple[str, ...] = ()
    is_storable: bool = True

    @classmethod
    def of(cls, request: MetricRequest, aggregate: Aggregate, ref: DatasetRef) -> AggregateRequest:
        """The request for an aggregate that a metric of a dataset needs."""
        looks_into = tuple(dict.fromkeys(lookup.reference for lookup in lookups_of(request)))
        # SQL written by the user may call rand() or current_date().
        is_storable = request.metric != "sql" and not (
            ref.masked and reveals_parts(request, {ref.name: ref.masked})
        )
        return cls(request.date, aggregate, looks_into, is_storable)


def dates_of(requests: Iterable[AggregateRequest]) -> set[date | None]:
    """The dates of aggregate requests; only None if a dataset has no dates."""
    return {request.date for request in requests}


@dataclass(slots=True)
class AggregateResults:
    """The results of aggregates: values by date and SQL, dates without rows, and reasons for
    failures."""

    values: dict[tuple[date | None, str], MetricValue] = field(default_factory=dict)
    absent: dict[date | None, Origin] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    _origins: dict[tuple[date | None, str], Origin] = field(default_factory=dict)

    def __contains__(self, request: AggregateRequest) -> bool:
        return request.date in self.absent or (request.date, request.aggregate.sql) in self.values

    def add(self, on: date | None, results: Mapping[str, MetricValue], origin: Origin) -> None:
        """Adds results for a date, by the SQL of their aggregates."""
        for sql, value in results.items():
            self.values[on, sql] = value
            self._origins[on, sql] = origin
        if on is not None and results.get("count(1)") == 0:
            self.absent[on] = origin

    def add_pass(
        self,
        dates: Iterable[date | None],
        texts: Sequence[str],
        by_date: Mapping[date | None, Mapping[str, MetricValue]],
        broken: Mapping[str, str],
    ) -> None:
        """Adds the results of a pass over some dates that do not all need all of it. Results known
        for a date stay.

        :param texts: the SQL of the aggregates of the pass.
        :param by_date: the results of each date that has rows.
        :param broken: the reason for each aggregate that failed.
        """
        self.broken.update(broken)
        for on in dates:
            if on in by_date:
                results = by_date[on].items()
                new = {sql: value for sql, value in results if (on, sql) not in self.values}
                self.add(on, new, Origin.SCAN)
            elif len(broken) < len(texts):
                self.absent[on] = Origin.SCAN

    def origin(self, on: date | None, texts: Iterable[str]) -> Origin:
        """The origin of a value that is computed from several aggregates."""
        if on in self.absent:
            return self.absent[on]
        return Origin.most_expensive(self._origins[on, sql] for sql in texts) or Origin.LOG


@dataclass(frozen=True, slots=True)
class Needed:
    """The aggregates that requests of one dataset with one grouping need, for columns of some
    `types`.

    `parts` are the aggregates of each request; `filters` count, for a request with a filter, the
    rows that show whether the filter selects any row and can decide all of them. `requests_of` has
    each aggregate once, with the requests that need it.
    """

    dataset: str
    grouping: Grouping | None
    types: RowTypes
    parts: Mapping[MetricRequest, tuple[Aggregate, ...]]
    filters: Mapping[MetricRequest, tuple[Aggregate, ...]]
    requests_of: Mapping[AggregateRequest, tuple[MetricRequest, ...]]

    @property
    def aggregate_requests(self) -> tuple[AggregateRequest, ...]:
        """The aggregates to compute, each once for a date."""
        return tuple(self.requests_of)


def collect(
    ref: DatasetRef, requests: Iterable[MetricRequest], types: RowTypes | None = None
) -> tuple[Needed, ...]:
    """The aggregates that requests of a dataset need: those without a grouping first.

    :param requests: of the dataset; requests that a pass over its rows does not answer are ignored.
    :param types: of its columns; None if they are not known yet.
    """
    by_grouping: dict[Grouping | None, list[MetricRequest]] = {}
    for request in requests:
        if request.dataset == ref.name and request.definition.scan is Scan.FLAT:
            by_grouping.setdefault(request.grouping, []).append(request)
    groupings = sorted(by_grouping, key=lambda grouping: grouping is not None)
    return tuple(_needed(ref, grouping, by_grouping[grouping], types) for grouping in groupings)


def _needed(
    ref: DatasetRef,
    grouping: Grouping | None,
    requests: Sequence[MetricRequest],
    types: RowTypes | None,
) -> Needed:
    """The aggregates that requests of a dataset with one grouping need."""
    known = types or UNTYPED
    parts = {request: aggregates_of(request, known) for request in requests}
    filters = {
        request: tuple(_filter_counts(request, known))
        for request in requests
        if request.where is not None
    }
    needed_by: dict[AggregateRequest, dict[MetricRequest, None]] = {}
    for request in requests:
        for part in (*parts[request], *filters.get(request, ())):
            aggregate = _with_valid_shortcut(part, types)
            if grouping is not None:
                key = state_key(grouping, part.sql, known)
                aggregate = replace(aggregate, sql=key, merge=None, shortcut=None)
            needed = AggregateRequest.of(request, aggregate, ref)
            needed_by.setdefault(needed, {})[request] = None
    requests_of = {needed: tuple(metrics) for needed, metrics in needed_by.items()}
    return Needed(ref.name, grouping, known, parts, filters, requests_of)


def _filter_counts(request: MetricRequest, types: RowTypes) -> Iterator[Aggregate]:
    """Counts that validate the filter of a request: in groups, of the rows that it selects; and of
    the rows that it cannot decide."""
    assert request.where is not None
    if request.grouping is not None:
        yield rows_where(predicate_sql(request.where.node, types))
    undecided = undecided_rows(request.where, types)
    if undecided is not None:
        yield undecided


def _with_valid_shortcut(aggregate: Aggregate, types: RowTypes | None) -> Aggregate:
    """The aggregate, without its shortcut if the types of the columns do not allow it."""
    if aggregate.shortcut is None or types is None or aggregate.shortcut.fits(types.of_column):
        return aggregate
    return replace(aggregate, shortcut=None)


def state_key(grouping: Grouping, sql: str, types: RowTypes) -> str:
    """The key of stored results of an aggregate in groups: the columns and rows of the groups, then
    its SQL."""
    return f"{state_prefix(grouping, types)}{sql}"


def state_prefix(grouping: Grouping, types: RowTypes) -> str:
    """The beginning of the `state_key` of all aggregates of a grouping."""
    columns = ", ".join(map(quote_name, grouping.columns))
    only = only_listed(grouping, types)
    where = "" if only is None else f" where {predicate_sql(only.node, types)}"
    return f"by {columns}{where}: "


@dataclass(frozen=True, slots=True)
class Pass:
    """One read of the rows of some `dates`, or of all rows if there are none.

    `aggregates` are computed in it, for metric requests, of which those in `reading` read columns:
    counting all rows reads none. `texts` are their SQL, or the query. A late pass is read only for
    what shortcuts have left open.
    """

    dataset: str
    kind: PassKind
    reading: tuple[MetricRequest, ...]
    dates: tuple[date, ...]
    texts: tuple[str, ...]
    aggregates: tuple[AggregateRequest, ...] = ()
    grouping: Grouping | None = None
    is_late: bool = False

    @property
    def unmerged(self) -> int:
        """The number of its aggregates whose results over parts of the rows cannot be merged."""
        if not self.aggregates:
            return len(self.texts)
        whole = {one.aggregate.sql for one in self.aggregates if one.aggregate.merge is None}
        return len(whole)


def plan_passes(
    needed: Needed,
    dataset: KnownDataset,
    results: AggregateResults,
    type_of: TypeOf | None = None,
    limits: EngineLimits = SPARK,
) -> list[Pass]:
    """The passes for all aggregates without a result: those to read now, then the late ones.

    Adds to the results whatever the log of the dataset and shortcuts answer.

    :param results: the known results, such as the stored ones of earlier runs.
    :param type_of: the types of the columns; None if they are not known: no shortcut is taken yet.
    """
    unknown = _unknown(needed.aggregate_requests, results)
    tried = _try_shortcuts(unknown, dataset, results, type_of)
    first = _unknown(unknown, results)
    late = list[AggregateRequest]()
    if len(first) > MOST_COMPILED or not dataset.has_few_rows(dates_of(first)):
        first, late = _deferred(first, tried)
    return [
        *passes_for(needed, first, dataset, limits),
        *_late(passes_for(needed, late, dataset, limits)),
    ]


def _unknown(
    requests: Iterable[AggregateRequest], results: AggregateResults
) -> list[AggregateRequest]:
    """The aggregates that have neither a result nor a reason for having none."""
    return [
        request
        for request in requests
        if request not in results and request.aggregate.sql not in results.broken
    ]


def _late(passes: Iterable[Pass]) -> list[Pass]:
    return [replace(one, is_late=True) for one in passes]


def plan_late_passes(
    needed: Needed,
    late: Iterable[Pass],
    dataset: KnownDataset,
    results: AggregateResults,
    type_of: TypeOf,
    limits: EngineLimits = SPARK,
) -> list[Pass]:
    """The late passes once more, for the aggregates that shortcuts have not answered either.

    :param results: the results so far, of the first passes too; answers of shortcuts are added.
    """
    wanted = [request for one in late for request in one.aggregates]
    take_shortcuts(wanted, type_of, results)
    still_open = [request for request in wanted if request not in results]
    return _late(passes_for(needed, still_open, dataset, limits))


@dataclass(frozen=True, slots=True)
class DatasetReads:
    """The passes over a dataset in a run without stored results, and the SQL of the aggregates that
    its transaction log answers instead."""

    dataset: KnownDataset
    passes: tuple[Pass, ...]
    answered: tuple[str, ...]


def reads_of(
    requests: Collection[MetricRequest],
    dataset: KnownDataset,
    on: date,
    others: Mapping[str, KnownDataset] = MappingProxyType({}),
) -> DatasetReads:
    """The reads of a dataset for some requests.

    :param requests: of any datasets.
    :param on: the judged date.
    :param others: the datasets that lookups look into, as far as they are known.
    """
    types = None if dataset.schema is None else RowTypes(dataset.schema.type_of)
    type_of = None if types is None else types.of_column
    passes = query_passes(one for one in requests if one.dataset == dataset.ref.name)
    passes += match_passes(requests, on, dataset.ref)
    answered: dict[str, None] = {}
    computable = [one for one in requests if _is_computable(one, dataset, others)]
    for needed in collect(dataset.ref, computable, types):
        results = AggregateResults()
        if needed.grouping is None:
            answer_from_log(dataset, needed.aggregate_requests, results)
        passes += plan_passes(needed, dataset, results, type_of)
        wanted = {one.aggregate.sql for one in needed.requests_of}
        answered |= dict.fromkeys(sql for _, sql in results.values if sql in wanted)
    return DatasetReads(dataset, tuple(passes), tuple(answered))


def _is_computable(
    request: MetricRequest, dataset: KnownDataset, others: Mapping[str, KnownDataset]
) -> bool:
    """False for a request that has an answer, or an error, before any row is read."""
    if request.dataset != dataset.ref.name:
        return False
    if request.definition.is_of_texts and not dataset.ref.is_of_texts:
        return False
    if dataset.schema is None:
        return True
    unusable = {}
    for lookup in lookups_of(request):
        other = others.get(lookup.reference)
        if other is not None and other.schema is not None:
            reason = objection_to_lookup(lookup, dataset.schema, other.schema)
            if reason is not None:
                unusable[lookup] = reason
    return objection_to(request, dataset.schema, unusable) is None


def query_passes(requests: Iterable[MetricRequest]) -> list[Pass]:
    """A pass for each query that a suite has written."""
    return [
        Pass(request.dataset, PassKind.QUERY, (request,), _dates((request.date,)), (text,))
        for request in requests
        if request.definition.scan is Scan.QUERY
        for text in request.arguments
    ]


def match_passes(requests: Iterable[MetricRequest], on: date, dataset: DatasetRef) -> list[Pass]:
    """The passes over a dataset that compare its rows with the rows of another one.

    :param on: the judged date, on which the rows of a dataset with dates are compared.
    """
    about_rows = [
        request
        for request in requests
        if is_about_rows(request) and dataset.name in request.datasets
    ]
    dates = (on,) if dataset.date_column else ()
    return [
        Pass(
            dataset.name,
            PassKind.MATCHED,
            tuple(served),
            dates,
            (f"rows of {match.dataset} next to rows of {match.reference}",),
        )
        for match, served in shared_matches(about_rows).items()
    ]


def answer_from_log(
    dataset: KnownDataset, requests: Iterable[AggregateRequest], results: AggregateResults
) -> None:
    """Adds the results that the transaction log of the dataset answers exactly."""
    by_date: dict[date | None, list[Aggregate]] = {}
    for request in requests:
        by_date.setdefault(request.date, []).append(request.aggregate)
    for on, wanted in by_date.items():
        results.add(on, dataset.answers_of_log(wanted, on), Origin.LOG)


def take_shortcuts(
    requests: Iterable[AggregateRequest], type_of: TypeOf, results: AggregateResults
) -> None:
    """Adds the answers of shortcuts whose aggregates have results."""
    for request in requests:
        shortcut = request.aggregate.shortcut
        if shortcut is None:
            continue
        needed = [aggregate.sql for aggregate in shortcut.needs]
        if any((request.date, sql) not in results.values for sql in needed):
            continue
        answer = shortcut.answer(
            tuple(results.values[request.date, sql] for sql in needed), type_of
        )
        if answer is not None:
            origin = results.origin(request.date, needed)
            results.add(request.date, {request.aggregate.sql: answer}, origin)


def _try_shortcuts(
    requests: Sequence[AggregateRequest],
    dataset: KnownDataset,
    results: AggregateResults,
    type_of: TypeOf | None,
) -> frozenset[AggregateRequest]:
    """Takes the shortcuts that known results answer at once.

    Returns the aggregates behind shortcuts that have been tried: there is no use to wait for them.
    """
    needed = dict.fromkeys(one for request in requests for one in _needed_by_shortcut(request))
    answer_from_log(dataset, needed, results)
    if type_of is not None:
        take_shortcuts(requests, type_of, results)
    return frozenset(one for one in needed if one in results)


def _needed_by_shortcut(request: AggregateRequest) -> list[AggregateRequest]:
    """The aggregates that the shortcut of a request needs; none without a shortcut."""
    shortcut = request.aggregate.shortcut
    if shortcut is None:
        return []
    return [AggregateRequest(request.date, one, is_storable=False) for one in shortcut.needs]


def _deferred(
    requests: Iterable[AggregateRequest], tried: AbstractSet[AggregateRequest]
) -> tuple[list[AggregateRequest], list[AggregateRequest]]:
    """The aggregates to read first, including all that shortcuts need; and the aggregates that
    shortcuts may answer then.

    :param tried: aggregates whose results are known, and whose shortcuts found no answer.
    """
    by_date: dict[date | None, list[AggregateRequest]] = {}
    for request in requests:
        by_date.setdefault(request.date, []).append(request)
    first: list[AggregateRequest] = []
    late: list[AggregateRequest] = []
    for on, wanted in by_date.items():
        waiting = {request: _waiting(request, tried) for request in wanted}
        deferral = defer_answerable(waiting.values())
        for request, aggregate in waiting.items():
            if aggregate in deferral.later:
                late.append(request)
            else:
                first.append(request)
        first += [
            AggregateRequest(on, aggregate, is_storable=False) for aggregate in deferral.extra
        ]
    return first, late


def _waiting(request: AggregateRequest, tried: AbstractSet[AggregateRequest]) -> Aggregate:
    """The aggregate, without its shortcut once that has been tried."""
    aggregate = request.aggregate
    if aggregate.shortcut is not None and tried >= set(_needed_by_shortcut(request)):
        return replace(aggregate, shortcut=None)
    return aggregate


@dataclass(frozen=True, slots=True)
class Deferral:
    """The aggregates to read `later`, only if shortcuts do not answer them; `extra` are the ones
    that these shortcuts need."""

    later: frozenset[Aggregate]
    extra: tuple[Aggregate, ...]


def defer_answerable(aggregates: Iterable[Aggregate]) -> Deferral:
    """The aggregates that wait for their shortcuts, if less is computed then.

    :param aggregates: those whose values are not known.
    """
    requested = dict.fromkeys(aggregates)
    buffers = {_buffer(aggregate) for aggregate in requested}
    waiting: dict[tuple[Aggregate, ...], list[Aggregate]] = {}
    for aggregate in requested:
        if aggregate.shortcut is not None:
            waiting.setdefault(aggregate.shortcut.needs, []).append(aggregate)
    later: list[Aggregate] = []
    extra: dict[Aggregate, None] = {}
    for needed, items in waiting.items():
        if len(items) > sum(_buffer(aggregate) not in buffers for aggregate in needed):
            later += items
            extra |= dict.fromkeys(one for one in needed if one not in requested)
    return Deferral(frozenset(later), tuple(extra))


def _buffer(aggregate: Aggregate) -> object:
    """The identity of Spark's aggregation buffer: equal for an extreme and for its string."""
    return (aggregate.statistic, aggregate.column) if aggregate.statistic else aggregate.sql


def passes_for(
    needed: Needed,
    aggregates: Sequence[AggregateRequest],
    dataset: KnownDataset,
    limits: EngineLimits = SPARK,
) -> list[Pass]:
    """The passes for some of the aggregates, none of which waits for a shortcut."""
    metrics_of = dict(needed.requests_of)
    for request, requests in needed.requests_of.items():
        for one in _needed_by_shortcut(request):
            metrics_of[one] = tuple(dict.fromkeys((*metrics_of.get(one, ()), *requests)))
    prefix = "" if needed.grouping is None else state_prefix(needed.grouping, needed.types)
    read_by = {
        request: ()
        if request.aggregate.statistic is Statistic.ROWS
        else metrics_of.get(request, ())
        for request in aggregates
    }
    passes = []
    for part in split_into_passes(dataset, aggregates, limits, _columns_by_aggregate(read_by)):
        kind = kind_of([request.aggregate for request in part])
        reading = dict.fromkeys(metric for request in part for metric in read_by[request])
        dates = _dates(request.date for request in part)
        texts = dict.fromkeys(request.aggregate.sql.removeprefix(prefix) for request in part)
        passes.append(
            Pass(
                needed.dataset,
                kind,
                tuple(reading),
                dates,
                tuple(texts),
                tuple(part),
                needed.grouping,
            )
        )
    return passes


def _columns_by_aggregate(
    read_by: Mapping[AggregateRequest, Sequence[MetricRequest]],
) -> dict[Aggregate, frozenset[str]]:
    """The names of the columns that each aggregate reads at most: those of one metric that needs
    it. Spark SQL of the suite counts as a column.

    :param read_by: the metric requests that need it; none for an aggregate without columns.
    """
    one_of = {request.aggregate: metrics[:1] for request, metrics in read_by.items()}
    return {
        aggregate: frozenset(
            name for metric in metrics for name in (*columns_of(metric), *spark_sql_of(metric))
        )
        for aggregate, metrics in one_of.items()
    }


def _dates(dates: Iterable[date | None]) -> tuple[date, ...]:
    return tuple(sorted({on for on in dates if on is not None}))


def kind_of(aggregates: Collection[Aggregate]) -> PassKind:
    """The kind of the pass that computes some aggregates, which have one `pass_key`."""
    over = next(iter(aggregates)).over
    if over is not None:
        return PassKind.FREQUENCIES if isinstance(over, Frequencies) else PassKind.STEPS
    distinct = [aggregate for aggregate in aggregates if aggregate.distinct]
    if not distinct:
        return PassKind.ROWS
    if len(distinct) < len(aggregates):
        return PassKind.EVERYTHING
    return PassKind.KEYS if all(item.is_key for item in distinct) else PassKind.VALUES


def split_into_passes(
    dataset: KnownDataset,
    requests: Sequence[AggregateRequest],
    limits: EngineLimits = SPARK,
    columns: Mapping[Aggregate, AbstractSet[str]] = MappingProxyType({}),
) -> Iterator[list[AggregateRequest]]:
    """The aggregates of each pass, bounded in number and in the number of columns that they read.

    :param columns: the names of the columns that each aggregate reads.
    """
    by_pass: dict[object, list[AggregateRequest]] = {}
    for request in requests:
        by_pass.setdefault(pass_key(request.aggregate), []).append(request)
    over_rows = by_pass.pop(None, [])
    yield from by_pass.values()
    keys: list[AggregateRequest] = []
    values: list[AggregateRequest] = []
    rest: list[AggregateRequest] = []
    for request in over_rows:
        if not request.aggregate.distinct:
            rest.append(request)
        elif request.aggregate.is_key:
            keys.append(request)
        else:
            values.append(request)
    distinct = {request.aggregate for request in (*keys, *values)}
    can_share = len(distinct) <= MOST_DISTINCT and (limits.fuses_keys or not keys)
    if rest and can_share and dataset.has_few_rows(dates_of(over_rows)):
        yield from _by_width(over_rows, MOST_FUSED, columns)
        return
    for part in _by_day(rest):
        few = dataset.has_few_rows(dates_of(part))
        yield from _by_width(part, MOST_FUSED if few else limits.most_compiled, columns)
    yield from _by_width(keys, MOST_DISTINCT, columns)
    yield from _by_width(values, MOST_DISTINCT, columns)


def pass_key(aggregate: Aggregate) -> object:
    """A key that aggregates share if one reshaping of the rows answers them; None for aggregates
    over the rows themselves."""
    match aggregate.over:
        case None:
            return None
        case Frequencies(columns=columns):
            return columns, aggregate.where
        case Steps():
            return Steps


def _by_day(requests: list[AggregateRequest]) -> Iterator[list[AggregateRequest]]:
    """All aggregates at once, or separately the ones of the day that has most of them."""
    by_date: dict[date | None, list[AggregateRequest]] = {}
    for request in requests:
        by_date.setdefault(request.date, []).append(request)
    computed = len(by_date) * len({request.aggregate for request in requests})
    if computed - len(requests) <= _LEAST_WASTE * len(requests):
        if requests:
            yield requests
        return
    busiest = max(by_date, key=lambda on: len(by_date[on]))
    yield by_date[busiest]
    yield [request for request in requests if request.date != busiest]


def _by_width(
    requests: Sequence[AggregateRequest], most: int, columns: Mapping[Aggregate, AbstractSet[str]]
) -> Iterator[list[AggregateRequest]]:
    """The aggregates in parts that can be compiled; those of a column are in one part, if possible.

    :param most: the maximum number of aggregates in a part.
    :param columns: the names of the columns that each aggregate reads.
    """
    aggregates = list(dict.fromkeys(request.aggregate for request in requests))
    position: dict[str, int] = {}
    for aggregate in aggregates:
        for name in sorted(columns.get(aggregate, ())):
            position.setdefault(name, len(position))
    if len(aggregates) > most or len(position) > MOST_COLUMNS:
        aggregates.sort(
            key=lambda one: min(map(position.__getitem__, columns.get(one, ())), default=-1)
        )
    for chosen in _parts(aggregates, most, columns):
        yield [request for request in requests if request.aggregate in chosen]


def _parts(
    aggregates: Iterable[Aggregate], most: int, columns: Mapping[Aggregate, AbstractSet[str]]
) -> Iterator[set[Aggregate]]:
    """The aggregates in as few parts, in their order, as the limits on a part allow."""
    part: set[Aggregate] = set()
    read: set[str] = set()
    for aggregate in aggregates:
        names = columns.get(aggregate, frozenset())
        if part and (len(part) == most or len(read | names) > MOST_COLUMNS):
            yield part
            part, read = set(), set()
        part.add(aggregate)
        read |= names
    if part:
        yield part


def shared_requests(
    plans: Sequence[Plan], date_columns: Mapping[str, str | None]
) -> tuple[MetricRequest, ...]:
    """The requests of the plans of several dates that one scan of a dataset answers for all dates.

    Empty for a single plan. Requests that read rows of other datasets on the judged date are
    measured for each date alone.

    :param date_columns: of the datasets that can be read.
    """
    scopes = {(plan.date, frozenset(plan.reads)) for plan in plans}
    if len(scopes) == 1:
        return ()
    requests = dict.fromkeys(request for plan in plans for request in plan.requests)
    return tuple(
        request for request in requests if not _depends_on_the_judged_date(request, date_columns)
    )


def _depends_on_the_judged_date(
    request: MetricRequest, date_columns: Mapping[str, str | None]
) -> bool:
    """True for a request that reads rows of other datasets on the judged date."""
    if request.definition.scan in (Scan.QUERY, Scan.MATCH):
        return True
    references = {lookup.reference for lookup in lookups_of(request)}
    return any(name not in date_columns or date_columns[name] for name in references)
