"""Values of data: how they compare, what a metric value keeps, and how results merge."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest

from dqx_airflow.metrics import spark_values
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.derived import apply
from dqx_airflow.metrics.metric import Aggregate, Merge
from dqx_airflow.metrics.sql import NeverNan, ValueBound, WithinRanges, has_overflown, sum_of, typed

NAN, INF = math.nan, math.inf
total, smallest, largest, percentile, first, correlation, share_difference = (
    METRICS[name].in_python or (lambda *_: None)
    for name in (
        *("sum", "minimum", "maximum", "percentile", "first", "correlation"),
        "share_difference",
    )
)
NOON = datetime(2024, 3, 2, 12)
EAST = timezone(timedelta(hours=2))
ORDERED: list[list[Any]] = [
    [-INF, -1.5, 0.0, 1.0, INF, NAN],
    [(), (None,), (1,), (1, None), (1, 2), (2,)],
    [{"a": None, "b": 1}, {"a": 0, "b": None}, {"a": 0, "b": 3}],
    ["", "A", "a", "é", "\ue000", "\U0001f986"],
]


@pytest.mark.parametrize("values", ORDERED)
def test_values_have_one_order(values: list[Any]) -> None:
    keys = [spark_values.order_key(value) for value in values]
    assert keys == sorted(keys)
    assert [(a, b) for a, b in pairwise(keys) if not a < b] == []


def test_nan_equals_nan_and_zero_has_no_sign() -> None:
    assert spark_values.order_key(NAN) == spark_values.order_key(-NAN)
    assert spark_values.order_key(-0.0) == spark_values.order_key(0.0)
    assert spark_values.order_key((NAN, None)) == spark_values.order_key((NAN, None))


EQUAL: list[tuple[Any, str, Any, str]] = [
    (0.1, "double", Decimal("0.1"), "decimal(2,1)"),
    (Decimal("0.1"), "decimal(2,1)", 0.1, "float"),
    (2**53, "bigint", 2.0**53, "double"),
    (2.0**60, "double", Decimal(2**60), "decimal(20,0)"),
    (NAN, "double", NAN, "float"),
    (date(2024, 3, 2), "date", "2024-03-02", "string"),
    ("2024-03-02 12:00:00", "string", NOON, "timestamp"),
    (NOON.replace(tzinfo=EAST), "timestamp", "2024-03-02T10:00:00", "string"),
    (0.5, "decimal(2,1)", Decimal("0.50"), "decimal(3,2)"),
    (1, "int", Decimal(1), "decimal(2,1)"),
]
SMALLER: list[tuple[Any, str, Any, str]] = [
    (2**53, "bigint", 2**53 + 1, "bigint"),
    (2.0**53, "double", 2**53 + 1, "bigint"),
    (0.1, "double", Decimal("0.10000000000000001"), "decimal(20,18)"),
    (Decimal("0.09999999999999999"), "decimal(20,18)", 0.1, "double"),
    (1e300, "double", NAN, "double"),
    (Decimal("9" * 38), "decimal(38,0)", INF, "double"),
    (-INF, "double", Decimal("-9"), "decimal(38,0)"),
    (2.0**63 - 1024, "double", Decimal(2**63), "decimal(20,0)"),
    (date(2024, 3, 2), "date", NOON, "timestamp_ntz"),
]


@pytest.mark.parametrize(("left", "left_type", "right", "right_type"), EQUAL)
def test_values_of_two_types_are_equal(
    left: Any, left_type: str, right: Any, right_type: str
) -> None:
    one, other = spark_values.comparable(left, left_type, right, right_type)
    assert one is not None
    assert one == other


@pytest.mark.parametrize(("left", "left_type", "right", "right_type"), SMALLER)
def test_values_of_two_types_have_an_order(
    left: Any, left_type: str, right: Any, right_type: str
) -> None:
    one, other = spark_values.comparable(left, left_type, right, right_type)
    assert one < other
    mirrored = spark_values.comparable(right, right_type, left, left_type)
    assert mirrored == (other, one)


def test_null_compares_with_nothing() -> None:
    assert spark_values.comparable(None, "int", 1, "int") == (None, None)
    assert spark_values.comparable(1.0, "double", None, "double") == (None, None)


LITERALS: list[tuple[Any, str]] = [
    (True, "boolean"),
    (0, "int"),
    (2**31 - 1, "int"),
    (-(2**31), "int"),
    (2**31, "bigint"),
    (-(2**31) - 1, "bigint"),
    (2**63 - 1, "bigint"),
    (-(2**63), "bigint"),
    (2**63, "decimal(19,0)"),
    (-(2**63) - 1, "decimal(19,0)"),
    (10**18, "bigint"),
    (1.5, "decimal(2,1)"),
    (Decimal("0.05"), "decimal(2,2)"),
    (1e300, "double"),
    (date(2024, 3, 2), "date"),
    ("1", "string"),
]


@pytest.mark.parametrize(("value", "kind"), LITERALS)
def test_a_literal_has_the_type_that_spark_gives_it(value: Any, kind: str) -> None:
    assert spark_values.literal_type(value) == kind


def test_a_literal_with_a_point_is_a_decimal_where_that_has_room() -> None:
    assert repr(spark_values.literal_value(0.1)) == "Decimal('0.1')"
    assert spark_values.literal_value(1e-300) == 1e-300
    assert isinstance(spark_values.literal_value(1e-300), float)
    assert spark_values.literal_value(INF) == INF
    assert spark_values.literal_value("x") == "x"


def test_a_timestamp_is_in_utc_and_midnight_for_a_date() -> None:
    assert spark_values.timestamp_of(date(2024, 3, 2)) == datetime(2024, 3, 2)
    assert spark_values.timestamp_of(NOON) is NOON
    assert spark_values.timestamp_of(None) is None
    assert spark_values.timestamp_of(NOON.replace(tzinfo=EAST)) == datetime(2024, 3, 2, 10)
    east = NOON.replace(tzinfo=timezone(timedelta(hours=9)))
    assert spark_values.timestamp_of(east) == datetime(2024, 3, 2, 3)
    assert spark_values.timestamp_of("2024-03-02 12:00:00+09:00") == datetime(2024, 3, 2, 3)


PLAIN: list[tuple[Any, Any]] = [
    (None, None),
    ("x", "x"),
    (True, 1),
    (7, 7),
    (Decimal("1.50"), Fraction(3, 2)),
    (Decimal("2.0"), 2),
    (Fraction(4, 2), 2),
    (1.5, 1.5),
    (NAN, None),
    (-INF, None),
    (NOON, "2024-03-02 12:00:00"),
    (NOON.replace(tzinfo=timezone.utc, microsecond=5), "2024-03-02 12:00:00.000005"),
    (date(2024, 3, 2), "2024-03-02"),
    ((1,), None),
    (b"x", None),
]


@pytest.mark.parametrize(("value", "kept"), PLAIN)
def test_an_exact_metric_value_stays_exact(value: Any, kept: Any) -> None:
    found = spark_values.metric_value(value)
    assert found == kept
    assert type(found) is type(kept)


NUMBERS: list[tuple[Any, Any]] = [
    (1.5, 1.5),
    (Decimal("1.50"), Decimal("1.50")),
    (7, 7),
    (10**37, 10**37),
    (10**38, 1e38),
    (Fraction(3, 2), Decimal("1.5")),
    (Fraction(2, 1), Decimal("2.0")),
    (Fraction(1, 3), 1 / 3),
]


@pytest.mark.parametrize(("value", "held"), NUMBERS)
def test_spark_holds_a_number_whole_as_a_decimal_or_else_as_a_float(value: Any, held: Any) -> None:
    found = spark_values.spark_number(value)
    assert (repr(found), type(found)) == (repr(held), type(held))


MERGED: list[tuple[Merge, Any, Any, Any]] = [
    (Merge.COUNT, 2, 3, 5),
    (Merge.COUNT, 2, None, 2),
    (Merge.SUM, None, Fraction(1, 2), Fraction(1, 2)),
    (Merge.SUM, Fraction(1, 2), Fraction(1, 2), 1),
    (Merge.LEAST, 2, -1, -1),
    (Merge.LEAST, "b", "a", "a"),
    (Merge.MOST, 2, -1, 2),
    (Merge.MOST, None, None, None),
]


@pytest.mark.parametrize(("merge", "one", "other", "both"), MERGED)
def test_two_results_become_one(merge: Merge, one: Any, other: Any, both: Any) -> None:
    found = merge.merged(one, other)
    assert (found, type(found)) == (both, type(both))


EXACT: list[tuple[Merge, str, Any, bool]] = [
    (Merge.COUNT, "double", 1.0, True),
    (Merge.SUM, "bigint", 5, True),
    (Merge.SUM, "bigint", None, True),
    (Merge.SUM, "double", 1.5, False),
    (Merge.LEAST, "double", None, False),
    (Merge.LEAST, "int", 1.0, False),
    (Merge.SUM, "decimal(10,2)", Fraction(1, 2), True),
    (Merge.SUM, "decimal(10,2)", None, False),
    (Merge.MOST, "decimal(10,2)", None, True),
    (Merge.SUM, "decimal(38,2)", 10**36 - 1, True),
    (Merge.SUM, "decimal(38,2)", 10**36, False),
    (Merge.SUM, "decimal(38,2)", -(10**36), False),
    (Merge.MOST, "decimal(10,2)", "1", False),
    (Merge.LEAST, "string", "a", True),
    (Merge.LEAST, "string", "a\ufffd", False),
    (Merge.LEAST, "date", "2024-03-02", True),
    (Merge.LEAST, "timestamp", None, False),
    (Merge.MOST, "boolean", None, True),
    (Merge.MOST, "binary", None, False),
    (Merge.MOST, "varchar(3)", "a", False),
]


@pytest.mark.parametrize(("merge", "kind", "result", "is_exact"), EXACT)
def test_only_complete_results_are_merged(
    merge: Merge, kind: str, result: Any, is_exact: bool
) -> None:
    assert merge.is_exact(kind, result) is is_exact


def test_a_null_sum_of_decimal_values_is_an_overflow() -> None:
    summed, counted = sum_of("a`b"), Aggregate("count(x)", merge=Merge.COUNT)
    decimals, bigints = (lambda _: "decimal(38,2)"), (lambda _: "bigint")
    both = (summed, counted)
    assert has_overflown(both, (None, 3), decimals)
    assert not has_overflown(both, (None, 0), decimals)
    assert not has_overflown(both, (1, 3), decimals)
    assert not has_overflown(both, (None, 3), bigints)
    assert not has_overflown((), (), decimals)
    assert not has_overflown((counted, counted), (None, 3), decimals)
    assert not has_overflown((Aggregate("sum(1)", merge=Merge.SUM), counted), (None, 3), decimals)


def test_a_sum_is_taken_in_parts_of_the_bits_of_its_type() -> None:
    summed = sum_of("n")
    assert summed.sql == "try_sum(`n`)"
    assert typed(summed, lambda _: "decimal(9,2)").sql == "try_sum(`n`)"
    assert typed(summed, lambda _: "int").sql == (
        "CAST(sum(shiftright(`n`, 16)) AS DECIMAL(20,0)) * 65536BD"
        " + CAST(sum(`n` & 65535) AS DECIMAL(20,0)) * 1BD"
    )
    assert typed(summed, lambda _: "bigint").sql == (
        "CAST(sum(shiftright(`n`, 42)) AS DECIMAL(20,0)) * 4398046511104BD"
        " + CAST(sum(shiftright(`n`, 21) & 2097151) AS DECIMAL(20,0)) * 2097152BD"
        " + CAST(sum(`n` & 2097151) AS DECIMAL(20,0)) * 1BD"
    )
    plain_count = Aggregate("count(*)", merge=Merge.COUNT)
    assert typed(plain_count, lambda _: "int") is plain_count
    assert typed(summed, {"n": "int"}.__getitem__) == typed(summed, lambda _: "int")
    assert has_overflown((summed, plain_count), (None, 1), {"n": "decimal(4,2)"}.__getitem__)


APPLIED: list[tuple[str, tuple[Any, ...], Any]] = [
    ("+", (1, Fraction(1, 2)), Fraction(3, 2)),
    ("-", (1, 3), -2),
    ("*", (Fraction(3, 2), Fraction(6, 5)), Fraction(9, 5)),
    ("/", (1, 3), Fraction(1, 3)),
    ("/", (1, 0), None),
    ("/", (1.0, 4), 0.25),
    ("/", (1, 0.0), None),
    ("*", (1e308, 10), None),
    ("+", (None, 1), None),
    ("+", ("1", 1), None),
    ("negative", (2,), -2),
    ("abs", (-2,), 2),
    ("sqrt", (-1,), None),
    ("log", (0,), None),
    ("exp", (1000,), None),
    ("min", ("b", "a"), "a"),
    ("max", (1, "a"), None),
    ("coalesce", (None, None, 0), 0),
    ("coalesce", (None, "x"), "x"),
    ("coalesce", (None,), None),
    ("stddev", (None, 5), 0.0),
    ("stddev", (None,), None),
    ("stddev", (1, 3), math.sqrt(2)),
    ("sample_stddev", (5,), None),
    ("usual", (None,), None),
    ("usual", (3, None, 1, 100), 3),
    ("usual", (4, 1), Fraction(5, 2)),
    ("usual", (4.0, 1), 2.5),
    ("sample_stddev", (1.0, 3, None), math.sqrt(2)),
    ("mean", (1, None, 2), Fraction(3, 2)),
    ("mean", (1.0, 2), 1.5),
    ("mean", (None,), None),
    ("mean", ("a",), None),
    ("age", ("2024-03-02 12:00:00", "2024-03-02T11:59:59.5", "UTC"), Fraction(1, 2)),
    ("age", ("2024-03-02 12:00:00+02:00", "2024-03-02", "UTC"), 36000),
    ("age", ("2024-03-02 12:00:00", "2024-03-02", "America/New_York"), 25200),
    ("midnight", ("2024-03-02 12:34:56.5", "UTC"), "2024-03-02 00:00:00+00:00"),
    ("midnight", ("2024-03-02", "America/New_York"), "2024-03-02 00:00:00-05:00"),
    ("deadline", ("2024-03-01", "06:00", "UTC"), "2024-03-02 06:00:00+00:00"),
    ("deadline", ("2024-03-01", "06:00", "Asia/Tokyo"), "2024-03-02 06:00:00+09:00"),
    ("deadline", ("2024-03-01 20:00:00", "06:00", "Asia/Tokyo"), "2024-03-03 06:00:00+09:00"),
]


@pytest.mark.parametrize(("function", "values", "result"), APPLIED)
def test_functions_of_metric_values(function: str, values: tuple[Any, ...], result: Any) -> None:
    found = apply(function, values)
    assert found == (pytest.approx(result) if isinstance(result, float) else result)
    assert type(found) is type(result)


def test_metrics_in_python_at_their_edges() -> None:
    assert total(spark_values.ColumnValues("int", (None,))) is None
    assert total(spark_values.ColumnValues("int", (2**63, 1, None))) == 2**63 + 1
    assert total(
        spark_values.ColumnValues("decimal(4,2)", (Decimal("1.10"), Decimal("2.20")))
    ) == Decimal("3.30")
    most = Decimal("9" * 36)
    assert total(spark_values.ColumnValues("decimal(38,2)", (most,))) == most
    with pytest.raises(spark_values.SumOverflow):
        total(spark_values.ColumnValues("decimal(38,2)", (most, Decimal(1))))
    assert smallest(spark_values.ColumnValues("double", (NAN, 2.0, None))) == 2.0
    assert math.isnan(largest(spark_values.ColumnValues("double", (2.0, NAN, 3.0, None))))
    assert math.isnan(largest(spark_values.ColumnValues("double", (NAN, 2.0, None))))
    assert percentile(spark_values.ColumnValues("double", (NAN, 2.0, 1.0)), Fraction(1, 2)) == 2.0
    assert (
        first(
            spark_values.ColumnValues("int", (1, 2)),
            spark_values.ColumnValues("double", (NAN, 5.0)),
        )
        == 2
    )
    assert (
        smallest(spark_values.ColumnValues("int", ())),
        largest(spark_values.ColumnValues("int", (None,))),
    ) == (None, None)
    assert spark_values.rounded_half_up(Decimal("0.125"), 2) == Decimal("0.13")
    assert spark_values.rounded_half_up(Decimal("-0.125"), 2) == Decimal("-0.13")
    assert spark_values.rounded_half_up(Decimal("1" * 60 + ".5"), 0) == Decimal("1" * 59 + "2")
    values = spark_values.ColumnValues("int", (10, 20, None, 40))
    assert first(values, None) == 10
    assert first(values, spark_values.ColumnValues("int", (3, None, 1, 2))) is None
    assert first(values, spark_values.ColumnValues("int", (None,) * 4)) is None
    assert first(spark_values.ColumnValues("int", ()), None) is None
    assert percentile(values, Fraction(1, 4)) == 15.0
    assert percentile(values, 1) == 40.0
    assert percentile(spark_values.ColumnValues("int", ()), 1) is None
    shares = [(10, Fraction(1, 2)), (20, Fraction(1, 4))]
    assert share_difference(spark_values.ColumnValues("int", (10, 20, 30, 30)), shares) == Fraction(
        1, 4
    )
    assert share_difference(spark_values.ColumnValues("int", (None,)), shares) is None


def test_a_correlation_lies_between_its_bounds() -> None:
    up = spark_values.ColumnValues("double", (1.0, 2.0, 3.0, None))
    assert correlation(up, spark_values.ColumnValues("int", (2, 4, 6, 1))) == pytest.approx(1.0)
    assert correlation(up, spark_values.ColumnValues("int", (6, 4, 2, 1))) == pytest.approx(-1.0)
    assert correlation(up, spark_values.ColumnValues("int", (1, 3, 2, 9))) == pytest.approx(0.5)
    assert correlation(up, spark_values.ColumnValues("int", (4, 4, 4, 1))) is None
    assert correlation(spark_values.ColumnValues("int", (4, 4, 4, 1)), up) is None
    assert correlation(up, spark_values.ColumnValues("int", (None, None, None, 1))) is None
    assert math.isnan(
        correlation(up, spark_values.ColumnValues("double", (1.0, NAN, 2.0, 0.0))) or 0
    )


DATES: list[tuple[str, Any]] = [
    ("2024-03-02", date(2024, 3, 2)),
    ("\x01 2024-3-2T25:00 \x00", date(2024, 3, 2)),
    ("2024-3", date(2024, 3, 1)),
    ("2024", date(2024, 1, 1)),
    ("\u00a02024-03-02", None),  # Spark trims what lies up to the space, and nothing else
    ("2024-02-30", None),
    ("24-03-02", None),
    ("", None),
]
MOMENTS: list[tuple[str, Any]] = [
    ("2024-03-02", datetime(2024, 3, 2)),
    ("2024-03-02 6", datetime(2024, 3, 2, 6)),
    ("2024-03-02T06:07", datetime(2024, 3, 2, 6, 7)),
    ("\x002024-03-02 06:07:08.5", datetime(2024, 3, 2, 6, 7, 8, 500_000)),
    ("2024-03-02 06:07:08.123456789", datetime(2024, 3, 2, 6, 7, 8, 123_456)),
    ("2024-03-02 06:07:08Z", datetime(2024, 3, 2, 6, 7, 8)),
    ("2024-03-02 06:07:08 UTC", datetime(2024, 3, 2, 6, 7, 8)),
    ("2024-03-02 06:07:08 GMT", datetime(2024, 3, 2, 6, 7, 8)),
    ("2024-03-02 06:07:08 UT", datetime(2024, 3, 2, 6, 7, 8)),
    ("2024-03-02 06:07:08+02", datetime(2024, 3, 2, 4, 7, 8)),
    ("2024-03-02 06:07:08UTC-02:30", datetime(2024, 3, 2, 8, 37, 8)),
    ("2024-03-02 06:07:08+1800", datetime(2024, 3, 1, 12, 7, 8)),
    ("2024-03-02 06:07:08+18:01", None),
    ("2024-03-02 06:07:08 Asia/Tokyo", datetime(2024, 3, 1, 21, 7, 8)),
    ("2024-03-02 06:07:08 Nowhere", None),
    ("2024-03-02 24:00", None),
    ("\u00a02024-03-02", None),
    ("noon", None),
]


@pytest.mark.parametrize(("text", "found"), DATES)
def test_a_date_is_read_as_spark_reads_it(text: str, found: Any) -> None:
    assert spark_values.date_in(text) == found


@pytest.mark.parametrize(("text", "found"), MOMENTS)
def test_a_timestamp_is_read_as_spark_reads_it(text: str, found: Any) -> None:
    assert spark_values.timestamp_in(text) == found


def test_digits_beyond_the_microsecond_are_detected() -> None:
    at = "2024-03-02 06:07:08"
    assert spark_values.has_nanoseconds(f"{at}.1234567")
    assert spark_values.has_nanoseconds(f"\x00{at}.0000000001")
    assert not spark_values.has_nanoseconds(f"{at}.123456000")
    assert not spark_values.has_nanoseconds(at)
    assert not spark_values.has_nanoseconds(f"\u00a0{at}.1234567")


RANGES = WithinRanges(
    "x",
    ((ValueBound(">=", 1), ValueBound("<", Decimal("2.5"))), (ValueBound("==", Decimal("9.5")),)),
)
ANSWERS: list[tuple[str, tuple[Any, ...], Any]] = [
    ("int", (None, None), 0),
    ("int", ("1", "2"), 0),
    ("int", ("0", "2"), None),
    ("int", ("1", "3"), None),
    ("decimal(4,2)", ("1.00", "2.49"), 0),
    ("decimal(4,2)", ("1.00", "2.50"), None),
    ("decimal(4,2)", ("9.50", "9.50"), 0),
    ("decimal(4,2)", ("1.00", "9.50"), None),
    ("double", ("1.0", "2.4"), 0),
    ("double", ("1.0", "NaN"), None),
    ("double", ("1.0", "Infinity"), None),
]


@pytest.mark.parametrize(("kind", "results", "answer"), ANSWERS)
def test_extremes_decide_for_all_values(kind: str, results: tuple[Any, ...], answer: Any) -> None:
    assert RANGES.answer(results, {"x": kind}.__getitem__) == answer


def test_a_shortcut_needs_a_known_order() -> None:
    kinds = {"i": "int", "d": "decimal(4,2)", "f": "float", "g": "double", "s": "string"}
    numbers = [kind for kind in kinds if _within(kind, 1).fits(kinds.__getitem__)]
    assert numbers == ["i", "d", "g"]
    assert not _within("i", "1").fits(kinds.__getitem__)
    days = _within("day", "2024-03-02")
    assert days.fits({"day": "date"}.__getitem__)
    assert days.answer(("2024-03-02", "2024-03-09"), {"day": "date"}.__getitem__) == 0
    assert days.answer(("2024-03-01", "2024-03-09"), {"day": "date"}.__getitem__) is None
    assert days.answer(("2024-03-02", "+10000-01-01"), {"day": "date"}.__getitem__) is None


def _within(column: str, limit: Any) -> WithinRanges:
    return WithinRanges(column, ((ValueBound(">=", limit),),))


def test_the_maximum_shows_whether_there_is_nan() -> None:
    never, kinds = NeverNan("x"), {"x": "double"}.__getitem__
    assert never.fits(kinds)
    assert [never.answer((largest_,), kinds) for largest_ in ("1.0", "Infinity", None)] == [0] * 3
    assert never.answer(("NaN",), kinds) is None
    (asked,) = never.needs
    assert asked.sql == "CAST(max(`x`) AS STRING)"
