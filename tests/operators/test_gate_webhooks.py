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

from dqx_airflow.results.store import ResultsStore
from dqx_airflow.values import Attempt, GateReport, Outcome, RunKey, Severity, Status
from dqx_airflow.values.report import Acceptance
from tests.http_stub import Asked, Reply, http_stub
from tests.json_heads import require_same_head
from tests.made_reports import report_at, verdict_of
from tests.operators.gate_stubs import SUITE, FakeTask, Run, SparkSubmit, dag_file

pytestmark = pytest.mark.airflow

PAGE = Path(__file__).parents[2] / "dqx_airflow" / "docs" / "notifications.md"
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
    from dqx_airflow.operators.outcome import combined_report
    from dqx_airflow.operators.results_location import ResultsLocation
    from dqx_airflow.operators.summary import summaries_of_parts, summary
    from dqx_airflow.operators.webhooks import sender

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


def less_strict(number: int) -> GateReport:
    return report_of(number, "a", outcome=Outcome.WARNED, fail_on=Severity.P0)


def with_mild_failures(number: int) -> GateReport:
    """The report of an attempt that "a" stops, in which assertions failed that stop nothing."""
    report = report_of(number, "a", "b", "c", "d")
    first, *others = report.verdicts
    mild = ({"is_experimental": True}, {"waived_by": "w"}, {"severity": Severity.P2})
    facts = zip(others, mild, strict=True)
    return replace(report, verdicts=(first, *(replace(one, **fact) for one, fact in facts)))


def accepted(number: int) -> GateReport:
    by = Acceptance("x", "ada", "known", datetime(2024, 5, 17, tzinfo=timezone.utc))
    return report_of(number, "a", outcome=Outcome.ACCEPTED, accepted=by)


def events_of(hook: Hook) -> list[dict[str, Any]]:
    return [json.loads(body) for _, body in hook.posted]


TUESDAY = MONDAY + timedelta(days=1)


@pytest.mark.few(4)
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
        ([report_of(1, "a"), with_mild_failures(2)], ["opened 13 trigger"]),
        ([report_of(1, "a"), accepted(2)], ["opened 13 trigger", "accepted 13 resolve"]),
        ([report_of(1, "a"), waived(2)], ["opened 13 trigger", "waived 13 resolve"]),
        ([report_of(1, "a"), less_strict(2)], ["opened 13 trigger", "warned 13 resolve"]),
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
        "others that stop nothing",
        "accepted",
        "waived",
        "less strict",
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
    sent = [
        f"{event['type'].removeprefix('incident.')} {data['date'][-2:]} {data['action']}"
        for event in events
        for data in [event["data"]]
    ]
    assert sent == expected
    incidents = {
        event["data"]["incident"] for event in events if event["data"]["date"].endswith("13")
    }
    assert incidents <= {report_of(1).run_id}, "all events of an incident have its id"


def receiver_of_the_page() -> str:
    """The code with which the docs check a signature."""
    *_, receiver = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    assert "def is_genuine(" in receiver
    return str(receiver)


def test_an_event_is_signed_and_says_where_to_look(hook: Hook, ended: Callable[..., None]) -> None:
    ended(report_of(1, "a"))
    ((headers, body),) = hook.posted
    scope: dict[str, Any] = {}
    exec(receiver_of_the_page(), scope)
    assert scope["is_genuine"](headers, body, SECRET)
    assert not scope["is_genuine"](headers, body + b" ", SECRET)
    assert not scope["is_genuine"]({**headers, "webhook-timestamp": "1"}, body, SECRET)
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    digest = hmac.new(base64.b64decode(SECRET[6:]), signed, hashlib.sha256).digest()
    assert headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"
    event = json.loads(body)
    assert event["data"]["gate"] == "lake.gate"
    require_same_head(event)
    assert event["data"]["outcome"] == "blocked"
    assert event["data"]["incident_url"].endswith("date=2024-05-13")


def test_an_event_is_repeated_until_it_is_taken(hook: Hook, ended: Callable[..., None]) -> None:
    hook.statuses = [500, 503, 200]
    ended(report_of(1, "a"))
    assert len(hook.posted) == 3
    assert len({(headers["webhook-id"], body) for headers, body in hook.posted}) == 1


@pytest.mark.few(2)
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
    monkeypatch.setattr("dqx_airflow.operators.webhooks.TIME_BUDGET_S", 2.0)
    hook.statuses = [status]
    with caplog.at_level(logging.WARNING):
        ended(report_of(1, "a"))
    assert f"the webhook hook did not take an event: {reason}" in caplog.text
    assert "/secret" not in caplog.text
    assert 1 <= len(hook.posted) <= most


def connection_of(monkeypatch: pytest.MonkeyPatch, given: dict[str, Any] | str) -> Any:
    """The connection that a task gets, of a URI or of fields."""
    from airflow.providers.common.compat.sdk import BaseHook

    text = given if isinstance(given, str) else json.dumps({"conn_type": "http", **given})
    monkeypatch.setenv("AIRFLOW_CONN_HOOK", text)
    return BaseHook.get_connection("hook")


@pytest.mark.parametrize(
    "given",
    [
        {"host": "https://quality.example.com/hook"},
        {"host": "quality.example.com"},
        {"host": "quality.example.com", "schema": "https"},
        {"host": "quality.example.com", "schema": "https", "port": 8443},
        {"host": "https://quality.example.com", "port": 8443},
        {"host": "quality.example.com/hook", "schema": "https"},
        {"host": "http://[::1]", "port": 8080},
        "http://https%3A%2F%2Fquality.example.com%2Fhook",
        "http://:secret@quality.example.com:8443/https",
        "https://quality.example.com/https",
    ],
)
def test_the_address_is_the_one_that_airflow_makes_of_a_connection(
    operators: ModuleType, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any] | str
) -> None:
    http = pytest.importorskip("airflow.providers.http.hooks.http")
    from dqx_airflow.operators.webhook_address import address_of

    connection = connection_of(monkeypatch, given)
    hook = http.HttpHook(http_conn_id="hook")
    hook._set_base_url(connection)
    assert address_of(connection) == hook.base_url


def secret_of(size: int) -> str:
    return "whsec_" + base64.b64encode(b"x" * size).decode()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("https://:hush@quality.example.com/hook", "its schema is neither http nor https"),
        ({"host": "https://a/hook", "port": 8443}, "it has a port behind the path"),
        ({"host": "https://a?token=hush", "port": 8443}, "it has a port behind the query"),
        ({"host": "a/?token=hush", "port": 8443}, "it has a port behind the query"),
        ({"host": "https://a/hook?token=hush", "port": 8443}, "it has a port behind the path"),
        ({"host": "https://a#hush", "port": 8443}, "it has a port behind the fragment"),
        ({"host": "https://"}, "its host is not an address"),
        ({"host": "ftp://a/hook"}, "its host is not an address"),
        ({"host": "a:b:c"}, "its host is not an address"),
        ({"host": "http://[::1", "port": 80}, "its host is not an address"),
        ({"host": "https://a:8443", "port": 80}, "its host with its port is not an address"),
        ({}, "it has no host: write the address there"),
        ({"password": "hush"}, "its password, which is the address"),
        ({"host": "https://a", "extra": {"body": {}}}, "the body in its extra is empty"),
        ({"host": "https://a", "password": ""}, "is an empty secret: write whsec_ and the base64"),
        ({"host": "https://a", "password": "   "}, "is an empty secret"),
        ({"host": "https://a", "password": "whsec_"}, "is an empty secret"),
        ({"host": "https://a", "password": "whsec_===="}, "is not base64"),
        ({"host": "https://a", "password": "****"}, "is not base64"),
        ({"host": "https://a", "password": "whsec_!!!"}, "is not base64"),
        ({"host": "https://a", "password": "a secret of this hook"}, "is not base64"),
        ({"host": "https://a", "password": "hush"}, "is a secret of 3 bytes"),
        (
            {"host": "https://a", "password": "whpk_" + "a" * 44},
            "begins with whpk_, and is not a shared",
        ),
        ({"host": "https://a", "password": "whsk_" + "a" * 43}, "begins with whsk_"),
        ({"host": "https://a", "password": "WHSEC_" + "a" * 42}, "begins with WHSEC_"),
        ({"host": "https://a", "password": "whsec-" + "a" * 42}, "begins with whsec-"),
        ({"host": "https://a", "password": "whsec_whpk_" + "a" * 43}, "begins with whpk_"),
        ({"host": "https://a", "password": secret_of(23)}, "is a secret of 23 bytes"),
        ({"host": "https://a", "password": secret_of(65)}, "is a secret of 65 bytes"),
        ({"host": "https://a", "password": "whsec_" + "a" * 33}, "is not base64"),
        ({"host": "https://a", "password": "whsec_" + "ab+/ab-_" * 5}, "is not base64"),
    ],
)
def test_a_connection_that_loses_events_is_an_error_that_says_what_to_write(
    operators: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    given: dict[str, Any] | str,
    message: str,
) -> None:
    from dqx_airflow.operators.webhook_address import WebhookMistake, webhook_of

    connection = connection_of(monkeypatch, given)
    if isinstance(given, dict) and given.get("password") == "" and connection.password is None:
        pytest.skip("this Airflow takes an empty password for none")
    with pytest.raises(WebhookMistake, match=message) as raised:
        webhook_of(connection)
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize("size", [24, 32, 64])
@pytest.mark.parametrize("has_prefix", [True, False])
def test_a_secret_is_base64_in_either_alphabet_with_or_without_padding(
    operators: ModuleType, size: int, has_prefix: bool
) -> None:
    from dqx_airflow.operators.webhook_address import key_of

    key = bytes(range(255, 255 - size, -1))  # has the digits that differ
    for encoded in (base64.b64encode(key), base64.urlsafe_b64encode(key)):
        for text in (encoded.decode(), encoded.decode().rstrip("=")):
            assert key_of(f"whsec_{text}" if has_prefix else text) == key


def test_the_receiver_of_the_page_knows_the_secrets_for_urls(
    hook: Hook, ended: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = base64.urlsafe_b64encode(b"\xff\xef" * 16).decode().rstrip("=")
    assert {"-", "_"} & set(secret)
    connected(monkeypatch, hook.address, password=secret)
    ended(report_of(1, "a"))
    ((headers, body),) = hook.posted
    scope: dict[str, Any] = {}
    exec(receiver_of_the_page(), scope)
    assert scope["is_genuine"](headers, body, secret)


def test_an_event_over_such_a_connection_is_not_lost_in_silence(
    hook: Hook,
    ended: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    from dqx_airflow.operators.webhooks import webhook_mistakes

    counted: list[tuple[str, Any]] = []
    monkeypatch.setattr(
        "dqx_airflow.operators.webhooks.Stats.incr",
        lambda name, **given: counted.append((name, given["tags"])),
    )
    connected(monkeypatch, hook.address, password="****")
    with caplog.at_level(logging.ERROR):
        ended(report_of(1, "a"))
    assert hook.posted == [], "never with an empty key"
    assert "the webhook hook did not take an event: its password is not base64" in caplog.text
    assert "(incident.opened)" in caplog.text
    assert "****" not in caplog.text
    assert counted == [
        ("dqx.webhook.lost", {"dag_id": "lake", "task_id": "gate", "webhook": "hook"})
    ]
    (mistake,) = webhook_mistakes().values()
    assert str(mistake).startswith("its password is not base64")


@pytest.mark.more
@pytest.mark.parametrize(
    ("password", "level", "found"),
    [("****", "problem", "hook: its password is not base64"), (SECRET, "ok", "hook")],
)
def test_the_doctor_finds_webhooks_that_lose_events(
    hook: Hook,
    airflow_database: None,
    monkeypatch: pytest.MonkeyPatch,
    password: str,
    level: str,
    found: str,
) -> None:
    from dqx_airflow.cli.doctor_checks.airflow import webhooks

    connected(monkeypatch, hook.address, password=password)
    answer = webhooks()
    assert answer[0].value == level, answer
    assert answer[1].startswith(found)
    assert password not in answer[1]


@pytest.mark.more
def test_a_dead_webhook_takes_nothing_from_the_others(
    hook: Hook,
    ended: Callable[..., None],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dqx_airflow.operators.webhooks.TIME_BUDGET_S", 8.0)
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

    calls: list[object] = []
    task: Any = SummaryTask()
    task.id = UUID(int=1)
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", Comms(), raising=False)
    parked = pytest.raises(BaseException)  # noqa: PT011, another one in each version of Airflow
    with parked if is_shown else contextlib.nullcontext():
        ask([report_of(1, "a")], {"ti": task}, timeout=None, default="keep", before=calls.append)
    assert len(calls) == is_shown


def test_a_try_that_a_policy_repeats_tells_too(operators: ModuleType) -> None:
    from dqx_airflow.operators.webhooks import send_after

    task, calls = SimpleNamespace(on_failure_callback=[print]), list[object]()
    for end in ("success", "retry", "skipped"):
        setattr(task, f"on_{end}_callback", None)
    send_after(task, calls.append)
    assert task.on_retry_callback == [calls.append]
    assert task.on_failure_callback == [print, calls.append]


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
