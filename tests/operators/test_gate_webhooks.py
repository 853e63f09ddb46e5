"""Webhooks: which events a gate sends about its incidents, in which form, and how a real server
gets them."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import logging
import re
import shlex
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from gate_stubs import SUITE, FakeTask, Run, SparkSubmit, dag_file
from http_stub import Asked, Reply, http_stub
from made_reports import report_at, verdict_of

from dqx_airflow.results.store import ResultsStore
from dqx_airflow.values import Attempt, GateReport, Outcome, RunKey, Status
from dqx_airflow.values.report import Acceptance

pytestmark = pytest.mark.airflow

PAGE = Path(__file__).parents[2] / "dqx_airflow" / "docs" / "webhooks.md"
SECRET = "whsec_" + base64.b64encode(b"a secret of thirty-two characters").decode()
MONDAY = date(2024, 5, 13)


@dataclass
class Hook:
    """A server that answers with these statuses, one after the other; 0 is no answer at all, and a
    redirect leads to another place of it. `posted` are the headers and the bodies."""

    address: str = ""
    statuses: list[int] = field(default_factory=lambda: [200])
    posted: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)

    def answer(self, asked: Asked) -> Reply | None:
        self.posted.append((dict(asked.headers.items()), asked.body))
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        if status == 0:
            self.is_over.wait(30)
            return None
        return Reply(status, headers={"Location": "/elsewhere"} if status // 100 == 3 else {})


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch, airflow_environment: None) -> Iterator[Hook]:
    """The connection `hook` leads there."""
    found = Hook()
    with http_stub(found.answer) as address:
        found.address = f"{address}/secret"
        connected(monkeypatch, found.address)
        monkeypatch.setenv("AIRFLOW__DQX__WEBHOOK_CONN_ID", "hook")
        monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.com")
        yield found
        found.is_over.set()


def connected(monkeypatch: pytest.MonkeyPatch, address: str, **given: Any) -> None:
    """Makes a connection `hook` to an address."""
    connection = {"conn_type": "http", "host": address, "password": SECRET, **given}
    monkeypatch.setenv("AIRFLOW_CONN_HOOK", json.dumps(connection))


class SummaryTask(FakeTask):
    left: object = None

    def xcom_pull(self, **_: object) -> object:
        return self.left


@pytest.fixture
def ended(operators: ModuleType, tmp_path: Path) -> Callable[..., None]:
    """Ends a task of the gate with reports, as its callback sees it."""
    from dqx_airflow.operators.notices import sender
    from dqx_airflow.operators.outcome import combined_report, summaries_of_parts, summary
    from dqx_airflow.operators.results_location import ResultsLocation

    def end(*reports: GateReport) -> None:
        for report in reports:
            ResultsStore(str(tmp_path / "results")).write(report)
        report = combined_report(reports, "lake.gate")
        task = SummaryTask()
        task.left = {**summary(report), **summaries_of_parts(reports)}
        sender(reports, ResultsLocation(str(tmp_path / "results")))({"ti": task})

    return end


def report_of(number: int, *failed: str, on: date = MONDAY, **changes: Any) -> GateReport:
    """The report of the attempt `number`, in which assertions failed."""
    at = datetime(2024, 5, 17, 6, tzinfo=timezone.utc) + timedelta(minutes=number)
    verdicts = [verdict_of(name, check="C", status=Status.FAILED) for name in failed]
    facts = {
        "run_id": str(UUID(int=number * 100 + on.day, version=4)),
        "run_key": RunKey("lake.gate", on, f"run_{number}"),
        "attempt": Attempt(1, str(number)),
        "outcome": Outcome.BLOCKED if failed else Outcome.PASSED,
        "verdicts": tuple(verdicts),
    }
    return report_at(at, **{**facts, **changes})


def waived(number: int) -> GateReport:
    report = report_of(number, "a", outcome=Outcome.WARNED)
    return replace(report, verdicts=tuple(replace(v, waived_by="w") for v in report.verdicts))


def accepted(number: int) -> GateReport:
    by = Acceptance("x", "ada", "known", datetime(2024, 5, 17, tzinfo=timezone.utc))
    return report_of(number, "a", outcome=Outcome.ACCEPTED, accepted=by)


def events_of(hook: Hook) -> list[dict[str, Any]]:
    return [json.loads(body) for _, body in hook.posted]


TUESDAY = MONDAY + timedelta(days=1)


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ([report_of(1)], []),
        ([report_of(1, "a"), report_of(2, "a")], ["opened 13 trigger"]),
        (
            [report_of(1, "a"), report_of(2, "a", "b"), report_of(3), report_of(4)],
            ["opened 13 trigger", "changed 13 trigger", "recovered 13 resolve"],
        ),
        ([report_of(1, "a"), report_of(2, "b")], ["opened 13 trigger", "changed 13 trigger"]),
        ([report_of(1, "a"), accepted(2)], ["opened 13 trigger", "accepted 13 resolve"]),
        ([report_of(1, "a"), waived(2)], ["opened 13 trigger", "waived 13 resolve"]),
        ([report_of(1, "a"), report_of(2, on=TUESDAY)], ["opened 13 trigger"]),
        (
            [
                (report_of(1, "a"), report_of(1, "a", on=TUESDAY)),
                (report_of(2), report_of(2, "a", on=TUESDAY)),
            ],
            ["opened 14 trigger", "opened 13 trigger", "recovered 13 resolve"],
        ),
    ],
    ids=[
        "fine",
        "still bad",
        "worse, then good",
        "another assertion",
        "accepted",
        "waived",
        "another date",
        "two dates",
    ],
)
def test_an_event_says_what_changed_about_the_incident_of_a_slice(
    hook: Hook, ended: Callable[..., None], tasks: Sequence[Any], expected: list[str]
) -> None:
    for task in tasks:
        ended(*(task if isinstance(task, tuple) else (task,)))
    events = events_of(hook)
    told = [
        f"{event['type'].removeprefix('incident.')} {data['date'][-2:]} {data['action']}"
        for event in events
        for data in [event["data"]]
    ]
    assert told == expected
    incidents = {
        event["data"]["incident"] for event in events if event["data"]["date"].endswith("13")
    }
    assert incidents <= {report_of(1).run_id}, "all events of an incident have its id"


def test_an_event_is_signed_and_says_where_to_look(hook: Hook, ended: Callable[..., None]) -> None:
    ended(report_of(1, "a"))
    ((headers, body),) = hook.posted
    scope: dict[str, Any] = {}
    (receiver,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    exec(receiver, scope)
    assert scope["is_genuine"](headers, body, SECRET)
    assert not scope["is_genuine"](headers, body + b" ", SECRET)
    assert not scope["is_genuine"]({**headers, "webhook-timestamp": "1"}, body, SECRET)
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    digest = hmac.new(base64.b64decode(SECRET[6:]), signed, hashlib.sha256).digest()
    assert headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"
    event = json.loads(body)
    assert event["data"]["gate"] == "lake.gate"
    assert event["data"]["outcome"] == "blocked"
    assert event["data"]["incident_url"].endswith("on=2024-05-13")


def test_an_event_is_repeated_until_it_is_taken(hook: Hook, ended: Callable[..., None]) -> None:
    hook.statuses = [500, 503, 200]
    ended(report_of(1, "a"))
    assert len(hook.posted) == 3
    assert len({(headers["webhook-id"], body) for headers, body in hook.posted}) == 1


@pytest.mark.parametrize(
    ("status", "reason", "most"),
    [(404, "HTTP 404", 1), (302, "HTTP 302", 1), (307, "HTTP 307", 1), (0, "UnfinishedError", 5)],
)
def test_what_is_not_taken_is_given_up_and_logged_without_the_address(
    hook: Hook,
    ended: Callable[..., None],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    reason: str,
    most: int,
) -> None:
    monkeypatch.setattr("dqx_airflow.operators.notices.TIME_BUDGET_S", 2.0)
    hook.statuses = [status]
    with caplog.at_level(logging.WARNING):
        ended(report_of(1, "a"))
    assert f"the webhook hook did not take an event: {reason}" in caplog.text
    assert "/secret" not in caplog.text
    assert 1 <= len(hook.posted) <= most


def test_a_dead_webhook_takes_nothing_from_the_others(
    hook: Hook,
    ended: Callable[..., None],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dqx_airflow.operators.notices.TIME_BUDGET_S", 8.0)
    with socket.create_server(("127.0.0.1", 0)) as full:
        refused = {"conn_type": "http", "host": f"http://127.0.0.1:{full.getsockname()[1]}/secret"}
    monkeypatch.setenv("AIRFLOW_CONN_DEAD", json.dumps(refused))
    monkeypatch.setenv("AIRFLOW__DQX__WEBHOOK_CONN_ID", "dead, hook, nowhere")
    before = time.monotonic()
    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.DEBUG, logger="urllib3"):
        ended(report_of(1, "a"))
    assert len(hook.posted) == 1
    assert "/secret" not in caplog.text
    assert "the webhook dead did not take" in caplog.text
    assert "the webhook nowhere did not take" in caplog.text
    assert time.monotonic() - before < 60, "bounded, on any machine"


def test_an_event_that_is_refused_keeps_no_other_back(
    hook: Hook, ended: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    hook.statuses = [400, 200]
    with caplog.at_level(logging.WARNING):
        ended(report_of(1, "a"), report_of(1, "a", on=TUESDAY))
    assert [event["data"]["date"][-2:] for event in events_of(hook)] == ["14", "13"]
    assert "the webhook hook did not take an event: HTTP 400" in caplog.text


@pytest.mark.parametrize("is_shown", [True, False])
def test_a_question_tells_only_if_it_is_shown(
    ended: Callable[..., None], monkeypatch: pytest.MonkeyPatch, is_shown: bool
) -> None:
    """Otherwise, the task fails, and its callbacks tell."""
    from airflow.sdk.execution_time import task_runner

    from dqx_airflow.operators.ask import ask

    class Comms:
        def send(self, msg: Any) -> Any:
            return SimpleNamespace(body=msg.body if is_shown else "that of the first try")

    told: list[object] = []
    task: Any = SummaryTask()
    task.id = UUID(int=1)
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", Comms(), raising=False)
    parked = pytest.raises(BaseException)  # noqa: PT011, another one in each version of Airflow
    with parked if is_shown else contextlib.nullcontext():
        ask([report_of(1, "a")], {"ti": task}, timeout=None, default="keep", before=told.append)
    assert len(told) == is_shown


def test_a_try_that_a_policy_repeats_tells_too(operators: ModuleType) -> None:
    from dqx_airflow.operators.notices import send_after

    task, told = SimpleNamespace(on_failure_callback=[print]), list[object]()
    for end in ("success", "retry", "skipped"):
        setattr(task, f"on_{end}_callback", None)
    send_after(task, told.append)
    assert task.on_retry_callback == [told.append]
    assert task.on_failure_callback == [print, told.append]


def recipes() -> dict[str, dict[str, Any]]:
    """The connections of the page."""
    found = {}
    for command in re.findall(r"^airflow connections add (.*?)^```", PAGE.read_text(), re.M | re.S):
        words = shlex.split(command.replace("\\\n", " "))
        given = dict(zip(words[1::2], words[2::2], strict=True))
        found[words[0]] = given
    return found


@pytest.mark.parametrize(
    ("name", "place", "expected"),
    [
        ("quality_slack", ("text",), "Gate `lake.gate` blocked: data of 2024-05-13"),
        (
            "quality_teams",
            ("attachments", 0, "content", "body", 0, "text"),
            "incident.opened: blocked: gate lake.gate",
        ),
        ("quality_pager", ("routing_key",), "INTEGRATION_KEY"),
        ("quality_pager", ("event_action",), "trigger"),
        ("quality_pager", ("dedup_key",), report_of(1).run_id),
        ("quality_pager", ("payload", "summary"), "blocked: gate lake.gate"),
    ],
)
def test_the_recipes_of_the_page_send_what_these_services_take(
    hook: Hook,
    ended: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    place: Sequence[Any],
    expected: str,
) -> None:
    given = recipes()[name]
    secret = given["--conn-password"]
    connected(
        monkeypatch,
        hook.address if "--conn-host" in given else "",
        password=secret if "--conn-host" in given else hook.address,
        extra=json.loads(given["--conn-extra"]),
    )
    ended(report_of(1, 'a "quoted" $name'))
    ((headers, body),) = hook.posted
    found = json.loads(body)
    for step in place:
        found = found[step]
    assert found.startswith(expected)
    assert "webhook-signature" not in headers


@pytest.mark.slow
def test_the_state_of_a_task_is_that_without_a_webhook(
    run_file: Callable[..., Run], spark_submit: SparkSubmit, hook: Hook
) -> None:
    spark_submit.will("blocked")
    hook.statuses = [500]
    text = dag_file("""
    DqlGateOperator(task_id="gate", suite="orders.dql", datasets={"orders": "/lake/orders"})
""")
    assert run_file(text, {"orders.dql": SUITE})["gate"] == "failed"
    event = events_of(hook)[0]
    assert event["type"] == "incident.opened"
    assert event["data"]["report"]["outcome"] == "blocked"
