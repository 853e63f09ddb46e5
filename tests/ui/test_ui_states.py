"""States beside passed and blocked: a gate that waits for an answer, a date without a report, an
ended incident; on pages, in JSON, and when they are cleared."""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import uuid4

import pytest
from deltalake import DeltaTable

from dqx_airflow.errors import StoreError
from dqx_airflow.operators.summary import failure_summary
from dqx_airflow.results.incidents import IncidentNote, notes_from, write_notes
from dqx_airflow.results.missing_reports import missing_reports
from dqx_airflow.results.query import StoredResults
from dqx_airflow.values import (
    NO_REPORT,
    Attempt,
    DatasetSnapshot,
    GateReport,
    Outcome,
    PartialRun,
    Promotion,
    RunKey,
    Selection,
    Severity,
    Status,
)
from tests.ui.test_ui_incident import form_of
from tests.ui.ui_scene import (
    BAD_NULLS,
    DAY,
    KEEP,
    NOON,
    NOT_EMPTY,
    NULLS,
    Get,
    Html,
    Scene,
    report_of,
)

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
        assert "◔ waiting" in html.text, page
        assert "until 03-20 20:00 UTC" in html.text, page
        assert "kept blocked" in html.text, page
        assert place in [link["href"] for link in html.all("a", target="_top")], page


@pytest.mark.more
def test_the_last_bar_of_a_gate_that_waits_waits(get: Get, scene: Scene) -> None:
    scene.days("p")
    report = report_of(2, on=DAY + timedelta(days=1), datasets=HELD)
    report = scene.ran(report, number=2)
    scene.asks(report.attempt.id, UNTIL, KEEP)
    tab = f"gate?dag_id=lake&run_id=scheduled__{DAY + timedelta(days=1)}&task_id=gate&map_index=-1"
    page = Html(get(tab).text)
    assert page.all("a", class_="waiting")
    assert "not promoted: the gate waits for an answer" in page.text


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("kind", "answered", "words"),
    [
        ("kept blocked", None, "Kept blocked by op: not now."),
        (
            "accepted",
            "2024-03-20T12:00:30+00:00",
            "The answer by op: not now no longer applies, since data or rules have changed.",
        ),
        ("comment", None, ""),
    ],
)
def test_after_an_answer_the_pages_have_the_words_of_the_notice(
    get: Get, scene: Scene, kind: str, answered: str | None, words: str
) -> None:
    scene.ran(report_of(datasets=HELD, answered=answered))
    at = NOON + timedelta(minutes=5)
    note = IncidentNote("lake.gate", DAY, kind, "op", "not now", run_id="earlier", at=at)
    write_notes(StoredResults(str(scene.root)), [note])
    tab = f"gate?dag_id=lake&run_id=scheduled__{DAY}&task_id=gate&map_index=-1"
    for page in (HERE, tab):
        head = Html(get(page).text).text.partition("since data of")[0]
        assert words in head
        assert bool(words) == ("op" in head.partition("50%")[2])


def test_a_gate_without_a_report_keeps_its_target(get: Get, scene: Scene) -> None:
    scene.ran(report_of(1, outcome=Outcome.PASSED, verdicts=(NULLS,), datasets=THERE))
    scene.task(on=DAY + timedelta(days=1), number=70)
    text = Html(get("slices").text).text
    assert "lake.gate → s3://lake/silver" in text
    assert "no target" not in text


def test_a_question_without_an_end_has_none(get: Get, scene: Scene) -> None:
    waiting(scene, until=None)
    (row,) = json_of(get, "board")["rows"]
    question = row["latest"]["run"]["question"]
    assert (question["until"], question["default"]) == (None, None)


@pytest.mark.more
def test_clearing_a_gate_that_waits_asks_first(get: Get, post: Get, scene: Scene) -> None:
    waiting(scene)
    form = form_of(get(HERE, "eve").text, "clear")
    asked = post("incident", **form, reason="repaired")
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


def left_no_report(scene: Scene, days: int, **changes: Any) -> None:
    """A run of a day before whose task failed without a report."""
    scene.task(on=DAY - timedelta(days=days), number=40 + days, **changes)


def test_a_date_whose_run_left_no_report_is_open_and_cleared_with_the_others(
    get: Get, post: Get, scene: Scene
) -> None:
    scene.ran(report_of(1, datasets=HELD))
    error = RuntimeError("the Spark job was killed by signal 9")
    key = RunKey("lake.gate", DAY - timedelta(days=1), "scheduled__2024-03-19")
    left_no_report(scene, 1, pushed=failure_summary(error, "lake.gate", key))
    left_no_report(scene, 2)
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
    assert post("slices", **html.forms[0]).status_code == 400, "no date is selected"
    picks = " ".join(box["value"] or "" for box in html.all("input", name="pick", type="checkbox"))
    assert len(picks.split()) == 3
    assert post("slices", **html.forms[0], pick=picks).status_code == 303
    assert json_of(get, "slices")["counts"] == {"blocked": 1}


NO_REPORT_TAB = f"gate?dag_id=lake&run_id=scheduled__{DAY}&task_id=gate&map_index=-1"


def silent(scene: Scene, gate: str, *, noted: str = "") -> None:
    """The run of the day of a gate with this name left no report; the runs before passed.

    :param noted: the slice of the run in the note that the gate left in the store.
    """
    yesterday = DAY - timedelta(days=1)
    good = RunKey(gate, yesterday, f"scheduled__{yesterday}")
    passed = report_of(1, on=yesterday, outcome=Outcome.PASSED, verdicts=(NULLS,), run_key=good)
    scene.ran(passed)
    key = RunKey(gate, DAY, f"scheduled__{DAY}")
    error = RuntimeError("the Spark job was killed by signal 9")
    scene.task(number=50, pushed=failure_summary(error, gate, key))
    if noted:
        note = IncidentNote(gate, DAY, NO_REPORT, gate, "killed", slice=noted)
        write_notes(StoredResults(str(scene.root)), [note])


@pytest.mark.few(1)
@pytest.mark.parametrize("noted", ["", '{"orders": {"store": "basel"}}'])
def test_a_date_without_a_report_is_closed_on_its_page(
    get: Get, post: Get, scene: Scene, noted: str
) -> None:
    silent(scene, "shop orders", noted=noted)
    root = str(scene.root)
    assert len(missing_reports(root)) == bool(noted)
    page = Html(get(NO_REPORT_TAB, "eve").text)
    (form,) = [fields for fields in page.forms if fields.get("kind") == "closed"]
    assert json_of(get, NO_REPORT_TAB)["open"]
    for words in ("since data of 2024-03-20", "how bad not checked 1 open date", "waits nothing"):
        assert words in page.text
    for user in ("ada", "ben", None):
        assert post("slices", user, **form, reason="not needed").status_code in (401, 403, 404)
    assert post("slices", **form, reason=" ").status_code == 400
    assert post("slices", **{**form, "note": "1"}, reason="not needed").status_code == 400
    assert post("slices", **{**form, "kind": "accepted"}, reason="x").status_code == 400
    assert len(json_of(get, "slices")["rows"]) == 1, "nothing has closed it yet"
    assert post("slices", **form, reason="the shop was shut").status_code == 303
    assert json_of(get, "slices")["rows"] == []
    assert missing_reports(root) == ()
    closed = [one for one in notes_from(root, ["shop orders"], DAY, DAY) if one.kind == "closed"]
    (note,) = closed
    assert (note.author, note.text, note.slice) == ("eve", "the shop was shut", noted or None)
    assert post("slices", **form, reason="the shop was shut").status_code == 409, "sent twice"
    assert "What you can do" not in Html(get(NO_REPORT_TAB, "eve").text).text
    assert not json_of(get, NO_REPORT_TAB)["open"]


def test_only_a_date_without_a_report_is_closed_in_the_list(
    get: Get, post: Get, scene: Scene
) -> None:
    scene.ran(report_of(1, datasets=HELD))
    html = Html(get("slices", "eve").text)
    (box,) = html.all("input", name="pick", type="checkbox")
    form = {**html.forms[0], "pick": box["value"] or "", "kind": "closed", "note": str(uuid4())}
    refused = post("slices", **form, reason="not needed")
    assert refused.status_code == 400
    assert "close the others on their incidents" in Html(refused.text).text
    assert len(json_of(get, "slices")["rows"]) == 1


@pytest.mark.more
def test_a_list_that_may_miss_old_dates_without_a_report_says_so(
    get: Get, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dqx_airflow.ui import airflow, open_slices

    scene.days("bb")
    words = "Old dates without a report may be missing: of the tasks that failed"
    assert words not in Html(get("slices").text).text
    few = functools.partial(airflow.failed_runs, most=2)
    monkeypatch.setattr(airflow, "failed_runs", few)
    monkeypatch.setattr(open_slices.airflow, "MOST_FAILED", 2)
    assert words in Html(get("slices").text).text
    assert words in json_of(get, "slices")["problem"]


def test_a_date_of_which_the_store_tells_nothing_is_neither_taken_nor_closed(
    get: Get, post: Get, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dqx_airflow.ui import open_slices, store

    silent(scene, "lake.gate")
    forms = Html(get(NO_REPORT_TAB, "eve").text).forms

    def fails(*_: object) -> None:
        raise StoreError("no permission for the key abc")

    monkeypatch.setattr(open_slices, "past_of_dates", fails)
    monkeypatch.setattr(store, "_REST_S", 0.0)
    page = json_of(get, "slices")
    assert "The results store did not respond" in page["problem"]
    assert page["rows"][0]["acknowledgement"] is None
    assert json_of(get, "board")["problem"] == page["problem"]
    assert page["problem"] in Html(get("board").text).text
    for form in forms:
        if form.get("kind"):
            refused = post("slices", **form, reason="not needed")
            assert refused.status_code == 503
            assert "abc" not in refused.text
    assert notes_from(str(scene.root), ["lake.gate"], DAY, DAY) == ()


def test_who_may_not_close_a_date_sees_why(get: Get, scene: Scene) -> None:
    silent(scene, "lake.gate")
    page = Html(get(NO_REPORT_TAB).text)
    assert not page.forms
    assert "You may not edit DAG lake." in page.text


def test_a_gate_without_a_report_has_one_name_on_all_pages(get: Get, scene: Scene) -> None:
    silent(scene, "shop orders")
    for page in ("board", "slices", NO_REPORT_TAB, "runs?dag_id=lake&task_id=gate"):
        html = Html(get(page, "eve").text)
        assert "shop orders" in html.text, page
        assert "lake.gate" not in html.text, page
        assert f"{DAY}" in html.text, page
    assert json_of(get, NO_REPORT_TAB)["gate"] == "shop orders"
    assert json_of(get, NO_REPORT_TAB)["date"] == str(DAY)
    (row,) = json_of(get, "slices")["rows"]
    assert row["gate"] == "shop orders"


@pytest.mark.more
@pytest.mark.parametrize("gate", ["shop/orders", "shop/v1/orders", "a: b|c / d", "a/"])
def test_a_gate_whose_name_has_slashes_has_this_name_on_all_pages(
    get: Get, post: Get, scene: Scene, gate: str
) -> None:
    yesterday = DAY - timedelta(days=1)
    silent(scene, gate)
    run_key = RunKey(gate, yesterday - timedelta(days=1), "scheduled__2024-03-18")
    scene.ran(report_of(2, on=run_key.date, run_key=run_key), number=2)
    rows = json_of(get, "slices")["rows"]
    assert [(row["gate"], row["state"]) for row in rows] == [(gate, "blocked"), (gate, "no report")]
    assert json_of(get, "board")["rows"][0]["gate"] == gate
    assert json_of(get, NO_REPORT_TAB)["gate"] == gate
    page = Html(get("slices", "eve").text)
    assert page.text.count(gate) == 3  # the first sentence, the picture and the table
    for form in page.forms:
        if form.get("kind") == "acknowledged":
            assert post("slices", **form).status_code == 303
    rows = json_of(get, "slices")["rows"]
    assert [row["acknowledgement"]["author"] for row in rows] == ["eve", "eve"]
    assert "taken by eve" in Html(get(f"{HERE}&date={run_key.date}").text).text


def test_a_gate_that_never_had_a_report_has_the_name_that_it_stored(get: Get, scene: Scene) -> None:
    key = RunKey("shop orders", DAY, f"scheduled__{DAY}")
    scene.task(pushed=failure_summary(RuntimeError("no"), "shop orders", key))
    (row,) = json_of(get, "board")["rows"]
    assert row["gate"] == "shop orders"


def test_a_date_that_a_later_run_judged_has_a_report(get: Get, scene: Scene) -> None:
    left_no_report(scene, 1)
    left_no_report(scene, 2, state="success")  # marked by a person
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


@pytest.mark.few(2)
@pytest.mark.parametrize("knows_name", ["its summary", "other runs"])
@pytest.mark.parametrize(
    ("gate", "partial", "is_listed"),
    [
        ("shop orders", None, False),
        ("shop orders/nulls", None, False),
        ("shop", None, True),
        ("shop orders", PartialRun(Selection(only=("a",)), 1, 2), True),
    ],
)
def test_a_gate_with_a_name_of_its_own_is_judged_under_that_name(
    get: Get, scene: Scene, knows_name: str, gate: str, partial: PartialRun | None, is_listed: bool
) -> None:
    yesterday = DAY - timedelta(days=1)
    key = RunKey("shop orders", DAY, f"scheduled__{DAY}")
    scene.ran(report_of(1, outcome=Outcome.PASSED, verdicts=(NULLS,), run_key=key))
    missing = replace(key, date=yesterday, scheduler_run=f"scheduled__{yesterday}")
    error = RuntimeError("the Spark job was killed by signal 9")
    is_pushed = knows_name == "its summary"
    left_no_report(
        scene, 1, pushed=failure_summary(error, missing.gate, missing) if is_pushed else None
    )
    assert len(json_of(get, "slices")["rows"]) == 1
    by_hand = replace(missing, gate=gate, scheduler_run="manual__1")
    later = report_of(3, on=yesterday, outcome=Outcome.PASSED, verdicts=(NULLS,), run_key=by_hand)
    scene.store(replace(later, partial=partial))
    assert len(json_of(get, "slices")["rows"]) == is_listed


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


@pytest.mark.more
def test_an_ended_incident_says_where_its_rows_are(get: Get, scene: Scene) -> None:
    scene.ran(report_of(1, datasets=HELD))
    (held,) = json_of(get, HERE)["judged"].values()
    assert held == [{"dataset": "orders", "target": SILVER, "row_count": 258, "promoted": None}]
    assert "rows held back 258 rows not in s3://lake/silver" in Html(get(HERE).text).text
    again = NOON + timedelta(hours=2)
    passed = report_of(2, outcome=Outcome.PASSED, verdicts=(NULLS,), datasets=THERE)
    second = Attempt(2, "again")
    scene.store(replace(passed, started_at=again, finished_at=again, attempt=second))
    page = json_of(get, f"{HERE}&date={DAY}")
    ((there,),) = page["judged"].values()
    assert page["group"][0]["status"] == "repaired"
    assert there["promoted"] == {
        "row_count": 244,
        "version": 14,
        "attempt": 2,
        "at": "2024-03-20T14:00:00Z",
        "left_out": 0,
    }
    text = Html(get(f"{HERE}&date={DAY}").text).text
    assert "not in" not in text
    assert "244 rows are in s3://lake/silver , version 14, by attempt 2 , repaired at" in text
    assert "promoted 244 rows, version 14 s3://lake/silver" in text
    assert "attempt 2; 244 rows promoted as version 14 of s3://lake/silver" in text


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


@pytest.mark.more
def test_setups_and_teardowns_are_cleared_with_the_gate(get: Get, post: Get, scene: Scene) -> None:
    scene.ran(report_of())
    with_setups(scene)
    (clearing,) = json_of(get, HERE)["clearings"]
    assert clearing["tasks"] == ["up", "gate", "last", "down"]
    html = get(HERE, "eve").text
    assert "1 date: 2024-03-20 runs: up , gate , last , down" in Html(html).text
    assert post("incident", **form_of(html, "clear")).status_code == 303
    states = {name: state_of(scene, name) for name in (*clearing["tasks"], "other")}
    assert states == {**dict.fromkeys(clearing["tasks"]), "other": "success"}


@pytest.mark.few(1)
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
    from dqx_airflow.ui import airflow_clearing

    if airflow_clearing.resolve_run_on_latest_version is None and not wanted:
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
    form = form_of(get(HERE, "eve").text, "clear")
    refused = post("incident", **form, version="newest")
    assert refused.status_code == 400
    assert state_of(scene) == "failed"


@pytest.mark.more
def test_the_board_has_the_reports_whose_xcoms_are_elsewhere(get: Get, scene: Scene) -> None:
    scene.ran(report_of())
    whole = json_of(get, "board")["rows"]
    elsewhere(scene)
    from dqx_airflow.ui import airflow

    airflow._kept.clear()
    airflow._kept_runs.clear()
    assert json_of(get, "board")["rows"] == whole
    assert json_of(get, "slices")["counts"] == {"blocked": 1}


def elsewhere(scene: Scene) -> None:
    """The XComs are in object storage: Airflow's table has their places."""
    from airflow.models.xcom import XComModel
    from sqlalchemy import update

    place = "file:///xcoms/lake/gate/dqx_report"
    scene.session.execute(update(XComModel).values(value=json.dumps(place)))
    scene.session.commit()


@pytest.mark.more
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
    text = Html(get(tab).text).text
    assert "marked as success by eve" in text
    assert "ticket 99" in text
    text = Html(get(HERE).text).text
    assert "marked eve set the task to success in Airflow: ticket 99" in text


def test_a_closed_incident_says_that_its_rows_stay_out(get: Get, post: Get, scene: Scene) -> None:
    scene.ran(report_of(1, datasets=HELD))
    form = form_of(get(HERE, "eve").text, "closed")
    assert post("incident", **form, reason="the shop was shut").status_code == 303
    text = Html(get(f"{HERE}&date={DAY}").text).text
    assert "258 rows stay out of s3://lake/silver , closed by eve at" in text
    assert "“the shop was shut”" in text
    assert "promoted no rows not in s3://lake/silver" in text
    assert "What you can do" not in text


def test_the_dates_of_gates_are_a_picture_of_signs(get: Get, scene: Scene) -> None:
    scene.days("ppbpb")
    left_no_report(scene, 5)
    page = Html(get("slices").text)
    assert "2024-03- 16 2024-03- 17" in page.text
    picture = page.text.partition("2024-03- 20 lake.")[2]
    assert "· ✓ passed ✓ passed ✕ ✓ passed ✕" in picture
    signs = {link["aria-label"] for link in page.all("a") if link.get("aria-label")}
    assert {"lake.gate 2024-03-18: blocked", "lake.gate 2024-03-15: no report"} <= signs


def test_an_open_date_says_in_the_words_of_the_data_what_is_wrong(get: Get, scene: Scene) -> None:
    # An assertion of another check has the same name, and matters less.
    other = replace(BAD_NULLS, check="other", severity=Severity.P2, expression="null_count(z)")
    scene.ran(report_of(verdicts=(other, BAD_NULLS, NOT_EMPTY), outcome=Outcome.BLOCKED))
    why = "no table at s3://lake/orders"
    broken = replace(BAD_NULLS, status=Status.ERROR, value=None, scaled_value=None, reason=why)
    after = DAY + timedelta(days=1)
    scene.ran(report_of(2, on=after, verdicts=(broken,), outcome=Outcome.BROKEN), number=2)
    text = Html(get("slices").text).text
    assert "✕ blocked 50% of orders have no id orders.id.null_share · P0 · 2 of 3 failed" in text
    assert f"? broken {why} orders.id.null_share · P0 · 0 of 1 failed, 1 in error" in text
    sentences = [row["sentence"] for row in json_of(get, "slices")["rows"]]
    assert sentences == ["50% of orders have no id", why]


@pytest.mark.more
def test_an_open_date_without_verdicts_in_the_store_has_the_name_of_the_assertion(
    get: Get, scene: Scene
) -> None:
    scene.ran(report_of())
    DeltaTable(f"{scene.root}/results").delete()
    assert "✕ blocked orders.id.null_share P0 · 1 of 2 failed" in Html(get("slices").text).text
    assert json_of(get, "slices")["rows"][0]["sentence"] == ""


def test_a_list_of_open_dates_shows_what_each_lacks_and_clears_only_what_is_checked(
    get: Get, post: Get, scene: Scene
) -> None:
    scene.days("bpb", datasets=HELD)
    html = get("slices", "eve").text
    page = Html(html)
    assert "2 dates are open : 2 blocked. 516 rows held back." in page.text
    assert "lake.gate → s3://lake/silver · owner ada · 2 dates" in page.text
    words = "50% of orders have no id orders.id.null_share · P0 · 1 of 2 failed 258 rows"
    assert f"2024-03-18 ✕ blocked {words}" in page.text
    boxes = {box["aria-label"]: box for box in page.all("input", name="pick", type="checkbox")}
    assert [name for name, box in boxes.items() if "checked" not in box] == []
    one = boxes["lake.gate 2024-03-18"]["value"] or ""
    for user in ("ada", "ben", None):
        assert post("slices", user, **page.forms[0], pick=one).status_code in (401, 403, 404)
    assert post("slices", **page.forms[0], pick="0123456789abcdef").status_code == 404
    assert post("slices", **page.forms[0], pick=one).status_code == 303
    from airflow.models.taskinstance import TaskInstance
    from sqlalchemy import select

    scene.session.expire_all()
    states = dict(
        scene.session.execute(
            select(TaskInstance.run_id, TaskInstance.state).where(TaskInstance.task_id == "gate")
        ).all()
    )
    assert states[f"scheduled__{DAY}"] == "failed"
    assert states["scheduled__2024-03-18"] is None


@pytest.mark.more
def test_a_date_of_the_list_is_taken_there_and_all_pages_show_by_whom(
    get: Get, post: Get, scene: Scene
) -> None:
    scene.days("bpb", datasets=HELD)
    html = get("slices", "eve").text
    page = Html(html)
    takes = [form for form in page.forms if form.get("kind") == "acknowledged"]
    buttons = page.all("button", type="submit")
    names = {form["id"] for form in page.all("form") if form.get("id")}
    assert {button["form"] for button in buttons if "form" in button} == names
    boxes = page.all("input", name="pick", type="checkbox")
    assert [form["pick"] for form in takes] == [box["value"] for box in boxes]
    assert not Html(get("slices").text).forms
    for user in ("ada", "ben", None):
        assert post("slices", user, **takes[1]).status_code in (401, 403, 404)
    taken = post("slices", **takes[1])
    assert (taken.status_code, taken.headers["location"]) == (303, "slices")
    text = Html(get("slices").text).text
    assert text.count("no one yet") == 1
    assert "eve" in text
    assert "taken by eve , just now ; 1 date by no one" in Html(get("board").text).text
    assert "taken by eve" in Html(get(HERE, "eve").text).text
    assert [
        one["acknowledgement"] and one["acknowledgement"]["author"]
        for one in json_of(get, "slices")["rows"]
    ] == [None, "eve"]


def test_what_waits_for_an_answer_is_not_selected(get: Get, scene: Scene) -> None:
    waiting(scene)
    (box,) = Html(get("slices", "eve").text).all("input", name="pick", type="checkbox")
    assert "checked" not in box


def test_what_waits_has_its_deadline_on_three_pages(get: Get, scene: Scene) -> None:
    scene.ran(report_of())
    scene.chain("gate", "silver")
    tab = f"gate?dag_id=lake&run_id=scheduled__{DAY}&task_id=gate&map_index=-1"
    for page in (HERE, tab):
        assert "waits silver 1 task downstream · no deadline" in Html(get(page).text).text
    assert "due" not in Html(get("board").text).text
    scene.due(UNTIL)
    for page in (HERE, tab, "board"):
        assert "due 03-20 20:00 UTC" in Html(get(page).text).text
    assert "The next deadline is 03-20 20:00 UTC" in Html(get("board").text).text
    assert json_of(get, "board")["deadlines"] == {"lake.gate": "2024-03-20T20:00:00Z"}


@pytest.mark.more
def test_what_has_a_deadline_comes_first(get: Get, scene: Scene) -> None:
    for number, dag_id in enumerate(("first", "second", "third"), start=1):
        scene.ran(report_of(number, dag_id=dag_id), dag_id=dag_id, number=number)
    scene.task("fourth", number=4)  # without a report
    scene.due(UNTIL + timedelta(hours=1), "second")
    scene.due(UNTIL, "fourth")
    rows = json_of(get, "board")["rows"]
    assert [row["dag_id"] for row in rows] == ["fourth", "second", "first", "third"]


def test_the_bar_has_the_numbers_that_the_user_may_see(
    get: Get, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dqx_airflow.ui import board_page

    monkeypatch.setattr(board_page, "_counted", {})
    scene.days("bpb")
    assert get("counts").json() == {"board": 1, "slices": 2, "alerts": 2}
    assert get("counts", "ben").json() == {"board": 0, "slices": 0, "alerts": 0}
    assert get("counts", None).status_code == 401
    page = Html(get("datasets").text)
    places = [place["data-count"] for place in page.all("span") if "data-count" in place]
    assert places == ["board", "slices", "alerts"]


@pytest.mark.parametrize("place", ["board", "slices"])
def test_the_bar_has_the_numbers_of_the_page_below_it(
    get: Get, scene: Scene, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    from dqx_airflow.ui import board_page

    monkeypatch.setattr(board_page, "_counted", {})
    scene.days("bpb")
    assert get("counts").json()["slices"] == 2
    note = IncidentNote("lake.gate", DAY, "closed", "op", "not needed")
    write_notes(StoredResults(str(scene.root)), [note])
    get(place)
    assert get("counts").json()["slices"] == 1
