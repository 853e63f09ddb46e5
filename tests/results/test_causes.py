"""One cause is one alert, which names all of its failures."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime, timedelta, timezone
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dqx_airflow.plan.term_values import REPEATED
from dqx_airflow.results.causes import (
    MOVING_TOGETHER,
    Failure,
    Side,
    cause_numbers,
    causes_of,
    dag_in_name,
    failures_of,
    says_nothing_new,
)
from dqx_airflow.values import MASK, MetricValue, RunKey, Status
from tests.made_reports import report_at, verdict_of

ABOVE, BELOW = Side.ABOVE, Side.BELOW


def failure(
    name: str,
    position: int = 1,
    metric: str | None = "num_rows",
    side: Side | None = BELOW,
    dag: str = "shop",
) -> Failure:
    on = date(2024, 12, position)
    dataset = name.partition(".")[0]
    return Failure(name, dag, (dataset,), on, on - timedelta(days=1), metric, side)


def names(causes: list[list[Failure]]) -> list[list[str]]:
    return [[str(one.assertion) for one in cause] for cause in causes]


def test_the_failures_of_a_dataset_are_one_alert() -> None:
    rows, mean = failure("orders.rows"), failure("orders.price", metric="average", side=ABOVE)
    nulls = failure("orders.nulls", metric=None)
    assert names(causes_of([rows, mean, nulls])) == [
        ["orders.rows", "orders.price", "orders.nulls"]
    ]


def test_datasets_that_move_in_the_same_way_are_one_alert() -> None:
    lost = [failure("orders.rows"), failure("items.rows"), failure("items.sum", metric="sum")]
    doubled = failure("payments.rows", side=ABOVE)
    nulls = failure("events.nulls", metric=None, side=ABOVE)
    found = names(causes_of([*lost, doubled, nulls]))
    assert found == [
        ["orders.rows", "items.rows", "items.sum"],
        ["payments.rows"],
        ["events.nulls"],
    ]


def test_another_dag_has_causes_of_its_own() -> None:
    here, there = failure("orders.rows"), failure("items.rows", dag="bank")
    assert names(causes_of([here, there])) == [["orders.rows"], ["items.rows"]]


def test_a_failure_that_goes_on_is_the_open_alert() -> None:
    days = [failure("orders.price", day, "average") for day in (1, 2, 3)]
    again = failure("orders.price", 5, "average")
    other_side = failure("orders.price", 6, "average", ABOVE)
    assert [*map(len, causes_of([*days, again, other_side]))] == [3, 1, 1]


def test_what_fails_in_addition_is_another_alert_unless_its_dataset_moves_in_this_way() -> None:
    first, second = failure("orders.rows", 1), failure("orders.rows", 2)
    total, nulls = failure("orders.sum", 2, "sum"), failure("orders.nulls", 2, None)
    found = causes_of([first, second, total, nulls])
    assert names(found) == [["orders.rows", "orders.rows", "orders.sum"], ["orders.nulls"]]


def test_another_dataset_that_is_lost_while_an_alert_is_open_is_another_alert() -> None:
    open_days = [failure("orders.rows", day) for day in (1, 2, 3)]
    lost = [failure("payments.rows", day) for day in (2, 3)]
    assert names(causes_of([*open_days, *lost])) == [["orders.rows"] * 3, ["payments.rows"] * 2]


def test_two_open_alerts_stay_apart_when_their_datasets_move_in_the_same_way() -> None:
    nulls = [failure("orders.nulls", day, None) for day in (1, 2)]
    items = [failure("items.rows", day) for day in (1, 2)]
    rows = failure("orders.rows", 2)
    found = names(causes_of([*nulls, *items, rows]))
    assert found == [["orders.nulls"] * 2, ["items.rows"] * 2, ["orders.rows"]]


def test_what_is_left_of_an_open_alert_has_nothing_in_common_with_other_datasets() -> None:
    goes_on = [failure("orders.rows", day) for day in (1, 2)]
    nulls, lost = failure("orders.nulls", 2, None), failure("payments.rows", 2)
    found = names(causes_of([*goes_on, nulls, lost]))
    assert found == [["orders.rows"] * 2, ["orders.nulls"], ["payments.rows"]]


NIGHT = datetime(2024, 12, 2, 3, tzinfo=timezone.utc)


def test_the_failures_of_a_report_are_numbered_by_their_cause() -> None:
    few = {"status": Status.FAILED, "metric": "num_rows", "value": 3, "threshold": 10}
    verdicts = [
        verdict_of("orders.rows", **few),
        verdict_of("orders.nulls", status=Status.FAILED, value=4, threshold=1),
        verdict_of("orders.not_empty", value=3),
        verdict_of("items.rows", datasets=("items",), **few),
        verdict_of("payments.price", datasets=("payments",), status=Status.FAILED),
    ]
    report = report_at(NIGHT, *verdicts)
    assert cause_numbers(failures_of([report])) == [1, 1, 0, 1, 2]


def test_the_dates_of_a_gate_over_several_have_causes_of_their_own() -> None:
    few = {"status": Status.FAILED, "metric": "num_rows", "value": 3, "threshold": 10}
    nulls = verdict_of("orders.nulls", status=Status.FAILED)
    days = [(verdict_of("orders.rows", **few), nulls), (nulls,), (), (nulls,)]
    reports = [
        report_at(NIGHT, *own, run_key=RunKey("lake.gate", date(2024, 12, day), "run"))
        for day, own in enumerate(days, start=1)
    ]
    assert cause_numbers(failures_of(reports)) == [1, 1, 1, 2]


@pytest.mark.parametrize(
    ("value", "limit", "given", "side"),
    [
        (3, 10, {}, BELOW),
        (Fraction(21, 2), 10, {}, ABOVE),
        (10, 10, {}, None),
        (None, 10, {}, None),
        (float("nan"), 10, {}, None),
        ("Ada", "Bob", {}, None),
        (MASK, 10, {}, None),
        (3, MASK, {}, None),
        (15, 10, {"expected": "not between 10 and 20"}, None),
        (15, 10, {"expected": "in (10, 20)"}, None),
        (15, 10, {"reason": REPEATED}, None),
    ],
)
def test_a_side_is_where_the_value_is_off_its_limits_and_unknown_otherwise(
    value: MetricValue, limit: MetricValue, given: dict[str, str], side: Side | None
) -> None:
    verdict = verdict_of("a", status=Status.FAILED, value=value, threshold=limit, **given)
    assert Failure.of(verdict, gate="g", dag="d", on=date(2024, 12, 1)).side is side


def test_a_dataset_on_both_sides_of_its_limits_has_not_moved_with_others() -> None:
    few, many = failure("orders.rows"), failure("orders.paid_rows", side=ABOVE)
    more = failure("items.rows", side=ABOVE)
    for given_ones in ([few, many, more], [more, many, few]):
        found = [sorted(cause) for cause in names(causes_of(given_ones))]
        assert sorted(found) == [["items.rows"], ["orders.paid_rows", "orders.rows"]]


@pytest.mark.parametrize(
    ("gate", "dag"),
    [
        ("lake.gate", "lake"),
        ("lake/orders", "lake/orders"),
        ("lake/v1.orders", "lake/v1"),
        ("team.lake.gate", "team.lake"),
        ("orders_gate", "orders_gate"),
        ("", ""),
    ],
)
def test_the_gates_of_two_dags_never_have_one_key(gate: str, dag: str) -> None:
    assert dag_in_name(gate) == dag


def test_a_later_gate_says_nothing_new_only_if_all_that_stops_it_moved_in_the_same_way() -> None:
    lost = [failure("orders.rows")]
    items, total = failure("items.rows"), failure("items.total", metric="sum")
    assert says_nothing_new([items], lost)
    assert says_nothing_new([items, total], [*lost, failure("orders.nulls", metric=None)])
    others = [
        failure("items.nulls", metric=None),
        failure("items.doubled", side=ABOVE),
        failure("items.price", metric="average"),
        failure("items.unknown", side=None),
    ]
    for other in others:
        assert not says_nothing_new([other], lost)
        assert not says_nothing_new([items, other], lost)
    assert not says_nothing_new([items], [failure("orders.rows", side=ABOVE)])
    assert not says_nothing_new([items], [failure("orders.rows", dag="bank")])
    assert not says_nothing_new([items], [failure("orders.nulls", metric=None)])
    assert not says_nothing_new([], lost)
    assert not says_nothing_new([items], [])


GATES = st.sampled_from(
    [("shop", "a", -1), ("shop", "b", -1), ("shop", "b", 0), ("shop", "b", 1), ("bank", "a", -1)]
)
METRICS = st.sampled_from([*MOVING_TOGETHER, "null_count", None])
SIDES = st.sampled_from([ABOVE, BELOW, None])
ASSERTIONS = st.tuples(GATES, st.sampled_from(["orders", "items", None]), METRICS, SIDES)


@st.composite
def weeks(draw: st.DrawFn) -> list[Failure]:
    """The failures of a week of several gates, of which some did not run on some days."""
    found: list[Failure] = []
    ran: dict[object, date] = {}
    for day in range(1, 8):
        on = date(2024, 12, day)
        of_day = draw(st.lists(ASSERTIONS, max_size=6, unique=True))
        for gate in {one[0] for one in of_day}:
            for of_gate, name, metric, side in of_day:
                if of_gate == gate:
                    dag, _, index = gate
                    datasets = ((gate, name),) if name else ()
                    key = gate, name, metric, side
                    found.append(
                        Failure(key, (dag, index), datasets, on, ran.get(gate), metric, side)
                    )
        ran |= dict.fromkeys({one[0] for one in of_day}, on)
    return found


def together(causes: list[list[Failure]]) -> set[frozenset[Failure]]:
    return {frozenset(cause) for cause in causes}


@settings(deadline=None)
@given(weeks(), st.randoms(use_true_random=False))
def test_every_failure_of_a_week_has_one_cause_in_whatever_order(
    failures: list[Failure], random: Random
) -> None:
    causes = causes_of(failures)
    assert Counter(one for cause in causes for one in cause) == Counter(failures)
    shuffled = random.sample(failures, len(failures))
    assert together(causes_of(shuffled)) == together(causes)
    numbers = cause_numbers([*failures, None])
    assert numbers.pop() == 0
    assert sorted({*numbers}) == [*range(1, len(causes) + 1)]


@settings(deadline=None)
@given(weeks())
def test_a_cause_begins_with_one_dataset_or_with_several_that_moved_in_the_same_way(
    failures: list[Failure],
) -> None:
    for cause in causes_of(failures):
        assert len({one.dag for one in cause}) == 1
        by_dataset: dict[object, set[object]] = {}
        for one in cause:
            if one.date == min(of.date for of in cause):
                by_dataset.setdefault(one.dataset, set()).add(one.movement)
        if len(by_dataset) > 1:
            assert set.intersection(*by_dataset.values()) - {None}


@settings(deadline=None)
@given(weeks())
def test_a_cause_goes_on_by_what_failed_before_and_by_datasets_that_move_in_the_same_way(
    failures: list[Failure],
) -> None:
    for cause in causes_of(failures):
        begun = {one.open_key for one in cause}
        went_on = [one for one in cause if one.going_on in begun]
        moving = {(one.date, one.dataset, one.movement) for one in went_on if one.movement}
        first = min(one.date for one in cause)
        for one in cause:
            is_one_that_moves = (one.date, one.dataset, one.movement) in moving
            assert one.date == first or one in went_on or is_one_that_moves


@settings(deadline=None)
@given(weeks(), GATES)
def test_a_gate_that_says_nothing_new_is_in_the_cause_of_the_earlier_one(
    failures: list[Failure], gate: tuple[str, str, int]
) -> None:
    on = date(2024, 12, 3)
    own = [one for one in failures if one.date == on and one.assertion[0] == gate]
    others = [one for one in failures if one.date == on and one.assertion[0] != gate]
    if says_nothing_new(own, others):
        assert {one.movement for one in own} & {one.movement for one in others} - {None}
        assert len({one.movement for one in own}) == 1
        assert {one.dag for one in own} <= {one.dag for one in others}
