"""Labels from the pages: permissions, protection from other sites, and the audit log."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from dqx_airflow.results.stored_labels import Label, read_labels
from dqx_airflow.values import DatasetSnapshot, GateReport, Outcome, Severity, Status
from tests.ui.ui_scene import BAD_NULLS, DAY, NOT_EMPTY, NULLS, ROWS, Get, Html, Scene, report_of

pytestmark = pytest.mark.airflow

Fields = Mapping[str, str]

HERE = "http://testserver"


@pytest.fixture
def form(tab: Get, scene: Scene) -> dict[str, str]:
    """The form of a failed assertion, as eve sees it on the tab of its gate."""
    scene.ran(report_of())
    (fields,) = _forms(tab("eve").text)
    return fields


def _forms(page: str) -> list[dict[str, str]]:
    """The forms for labels of a tab, of which each is about an assertion of a report."""
    return [form for form in Html(page).forms if "assertion" in form and "report" in form]


def _without_clock(page: str) -> str:
    """The page without the time at which it was made."""
    return re.sub(r"<time [^>]*data-clock>[^<]*</time>", "", page)


def _picks(page: str) -> dict[str, str]:
    """The keys of the alerts that can be checked, by what a screen reader says."""
    boxes = Html(page).all("input", name="pick")
    return {str(box["aria-label"]): box["value"] or "" for box in boxes if "aria-label" in box}


def labels(scene: Scene) -> tuple[Label, ...]:
    return read_labels(str(scene.root), all_versions=True)


def logged(scene: Scene) -> list[tuple[str, str, str, str]]:
    from airflow.models.log import Log
    from sqlalchemy import select

    wanted = select(Log.event, Log.owner, Log.dag_id, Log.task_id)
    rows = scene.session.execute(wanted.where(Log.event.like("dqx%")).order_by(Log.id))
    return [tuple(row) for row in rows]


def test_one_click_labels_a_failure_with_author_time_and_an_entry_in_the_audit_log(
    post: Get, tab: Get, scene: Scene, form: Fields
) -> None:
    from airflow.models.log import Log
    from sqlalchemy import select

    answer = post("label", **form, ground_truth="false_alarm", reason="holiday")
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("gate?dag_id=lake&run_id=scheduled__2024-03-20")
    (label,) = labels(scene)
    assert (label.gate, label.date, label.check, label.name) == (
        "lake.gate",
        DAY,
        "Completeness",
        "orders.id.null_share",
    )
    assert (label.ground_truth, label.author, label.reason) == (False, "eve", "holiday")
    assert (label.suite, label.run_id) == ("orders.dql", report_of().run_id)
    assert logged(scene) == [("dqx label", "eve", "lake", "gate")]
    entry = json.loads(scene.session.scalar(select(Log.extra).where(Log.event == "dqx label")))
    assert (entry["assertion"], entry["date"]) == ("orders.id.null_share", "2024-03-20")
    assert entry["ground_truth"] is False
    text = Html(tab("ada").text).text
    assert "false alarm eve" in text
    assert "holiday" in text


def test_a_second_click_stores_nothing_and_another_label_is_added(
    post: Get, scene: Scene, form: Fields
) -> None:
    for choice in ("real", "real", "false_alarm"):
        assert post("label", **form, ground_truth=choice).status_code == 303
    assert [label.ground_truth for label in labels(scene)] == [True, False]


NOT_OURS = {
    "another site": {"Origin": "https://evil.example"},
    "another port": {"Origin": "http://testserver:8081"},
    "a page without an origin": {"Origin": "null"},
    "nothing says from where": {},
    "only the address of the page before": {"Referer": HERE},
    "another site, by the browser": {"Sec-Fetch-Site": "cross-site", "Origin": HERE},
    "a neighbour of this site": {"Sec-Fetch-Site": "same-site"},
    "typed into the address bar": {"Sec-Fetch-Site": "none"},
    "two that contradict": {"Sec-Fetch-Site": "same-origin", "Origin": "https://evil.example"},
}


@pytest.mark.few(2)
@pytest.mark.parametrize("headers", NOT_OURS.values(), ids=NOT_OURS)
def test_no_request_from_elsewhere_changes_anything(
    post: Get, scene: Scene, form: Fields, headers: Fields
) -> None:
    answer = post("label", **form, ground_truth="real", headers=headers)
    assert answer.status_code == 403
    assert "does not come from a page of this Airflow" in answer.text
    assert (labels(scene), logged(scene)) == ((), [])


OURS = {
    "by the browser": {"Sec-Fetch-Site": "same-origin"},
    "by both": {"Sec-Fetch-Site": "same-origin", "Origin": HERE},
    "behind a proxy that says so": {
        "Origin": "https://flow.example",
        "X-Forwarded-Host": "flow.example, inner",
    },
}


@pytest.mark.few(1)
@pytest.mark.parametrize("headers", OURS.values(), ids=OURS)
def test_requests_of_our_own_pages_are_accepted(
    post: Get, scene: Scene, form: Fields, headers: Fields
) -> None:
    assert post("label", **form, ground_truth="real", headers=headers).status_code == 303


@pytest.mark.more
def test_the_configured_address_of_the_server_is_its_own(
    post: Get, form: Fields, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = {"Origin": "https://flow.example"}
    assert post("label", **form, ground_truth="real", headers=sent).status_code == 403
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://flow.example/airflow")
    assert post("label", **form, ground_truth="real", headers=sent).status_code == 303


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "token", ["", "forged", "ImV2ZSI.aaaaaa.bbbb"], ids=["none", "no token", "not signed by us"]
)
def test_no_request_without_our_token_changes_anything(
    post: Get, scene: Scene, form: Fields, token: str
) -> None:
    answer = post("label", **{**form, "token": token}, ground_truth="real")
    assert answer.status_code == 403
    assert (labels(scene), logged(scene)) == ((), [])


def test_a_token_is_of_one_user_and_of_one_purpose(
    post: Get, get: Get, scene: Scene, form: Fields
) -> None:
    from itsdangerous import URLSafeTimedSerializer

    from dqx_airflow.ui.airflow_users import signing_key

    scene.dag("pond", team="blue")
    scene.ran(report_of(2, dag_id="pond"), dag_id="pond", number=2)
    where = {"dag_id": "pond", "run_id": "scheduled__2024-03-20", "task_id": "gate"}
    (of_ben,) = _forms(get("gate", "ben", **where).text)
    of_another_form = URLSafeTimedSerializer(signing_key()).dumps("eve")
    for token in (of_ben["token"], of_another_form):
        assert post("label", **{**form, "token": token}, ground_truth="real").status_code == 403
    assert labels(scene) == ()


def test_a_token_of_yesterday_has_expired(
    post: Get, scene: Scene, form: Fields, monkeypatch: pytest.MonkeyPatch
) -> None:

    from dqx_airflow.ui import responses

    monkeypatch.setattr(responses, "_VALID_S", -1)
    answer = post("label", **form, ground_truth="real")
    assert answer.status_code == 403
    assert "Reload it" in answer.text


def test_a_reader_of_the_dag_has_no_buttons_and_is_refused(
    post: Get, tab: Get, scene: Scene, form: Fields
) -> None:
    from dqx_airflow.ui.responses import form_token

    assert Html(tab("ada").text).forms == []

    class Ada:
        def get_id(self) -> str:
            return "ada"

    answer = post("label", "ada", **{**form, "token": form_token(Ada())}, ground_truth="real")
    assert answer.status_code == 403
    assert "permission to edit this DAG" in answer.text
    assert (labels(scene), logged(scene)) == ((), [])


@pytest.mark.more
def test_a_hidden_report_looks_like_a_missing_one(
    post: Get, get: Get, scene: Scene, form: Fields
) -> None:
    scene.dag("pond", team="blue")
    scene.ran(report_of(2, dag_id="pond"), dag_id="pond", number=2)
    where = {"dag_id": "pond", "run_id": "scheduled__2024-03-20", "task_id": "gate"}
    (own,) = _forms(get("gate", "ben", **where).text)
    there = post("label", "ben", **{**form, "token": own["token"]}, ground_truth="real")
    nowhere = post("label", "ben", **{**own, "report": "0" * 36}, ground_truth="real")
    assert there.status_code == nowhere.status_code == 404
    assert _without_clock(there.text) == _without_clock(nowhere.text)
    assert labels(scene) == ()


def test_labelling_requires_signing_in(post: Get, scene: Scene, form: Fields) -> None:
    assert post("label", None, **form, ground_truth="real").status_code == 401
    assert labels(scene) == ()


BAD_FORMS = {
    "no word on what it is": (400, b"token={token}&report={report}"),
    "a field twice": (400, b"token={token}&token={token}&ground_truth=real"),
    "not readable": (400, b"token=%ff"),
    "too large": (413, b"token=" + b"a" * 20_000),
    "too many fields": (400, b"&".join(b"a%d=1" % number for number in range(30))),
}


@pytest.mark.few(2)
@pytest.mark.parametrize(("status", "body"), BAD_FORMS.values(), ids=BAD_FORMS)
def test_a_foreign_form_is_refused(
    post: Get, scene: Scene, form: Fields, status: int, body: bytes
) -> None:
    content = body.replace(b"{token}", form["token"].encode())
    content = content.replace(b"{report}", form["report"].encode())
    sent = {"Origin": HERE, "Content-Type": "application/x-www-form-urlencoded"}
    assert post("label", content=content, headers=sent).status_code == status
    assert (labels(scene), logged(scene)) == ((), [])


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["text/plain", "application/json", "multipart/form-data", ""])
def test_other_content_types_are_refused(post: Get, scene: Scene, form: Fields, kind: str) -> None:
    content = f"token={form['token']}&report={form['report']}&ground_truth=real".encode()
    sent = {"Origin": HERE, "Content-Type": kind}
    assert post("label", content=content, headers=sent).status_code == 415
    assert labels(scene) == ()


@pytest.mark.more
def test_only_a_failure_that_counts_can_be_labelled(
    post: Get, tab: Get, scene: Scene, form: Fields
) -> None:
    passed = {**form, "check": "implicit", "assertion": "orders.not_empty"}
    assert post("label", **passed, ground_truth="real").status_code == 409
    assert (
        post("label", **{**form, "assertion": "x' OR 1=1"}, ground_truth="real").status_code == 409
    )
    later = report_of(
        5, verdicts=(NULLS, NOT_EMPTY), outcome=Outcome.PASSED, started_at=_later(), attempt="x"
    )
    scene.store(later)
    assert post("label", **form, ground_truth="real").status_code == 409
    assert labels(scene) == ()


def _later() -> datetime:
    return report_of().started_at + timedelta(hours=2)


def test_redirects_stay_on_this_site(post: Get, form: Fields) -> None:
    sent = {**form, "back": "//evil.example", "dag_id": "//evil.example"}
    place = post("label", **sent, ground_truth="real").headers["location"]
    assert place.startswith("gate?")
    place = post("label", **{**sent, "back": "alerts"}, ground_truth="real").headers["location"]
    assert place == "alerts?dag_id=%2F%2Fevil.example"


@pytest.mark.more
def test_a_read_only_store_disables_the_buttons_with_a_notice(
    tab: Get, post: Get, get: Get, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dqx_airflow.errors import StoreError
    from dqx_airflow.results.store import ResultsStore

    def refuses(*_: object) -> None:
        raise StoreError("read-only file system")

    monkeypatch.setattr(ResultsStore, "check_writable", refuses)
    scene.ran(report_of())
    for answer in (tab("eve"), get("alerts", "eve")):
        assert 'action="label"' not in answer.text
        assert "cannot write to the results store" in answer.text
    assert "cannot write" not in tab("ada").text


@pytest.mark.more
def test_an_unstored_label_is_reported(
    post: Get, scene: Scene, form: Fields, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dqx_airflow.errors import StoreError
    from dqx_airflow.ui import alerts_page

    def fails(*_: object, **__: object) -> None:
        raise StoreError("no space")

    monkeypatch.setattr(alerts_page, "write_labels", fails)
    answer = post("label", **form, ground_truth="real")
    assert answer.status_code == 503
    assert "Not stored" in answer.text


# The page of alerts, and the counts on the board


def test_alerts_are_grouped_by_assertion_with_history_and_failing_rows(
    get: Get, scene: Scene
) -> None:
    small = replace(
        NOT_EMPTY,
        name="orders.enough",
        check="Volume",
        datasets=("calendar",),
        status=BAD_NULLS.status,
    )
    scene.days("bbb", verdicts=(BAD_NULLS, small))
    answer = get("alerts", "eve")
    page = Html(answer.text)
    assert "6 without a label, 6 in the last 30 days" in page.text
    assert page.text.index("orders.id.null_share") < page.text.index("orders.enough")
    assert len(page.all("svg")) == 2
    assert len(_picks(answer.text)) == 6
    assert len(page.forms) == 1
    assert not page.all("details", open="")
    assert page.text.count("tax_id") == 3
    assert json.loads(ROWS[0].row)["tax_id"] in page.text
    assert "Gate report" in page.links


def test_a_date_without_rows_is_one_alert_which_names_what_else_failed(
    get: Get, scene: Scene
) -> None:
    empty = replace(NOT_EMPTY, status=BAD_NULLS.status, value=0, scaled_value=0)
    other = replace(BAD_NULLS, name="calendar.open", datasets=("calendar",))
    scene.ran(report_of(verdicts=(BAD_NULLS, other, empty)))
    html = get("alerts", "eve").text
    page = Html(html)
    assert "2 without a label, 2 in the last 30 days" in page.text
    assert "Without rows, these failed as well: orders.id.null_share" in page.text
    assert len(_picks(html)) == 2
    assert "2 unlabeled alerts" in Html(get("board", "ada").text).text


def test_a_labelled_alert_leaves_the_list_and_the_count(get: Get, post: Get, scene: Scene) -> None:
    scene.days("bbb")
    assert "3 unlabeled alerts" in Html(get("board", "ada").text).text
    html = get("alerts", "eve", dag_id="lake").text
    (form,) = Html(html).forms
    newest = _picks(html)[f"orders.id.null_share, data of {DAY}"]
    answer = post("label", **form, pick=newest, ground_truth="real")
    assert answer.headers["location"] == "alerts?dag_id=lake"
    assert labels(scene)[0].date == DAY
    assert "2 unlabeled alerts" in Html(get("board", "ada").text).text
    text = Html(get("alerts", "eve").text).text
    assert "2 without a label, 3 in the last" in text
    assert "2024-03-19 50%" in text
    assert "2024-03-20 50%" not in text
    everything = Html(get("alerts", "eve", show="all").text).text
    assert everything.index("2024-03-19 50%") < everything.index("2024-03-20 50%")
    assert "real issue eve" in everything


def test_a_series_of_alerts_gets_one_label(get: Get, post: Get, scene: Scene) -> None:
    scene.days("bbb")
    html = get("alerts", "eve").text
    (form,) = Html(html).forms
    picks = [*_picks(html).values()]
    body = "&".join([*(f"{name}={value}" for name, value in form.items()), *picked(picks)])
    sent = {"Origin": HERE, "Content-Type": "application/x-www-form-urlencoded"}
    content = f"{body}&ground_truth=false_alarm&reason=holiday".encode()
    for user in ("ada", "ben", None):
        refused = post("label", user, content=content, headers=sent)
        assert refused.status_code in (401, 403, 404)
    unknown = content + b"&pick=0123456789abcdef"
    assert post("label", content=unknown, headers=sent).status_code == 409
    assert (labels(scene), logged(scene)) == ((), [])
    assert post("label", content=content, headers=sent).status_code == 303
    assert {label.date for label in labels(scene)} == {DAY - timedelta(days=k) for k in range(3)}
    assert {(label.ground_truth, label.reason) for label in labels(scene)} == {(False, "holiday")}
    assert logged(scene) == [("dqx label", "eve", "lake", "gate")] * 3
    assert "Every failure has a label" in Html(get("alerts", "eve").text).text


def test_one_box_stands_for_all_alerts_of_an_assertion(get: Get, post: Get, scene: Scene) -> None:
    scene.days("bbbbbb")
    html = get("alerts", "eve").text
    (form,) = Html(html).forms
    (everything,) = [
        str(box["value"]) for box in Html(html).all("input", name="pick") if "aria-label" not in box
    ]
    assert len(everything.split()) == len(_picks(html)) == 6
    assert "all 6" in Html(html).text
    assert "show 3 more" in Html(html).text
    answer = post("label", **form, pick=everything, ground_truth="real", reason="late load")
    assert answer.status_code == 303
    assert len(labels(scene)) == 6


def test_failures_of_one_cause_are_one_line_with_one_label(
    get: Get, post: Get, scene: Scene
) -> None:
    nulls = replace(BAD_NULLS, severity=Severity.P1)
    rows = replace(
        NOT_EMPTY, name="orders.rows", check="Volume", status=Status.FAILED, severity=Severity.P0
    )
    few = replace(rows, metric="num_rows", value=30, scaled_value=30, threshold=4000)
    items = replace(few, name="items.rows", datasets=("items",), severity=Severity.P1)
    other = replace(nulls, name="items.nulls", datasets=("items",))
    scene.ran(report_of(1, verdicts=(nulls, few)))
    scene.ran(report_of(2, verdicts=(items, other), task_id="second"), task_id="second", number=2)
    html = get("alerts", "eve").text
    (line,) = [line for group in _groups(get) for line in group["lines"]]
    names = [one["verdict"]["assertion"] for one in (line["alert"], *line["together"])]
    assert names[0] == "orders.rows"
    assert {*names} == {"orders.rows", "orders.id.null_share", "items.rows", "items.nulls"}
    assert "one cause with" in Html(html).text
    (form,) = Html(html).forms
    (keys,) = _picks(html).values()
    assert post("label", **form, pick=keys, ground_truth="real").status_code == 303
    assert {label.name for label in labels(scene)} == {*names}


def test_two_gates_with_one_cause_say_so_and_causes_are_counted(get: Get, scene: Scene) -> None:
    rows = replace(
        NOT_EMPTY, name="orders.rows", check="Volume", status=Status.FAILED, severity=Severity.P0
    )
    few = replace(rows, metric="num_rows", value=30, scaled_value=30, threshold=4000)
    items = replace(few, name="items.rows", datasets=("items",))
    scene.ran(report_of(1, verdicts=(few,)))
    second = report_of(2, verdicts=(items,), task_id="second")
    scene.ran(second, task_id="second", number=2)
    third = report_of(3, verdicts=(items, BAD_NULLS), task_id="third")
    scene.ran(third, task_id="third", number=3)
    board = get("api/v1/board", "eve").json()
    assert (sum(board["open_slices"].values()), board["causes"]) == (3, 2)
    text = Html(get("board", "eve").text).text
    assert "3 dates are open , of 2 causes." in text
    assert text.count("same cause as lake.gate") == 1
    slices = get("api/v1/slices", "eve").json()
    assert (slices["total"], slices["causes"]) == (3, 2)
    named = {one["task_id"]: one["same_cause_as"] for one in slices["rows"]}
    assert named == {"gate": "", "second": "lake.gate", "third": ""}
    assert "3 dates are open, of 2 causes" in Html(get("slices", "eve").text).text
    alerts = get("api/v1/alerts", "eve").json()
    assert (alerts["total"], alerts["causes"]) == (4, 2)


@pytest.mark.more
def test_another_failure_while_an_alert_is_open_is_a_line_of_its_own(
    get: Get, scene: Scene
) -> None:
    few = replace(
        NOT_EMPTY, name="orders.rows", check="Volume", status=Status.FAILED, metric="num_rows"
    )
    few = replace(few, value=30, scaled_value=30, threshold=4000)
    before = DAY - timedelta(days=1)
    scene.ran(report_of(1, verdicts=(few,), on=before), number=1)
    scene.ran(report_of(2, verdicts=(few, BAD_NULLS)), number=2)
    lines = [line for group in _groups(get) for line in group["lines"]]
    assert [len(line["together"]) for line in lines] == [0, 0, 0]
    by_cause = [(line["alert"]["cause"], line["alert"]["since"]) for line in lines]
    assert len({*by_cause}) == 2


def _groups(get: Get) -> Any:
    return get("api/v1/alerts", "eve").json()["groups"]


def of_gate(dag_id: str, number: int, **changes: Any) -> GateReport:
    own = {"fingerprint": "11fe02aa", **changes}
    data = DatasetSnapshot("orders", "s3://lake/orders/", "delta", rows=5000, **own)
    return report_of(number, dag_id=dag_id, verdicts=(BAD_NULLS,), datasets=(data,))


def test_the_same_rows_in_several_gates_are_one_line_with_one_label(
    get: Get, post: Get, scene: Scene
) -> None:
    scene.dag("pond", team="blue")
    gates = ("lake", "sea", "pond", "moor", "bog")
    others = {"moor": {"fingerprint": "c7720e4f"}, "bog": {"fingerprint": None}}
    for number, dag_id in enumerate(gates, start=1):
        scene.ran(of_gate(dag_id, number, **others.get(dag_id, {})), dag_id=dag_id, number=number)
    groups = get("api/v1/alerts", "eve").json()["groups"]
    lines = {
        line["alert"]["gate"]: [one["gate"] for one in line["also"]]
        for group in groups
        for line in group["lines"]
    }
    assert lines == {"bog.gate": [], "lake.gate": ["sea.gate"], "moor.gate": []}
    html = get("alerts", "eve").text
    assert "same rows in sea.gate" in Html(html).text
    assert "4 without a label" in Html(html).text
    (form,) = Html(html).forms
    both = next(box for box in Html(html).all("input", name="pick") if " " in str(box["value"]))
    answer = post("label", **form, pick=str(both["value"]), ground_truth="false_alarm")
    assert answer.status_code == 303
    assert {label.gate for label in labels(scene)} == {"lake.gate", "sea.gate"}
    assert sorted(entry[2] for entry in logged(scene)) == ["lake", "sea"]


def picked(keys: list[str]) -> list[str]:
    """The checked boxes of a list, as a browser sends them."""
    return [f"pick={key}" for key in keys]


@pytest.mark.more
def test_the_boxes_of_others_are_refused(get: Get, post: Get, scene: Scene) -> None:
    scene.days("b")
    scene.dag("pond", team="blue")
    scene.ran(report_of(2, dag_id="pond"), dag_id="pond", number=2)
    (pick,) = _picks(get("alerts", "ben").text).values()
    (form,) = Html(get("alerts", "eve").text).forms
    assert post("label", **form, pick=pick, ground_truth="real").status_code == 409
    assert labels(scene) == ()


@pytest.mark.more
def test_a_superseded_attempt_and_old_days_are_no_alerts(get: Get, scene: Scene) -> None:
    scene.days("bb")
    passed = report_of(
        9, verdicts=(NULLS, NOT_EMPTY), outcome=Outcome.PASSED, started_at=_later(), attempt="x"
    )
    scene.store(passed)
    scene.ran(report_of(10, on=DAY - timedelta(days=45)), number=10)
    text = Html(get("alerts", "eve").text).text
    assert "1 without a label, 1 in the last" in text
    assert "1 unlabeled alert " in Html(get("board", "ada").text).text


def test_alerts_of_all_suites_of_a_gate_are_listed(get: Get, scene: Scene) -> None:
    first = report_of()
    first = scene.ran(replace(first, run_key=replace(first.run_key, gate="lake.gate/Orders")))
    other = replace(BAD_NULLS, name="orders.strict")
    second = report_of(
        2, verdicts=(other,), run_key=replace(first.run_key, gate="lake.gate/Strict")
    )
    scene.store(replace(second, attempt=first.attempt))
    text = Html(get("alerts", "eve").text).text
    assert "2 without a label" in text
    assert "orders.strict" in text
    assert "2 unlabeled alerts " in Html(get("board", "ada").text).text


@pytest.mark.slow
def test_an_instance_of_a_mapped_gate_has_alerts_labels_and_a_history_of_its_own(
    get: Get, post: Get, tab: Get, scene: Scene
) -> None:
    from airflow.models.taskinstance import TaskInstance

    scene.dag()
    for number, (back, index) in enumerate([(1, 0), (1, 1), (0, 0), (0, 1)], start=1):
        report = report_of(number, on=DAY - timedelta(days=back))
        key = replace(report.run_key, scheduler_run=f"{report.run_key.scheduler_run}[{index}]")
        scene.ran(replace(report, run_key=key), number=number, map_index=index)
    scene.session.execute(
        TaskInstance.__table__.update()
        .where(TaskInstance.map_index == 1)
        .values(rendered_map_index="zurich")
    )
    scene.session.commit()
    assert "4 unlabeled alerts" in Html(get("board", "ada").text).text
    page = Html(get("alerts", "eve").text)
    assert "4 without a label, 4 in the last 30 days" in page.text
    assert "instance 0 · check Completeness" in page.text
    assert "instance zurich · check Completeness" in page.text
    assert len(page.all("svg")) == 2
    (fields,) = _forms(tab("eve", map_index="1").text)
    answer = post("label", **fields, ground_truth="false_alarm")
    assert "map_index=1" in answer.headers["location"]
    (label,) = labels(scene)
    assert (label.date, label.map_index) == (DAY, 1)
    assert "false alarm eve" in Html(tab("ada", map_index="1").text).text
    assert "false alarm eve" not in Html(tab("ada", map_index="0").text).text
    text = Html(get("alerts", "eve", show="all").text).text
    assert "instance 0 · check Completeness · 2 without a label" in text
    assert "instance zurich · check Completeness · 1 without a label" in text
    assert "3 unlabeled alerts" in Html(get("board", "ada").text).text


def test_alerts_of_unreadable_dags_are_hidden(get: Get, scene: Scene) -> None:
    scene.days("bb")
    answer = get("alerts", "ben", dag_id="lake")
    assert "null_share" not in answer.text
    assert "lake.gate" not in answer.text
    assert Html(get("alerts", "ada").text).forms == []
    assert "null_share" in get("alerts", "ada").text
    assert get("alerts", None).status_code == 401


def test_without_a_store_the_page_names_the_setting(
    get: Get, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.days("b")
    monkeypatch.delenv("AIRFLOW__DQX__RESULTS_ROOT")
    assert "set results_root" in Html(get("alerts", "eve").text).text
    assert "unlabeled" not in get("board", "eve").text


def test_values_of_the_store_are_escaped_in_forms_and_lists(
    get: Get, tab: Get, scene: Scene
) -> None:
    hostile = replace(BAD_NULLS, name='"><script>alert(1)</script>', check="'\"><b>")
    scene.ran(report_of(verdicts=(hostile,)))
    listed, shown = get("alerts", "eve").text, tab("eve").text
    assert "<script>alert" not in listed + shown
    (fields,) = _forms(shown)
    assert fields["assertion"] == hostile.name
    assert fields["check"] == hostile.check
    assert [*_picks(listed)] == [f"{hostile.name}, data of {DAY}"]
