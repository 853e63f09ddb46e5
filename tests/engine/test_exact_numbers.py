"""Numbers are compared exactly: by Spark and the reference, on a first run and from stored states;
the results store keeps every digit.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dqx_airflow.engine.job import run_gates
from dqx_airflow.results.runs import read_report
from dqx_airflow.values import GateReport, Status, from_json, to_json
from tests.engine.lake import TODAY, Run, delta, request

# In the default lane, cases of conformance and tests/values/test_exact.py show that numbers are
# exact.
pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = 50_000
BIG = 2**53 + 1


def decimals(precision: int, scale: int, *texts: str) -> pa.Array:
    values = [Decimal(text) for text in texts] + [Decimal(0)] * (ROWS - len(texts))
    return pa.array(values, pa.decimal128(precision, scale))


def whole(kind: pa.DataType, *numbers: int) -> pa.Array:
    return pa.array([*numbers, *[0] * (ROWS - len(numbers))], kind)


LEDGER = pa.table(
    {
        "debit": decimals(24, 6, "16000000000.000001"),
        "credit": decimals(24, 6, "16000000000.000002"),
        "wide": decimals(38, 2, "12345678901234567.89"),
        "wider": decimals(38, 2, "12345678901234567.91"),
        "limit": decimals(38, 18, "100.000000000000000001"),
        "flag": decimals(1, 0, "1"),
        "none": decimals(38, 0),
        "least": whole(pa.int64(), -1, 2**62, -(2**62)),
        "next": whole(pa.int64(), BIG),
        "small": whole(pa.int32(), 2**31 - 1, 2**31 - 1, 2**31 - 1),
        "tiny": whole(pa.int8(), 1),
        "double": pa.array([float(BIG - 1), *[0.1] * (ROWS - 1)]),
        "ratio": pa.array([0.1, 0.2, *[0.0] * (ROWS - 2)]),
        "near": pa.array([5e-10, *[1.0] * (ROWS - 1)]),
        "huge": decimals(38, 0, "9" * 38, "9" * 38),
        "null": pa.array([None, *[1] * (ROWS - 1)], pa.int32()),
        "ds": pa.array([TODAY] * ROWS, pa.date32()),
    }
)

# Each line is an assertion, behind it what becomes of it and, where it matters, the exact value.
CASES = """
sum(debit) == sum(credit) | failed | 16000000000.000001
sum(debit) != sum(credit) | passed
sum(debit) < sum(credit) | passed
sum(debit) >= sum(credit) | failed
sum(wide) == sum(wider) | failed | 12345678901234567.89
sum(wide) - sum(wider) == 0 | failed | -0.02
sum(wider) <= 12345678901234567.90 | failed
sum(wide) between 12345678901234567.89 and 12345678901234567.89 | passed
sum(wide) not between 12345678901234567.89 and 12345678901234567.89 | failed
sum(wide) not between 12345678901234567.90 and 12345678901234567.99 | passed
sum(wide) == 12345678901234567.9 tolerance 0.01 | passed
sum(wide) == 12345678901234567.9 tolerance 0.0099 | failed
sum(wide) / 3 * 3 == sum(wide) | passed
average(wide) * num_rows() == sum(wide) | passed
maximum(limit) <= 100 | failed | 100.000000000000000001
maximum(limit) == 100.000000000000000001 | passed
average(flag) == 0 | failed | 0.00002
average(flag) <= 0.00001 | failed
average(least) >= 0 | failed | -0.00002
average(least) == -1 / 50000 | passed
minimum(least) == -4611686018427387904 | passed
sum(least) == -1 | passed | -1
maximum(next) == maximum(double) | failed | 9007199254740993
maximum(next) > maximum(double) | passed
maximum(next) <= 9007199254740992.0 | failed
maximum(next) > 9007199254740992 | passed
sum(small) == 6442450941 | passed | 6442450941
average(tiny) == 0.00002 | passed | 0.00002
minimum(double) == 0.1 | passed
minimum(double) > 0.1 | failed
minimum(near) == 0 | failed
minimum(near) <= 0 | failed
minimum(near) == 0 tolerance 0.0000000005 | passed
sum(ratio) == 0.3 | passed
sum(ratio) >= 0.3 | passed
sum(ratio) <= 0.3 | passed
sum(ratio) < 0.3 | failed
sum(ratio) > 0.3 | failed
sum(ratio) != 0.3 | failed
sum(huge) is None | error
coalesce(sum(huge), 0) == 0 | error
average(huge) > 0 | error
sum(none) == 0 | passed
null_count(null) / num_rows() == 0 | failed | 0.00002
null_count(null) / num_rows() * 3 <= 0.00006 | passed
null_count(null) / num_rows() * 3 < 0.006% | failed
null_count(null) * 3 / num_rows() >= 0.006% | passed
count_values(limit, 100) == 0 | passed
count_values(limit, 100.000000000000000001) == 1 | passed
distribution(flag) matches {1: 0.001%, 0: 99.999%} tolerance 0.001% | passed | 0.00001
distribution(flag) matches {1: 0.001%, 0: 99.999%} tolerance 0.0009% | failed
"""


def cases() -> list[tuple[str, str, str | None]]:
    lines = [line.split(" | ") for line in CASES.strip().splitlines()]
    return [(claim, status, rest[0] if rest else None) for claim, status, *rest in lines]


@pytest.fixture(scope="module")
def reports(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> list[GateReport]:
    """Of a first run, and of one that takes all from stored states."""
    folder = tmp_path_factory.mktemp("exact")
    ref = replace(delta(folder, "orders", LEDGER), date_column="ds")
    suite = "\n".join(f'assert {case[0]} name "{number}"' for number, case in enumerate(cases()))
    return [
        run_gates([request(folder, suite, [ref], allow_empty=True)], lambda _: spark)[0]
        for _ in ("scan", "state")
    ]


@pytest.mark.parametrize(("number", "case"), [*enumerate(cases())], ids=str)
@pytest.mark.parametrize("run", [0, 1], ids=["scan", "state"])
def test_exact_values_are_compared_exactly(
    reports: list[GateReport], run: int, number: int, case: tuple[str, str, str | None]
) -> None:
    claim, status, value = case
    (verdict,) = (item for item in reports[run].verdicts if item.name == str(number))
    assert verdict.status.value == status, (claim, verdict.value, verdict.reason)
    if value is not None:
        assert verdict.value == Fraction(value)
        assert not isinstance(verdict.value, float)
    if status == "error":
        assert "overflows" in str(verdict.reason)


def test_a_verdict_decided_by_float_tolerance_says_so(reports: list[GateReport]) -> None:
    mentions = {
        case[0]: bool("tolerance of floating-point numbers" in f"{verdict.reason} {verdict.note}")
        for number, case in enumerate(cases())
        for verdict in reports[0].verdicts
        if verdict.name == str(number)
    }
    decided = {claim for claim, is_told in mentions.items() if is_told}
    # In doubles 0.1 + 0.2 lies above 0.3.
    assert decided == {f"sum(ratio) {op} 0.3" for op in ("==", "!=", "<=", ">")}


def test_a_report_is_the_same_from_the_store_and_from_json(run: Run, tmp_path: Path) -> None:
    ref = delta(tmp_path, "orders", LEDGER)
    suite = """
        assert sum(wide) == 12345678901234567.89 name "decimal"
        assert average(small) < 1e9 name "fraction"
        assert sum(small) / 7 > 1/3 name "quotient"
        assert maximum(next) > 0.5 name "whole"
        assert sum(ratio) > 0.5 name "float"
    """
    gate = request(tmp_path, suite, [ref], allow_empty=True)
    report = run(gate)
    assert not report.with_status(Status.ERROR)
    stored = read_report(gate.results_root, gate.run_key, gate.attempt.id)
    for other in (stored, from_json(GateReport, to_json(report))):
        assert other is not None
        assert other.verdicts == report.verdicts
        assert [type(item.value) for item in other.verdicts] == [
            type(item.value) for item in report.verdicts
        ]
        assert {result for item in other.datasets for result in item.metrics} == {
            result for item in report.datasets for result in item.metrics
        }
    values = {item.name: item.value for item in report.verdicts}
    assert values["decimal"] == Fraction("12345678901234567.89")
    assert values["quotient"] == Fraction(6442450941, 7)
