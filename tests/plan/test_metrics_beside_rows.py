"""A number of a column is compared with a literal in a metric as it is in a row."""

from __future__ import annotations

from datetime import date

import pytest

from dqx_airflow import MemoryDatabase
from dqx_airflow.dql import Suite
from dqx_airflow.values import Status

LITERALS = (
    *("0.1", "0.30000000000000004", "1e-7", "1.0", "3", "4.35", "1e15", "1e18", "1e19", "1e22"),
    *("1e23", "1.5e300", "1e300", "100000000000000000000000", "123456789012345678", "1e308"),
    *("9007199254740992", "9007199254740993", "9223372036854775807", "5e-324"),
)
"""Beyond bigints, those with the digits of a double alone."""
COMPARATORS = ("<", "<=", "==", "!=", ">=", ">")


@pytest.mark.parametrize("literal", LITERALS)
@pytest.mark.parametrize("sign", ["", "-"])
def test_an_extreme_of_floats_is_compared_as_each_of_them(literal: str, sign: str) -> None:
    value = float(sign + literal)
    text = "".join(
        f'assert maximum(x) {op} {sign}{other} name "metric {op} {other}"\n'
        f'assert each row: x {op} {sign}{other} name "row {op} {other}"\n'
        for op in COMPARATORS
        for other in LITERALS
    )
    suite = Suite.from_string(f'suite "S" {{ check "C" on t {{\n{text}\n}} }}')
    results = suite.run(MemoryDatabase({"t": [{"x": value}]}), date(2026, 1, 1))
    holds = {item.assertion: item.status is Status.PASSED for item in results}
    pairs = [f"{op} {other}" for op in COMPARATORS for other in LITERALS]
    assert [pair for pair in pairs if holds[f"metric {pair}"] != holds[f"row {pair}"]] == []
