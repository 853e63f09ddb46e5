"""Groups that clearly pass get the same verdicts as in a full evaluation."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from typing import Any

import pytest

from dqx_airflow.dql.check import check_source
from dqx_airflow.plan.evaluate import evaluate
from dqx_airflow.plan.group_values import GroupView
from dqx_airflow.plan.model import GroupValues, Scanned
from dqx_airflow.plan.resolve import resolve
from dqx_airflow.values import DatasetRef, SourceFile, Verdict

DAY = date(2026, 11, 23)
CLAIMS = (
    *(f"average(c) {op} 0.1" for op in ("<", "<=", ">", ">=", "==", "!=")),
    *(f"maximum(c) {op} 3" for op in ("<", ">=", "==")),
    "sum(c) between 0 and 1_000_000_000_000_000_000_000",
    "sum(c) not between 0.1 and 3",
    "null_count(c) == 0",
    "minimum(c) > 2024-01-01",
    "average(c) is not None",
    "average(c) == 3 tolerance 0.5",
)
VALUES: tuple[Any, ...] = (
    *(None, 0, -0.0, 1, 3, 10**21, 10**400, Fraction(1, 10), Fraction(1, 3), 0.1, 1e300, -5),
    *(
        0.1 + 1e-12,
        0.1 - 1e-10,
        0.1 + 2e-9,
        3.0000000001,
        3.0,
        3.00000001,
        Fraction(30000001, 10**7),
    ),
    *("2024-03-01", "2023-01-01 10:00:00", "x"),
)


def verdicts_of(claim: str, values: dict[tuple[str], Any]) -> Verdict:
    source = SourceFile("s.dql", f'suite "S" {{ check "C" on t {{ assert {claim} for each g }} }}')
    suite = check_source(source).suite
    assert suite is not None
    plan = resolve(suite, source, [DatasetRef("t", "/t", format="parquet")], DAY)
    (assertion,) = (one for one in plan.assertions if one.groups is not None)
    scanned = Scanned(groups={one: GroupValues(dict(values)) for one in assertion.requests})
    (verdict,) = (one for one in evaluate(plan, scanned) if one.name == assertion.name)
    return verdict


@pytest.mark.few(1)
@pytest.mark.parametrize("claim", CLAIMS)
def test_each_value_alone_and_all_together_have_the_verdict_of_a_full_judgement(
    claim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [{("a",): value} for value in VALUES]
    cases.append({(str(number),): value for number, value in enumerate(VALUES)})
    cases += [{("b",): 7, ("a",): value, ("c",): 7, ("d",): value} for value in VALUES]
    quick = [verdicts_of(claim, case) for case in cases]
    monkeypatch.setattr(GroupView, "clear_passes", lambda *_: {})
    assert quick == [verdicts_of(claim, case) for case in cases]
