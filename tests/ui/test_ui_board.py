"""The board and the pages of datasets: the states of gates, since when, and where."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from dqx_airflow.values import DatasetSnapshot, Outcome, Severity, Status
from tests.ui.ui_scene import BAD_NULLS, DAY, NOT_EMPTY, NULLS, Get, Html, Scene, report_of

pytestmark = pytest.mark.airflow


def runs_of(scene: Scene, outcomes: str, dag_id: str = "lake", **changes: object) -> None:
    """The last runs of a gate, oldest first: p(assed), b(locked), f(ailed without a report),
    r(unning), n(ot run)."""
    for place, letter in enumerate(reversed(outcomes)):
        on, number = DAY - timedelta(days=place), place + 1 + sum(dag_id.encode()) * 100
        if letter in "pb":
            verdicts = (NULLS,) if letter == "p" else (BAD_NULLS, NOT_EMPTY)
            outcome = Outcome.PASSED if letter == "p" else Outcome.BLOCKED
            report = report_of(
                number, on=on, dag_id=dag_id, verdicts=verdicts, outcome=outcome, **changes
            )
            scene.ran(report, dag_id=dag_id, number=number)
        else:
            state = {"f": "failed", "r": "running", "n": "upstream_failed"}[letter]
            scene.task(dag_id, on=on, state=state, number=number)


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("outcomes", "state", "streak"),
    [
        ("p", "passed", "passing for 1 run"),
        ("ppp", "passed", "passing for 3 runs"),
        ("pbbb", "blocked", "failing for 3 runs"),
        ("ppb", "blocked", "failing since this run"),
        ("bbp", "passed", "passing since this run"),
        ("pbf", "no report", "failing for 2 runs"),
        ("pbr", "blocked", "failing since this run"),
        ("bbnn", "blocked", "failing for 2 runs"),
        ("b" * 20, "blocked", "failing for 14+ runs"),
    ],
)
def test_the_latest_outcome_is_shown_with_its_streak(
    get: Get, scene: Scene, outcomes: str, state: str, streak: str
) -> None:
    scene.dag()
    runs_of(scene, outcomes)
    page = Html(get("board").text)
    assert f"1 {state} " in page.text
    assert f" {streak}" in page.text


def test_failing_gates_are_on_top_with_their_worst_assertion(get: Get, scene: Scene) -> None:
    for dag_id, outcomes in (("a_good", "pp"), ("b_bad", "pb"), ("c_late", "pf")):
        scene.dag(dag_id)
        runs_of(scene, outcomes, dag_id)
    text = Html(get("board").text).text
    assert text.index("b_bad.gate") < text.index("c_late.gate") < text.index("a_good.gate")
    assert "2 gates need you." in text
    assert "✕ blocked 1 of 2 failed b_bad.gate data of 2024-03-20 · orders" in text
    assert "50% of orders have no id orders.id.null_share · limit < MAX_NULLS (10%) · P0" in text
    assert "the task ended before it checked the data task failed: see its log" in text


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("query", "there"),
    [
        ({}, {"lake", "shop"}),
        ({"dag_id": "shop"}, {"shop"}),
        ({"dataset": "s3://lake/baskets"}, {"shop"}),
        ({"outcome": "passed"}, {"shop"}),
        ({"severity": "P0"}, {"lake"}),
        ({"severity": "P3"}, set()),
        ({"owner": "ben"}, {"shop"}),
        ({"owner": "nobody", "dag_id": ""}, set()),
    ],
)
def test_gates_can_be_filtered(
    get: Get, scene: Scene, query: dict[str, str], there: set[str]
) -> None:
    scene.dag("lake", owners="ada")
    scene.dag("shop", owners="ada, ben")
    runs_of(scene, "b", "lake")
    runs_of(scene, "p", "shop", dataset="baskets")
    page = Html(get("board", **query).text)
    assert {dag for dag in ("lake", "shop") if f"{dag}.gate" in page.text} == there


@pytest.mark.slow
def test_many_gates_are_on_several_pages_that_keep_the_filters(get: Get, scene: Scene) -> None:
    for number in range(205):
        scene.dag(f"lake_{number:03}", owners="ada")
        scene.task(f"lake_{number:03}", pushed={"outcome": "passed"}, number=number + 1)
    first = Html(get("board", owner="ada").text)
    assert "page 1 of 3, 205 gates" in first.text
    assert "Previous" not in first.text
    second = Html(get(first.links["Next"]).text)
    assert "lake_100.gate" in second.text
    assert "lake_099.gate" not in second.text
    third = Html(get(second.links["Next"]).text)
    assert "page 3 of 3, 205 gates" in third.text
    assert "lake_204.gate" in third.text
    assert "Next" not in third.text
    assert third.all("option", value="ada")


@pytest.mark.parametrize("page", ["0", "-1", "99", "x", "1e3"])
def test_a_page_number_out_of_range_is_clamped(get: Get, scene: Scene, page: str) -> None:
    runs_of(scene, "p")
    assert "lake.gate" in Html(get(f"board?page={page}").text).text


def test_the_rows_lead_to_the_reports_and_to_the_datasets(get: Get, scene: Scene) -> None:
    runs_of(scene, "pb")
    page = Html(get("board").text)
    assert "✕ blocked lake.gate" in Html(get(page.links["lake.gate"]).text).text
    assert "Dataset orders" in Html(get(page.links["orders"]).text).text
    assert "last runs, oldest first: 1 passed, then 1 blocked" in page.text


def test_a_board_without_trouble_says_so_in_its_first_line(get: Get, scene: Scene) -> None:
    runs_of(scene, "pp")
    text = Html(get("board").text).text
    assert "Gates 1 Nothing needs you." in text
    assert "1 passed all have run since 03-20 12:00 UTC" in text


def test_the_board_says_how_much_is_held_back_and_who_has_it(
    get: Get, post: Get, scene: Scene
) -> None:
    orders = DatasetSnapshot(
        "orders", "s3://lake/orders", "delta", 7, 5000, promote_to="s3://lake/silver"
    )
    runs_of(scene, "pbb", datasets=(orders,))
    page = get("board", "eve").text
    assert "P0 · 10,000 rows not in s3://lake/silver" in Html(page).text
    assert "since 2024-03-19 2 open dates failing for 2 runs" in Html(page).text
    assert "ada no one has it yet" in Html(page).text
    assert not Html(get("board").text).forms  # ada only looks
    (form,) = Html(page).forms
    assert post("slices", "ada", **form).status_code == 403
    assert post("slices", **form).status_code == 303
    text = Html(get("board", "eve").text).text
    assert "ada taken by eve" in text
    assert "I take it" not in text


def test_what_is_decided_stands_apart(get: Get, scene: Scene) -> None:
    runs_of(scene, "b", "a_bad")
    mild = replace(BAD_NULLS, severity=Severity.P3)
    report = report_of(dag_id="b_mild", verdicts=(mild,), outcome=Outcome.WARNED)
    scene.ran(report, dag_id="b_mild", number=7)
    text = Html(get("board").text).text
    order = [text.index(words) for words in ("Need you", "a_bad.gate", "Decided or", "b_mild.gate")]
    assert order == sorted(order)


def test_an_empty_board_explains_how_gates_appear(get: Get, scene: Scene) -> None:
    assert "A gate appears here with its first run." in get("board").text


def test_the_board_needs_no_store(get: Get, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    runs_of(scene, "pb")
    monkeypatch.delenv("AIRFLOW__DQX__RESULTS_ROOT")
    assert "lake.gate" in get("board").text


def test_an_error_is_shown_with_its_reason(get: Get, scene: Scene) -> None:
    broken = replace(
        NULLS, status=Status.ERROR, scaled_value=None, reason="no column idd", severity=Severity.P1
    )
    scene.ran(report_of(verdicts=(broken,), outcome=Outcome.BROKEN))
    text = Html(get("board").text).text
    assert "? broken" in text
    assert "? broken 0 of 1 failed, 1 in error lake.gate" in text
    assert "no column idd orders.id.null_share" in text


def test_a_mapped_gate_shows_its_worst_instance(get: Get, scene: Scene) -> None:
    scene.ran(report_of(1, verdicts=(NULLS,), outcome=Outcome.PASSED), map_index=0)
    scene.ran(report_of(2), map_index=1)
    text = Html(get("board").text).text
    assert "1 blocked" in text
    assert "worst of 2 mapped" in text


def schedule(scene: Scene, due: datetime | None, *, paused: bool = False) -> None:
    from airflow.models.dag import DagModel

    dag = scene.session.get(DagModel, "lake")
    dag.next_dagrun_create_after, dag.is_paused, dag.is_stale = due, paused, False
    scene.session.commit()


def test_the_board_shows_when_each_gate_last_ran(get: Get, scene: Scene) -> None:
    ended = datetime.now(timezone.utc) - timedelta(hours=2, minutes=1)
    scene.ran(report_of(started_at=ended, finished_at=ended))
    page = Html(get("board").text)
    assert "failing for 1 run 2 hours ago ada" in page.text


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("hours", "paused", "expected"),
    [
        (-2, False, "late a run was due 2 hours ago"),
        (2, False, None),
        (-0.1, False, None),
        (-2, True, "the DAG is paused"),
        (None, False, None),
    ],
)
def test_a_gate_that_should_have_run_is_late(
    get: Get, scene: Scene, hours: float | None, paused: bool, expected: str | None
) -> None:
    runs_of(scene, "pp")
    now = datetime.now(timezone.utc)
    schedule(scene, None if hours is None else now + timedelta(hours=hours), paused=paused)
    page = Html(get("board").text)
    is_late = bool(expected and expected.startswith("late"))
    assert ("1 gate needs you." in page.text) == is_late
    assert expected is None or expected in page.text
    assert ("late only" in page.text) == ("1 late" in page.links) == is_late
    assert ("lake.gate" in get("board", late="1").text) == is_late


def test_a_gate_that_the_last_runs_did_not_reach_is_late(get: Get, scene: Scene) -> None:
    from airflow.models.dagrun import DagRun

    runs_of(scene, "pnn")
    assert "late only" not in get("board").text, "they are still running"
    scene.session.execute(DagRun.__table__.update().values(state="failed"))
    scene.session.commit()
    assert "late not reached in the last 2 runs of the DAG" in Html(get("board").text).text


def test_a_gate_that_never_left_a_report_is_on_the_board(get: Get, scene: Scene) -> None:
    scene.task(state="failed")
    scene.task(task_id="load", operator="BashOperator", state="failed", number=2)
    text = Html(get("board").text).text
    assert "no report" in text
    assert "lake.gate" in text
    assert "lake.load" not in text


def test_a_replaced_summary_is_read_again(get: Get, scene: Scene) -> None:
    from airflow.models.xcom import XComModel
    from sqlalchemy import select, update

    runs_of(scene, "p")
    assert "passing for 1 run" in Html(get("board").text).text
    left = scene.session.scalar(select(XComModel.value).where(XComModel.dag_id == "lake"))
    scene.session.execute(
        update(XComModel)
        .where(XComModel.dag_id == "lake")
        .values(
            value={**left, "outcome": "blocked"},
            timestamp=datetime.now(timezone.utc) + timedelta(seconds=1),
        )
    )
    scene.session.commit()
    assert "failing for 1 run" in Html(get("board").text).text


def test_a_state_that_changes_is_shown_although_rows_are_kept(get: Get, scene: Scene) -> None:
    from airflow.models.taskinstance import TaskInstance
    from sqlalchemy import update

    runs_of(scene, "pn")
    states = []
    for state in ("running", "failed", "queued", "failed"):
        scene.session.execute(
            update(TaskInstance)
            .where(TaskInstance.run_id == f"scheduled__{DAY}")
            .values(state=state)
        )
        scene.session.commit()
        (row,) = get("api/v1/board").json()["rows"]
        states.append(row["cells"][-1]["state"])
        assert len(row["cells"]) == 2
    assert states == ["running", "no report", "running", "no report"]
