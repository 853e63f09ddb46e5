"""Forms that are sent twice, late, or by two people at once: each is answered with what is so and
by whom, and nothing is done twice."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from dqx_airflow.results.decisions import new_waiver, waivers_of, write_waivers
from dqx_airflow.results.incidents import IncidentNote, notes_from, write_notes
from dqx_airflow.results.query import StoredResults
from dqx_airflow.results.stored_labels import Label, read_labels, write_labels
from dqx_airflow.tuning.proposals import ProposalStage, decide, propose
from dqx_airflow.values import NO_REPORT, Attempt, DatasetSnapshot, EnforcedContract, Outcome
from tests.ui.test_ui_incident import audited, days_of, form_of, known, repaired, states_of
from tests.ui.test_ui_labels import _forms, _picks
from tests.ui.test_ui_review import proposal
from tests.ui.test_ui_states import NO_REPORT_TAB, silent
from tests.ui.ui_scene import BAD_NULLS, DAY, NOON, NULLS, PLACE, Get, Html, Scene, report_of

if TYPE_CHECKING:
    from httpx import Response

pytestmark = pytest.mark.airflow

HERE = "incident?dag_id=lake&task_id=gate"


def notes(scene: Scene) -> list[tuple[str, str]]:
    """The kinds and authors of the notes on the gate."""
    found = notes_from(str(scene.root), ["lake.gate"], date.min, date.max)
    return [(note.kind, note.author) for note in found]


def by_someone_else(scene: Scene, kind: str, text: str = "", **changes: object) -> None:
    """Another person has decided about the data of the day, from a page or a terminal."""
    at = datetime.now(timezone.utc)
    note = IncidentNote("lake.gate", DAY, kind, "op", text, at=at)
    write_notes(StoredResults(str(scene.root)), [replace(note, **changes)])  # type: ignore[arg-type]


def says(answer: Response, *words: str) -> None:
    """Asserts that a form was refused as coming late, with these words."""
    assert answer.status_code == 409
    text = Html(answer.text).text
    for one in words:
        assert one in text


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", ["acknowledged", "closed", "accepted", "comment"])
def test_a_form_that_is_sent_twice_is_done_once(
    get: Get, post: Get, scene: Scene, kind: str
) -> None:
    scene.ran(known(report_of()))
    form = {**form_of(get(HERE, "eve").text, kind), "reason": "the shop was shut"}
    first, second = post("incident", **form), post("incident", **form)
    assert (first.status_code, second.status_code) == (303, 303)
    assert first.headers["location"] == second.headers["location"]
    assert notes(scene) == [(kind, "eve")]
    assert len(audited(scene)) == 1
    page = Html(get(second.headers["location"]).text)
    assert "eve" in page.text


def test_two_dates_that_are_closed_twice_are_closed_once(get: Get, post: Get, scene: Scene) -> None:
    days_of(scene, "bb")
    form = {**form_of(get(HERE, "eve").text, "closed"), "reason": "the shop was shut"}
    assert [post("incident", **form).status_code for _ in range(3)] == [303, 303, 303]
    assert notes(scene) == [("closed", "eve")] * 2
    assert len(audited(scene)) == 1


def test_a_form_about_a_date_that_someone_has_closed_says_who(
    get: Get, post: Get, scene: Scene
) -> None:
    scene.ran(known(report_of()))
    html = get(HERE, "eve").text
    forms = {kind: form_of(html, kind) for kind in ("acknowledged", "closed", "accepted", "clear")}
    by_someone_else(scene, "closed", "not needed")
    for form in forms.values():
        answer = post("incident", **form, reason="the shop was shut")
        says(
            answer, "data of 2024-03-20: closed by op at", "not needed", "Nothing has been changed"
        )
        assert "You typed: the shop was shut" in Html(answer.text).text
    assert notes(scene) == [("closed", "op")]
    assert (audited(scene), states_of(scene)[str(DAY), "gate"]) == ([], "failed")


def test_a_form_about_a_date_that_is_good_now_says_so(get: Get, post: Get, scene: Scene) -> None:
    scene.ran(known(report_of()))
    html = get(HERE, "eve").text
    repaired(scene, 50, DAY)
    for kind in ("acknowledged", "closed", "accepted", "clear"):
        answer = post("incident", **form_of(html, kind), reason="the shop was shut")
        says(answer, "data of 2024-03-20: repaired at 2024-03-21 14:00 UTC")
    assert (notes(scene), audited(scene)) == ([], [])


def test_who_takes_what_someone_has_taken_reads_who_has_it(
    get: Get, post: Get, scene: Scene
) -> None:
    scene.ran(report_of())
    form = form_of(get(HERE, "eve").text, "acknowledged")
    by_someone_else(scene, "acknowledged")
    says(post("incident", **form), "taken by op at")
    assert notes(scene) == [("acknowledged", "op")]


def test_who_accepts_what_someone_has_accepted_reads_who_has(
    get: Get, post: Get, scene: Scene
) -> None:
    report = scene.ran(known(report_of()))
    form = form_of(get(HERE, "eve").text, "accepted")
    by_someone_else(scene, "accepted", "a holiday", run_id=report.run_id)
    says(post("incident", **form, reason="me too"), "accepted by op at", "a holiday")
    assert notes(scene) == [("accepted", "op")]
    assert states_of(scene)[str(DAY), "gate"] == "failed"


def test_a_date_that_joins_the_others_later_is_not_closed_with_them(
    get: Get, post: Get, scene: Scene
) -> None:
    days_of(scene, "bb")
    form = form_of(get(HERE, "eve").text, "closed")
    scene.ran(report_of(9, on=DAY + timedelta(days=1)), number=9)
    assert post("incident", **form, reason="the shop was shut").status_code == 303
    found = notes_from(str(scene.root), ["lake.gate"], date.min, date.max)
    assert {note.date for note in found} == {DAY, DAY - timedelta(days=1)}


def test_data_that_was_checked_again_is_not_closed_unseen(
    get: Get, post: Get, scene: Scene
) -> None:
    scene.ran(report_of())
    form = form_of(get(HERE, "eve").text, "closed")
    later = report_of(2, started_at=NOON + timedelta(hours=1))
    later = replace(later, attempt=Attempt(2, "again"), finished_at=NOON + timedelta(hours=2))
    scene.store(later)
    says(post("incident", **form, reason="x"), "has been checked again: reload the page")
    assert notes(scene) == []


def test_what_is_cleared_twice_is_cleared_once_and_says_by_whom(
    get: Get, post: Get, tab: Get, scene: Scene
) -> None:
    scene.ran(report_of())
    slices = Html(get("slices", "eve").text)
    (box,) = slices.all("input", name="pick", type="checkbox")
    late = [
        ("incident", form_of(tab("eve").text, "clear")),
        ("slices", {**slices.forms[0], "pick": box["value"] or ""}),
    ]
    assert post("incident", **form_of(get(HERE, "eve").text, "clear")).status_code == 303
    for page, form in late:
        says(post(page, **form), "waiting or running", "eve cleared lake.gate of run scheduled__")
    assert audited(scene) == [("dqx clear", "eve")]


def test_a_date_without_a_report_that_is_closed_already_says_by_whom(
    get: Get, post: Get, scene: Scene
) -> None:
    silent(scene, "shop orders")
    page = Html(get(NO_REPORT_TAB, "eve").text)
    closing, clearing = (
        next(form for form in page.forms if form.get("kind") == kind) for kind in ("closed", None)
    )
    assert post("slices", **closing, reason="the shop was shut").status_code == 303
    words = "shop orders, data of 2024-03-20: closed by eve at"
    for form in (closing, {**closing, "note": str(uuid4())}, clearing):
        says(post("slices", **form, reason="x"), words, "the shop was shut")
    found = notes_from(str(scene.root), ["shop orders"], DAY, DAY)
    assert [note.kind for note in found] == ["closed"]
    page = Html(get(NO_REPORT_TAB).text)
    assert "closed shop orders" in page.text
    assert "eve closed this date at" in page.text
    assert "“the shop was shut”" in page.text


def test_a_date_without_a_report_that_runs_again_or_was_checked_since_says_so(
    get: Get, post: Get, scene: Scene
) -> None:
    silent(scene, "lake.gate")
    page = Html(get(NO_REPORT_TAB, "eve").text)
    closing, clearing = (
        next(form for form in page.forms if form.get("kind") == kind) for kind in ("closed", None)
    )
    by_hand = report_of(7, outcome=Outcome.PASSED, verdicts=(NULLS,), attempt="by hand")
    scene.store(replace(by_hand, run_key=replace(by_hand.run_key, scheduler_run="manual__1")))
    says(post("slices", **closing, reason="x"), "a run checked it at 2024-03-20 12:00 UTC")
    assert get("slices", "ben").status_code == 200
    assert post("slices", "ben", **clearing).status_code in (403, 404)
    scene.task(task_id="other", number=90, state="failed")
    (box,) = Html(get("slices", "eve").text).all("input", name="pick", type="checkbox")
    form = {**Html(get("slices", "eve").text).forms[0], "pick": box["value"] or ""}
    assert post("slices", **form).status_code == 303
    says(
        post("slices", **form), "lake.other, run scheduled__2024-03-20: its task is waiting to run"
    )


def test_dates_of_a_list_that_ended_since_say_how(get: Get, post: Get, scene: Scene) -> None:
    scene.days("bpb")
    page = Html(get("slices", "eve").text)
    picks = " ".join(box["value"] or "" for box in page.all("input", name="pick", type="checkbox"))
    form = {**page.forms[0], "pick": picks}
    by_someone_else(scene, "closed", "not needed")
    repaired(scene, 50, DAY - timedelta(days=2))
    answer = post("slices", **form)
    says(answer, "lake.gate, data of 2024-03-20: closed by op at", "not needed")
    says(answer, "lake.gate, data of 2024-03-18: repaired at")
    assert audited(scene) == []
    assert post("slices", "ada", **form).status_code in (403, 409)
    assert post("slices", "ben", **form).status_code in (403, 404)


def test_a_waiver_is_neither_made_nor_ended_twice(get: Get, post: Get, scene: Scene) -> None:
    scene.ran(known(report_of()))
    until = datetime.now(timezone.utc).date() + timedelta(days=3)
    terms = {"until": str(until), "owner": "ben", "reason": "ticket 7"}
    (own,) = [form for form in Html(get(HERE, "eve").text).forms if "gate" in form]
    form = {**own, **terms}
    assert [post("waive", **form).status_code for _ in range(2)] == [303, 303]
    (waiver,) = waivers_of(str(scene.root))
    says(post("waive", **{**form, "note": str(uuid4())}), f"waived until {until}", "by eve")
    ending = {**own, "waiver": waiver.id}
    assert [post("waive", **ending).status_code for _ in range(2)] == [303, 303]
    assert len(audited(scene)) == 2
    store = StoredResults(str(scene.root))
    given = {"until": until, "reason": "r", "owner": "op", "author": "op"}
    other = new_waiver(store, "lake.gate", "Completeness::orders.id.null_share", **given)  # type: ignore[arg-type]
    write_waivers(store, [other, replace(other, ended_by="op")])
    says(post("waive", **{**own, "waiver": other.id}), "the waiver was ended by op")


def test_a_label_that_someone_has_given_since_is_not_replaced_unseen(
    get: Get, tab: Get, post: Get, scene: Scene
) -> None:
    report = scene.ran(report_of())
    (on_tab,) = _forms(tab("eve").text)
    alerts = get("alerts", "eve").text
    in_list = {**Html(alerts).forms[0], "pick": " ".join(_picks(alerts).values())}
    given = Label(
        "lake.gate", DAY, "Completeness", "orders.id.null_share", True, "op", "a bug upstream"
    )
    write_labels(str(scene.root), [replace(given, run_id=report.run_id)])
    for form in (on_tab, in_list):
        answer = post("label", **form, ground_truth="false_alarm", reason="a holiday")
        says(answer, "labeled as real issue by op at", "a bug upstream")
    assert len(read_labels(str(scene.root), all_versions=True)) == 1
    (seen,) = _forms(tab("eve").text)
    assert post("label", **seen, ground_truth="false_alarm").status_code == 303


def test_a_label_of_what_was_checked_again_says_so(
    get: Get, tab: Get, post: Get, scene: Scene
) -> None:
    scene.ran(report_of())
    (on_tab,) = _forms(tab("eve").text)
    alerts = get("alerts", "eve").text
    in_list = {**Html(alerts).forms[0], "pick": " ".join(_picks(alerts).values())}
    repaired(scene, 50, DAY)
    for form in (on_tab, in_list):
        says(post("label", **form, ground_truth="real"), "the data has been checked again")
    assert read_labels(str(scene.root)) == ()


def test_a_proposal_that_someone_has_decided_says_who(get: Get, post: Get, scene: Scene) -> None:
    scene.ran(report_of())
    made = proposal()
    propose(str(scene.root), made)
    (form,) = Html(get("review", "eve").text).forms
    decide(str(scene.root), [made], ProposalStage.REJECTED, "op", "too loose")
    says(post("review", **form, decision="approve", reason=""), "op has already decided")
    assert audited(scene) == []


def at_once(send: Callable[[], Response]) -> list[int]:
    """The answers to a form that four browsers send at the same time."""
    with ThreadPoolExecutor(4) as pool:
        return [done.result().status_code for done in [pool.submit(send) for _ in range(4)]]


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["closed", "accepted", "acknowledged"])
def test_forms_that_come_at_once_are_done_once(
    get: Get, post: Get, scene: Scene, kind: str
) -> None:
    scene.ran(known(report_of()))
    form = {**form_of(get(HERE, "eve").text, kind), "reason": "the shop was shut"}
    assert at_once(lambda: post("incident", **form)) == [303] * 4
    assert notes(scene) == [(kind, "eve")]
    assert len(audited(scene)) == 1


def test_a_date_without_a_report_that_is_taken_at_once_is_taken_once(
    get: Get, post: Get, scene: Scene
) -> None:
    silent(scene, "lake.gate")
    form = taking(get(NO_REPORT_TAB, "eve").text)
    assert at_once(lambda: post("slices", **form)) == [303] * 4
    assert notes(scene) == [("acknowledged", "eve")]
    assert len(audited(scene)) == 1


@pytest.mark.few(1)
@pytest.mark.parametrize("is_judged", [True, False])
def test_a_gate_whose_last_date_someone_closed_needs_no_one(
    get: Get, post: Get, scene: Scene, monkeypatch: pytest.MonkeyPatch, is_judged: bool
) -> None:
    from dqx_airflow.ui import board_page

    if is_judged:
        days_of(scene, "ppb")
    else:
        silent(scene, "lake.gate")
    assert "1 gate needs you." in Html(get("board").text).text
    if is_judged:
        form = form_of(get(HERE, "eve").text, "closed")
        assert post("incident", **form, reason="the shop was shut").status_code == 303
    else:
        (form,) = (
            form
            for form in Html(get(NO_REPORT_TAB, "eve").text).forms
            if form.get("kind") == "closed"
        )
        assert post("slices", **form, reason="the shop was shut").status_code == 303
    page = Html(get("board").text)
    assert "Nothing needs you." in page.text
    assert "Decided or warned 1" in page.text
    assert "closed" in page.text
    assert "closed by eve" in page.text
    board = get("api/v1/board").json()
    assert board["counts"] == {"closed": 1}
    assert board["rows"][0]["closing"]["text"] == "the shop was shut"
    monkeypatch.setattr(board_page, "_counted", {})
    assert get("counts").json()["board"] == 0
    # Another date of the gate is still open.
    scene.ran(report_of(30, on=DAY - timedelta(days=5)), number=30)
    assert "1 gate needs you." in Html(get("board").text).text
    assert NO_REPORT not in get("api/v1/board").json()["counts"] or not is_judged


def taking(page: str) -> dict[str, str]:
    """The form of a page with which someone takes dates."""
    return form_of(page, "acknowledged")


@pytest.mark.few(2)
@pytest.mark.parametrize("noted", ["", '{"rows": {"store": "basel"}}'])
@pytest.mark.parametrize("place", ["board", "slices", NO_REPORT_TAB])
def test_a_date_without_a_report_is_taken_where_it_is_shown(
    get: Get, post: Get, scene: Scene, place: str, noted: str
) -> None:
    silent(scene, "shop orders", noted=noted)
    form = taking(get(place, "eve").text)
    for user in ("ada", "ben", None):
        assert post("slices", user, **form).status_code in (401, 403, 404)
    assert post("slices", **{**form, "note": "1"}).status_code == 400
    answers = [post("slices", **form) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [303, 303]
    assert {answer.headers["location"] for answer in answers} == {place}
    found = notes_from(str(scene.root), ["shop orders"], DAY, DAY)
    takes = [(note.kind, note.author, note.slice) for note in found if note.kind != NO_REPORT]
    assert takes == [("acknowledged", "eve", noted or None)]
    assert audited(scene) == [("dqx incident", "eve")]
    for page in ("board", "slices", NO_REPORT_TAB):
        html = get(page, "eve").text
        assert "eve" in Html(html).text
        assert not [own for own in Html(html).forms if own.get("kind") == "acknowledged"]
    assert "taken by eve" in Html(get("board").text).text
    (row,) = get("api/v1/slices").json()["rows"]
    tab = get(f"api/v1/{NO_REPORT_TAB}").json()
    assert row["acknowledgement"]["author"] == tab["acknowledgement"]["author"] == "eve"


def test_who_takes_a_date_without_a_report_that_someone_has_reads_who(
    get: Get, post: Get, scene: Scene
) -> None:
    silent(scene, "lake.gate")
    forms = [taking(get(place, "eve").text) for place in ("board", "slices", NO_REPORT_TAB)]
    by_someone_else(scene, "acknowledged")
    for form in forms:
        says(post("slices", **form), "lake.gate, data of 2024-03-20: taken by op at")
    assert notes(scene) == [("acknowledged", "op")]
    assert audited(scene) == []
    by_someone_else(scene, "closed", "not needed")
    for form in forms:
        says(post("slices", **form), "closed by op at", "not needed")


def test_a_date_without_a_report_that_is_blocked_later_is_still_of_who_took_it(
    get: Get, post: Get, scene: Scene
) -> None:
    silent(scene, "lake.gate")
    html = get(NO_REPORT_TAB, "eve").text
    assert post("slices", **taking(html)).status_code == 303
    (note,) = notes_from(str(scene.root), ["lake.gate"], DAY, DAY)
    later = note.at + timedelta(hours=1)
    bad = report_of(70, started_at=later, finished_at=later + timedelta(minutes=1))
    key = replace(bad.run_key, gate="lake.gate/orders", scheduler_run="manual__1")
    bad = replace(bad, run_key=key, suite="orders", attempt=Attempt(1, "by hand"))
    scene.store(bad)
    says(post("slices", **taking(html)), "a run checked it at")
    (row,) = get("api/v1/slices").json()["rows"]
    assert (row["state"], row["acknowledgement"]["author"]) == ("blocked", "eve")
    page = Html(get(f"{HERE}&date={DAY}", "eve").text)
    assert f"taken by eve at {note.at:%m-%d %H:%M} UTC" in page.text
    assert not [form for form in page.forms if form.get("kind") == "acknowledged"]
    assert f"{note.at:%m-%d %H:%M} UTC · acknowledged eve takes it" in page.text
    good = report_of(71, outcome=Outcome.PASSED, verdicts=(NULLS,), run_key=key, suite="orders")
    ended = later + timedelta(hours=1)
    good = replace(good, started_at=ended, finished_at=ended, attempt=Attempt(1, "again"))
    scene.store(good)
    text = Html(get(f"{HERE}&date={DAY}").text).text
    assert f"eve took it {note.at:%m-%d %H:%M} UTC , before it was checked" in text


def test_all_dates_of_a_gate_are_taken_on_the_board_but_those_of_others(
    get: Get, post: Get, scene: Scene
) -> None:
    scene.days("bpb")
    scene.task(on=DAY + timedelta(days=1), number=60)
    html = get("board", "eve").text
    assert "no one has it yet I take 3 dates" in Html(html).text
    by_someone_else(scene, "acknowledged")
    form = taking(html)
    assert post("slices", **form).headers["location"] == "board"
    rows = get("api/v1/slices").json()["rows"]
    assert [row["acknowledgement"]["author"] for row in rows] == ["eve", "op", "eve"]
    assert len(audited(scene)) == 2
    text = Html(get("board", "eve").text).text
    assert "taken by eve , just now ; taken by op , just now" in text
    assert "no one" not in text
    assert post("slices", **form).status_code == 303, "nothing is left to take"


def test_a_date_that_is_unknown_is_not_taken(get: Get, post: Get, scene: Scene) -> None:
    scene.ran(report_of(1, outcome=Outcome.PASSED, verdicts=(NULLS,)))
    for number, days in enumerate((0, 1), start=60):
        on = DAY - timedelta(days=2 + days)
        summary = {"outcome": "passed", "gate": "lake.gate", "date": f"{DAY}"}
        scene.task(on=on, number=number, pushed=summary, state="success")
    scene.task(on=DAY + timedelta(days=1), number=64)
    (row,) = get("api/v1/slices").json()["rows"]
    assert row["date"] is None
    for place in ("board", "slices"):
        forms = Html(get(place, "eve").text).forms
        assert not [form for form in forms if form.get("kind") == "acknowledged"]
    html = get("slices", "eve").text
    (box,) = Html(html).all("input", name="pick", type="checkbox")
    form = {**Html(html).forms[0], "pick": box["value"] or "", "kind": "acknowledged"}
    refused = post("slices", **form, note=str(uuid4()))
    assert refused.status_code == 400
    assert "The date of its data is unknown" in Html(refused.text).text


PLACES = (
    "datasets",
    "dataset?location=s3%3A%2F%2Flake%2Forders",
    "contracts",
    "contract?id=orders",
)


@pytest.mark.more
def test_pages_of_datasets_and_contracts_say_who_closed_a_date(
    get: Get, post: Get, scene: Scene
) -> None:
    contract = EnforcedContract("orders", "2.3.0", "odcs")
    for number, letter in enumerate("pb", 1):
        on = DAY - timedelta(days=2 - number)
        outcome = Outcome.BLOCKED if letter == "b" else Outcome.PASSED
        verdict = BAD_NULLS if letter == "b" else NULLS
        report = report_of(number, on=on, outcome=outcome, verdicts=(verdict,), contract=contract)
        scene.ran(report, number=number)
    for place in PLACES:
        assert "✕ blocked" in Html(get(place).text).text
    form = form_of(get(HERE, "eve").text, "closed")
    assert post("incident", **form, reason="the shop was shut").status_code == 303
    for place in PLACES:
        text = Html(get(place).text).text
        assert "\N{EN DASH} closed" in text
        assert "closed by eve" in text
        assert "the shop was shut" in text
        assert "✕ blocked" not in text
    for place in ("datasets", "contracts"):
        (row,) = get(f"api/v1/{place}").json()["rows"]
        assert row["state"] == "closed"
        assert row["gates"][0]["closing"]["author"] == "eve"
        assert get(f"api/v1/{place}?outcome=closed").json()["rows"] == [row]
    (gate,) = get("api/v1/dataset", location=PLACE).json()["gates"]
    assert [day["state"] for day in gate["days"]] == ["closed", "passed"]
    assert gate["days"][0]["closing"]["text"] == "the shop was shut"
    assert gate["days"][0]["outcome"] == "blocked"
    assert gate["row"]["state"] == "closed"
    (gate,) = get("api/v1/contract", id="orders").json()["gates"]
    assert gate["row"]["state"] == "closed"
    # Another date of the gate is open: it is blocked again.
    scene.ran(report_of(30, on=DAY - timedelta(days=5), contract=contract), number=30)
    for place in PLACES:
        assert "✕ blocked" in Html(get(place).text).text


def test_a_closed_instance_is_closed_where_its_own_data_is(
    get: Get, post: Get, scene: Scene
) -> None:
    for index, table in enumerate(("eu", "us")):
        dataset = DatasetSnapshot("orders", f"s3://{table}/orders", "delta", 7, 5000)
        report = report_of(index + 1, datasets=(dataset,))
        key = replace(report.run_key, scheduler_run=f"scheduled__{DAY}[{index}]")
        scene.ran(replace(report, run_key=key), map_index=index, number=index + 1)
    here = f"{HERE}&map_index=0"
    form = form_of(get(here, "eve").text, "closed")
    assert post("incident", **form, reason="the shop was shut").status_code == 303
    assert "\N{EN DASH} closed" in Html(get("dataset?location=s3%3A%2F%2Feu%2Forders").text).text
    assert "✕ blocked" in Html(get("dataset?location=s3%3A%2F%2Fus%2Forders").text).text
    tab = Html(get(f"gate?dag_id=lake&run_id=scheduled__{DAY}&task_id=gate").text).text
    _, _, instances = tab.partition("instance outcome")
    assert instances.count("\N{EN DASH} closed") == instances.count("✕ blocked") == 1
    assert "closed by eve" in tab
