"""Compares the rows of two datasets: what is missing, extra or changed.

One shuffle brings the rows of both together by key. Rows themselves are compared, never only their
hashes. Two plans give the same counts: many rows are joined if keys hardly ever repeat, as a sample
of them shows; otherwise rows are grouped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import count

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dqx_airflow.engine.scan.collected_values import collect
from dqx_airflow.engine.scan.frames import ReferenceTables, rows_of
from dqx_airflow.engine.session.concurrency import jobs_called, side_by_side
from dqx_airflow.engine.session.spark_errors import explain, spark_failures
from dqx_airflow.engine.sources.footers import drift_of
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.spark_values import EXACT, FLOATING
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.metrics.types import LONGEST_DECIMAL, Family, decimal_size, family_of, widest
from dqx_airflow.plan import schema_check
from dqx_airflow.plan.model import MetricRequest, Scanned
from dqx_airflow.plan.number_comparison import FLOAT_TOLERANCE
from dqx_airflow.plan.row_comparisons import as_key
from dqx_airflow.plan.row_types import TypeObjection
from dqx_airflow.plan.schema_check import MOST_NEAR, ColumnPair, Differences, Match, PairedColumns
from dqx_airflow.values import MetricValue
from dqx_airflow.values.exact import Number

MOST_GROUPED = 200_000
"""Up to this many rows are grouped without sampling the keys first, which costs another job."""

_SAMPLED = 32_768
"""The number of rows sampled on each side to find out whether keys repeat."""
_SEED = 20_240_302
_MOST_SORTED = 600_000
"""The rows of both sides that one task sorts: few enough for the caches of a processor."""
_MOST_TASKS = 2_000
"""More make the shuffle itself costly."""
_MOST_REPEATED = 1 / 16
"""The sides are joined only if at most this share of the rows of each has a repeated key."""


def run_matches(
    spark: SparkSession,
    requests: Sequence[MetricRequest],
    references: ReferenceTables,
    rows: Mapping[str, int],
    *,
    most_grouped: int = MOST_GROUPED,
) -> Scanned:
    """Compares datasets: the values of requests, or the reasons why they have none.

    :param requests: the requests whose own dataset could be opened.
    :param rows: the number of rows of each dataset on the date, if known.
    """
    scanned = Scanned()
    possible = []
    for request in requests:
        if request.reference in references.opened:
            possible.append(request)
        else:
            scanned.failures[request] = f"dataset '{request.reference}' could not be read"
    schemas = _Schemas.of(spark, possible, references)
    for request in possible:
        if not schema_check.is_about_rows(request):
            left, right = (schemas.of_files[name] for name in request.datasets)
            schema_check.answer_columns(request, left, right, scanned)
    valid = []
    for request in filter(schema_check.is_about_rows, possible):
        try:
            schemas.columns(Match.of(request))
            valid.append(request)
        except TypeObjection as objection:
            scanned.failures[request] = str(objection)
    shared = schema_check.shared_matches(valid)

    def run(match: Match) -> Differences | str:
        row_counts = (rows.get(match.dataset), rows.get(match.reference))
        job = f"{match.dataset}: rows compared with {match.reference}"
        try:
            with jobs_called(spark, job), spark_failures():
                sides = Sides.of(match, schemas.columns(match), references)
                return sides.differences(*row_counts, most_grouped)
        except DatasetError as error:
            return error.in_one_line
        except PySparkException as error:
            return explain(error)

    matches = tuple(shared)
    for match, outcome in zip(matches, side_by_side(spark, run, matches), strict=True):
        for request in shared[match]:
            if isinstance(outcome, str):
                scanned.failures[request] = outcome
            else:
                schema_check.answer_match(request, outcome, scanned)
    return scanned


@dataclass(frozen=True, slots=True)
class _Schemas:
    """The schemas of datasets as they are read, and as they are in the files of the date."""

    as_read: Mapping[str, schema_check.Schema]
    of_files: Mapping[str, schema_check.Schema]

    @classmethod
    def of(
        cls, spark: SparkSession, requests: Iterable[MetricRequest], references: ReferenceTables
    ) -> _Schemas:
        as_read = {}
        of_files = {}
        for name in dict.fromkeys(name for request in requests for name in request.datasets):
            dataset = references.opened[name]
            drift = drift_of(spark, dataset, references.date)
            as_read[name] = replace(dataset.schema, unread=drift.unread)
            of_files[name] = drift.in_schema(dataset.schema)
        return cls(as_read, of_files)

    def columns(self, match: Match) -> PairedColumns:
        """The columns of a comparison, in pairs.

        :raises TypeObjection: the columns cannot be compared.
        """
        return schema_check.pair_columns(
            match, self.as_read[match.dataset], self.as_read[match.reference]
        )


_LOW_DIGITS = 19
"""The digits of the lower half of a decimal: as many as the upper half of 38 has."""


@dataclass(frozen=True, slots=True)
class _Nearness:
    """The tolerance between two numbers.

    `scale` is the number of decimal places of exact ones, and `is_roomless` is true if no decimal
    holds every difference of two.
    """

    tolerance: Fraction
    scale: int | None
    is_roomless: bool = False

    @classmethod
    def of(cls, pair: ColumnPair, tolerance: Number | None) -> _Nearness | None:
        """The nearness of a pair of columns; None if their values must be equal."""
        if tolerance is None or not pair.is_number:
            return None
        if pair.is_floating:
            return cls(Fraction(tolerance), None)
        sizes = [decimal_size(side.type) for side in (pair.left, pair.right)]
        scale = max(scale for _, scale in sizes)
        whole = max(precision - scale for precision, scale in sizes)
        return cls(Fraction(tolerance), scale, whole + scale >= LONGEST_DECIMAL)

    def is_near(self, left: str, right: str) -> str:
        """A Spark SQL condition: two numbers are within the tolerance. True or false, never
        NULL."""
        if self.scale is None:
            most = f"{float(self.tolerance * (1 + FLOAT_TOLERANCE))!r}D"
            return f"coalesce(abs({left} - {right}) <= {most}, false)"
        units = math.floor(self.tolerance * 10**self.scale)
        if self.is_roomless:
            a, b = (_halves(side, self.scale) for side in (left, right))
            both = f"{_is_at_most_above(a, b, units)} AND {_is_at_most_above(b, a, units)}"
            return f"coalesce({both}, false)"
        shorter = f"DECIMAL({LONGEST_DECIMAL - 1},{self.scale})"
        written = Decimal(min(units, 10**LONGEST_DECIMAL - 1)).scaleb(-self.scale, EXACT)
        ends = (f"CAST('{sign}{written:f}' AS DECIMAL(38,{self.scale}))" for sign in ("-", ""))
        difference = f"CAST({left} AS {shorter}) - CAST({right} AS {shorter})"
        # `abs` of a decimal has 34 digits in Spark.
        return f"coalesce({difference} BETWEEN {' AND '.join(ends)}, false)"


def _halves(value: str, scale: int) -> tuple[str, str]:
    """A decimal of up to 38 digits as two integers: its upper and its lower digits.

    They are read from its text, since Spark would round what it computes from all digits.
    """
    text = f"CAST({value} AS STRING)"
    # Only Spark without ANSI mode writes exponents, and only Spark formats all digits.
    text = f"CASE WHEN {text} LIKE '%E%' THEN format_number({value}, {scale}) ELSE {text} END"
    digits = f"lpad(translate({text}, '-,.', ''), {LONGEST_DECIMAL + 1}, '0')"
    upper = f"left({digits}, {LONGEST_DECIMAL + 1 - _LOW_DIGITS})"
    # Spark compares a decimal with 0 after rounding it to 37 places.
    sign = f"if({text} LIKE '-%', '-', '')"
    high, low = (f"concat({sign}, {half})" for half in (upper, f"right({digits}, {_LOW_DIGITS})"))
    return f"CAST({high} AS DECIMAL(20,0))", f"CAST({low} AS DECIMAL(20,0))"


def _is_at_most_above(left: tuple[str, str], right: tuple[str, str], units: int) -> str:
    """A condition: the left number, in halves, minus the right one is at most a number of units of
    the last decimal place."""
    high, low = divmod(min(units, 2 * 10**LONGEST_DECIMAL), 10**_LOW_DIGITS)
    left_over = f"{left[1]} - {right[1]} - CAST('{low}' AS DECIMAL(20,0))"
    room = f"CAST('{high}' AS DECIMAL(20,0)) - {left[0]} + {right[0]}"
    # The lower halves differ by less than four units of the upper ones.
    ends = (f"CAST('{end}' AS DECIMAL(22,0))" for end in (-4, 4))
    near_room = f"least(greatest({room}, {next(ends)}), {next(ends)})"
    return f"{left_over} <= {near_room} * CAST('{10**_LOW_DIGITS}' AS DECIMAL(20,0))"


@dataclass(frozen=True, slots=True)
class _Values:
    """The values to compare of two columns, as Spark SQL for each side: usually a single value.

    A floating-point number next to an exact type is converted to the exact number that it equals;
    if there is none, a second value holds it, which equals no number of the other side.
    """

    left: tuple[str, ...]
    right: tuple[str, ...]
    nearness: _Nearness | None = None

    @classmethod
    def of(cls, pair: ColumnPair, tolerance: Number | None) -> _Values:
        left, right = (quote_name(*side.path) for side in (pair.left, pair.right))
        left_type = pair.left.type
        right_type = pair.right.type
        nearness = _Nearness.of(pair, tolerance)
        if nearness is not None and nearness.scale is None:
            left, right = (f"CAST({side} AS DOUBLE)" for side in (left, right))
            return cls((left,), (right,), nearness)
        if pair.is_number and (left_type in FLOATING) != (right_type in FLOATING):
            return cls(
                _exactly(left, left_type, right_type), _exactly(right, right_type, left_type)
            )
        if left_type in FLOATING:
            # Rows are brought together by hashes of keys, and the hashes of 0.0 and -0.0 differ.
            left, right = (f"(CAST({side} AS DOUBLE) + 0.0D)" for side in (left, right))
            return cls((left,), (right,))
        if left_type == right_type:
            return cls((left,), (right,), nearness)
        common = "string" if family_of(left_type) is Family.TEXT else widest(left_type, right_type)
        left, right = (f"CAST({side} AS {common})" for side in (left, right))
        return cls((left,), (right,), nearness)


def _exactly(value: str, type_: str, other_type: str) -> tuple[str, str]:
    if type_ not in FLOATING:
        return value, "CAST(NULL AS DOUBLE)"
    same = as_key(value, type_, other_type)
    return same, f"CASE WHEN {same} IS NULL THEN CAST({value} AS DOUBLE) END"


@dataclass(frozen=True, slots=True)
class Sides:
    """The rows of two datasets, and the values to compare.

    In its frames, key values are named `k0`, `k1`, ..., and other values `v0`, `v1`, ...
    """

    left: DataFrame
    right: DataFrame
    keys: tuple[_Values, ...]
    compared: tuple[_Values, ...]

    @classmethod
    def of(cls, match: Match, columns: PairedColumns, references: ReferenceTables) -> Sides:
        left, right = (
            rows_of(references.opened[name], references.date)
            for name in (match.dataset, match.reference)
        )
        return cls(
            left,
            right,
            tuple(_Values.of(pair, None) for pair in columns.keys),
            tuple(_Values.of(pair, match.tolerance) for pair in columns.compared),
        )

    @property
    def key_names(self) -> list[str]:
        return [name for names in self.key_parts for name in names]

    @property
    def key_parts(self) -> list[list[str]]:
        """The names of the values of each key."""
        return _numbered("k", self.keys)

    @property
    def compared_parts(self) -> list[list[str]]:
        """The names of the values of each compared column."""
        return _numbered("v", self.compared)

    def is_same(self, number: int, left: str, right: str) -> str:
        """A Spark SQL condition: two rows, under these names, agree in a compared column."""
        column = self.compared[number]
        pairs = [(f"{left}.{name}", f"{right}.{name}") for name in self.compared_parts[number]]
        equal = " AND ".join(f"{a} <=> {b}" for a, b in pairs)
        if column.nearness is None:
            return f"({equal})"
        return f"({equal} OR {column.nearness.is_near(*pairs[0])})"

    def _are_same(self, left: str, right: str) -> str:
        tests = [self.is_same(number, left, right) for number in range(len(self.compared))]
        return " AND ".join(tests) or "true"

    def differences(
        self, left_rows: int | None, right_rows: int | None, most_grouped: int
    ) -> Differences:
        """The differences between the rows, given their numbers if known."""
        if left_rows is None or right_rows is None:
            left_rows, right_rows = self._rows()
        if left_rows + right_rows <= most_grouped or not self._can_join(left_rows, right_rows):
            return self._grouped(left_rows)
        return self._joined(left_rows, right_rows) or self._grouped(left_rows)

    def unmatched(self, most: int, wanted: str) -> DataFrame:
        """The first keys with rows that have no counterpart, up to a limit.

        `lefts` and `rights` are arrays of the values of these rows: rows with the same index belong
        together. `wanted` is a condition about them.
        """
        keys = ", ".join(self.key_names)
        state = self._paired("lefts", "rights")
        return (
            self._listed()
            .selectExpr(*self.key_names, f"{state} AS state")
            .selectExpr(*self.key_names, "state.alone AS lefts", "state.rest AS rights")
            .where(wanted)
            .orderBy(F.expr(f"struct({keys})"))
            .limit(most)
        )

    # Many rows with almost unique keys

    def _rows(self) -> tuple[int, int]:
        """The numbers of rows of the two sides."""
        rows = self._both(with_values=False)
        ((left, right),) = collect(rows.selectExpr("count_if(d > 0)", "count_if(d < 0)"))
        return _whole(left), _whole(right)

    def _can_join(self, left_rows: int, right_rows: int) -> bool:
        """True if the rows may be joined: no key is NULL, and hardly any key occurs twice.

        This is estimated from a sample of the keys of each side. A wrong estimate only costs time:
        the join detects keys that occur twice.
        """
        if any(len(values.left) > 1 for values in self.keys):
            return False
        is_null = " OR ".join(f"{name} IS NULL" for name in self.key_names)
        share = min(1.0, 2 * _SAMPLED / (left_rows + right_rows))
        sides = ("if(d > 0, hash, NULL)", "if(d < 0, hash, NULL)")
        sampled = (
            self._both(with_values=False, where=f"rand({_SEED}) < {share!r}D OR {is_null}")
            .selectExpr("d", f"if({is_null}, NULL, xxhash64({', '.join(self.key_names)})) AS hash")
            .selectExpr(
                "count_if(hash IS NULL)",
                *(f"count({hash_}) - size(collect_set({hash_}))" for hash_ in sides),
            )
        )
        ((nulls, *repeats),) = collect(sampled)
        # Both rows of a key must be in the sample.
        return not nulls and all(
            _whole(repeated) <= _MOST_REPEATED * rows * share**2
            for repeated, rows in zip(repeats, (left_rows, right_rows), strict=True)
        )

    def _joined(self, left_rows: int, right_rows: int) -> Differences | None:
        """The differences found by a join of keys without NULL; None if a key of both sides occurs
        twice on one.

        Such a key makes the join return more rows than it received.
        """
        left = self._selected(self.left, [column.left for column in self._all()])
        right = self._selected(self.right, [column.right for column in self._all()])
        tasks = min(math.ceil((left_rows + right_rows) / _MOST_SORTED), _MOST_TASKS)
        left, right = (self._by_key(side, tasks) for side in (left, right))
        on = " AND ".join(f"l.{name} = r.{name}" for name in self.key_names)
        joined = left.alias("l").join(right.alias("r"), F.expr(on), "full")
        # A row missing on one side has a NULL key there: no extra column has to mark it.
        key = self.key_names[0]
        matched = f"l.{key} IS NOT NULL AND r.{key} IS NOT NULL"
        ((rows, changed, lefts, rights),) = collect(
            joined.selectExpr(
                "count(1)",
                f"count_if({matched} AND NOT ({self._are_same('l', 'r')}))",
                f"count(l.{key})",
                f"count(r.{key})",
            )
        )
        if (_whole(lefts), _whole(rights)) != (left_rows, right_rows):
            return None
        missing = _whole(rows) - left_rows
        extra = _whole(rows) - right_rows
        return Differences(missing, extra, _whole(changed), left_rows)

    def _by_key(self, frame: DataFrame, tasks: int) -> DataFrame:
        """The rows partitioned by key, if Spark would partition them for fewer tasks."""
        usual = frame.sparkSession.conf.get("spark.sql.shuffle.partitions", "200")
        is_enough = usual is None or not usual.isdecimal() or int(usual) >= tasks
        return frame if is_enough else frame.repartition(tasks, *self.key_names)

    # All others

    def _grouped(self, left_rows: int) -> Differences:
        if any(values.nearness for values in self.compared):
            near = f"size(lefts) - size({self._paired('lefts', 'rights')}.alone)"
            per_key = self._listed().selectExpr("l", "r", f"{near} AS near")
        else:
            per_key = (
                self._alone()
                .groupBy(*self.key_names)
                .agg(F.expr("sum(greatest(d, 0)) AS l"), F.expr("sum(greatest(-d, 0)) AS r"))
                .selectExpr("l", "r", "0 AS near")
            )
        ((missing, extra, changed),) = collect(
            per_key.selectExpr(
                "sum(greatest(r - l, 0))", "sum(greatest(l - r, 0))", "sum(least(l, r) - near)"
            )
        )
        return Differences(_whole(missing), _whole(extra), _whole(changed), left_rows)

    def _alone(self) -> DataFrame:
        """The rows that occur more often on one side, `d` times; negative for the right side.

        Equal rows meet in one group, so rows are compared and not their hashes. The rows of a key
        end up in one partition at once: the steps that follow need no shuffle.
        """
        names = [*self.key_names, *(name for names in self.compared_parts for name in names)]
        rows = self._both(with_values=True).repartition(*self.key_names)
        return rows.groupBy(*names).agg(F.expr("sum(d) AS d")).where("d <> 0")

    def _listed(self) -> DataFrame:
        """By key, the numbers of rows without an equal (`l`, `r`), and their values (`lefts`,
        `rights`).

        Only the first rows of each side are kept, in the order of their values.
        """
        keys = ", ".join(self.key_names)
        parts = [name for names in self.compared_parts for name in names]
        row = f"struct({', '.join(parts)})" if parts else "struct(true AS is_there)"
        order = ", ".join(f"row.{name}" for name in parts) or "row.is_there"
        rank = f"row_number() OVER (PARTITION BY {keys}, is_left ORDER BY {order})"
        copies = self._alone().selectExpr(
            *self.key_names,
            "d > 0 AS is_left",
            "abs(d) AS times",
            f"{row} AS row",
            f"explode(sequence(1L, least(abs(d), {MOST_NEAR}L))) AS copy",
        )
        ranked = copies.withColumn("is_listed", F.expr(f"{rank} <= {MOST_NEAR}"))
        return ranked.groupBy(*self.key_names).agg(
            F.expr("sum(if(is_left AND copy = 1, times, 0L)) AS l"),
            F.expr("sum(if(NOT is_left AND copy = 1, times, 0L)) AS r"),
            F.expr("array_sort(collect_list(if(is_left AND is_listed, row, NULL))) AS lefts"),
            F.expr("array_sort(collect_list(if(NOT is_left AND is_listed, row, NULL))) AS rights"),
        )

    def _paired(self, lefts: str, rights: str) -> str:
        """A struct with the left rows that remain `alone` after each has taken the first near row
        of the right side, and the `rest` of the right side."""
        if not any(values.nearness for values in self.compared):
            return f"named_struct('rest', {rights}, 'alone', {lefts})"
        place = f"array_position(transform(s.rest, y -> {self._are_same('x', 'y')}), true)"
        unpaired = "concat(slice(s.rest, 1, place - 1), slice(s.rest, place + 1, size(s.rest)))"
        step = (
            f"transform(array(CAST({place} AS INT)), place -> if(place > 0, "
            f"named_struct('rest', {unpaired}, 'alone', s.alone), "
            "named_struct('rest', s.rest, 'alone', concat(s.alone, array(x)))))[0]"
        )
        start = f"named_struct('rest', {rights}, 'alone', filter({lefts}, x -> false))"
        return f"aggregate({lefts}, {start}, (s, x) -> {step})"

    # Frames

    def _all(self) -> tuple[_Values, ...]:
        return (*self.keys, *self.compared)

    def _both(self, *, with_values: bool, where: str = "true") -> DataFrame:
        """The rows of both sides; `d` is 1 for the left one, and -1 for the right one.

        :param where: selects rows early, because rows of a union are costly.
        """
        columns = self._all() if with_values else self.keys
        left = self._selected(self.left, [column.left for column in columns]).where(where)
        right = self._selected(self.right, [column.right for column in columns]).where(where)
        return left.selectExpr("*", "1L AS d").unionAll(right.selectExpr("*", "-1L AS d"))

    def _selected(self, frame: DataFrame, columns: Sequence[Sequence[str]]) -> DataFrame:
        """The values under their names."""
        parts = [*self.key_parts, *self.compared_parts]
        return frame.selectExpr(
            *(
                f"{sql} AS {name}"
                for sqls, names in zip(columns, parts, strict=False)
                for sql, name in zip(sqls, names, strict=True)
            )
        )


def _numbered(letter: str, columns: Sequence[_Values]) -> list[list[str]]:
    numbers = count()
    return [[f"{letter}{next(numbers)}" for _ in values.left] for values in columns]


def _whole(value: MetricValue) -> int:
    return int(value or 0)
