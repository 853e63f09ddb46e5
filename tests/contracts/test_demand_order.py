"""Which of two versions of a demand accepts more: looser one way is tighter the other way."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dqx_airflow.contracts.demands import (
    AmongRows,
    Arrives,
    Bound,
    Complete,
    Condition,
    Demand,
    Digits,
    Distinct,
    Fresh,
    HourlyVolume,
    Length,
    MetricRule,
    MultipleOf,
    OneOf,
    Order,
    Pattern,
    Prompt,
    QueryGives,
    Retained,
    RowsSatisfy,
    Unique,
    Volume,
    compare_demands,
)
from dqx_airflow.contracts.diff.columns import compare_types, is_delta_widening

BACK = {Order.LOOSER: Order.TIGHTER, Order.TIGHTER: Order.LOOSER}

small = st.integers(-4, 4)
shares = st.sampled_from([0.0, 0.25, 0.5, 1.0])
columns = st.sampled_from([("a",), ("b",), ("a", "b"), ("a", "b", "c")])
limits = st.one_of(st.none(), st.sampled_from([0.5, 1.0, 2.0]))
conditions = st.builds(
    lambda op, low, width: Condition(op, low, low + width if "between" in op else None),
    st.sampled_from(["==", "!=", ">", ">=", "<", "<=", "between", "not between"]),
    small,
    st.integers(0, 3),
)

DEMANDS: dict[str, st.SearchStrategy[Demand]] = {
    "bound": st.builds(Bound, st.sampled_from([">", ">=", "<", "<="]), small),
    "length": st.builds(Length, st.sampled_from([">=", "<="]), st.integers(0, 4)),
    "enum": st.builds(
        lambda values: OneOf(tuple(values)),
        st.lists(st.sampled_from(["A", "B", "C", 1, True]), min_size=1, unique_by=repr),
    ),
    "multiple": st.builds(MultipleOf, st.sampled_from([0.01, 0.1, 0.5, 1, 2, 3, 6])),
    "digits": st.builds(Digits, st.integers(4, 8), st.integers(0, 3)),
    "unique": st.builds(Unique, columns),
    "measured": st.builds(MetricRule, st.just("null_count"), st.just(("a",)), conditions),
    "query": st.builds(QueryGives, st.just("SELECT 1"), conditions),
    "among rows": st.builds(
        AmongRows,
        st.builds(Complete, st.just("a"), shares),
        st.sampled_from(["x > 1", "x  >  1", "y > 1"]),
    ),
    "complete": st.builds(Complete, st.just("a"), shares),
    "distinct": st.builds(Distinct, columns, shares),
    "rows": st.builds(
        RowsSatisfy, st.sampled_from(["x > 1", "x >= 1", "x < 3", "y > 1"]), st.none(), shares
    ),
    "fresh": st.builds(Fresh, st.just("a"), st.sampled_from([60.0, 3600.0])),
    "prompt": st.builds(Prompt, st.just("a"), st.just("b"), st.sampled_from([1.0, 2.0]), shares),
    "retained": st.builds(Retained, st.just("a"), st.sampled_from([60.0, 3600.0])),
    "volume": st.builds(Volume, limits, limits, st.sampled_from([None, 100.0, 200.0])),
    "hourly": st.builds(HourlyVolume, st.just("a"), limits, limits),
    "arrives": st.builds(Arrives, st.just("a"), st.sampled_from([60.0, 3600.0])),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", DEMANDS)
@given(data=st.data())
def test_looser_one_way_is_tighter_the_other_way(kind: str, data: st.DataObject) -> None:
    one, other = data.draw(DEMANDS[kind]), data.draw(DEMANDS[kind])
    order = compare_demands(one, other)
    assert compare_demands(other, one) is BACK.get(order, order)
    assert compare_demands(one, one) is Order.SAME


@given(DEMANDS["bound"], DEMANDS["bound"], st.booleans())
def test_the_order_of_bounds_is_that_of_the_values_they_admit(
    one: Bound, other: Bound, is_whole: bool
) -> None:
    step = 1 if is_whole else 4
    values = [number / step for number in range(-6 * step, 6 * step + 1)]
    if one.op[0] == other.op[0]:
        found = compare_demands(one, other, is_whole=is_whole)
        assert found is order_of(admitted(one, values), admitted(other, values))


@given(conditions, conditions)
def test_the_order_of_conditions_is_that_of_the_numbers_they_accept(
    one: Condition, other: Condition
) -> None:
    values = [number / 4 for number in range(-50, 51)]
    found = compare_demands(QueryGives("q", one), QueryGives("q", other))
    assert found is order_of(accepted(one, values), accepted(other, values))


def order_of(before: set[float], after: set[float]) -> Order:
    if before == after:
        return Order.SAME
    return Order.LOOSER if before < after else Order.TIGHTER if after < before else Order.OTHER


def admitted(bound: Bound, values: list[float]) -> set[float]:
    return {value for value in values if holds(bound.op, value, bound.value)}


def accepted(condition: Condition, values: list[float]) -> set[float]:
    if "between" not in condition.op:
        return {value for value in values if holds(condition.op, value, condition.bound)}
    within = {v for v in values if condition.bound <= v <= (condition.high or 0)}
    return within if condition.op == "between" else set(values) - within


def holds(op: str, value: float, bound: Any) -> bool:
    results = {
        ">": value > bound,
        ">=": value >= bound,
        "<": value < bound,
        "<=": value <= bound,
        "==": value == bound,
        "!=": value != bound,
    }
    return results[op]


@pytest.mark.parametrize(
    ("old", "new", "order"),
    [
        (Bound(">=", "2024-01-31"), Bound(">=", "2024-01-30"), Order.LOOSER),
        (Bound("<=", "2024-01-31"), Bound("<=", "2024-01-31T00:00:00Z"), Order.SAME),
        (Bound("<=", "2024-01-31T02:00:00+02:00"), Bound("<=", "2024-01-31"), Order.SAME),
        (Bound(">=", "abc"), Bound(">=", "abd"), Order.OTHER),
        (Bound(">=", 1), Bound(">=", "2024-01-31"), Order.OTHER),
        (Bound(">=", 0.1), Bound(">=", "0.10"), Order.SAME),
        (OneOf((1, 2)), OneOf((1.0, 2.0)), Order.SAME),
        (OneOf((1,)), OneOf((True,)), Order.OTHER),
        (OneOf(("1",)), OneOf((1,)), Order.OTHER),
        (Unique(("a", "b")), Unique(("a",)), Order.TIGHTER),
        (RowsSatisfy("x > 0"), RowsSatisfy("X > 0"), Order.OTHER),
        (RowsSatisfy("x > 0"), RowsSatisfy("x>0"), Order.SAME),
        (RowsSatisfy("x > 0"), RowsSatisfy("x > -0.5"), Order.LOOSER),
        (RowsSatisfy("x > 0"), RowsSatisfy("x > ("), Order.OTHER),
        (RowsSatisfy("x > 0", None, 0.9), RowsSatisfy("x > 1", None, 0.5), Order.OTHER),
        (Fresh("a", 60), Fresh("b", 60), Order.OTHER),
        (Volume(0.5, 2.0, 100), Volume(0.25, 1.0, 200), Order.SAME),
        (Volume(0.5, 2.0, 100), Volume(0.5, 2.0), Order.OTHER),
    ],
)
def test_equal_and_incomparable_demands_are_recognised(
    old: Demand, new: Demand, order: Order
) -> None:
    assert compare_demands(old, new) is order


def test_another_pattern_cannot_be_compared() -> None:
    old, new = Pattern("^M[0-9]{4}$"), Pattern("^M[0-9]{4,6}$")
    assert compare_demands(old, old) is Order.SAME
    assert compare_demands(old, new) is compare_demands(new, old) is Order.OTHER


@pytest.mark.parametrize(
    ("old", "new", "order"),
    [
        ("int", "bigint", Order.LOOSER),
        ("smallint", "double", Order.LOOSER),
        ("bigint", "double", Order.OTHER),
        ("float", "double", Order.LOOSER),
        ("double", "decimal(38,10)", Order.OTHER),
        ("int", "decimal(10,0)", Order.LOOSER),
        ("int", "decimal(10,2)", Order.OTHER),
        ("bigint", "decimal(20,0)", Order.LOOSER),
        ("decimal(10,2)", "decimal(12,2)", Order.LOOSER),
        ("decimal(10,2)", "decimal(12,4)", Order.LOOSER),
        ("decimal(10,2)", "decimal(10,4)", Order.OTHER),
        ("date", "timestamp_ntz", Order.LOOSER),
        ("date", "timestamp", Order.OTHER),
        ("timestamp", "timestamp_ntz", Order.OTHER),
        ("varchar(10)", "varchar(20)", Order.LOOSER),
        ("varchar(10)", "string", Order.LOOSER),
        ("string", "text", Order.SAME),
        ("int", "string", Order.OTHER),
        ("int", "whole_number", Order.LOOSER),
        ("whole_number", "number", Order.LOOSER),
        ("int", "any", Order.OTHER),
        (None, "any", Order.SAME),
        (None, "int", Order.OTHER),
        ("array", "map", Order.OTHER),
    ],
)
def test_types_widen_as_in_delta(old: str | None, new: str | None, order: Order) -> None:
    assert compare_types(old, new) is order
    assert compare_types(new, old) is BACK.get(order, order)


@pytest.mark.parametrize(
    ("old", "new"), [("int", "whole_number"), ("varchar(10)", "string"), ("bigint", "int")]
)
def test_types_that_delta_cannot_alter_are_not_widened(old: str, new: str) -> None:
    assert not is_delta_widening(old, new)
