"""One cause is one alert, which names all of its failures."""

from __future__ import annotations

from datetime import date, timedelta

from dqx_airflow.results.causes import Failure, Side, cause_numbers, causes_of
from dqx_airflow.values import Status
from tests.made_reports import verdict_of

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


def test_the_failures_of_a_report_are_numbered_by_their_cause() -> None:
    few = {"status": Status.FAILED, "metric": "num_rows", "value": 3, "threshold": 10}
    verdicts = [
        verdict_of("orders.rows", **few),
        verdict_of("orders.nulls", status=Status.FAILED, value=4, threshold=1),
        verdict_of("orders.not_empty", value=3),
        verdict_of("items.rows", datasets=("items",), **few),
        verdict_of("payments.price", datasets=("payments",), status=Status.FAILED),
    ]
    assert cause_numbers(verdicts, date(2024, 12, 1)) == [1, 1, 0, 1, 2]
