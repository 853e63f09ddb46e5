"""Random tables with edge cases, and their correct results, computed in exact Python.

Nothing of the package is used here: this is the other opinion. Numbers are fractions, so a bound
may lie one unit of the last digit beside a value and the answer is still known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import pyarrow as pa

TODAY, YESTERDAY = date(2024, 3, 2), date(2024, 3, 1)

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("n", pa.int64()),
        ("i", pa.int32()),
        ("m", pa.decimal128(18, 6)),
        ("big", pa.decimal128(38, 2)),
        ("flag", pa.decimal128(1, 0)),
        ("s", pa.string()),
        ("ds", pa.date32()),
    ]
)
EXACT = {"n": 0, "i": 0, "m": 6, "big": 2, "flag": 0}
"""The columns of exact numbers, with the digits behind their points."""

_EDGES: dict[str, Sequence[Any]] = {
    "n": [0, 1, -1, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, -(2**62)],
    "i": [0, 1, -1, 100_000, 2**31 - 1, -(2**31)],
    "m": [Decimal(x) for x in ("0", "0.000001", "-0.000001", "999999999999.999999", "0.1")],
    "big": [Decimal(x) for x in ("0", "0.01", "12345678901234567.89", "12345678901234567.91")],
    "flag": [Decimal(0), Decimal(0), Decimal(0), Decimal(1)],
    "s": ["", "open", "paid", "open\n", "OPEN", "ö", "a b"],
}

Row = dict[str, Any]


def random_rows(random: Random, count: int, on: date) -> list[Row]:
    """Rows of one date; each column keeps to edges, to a small range, or to a few values."""
    nulls = random.choice([0.0, 0.0, 0.1, 0.9])
    wild = {column: random.random() < 0.5 for column in _EDGES}

    def cell(column: str) -> Any:
        if random.random() < nulls:
            return None
        if wild[column] or column in ("s", "flag"):
            return random.choice(_EDGES[column])
        units = random.randint(-5000, 5000)
        return Decimal(units).scaleb(-EXACT[column]) if column in ("m", "big") else units

    ids = [random.randint(0, count) for _ in range(count)]
    return [{"id": key, **{c: cell(c) for c in _EDGES}, "ds": on} for key in ids]


def as_arrow(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@dataclass(frozen=True)
class Claim:
    """An assertion as text, and whether it holds."""

    text: str
    holds: bool


def random_claims(random: Random, rows: Sequence[Row], before: Sequence[Row]) -> list[Claim]:
    """Claims about today's rows (and yesterday's), most of them decided by the last digit."""
    claims = [
        *(_number_claims(random, rows)),
        *(_row_claims(random, rows)),
        *(_day_claims(random, rows, before)),
    ]
    random.shuffle(claims)
    return claims


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


def _compared(random: Random, text: str, value: Fraction | None, digits: int) -> Claim:
    """A comparison with a bound at the value, or a unit of the digit beside it."""
    operator = random.choice(list(_OPERATORS))
    unit = Fraction(1, 10**digits)
    near = Fraction(0) if value is None else value
    bound = _cut(near, digits) + random.choice([-1, 0, 0, 1]) * unit
    holds = value is not None and _OPERATORS[operator](value, bound)
    return Claim(f"{text} {operator} {literal(bound, digits)}", holds)


def _cut(value: Fraction, digits: int) -> Fraction:
    return Fraction(int(value * 10**digits), 10**digits)


def literal(value: Fraction, digits: int) -> str:
    """A fraction that ends after some digits, as it is written."""
    units = int(value * 10**digits)
    sign, units = ("-" if units < 0 else ""), abs(units)
    whole, rest = divmod(units, 10**digits)
    return f"{sign}{whole}" + (f".{rest:0{digits}d}" if digits else "")


def _values(rows: Iterable[Row], column: str) -> list[Fraction]:
    return [Fraction(row[column]) for row in rows if row[column] is not None]


def _number_claims(random: Random, rows: Sequence[Row]) -> list[Claim]:
    def compared(text: str, value: Fraction | int | None, digits: int) -> Claim:
        return _compared(random, text, None if value is None else Fraction(value), digits)

    claims = [compared("num_rows()", len(rows), 0)]
    for column, digits in EXACT.items():
        values = _values(rows, column)
        nulls = len(rows) - len(values)
        total = sum(values, Fraction(0)) if values else None
        distinct = len(set(values))
        tuples = Counter(row[column] for row in rows)
        claims += [
            compared(f"count({column})", len(values), 0),
            compared(f"null_count({column})", nulls, 0),
            compared(f"null_count({column}) / num_rows()", Fraction(nulls, len(rows)), 15),
            compared(f"unique_count({column})", distinct, 0),
            compared(f"duplicate_count({column})", len(rows) - len(tuples), 0),
            compared(f"minimum({column})", min(values, default=None), digits),
            compared(f"maximum({column})", max(values, default=None), digits),
            compared(f"sum({column})", total, digits),
            compared(f"sum({column}) - num_rows()", total and total - len(rows), digits)
            if total
            else compared(f"count({column}) + 1", len(values) + 1, 0),
            compared(f"average({column})", total / len(values) if total is not None else None, 12),
            Claim(f"not_null({column})", nulls == 0),
        ]
    for word in ("open", "paid", ""):
        found = sum(row["s"] == word for row in rows)
        claims.append(compared(f'count_values(s, "{word}")', found, 0))
    return claims


def _row_claims(random: Random, rows: Sequence[Row]) -> list[Claim]:
    """A row with NULL in what is asked does not violate; everything else is exact."""

    def each(text: str, columns: Sequence[str], holds: Callable[[Row], bool]) -> list[Claim]:
        asked = [row for row in rows if all(row[column] is not None for column in columns)]
        good = sum(holds(row) for row in asked)
        claims = [Claim(f"each row: {text}", good == len(asked))]
        if asked:
            percent = random.choice([1, 50, 90, 99, 100])
            share = Fraction(good, len(asked)) >= Fraction(percent, 100)
            claims.append(Claim(f"{percent}% of rows: {text}", share))
        return claims

    claims: list[Claim] = []
    for column, digits in EXACT.items():
        values = _values(rows, column)
        pivot = random.choice(values) if values else Fraction(0)
        bound = pivot + random.choice([-1, 0, 1]) * Fraction(1, 10 ** (digits + 3))
        written = literal(bound, digits + 3)
        operator = random.choice(list(_OPERATORS))

        def holds(
            row: Row, column: str = column, operator: str = operator, bound: Fraction = bound
        ) -> bool:
            return _OPERATORS[operator](Fraction(row[column]), bound)

        claims += each(f"{column} {operator} {written}", [column], holds)
        claims += each(
            f"not ({column} {operator} {written})", [column], lambda row, h=holds: not h(row)
        )
    for one, other in (("i", "i"), ("i", "n"), ("n", "n"), ("m", "i"), ("big", "m"), ("n", "m")):
        for sign, apply in (
            ("+", lambda a, b: a + b),
            ("-", lambda a, b: a - b),
            ("*", lambda a, b: a * b),
        ):
            bound = random.choice([0, 1_000_000, 2**31, 2**40])
            operator = random.choice(["<=", ">=", "<", ">"])

            def arithmetic(
                row: Row,
                one: str = one,
                other: str = other,
                sign: str = sign,
                apply: Callable[[Any, Any], Any] = apply,
                operator: str = operator,
                bound: int = bound,
            ) -> bool:
                value = apply(Fraction(row[one]), Fraction(row[other]))
                if sign != "*" and {one, other} <= {"i", "n"} and not -(2**63) <= value < 2**63:
                    return False  # a sum that overflows 64 bits violates, whatever is asked of it
                return _OPERATORS[operator](value, bound)

            claims += each(f"{one} {sign} {other} {operator} {bound}", [one, other], arithmetic)
    claims += each('s in ["open", "paid"]', ["s"], lambda row: row["s"] in ("open", "paid"))
    claims += each('s matches "^(open|paid)$"', ["s"], lambda row: row["s"] in ("open", "paid"))
    claims += each('s != "open"', ["s"], lambda row: row["s"] != "open")
    return claims


def _day_claims(random: Random, rows: Sequence[Row], before: Sequence[Row]) -> list[Claim]:
    if not before:
        return []
    change = abs(Fraction(len(rows) - len(before), len(before)))
    return [
        _compared(random, "day_over_day(num_rows())", change, 12),
        _compared(random, "num_rows(lag 1)", Fraction(len(before)), 0),
        _compared(random, "num_rows() / num_rows(lag 1)", Fraction(len(rows), len(before)), 12),
    ]
