"""States beside passed and blocked: a gate that waits for an answer, a date without a report, an
ended incident; on pages, in JSON, and when they are cleared."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from dqx_airflow.operators.summary import failure_summary
from dqx_airflow.results.incidents import notes_from
from dqx_airflow.values import Attempt, DatasetSnapshot, GateReport, Outcome, Promotion, RunKey
from tests.ui.ui_scene import DAY, KEEP, NOON, NULLS, Get, Html, Scene, report_of

pytestmark = pytest.mark.airflow

HERE = "incident?dag_id=lake&task_id=gate"
UNTIL = datetime(2024, 3, 20, 20, tzinfo=timezone.utc)
SILVER = "s3://lake/silver"
HELD = (DatasetSnapshot("orders", "s3://lake/orders", "delta", 7, 258, promote_to=SILVER),)
THERE = (replace(HELD[0], promotion=Promotion(SILVER, 14, 244)),)


def json_of(get: Get, page: str, user: str = "eve") -> Any:
    return get(f"api/v1/{page}", user).json()


def waiting(scene: Scene, until: datetime | None = UNTIL) -> GateReport:
    """A blocked gate that waits for an answer."""
    report = scene.ran(report_of(datasets=HELD))
    scene.asks(report.attempt.id, until, KEEP)
    return report


def test_a_gate_that_waits_says_so_on_every_page(get: Get, scene: Scene) -> None:
    waiting(scene)
    (row,) = json_of(get, "board")["rows"]
    question = row["latest"]["run"]["question"]
    assert row["state"] == "waiting"
    assert json_of(get, "board")["counts"] == {"waiting": 1}
    place = "../dags/lake/runs/scheduled__2024-03-20/tasks/gate/required_actions"
    assert question == {
        "since": "2024-03-20T12:01:00Z",
        "until": "2024-03-20T20:00:00Z",
        "default": "kept blocked",
        "href": place,
    }
    (one,) = json_of(get, "slices")["rows"]
    assert (one["state"], one["question"]) == ("waiting", question)
    incident = json_of(get, HERE)
    assert incident["group"][0]["status"] == "waiting"
    assert [*incident["questions"].values()] == [question]
    tab = f"gate?dag_id=lake&run_id=scheduled__{DAY}&task_id=gate&map_index=-1"
    assert json_of(get, tab)["run"]["question"] == question
    for page in ("board", "slices", HERE, tab):
        html = Html(get(page).text)
        assert "until 2024-03-20 20:00:00 UTC , then kept blocked" in html.text, page
        assert html.links["answer"] == place, page


def test_a_question_without_an_end_has_none(get: Get, scene: Scene) -> None:
    waiting(scene, until=None)
    (row,) = json_of(get, "board")["rows"]
    question = row["latest"]["run"]["question"]
    assert (question["until"], question["default"]) == (None, None)


def test_clearing_a_gate_that_waits_asks_first(get: Get, post: Get, scene: Scene) -> None:
    waiting(scene)
    (form,) = Html(get(HERE, "eve").text).forms
    asked = post("incident", **form, kind="clear", text="repaired")
    assert asked.status_code == 200
    assert "waits since 2024-03-20 12:01:00 UTC until" in Html(asked.text).text
    assert state_of(scene) in ("awaiting_input", "deferred")
    assert notes_from(str(scene.root), ["lake.gate"], DAY, DAY) == ()
    (confirmed,) = Html(asked.text).forms
    assert post("incident", **confirmed).status_code == 303
    assert state_of(scene) is None
    (note,) = notes_from(str(scene.root), ["lake.gate"], DAY, DAY)
    assert (note.kind, note.text) == ("comment", "repaired")
    assert json_of(get, HERE)["group"][0]["status"] == "blocked"


def state_of(scene: Scene, task_id: str = "gate") -> str | None:
    from airflow.models.taskinstance import TaskInstance
    from sqlalchemy import select

    scene.session.expire_all()
    query = select(TaskInstance.state).where(TaskInstance.task_id == task_id)
    state = scene.session.scalar(query)
    return state and str(state)


def silent(scene: Scene, days: int, **changes: Any) -> None:
    """A run of a day before whose task failed without a report."""
    scene.task(on=DAY - timedelta(days=days), number=40 + days, **changes)


def test_a_date_whose_run_left_no_report_is_open_and_cleared_with_the_others(
    get: Get, post: Get, scene: Scene
) -> None:
    scene.ran(report_of(1, datasets=HELD))
    error = RuntimeError("the Spark job was killed by signal 9")
    key = RunKey("lake.gate", DAY - timedelta(days=1), "scheduled__2024-03-19")
    silent(scene, 1, pushed=failure_summary(error, "lake.gate", key))
    silent(scene, 2)
    page = json_of(get, "slices")
    assert [(one["date"], one["state"]) for one in page["rows"]] == [
        ("2024-03-18", "no report"),
        ("2024-03-19", "no report"),
        ("2024-03-20", "blocked"),
    ]
    assert page["counts"] == {"blocked": 1, "no report": 2}
    assert page["rows"][1]["error"] == "the Spark job was killed by signal 9"
    assert json_of(get, "board")["open_slices"] == {"lake.gate": 3}
    html = Html(get("slices", "eve").text)
    assert post("slices", **html.forms[0]).status_code == 303
    assert json_of(get, "slices")["counts"] == {"blocked": 1}


def test_a_date_that_a_later_run_judged_has_a_report(get: Get, scene: Scene) -> None:
    silent(scene, 1)
    silent(scene, 2, state="success")  # marked by a person
    later = report_of(
        3,
        on=DAY - timedelta(days=1),
        outcome=Outcome.PASSED,
        verdicts=(NULLS,),
        run_key=RunKey("lake.gate", DAY - timedelta(days=1), "manual__1"),
        attempt="by hand",
    )
    assert len(json_of(get, "slices")["rows"]) == 1
    scene.store(later)
    assert json_of(get, "slices")["rows"] == []


def test_the_date_of_a_run_without_a_report_is_as_far_from_its_logical_date_as_others(
    get: Get, scene: Scene
) -> None:
    report = scene.ran(report_of(1, on=DAY))
    yesterday = DAY - timedelta(days=1)
    summary = {"outcome": "passed", "gate": "lake.gate", "date": f"{yesterday}"}
    scene.task(task_id="late", on=DAY, pushed=summary, number=60, state="success")
    scene.task(task_id="late", on=yesterday, number=61)
    (one, _) = json_of(get, "slices")["rows"]
    assert (one["task_id"], one["date"]) == ("late", "2024-03-18")
    assert report.run_key.date == DAY


def test_an_ended_incident_says_where_its_rows_are(get: Get, scene: Scene) -> None:
    scene.ran(report_of(1, datasets=HELD))
    (held,) = json_of(get, HERE)["judged"].values()
    assert held == [{"dataset": "orders", "target": SILVER, "row_count": 258, "promoted": None}]
    assert "orders : 258 rows not in s3://lake/silver" in Html(get(HERE).text).text
    again = NOON + timedelta(hours=2)
    passed = report_of(2, outcome=Outcome.PASSED, verdicts=(NULLS,), datasets=THERE)
    second = Attempt(2, "again")
    scene.store(replace(passed, started_at=again, finished_at=again, attempt=second))
    page = json_of(get, f"{HERE}&on={DAY}")
    ((there,),) = page["judged"].values()
    assert page["group"][0]["status"] == "repaired"
    assert there["promoted"] == {
        "row_count": 244,
        "version": 14,
        "attempt": 2,
        "at": "2024-03-20T14:00:00Z",
        "left_out": 0,
    }
    text = Html(get(f"{HERE}&on={DAY}").text).text
    assert "not in" not in text
    assert "orders : 244 rows in s3://lake/silver , version 14, by attempt 2" in text


def with_setups(scene: Scene) -> None:
    """A DAG whose gate has a setup and a teardown, all of which have run."""
    from airflow.providers.standard.operators.empty import EmptyOperator
    from airflow.sdk import DAG

    with DAG("lake", schedule=None) as dag:
        up = EmptyOperator(task_id="up").as_setup()
        down = EmptyOperator(task_id="down").as_teardown(setups=up)
        up >> EmptyOperator(task_id="gate") >> EmptyOperator(task_id="last") >> down
        EmptyOperator(task_id="other")
    scene.serialized(dag)
    for number, name in enumerate(("up", "last", "down", "other")):
        scene.task(task_id=name, state="success", operator="EmptyOperator", number=70 + number)


def test_setups_and_teardowns_are_cleared_with_the_gate(get: Get, post: Get, scene: Scene) -> None:
    scene.ran(report_of())
    with_setups(scene)
    (clearing,) = json_of(get, HERE)["clearings"]
    assert clearing["tasks"] == ["up", "gate", "last", "down"]
    (form,) = Html(get(HERE, "eve").text).forms
    assert "Clears up, gate, last, down" in Html(get(HERE, "eve").text).text
    assert post("incident", **form, kind="clear").status_code == 303
    states = {name: state_of(scene, name) for name in (*clearing["tasks"], "other")}
    assert states == {**dict.fromkeys(clearing["tasks"]), "other": "success"}


@pytest.mark.parametrize(
    ("wanted", "set_in_airflow", "on_latest"),
    [("", "True", True), ("", "False", False), ("latest", "False", True), ("run", "True", False)],
)
def test_the_version_that_runs_is_that_of_the_user_and_else_as_airflow_is_set(
    get: Get,
    post: Get,
    scene: Scene,
    monkeypatch: pytest.MonkeyPatch,
    wanted: str,
    set_in_airflow: str,
    on_latest: bool,
) -> None:
    from dqx_airflow.ui import airflow

    if airflow.resolve_run_on_latest_version is None and not wanted:
        on_latest = False  # Airflow has no such setting before 3.3
    monkeypatch.setenv("AIRFLOW__CORE__RERUN_WITH_LATEST_VERSION", set_in_airflow)
    scene.ran(report_of())
    with_setups(scene)
    versions(scene, "aaaa", "bbbb")
    (clearing,) = json_of(get, HERE)["clearings"]
    assert (clearing["run_version"], clearing["latest_version"]) == ("aaaa", "bbbb")
    assert clearing["outdated"] is True
    if not wanted:
        assert clearing["version"] == ("bbbb" if on_latest else "aaaa")
    form = {**Html(get(HERE, "eve").text).forms[0], "kind": "clear", "version": wanted}
    assert post("incident", **form).status_code == 303
    assert run_version(scene) == ("bbbb" if on_latest else "aaaa")
    (entry,) = logged(scene, "dqx clear")
    assert json.loads(entry)["on_latest_version"] is on_latest


def versions(scene: Scene, of_run: str, newest: str) -> None:
    from airflow.models.dag import DagModel
    from airflow.models.dag_version import DagVersion
    from airflow.models.dagrun import DagRun
    from sqlalchemy import select, update

    own = scene.session.scalar(select(DagVersion.id))
    of = {"bundle_version": of_run, "created_dag_version_id": own, "state": "failed"}
    scene.session.execute(update(DagRun).values(**of))
    scene.session.execute(update(DagModel).values(bundle_version=newest))
    scene.session.commit()


def run_version(scene: Scene) -> str | None:
    from airflow.models.dagrun import DagRun
    from sqlalchemy import select

    scene.session.expire_all()
    version: str | None = scene.session.scalar(select(DagRun.bundle_version))
    return version


def logged(scene: Scene, event: str) -> list[str]:
    from airflow.models.log import Log
    from sqlalchemy import select

    return [*scene.session.scalars(select(Log.extra).where(Log.event == event))]


def test_a_wrong_version_is_refused(get: Get, post: Get, scene: Scene) -> None:
    scene.ran(report_of())
    (form,) = Html(get(HERE, "eve").text).forms
    refused = post("incident", **form, kind="clear", version="newest")
    assert refused.status_code == 400
    assert state_of(scene) == "failed"


def test_the_board_has_the_reports_whose_xcoms_are_elsewhere(get: Get, scene: Scene) -> None:
    scene.ran(report_of())
    whole = json_of(get, "board")["rows"]
    elsewhere(scene)
    from dqx_airflow.ui import airflow

    airflow._kept.clear()
    assert json_of(get, "board")["rows"] == whole
    assert json_of(get, "slices")["counts"] == {"blocked": 1}


def elsewhere(scene: Scene) -> None:
    """The XComs are in object storage: Airflow's table has their places."""
    from airflow.models.xcom import XComModel
    from sqlalchemy import update

    place = "file:///xcoms/lake/gate/dqx_report"
    scene.session.execute(update(XComModel).values(value=json.dumps(place)))
    scene.session.commit()


def test_a_task_that_a_person_marked_says_by_whom_and_why(get: Get, scene: Scene) -> None:
    from airflow.models.log import Log
    from airflow.models.taskinstance import TaskInstance
    from sqlalchemy import select

    scene.ran(report_of(), state="success")
    tab = f"gate?dag_id=lake&run_id=scheduled__{DAY}&task_id=gate&map_index=-1"
    assert json_of(get, tab)["mark"] is None
    place = {"dag_id": "lake", "run_id": f"scheduled__{DAY}", "task_id": "gate"}
    extra = json.dumps({"new_state": "success", "method": "PATCH"})
    scene.session.add(Log(event="patch_task_instance", owner="eve", extra=extra, **place))
    scene.session.scalar(select(TaskInstance)).note = "ticket 99"
    scene.session.commit()
    mark = json_of(get, tab)["mark"]
    assert (mark["state"], mark["author"], mark["note"]) == ("success", "eve", "ticket 99")
    assert [*json_of(get, HERE)["marks"].values()] == [mark]
    for page in (tab, HERE):
        text = Html(get(page).text).text
        assert "marked as success by eve" in text
        assert "ticket 99" in text
