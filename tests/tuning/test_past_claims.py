"""How often the claims of a draft for a lake would have failed, and which of them may block."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

from dqx_airflow.metrics.types import spark_type_of_arrow
from dqx_airflow.tuning.column_tables import ColumnTable
from dqx_airflow.tuning.lake.calls import ExpectedClaim, expected_claims
from dqx_airflow.tuning.lake.past_claims import PastClaim, past_claims
from dqx_airflow.tuning.observed_days import day_rows, profile_of_days
from dqx_airflow.values import DatasetRef

NOW = datetime(2026, 11, 28, tzinfo=timezone.utc)
DAYS = [date(2026, 11, 27) - timedelta(days=back) for back in range(29, -1, -1)]
A_DAY = 40
LATER = 10
"""The days that the judged draft has not seen: the last third."""


def table(change: Callable[[dict[str, list[Any]]], None] = lambda _: None) -> ColumnTable:
    """The orders of 30 days."""
    rows = range(len(DAYS) * A_DAY)
    columns: dict[str, list[Any]] = {
        "order_id": list(rows),
        "status": [("new", "paid")[row % 2] for row in rows],
        "sku": [f"A{row % 997:03}" for row in rows],
        "note": [None if row % 4 == 0 else "x" for row in rows],
        "amount": [10.0 + row % 7 for row in rows],
        "ds": [DAYS[row // A_DAY] for row in rows],
    }
    change(columns)
    arrow = pa.table(columns)
    types = {field.name: spark_type_of_arrow(field.type) for field in arrow.schema}
    return ColumnTable(tuple(types), types, arrow.num_rows, arrow.column)


def judged(columns: ColumnTable) -> tuple[dict[str, tuple[int, int]], tuple[int, int]]:
    """The judged and failed days by claim, and the days with a failure."""
    ref = DatasetRef("orders", path="orders", date_column="ds")
    rows = day_rows(columns, ref, 30)
    claims, failing = past_claims(rows, ref, NOW)
    seen = profile_of_days(rows, ref, "orders").days
    assert past_claims(rows, ref, NOW, seen=seen) == (claims, failing), "with what is known already"
    return {claim.name: (claim.judged, claim.failed) for claim in claims}, failing


def rows_of(day: int) -> range:
    """The rows of a day, counted from the last one."""
    first = (len(DAYS) - day) * A_DAY
    return range(first, first + A_DAY)


def test_steady_days_fail_no_claim() -> None:
    claims, failing = judged(table())
    assert failing == (0, LATER)
    assert {name for name, days in claims.items() if days != (LATER, 0)} == set()
    assert {"orders.key", "orders.status.values", "orders.sku.form", "orders.watch.rows"} <= {
        *claims
    }
    assert "orders.note.filled" not in claims


def repeated(columns: dict[str, list[Any]]) -> None:
    first, second, *_ = rows_of(2)
    columns["order_id"][second] = columns["order_id"][first]


def unknown(columns: dict[str, list[Any]]) -> None:
    for day in (1, 3):
        columns["status"][rows_of(day)[0]] = "void"


def various(columns: dict[str, list[Any]]) -> None:
    for row in rows_of(2):
        columns["status"][row] = f"state {row}"  # too many strings for a set, but not before


def malformed(columns: dict[str, list[Any]]) -> None:
    columns["sku"][rows_of(4)[5]] = "a-1"


def missing(columns: dict[str, list[Any]]) -> None:
    columns["amount"][rows_of(1)[0]] = None


def larger(columns: dict[str, list[Any]]) -> None:
    for row in rows_of(1):
        columns["amount"][row] *= 100


def few(columns: dict[str, list[Any]]) -> None:
    del_from = rows_of(1)[2]
    for values in columns.values():
        del values[del_from:]


@pytest.mark.parametrize(
    ("fault", "claim", "days"),
    [
        (repeated, "orders.key", 1),
        (unknown, "orders.status.values", 2),
        (various, "orders.status.values", 1),
        (malformed, "orders.sku.form", 1),
        (missing, "orders.amount.filled", 1),
        (larger, "orders.watch.mean.amount", 1),
        (few, "orders.watch.rows", 1),
    ],
)
def test_a_fault_on_a_day_that_the_draft_has_not_seen_fails_its_claim(
    fault: Callable[[dict[str, list[Any]]], None], claim: str, days: int
) -> None:
    claims, failing = judged(table(fault))
    # With one repeated key there is no key in the draft of all days, but in that of the first ones.
    assert claims[claim] == (LATER, days)
    assert failing == (days, LATER)


def test_too_few_days_say_nothing() -> None:
    def only_last(columns: dict[str, list[Any]]) -> None:
        for values in columns.values():
            del values[: -11 * A_DAY]

    assert judged(table(only_last)) == ({}, (0, 0))


def claim(name: str, kind: str, judged: int = 10, failed: int = 0) -> PastClaim:
    return PastClaim(name, kind, judged, failed)


def blocking(claims: list[ExpectedClaim]) -> list[str]:
    return [one.assertion for one in claims if one.blocks]


LAKE = {
    f"t{number}": [
        claim(f"t{number}.key", "key"),
        claim(f"t{number}.a.filled", "filled", failed=5 if number == 0 else 0),
        claim(f"t{number}.watch.nulls.a", "watch.nulls"),
        claim(f"t{number}.watch.mean.b", "watch.mean", failed=1),
        claim(f"t{number}.new.values", "values", judged=0),
    ]
    for number in range(30)
}


def test_the_claims_that_block_call_together_no_more_than_wanted() -> None:
    for most in (0.0, 0.5, 3.0, 20.0):
        claims = expected_claims(LAKE, most)
        assert sum(one.calls_per_month for one in claims if one.blocks) <= most
    assert blocking(expected_claims(LAKE, None)) == blocking(expected_claims(LAKE, 0)) == []


def test_weighty_claims_with_good_days_block_first() -> None:
    names = blocking(expected_claims(LAKE, 3.0))
    assert {f"t{number}.key" for number in range(30)} <= {*names}
    assert "t1.a.filled" in names
    assert "t0.a.filled" not in names  # it failed on half of its days
    assert not [name for name in names if ".watch.mean." in name]


def test_what_was_never_judged_and_what_another_claim_covers_does_not_block() -> None:
    names = blocking(expected_claims(LAKE, 10_000))
    assert not [name for name in names if name.endswith((".values", ".watch.nulls.a"))]


def test_days_without_a_failure_are_no_proof_of_none() -> None:
    few = expected_claims({"t": [claim("t.key", "key", judged=10)]}, None)[0]
    many = expected_claims({"t": [claim("t.key", "key", judged=1000)]}, None)[0]
    assert few.calls_per_month > many.calls_per_month > 0


def test_claims_of_a_table_that_fail_on_one_day_are_one_call() -> None:
    def of_kind(*days: int) -> list[PastClaim]:
        return [
            PastClaim(f"t.c{number}.filled", "filled", 10, 1, (DAYS[day],))
            for number, day in enumerate(days)
        ]

    quiet = {"u": [claim("u.a.filled", "filled")]}
    together = expected_claims(quiet, None, past={**quiet, "t": of_kind(1, 1, 1)})
    apart = expected_claims(quiet, None, past={**quiet, "t": of_kind(1, 2, 3)})
    assert apart[0].calls_per_month == pytest.approx(2 * together[0].calls_per_month)


def test_claims_of_a_kind_in_a_table_block_together_and_share_their_calls() -> None:
    names = [f"t.c{number}.filled" for number in range(4)]
    claims = {"t": [claim(name, "filled") for name in names]}
    alone = expected_claims({"t": claims["t"][:1]}, None)[0].calls_per_month
    assert sum(one.calls_per_month for one in expected_claims(claims, None)) == alone
    assert blocking(expected_claims(claims, alone)) == names
    assert blocking(expected_claims(claims, alone / 2)) == []
    assert blocking(expected_claims(claims, alone, enforced=names[:2])) == names[2:]
