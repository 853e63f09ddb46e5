"""One cause is one alert, which names all of its failures."""

from __future__ import annotations

from datetime import date, timedelta

from dqx_airflow.results.causes import Failure, Side, causes_of

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


def test_what_fails_in_addition_is_another_alert_unless_it_moves_in_the_same_way() -> None:
    first, second = failure("orders.rows", 1), failure("orders.rows", 2)
    nulls, more = failure("orders.nulls", 2, None), failure("items.rows", 2)
    found = causes_of([first, second, nulls, more])
    assert names(found) == [["orders.rows", "orders.rows", "items.rows"], ["orders.nulls"]]
