"""The aggregates of a scan and their results: what is read together, and what need not be read.

With few rows all of them do, up to a few thousand, because a pass is cheaper than starting another
job. Aggregates that are not over the rows themselves have separate passes. With many rows, distinct
values are counted separately, a day that only serves as a baseline is not read for the aggregates
of the target date, and no pass has more aggregates than Spark compiles.

Beside other aggregates, `count(DISTINCT ...)` makes Spark carry all of them through a shuffle of
every key, and several of them multiply the rows. Keys that should be unique are counted by a hash:
if no hash occurs twice, no key does. If one does, the keys are counted exactly. Sail groups by the
keys themselves, however few the rows.

If a pass fails as a whole, it is halved until the failing aggregate is isolated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial, reduce
from typing import TypeAlias, TypeVar

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.engine.scan.frames import DATE, collect, date_of
from dqx_airflow.engine.session.sail import sail_version
from dqx_airflow.engine.session.spark_errors import explain, is_unreadable, spark_failures
from dqx_airflow.engine.session.spark_versions import condition_of
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.listing import DataFile
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics import metric
from dqx_airflow.metrics.metric import COPIES, VALUE, Aggregate, Frequencies, Merge, Steps, TypeOf
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.plan.masks import reveals_parts
from dqx_airflow.plan.model import MetricRequest
from dqx_airflow.plan.passes import MOST_COMPILED, defer_answerable
from dqx_airflow.plan.predicates import lookups_of
from dqx_airflow.plan.row_values import TypeObjection
from dqx_airflow.plan.schema_check import Schema
from dqx_airflow.values import DatasetRef, MetricValue, Origin


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
        """An aggregate that a metric of a dataset needs."""
        looks_into = tuple(dict.fromkeys(lookup.reference for lookup in lookups_of(request)))
        # SQL written by the user may call rand() or current_date().
        is_storable = request.metric != "sql" and not (
            ref.masked and reveals_parts(request, {ref.name: ref.masked})
        )
        return cls(request.date, aggregate, looks_into, is_storable)


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
        """The result over all files, given that of the added ones; None if not exact."""
        merged_result = self.merge.merged(self.result, other)
        is_exact = all(
            self.merge.is_exact(self.spark_type, result) for result in (other, merged_result)
        )
        return (merged_result,) if is_exact else None


@dataclass(slots=True)
class ScanResults:
    """The results of aggregates: values by date and SQL, dates without rows, and reasons for
    failures. `partial_states` are results over a part of the files."""

    values: dict[tuple[date | None, str], MetricValue] = field(default_factory=dict)
    absent: dict[date | None, Origin] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    partial_states: dict[AggregateRequest, PartialState] = field(default_factory=dict)
    _origins: dict[tuple[date | None, str], Origin] = field(default_factory=dict)

    def __contains__(self, request: AggregateRequest) -> bool:
        return request.date in self.absent or (request.date, request.aggregate.sql) in self.values

    def add(self, on: date | None, results: Mapping[str, MetricValue], origin: Origin) -> None:
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
        for a date stay."""
        self.broken.update(broken)
        for on in dates:
            if on in by_date:
                results = by_date[on].items()
                new = {sql: value for sql, value in results if (on, sql) not in self.values}
                self.add(on, new, Origin.SCAN)
            elif len(broken) < len(texts):
                self.absent[on] = Origin.SCAN

    def complete(self, requests: Iterable[AggregateRequest], added: ScanResults) -> None:
        """Merges partial results with those of the added files. What cannot be merged exactly
        remains open."""
        for request in requests:
            partial, sql = self.partial_states[request], request.aggregate.sql
            if sql in added.broken:
                self.broken[sql] = added.broken[sql]
                continue
            is_absent = request.date in added.absent
            merged = (
                (partial.result,) if is_absent else partial.merged(added.values[request.date, sql])
            )
            if merged is not None:
                self.add(request.date, {sql: merged[0]}, Origin.MERGED)

    def origin(self, on: date | None, texts: Iterable[str]) -> Origin:
        """The origin of a value computed from several aggregates."""
        if on in self.absent:
            return self.absent[on]
        return Origin.most_expensive(self._origins[on, sql] for sql in texts) or Origin.LOG


def dates_of(requests: Iterable[AggregateRequest]) -> set[date | None]:
    """The dates of a pass."""
    return {request.date for request in requests}


def ask_log(
    dataset: OpenDataset, requests: Iterable[AggregateRequest], answers: ScanResults
) -> None:
    """Takes from the transaction log what it answers exactly."""
    if dataset.log is None or dataset.ref.filter is not None:
        return
    by_date: dict[date | None, list[Aggregate]] = {}
    for request in requests:
        by_date.setdefault(request.date, []).append(request.aggregate)
    for on, wanted in by_date.items():
        answers.add(on, dataset.log.answers(wanted, on), Origin.LOG)


def scan_in_two_phases(
    requests: Sequence[AggregateRequest],
    dataset: OpenDataset,
    type_of: TypeOf,
    answers: ScanResults,
) -> tuple[list[AggregateRequest], list[AggregateRequest]]:
    """The aggregates to read first, with those that shortcuts need, and those the shortcuts may
    answer.

    Adds at once what shortcuts answer from stored results. With few rows no other shortcut is used:
    one pass is cheaper than two.

    :param requests: with valid shortcuts.
    """
    open_, known = list(requests), frozenset[AggregateRequest]()
    if dataset.log is not None or answers.values:
        asks = dict.fromkeys(
            AggregateRequest(request.date, ask, is_storable=False)
            for request in requests
            for ask in _asked_by(request.aggregate)
        )
        ask_log(dataset, asks, answers)
        known = frozenset(ask for ask in asks if ask in answers)
        take_shortcuts(requests, type_of, answers)
        open_ = [request for request in requests if request not in answers]
    if len(open_) <= MOST_COMPILED and has_few_rows(dataset, dates_of(open_)):
        return open_, []
    by_date: dict[date | None, list[AggregateRequest]] = {}
    for request in open_:
        by_date.setdefault(request.date, []).append(request)
    first: list[AggregateRequest] = []
    later: list[AggregateRequest] = []
    for on, wanted in by_date.items():
        deferral = defer_answerable(_waiting(request, known) for request in wanted)
        for request in wanted:
            (later if request.aggregate in deferral.later else first).append(request)
        first += [
            AggregateRequest(on, aggregate, is_storable=False) for aggregate in deferral.extra
        ]
    return first, later


def take_shortcuts(
    requests: Iterable[AggregateRequest], type_of: TypeOf, answers: ScanResults
) -> None:
    """Adds the results of valid shortcuts."""
    for request in requests:
        shortcut = request.aggregate.shortcut
        if shortcut is None:
            continue
        asks = [aggregate.sql for aggregate in shortcut.asks]
        if all((request.date, sql) in answers.values for sql in asks):
            results = tuple(answers.values[request.date, sql] for sql in asks)
            answer = shortcut.answer(results, type_of)
            if answer is not None:
                answers.add(
                    request.date,
                    {request.aggregate.sql: answer},
                    answers.origin(request.date, asks),
                )


def _waiting(request: AggregateRequest, known: AbstractSet[AggregateRequest]) -> Aggregate:
    """The aggregate, without its shortcut once that has been tried."""
    item = request.aggregate
    asks = (AggregateRequest(request.date, ask, is_storable=False) for ask in _asked_by(item))
    return replace(item, shortcut=None) if item.shortcut and known >= set(asks) else item


def _asked_by(item: Aggregate) -> tuple[Aggregate, ...]:
    return () if item.shortcut is None else item.shortcut.asks


MOST_ROWS_FUSED = 250_000
"""Up to this many rows, one pass over everything is cheaper than starting another job."""

MOST_FUSED = 2_500
"""The maximum number of aggregates in a pass over few rows: Spark's planning time grows faster than
their number, and its stack is limited."""

MOST_DISTINCT = 50
"""The maximum number of columns or keys whose distinct values one pass counts: Spark copies the
rows for each of them."""

MOST_BYTES_FUSED = 4_000_000
"""Files up to this size, in bytes, have few rows whatever their format."""

_LEAST_WASTE = 0.5
"""Days are read separately if one pass would waste at least this share of its work."""


def split_into_passes(
    dataset: OpenDataset,
    requests: Sequence[AggregateRequest],
    most_compiled: int = MOST_COMPILED,
    *,
    fuses_keys: bool = True,
) -> Iterator[list[AggregateRequest]]:
    """The aggregates of each pass, bounded in number.

    :param most_compiled: the bound for many rows.
    :param fuses_keys: keys of few rows may be counted beside other aggregates.
    """
    by_pass: dict[object, list[AggregateRequest]] = {}
    for request in requests:
        by_pass.setdefault(pass_key(request.aggregate), []).append(request)
    requests = by_pass.pop(None, [])
    yield from by_pass.values()
    keys: list[AggregateRequest] = []
    values: list[AggregateRequest] = []
    rest: list[AggregateRequest] = []
    for request in requests:
        item = request.aggregate
        (rest if not item.distinct else keys if item.is_key else values).append(request)
    distinct = {request.aggregate for request in (*keys, *values)}
    is_one = len(distinct) <= MOST_DISTINCT and (fuses_keys or not keys)
    if rest and is_one and has_few_rows(dataset, dates_of(requests)):
        yield from _by_width(requests, MOST_FUSED)
        return
    for part in _by_day(rest):
        few = has_few_rows(dataset, dates_of(part))
        yield from _by_width(part, MOST_FUSED if few else most_compiled)
    yield from _by_width(keys, MOST_DISTINCT)
    yield from _by_width(values, MOST_DISTINCT)


def describe_pass(aggregates: Sequence[Aggregate]) -> str:
    """A short description of a pass, whose aggregates have one `pass_key`."""
    match aggregates[0].over:
        case Frequencies():
            return "values and the numbers of their rows"
        case Steps():
            return "rows in order"
    if all(aggregate.distinct for aggregate in aggregates):
        return "keys" if all(aggregate.is_key for aggregate in aggregates) else "distinct values"
    return f"{len(aggregates)} aggregates" if len(aggregates) > 1 else "one aggregate"


def has_few_rows(dataset: OpenDataset, dates: Iterable[date | None]) -> bool:
    """True if the transaction log says so, or the files are small."""
    if dataset.log is None:
        files = dataset.files
        return files is not None and sum(file.size for file in files) <= MOST_BYTES_FUSED
    rows = [dataset.log.rows_of(on) for on in dates]
    return None not in rows and sum(filter(None, rows)) <= MOST_ROWS_FUSED


def _by_day(requests: list[AggregateRequest]) -> Iterator[list[AggregateRequest]]:
    """All aggregates at once, or those of the day with the most of them apart from the others."""
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


def _by_width(requests: Sequence[AggregateRequest], most: int) -> Iterator[list[AggregateRequest]]:
    """The aggregates in as few parts of equal size as can be compiled."""
    aggregates = list(dict.fromkeys(request.aggregate for request in requests))
    parts = math.ceil(len(aggregates) / most)
    for number in range(parts):
        chosen = frozenset(aggregates[number::parts])
        yield [request for request in requests if request.aggregate in chosen]


_SMALLER, _LARGER = "ASC", "DESC"


def aggregate_reshaped(
    frame: DataFrame, aggregates: Sequence[Aggregate], dates: Collection[date | None]
) -> PassResult[date | None]:
    """The value of each aggregate by date, and the reason for those that failed. All share one
    `pass_key`.

    :param dates: those of the rows; only None if a dataset has no dates.
    :raises DatasetError: a file cannot be read.
    """
    by_sql = {aggregate.sql: aggregate for aggregate in aggregates}

    def rows(texts: Sequence[str]) -> list[tuple[date | None, tuple[MetricValue, ...]]]:
        items = [by_sql[text] for text in texts]
        if len(dates) > 1:
            collected = collect(reshaped(frame, [quote_name(DATE)], items))
            return [(date_of(row[0]), row[1:]) for row in collected]
        (on,) = dates
        (row,) = collect(reshaped(frame, [], items, "count(1)"))
        *values, count = row
        return [(on, tuple(values))] if count or on is None else []

    return bisected(frame, [*by_sql], rows)


def reshaped(
    frame: DataFrame, keys: Sequence[str], aggregates: Sequence[Aggregate], *extra: str
) -> DataFrame:
    """One row for each combination of the keys, which are Spark SQL: the keys, then the aggregates.

    Every combination has a row, even if no row satisfies the filter of an aggregate.

    :param aggregates: of one `pass_key`.
    :param extra: additional plain aggregates, as Spark SQL.
    """
    over = aggregates[0].over
    if isinstance(over, Frequencies):
        return _over_frequencies(frame, keys, over.columns, aggregates, extra)
    return _over_steps(frame, keys, aggregates, extra)


def pass_key(item: Aggregate) -> object:
    """Equal for aggregates that one reshaping of the rows answers; None for those over the rows."""
    match item.over:
        case None:
            return None
        case Frequencies(columns=columns):
            return columns, item.where
        case Steps():
            return Steps


def _over_frequencies(
    frame: DataFrame,
    keys: Sequence[str],
    columns: Sequence[str],
    aggregates: Sequence[Aggregate],
    extra: Sequence[str],
) -> DataFrame:
    names = _key_names(keys)
    values = [VALUE] if len(columns) == 1 else [f"`dqx: value {n}`" for n in range(len(columns))]
    present = " OR ".join(f"{quote_name(column)} IS NOT NULL" for column in columns)
    where = aggregates[0].where
    chosen = f"({present})" if where is None else f"({present}) AND ({where})"
    grouped = [
        F.expr(sql).alias(_bare(name))
        for sql, name in zip((*keys, *map(quote_name, columns)), (*names, *values), strict=True)
    ]
    copies = F.expr(f"nullif(count(CASE WHEN {chosen} THEN 1 END), 0)").alias(_bare(COPIES))
    counted = frame.groupBy(*grouped).agg(copies)
    over = [aggregate.over for aggregate in aggregates if isinstance(aggregate.over, Frequencies)]
    by = f"PARTITION BY {', '.join(names)} " if names else ""
    if any(frequencies.is_ranked for frequencies in over):
        rank = f"rank() OVER ({by}ORDER BY {COPIES} DESC NULLS LAST) AS {metric.RANK}"
        counted = counted.selectExpr("*", rank)
    if any(frequencies.is_running for frequencies in over):
        counted = counted.selectExpr(
            "*",
            f"sum({COPIES}) OVER ({by}ORDER BY {VALUE}) AS {metric.UP_TO}",
            f"sum({COPIES}) OVER ({by}) AS {metric.PRESENT}",
            f"count({COPIES}) OVER ({by}) AS {metric.DIFFERENT}",
        )
    return _grouped(counted, names, [*(frequencies.sql for frequencies in over), *extra])


def _over_steps(
    frame: DataFrame, keys: Sequence[str], aggregates: Sequence[Aggregate], extra: Sequence[str]
) -> DataFrame:
    names = _key_names(keys)
    marks = [f"`dqx: step {n}`" for n in range(len(aggregates))]
    columns = [f"{sql} AS {name}" for sql, name in zip(keys, names, strict=True)]
    columns += [
        f"{_step(aggregate, keys)} AS {mark}"
        for aggregate, mark in zip(aggregates, marks, strict=True)
    ]
    counts = (f"count(CASE WHEN {mark} THEN 1 END)" for mark in marks)
    return _grouped(frame.selectExpr(*columns), names, [*counts, *extra])


def _step(item: Aggregate, keys: Sequence[str]) -> str:
    """Whether a row is one step from the previous row; NULL for a row that is excluded."""
    over = item.over
    assert isinstance(over, Steps)
    column, order = quote_name(over.column), quote_name(over.order)
    taken = f"{column} IS NOT NULL AND {order} IS NOT NULL"
    if item.where is not None:
        taken += f" AND coalesce({item.where}, false)"
    # Excluded rows are a partition of their own, so that they are never neighbors.
    by = ", ".join([*keys, taken])
    direction = _LARGER if over.op == ">" else _SMALLER
    before = f"lag({column}) OVER (PARTITION BY {by} ORDER BY {order}, {column} {direction})"
    return f"CASE WHEN {taken} THEN {column} {over.op} {before} END"


def _grouped(frame: DataFrame, names: Sequence[str], aggregates: Sequence[str]) -> DataFrame:
    return frame.groupBy(*map(F.expr, names)).agg(*map(F.expr, aggregates))


def _key_names(keys: Sequence[str]) -> list[str]:
    return [f"`dqx: key {number}`" for number in range(len(keys))]


def _bare(name: str) -> str:
    return name.strip("`")


_EXACTLY_HASHED = frozenset(
    {"tinyint", "smallint", "int", "bigint", "decimal", "boolean", "string", "date"}
    | {"timestamp", "timestamp_ntz", "binary"}
)
"""Types whose equal values always have equal hashes: floating point has two zeros and many NaN."""
_CHECK, _HASH, _ROWS, _COPIES = "dqx: check", "dqx: hash", "dqx: rows", "dqx: copies"


def count_distinct(
    frame: DataFrame,
    aggregates: Sequence[Aggregate],
    schema: Schema,
    dates: Collection[date | None],
) -> PassResult[date | None]:
    """The value of each aggregate by date, and the reason for those that failed. All have
    `distinct`.

    :param dates: those of the rows; only None if a dataset has no dates.
    """
    keys = [item for item in aggregates if item.is_key and _is_hashed(item, schema)]
    unique = _unique_keys(frame, keys, dates) if keys else {}
    rest = [item.sql for item in aggregates if item not in unique]
    by_date, broken = aggregate(frame, rest, dates)
    for item, rows in unique.items():
        for on, count in rows.items():
            by_date.setdefault(on, {})[item.sql] = count
    return by_date, broken


def _is_hashed(item: Aggregate, schema: Schema) -> bool:
    try:
        types = [schema.type_of(column).split("(")[0] for column in item.distinct]
    except TypeObjection:
        return False
    return all(name in _EXACTLY_HASHED for name in types)


def _unique_keys(
    frame: DataFrame, keys: Sequence[Aggregate], dates: Collection[date | None]
) -> dict[Aggregate, dict[date | None, MetricValue]]:
    """The number of keys by date, of the aggregates whose keys are unique on every date.

    The others remain to be counted exactly, and so do all of them if the pass fails.
    """
    date_column = [quote_name(DATE)] if len(dates) > 1 else []
    rows_of = _different_keys if sail_version(frame.sparkSession) else _hashed_keys
    try:
        counted = rows_of(frame, keys, date_column)
        with spark_failures():
            counts = (
                counted.groupBy(*date_column, quote_name(_CHECK))
                .agg(F.expr(f"count(1) AS `{_ROWS}`"), F.expr(f"max(`{_COPIES}`) AS `{_COPIES}`"))
                .collect()
            )
    except PySparkException:
        return {}
    repeated = {row[_CHECK] for row in counts if row[_COPIES] > 1}
    unique: dict[Aggregate, dict[date | None, MetricValue]] = {
        key: dict.fromkeys(dates, 0) for number, key in enumerate(keys) if number not in repeated
    }
    for row in counts:
        if row[_CHECK] not in repeated:
            on = row[DATE] if date_column else next(iter(dates))
            unique[keys[row[_CHECK]]][on] = int(row[_ROWS])
    return unique


def _hashed_keys(
    frame: DataFrame, keys: Sequence[Aggregate], date_column: Sequence[str]
) -> DataFrame:
    """A row for each row with a key, and how many have the same hash.

    It is one of the key, its date and the check, so that one column tells keys apart. NULL columns
    are part of it: `(1, NULL)` is not `(NULL, 1)`. Some two of `n` different keys have the same
    64-bit hash with a probability of about `n**2 / 2**65` (the birthday bound): 1 in 3,700 for a
    hundred million keys. A collision costs one more pass, never a wrong count.

    Partitioned by the hash and sorted: nearly every key occurs once, so a hash table would be as
    large as the data.
    """
    hashed = []
    for number, key in enumerate(keys):
        names = [quote_name(column) for column in key.distinct]
        missing = [] if key.skips_null else [f"{name} IS NULL" for name in names]
        text = f"xxhash64({', '.join([*date_column, *names, *missing, str(number)])})"
        columns = (*date_column, f"{number} AS `{_CHECK}`", f"{text} AS `{_HASH}`")
        hashed.append(frame.where(_has_key(key)).selectExpr(*columns))
    rows = reduce(DataFrame.unionAll, hashed).repartition(quote_name(_HASH))
    return rows.selectExpr("*", f"count(1) OVER (PARTITION BY `{_HASH}`) AS `{_COPIES}`")


def _different_keys(
    frame: DataFrame, keys: Sequence[Aggregate], date_column: Sequence[str]
) -> DataFrame:
    """A row for each key: Sail finds them in a tenth of the time that it needs to sort hashes."""
    different = [
        frame.where(_has_key(key))
        .selectExpr(*date_column, *map(quote_name, key.distinct))
        .distinct()
        .selectExpr(*date_column, f"{number} AS `{_CHECK}`", f"1 AS `{_COPIES}`")
        for number, key in enumerate(keys)
    ]
    return reduce(DataFrame.unionAll, different)


def _has_key(item: Aggregate) -> str:
    missing = " OR ".join(f"{quote_name(column)} IS NULL" for column in item.distinct)
    present = f"NOT ({missing})" if item.skips_null else "true"
    return present if item.where is None else f"{present} AND ({item.where})"


Key = TypeVar("Key", bound=Hashable)

PassResult: TypeAlias = tuple[dict[Key, dict[str, MetricValue]], dict[str, str]]
"""The values of aggregates by key, such as the date or the group, and by their SQL; and the reason
for each aggregate that failed."""


def aggregate(
    frame: DataFrame, expressions: Sequence[str], dates: Collection[date | None]
) -> PassResult[date | None]:
    """The values of the aggregates by date.

    :param dates: those of the rows; only None if a dataset has no dates.
    :raises DatasetError: a file cannot be read.
    """
    return bisected(frame, expressions, partial(_values_by_date, frame, dates=dates))


def bisected(
    frame: DataFrame,
    expressions: Sequence[str],
    rows_of: Callable[[Sequence[str]], Sequence[tuple[Key, Sequence[MetricValue]]]],
    *,
    is_whole: bool = True,
) -> PassResult[Key]:
    """The values of the aggregates by key. If all of them together fail, they are read in halves.

    :param rows_of: reads some of the aggregates: their values for each key.
    :param is_whole: false for a part of a pass that has failed.
    :raises DatasetError: a file cannot be read.
    """
    if not expressions:
        return {}, {}
    try:
        with spark_failures():
            rows = rows_of(expressions)
    except PySparkException as error:
        if is_unreadable(error):
            raise DatasetError(explain(error)) from error
        if len(expressions) == 1:
            return {}, {expressions[0]: _reason(error, frame)}
        if is_whole and (reason := _objection_to_rows(frame)) is not None:
            return {}, dict.fromkeys(expressions, reason)
        half = len(expressions) // 2
        return merged(
            bisected(frame, expressions[:half], rows_of, is_whole=False),
            bisected(frame, expressions[half:], rows_of, is_whole=False),
        )
    return {key: dict(zip(expressions, values, strict=True)) for key, values in rows}, {}


def merged(first: PassResult[Key], second: PassResult[Key]) -> PassResult[Key]:
    """The results of two passes over the same rows."""
    (left, broken_left), (right, broken_right) = first, second
    by_key = {key: {**left.get(key, {}), **right.get(key, {})} for key in {**left, **right}}
    return by_key, {**broken_left, **broken_right}


def _values_by_date(
    frame: DataFrame, expressions: Sequence[str], dates: Collection[date | None]
) -> list[tuple[date | None, tuple[MetricValue, ...]]]:
    """The values of the aggregates for each date that has rows."""
    if len(dates) > 1:
        by_date = collect(frame.groupBy(quote_name(DATE)).agg(*map(F.expr, expressions)))
        return [(date_of(row[0]), row[1:]) for row in by_date]
    # Without grouping, the buffers are plain variables of the generated code rather than rows of a
    # hash map, and the smallest string is found without sorting.
    (on,) = dates
    # Passed as strings: each column built in Python takes half a dozen calls to the JVM.
    (row,) = collect(frame.selectExpr(*expressions, "count(1)"))
    *values, count = row
    return [(on, tuple(values))] if count or on is None else []


def _objection_to_rows(frame: DataFrame) -> str | None:
    """Why the rows cannot be read at all, or None if they can.

    If their filter fails, a thousand aggregates would be tried one by one.
    """
    try:
        with spark_failures():
            frame.selectExpr("count(1)").collect()
    except PySparkException as error:
        return explain(error)
    return None


def _reason(error: PySparkException, frame: DataFrame) -> str:
    if isinstance(error, AnalysisException):
        parameters = error.getMessageParameters() or {}
        if condition_of(error).startswith("UNRESOLVED_COLUMN"):
            name = parameters.get("objectName", "").strip("`")
            columns = [column for column in frame.columns if column != DATE]
            return f"no column '{name}': {did_you_mean(name, columns)}"
    return explain(error)
