"""One bad cell among good ones, and the claims that it breaks.

Each claim holds over the good values alone, and the bad one breaks it. `x` is the column,
`y` another one of the same type that holds the first good value in every row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class BadCell:
    """What a column holds, what slips in, and what is claimed of it."""

    name: str
    type: pa.DataType
    good: tuple[Any, ...]
    bad: Any
    claims: tuple[str, ...]
    other: Any = None
    """The value of `y`; the first good value where it is None."""

    def table(self, with_bad: bool) -> pa.Table:
        values = [*self.good * 5, self.bad, *self.good] if with_bad else [*self.good * 6]
        other = self.good[0] if self.other is None else self.other
        return pa.table(
            {
                "id": pa.array(range(len(values)), pa.int64()),
                "x": pa.array(values, self.type),
                "y": pa.array([other] * len(values), self.type),
            }
        )


_RANGE_CLAIMS = (
    "each row: x between 0 and 100",
    "each row: not (x > 100) and not (x < 0)",
    "each row: x in [1, 2, 3]",
    "each row: x * 1 <= 100 and x * 1 >= 0",
    "each row: abs(x) <= 100 and x >= 0",
    "100% of rows: x between 0 and 100",
    "99% of rows: x >= 0 and x <= 100",
    "in_set(x, [1, 2, 3])",
)
_AT_LEAST_CLAIMS = (*_RANGE_CLAIMS, "each row: x >= 0", "each row: x > -1")
_AT_MOST_CLAIMS = (*_RANGE_CLAIMS, "each row: x <= 100", "each row: x < 100")
_NAN_CLAIMS = (
    *_AT_LEAST_CLAIMS,
    "each row: x <= 100",
    "each row: x < 100",
    "each row: x == x",
    "each row: x != 5",
    "each row: not (x == 5)",
    "each row: not (x in [5, 6])",
    "each row: x not in [5, 6]",
    "each row: x not between 5 and 6",
    "each row: not (x between 5 and 6)",
    "each row: x - y >= 0",
    "each row: y <= x",
    "each row: x / y >= 1",
    "each row: round(x, 1) >= 0",
    "each row: coalesce(x, 1) >= 0",
    "100% of rows: x >= 0",
    "positive(x)",
    "non_negative(x)",
    "minimum(x) >= 0",
    "minimum(x) > -1",
    "minimum(x) != 7",
    "maximum(x) <= 100",
    "average(x) >= 0",
    "average(x) < 100",
    "sum(x) >= 0",
    "sum(x) - sum(x) == 0",
    "variance(x) >= 0",
    "minimum(x) is not None",
    "average(x) between 0 and 100",
    "if maximum(x) > 100 then num_rows() > 1000",
    "coalesce(maximum(x), 0) <= 100",
)


def _decimal(text: str) -> Decimal:
    return Decimal(text)


BAD_CELLS = [
    BadCell("NaN in double", pa.float64(), (1.0, 2.0, 3.0), math.nan, _NAN_CLAIMS),
    BadCell("NaN in float", pa.float32(), (1.0, 2.0, 3.0), math.nan, _NAN_CLAIMS),
    BadCell(
        "infinity in double",
        pa.float64(),
        (1.0, 2.0, 3.0),
        math.inf,
        (
            *_AT_MOST_CLAIMS,
            "maximum(x) <= 100",
            "average(x) >= 0",
            "sum(x) >= 0",
            "each row: x - x == 0",
            "coalesce(maximum(x), 0) <= 100",
            "coalesce(average(x), 0) <= 100",
            "if maximum(x) > 100 then num_rows() > 1000",
        ),
    ),
    BadCell(
        "minus infinity in double",
        pa.float64(),
        (1.0, 2.0, 3.0),
        -math.inf,
        (*_AT_LEAST_CLAIMS, "positive(x)", "minimum(x) >= 0", "average(x) <= 100"),
    ),
    BadCell(
        "a hair below zero in double",
        pa.float64(),
        (1.0, 2.0, 3.0),
        -5e-324,
        (
            "each row: x >= 0",
            "positive(x)",
            "non_negative(x)",
            "minimum(x) >= 0",
            "each row: x between 0 and 100",
            "each row: not (x < 0)",
        ),
    ),
    BadCell(
        "a hair above zero in double",
        pa.float64(),
        (0.0, 0.0, 0.0),
        5e-10,
        ("maximum(x) == 0", "maximum(x) <= 0", "each row: x == 0", "each row: x in [0]"),
    ),
    *(
        BadCell(
            f"product that overflows in {type_}",
            type_,
            (1, 2, 3),
            top,
            (
                "each row: x * x <= 1000",
                "each row: x * x < 1000",
                "each row: not (x * x > 1000)",
                "each row: x * x between 0 and 1000",
                "each row: x + x <= 1000",
                "each row: x + 1 <= 1000",
                "each row: 0 - x - 10 >= -1000",
                "each row: -x - 2 >= -100",
                "each row: x * x * x <= 1000 or x < 0",
                "100% of rows: x * x <= 1000",
                "each row: (x + x) / 2 <= 1000",
                "each row: abs(x * x) <= 1000",
                "each row: x * x in [1, 4, 9]",
                "each row: x * y <= 1000",
            ),
        )
        for type_, top in (
            (pa.int16(), 2**15 - 1),
            (pa.int32(), 2**31 - 1),
            (pa.int64(), 2**63 - 1),
        )
    ),
    BadCell(
        "int of 100,000 squared",
        pa.int32(),
        (1, 2, 3),
        100_000,
        ("each row: x * x <= 1000000", "each row: x * x * x <= 1000000", "sum(x) <= 1000"),
    ),
    BadCell(
        "the least bigint",
        pa.int64(),
        (1, 2, 3),
        -(2**63),
        (
            "each row: abs(x) <= 100",
            "each row: -x >= -100 and x > -100",
            "each row: x - 1 >= -100",
            "minimum(x) >= 0",
            "positive(x)",
        ),
    ),
    BadCell(
        "the least int",
        pa.int32(),
        (1, 2, 3),
        -(2**31),
        ("each row: abs(x) <= 100", "each row: -x <= 100", "each row: x - 1 >= -100"),
    ),
    BadCell(
        "a division by zero",
        pa.int64(),
        (1, 2, 3),
        0,
        (
            "each row: 10 / x <= 100",
            "each row: 10 / x >= 0",
            "each row: not (10 / x > 100)",
            "each row: 10 / x between 0 and 100",
            "each row: 10 / x in [10, 5, 3.5] or 10 / x > 0",
            "100% of rows: 10 / x > 0",
            "each row: y / x > 0",
            "each row: (y + 1) / (x * 2) > 0",
            "each row: 10 / x != 7",
            "each row: 1 / (10 / x) < 5",
        ),
    ),
    BadCell(
        "a division of doubles by zero",
        pa.float64(),
        (1.0, 2.0, 3.0),
        0.0,
        ("each row: 10 / x <= 100", "each row: 10 / x >= 0", "each row: not (10 / x > 100)"),
    ),
    BadCell(
        "a product of decimals that overflows",
        pa.decimal128(38, 10),
        tuple(map(_decimal, ("1", "2", "3"))),
        _decimal("9" * 28 + "." + "9" * 10),
        (
            "each row: x * x <= 1000000",
            "each row: x + x <= 1000000",
            "each row: x * x * x < 100",
            "each row: not (x * x > 1000000)",
            "maximum(x) <= 100",
            "sum(x) <= 1000",
            "average(x) <= 1000",
        ),
    ),
    BadCell(
        "the last digit of a decimal",
        pa.decimal128(38, 18),
        tuple(map(_decimal, ("0.1", "0.05", "0.1"))),
        _decimal("0.100000000000000001"),
        (
            "each row: x <= 0.1",
            "each row: not (x > 0.1)",
            "each row: x in [0.1, 0.05]",
            "each row: x between 0 and 0.1",
            "each row: x <= y",
            "each row: x * 10 <= 1",
            "each row: x <= 10%",
            "100% of rows: x <= 0.1",
            "maximum(x) <= 0.1",
            "maximum(x) == 0.1",
            "maximum(x) between 0 and 0.1",
            "maximum(x) <= 10%",
            "in_set(x, [0.1, 0.05])",
            "maximum(x) - 0.1 == 0",
            "maximum(x) * 10 <= 1",
        ),
    ),
    BadCell(
        "the last cent of a large decimal",
        pa.decimal128(38, 2),
        (_decimal("12345678901234567.89"),),
        _decimal("12345678901234567.90"),
        (
            "each row: x <= 12345678901234567.89",
            "each row: x == 12345678901234567.89",
            "each row: x == y",
            "each row: x in [12345678901234567.89]",
            "maximum(x) <= 12345678901234567.89",
            "maximum(x) == minimum(x)",
            "maximum(x) - minimum(x) == 0",
            "average(x) == minimum(x)",
            "average(x) == average(y)",
            "sum(x) == sum(y)",
            "sum(x) - sum(y) == 0",
            "sum(x) / sum(y) == 1",
            "values(x) in values(y, dataset t)",
        ),
    ),
    BadCell(
        "a bigint beyond the doubles",
        pa.int64(),
        (2**53,),
        2**53 + 1,
        (
            "each row: x <= 9007199254740992.0",
            "each row: x == 9007199254740992",
            "each row: x in [9007199254740992.0]",
            "each row: x <= y",
            "maximum(x) <= 9007199254740992",
            "maximum(x) <= 9007199254740992.0",
            "maximum(x) == minimum(x)",
            "sum(x) == sum(y)",
            "average(x) == average(y)",
            "average(x) == minimum(x)",
            "sum(x) - sum(y) == 0",
            "maximum(x) / minimum(x) == 1",
        ),
    ),
    BadCell(
        "one flag of decimals",
        pa.decimal128(1, 0),
        (_decimal("0"),) * 4000,
        _decimal("1"),
        ("average(x) == 0", "average(x) <= 0", "sum(x) == 0", "average(x) < 0.00001"),
    ),
    BadCell(
        "a newline behind a word",
        pa.string(),
        ("open", "paid"),
        "open\n",
        (
            'each row: x matches "^(open|paid)$"',
            'each row: x matches "^[a-z]+$"',
            'each row: x matches "^open$|^paid$"',
            'each row: x matches "(open|paid)$"',
            'each row: x matches "^.*n$|^.*d$"',
            'each row: x in ["open", "paid"]',
            'each row: x == "open" or x == "paid"',
            'each row: not (x not matches "^(open|paid)$")',
            'in_set(x, ["open", "paid"])',
            "max_length(x) <= 4",
            "each row: length(x) == 4",
            'each row: x like "%n" or x like "%d"',
        ),
    ),
    *(
        BadCell(
            f"a line end ({end!r}) behind digits",
            pa.string(),
            ("1234", "9876"),
            "1234" + end,
            (
                'each row: x matches "^[0-9]{4}$"',
                'each row: x matches "^\\\\d+$"',
                "max_length(x) <= 4",
            ),
        )
        for end in ("\r", "\r\n", "\u0085", "\u2028")
    ),
    BadCell(
        "a day too late",
        pa.date32(),
        (date(2024, 3, 1), date(2024, 2, 29)),
        date(2024, 3, 3),
        (
            "each row: x <= 2024-03-02",
            "each row: not (x > 2024-03-02)",
            "each row: x between 2024-01-01 and 2024-03-02",
            'each row: x <= "2024-03-02"',
            "maximum(x) <= 2024-03-02",
            "each row: x + 1 <= 2024-03-03",
        ),
    ),
    BadCell(
        "a microsecond too late",
        pa.timestamp("us", "UTC"),
        (datetime(2024, 3, 1, tzinfo=timezone.utc),),
        datetime(2024, 3, 2, tzinfo=timezone.utc) + timedelta(microseconds=1),
        (
            "each row: x <= 2024-03-02",
            'each row: x <= "2024-03-02T00:00:00"',
            "each row: not (x > 2024-03-02)",
            "maximum(x) <= 2024-03-02",
            'maximum(x) <= "2024-03-02 00:00"',
            "each row: x between 2024-01-01 and 2024-03-02",
        ),
    ),
    BadCell(
        "NULL",
        pa.int64(),
        (1, 2, 3),
        None,
        ("not_null(x)", "null_count(x) == 0", "each row: x is not null", "count(x) == num_rows()"),
    ),
]
