"""Spark rounds off no digit of results with narrowed operands."""

from __future__ import annotations

from itertools import product

import pytest

from dqx_airflow.metrics.types import LONGEST_DECIMAL, decimal_size
from dqx_airflow.plan.decimal_sizes import exact_operands, exact_size, rounded_size

SIZES = [(precision, scale) for precision in (1, 5, 19, 20, 31, 37, 38) for scale in range(39)]
TYPES = [f"decimal({size[0]},{size[1]})" for size in SIZES if size[1] <= size[0]]


def test_a_sum_keeps_all_its_digits_behind_the_point() -> None:
    for left, right in product(TYPES, TYPES):
        operands = exact_operands("+", left, right)
        _expect_narrower(operands, (left, right))
        assert _keeps_all_digits("+", *operands), (left, right, operands)


def test_a_product_with_a_literal_keeps_all_its_digits_behind_the_point() -> None:
    literals = [literal for literal in TYPES if decimal_size(literal)[0] < LONGEST_DECIMAL - 1]
    for column, literal in product(TYPES, literals):
        narrow, same = exact_operands("*", column, literal, (False, True))
        _expect_narrower((narrow,), (column,))
        assert same == literal
        assert _keeps_all_digits("*", narrow, same), (column, literal, narrow)
        turned = exact_operands("*", literal, column, (True, False))
        assert turned == (same, narrow)


@pytest.mark.more
def test_a_product_of_columns_leaves_digits_before_the_point_or_is_left_to_spark() -> None:
    for left, right in product(TYPES, TYPES):
        operands = exact_operands("*", left, right)
        _expect_narrower(operands, (left, right))
        if operands != (left, right):
            assert _keeps_all_digits("*", *operands)
            for narrow, own in zip(operands, (left, right), strict=True):
                assert _whole(narrow) >= min(_whole(own), 12), (left, right, operands)


def _keeps_all_digits(op: str, left: str, right: str) -> bool:
    whole, scale = exact_size(op, decimal_size(left), decimal_size(right))
    return rounded_size(whole, scale)[1] == scale


def _expect_narrower(operands: tuple[str, ...], own: tuple[str, ...]) -> None:
    for narrow, wide in zip(operands, own, strict=True):
        precision, scale = decimal_size(narrow)
        assert 1 <= precision <= LONGEST_DECIMAL
        assert 0 <= scale <= decimal_size(wide)[1]
        assert _whole(narrow) <= max(_whole(wide), 1)


def _whole(decimal: str) -> int:
    precision, scale = decimal_size(decimal)
    return precision - scale
