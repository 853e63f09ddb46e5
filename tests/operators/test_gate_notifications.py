"""Notifications of a gate: content, when they are sent, callbacks, and Airflow's notifiers."""

from __future__ import annotations

import json
import re
import socketserver
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, timezone
from email import message_from_bytes, policy
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from dqx_airflow.results.store import ResultsStore
from dqx_airflow.values import (
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
    Verdict,
)
from dqx_airflow.values.files import shipped
from tests.http_stub import Asked, Reply, http_stub
from tests.made_reports import report_at
from tests.operators.gate_stubs import SUITE, FakeTask, Run, SparkSubmit, needs_airflow

pytestmark = pytest.mark.airflow

DOCS = Path(__file__).parents[2] / "dqx_airflow" / "docs"
FAILED = {
    "assertion": "orders.customer_id.present",
    "status": "failed",
    "severity": "P0",
    "value": 3,
    "scaled_value": 3,
    "expression": "each row: customer_id > 0",
    "expected": "== 0 violating rows",
}
BLOCKED = {
    "outcome": "blocked",
    "gate": "lake.gate",
    "date": "2024-05-17",
    "headline": "blocked: gate lake.gate, dataset orders, date 2024-05-17: 1 of 2 failed",
    "counts": {"passed": 1, "failed": 1, "skipped": 0, "errors": 0},
    "verdicts": [FAILED],
    "more_verdicts": 0,
}


class SummaryTask(FakeTask):
    """A task instance that left a summary, or nothing."""

    left: object = None

    def xcom_pull(self, *, task_ids: str, key: str, map_indexes: int) -> object:
        assert (task_ids, key, map_indexes) == (self.task_id, "dqx_report", self.map_index)
        if isinstance(self.left, Exception):
            raise self.left
        return self.left


@pytest.fixture(autouse=True)
def base_url(airflow_environment: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.com")


Notification = Callable[..., Any]


@pytest.fixture
def notification_for(operators: ModuleType) -> Notification:
    """Gives the notification of a task with this summary."""

    def notification(left: object, exception: object = None) -> Any:
        task = SummaryTask()
        task.left = left
        return operators.gate_notification({"ti": task, "exception": exception})

    return notification


def test_a_notification_has_the_failures_and_links(notification_for: Notification) -> None:
    notification = notification_for(BLOCKED)
    assert notification.text == BLOCKED["headline"]
    page = (DOCS / "notifications.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```text\n(.*?)^```$", page, re.M | re.S)
    assert f"{notification.markdown}\n" == shown
    assert (
        "<b>orders.customer_id.present</b> 3 rows violate `customer_id &gt; 0`" in notification.html
    )
    assert notification.payload["outcome"] == "blocked"
    assert notification.payload["report"] == BLOCKED
    assert notification.payload["url"].endswith(
        "/dags/lake/runs/manual__1/tasks/gate/plugin/dqx-gate"
    )
    incident = "/dqx/incident?dag_id=lake&task_id=gate&date=2024-05-17"
    assert notification.payload["incident_url"].endswith(incident)
    assert json.loads(json.dumps(notification.payload)) == notification.payload


def test_a_notification_names_the_group_and_says_in_words_that_there_is_no_value(
    notification_for: Notification,
) -> None:
    rows = {
        **FAILED,
        "expression": "num_rows()",
        "scaled_value": 0,
        "expected": "> 0 for each store",
    }
    of_group = {**rows, "worst_group": '"basel"'}
    notification = notification_for(
        {**BLOCKED, "verdicts": [of_group, {**FAILED, "scaled_value": None}]}
    )
    assert '`num_rows() is 0 for "basel", expected > 0 for each store`' in notification.markdown
    assert (
        "`each row: customer_id > 0 has no value, expected == 0 violating rows`"
        in notification.markdown
    )


def test_a_notification_has_the_contacts_of_the_contract(notification_for: Notification) -> None:
    people = {
        "owner": "sales",
        "channel": "#sales",
        "incident response": "page",
        "runbook": "https://wiki.example.com/orders",
        "business hours": "9x5",
    }
    contract = {"id": "orders", "version": "2.3.0", "responsible": people}
    notification = notification_for({**BLOCKED, "contract": contract})
    for name, text in people.items():
        assert text in "\n".join(
            line for line in notification.markdown.splitlines() if name in line
        )
        assert text in notification.html
    assert notification.payload["report"]["contract"]["responsible"] == people
    passed = notification_for(
        {**BLOCKED, "outcome": "passed", "verdicts": [], "contract": contract}
    )
    assert "runbook" not in passed.markdown


def test_without_a_report_the_notification_has_the_error(notification_for: Notification) -> None:
    notification = notification_for(None, RuntimeError("no report in /results:\nSpark failed"))
    assert (
        notification.text
        == "no report: gate lake.gate, run manual__1: no report in /results: Spark failed"
    )
    assert notification.markdown.startswith(
        "Gate `lake.gate` no report: no report in /results: Spark"
    )
    assert notification.payload["outcome"] == "no report"
    assert notification.payload["report"] is None
    assert notification.payload["error"] == "no report in /results: Spark failed"


def test_without_a_base_url_there_is_no_link(
    notification_for: Notification, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIRFLOW__API__BASE_URL")
    notification = notification_for(BLOCKED)
    assert notification.payload["url"] is None
    assert "/dags/" not in notification.markdown + notification.html


def test_an_unreadable_summary_still_gives_a_notification(notification_for: Notification) -> None:
    assert (
        notification_for(OSError("gone")).text
        == "no report: gate lake.gate, run manual__1: see its log"
    )


def test_the_failures_of_one_cause_are_one_line(notification_for: Notification) -> None:
    names = ("orders.rows", "orders.amount", "orders.nulls", "items.rows")
    causes = (1, 1, 2, 1)
    verdicts = [
        {**FAILED, "assertion": name, "cause": cause}
        for name, cause in zip(names, causes, strict=True)
    ]
    counts = {"passed": 1, "failed": 4, "skipped": 0, "errors": 0}
    notification = notification_for(
        {**BLOCKED, "verdicts": verdicts, "counts": counts, "causes": 2}
    )
    assert "4 of 5 assertions failed (2 causes)" in notification.markdown
    lines = [line for line in notification.markdown.splitlines() if line.startswith("- ")]
    assert [line.split("`")[1] for line in lines] == ["orders.rows", "orders.nulls"]
    assert lines[0].endswith("; one cause with `orders.amount, items.rows`")
    assert "one cause with orders.amount, items.rows" in notification.html


def test_the_worst_failures_are_listed_and_the_rest_counted(notification_for: Notification) -> None:
    many = {**BLOCKED, "verdicts": [{**FAILED, "assertion": f"a{n}"} for n in range(20)]}
    notification = notification_for({**many, "more_verdicts": 7})
    assert "- P0 `a4` `3 rows violate 'customer_id > 0'`\n- and 22 more\n" in notification.markdown
    assert "<li>and 22 more</li>" in notification.html


def test_an_unevaluated_assertion_is_listed_with_its_reason(notification_for: Notification) -> None:
    broken = {**FAILED, "status": "error", "scaled_value": None, "reason": "no column idd"}
    counts = {"passed": 0, "failed": 0, "skipped": 0, "errors": 1}
    notification = notification_for(
        {**BLOCKED, "outcome": "broken", "counts": counts, "verdicts": [broken]}
    )
    assert (
        "broken: data of 2024-05-17: 0 of 1 assertions failed, 1 could not" in notification.markdown
    )
    assert "`orders.customer_id.present` `no column idd`" in notification.markdown


@pytest.mark.parametrize(
    "text",
    ["<!channel>", "<@U123>", "<https://evil.example|look>", "`@everyone`", "</b><script>", "a\nb"],
)
def test_names_and_values_stay_text(notification_for: Notification, text: str) -> None:
    hostile = {**FAILED, "assertion": text, "scaled_value": text, "expected": text}
    notification = notification_for(
        {**BLOCKED, "gate": text, "headline": text, "verdicts": [hostile]}
    )
    assert not re.search(r"<[!@h/]", notification.markdown)
    outside = re.sub(r"`[^`\n]*`", "", notification.markdown)
    assert "everyone" not in outside
    assert "script" not in outside
    assert "<script" not in notification.html
    assert notification.markdown.count("\n") == 3
    assert "\n" not in notification.text


def test_a_notification_is_bounded(notification_for: Notification) -> None:
    long = dict.fromkeys(("assertion", "scaled_value", "expected", "reason"), "x" * 200)
    verdicts = [{**FAILED, **long}] * 20
    blocked = {**BLOCKED, "headline": "x" * 1000, "gate": "x" * 200, "verdicts": verdicts}
    notification = notification_for(blocked)
    assert len(notification.text) <= 300
    assert len(notification.markdown) < 3000
    assert len(notification.html) < 4000


DAG_FILE = """
from datetime import datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG, BaseNotifier

from dqx_airflow.operators import DqlGateOperator, gate_notification, notify_with


class Note(BaseNotifier):
    template_fields = ("text",)

    def __init__(self, text):
        super().__init__()
        self.text = text

    def notify(self, context):
        with Path("NOTES").open("a") as notes:
            notes.write(self.text + chr(10))


def fails(context):
    raise RuntimeError("no network")


warned = [fails, notify_with(lambda sent: Note("warning: " + sent.text + " {{ 7 * 7 }}"))]

with DAG("DAG_ID", start_date=datetime(2024, 1, 1), schedule=None):
    DqlGateOperator(
        task_id="gate",
        suite="orders.dql",
        datasets={"orders": "/lake/orders"},
        on_violation="ON_VIOLATION",
        on_warning_callback=warned,
        on_failure_callback=notify_with(lambda notification: Note("failure: " + notification.text)),
        on_skipped_callback=Note("skipped: {{ ti.task_id }}"),
    )
"""


Notes = Callable[[str], tuple[str, list[str]]]


@pytest.fixture
def notes(run_file: Callable[..., Run], tmp_path: Path) -> Notes:
    """Runs a gate; returns the state of its task and the notes of its callbacks."""

    def run(on_violation: str) -> tuple[str, list[str]]:
        path = tmp_path / "notes"
        path.touch()
        text = DAG_FILE.replace("NOTES", str(path)).replace("ON_VIOLATION", on_violation)
        ended = run_file(text, {"orders.dql": SUITE})
        return ended["gate"], path.read_text().splitlines()

    return run


@pytest.mark.parametrize(
    ("spark", "on_violation", "state", "sent"),
    [
        ("passed", "fail", "success", []),
        ("warned", "fail", "success", ["warning: warned: gate "]),
        ("blocked", "fail", "failed", ["failure: blocked: gate "]),
        ("blocked", "skip", "skipped", ["skipped: gate"]),
        ("blocked", "warn", "success", ["warning: blocked: gate "]),
    ],
)
def test_each_outcome_has_its_callback_and_one_that_fails_is_ignored(
    notes: Notes, spark_submit: SparkSubmit, spark: str, on_violation: str, state: str, sent: Any
) -> None:
    spark_submit.will(spark)
    found, texts = notes(on_violation)
    assert found == state
    assert [text[: len(start)] for text, start in zip(texts, sent, strict=True)] == sent
    for text in texts:
        is_of_notification = text.startswith("warning: ")
        assert text.endswith("{{ 7 * 7 }}") == is_of_notification, (
            "it is never rendered as a template"
        )


@needs_airflow(3, 3)
def test_a_gate_without_a_report_sends_its_error(notes: Notes, spark_submit: SparkSubmit) -> None:
    spark_submit.will("exit=1")
    state, (note,) = notes("fail")
    assert state == "failed"
    assert note.startswith("failure: no report: gate ")
    assert "the Spark job failed (exit code 1)" in note


class _Mailbox(socketserver.StreamRequestHandler):
    """Enough of SMTP to take a mail."""

    def handle(self) -> None:
        self.wfile.write(b"220 ready\r\n")
        for line in self.rfile:
            verb = line.strip().upper()
            if verb.startswith(b"EHLO"):
                self.wfile.write(b"250 here\r\n")
            elif verb == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                body = b"".join(iter(self.rfile.readline, b".\r\n"))
                self.server.mails.append(message_from_bytes(body, policy=policy.default))  # type: ignore[attr-defined]
                self.wfile.write(b"250 taken\r\n")
            elif verb == b"QUIT":
                self.wfile.write(b"221 bye\r\n")
                return
            else:
                self.wfile.write(b"250 fine\r\n")


@pytest.fixture
def mails(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The mails that arrive at `smtp_default`."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Mailbox) as server:
        server.mails = []  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        connection = {
            "conn_type": "smtp",
            "host": "127.0.0.1",
            "port": server.server_address[1],
            "extra": {"disable_ssl": True, "disable_tls": True, "from_email": "gates@example.com"},
        }
        monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", json.dumps(connection))
        yield server.mails  # type: ignore[attr-defined]
        server.shutdown()


@pytest.mark.parametrize(
    ("outcome", "state", "reader"),
    [("blocked", "failed", "on-call@example.com"), ("warned", "success", "data-team@example.com")],
)
def test_the_example_emails_failures_and_warnings(
    run_file: Callable[..., Run],
    spark_submit: SparkSubmit,
    mails: list[Any],
    outcome: str,
    state: str,
    reader: str,
) -> None:
    spark_submit.will(outcome)
    text = shipped("dags_examples/orders_notifications.py").read_text(encoding="utf-8")
    assert run_file(text.replace("orders_notifications", "DAG_ID"))["gate"] == state
    (mail,) = mails
    assert mail["To"] == reader
    assert str(mail["Subject"]).startswith(f"{outcome}: gate ")
    assert "Report</a>" in mail.get_body(("html",)).get_content()


def test_the_webhook_of_the_docs_posts(
    run_file: Callable[..., Run], spark_submit: SparkSubmit
) -> None:
    spark_submit.will("warned")
    page = (DOCS / "notifications.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    (text,) = (block for block in blocks if "def post(context)" in block)
    posted: list[Any] = []

    def answer(asked: Asked) -> Reply:
        posted.append(asked.json())
        return Reply()

    with http_stub(answer) as address:
        text = text.replace("https://chat.example.com", address)
        run = run_file(text.replace('DAG("orders")', 'DAG("DAG_ID")'), {"orders.dql": SUITE})
    assert run["gate"] == "success"
    (message,) = posted
    assert message["text"].startswith("Gate `")
    assert message["gate"]["outcome"] == "warned"


def report_of(outcome: str, minute: int, map_index: int = -1) -> GateReport:
    """The report of a gate, ended at a minute of an hour."""
    at = datetime(2024, 5, 17, 6, minute, tzinfo=timezone.utc)
    scheduler_run = f"run_{minute}" + (f"[{map_index}]" if map_index >= 0 else "")
    return report_at(
        at,
        run_id=str(UUID(int=minute * 100 + map_index + 1, version=4)),
        run_key=RunKey("lake.gate", at.date(), scheduler_run),
        attempt=Attempt(1, f"{minute}.{map_index}"),
        outcome=Outcome(outcome),
    )


@pytest.mark.parametrize(
    ("before", "now", "is_sent"),
    [
        ([], "blocked", True),
        ([], "passed", False),
        (["passed"], "blocked", True),
        (["blocked"], "blocked", False),
        (["passed", "blocked"], "broken", False),
        (["blocked"], "passed", True),
        (["blocked"], "warned", True),
        (["blocked", "passed"], "passed", False),
    ],
)
def test_a_change_of_state_is_sent_once(
    operators: ModuleType, tmp_path: Path, before: list[str], now: str, is_sent: bool
) -> None:
    from dqx_airflow.operators.summary import summary

    store = ResultsStore(str(tmp_path / "results"))
    for minute, outcome in enumerate(before):
        store.write(report_of(outcome, minute))
    own = report_of(now, len(before))
    store.write(own)
    store.write(report_of("blocked" if now == "passed" else "passed", 50))  # after it
    assert sent_of(operators, summary(own)) == is_sent


def failing(report: GateReport, *names: str, severity: Severity = Severity.P0) -> GateReport:
    """The report, with assertions of these names that failed."""
    verdicts = tuple(
        Verdict(name, "c", ("orders",), "num_rows()", "> 0", severity, Status.FAILED, 0)
        for name in names
    )
    return replace(report, verdicts=(*report.verdicts, *verdicts))


def part_of(report: GateReport, suite: str, attempt: str, on: int = 17) -> GateReport:
    """The report as one of several suites or dates that an attempt judged."""
    key = replace(report.run_key, gate=f"lake.gate/{suite}", date=date(2024, 5, on))
    key = replace(key, scheduler_run=attempt)
    return replace(report, run_key=key, suite=suite, attempt=Attempt(1, attempt))


@pytest.fixture
def changed(operators: ModuleType, tmp_path: Path) -> Notification:
    """The notification after these attempts, each of one or several reports; or None."""

    def notification(*attempts: Sequence[GateReport]) -> Any:
        from dqx_airflow.operators.outcome import combined_report
        from dqx_airflow.operators.summary import summaries_of_parts, summary

        store = ResultsStore(str(tmp_path / "results"))
        for reports in attempts:
            for report in reports:
                store.write(report)
        own = combined_report(attempts[-1], "lake.gate")
        return notification_of(operators, {**summary(own), **summaries_of_parts(attempts[-1])})

    return notification


def test_a_notification_names_the_dates_without_promoted_rows(changed: Notification) -> None:
    target = DatasetSnapshot("orders", "/o", "delta", condition="d", promote_to="/p")
    done = replace(target, promotion=Promotion("/p", 3, 9))
    good = replace(part_of(report_of("passed", 1), "One", "r"), datasets=(done,))
    bad = replace(
        part_of(failing(report_of("blocked", 2), "a"), "One", "r", 18), datasets=(target,)
    )
    notification = changed([good, bad])
    assert notification.text.startswith("blocked: no rows promoted (orders of 2024-05-18); gate")
    assert "no rows promoted: orders of 2024-05-18" in notification.markdown
    assert notification.payload["report"]["promoted"] == {"orders": 3}
    let = replace(bad, datasets=(replace(target, promotion=Promotion("/p", 4, 9, True)),))
    assert "promoted although blocked: orders" in changed([good, let]).markdown


def test_one_more_assertion_that_fails_is_a_change(changed: Notification) -> None:
    bad = [failing(report_of("blocked", 1), "a")]
    assert changed(bad, [failing(report_of("blocked", 2), "a")]) is None
    warned = failing(report_of("blocked", 3), "w", severity=Severity.P3)
    assert changed([failing(warned, "a")]) is None
    assert changed([failing(report_of("blocked", 4), "a", "b")]) is not None
    assert changed([failing(report_of("blocked", 5), "b")]) is None


def test_a_change_is_that_of_all_suites_and_dates_together(changed: Notification) -> None:
    def attempt(minute: int, first: str, second: str) -> list[GateReport]:
        reports = report_of(first, minute), report_of(second, minute + 1)
        one, two = (
            failing(report, name) if report.outcome is Outcome.BLOCKED else report
            for name, report in zip("ab", reports, strict=True)
        )
        return [part_of(one, "One", f"r{minute}"), part_of(two, "Two", f"r{minute}")]

    assert changed(attempt(1, "passed", "blocked")).payload["outcome"] == "blocked"
    assert changed(attempt(3, "passed", "blocked")) is None
    recovered = changed(attempt(5, "passed", "passed"))
    assert recovered.text.startswith("recovered, passed: gate lake.gate")
    assert changed(attempt(7, "passed", "passed")) is None


def test_a_blocked_range_of_dates_is_sent_once(changed: Notification) -> None:
    def dates(minute: int) -> list[GateReport]:
        reports = [failing(report_of("blocked", minute + on), "a") for on in range(2)]
        parts = [part_of(report, "One", f"r{minute}", 16 + on) for on, report in enumerate(reports)]
        return [
            replace(report, run_key=replace(report.run_key, gate="lake.gate")) for report in parts
        ]

    notification = changed(dates(1))
    assert notification.payload["incident_url"].endswith("&date=2024-05-16")
    assert changed(dates(3)) is None


def test_a_recovery_is_sent_and_a_partial_pass_is_not_one(changed: Notification) -> None:
    partial = PartialRun(selection=Selection(only=("a",)), selected=1, assertions=2)
    part = replace(report_of("passed", 2), partial=partial)
    assert changed([report_of("blocked", 1)], [part]) is None
    notification = changed([report_of("passed", 3)])
    assert notification.markdown.startswith("Gate `lake.gate` recovered, passed: ")
    assert notification.payload["recovered"]
    assert notification.payload["incident_url"].endswith(
        "?dag_id=lake&task_id=gate&date=2024-05-17"
    )


@pytest.mark.parametrize("severity", [Severity.P0, Severity.P1])
def test_a_pass_with_a_failure_as_severe_as_before_is_sent_as_what_it_is(
    changed: Notification, severity: Severity
) -> None:
    """By a waiver, or since the gate is less strict now."""
    bad = failing(report_of("blocked", 1), "a", severity=severity)
    let = failing(report_of("warned", 2), "a", severity=severity)
    notification = changed([bad], [let])
    assert notification.text.startswith("warned: gate lake.gate")
    assert not notification.payload["recovered"]
    assert notification.payload["incident_url"].endswith("&date=2024-05-17")
    bad = failing(report_of("blocked", 3), "a", severity=severity)
    milder = failing(report_of("warned", 4), "a", severity=Severity.P2)
    assert changed([bad], [milder]).payload["recovered"]
    bad = failing(report_of("blocked", 5), "a", severity=severity)
    tried = failing(report_of("warned", 6), "drafted", severity=severity)
    of_experiment = tuple(replace(one, is_experimental=True) for one in tried.verdicts)
    assert changed([bad], [replace(tried, verdicts=of_experiment)]).payload["recovered"]


def test_what_is_accepted_after_a_question_is_a_recovery_and_what_is_void_is_no_news(
    changed: Notification,
) -> None:
    asked = failing(report_of("blocked", 1), "a")
    assert changed([asked]).payload["outcome"] == "blocked"
    again = failing(replace(report_of("blocked", 2), run_key=asked.run_key), "a")
    void = replace(again, attempt=asked.attempt, answered="2024-05-17T06:02:00")
    assert changed([void]) is None
    after = replace(report_of("accepted", 3), run_key=asked.run_key, attempt=asked.attempt)
    notification = changed([replace(after, answered="2024-05-17T06:03:00")])
    assert notification.text.startswith("recovered, accepted: gate lake.gate")


def test_a_good_date_is_no_recovery_of_another_one(changed: Notification) -> None:
    def run(outcome: str, minute: int, on: int, store: str = "zurich") -> list[GateReport]:
        report = report_of(outcome, minute)
        report = failing(report, "a") if outcome == "blocked" else report
        key = replace(report.run_key, date=date(2024, 5, on))
        return [replace(report, run_key=key, slice=json.dumps({"rows": {"store": store}}))]

    assert changed(run("blocked", 1, 17)) is not None
    assert changed(run("passed", 2, 18)) is None
    other = changed(run("blocked", 3, 18))
    assert other.payload["incident_url"].endswith("&date=2024-05-18")
    assert changed(run("passed", 4, 17, "basel")) is None
    assert changed(run("blocked", 5, 17)) is None
    recovered = changed(run("passed", 6, 17))
    assert recovered.payload["recovered"]
    assert recovered.payload["incident_url"].endswith("&date=2024-05-17")
    assert changed(run("passed", 7, 17)) is None


class AfterFailure(SummaryTask):
    """A task instance after one that failed in an earlier run of the DAG."""

    max_tries = 0
    failed: tuple[str, int] | None = None

    def get_previous_ti(self, *, state: str, map_index: int) -> object:
        assert (state, map_index) == ("failed", self.map_index)
        if self.failed is None:
            return None
        run_id, minute = self.failed
        ended = datetime(2024, 5, 17, 6, minute, 30, tzinfo=timezone.utc)
        return SimpleNamespace(run_id=run_id, end_date=ended)


@pytest.mark.parametrize(
    ("failed", "cleared", "is_sent"),
    [
        (("run_3", 3), 0, True),  # after the last report
        (("run_1", 1), 0, False),  # a run that has a report passed since
        (None, 0, False),
        (None, 1, True),  # a task that was cleared
        (None, 4, False),  # it was cleared after a try with a report
    ],
)
def test_a_pass_after_a_failure_without_a_report_is_a_recovery(
    operators: ModuleType,
    tmp_path: Path,
    failed: tuple[str, int] | None,
    cleared: int,
    is_sent: bool,
) -> None:
    from dqx_airflow.operators.summary import summary

    store = ResultsStore(str(tmp_path / "results"))
    own = replace(report_of("passed", 5), attempt=Attempt(5, "5"))
    key = own.run_key if cleared == 4 else report_of("passed", 2).run_key
    store.write(replace(report_of("passed", 2), run_key=key, attempt=Attempt(4, "4")))
    store.write(own)
    task = AfterFailure()
    task.left, task.failed, task.max_tries = summary(own), failed, cleared
    notification = notification_after(operators, task)
    assert (notification is not None) == is_sent
    if notification is not None:
        assert notification.text.startswith("recovered, passed: ")
        assert notification.payload["incident_url"] is None


@pytest.mark.slow
@needs_airflow(3, 2)
def test_a_recovery_from_a_failure_without_a_report_in_airflow(
    run_file: Callable[..., Run], spark_submit: SparkSubmit, tmp_path: Path
) -> None:
    path = tmp_path / "notes"
    callback = 'notify_on_change(lambda notification: Note("change: " + notification.text))'
    text = DAG_FILE.replace("NOTES", str(path)).replace("ON_VIOLATION", "fail")
    text = text.replace("notify_with", "notify_on_change")
    text = text.replace(
        "on_skipped_callback=", f"on_success_callback={callback}, on_skipped_callback="
    )
    spark_submit.will("exit=1", "passed")
    states = [run_file(text, {"orders.dql": SUITE})["gate"] for _ in range(3)]
    assert states == ["failed", "success", "success"]
    failure, recovery = path.read_text().splitlines()
    assert failure.startswith("failure: no report: ")
    assert recovery.startswith("change: recovered, passed: ")


def sent_of(operators: ModuleType, left: object, map_index: int = -1) -> bool:
    """Whether the notification of a task that left this is sent."""
    return notification_of(operators, left, map_index) is not None


def notification_of(operators: ModuleType, left: object, map_index: int = -1) -> Any:
    """The notification that is sent of a task that left this; or None."""
    task = SummaryTask()
    task.left = left
    task.map_index = map_index
    return notification_after(operators, task)


def notification_after(operators: ModuleType, task: SummaryTask) -> Any:
    """The notification that is sent of a task; or None."""
    sent: list[Any] = []

    class Notifier:
        def __init__(self, notification: Any) -> None:
            self.notification = notification

        def notify(self, context: Any) -> None:
            sent.append(self.notification)

    operators.notify_on_change(Notifier)({"ti": task, "exception": None})
    assert len(sent) < 2
    return sent[0] if sent else None


def test_a_change_is_that_of_the_same_map_index(operators: ModuleType, tmp_path: Path) -> None:
    from dqx_airflow.operators.summary import summary

    store = ResultsStore(str(tmp_path / "results"))
    store.write(report_of("blocked", 1, 0))
    own = report_of("blocked", 2, 1)
    store.write(own)
    assert sent_of(operators, summary(own), 1)


@pytest.mark.parametrize("left", [None, {"outcome": "no report", "error": "Spark failed"}])
def test_without_a_report_or_a_store_the_notification_is_sent(
    operators: ModuleType, monkeypatch: pytest.MonkeyPatch, left: object
) -> None:
    from dqx_airflow.operators.summary import summary

    monkeypatch.delenv("AIRFLOW__DQX__RESULTS_ROOT", raising=False)
    assert sent_of(operators, left)
    assert sent_of(operators, summary(report_of("passed", 1)))


PROMISE = """apiVersion: v3.1.0
kind: DataContract
id: orders
version: 1.0.0
status: active
schema:
  - name: orders
    properties:
      - {name: at, logicalType: timestamp}
slaProperties:
  - {property: freshness, value: 2, unit: d, element: orders.at}
  - {property: freshness, value: 30, unit: h, element: orders.at}
  - {property: latency, value: 1, unit: h, element: orders.at}
"""
DCS_PROMISE = """dataContractSpecification: 1.2.1
id: orders
info: {title: Orders, version: 1.0.0}
models: {orders: {fields: {at: {type: timestamp}}}}
servicelevels:
  freshness: {threshold: 36h, timestampField: orders.at}
"""


@needs_airflow(3, 1)
@pytest.mark.parametrize(
    ("contract", "found"),
    [
        (PROMISE, "30 hours"),
        (DCS_PROMISE, "36 hours"),
        (PROMISE.replace("freshness", "frequency"), "contract orders.yaml has no freshness: "),
        (PROMISE.replace("kind:", "kind"), "contract orders.yaml has an error:"),
        (PROMISE.replace("orders.at", "orders.ds"), "contract orders.yaml has 3 errors:"),
        ("", "contract orders.yaml not found: "),
    ],
)
def test_a_deadline_is_the_shortest_freshness_of_a_contract(
    operators: ModuleType, tmp_path: Path, contract: str, found: str
) -> None:
    from airflow.sdk.definitions.deadline import AsyncCallback

    if contract:
        (tmp_path / "orders.yaml").write_text(contract)
    scope = {"ask": operators.contract_deadline, "callback": AsyncCallback("lake.notify")}
    call = compile("ask('orders.yaml', callback)", str(tmp_path / "dag.py"), "eval")
    try:
        shown = f"{eval(call, scope).interval.total_seconds() / 3600:g} hours"
    except operators.GateMisconfiguredError as error:
        shown = str(error)
    assert shown.startswith(found)


@needs_airflow(3, 3)  # earlier ones create the run of a DAG in other ways
def test_the_deadline_of_the_page_belongs_to_each_run_of_the_dag(
    operators: ModuleType, airflow_database: None, tmp_path: Path
) -> None:
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.models.deadline import Deadline
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.serialization.serialized_objects import LazyDeserializedDAG
    from airflow.utils.session import create_session
    from airflow.utils.state import DagRunState
    from airflow.utils.types import DagRunTriggeredByType, DagRunType
    from sqlalchemy import select

    page = (DOCS / "notifications.md").read_text(encoding="utf-8")
    (text,) = (
        code
        for code in re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
        if "contract_deadline" in code
    )
    (tmp_path / "orders.odcs.yaml").write_text(PROMISE)
    text = text.replace('"orders",', '"late_orders",', 1)
    file = tmp_path / "dag.py"
    file.write_text(text)
    scope: dict[str, Any] = {"__file__": str(file), "__name__": "dag"}
    exec(compile(text, str(file), "exec"), scope)
    on = datetime(2024, 5, 17, tzinfo=timezone.utc)
    with create_session() as session:
        if session.get(DagBundleModel, "late") is None:
            session.add(DagBundleModel(name="late"))
            session.flush()
        dag = scope["gate"].dag
        session.merge(DagModel(dag_id="late_orders", bundle_name="late"))
        session.flush()
        SerializedDagModel.write_dag(LazyDeserializedDAG.from_dag(dag), "late", session=session)
        session.flush()
        stored = session.scalar(SerializedDagModel.latest_item_select_object("late_orders"))
        run = stored.dag.create_dagrun(
            run_id="late",
            logical_date=on,
            run_after=on,
            data_interval=(on, on),
            run_type=DagRunType.SCHEDULED,
            triggered_by=DagRunTriggeredByType.TIMETABLE,
            state=DagRunState.RUNNING,
            session=session,
        )
        session.flush()
        (deadline,) = session.scalars(select(Deadline).where(Deadline.dagrun_id == run.id))
        assert deadline.deadline_time == datetime(2024, 5, 18, 6, tzinfo=timezone.utc)
        deadline.handle_miss(session)
        given = dict(deadline.callback.data["kwargs"])
        assert subject_with(given.pop("context"), **given) == LATE.format("late")
        session.rollback()


LATE = "The data of {} is late: its gate has not let it through in time."


def subject_with(context: dict[str, Any], **given: Any) -> str:
    """The subject of an email after a missed deadline, as the triggerer renders it."""
    from airflow.providers.smtp.notifications.smtp import SmtpNotifier

    notifier = SmtpNotifier(**given)
    notifier.render_template_fields(context)
    return str(notifier.subject)


def test_the_email_of_the_deadline_on_the_page_names_the_run(airflow_settings: object) -> None:
    from airflow.api_fastapi.core_api.datamodels.dag_run import DAGRunResponse

    page = (DOCS / "notifications.md").read_text(encoding="utf-8")
    (text,) = re.findall(r'^TEXT = "(.*)"$', page, re.M)
    # Airflow gives the callback of a deadline this dictionary, not the run itself.
    run = {name: f"<{name}>" for name in DAGRunResponse.model_fields}
    made = subject_with({"dag_run": run}, to="on-call@example.com", subject=text, html_content="")
    assert made == LATE.format("<dag_run_id>")


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1])
def test_the_emails_of_the_page_are_sent(
    run_file: Callable[..., Run], spark_submit: SparkSubmit, mails: list[Any], number: int
) -> None:
    page = (DOCS / "notifications.md").read_text(encoding="utf-8")
    text = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)[number]
    assert "SmtpNotifier" in text
    spark_submit.will("blocked")
    run = run_file(text.replace('DAG("orders")', 'DAG("DAG_ID")'), {"orders.dql": SUITE})
    assert run["gate"] == "failed"
    (mail,) = mails
    assert mail["To"] == "data-team@example.com"
    assert str(mail["Subject"]).startswith("blocked: gate ")
