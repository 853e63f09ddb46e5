"""Exact numbers and their decimal form: whole, finite, or cut off."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest

from dqx_airflow.values.exact import (
    WrittenFloat,
    bounded,
    exact,
    exact_as_written,
    exact_text,
    is_decimal,
    magnitude,
    nearest_float,
    parse_exact,
    square_root,
)

TEXTS = {
    "0": 0,
    "12": 12,
    "-12": -12,
    "0.125": Fraction(1, 8),
    "-0.125": Fraction(-1, 8),
    "0.5": Fraction(1, 2),
    "0.2": Fraction(1, 5),
    "0.04": Fraction(1, 25),
    "0.05": Fraction(1, 20),
    "0.25": Fraction(1, 4),
    "10.5": Fraction(21, 2),
    "-123.45": Fraction(-12345, 100),
    "0.0000000000000000000000000000000000000001": Fraction(1, 10**40),
    "0." + "0" * 399 + "1": Fraction(1, 10**400),
    "12345678901234567890.01": Fraction(1234567890123456789001, 100),
    "1/3": Fraction(1, 3),
    "-2/3": Fraction(-2, 3),
    "1/6": Fraction(1, 6),
    "7/15": Fraction(7, 15),
}


@pytest.mark.parametrize(("text", "number"), TEXTS.items(), ids=lambda item: str(item)[:10])
def test_a_number_and_its_string(text: str, number: int | Fraction) -> None:
    assert exact_text(number) == text
    assert parse_exact(text) == number
    assert is_decimal(number) is ("/" not in text)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1_000", 1000),
        ("1_0.2_5", Fraction(41, 4)),
        ("1e3", 1000),
        ("25E-2", Fraction(1, 4)),
        ("2.50", Fraction(5, 2)),
        ("4/2", 2),
        ("1e4000", 10**4000),
        ("1e-4000", Fraction(1, 10**4000)),
        ("0." + "1" * 3998, Fraction(int("1" * 3998), 10**3998)),
    ],
    ids=lambda item: str(item)[:10] if isinstance(item, str) else "",
)
def test_a_string_is_read_to_its_last_digit(text: str, number: int | Fraction) -> None:
    found = parse_exact(text)
    assert found == number
    assert type(found) is type(number)


@pytest.mark.parametrize("text", ["", "a", "nan", "inf", "1e", "1/0.5"])
def test_an_invalid_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"[Ii]nvalid"):
        parse_exact(text)


@pytest.mark.parametrize("text", ["1e4001", "1E-4001", "0." + "1" * 3999], ids=lambda t: t[:10])
def test_a_number_of_too_many_digits_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=f"^too large for an exact number: {text[:40]}$"):
        parse_exact(text)


@pytest.mark.parametrize(
    ("number", "due"),
    [(Decimal("2.50"), Fraction(5, 2)), (Decimal("2.00"), 2), (Fraction(6, 3), 2), (True, 1)],
)
def test_a_whole_number_is_an_int(number: int | Fraction | Decimal, due: int | Fraction) -> None:
    assert exact(number) == due
    assert type(exact(number)) is type(due)


@pytest.mark.parametrize(
    ("number", "due"),
    [
        (0.1, Fraction(1, 10)),
        (1e22, 10**22),
        (WrittenFloat("0.10000000000000000001"), Fraction(10**19 + 1, 10**20)),
        (WrittenFloat("1_0.5"), Fraction(21, 2)),
        (Decimal("0.10"), Fraction(1, 10)),
        (Decimal("1e3"), 1000),
        (Fraction(4, 2), 2),
        (7, 7),
    ],
)
def test_a_number_keeps_its_written_value(
    number: int | float | Decimal | Fraction, due: int
) -> None:
    assert exact_as_written(number) == due
    assert type(exact_as_written(number)) is type(due)


def test_a_written_float_is_the_float_and_its_digits() -> None:
    written = WrittenFloat("1_0.50")
    assert written == 10.5
    assert written.digits == "1_0.50"
    with pytest.raises(ValueError, match="1E\\+9999"):
        exact_as_written(Decimal("1e9999"))
    with pytest.raises(ValueError, match="inf"):
        exact_as_written(math.inf)


LARGE = 10**400


def test_the_nearest_float_of_a_number_too_large_is_infinite() -> None:
    assert nearest_float(Fraction(1, 10)) == 0.1
    assert nearest_float(LARGE) == math.inf
    assert nearest_float(-LARGE) == -math.inf
    assert nearest_float(Fraction(-LARGE, 3)) == -math.inf


@pytest.mark.parametrize("number", [5, 0, Fraction(1, 2), 2.5])
def test_the_magnitude_has_no_sign(number: float) -> None:
    assert magnitude(number) == magnitude(-number) == number


KEPT = [
    2**1000,  # 1001 bits above and 1 below
    Fraction(1, 2**1000),
    Fraction(2**2999 + 1, 2**2998 + 3),  # 3000 bits above
    Fraction(2**2998 + 3, 2**2999 + 1),
]
ROUNDED = [
    2**1001,
    Fraction(1, 2**1001),
    Fraction(2**3000 + 1, 2**2999 + 3),
    Fraction(2**2999 + 3, 2**3000 + 1),
]


@pytest.mark.parametrize("number", KEPT, ids=["large", "small", "long above", "long below"])
def test_an_exact_number_stays_exact(number: int | Fraction) -> None:
    assert bounded(number) == number
    assert type(bounded(number)) is type(number)


@pytest.mark.parametrize("number", ROUNDED, ids=["large", "small", "long above", "long below"])
def test_an_exact_number_too_long_becomes_a_float(number: int | Fraction) -> None:
    assert bounded(number) == float(number)
    assert type(bounded(number)) is float


def test_a_float_is_bounded_and_no_float_is_as_large_as_some_numbers() -> None:
    assert bounded(0.1) == 0.1
    assert type(bounded(0.5)) is float
    assert bounded(Fraction(4, 2)) == 2
    with pytest.raises(OverflowError):
        bounded(LARGE)


@pytest.mark.parametrize(
    ("square", "due"),
    [
        (0, 0),
        (49, 7),
        (Fraction(9, 4), Fraction(3, 2)),
        (Fraction(1, 4), Fraction(1, 2)),
        (Fraction(4, 9), Fraction(2, 3)),
        (2, Fraction("1.414213562373095048801688724209698078570")),
        (Fraction(4, 3), Fraction("1.154700538379251529018297561003914911295")),
    ],
)
def test_a_root_is_exact_where_it_is_rational_else_40_digits(
    square: int | Fraction, due: int | Fraction
) -> None:
    assert square_root(square) == due
    assert type(square_root(square)) is type(due)
