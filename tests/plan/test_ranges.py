"""Ranges of one column: the extremes answer 0 exactly for those that they prove."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dqx_airflow.dql.nodes import Rows
from dqx_airflow.metrics.spark_values import comparable, literal_type, order_key
from dqx_airflow.metrics.sql import ValueBound, WithinRanges
from dqx_airflow.plan.range_predicates import range_of
from tests.markdown_cases import rows
from tests.sound_suites import sound_suite

TABLES = Path(__file__).with_name("ranges.md")


def within(predicate: str) -> WithinRanges | None:
    text = f'suite "S" {{ check "C" on orders {{ assert each row: {predicate} }} }}'
    suite = sound_suite(text)
    claim = suite.checks[0].assertions[0].claim
    assert isinstance(claim, Rows)
    return range_of(claim.predicate)


@pytest.mark.parametrize(
    ("predicate", "kind", "least", "most", "is_proven"), rows(TABLES, "Predicates and extremes")
)
def test_the_extremes_prove_a_range(
    predicate: str, kind: str, least: str, most: str, is_proven: str
) -> None:
    found = within(predicate)
    assert found is not None
    assert found.fits(lambda _: kind)
    assert found.answer((least, most), lambda _: kind) == (0 if is_proven == "yes" else None)


def test_without_a_value_nothing_is_out_of_range() -> None:
    found = within("x > 0")
    assert found is not None
    assert found.answer((None, None), lambda _: "int") == 0


@pytest.mark.parametrize(
    "predicate",
    [
        "x > y",
        "x > 0 and y > 0",
        "x > 0 or x < -5",
        "x in [1, 2]",
        'x matches "^[a-z]+$"',
        "length(x) > 3",
        "x > y + 1",
        "x is not null",
        "not x > 5",
    ],
)
def test_other_predicates_are_not_ranges(predicate: str) -> None:
    assert within(predicate) is None


@pytest.mark.parametrize(
    ("predicate", "kind"),
    [
        ("x > 5", "string"),  # Spark orders texts, and compares numbers
        ('x > "a"', "string"),
        ("x > 5", "float"),
        ("x > 2024-01-01", "timestamp"),
        ('x > "5"', "int"),
    ],
)
def test_a_range_is_counted_if_the_order_is_unknown(predicate: str, kind: str) -> None:
    found = within(predicate)
    assert found is not None
    assert not found.fits(lambda _: kind)


_LIMITS = st.integers(-5, 5) | st.sampled_from([-2.5, 0.1, 0.3, 2.5])
_BOUNDS = st.builds(ValueBound, st.sampled_from(["<", "<=", ">", ">=", "=="]), _LIMITS)
_COLUMNS = st.one_of(
    st.tuples(st.just("int"), st.lists(st.none() | st.integers(-6, 6))),
    st.tuples(
        st.just("decimal(3,1)"),
        st.lists(st.none() | st.decimals(-6, 6, places=1).map(lambda value: value + Decimal(0))),
    ),
    st.tuples(
        st.just("double"),
        st.lists(st.none() | st.floats(-6, 6) | st.sampled_from([float("nan"), float("inf"), 0.1])),
    ),
)


@given(_COLUMNS, st.lists(st.lists(_BOUNDS, min_size=1, max_size=2), min_size=1, max_size=2))
def test_a_range_proved_by_the_extremes_holds_for_every_value(
    column: tuple[str, list[object]], ranges: list[list[ValueBound]]
) -> None:
    kind, values = column
    present = sorted((value for value in values if value is not None), key=order_key)
    extremes = (_text(present[0]), _text(present[-1])) if present else (None, None)
    found = WithinRanges("x", tuple(map(tuple, ranges)))
    if found.answer(extremes, lambda _: kind) == 0:
        outside = [
            value
            for value in present
            if not any(all(_holds(value, kind, bound) for bound in range_) for range_ in ranges)
        ]
        assert outside == []


def _text(value: object) -> str:
    return {"nan": "NaN", "inf": "Infinity"}.get(str(value), str(value))


def _holds(value: object, kind: str, bound: ValueBound) -> bool:
    left, right = comparable(value, kind, bound.limit, literal_type(bound.limit))
    return bool(
        {
            "<": left < right,
            "<=": left <= right,
            ">": left > right,
            ">=": left >= right,
            "==": left == right,
        }[bound.op]
    )


def test_a_long_chain_of_inequalities_is_not_a_range() -> None:
    assert within(" and ".join(f"x != {number}" for number in range(190))) is None
    assert within("x != 1 and x != 2 and x > 0") is not None
