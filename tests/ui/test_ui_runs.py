"""Links from every page to Airflow, and from every mark of a past run to its report."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dqx_airflow.results.store import ResultsStore
from dqx_airflow.values import DatasetSnapshot, Outcome, PartialRun, Selection
from tests.ui.ui_scene import DAY, NULLS, PLACE, Get, Html, Scene, report_of

pytestmark = pytest.mark.airflow

RUNS = "runs?dag_id=lake&task_id=gate"


@pytest.mark.few(2)
@pytest.mark.parametrize("state", ["failed", None, "running", "upstream_failed"])
def test_every_page_of_a_task_leads_to_airflow(
    get: Get, tab: Get, scene: Scene, state: str | None
) -> None:
    scene.dag()
    if state == "failed":
        scene.ran(report_of())
    else:
        scene.task(state=state)
    links = {link["href"]: link.get("target") for link in Html(tab().text).all("a")}
    assert links["../dags/lake/runs/scheduled__2024-03-20/tasks/gate"] == "_top"
    assert links["../dags/lake/runs/scheduled__2024-03-20"] == "_top"
    assert "runs?dag_id=lake&task_id=gate" in links


def test_ids_are_quoted_in_the_addresses_of_airflow(tab: Get, scene: Scene) -> None:
    scene.dag("a b")
    scene.task("a b", "x/y", state="running")
    text = tab(dag_id="a b", task_id="x/y").text
    assert 'href="../dags/a%20b/runs/scheduled__2024-03-20/tasks/x%2Fy"' in text


@pytest.mark.more
def test_every_bar_point_and_date_opens_its_run(get: Get, tab: Get, scene: Scene) -> None:
    scene.days("ppb")
    for page in (tab().text, get("board").text, get("dataset", location=PLACE).text):
        opened = {
            str(link["href"])
            for link in Html(page).all("a")
            if "run_id=scheduled__2024-03-18" in str(link["href"])
            and str(link["href"]).startswith("gate?")
        }
        assert opened
        for href in opened:
            assert "✓ passed lake.gate data of 2024-03-18" in Html(get(href).text).text


def test_the_list_of_runs_has_filters(get: Get, scene: Scene) -> None:
    scene.days("pbpp")
    page = Html(get(RUNS).text)
    assert "3 passed 1 blocked" in page.text
    assert "2024-03-18 1 of 2 P0 orders.id.null_share" in page.text
    assert "40 seconds" in page.text
    blocked = Html(get(f"{RUNS}&outcome=blocked").text).text
    assert "1 run" in blocked
    assert "2024-03-20" not in blocked
    since = Html(get(f"{RUNS}&from=2024-03-19&to=2024-03-19").text).text
    assert "1 run" in since
    odd = Html(get(f"{RUNS}&from=yesterday&outcome=great&map_index=x&page=99").text).text
    assert "4 runs" in odd


@pytest.mark.slow
def test_the_list_of_runs_has_pages_that_keep_the_filters(
    get: Get, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dqx_airflow.ui import runs_page

    monkeypatch.setattr(runs_page, "RUNS_OF_A_PAGE", 5)
    scene.days("p")
    for number in range(12):
        scene.store(report_of(100 + number, on=DAY - timedelta(days=number + 1)))
    page = Html(get(f"{RUNS}&outcome=blocked").text)
    assert "page 1 of 3, 12 runs" in page.text
    last = Html(get(Html(get(page.links["Next"]).text).links["Next"]).text)
    assert "page 3 of 3, 12 runs" in last.text
    assert "Next" not in last.links


def test_a_superseded_attempt_is_not_listed(get: Get, scene: Scene) -> None:
    good = scene.ran(report_of(outcome=Outcome.PASSED, verdicts=(NULLS,)), attempt=2)
    earlier = good.started_at - timedelta(hours=1)
    scene.store(report_of(9, attempt="earlier", started_at=earlier))
    assert "0 runs" in Html(get(f"{RUNS}&outcome=blocked").text).text or "No run matches" in (
        get(f"{RUNS}&outcome=blocked").text
    )


def test_runs_without_a_report_stand_between_the_others_by_their_dates(
    get: Get, post: Get, scene: Scene
) -> None:
    for back in (0, 2):
        scene.ran(report_of(1 + back, on=DAY - timedelta(days=back)), number=1 + back)
    for back in (1, 3):
        scene.task(on=DAY - timedelta(days=back), state="failed", number=20 + back)
    page = Html(get(RUNS, "eve").text)
    dates = re.findall(r"(blocked|no report) (2024-03-\d\d)", page.text)
    assert dates == [
        ("blocked", "2024-03-20"),
        ("no report", "2024-03-19"),
        ("blocked", "2024-03-18"),
        ("no report", "2024-03-17"),
    ]
    assert "2 no report" in page.text
    assert "4 runs" in page.text
    assert page.links["log"].endswith("/tasks/gate")
    listed = get(f"api/v1/{RUNS}").json()
    assert [one["date"] for one in listed["without_report"]] == ["2024-03-19", "2024-03-17"]
    clear = [form for form in page.forms if "pick" in form]
    assert len(clear) == 2
    assert not [form for form in Html(get(RUNS, "ada").text).forms if "pick" in form]
    cleared = post("slices", **clear[0])
    assert cleared.headers["location"] == "runs?dag_id=lake&task_id=gate"
    assert "2024-03-19" not in Html(get(RUNS).text).text


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("query", "dates"),
    [
        ("outcome=no report", ["2024-03-19"]),
        ("outcome=blocked", ["2024-03-20"]),
        ("to=2024-03-19", ["2024-03-19"]),
        ("from=2024-03-20", ["2024-03-20"]),
        ("part=whole", ["2024-03-20"]),
        ("map_index=3", []),
    ],
)
def test_the_filters_choose_runs_without_a_report_as_well(
    get: Get, scene: Scene, query: str, dates: list[str]
) -> None:
    scene.ran(report_of())
    scene.task(on=DAY - timedelta(days=1), state="failed", number=2)
    text = Html(get(f"{RUNS}&{query}").text).text
    assert re.findall(r"(?:blocked|no report) (2024-03-\d\d)", text) == dates


def test_runs_without_a_report_keep_their_place_over_pages(
    get: Get, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dqx_airflow.ui import runs_page

    monkeypatch.setattr(runs_page, "RUNS_OF_A_PAGE", 3)
    silent = {1, 4, 5, 8}
    for back in range(10):
        on = DAY - timedelta(days=back)
        if back in silent:
            scene.task(on=on, state="failed", number=50 + back)
        else:
            scene.ran(report_of(1 + back, on=on), number=1 + back)
    dates = []
    for number in range(1, 5):
        text = Html(get(f"{RUNS}&page={number}").text).text
        dates += re.findall(r"(?:blocked|no report) (2024-03-\d\d)", text)
    assert dates == [str(DAY - timedelta(days=back)) for back in range(10)]


def test_without_the_store_the_list_has_the_last_runs_in_airflow(
    get: Get, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.days("pb")
    monkeypatch.delenv("AIRFLOW__DQX__RESULTS_ROOT")
    text = Html(get(RUNS).text).text
    assert "This server has no results store" in text
    assert "The last runs in Airflow" in text
    assert "✕ blocked 2024-03-20" in text


@pytest.mark.few(1)
@pytest.mark.parametrize("query", ["task_id=gate", "dag_id=lake&task_id=other", "dag_id=lake"])
def test_other_tasks_have_no_list(get: Get, scene: Scene, query: str) -> None:
    scene.ran(report_of())
    assert get(f"runs?{query}").status_code in (403, 404)


def test_the_list_of_runs_requires_read_permission(get: Get, scene: Scene) -> None:
    scene.ran(report_of())
    assert get(RUNS, "ben").status_code == 403
    assert get(RUNS, None).status_code == 401


@pytest.mark.more
def test_a_run_deleted_in_airflow_opens_from_the_list(get: Get, scene: Scene) -> None:
    scene.ran(report_of())
    scene.store(report_of(7, on=DAY - timedelta(days=400)))
    href = Html(get(RUNS).text).links["2023-02-14"]
    text = Html(get(href).text).text
    assert "✕ blocked lake.gate" in text
    assert "Airflow no longer has this run" in text
    assert get(href, "ben").status_code == 403


@pytest.mark.more
def test_a_deleted_run_of_another_gate_does_not_open(get: Get, scene: Scene) -> None:
    scene.dag()
    scene.dag("pond", team="blue")
    scene.ran(report_of(), number=1)
    scene.ran(report_of(2, dag_id="pond"), dag_id="pond", number=2)
    hidden = scene.store(report_of(7, on=DAY - timedelta(days=400)))
    query = {"run_id": "scheduled__2023-02-14", "task_id": "gate", "attempt": hidden.attempt.id}
    assert get("gate", "ada", dag_id="lake", **query).status_code == 200
    assert get("gate", "ben", dag_id="pond", **query).status_code == 404


def mapped(scene: Scene, number: int, index: int, on: Any = DAY, **changes: Any) -> None:
    place = DatasetSnapshot("orders", f"s3://landing/store_{index}", "csv", rows=200)
    report = report_of(number, on=on, datasets=(place,), **changes)
    key = replace(report.run_key, scheduler_run=f"scheduled__{on}[{index}]")
    scene.ran(replace(report, run_key=key), number=number, map_index=index)


@pytest.mark.more
def test_instances_of_a_mapped_gate_have_their_own_locations_and_histories(
    get: Get, tab: Get, scene: Scene
) -> None:
    scene.dag()
    for back in range(2):
        for index in range(3):
            mapped(scene, 1 + back * 3 + index, index, DAY - timedelta(days=back))
    page = Html(tab().text)
    assert "s3://landing/store_1" in page.text
    assert "../dags/lake/runs/scheduled__2024-03-20/tasks/gate/mapped/1" in page.links["log"] or (
        page.links["log"].endswith("/mapped/2")
    )
    one = Html(tab(map_index="1").text)
    assert "instance 1" in one.text
    assert "last 2 runs" in one.text
    listed = Html(get(one.links["last 2 runs"]).text).text
    assert "2 runs" in listed


def test_instances_of_one_location_differ_by_their_filter_or_their_rows(
    tab: Get, scene: Scene
) -> None:
    scene.dag()
    for index, store in enumerate(("basel", "zurich")):
        place = DatasetSnapshot("orders", PLACE, "delta", condition=f"store = '{store}'")
        slice_ = json.dumps({"read": {}, "rows": {"store": store}})
        report = report_of(1 + index, datasets=(place,), slice=slice_)
        key = replace(report.run_key, scheduler_run=f"scheduled__{DAY}[{index}]")
        scene.ran(replace(report, run_key=key), number=1 + index, map_index=index)
    text = Html(tab().text).text
    assert f"{PLACE} store = basel store = 'basel'" in text
    assert f"{PLACE} store = zurich store = 'zurich'" in text


@pytest.mark.more
def test_the_label_of_an_instance_is_that_of_its_template(tab: Get, scene: Scene) -> None:
    from airflow.models.taskinstance import TaskInstance

    scene.dag()
    mapped(scene, 1, 0)
    mapped(scene, 2, 1)
    scene.session.execute(
        TaskInstance.__table__.update()
        .where(TaskInstance.map_index == 1)
        .values(rendered_map_index="zurich")
    )
    scene.session.commit()
    assert "1 zurich" in Html(tab().text).text
    assert "instance zurich" in Html(tab(map_index="1").text).text


def test_a_stopped_gate_names_the_gate_that_stopped_it(tab: Get, scene: Scene) -> None:
    scene.ran(report_of(task_id="bronze"), task_id="bronze")
    scene.task(state="upstream_failed", number=2)
    page = Html(tab().text)
    assert "Stopped by ✕ blocked lake.bronze" in page.text
    assert "task_id=bronze" in page.links["lake.bronze"]


def test_a_gate_outside_the_upstream_is_not_named(tab: Get, scene: Scene) -> None:
    scene.dag()
    scene.chain("bronze", "gate", "gold")
    scene.ran(report_of(task_id="bronze"), task_id="bronze")
    scene.ran(report_of(2, task_id="side"), task_id="side", number=2)
    scene.task(state="upstream_failed", number=3)
    text = Html(tab().text).text
    assert "lake.bronze" in text
    assert "lake.side" not in text


@pytest.mark.nightly
def test_ten_thousand_runs_are_listed_at_once(get: Get, scene: Scene) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    from dqx_airflow.results.report_rows import run_row
    from dqx_airflow.results.schema import RUNS_SCHEMA
    from dqx_airflow.results.store import arrow_table

    report = scene.ran(report_of())
    many = arrow_table([run_row(report)], RUNS_SCHEMA).take(pa.array([0] * 10_000))
    keys: dict[str, list[Any]] = {
        "run_id": [f"r{number}" for number in range(10_000)],
        "attempt_id": [f"a{number}" for number in range(10_000)],
        "scheduler_run": [f"manual__{number}" for number in range(10_000)],
        "dataset_date": [DAY - timedelta(days=number % 3650) for number in range(10_000)],
    }
    for name, values in keys.items():
        place = many.schema.get_field_index(name)
        many = many.set_column(place, name, pa.array(values, many.schema.field(name).type))
    write_deltalake(f"{ResultsStore(str(scene.root)).location.root}/runs", many, mode="append")
    assert "page 1 of 201, 10001 runs" in Html(get(RUNS).text).text
    started = time.perf_counter()
    assert "page 201 of 201" in Html(get(f"{RUNS}&page=201").text).text
    assert time.perf_counter() - started < 5.0


def test_partial_runs_are_marked_and_can_be_chosen(get: Get, tab: Get, scene: Scene) -> None:
    scene.ran(report_of(1, on=DAY - timedelta(days=1)))
    some = PartialRun(Selection(tags=("fast",)), 1, 3)
    scene.ran(report_of(2, verdicts=(NULLS,), outcome=Outcome.PASSED, partial=some), number=2)
    mark = "1 of 3 assertions selected (tag fast)"
    assert mark in tab().text
    for part, dates in (("", 2), ("whole", 1), ("partial", 1), ("odd", 2)):
        page = get(f"{RUNS}&part={part}").text
        assert page.count("<tr><td>") == dates
        assert (mark in page) == (part != "whole")
    board = get("board").text
    assert "blocked" in board  # what the partial run did not judge is as it was
    assert "failing for 1 run" in board
