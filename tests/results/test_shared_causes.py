"""A later gate of a DAG says that it has the cause of an earlier one, if nothing else stops it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.results.incidents import CLOSED, IncidentNote, stored_incidents, write_notes
from dqx_airflow.results.query import RunsWanted, StoredResults
from dqx_airflow.results.shared_causes import count_causes, first_incidents, gate_of
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.values import MASK, GateReport, Outcome, RunKey, Severity, Status, Verdict
from tests.made_reports import report_at, verdict_of

ON = date(2024, 12, 1)
FEW = verdict_of(
    "orders.rows",
    severity=Severity.P0,
    status=Status.FAILED,
    metric="num_rows",
    value=3,
    threshold=10,
    expected=">= 10",
)
LOST = replace(FEW, name="items.rows", datasets=("items",))
TOTAL = replace(LOST, name="items.total", metric="sum")
NULLS = replace(LOST, name="items.nulls", metric="null_count", value=20, scaled_value=20)
MANY = replace(LOST, name="items.many", value=20, scaled_value=20)
HIDDEN = replace(LOST, name="items.price", metric="sum", value=MASK, scaled_value=MASK)
UNKNOWN = replace(LOST, status=Status.ERROR, value=None, scaled_value=None, reason="no column id")


def stopped(minute: int, gate: str, *verdicts: Verdict, **changes: Any) -> GateReport:
    at = datetime(2024, 12, 2, 2, minute, tzinfo=timezone.utc)
    outcome = Outcome.BLOCKED if verdicts else Outcome.PASSED
    given = {"run_key": RunKey(gate, ON, "run_1"), "outcome": outcome, **changes}
    return report_at(at, *verdicts, **given)


FIRST = stopped(14, "shop.orders", FEW)
LATER = stopped(20, "shop.items", LOST)


@pytest.fixture
def same_as(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """For each gate that says nothing new the gate that came first, once these have reported."""

    def gates(*given: GateReport | IncidentNote) -> dict[str, str]:
        root = str(tmp_path / "results")
        for one in given:
            if isinstance(one, IncidentNote):
                write_notes(StoredResults(root), [one])
            else:
                ResultsStore(root).write(one)
        results = StoredResults(root)
        incidents = stored_incidents(results, RunsWanted())
        first = first_incidents(results, incidents)
        assert count_causes(incidents, first) >= len({one.date for one in incidents})
        by_id = {one.id: gate_of(one) for one in incidents}
        return {by_id[own]: gate_of(one) for own, one in first.items()}

    return gates


@pytest.mark.parametrize(
    "later",
    [
        LATER,
        stopped(20, "shop.items", LOST, TOTAL),
        stopped(20, "shop.items", TOTAL),
        stopped(20, "shop.items", LOST, replace(NULLS, severity=Severity.P3)),
        stopped(20, "shop.items", LOST, replace(NULLS, waived_by="waived by ada")),
        stopped(20, "shop.items/items", LOST, suite="items"),
        stopped(20, "shop.items", LOST, run_key=RunKey("shop.items", ON, "by hand")),
    ],
)
def test_a_gate_that_only_moved_as_an_earlier_one_has_its_cause(
    same_as: Callable[..., dict[str, str]], later: GateReport
) -> None:
    assert same_as(FIRST, later) == {"shop.items": "shop.orders"}


@pytest.mark.parametrize(
    "later",
    [
        stopped(20, "shop.items", MANY),
        stopped(20, "shop.items", NULLS),
        stopped(20, "shop.items", LOST, NULLS),
        stopped(20, "shop.items", LOST, UNKNOWN, outcome=Outcome.BROKEN),
        stopped(20, "shop.items", UNKNOWN, outcome=Outcome.BROKEN),
        stopped(20, "shop.items", HIDDEN),
        stopped(20, "shop.items", LOST, HIDDEN),
        stopped(20, "shop.items", replace(LOST, value=None, scaled_value=None)),
        stopped(20, "bank.items", LOST),
        stopped(20, "shop.eu.items", LOST),
        stopped(20, "shop.items", LOST, run_key=RunKey("shop.items", ON, "run_1[0]")),
        stopped(
            20, "shop.items", LOST, run_key=RunKey("shop.items", ON + timedelta(days=1), "run_1")
        ),
        stopped(20, "shop.items", LOST, slice='{"rows": {"store": "basel"}}'),
    ],
)
def test_what_could_be_another_thing_is_an_alarm_of_its_own(
    same_as: Callable[..., dict[str, str]], later: GateReport
) -> None:
    assert same_as(FIRST, later) == {}


def test_the_first_of_several_gates_is_named_by_all_others(
    same_as: Callable[..., dict[str, str]],
) -> None:
    third = stopped(30, "shop.payments", replace(LOST, datasets=("payments",)))
    assert same_as(third, LATER, FIRST) == {
        "shop.items": "shop.orders",
        "shop.payments": "shop.orders",
    }


def test_an_earlier_gate_that_is_good_again_or_closed_says_nothing_for_a_later_one(
    same_as: Callable[..., dict[str, str]],
) -> None:
    good = stopped(16, "shop.orders", run_key=RunKey("shop.orders", ON, "run_2"))
    assert same_as(FIRST, good, LATER) == {}


def test_a_date_that_someone_closed_says_nothing_for_a_later_gate(
    same_as: Callable[..., dict[str, str]],
) -> None:
    at = FIRST.finished_at + timedelta(minutes=1)
    closed = IncidentNote("shop.orders", ON, CLOSED, "ada", "a holiday", at=at)
    assert same_as(FIRST, closed, LATER) == {}


def test_a_gate_that_is_good_again_after_the_later_one_began_still_has_its_cause(
    same_as: Callable[..., dict[str, str]],
) -> None:
    good = stopped(40, "shop.orders", run_key=RunKey("shop.orders", ON, "run_2"))
    ended = stopped(50, "shop.items", run_key=RunKey("shop.items", ON, "run_2"))
    assert same_as(FIRST, LATER, good) == {"shop.items": "shop.orders"}
    assert same_as(ended) == {"shop.items": "shop.orders"}


def test_a_gate_for_which_more_fails_later_is_an_alarm_of_its_own_from_then_on(
    same_as: Callable[..., dict[str, str]],
) -> None:
    assert same_as(FIRST, LATER) == {"shop.items": "shop.orders"}
    again = stopped(40, "shop.items", LOST, NULLS, run_key=RunKey("shop.items", ON, "run_2"))
    assert same_as(again) == {}


def test_gates_with_slashes_in_their_names_are_not_one_gate_of_several_suites(
    same_as: Callable[..., dict[str, str]],
) -> None:
    named = {"suite": "orders", "job": "shop.a/orders"}
    other = {"suite": "items", "job": "shop.a/items"}
    first = stopped(14, "shop.a/orders", FEW, **named)
    later = stopped(20, "shop.a/items", LOST, **other)
    assert same_as(first, later) == {"shop.a/items": "shop.a/orders"}


def test_the_suites_of_a_gate_are_one_gate_whatever_its_name(
    same_as: Callable[..., dict[str, str]],
) -> None:
    first = stopped(14, "shop.a/b/orders", FEW, suite="orders", job="shop.a/b")
    later = stopped(20, "shop.a/b/items", LOST, suite="items", job="shop.a/b")
    assert same_as(first, later) == {}
