"""The page of an incident: its content, comments, and permissions."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest

from dqx_airflow.results.decisions import waivers_of
from dqx_airflow.results.incidents import IncidentNote, notes_from, write_notes
from dqx_airflow.results.query import StoredResults
from dqx_airflow.values import (
    Attempt,
    DatasetSnapshot,
    EnforcedContract,
    FailingRow,
    GateReport,
    Outcome,
    Responsible,
    RunKey,
    Severity,
    Status,
)
from dqx_airflow.values.report import Acceptance, Arrival
from tests.ui.ui_scene import BAD_NULLS, DAY, NOON, NOT_EMPTY, NULLS, Get, Html, Scene, report_of

pytestmark = pytest.mark.airflow

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


def days_of(scene: Scene, outcomes: str, rows: str = "", **changes: Any) -> None:
    """The runs of a gate on the last days, oldest first: p(assed) or b(locked).

    :param rows: the dataset that the gate would promote.
    """
    target = "s3://lake/silver" if rows else None
    for place, letter in enumerate(reversed(outcomes)):
        on, is_bad = DAY - timedelta(days=place), letter == "b"
        version = 100 - place
        report = report_of(
            place + 1,
            on=on,
            verdicts=(BAD_NULLS if is_bad else NULLS, NOT_EMPTY),
            outcome=Outcome.BLOCKED if is_bad else Outcome.PASSED,
            datasets=(
                DatasetSnapshot(
                    "orders", "s3://lake/orders", "delta", version, 5000, promote_to=target
                ),
            ),
            contract=CONTRACT,
            **changes,
        )
        scene.ran(report, number=place + 1)


def form_of(page: str, kind: str) -> dict[str, str]:
    """The hidden fields of the form for one action."""
    (form,) = (form for form in Html(page).forms if form.get("kind") == kind)
    return form


@pytest.mark.more
def test_neighbouring_open_slices_are_shown_with_all_dates_and_failures(
    get: Get, scene: Scene
) -> None:
    days_of(scene, "pbpbb", rows="orders")
    late = replace(LATE, status=Status.FAILED, value=0, scaled_value=0)
    scene.store(
        report_of(90, on=DAY - timedelta(days=1), verdicts=(late, BAD_NULLS), started_at=NOON)
    )
    page = Html(get(HERE).text)
    assert "✕ blocked lake.gate , 2 dates data of 2024-03-19 to 2024-03-20" in page.text
    assert "since data of 2024-03-19 found 03-19 12:00 UTC" in page.text
    assert "rows held back 10,000 rows not in s3://lake/silver" in page.text
    assert "2024-03-19 ✕ blocked ✕ 50% ✕ 0 rows 5,000 rows 03-19 12:00 UTC" in page.text
    assert "2024-03-20 ✕ blocked ✕ 50% not checked 5,000 rows 03-20 12:00 UTC" in page.text
    assert "50% limit < MAX_NULLS (10%) 2024-03-20" in page.text
    assert "50% limit < MAX_NULLS (10%) 2024-03-19" in page.text
    assert "0 rows limit > 0 2024-03-19" in page.text
    assert (
        "First bad and last good content orders: first bad version 99, 5,000 rows of 2024-03-19, "
        "last good version 98, 5,000 rows of 2024-03-18; s3://lake/orders"
    ) in page.text
    earlier = Html(get(f"{HERE}&date=2024-03-17").text)
    assert "lake.gate data of 2024-03-17" in earlier.text
    about, _, rest = earlier.text.partition("Where the failing rows are")
    assert "2024-03-20" not in about  # the rows of the sample have it
    assert "since 2024-03-16" in rest


def test_of_several_suites_the_blocking_one_is_shown(get: Get, scene: Scene) -> None:
    first = report_of(verdicts=(NULLS,), outcome=Outcome.PASSED)
    key = replace(first.run_key, gate="lake.gate/Orders")
    first = scene.ran(replace(first, run_key=key, suite="Orders"))
    strict = report_of(2, run_key=replace(key, gate="lake.gate/Strict"), suite="Strict")
    scene.store(replace(strict, attempt=first.attempt))
    page = Html(get(HERE).text)
    assert "lake.gate/Strict" in page.text
    assert "orders.id.null_share" in page.text


@pytest.mark.more
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
    assert "lake.gate , 2 dates data of 2024-03-19 to 2024-03-20" in page.text
    measured = "null_count(id) / num_rows() 50% limit < MAX_NULLS (10%)"
    assert f"Orders.id lake.gate/Orders {measured} 2024-03-19" in page.text
    assert f"Strict.id lake.gate/Strict {measured} 2024-03-20" in page.text
    form = form_of(get(HERE, "eve").text, "comment")
    post("incident", **form, reason="both suites")
    assert "both suites" in get(HERE).text


@pytest.mark.more
def test_an_incident_shows_its_contacts(get: Get, scene: Scene) -> None:
    scene.dag(owners="carla")
    days_of(scene, "pb")
    text = Html(get(HERE).text).text
    assert "owner Sales data #sales · runbook · contract orders 2.3.0" in text
    scene.ran(report_of(9, task_id="plain"), task_id="plain", number=9)
    text = Html(get("incident?dag_id=lake&task_id=plain").text).text
    assert "owner carla no contract: no channel, no runbook" in text


def test_an_incident_lists_waiting_tasks_and_assets(get: Get, scene: Scene) -> None:
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
    assert "waits silver , gold , shop by asset revenue" in page.text
    assert page.links["silver"] == "../dags/lake/runs/scheduled__2024-03-20/tasks/silver"


def repaired(scene: Scene, number: int, on: date, **changes: Any) -> None:
    """A later attempt that passed, of the run of a day, as after the gate was cleared."""
    report = report_of(number, on=on, verdicts=(NULLS,), outcome=Outcome.PASSED, **changes)
    again = timedelta(days=1, hours=2)
    scene.store(
        replace(
            report,
            started_at=report.started_at + again,
            finished_at=report.finished_at + again,
            attempt=Attempt(2, f"again {number}"),
        )
    )


@pytest.mark.more
def test_a_repaired_incident_stays_with_its_times_and_its_link(get: Get, scene: Scene) -> None:
    days_of(scene, "bpbbb")
    gone = "2024-03-18"
    at = NOON - timedelta(days=1)
    take = IncidentNote("lake.gate", date(2024, 3, 18), "acknowledged", "eve", "I am on it", at=at)
    write_notes(StoredResults(str(scene.root)), [take])
    repaired(scene, 50, date(2024, 3, 18))
    page = Html(get(f"{HERE}&date={gone}").text)
    assert "✓ repaired lake.gate data of 2024-03-18" in page.text
    assert "03-19 14:00 UTC ✓ repaired data of 2024-03-18, attempt 2" in page.text
    assert "eve takes it: I am on it" in page.text
    assert "What you can do" not in page.text
    assert "data of 2024-03-19 to 2024-03-20" in Html(get(HERE).text).text
    earlier = Html(get(page.links["2024-03-16"]).text).text
    # the good days after it repair nothing
    assert "✕ blocked lake.gate data of 2024-03-16" in earlier


def test_the_link_stays_when_airflow_has_forgotten_the_runs(get: Get, scene: Scene) -> None:
    scene.dag()
    scene.store(report_of())
    page = Html(get(f"{HERE}&date={DAY}", "eve").text)
    assert "✕ blocked lake.gate" in page.text
    assert "Airflow no longer knows these runs: trigger the DAG for the dates." in page.text


@pytest.mark.more
def test_the_link_stays_when_a_gate_of_several_suites_is_forgotten_or_has_a_new_name(
    get: Get, scene: Scene
) -> None:
    scene.dag()
    report = report_of()
    key = replace(report.run_key, gate="lake.gate/Orders")
    scene.store(replace(report, run_key=key, suite="Orders"))
    assert "✕ blocked lake.gate/Orders" in Html(get(f"{HERE}&date={DAY}").text).text
    earlier = report_of(2, on=DAY - timedelta(days=30))
    scene.ran(replace(earlier, run_key=replace(earlier.run_key, gate="orders")), number=2)
    for days_ago in range(14):  # the last ones by which a gate is known
        later = report_of(9 + days_ago, on=DAY - timedelta(days=days_ago), outcome=Outcome.PASSED)
        key = replace(later.run_key, gate="shop orders")
        scene.ran(replace(later, run_key=key), number=9 + days_ago)
    page = get(f"{HERE}&date={DAY - timedelta(days=30)}").text
    assert "✕ blocked orders" in Html(page).text
    scene.dag("pond", team="blue")
    page = get(f"incident?dag_id=pond&task_id=gate&date={DAY - timedelta(days=30)}", "ben")
    assert page.status_code == 404  # of another DAG


def test_an_editor_closes_an_incident_with_a_reason(get: Get, post: Get, scene: Scene) -> None:
    days_of(scene, "bb")
    form = form_of(get(HERE, "eve").text, "closed")
    assert post("incident", **form, reason="").status_code == 400
    older = [value for value, text in form_choices(get(HERE, "eve").text) if text == "2024-03-19"]
    post("incident", **{**form, "only": older[0]}, reason="the store was shut")
    page = Html(get(f"{HERE}&date=2024-03-19").text)
    assert "closed lake.gate" in page.text
    assert "eve closed it: the store was shut" in page.text
    assert "lake.gate data of 2024-03-20" in Html(get(HERE).text).text


def form_choices(html: str) -> list[tuple[str, str]]:
    """The values and the texts of the choices of slices."""
    return re.findall(r'<option value="([^"]+)">([^<]+)</option>', html)


@pytest.mark.more
def test_a_group_is_detected_with_its_first_verdict_and_taken_by_who_took_one_of_it(
    get: Get, post: Get, scene: Scene
) -> None:
    scene.ran(known(report_of(1)))
    form = form_of(get(HERE, "eve").text, "acknowledged")
    assert post("incident", **form).status_code == 303
    # The day before is judged later, and no one may accept it.
    before, late = DAY - timedelta(days=1), NOON + timedelta(hours=3)
    scene.ran(report_of(2, on=before, started_at=late, finished_at=late), number=2)
    html = get(HERE, "eve").text
    page = Html(html)
    assert "data of 2024-03-19 to 2024-03-20" in page.text
    assert "found 03-20 12:00 UTC" in page.text
    assert "taken by eve" in page.text
    form = form_of(html, "accepted")
    both = post("incident", **form, reason="a holiday")
    assert both.status_code == 409
    assert "the data of 2024-03-19, run 00000000, cannot be accepted" in Html(both.text).text
    chosen = {value for value, text in form_choices(html) if text == str(DAY)}
    one = post("incident", **{**form, "only": chosen.pop()}, reason="a holiday")
    assert one.status_code == 303


def test_a_missing_incident_is_not_found(get: Get, scene: Scene) -> None:
    days_of(scene, "pp")
    assert get(HERE).status_code == 404
    assert get(f"{HERE}&date=1999-01-01").status_code == 404


def test_the_tab_and_the_board_link_to_the_incident(get: Get, tab: Get, scene: Scene) -> None:
    days_of(scene, "pb")
    for page in (Html(tab().text).links["Incident"], Html(get("board").text).links["incident"]):
        assert "✕ blocked" in get(page).text


def notes(scene: Scene) -> list[tuple[str, str, str]]:
    found = notes_from(str(scene.root), ["lake.gate"], date.min, date.max)
    return [(note.kind, note.author, note.text) for note in found]


def test_an_editor_of_the_dag_acknowledges_and_comments(get: Get, post: Get, scene: Scene) -> None:
    days_of(scene, "pb")
    html = get(HERE, "eve").text
    form, comment = form_of(html, "acknowledged"), form_of(html, "comment")
    for user in ("ada", "ben", None):
        refused = post("incident", user, **form)
        assert refused.status_code in (401, 403, 404)
    answer = post("incident", **form)
    assert answer.status_code == 303
    for _ in range(2):  # sent twice, stored once
        post("incident", **comment, reason="the source sent NULLs <b>again</b>")
    assert notes(scene) == [
        ("acknowledged", "eve", ""),
        ("comment", "eve", "the source sent NULLs <b>again</b>"),
    ]
    page = Html(get(answer.headers["location"]).text)
    assert "taken by eve" in page.text
    assert "eve the source sent NULLs <b>again</b>" in page.text
    assert "No one has it yet" not in page.text


@pytest.mark.more
def test_a_note_belongs_to_its_incident_only(get: Get, post: Get, scene: Scene) -> None:
    days_of(scene, "bpb")
    post("incident", **form_of(get(HERE, "eve").text, "comment"), reason="a new one")
    assert "a new one" in get(HERE).text
    assert "a new one" not in get(f"{HERE}&date=2024-03-18").text


def test_only_editors_of_the_dag_write(get: Get, post: Get, scene: Scene) -> None:
    days_of(scene, "pb")
    form = form_of(get(HERE, "eve").text, "comment")
    del form["kind"]
    assert not Html(get(HERE, "ada").text).forms
    comment = {"kind": "comment", "reason": "x"}
    refused = [
        post("incident", "ada", **form, **comment),
        post("incident", "ben", **form, **comment),
        post("incident", None, **form, **comment),
        post("incident", **{**form, "token": "x"}, **comment),
        post("incident", headers={"Origin": "https://evil.example"}, **form, **comment),
        post("incident", headers={}, **form, **comment),
    ]
    assert {answer.status_code for answer in refused} <= {401, 403, 404}
    assert post("incident", **form, kind="delete", reason="x").status_code == 400
    assert post("incident", **form, kind="comment", reason=" ").status_code == 400
    assert post("incident", **form, kind="comment", reason="x" * 2001).status_code == 400
    assert post("incident", **{**form, "note": "x"}, **comment).status_code == 400
    assert notes(scene) == []
    assert get(HERE, "ben").status_code == 403
    assert get(HERE, None).status_code == 401


def states_of(scene: Scene) -> dict[tuple[str, str], str | None]:
    """The states of the task instances, by the date of their run and their task."""
    from airflow.models.taskinstance import TaskInstance
    from sqlalchemy import select

    scene.session.expire_all()
    query = select(TaskInstance.run_id, TaskInstance.task_id, TaskInstance.state)
    return {
        (run_id.removeprefix("scheduled__"), task_id): state and str(state)
        for run_id, task_id, state in scene.session.execute(query)
    }


def waiting_days(scene: Scene) -> None:
    """Three days of which two are blocked, each with a task that waits."""
    days_of(scene, "bpb", rows="orders")
    scene.chain("gate", "silver")
    for place in range(3):
        scene.task(
            task_id="silver",
            on=DAY - timedelta(days=place),
            state="upstream_failed",
            number=20 + place,
            operator="EmptyOperator",
        )


def test_the_open_slices_are_listed_oldest_first_and_cleared_in_order(
    get: Get, post: Get, scene: Scene
) -> None:
    waiting_days(scene)
    board = Html(get("board").text)
    page = Html(get(board.links["2 open dates"], "eve").text)
    listed = page.text.partition("who has it")[2]
    assert listed.index("2024-03-18") < listed.index("2024-03-20")
    assert "→ s3://lake/silver" in page.text
    assert "5,000 rows" in page.text
    assert "2024-03-19" not in listed
    picks = " ".join(box["value"] or "" for box in page.all("input", name="pick", type="checkbox"))
    form = {**page.forms[0], "pick": picks}
    assert post("slices", **form).headers["location"] == "slices"
    states = states_of(scene)
    assert {day for (day, _), state in states.items() if state is None} == {
        "2024-03-18",
        "2024-03-20",
    }
    assert states["2024-03-20", "silver"] is None
    assert states["2024-03-19", "silver"] == "upstream_failed"
    assert post("slices", **form).status_code == 409  # they wait already


@pytest.mark.more
def test_only_who_may_clear_the_tasks_gets_the_buttons(get: Get, post: Get, scene: Scene) -> None:
    waiting_days(scene)
    form = form_of(get(HERE, "eve").text, "clear")
    del form["kind"]
    slices = Html(get("slices", "eve").text)
    picks = " ".join(
        box["value"] or "" for box in slices.all("input", name="pick", type="checkbox")
    )
    all_of_gate = {**slices.forms[0], "pick": picks}
    assert not Html(get("slices").text).forms
    assert "2024-03-18" not in get("slices", "ben").text
    assert "open date" not in get("board", "ben").text
    for user in ("ada", "ben", None):
        assert post("slices", user, **all_of_gate).status_code in (401, 403, 404)
        assert post("incident", user, **form, kind="clear").status_code in (401, 403, 404)
        assert post("incident", user, **form, kind="closed", reason="x").status_code in (
            401,
            403,
            404,
        )
    assert (
        post("slices", headers={"Origin": "https://evil.example"}, **all_of_gate).status_code == 403
    )
    assert None not in states_of(scene).values()
    assert notes(scene) == []
    assert post("incident", **form, kind="clear").status_code == 303
    assert states_of(scene)["2024-03-20", "gate"] is None
    assert states_of(scene)["2024-03-18", "gate"] == "failed"  # not of this incident


def test_slices_of_one_date_have_their_own_incidents(get: Get, scene: Scene) -> None:
    scene.dag()
    for number, store in enumerate(("zurich", "basel"), start=1):
        key = RunKey("lake.gate", DAY, f"manual__{store}")
        text = f'{{"rows": {{"store": "{store}"}}}}'
        scene.store(report_of(number, run_key=key, slice=text))
    page = Html(get(f"{HERE}&date={DAY}").text)
    assert "lake.gate , 2 dates" in page.text
    key = RunKey("lake.gate", DAY, "manual__basel")
    scene.store(
        report_of(
            3,
            run_key=key,
            slice='{"rows": {"store": "basel"}}',
            outcome=Outcome.PASSED,
            verdicts=(NULLS,),
            started_at=NOON + timedelta(hours=1),
        )
    )
    page = Html(get(f"{HERE}&date={DAY}").text)
    assert "store = zurich" in page.text
    assert "2 dates" not in page.text


def known(report: GateReport) -> GateReport:
    """The report of a Delta table whose rows are identified."""
    datasets = tuple(replace(dataset, fingerprint="f") for dataset in report.datasets)
    mild = tuple(replace(verdict, severity=Severity.P1) for verdict in report.verdicts)
    return replace(report, datasets=datasets, verdicts=mild)


def audited(scene: Scene) -> list[tuple[str, str]]:
    from airflow.models.log import Log
    from sqlalchemy import select

    rows = scene.session.execute(select(Log.event, Log.owner).where(Log.event.like("dqx %")))
    return [(event, owner) for event, owner in rows]


def test_the_data_of_a_blocked_gate_is_accepted_on_its_tab(
    tab: Get, get: Get, post: Get, scene: Scene
) -> None:
    report = scene.ran(known(report_of()))
    form = {**form_of(tab("eve").text, "accepted"), "reason": "the shop was shut"}
    assert not Html(tab().text).forms
    for user in ("ada", "ben", None):
        assert post("incident", user, **form).status_code in (401, 403, 404)
    assert post("incident", headers={"Origin": "https://evil.example"}, **form).status_code == 403
    for blank in (" ", "\u200b"):
        assert post("incident", **{**form, "reason": blank}).status_code == 400
    assert (notes(scene), audited(scene)) == ([], [])
    assert states_of(scene)[str(DAY), "gate"] == "failed"
    assert post("incident", **form).status_code == 303
    assert notes(scene) == [("accepted", "eve", "the shop was shut")]
    assert ("dqx accept", "eve") in audited(scene)
    assert states_of(scene)[str(DAY), "gate"] is None  # it runs again, and promotes
    (note,) = notes_from(str(scene.root), ["lake.gate"], date.min, date.max)
    assert note.run_id == report.run_id
    assert "the shop was shut" in get(HERE).text


@pytest.mark.more
def test_the_incident_accepts_one_of_its_slices(get: Get, post: Get, scene: Scene) -> None:
    scene.dag()
    for number, on in enumerate((DAY, DAY - timedelta(days=1)), start=1):
        scene.ran(known(report_of(number, on=on)), number=number)
    page = get(HERE, "eve").text
    assert "Accept this data" in page
    form = form_of(page, "accepted")
    older = [value for value, text in form_choices(page) if text == "2024-03-19"]
    post("incident", **{**form, "only": older[0]}, reason="a holiday")
    states = states_of(scene)
    assert (states["2024-03-19", "gate"], states["2024-03-20", "gate"]) == (None, "failed")


def test_only_what_the_page_has_shown_is_accepted(get: Get, post: Get, scene: Scene) -> None:
    scene.ran(known(report_of()))
    html = get(HERE, "eve").text
    form = form_of(html, "accepted")
    later = known(report_of(2, started_at=NOON + timedelta(hours=1)))
    scene.store(replace(later, attempt=Attempt(2, "again"), finished_at=NOON + timedelta(hours=2)))
    refused = post("incident", **form, reason="as shown")
    assert refused.status_code == 409
    assert "has been checked again: reload the page" in Html(refused.text).text
    assert notes(scene) == []
    assert post("incident", **form_of(html, "comment"), reason="x").status_code == 303


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"verdicts": (BAD_NULLS,)}, "it takes accept_required=True on the gate"),
        ({"outcome": Outcome.BROKEN}, "only the data of a blocked gate can be accepted"),
        ({"datasets": (DatasetSnapshot("orders", "q", "query"),)}, "cannot be identified"),
    ],
)
def test_what_no_one_can_accept_says_why(
    tab: Get, get: Get, post: Get, scene: Scene, changes: dict[str, Any], message: str
) -> None:
    scene.ran(replace(known(report_of()), **changes))
    for page in (tab("eve").text, get(HERE, "eve").text):
        assert message.lower() in Html(page).text.lower()
        assert "accepted" not in {form.get("kind") for form in Html(page).forms}
    form = form_of(get(HERE, "eve").text, "comment")
    refused = post("incident", **{**form, "kind": "accepted"}, reason="x")
    assert refused.status_code == 409
    assert message in Html(refused.text).text
    assert notes(scene) == []


def test_an_accepted_report_is_shown_as_such(tab: Get, get: Get, scene: Scene) -> None:
    report = scene.ran(known(report_of()), state="success")
    how = Acceptance(report.run_id, "eve", "a holiday", NOON)
    verdicts = (replace(report.verdicts[0], accepted_by=str(how)), report.verdicts[1])
    again = replace(
        report,
        run_id="00000000-0000-4000-8000-0000000000aa",
        outcome=Outcome.ACCEPTED,
        accepted=how,
        answered="x",
        verdicts=verdicts,
        started_at=NOON + timedelta(hours=1),
        finished_at=NOON + timedelta(hours=2),
    )
    scene.store(again)
    page = Html(tab(attempt=report.attempt.id).text)
    assert "50% of orders have no id ( limit < MAX_NULLS (10%) ). Accepted by eve" in page.text
    assert "✓ accepted orders.id.null_share" in page.text
    assert "1 accepted 1 passed" in page.text
    assert "Accept this data" not in page.text
    assert "✓ accepted lake.gate" in Html(get(HERE).text).text
    assert "accepted" in Html(get("runs?dag_id=lake&task_id=gate").text).text


def rows_from(country: str, count: int) -> tuple[FailingRow, ...]:
    cells = {"id": None, "country": country, "tax_id": "***"}
    return (FailingRow("orders", "id is null", json.dumps(cells)),) * count


def test_what_changed_is_on_the_incident_and_on_the_tab(tab: Get, get: Get, scene: Scene) -> None:
    orders = DatasetSnapshot("orders", "s3://lake/orders", "delta", 98, 5000)
    scene.ran(
        report_of(
            1,
            on=DAY - timedelta(days=1),
            verdicts=(NULLS, NOT_EMPTY),
            outcome=Outcome.PASSED,
            datasets=(orders,),
        ),
        number=1,
    )
    arrival = Arrival("99", NOON, "WRITE, userName <etl>, jobId 7", files=2, rows=2500, removed=1)
    failing = rows_from("XX", 18) + rows_from("CH", 2)
    scene.ran(
        report_of(
            2,
            verdicts=(replace(BAD_NULLS, failing_rows=failing), NOT_EMPTY),
            datasets=(replace(orders, version=99, rows=2500, arrivals=(arrival,)),),
        ),
        number=2,
    )
    for page in (Html(get(HERE).text), Html(tab().text)):
        changed = page.text.partition("What changed ")[2]
        for words in (
            "What brought the rows 03-20 12:00 UTC orders version 99: added 2 files of "
            "this date with 2,500 rows, removed 1 WRITE, userName <etl>, jobId 7 "
            "First bad and last good content "
            "orders: first bad version 99, 2,500 rows of 2024-03-20, last good version 98, "
            "5,000 rows of 2024-03-19; s3://lake/orders",
            "Where the failing rows are orders.id.null_share: of the 20 stored failing rows 18 "
            'have country = "XX"',
            "What else changed since 2024-03-19 what now was change "
            "rows of orders 2,500 5,000 -50%",
        ):
            assert words in changed
        assert "tax_id" not in changed.partition("What else changed")[0]
    assert "What changed" not in tab(run_id=f"scheduled__{DAY - timedelta(days=1)}").text


def test_a_bad_gate_is_run_again_from_its_tab(tab: Get, post: Get, scene: Scene) -> None:
    scene.ran(report_of(verdicts=(BAD_NULLS,)))
    form = form_of(tab("eve").text, "clear")
    assert not Html(tab().text).forms
    assert "You may not edit DAG lake." in Html(tab().text).text
    for user in ("ada", "ben", None):
        assert post("incident", user, **form).status_code in (401, 403, 404)
    assert states_of(scene)[str(DAY), "gate"] == "failed"
    assert post("incident", **form).status_code == 303
    assert states_of(scene)[str(DAY), "gate"] is None
    assert ("dqx clear", "eve") in audited(scene)


def waive_form(page: Html) -> dict[str, str]:
    (form,) = (
        form
        for form in page.forms
        if form.get("assertion") == "orders.id.null_share" and "report" not in form
    )
    return form


@pytest.mark.slow
def test_an_editor_waives_an_assertion_and_ends_the_waiver(
    get: Get, post: Get, tab: Get, scene: Scene
) -> None:
    scene.ran(known(report_of()))
    until = datetime.now(timezone.utc).date() + timedelta(days=3)
    terms = {"until": str(until), "owner": "ben", "reason": "ticket 7", "below": "60%"}
    form = {**waive_form(Html(get(HERE, "eve").text)), **terms}
    for user in ("ada", "ben", None):
        assert post("waive", user, **form).status_code in (401, 403, 404)
    for wrong in ({"reason": ""}, {"until": "2024-01-01"}, {"until": "x"}, {"below": "ten"}):
        assert post("waive", **{**form, **wrong}).status_code == 400
    assert post("waive", **{**form, "gate": "pond.gate"}).status_code == 404
    assert audited(scene) == []
    for _ in range(2):  # sent twice, stored once
        assert post("waive", **form).status_code == 303
    (waiver,) = waivers_of(str(scene.root))
    assert (waiver.name, waiver.owner, waiver.author) == ("orders.id.null_share", "ben", "eve")
    words = f"waived until {until}, below 0.6; owner ben: ticket 7"
    assert words in Html(get(HERE).text).text
    assert words in Html(tab().text).text
    assert ("dqx waive", "eve") in audited(scene)
    ending = {**waive_form(Html(get(HERE, "eve").text)), "waiver": waiver.id}
    for user in ("ada", "ben", None):
        assert post("waive", user, **ending).status_code in (401, 403, 404)
    assert post("waive", **ending).status_code == 303
    (waiver,) = waivers_of(str(scene.root))
    assert waiver.ended_by == "eve"
    assert words not in Html(tab().text).text


def test_p0_has_no_form_for_a_waiver_and_says_why(get: Get, scene: Scene) -> None:
    days_of(scene, "b")
    page = get(HERE, "eve").text
    assert 'action="waive"' not in page
    assert "No failed assertion can be waived: P0, @required and errors" in Html(page).text


def test_each_action_has_its_own_form_with_its_own_field(get: Get, tab: Get, scene: Scene) -> None:
    scene.ran(known(report_of()))
    for page in (Html(get(HERE, "eve").text), Html(tab("eve").text)):
        own = [form for form in page.forms if "kind" in form]
        kinds = [form["kind"] for form in own]
        assert {"acknowledged", "clear", "accepted", "closed"} <= {*kinds}
        assert len(kinds) == len({*kinds}), "one form an action"
        assert len({form["note"] for form in own}) == len(own), "none stores the note of another"
        assert not page.all("button", name="kind")
        assert [field for field in page.all("textarea") if "required" in field]


@pytest.mark.more
def test_the_card_says_what_clearing_does_and_keeps_what_was_typed(
    get: Get, post: Get, scene: Scene
) -> None:
    waiting_days(scene)
    html = get(HERE, "eve").text
    text = Html(html).text
    assert "1 date: 2024-03-20 runs: gate , silver" in text
    assert "what passes is promoted to s3://lake/silver" in text
    assert "Close, give up 5,000 rows" in text
    order = [text.index(words) for words in ("is repaired", "unusual but correct", "some days")]
    order += [text.index(words) for words in ("rule is wrong", "is not needed")]
    assert order == sorted(order)
    form = form_of(html, "clear")
    assert post("incident", **form, reason="table reloaded").status_code == 303
    assert notes(scene) == [("comment", "eve", "table reloaded")]
    assert {state for (day, _), state in states_of(scene).items() if day == "2024-03-20"} == {None}


def test_an_error_keeps_what_was_typed(get: Get, post: Get, scene: Scene) -> None:
    scene.ran(known(report_of()))
    form = form_of(get(HERE, "eve").text, "accepted")
    typed = "odd <b>but</b> right"
    refused = post("incident", **{**form, "shown": "x"}, reason=typed)
    assert refused.status_code == 409
    page = Html(refused.text)
    assert f"You typed: {typed}" in page.text
    assert page.links["Back to the page"].startswith("incident?dag_id=lake&task_id=gate")
