"""The page of an incident: its content, comments, and permissions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from ui_scene import BAD_NULLS, DAY, NOT_EMPTY, NULLS, Html, Scene, report_of

from dqx_airflow.results.incidents import notes_from
from dqx_airflow.values import DatasetSnapshot, EnforcedContract, Outcome, Responsible

if TYPE_CHECKING:
    from httpx import Response

pytestmark = pytest.mark.airflow

Get = Callable[..., "Response"]
HERE = "incident?dag_id=lake&task_id=gate"
CONTRACT = EnforcedContract(
    "orders",
    "2.3.0",
    "odcs",
    responsible=Responsible(
        owner="Sales data", channel="#sales", runbook="https://wiki.example.com/orders"
    ),
)
LATE = replace(NOT_EMPTY, name="orders.late")


def days_of(scene: Scene, outcomes: str, **changes: Any) -> None:
    """The runs of a gate on the last days, oldest first: p(assed) or b(locked)."""
    for place, letter in enumerate(reversed(outcomes)):
        on, is_bad = DAY - timedelta(days=place), letter == "b"
        version = 100 - place
        report = report_of(
            place + 1,
            on=on,
            verdicts=(BAD_NULLS if is_bad else NULLS, NOT_EMPTY),
            outcome=Outcome.BLOCKED if is_bad else Outcome.PASSED,
            datasets=(DatasetSnapshot("orders", "s3://lake/orders", "delta", version, 5000),),
            contract=CONTRACT,
            **changes,
        )
        scene.ran(report, number=place + 1)


def test_an_incident_shows_its_start_and_version(get: Get, scene: Scene) -> None:
    scene.dag()
    days_of(scene, "ppbbb")
    page = Html(get(HERE).text)
    assert page.unbalanced == []
    assert "Open incident: lake.gate" in page.text
    assert "since 2024-03-18 12:00:40 UTC" in page.text
    assert "data from 2024-03-18 runs 3" in page.text
    assert "orders 98 97 s3://lake/orders" in page.text
    assert "orders.id.null_share 50% < MAX_NULLS (10%) 2024-03-18" in page.text


def test_of_several_suites_the_blocking_one_is_shown(get: Get, scene: Scene) -> None:
    scene.dag()
    first = report_of(verdicts=(NULLS,), outcome=Outcome.PASSED)
    key = replace(first.run_key, gate="lake.gate/Orders")
    first = scene.ran(replace(first, run_key=key))
    strict = report_of(2, run_key=replace(key, gate="lake.gate/Strict"))
    scene.store(replace(strict, attempt=first.attempt))
    page = Html(get(HERE).text)
    assert "lake.gate/Strict" in page.text
    assert "orders.id.null_share" in page.text


def test_all_suites_that_stopped_the_task_are_on_one_page(
    get: Get, post: Get, scene: Scene
) -> None:
    scene.dag()
    for number, (on, outcomes) in enumerate(((2, "pp"), (1, "bp"), (0, "bb")), start=1):
        day, attempt = DAY - timedelta(days=on), None
        for part, (suite, letter) in enumerate(zip(("Orders", "Strict"), outcomes, strict=True)):
            report = report_of(
                10 * number + part,
                on=day,
                verdicts=(replace(BAD_NULLS if letter == "b" else NULLS, name=f"{suite}.id"),),
                outcome=Outcome.BLOCKED if letter == "b" else Outcome.PASSED,
            )
            report = replace(report, run_key=replace(report.run_key, gate=f"lake.gate/{suite}"))
            if attempt is None:
                attempt = scene.ran(report, number=number).attempt
            else:
                scene.store(replace(report, attempt=attempt))
    page = Html(get(HERE).text)
    assert "Open incident: lake.gate 1" in page.text
    assert "data from 2024-03-19 runs 2" in page.text
    assert "Orders.id lake.gate/Orders 50% < MAX_NULLS (10%) 2024-03-19" in page.text
    assert "Strict.id lake.gate/Strict 50% < MAX_NULLS (10%) 2024-03-20" in page.text
    (form,) = Html(get(HERE, "eve").text).forms
    post("incident", **form, kind="comment", text="both suites")
    assert "both suites" in get(HERE).text


def test_an_incident_shows_its_contacts(get: Get, scene: Scene) -> None:
    scene.dag(owners="carla")
    days_of(scene, "pb")
    text = Html(get(HERE).text).text
    assert "owner of the DAG carla contract orders owner Sales data channel #sales" in text
    assert "runbook https://wiki.example.com/orders" in text


def test_an_incident_lists_waiting_tasks_and_assets(get: Get, scene: Scene) -> None:
    scene.dag()
    days_of(scene, "pb")
    scene.chain("load", "gate", "silver", "gold")
    scene.dag("shop")
    scene.updates("gold", "revenue", "shop")
    scene.task(task_id="silver", state="upstream_failed", number=7, operator="BashOperator")
    scene.task(task_id="load", state="success", number=8, operator="BashOperator")
    page = Html(get(HERE).text)
    assert "task silver upstream_failed" in page.text
    assert "asset revenue for DAG shop" in page.text
    assert "task load" not in page.text
    assert page.links["silver"] == "../dags/lake/runs/scheduled__2024-03-20/tasks/silver"


def test_a_good_run_resolves_an_incident_with_its_recovery_time(get: Get, scene: Scene) -> None:
    scene.dag()
    days_of(scene, "bpbbp")
    page = Html(get(HERE).text)
    assert "Resolved incident: lake.gate" in page.text
    assert "recovered 2024-03-20 12:00:40 UTC recovery time 2 days" in page.text
    earlier = Html(get(page.links["2024-03-16"]).text).text
    assert "data from 2024-03-16 runs 1" in earlier
    assert "recovery time 1 day" in earlier


def test_a_missing_incident_is_not_found(get: Get, scene: Scene) -> None:
    scene.dag()
    days_of(scene, "pp")
    assert get(HERE).status_code == 404
    assert get(f"{HERE}&on=1999-01-01").status_code == 404


def test_the_tab_and_the_board_link_to_the_incident(get: Get, tab: Get, scene: Scene) -> None:
    scene.dag()
    days_of(scene, "pb")
    for page in (Html(tab().text).links["Incident"], Html(get("board").text).links["incident"]):
        assert "Open incident" in get(page).text


def notes(scene: Scene) -> list[tuple[str, str, str]]:
    found = notes_from(str(scene.root), ["lake.gate"], date.min, date.max)
    return [(note.kind, note.author, note.text) for note in found]


def test_an_editor_of_the_dag_acknowledges_and_comments(get: Get, post: Get, scene: Scene) -> None:
    scene.dag()
    days_of(scene, "pb")
    (form,) = Html(get(HERE, "eve").text).forms
    answer = post("incident", **form, kind="acknowledged", text="")
    assert answer.status_code == 303
    (form,) = Html(get(HERE, "eve").text).forms
    for _ in range(2):  # sent twice, stored once
        post("incident", **form, kind="comment", text="the source sent NULLs <b>again</b>")
    assert notes(scene) == [
        ("acknowledged", "eve", ""),
        ("comment", "eve", "the source sent NULLs <b>again</b>"),
    ]
    page = Html(get(answer.headers["location"]).text)
    assert "acknowledged by eve" in page.text
    assert "the source sent NULLs <b>again</b>" in page.text
    assert not page.all("b")


def test_a_note_belongs_to_its_incident_only(get: Get, post: Get, scene: Scene) -> None:
    scene.dag()
    days_of(scene, "bpb")
    (form,) = Html(get(HERE, "eve").text).forms
    post("incident", **form, kind="comment", text="a new one")
    assert "a new one" in get(HERE).text
    assert "a new one" not in get(f"{HERE}&on=2024-03-18").text


def test_only_editors_of_the_dag_write(get: Get, post: Get, scene: Scene) -> None:
    scene.dag()
    days_of(scene, "pb")
    (form,) = Html(get(HERE, "eve").text).forms
    assert not Html(get(HERE, "ada").text).forms
    comment = {"kind": "comment", "text": "x"}
    refused = [
        post("incident", "ada", **form, **comment),
        post("incident", "ben", **form, **comment),
        post("incident", None, **form, **comment),
        post("incident", **{**form, "token": "x"}, **comment),
        post("incident", headers={"Origin": "https://evil.example"}, **form, **comment),
        post("incident", headers={}, **form, **comment),
    ]
    assert {answer.status_code for answer in refused} <= {401, 403, 404}
    assert post("incident", **form, kind="delete", text="x").status_code == 400
    assert post("incident", **form, kind="comment", text=" ").status_code == 400
    assert post("incident", **form, kind="comment", text="x" * 2001).status_code == 400
    assert post("incident", **{**form, "note": "x"}, **comment).status_code == 400
    assert notes(scene) == []
    assert get(HERE, "ben").status_code == 403
    assert get(HERE, None).status_code == 401
