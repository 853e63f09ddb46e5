"""Datasets in the UI are identified by location: an index, and a page of each."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from dqx_airflow.values import DatasetSnapshot, EnforcedContract, GateReport, Outcome, Promotion
from tests.ui.ui_scene import BAD_NULLS, DAY, NOT_EMPTY, NULLS, PLACE, Get, Html, Scene, report_of

pytestmark = pytest.mark.airflow


def reading(
    number: int, location: str, *, dag_id: str = "lake", on: date = DAY, **changes: Any
) -> GateReport:
    """The report of a gate on data at a location."""
    form = changes.pop("format", "csv")
    dataset = DatasetSnapshot("orders", location, form, rows=40 + number)
    changes.setdefault("outcome", Outcome.PASSED)
    changes.setdefault("verdicts", (NULLS,))
    return report_of(number, dag_id=dag_id, on=on, datasets=(dataset,), **changes)


def test_a_dataset_shows_the_results_of_its_gates(get: Get, scene: Scene) -> None:
    scene.days("pppppb")
    answer = get("dataset", location=PLACE)
    page = Html(answer.text)
    assert "Dataset orders s3://lake/orders ✕ blocked lake.gate failing since this run" in page.text
    assert "here 1 of 2 failed rows 5,000 version 7" in page.text
    assert "✕ failed P0 orders.id.null_share null_count(id) / num_rows() 50%" in page.text
    assert "1 of 6 failed" in page.text
    assert "2024-03-20 failed 50% 10%" in page.text
    assert "2024-03-15: 2%, passed, limit 10%" in answer.text


def test_assertions_about_other_datasets_are_left_out(get: Get, scene: Scene) -> None:
    other = replace(NULLS, name="customers.id", datasets=("customers",))
    scene.ran(report_of(verdicts=(BAD_NULLS, other)))
    assert "customers.id" not in get("dataset", location=PLACE).text


def test_a_dataset_page_without_the_store_has_a_notice(
    get: Get, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.days("pb")
    monkeypatch.delenv("AIRFLOW__DQX__RESULTS_ROOT")
    page = Html(get("dataset", location=PLACE).text)
    assert "This server has no results store" in page.text
    assert "✕ blocked lake.gate" in page.text


def test_tables_with_one_name_are_one_dataset_per_location(get: Get, scene: Scene) -> None:
    for number, (dag_id, table) in enumerate([("lake", "eu"), ("sea", "us")], 1):
        scene.dag(dag_id)
        report = reading(number, f"s3a://{table}/orders/2024-03-20/*.csv", dag_id=dag_id)
        scene.ran(report, dag_id=dag_id, number=number)
    index = Html(get("datasets").text)
    assert "orders s3://eu/orders lake.gate" in index.text
    assert "orders s3://us/orders sea.gate" in index.text
    page = Html(get("dataset", location="s3://eu/orders").text)
    assert "read from s3a://eu/orders/2024-03-20/*.csv" in page.text
    assert "sea.gate" not in page.text
    assert "sea.gate" not in get("board", dataset="s3://eu/orders").text


def test_a_location_has_all_its_gates_under_any_dataset_name(get: Get, scene: Scene) -> None:
    scene.ran(report_of())
    again = DatasetSnapshot("sales", "s3a://lake/orders/", "delta", version=7, rows=9)
    other = report_of(
        2,
        task_id="later",
        datasets=(again,),
        verdicts=(replace(NULLS, name="sales.id", datasets=("sales",)),),
        outcome=Outcome.PASSED,
        contract=EnforcedContract("sales", "1.0.0", "odcs"),
    )
    scene.ran(other, task_id="later", number=2)
    page = Html(get("dataset", location=PLACE).text)
    assert "Dataset orders, sales s3://lake/orders contracts sales 1.0.0" in page.text
    assert "2 gates" in page.text
    judged = "last checked data of 2024-03-20 here 0 of 1 failed rows 9 version 7"
    assert f"lake.later passing for 1 run {judged} name in suites sales" in page.text
    assert "sales.id" in page.text


def test_days_of_a_dated_path_are_one_history(get: Get, scene: Scene) -> None:
    scene.dag()
    for number in (1, 2, 3):
        on = DAY - timedelta(days=4 - number)
        scene.ran(reading(number, f"/landing/eu/{on}", on=on), number=number)
    page = Html(get("dataset", location="/landing/eu").text)
    assert "3 runs" in page.text
    days = "2024-03-19 passed 43 2024-03-18 passed 42 2024-03-17 passed 41"
    assert days in page.text.replace("  ", " ")


def test_each_instance_of_a_mapped_gate_has_its_own_location(get: Get, scene: Scene) -> None:
    scene.dag()
    for number, store in enumerate(("bern", "genf", "chur"), 1):
        bad: dict[str, Any] = {"verdicts": (BAD_NULLS,), "outcome": Outcome.BLOCKED}
        report = reading(number, f"/landing/{store}", **(bad if store == "genf" else {}))
        key = replace(report.run_key, scheduler_run=f"scheduled__{DAY}[{number - 1}]")
        scene.ran(replace(report, run_key=key), number=number, map_index=number - 1)
    index = Html(get("datasets").text).text
    for store in ("bern", "genf", "chur"):
        assert f"orders /landing/{store}" in index
    page = Html(get("dataset", location="/landing/bern").text)
    assert "✓ passed lake.gate" in page.text
    assert "rows 41" in page.text
    assert "genf" not in page.text


def test_a_query_is_a_dataset_of_its_gate_alone(get: Get, scene: Scene) -> None:
    for number, dag_id in enumerate(("lake", "sea"), 1):
        scene.dag(dag_id)
        report = reading(number, "orders", dag_id=dag_id, format="query")
        scene.ran(report, dag_id=dag_id, number=number)
    assert "rows 41" in Html(get("dataset", location="orders of lake.gate").text).text
    assert get("dataset", location="orders").status_code == 404


def test_summaries_of_older_versions_have_no_location(get: Get, scene: Scene) -> None:
    from dqx_airflow.operators.summary import summary

    report = report_of()
    old = {name: value for name, value in summary(report).items() if name != "locations"}
    attempt = scene.task(pushed=old)
    scene.store(replace(report, attempt=replace(report.attempt, id=attempt)))
    page = Html(get("dataset", location="orders of lake.gate").text)
    assert "rows 5,000 version 7 read from s3://lake/orders" in page.text


def test_a_location_lists_the_gates_that_promote_into_it(get: Get, scene: Scene) -> None:
    (read,) = report_of().datasets
    done = replace(read, promotion=Promotion("s3://lake/silver", 8, 40))
    promoted = report_of(outcome=Outcome.PASSED, verdicts=(NULLS,), datasets=(done,))
    scene.ran(promoted)
    assert "not read s3://lake/silver promoted by lake.gate" in Html(get("datasets").text).text
    page = Html(get("dataset", location="s3://lake/silver").text)
    assert "promoted here by lake.gate" in page.text
    assert "No gate reads this dataset." in page.text


def test_the_index_is_searched_by_words_and_outcome(get: Get, scene: Scene) -> None:
    contract = EnforcedContract("sales.orders", "1.0.0", "odcs")
    scene.ran(report_of(contract=contract))
    scene.ran(reading(2, "/landing/items", task_id="items"), task_id="items", number=2)
    for search, found in [
        ("orders", {"lake/orders", "/landing/items"}),
        ("LAKE/orders", {"lake/orders"}),
        ("landing lake.items", {"/landing/items"}),
        ("sales.", {"lake/orders"}),
        ("nothing", set()),
    ]:
        text = Html(get("datasets", search=search).text).text
        assert {place for place in ("lake/orders", "/landing/items") if place in text} == found
    blocked = Html(get("datasets", outcome="blocked").text).text
    assert "/landing/items" not in blocked
    assert "1 of 2 datasets" in blocked


def test_a_scaled_value_shows_its_raw_value_and_multiplier(get: Get, scene: Scene) -> None:
    scaled = replace(NOT_EMPTY, value=634, scaled_value=951, multiplier=1.5)
    scene.ran(report_of(verdicts=(scaled,), outcome=Outcome.PASSED))
    assert "951 = 634 \N{MULTIPLICATION SIGN}1.5" in Html(get("dataset", location=PLACE).text).text
