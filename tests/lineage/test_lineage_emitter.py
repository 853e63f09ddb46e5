from __future__ import annotations

import json
import logging
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from openlineage.client.serde import Serde
from openlineage.client.transport import Config, Transport

from dqx_airflow.lineage import transport
from dqx_airflow.lineage.emitter import LineageEmitter
from dqx_airflow.lineage.events import start_event, terminal_event
from dqx_airflow.lineage.transport import TimeBudget
from dqx_airflow.values import GateReport, GateRequest
from tests.openlineage_schemas import problems
from tests.stopwatch import at_most

SECRET = "hunter2-very-secret"
LOUD = logging.DEBUG


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    return tmp_path / "spool"


@pytest.fixture
def events(request_: GateRequest, passed: GateReport) -> tuple[Any, Any]:
    start = start_event(request_, passed.run_id, passed.started_at, "dq")
    return start, terminal_event(request_, passed, "dq")


@pytest.fixture
def dead_url() -> Iterator[str]:
    """A port that refuses connections, kept so for the time of the test."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


def configure(**settings: Any) -> None:
    os.environ["OPENLINEAGE__TRANSPORT"] = json.dumps(settings)


def spooled(spool: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(spool.glob("*.json"))]


def types(found: list[dict[str, Any]]) -> list[str]:
    return [event["eventType"] for event in found]


def test_events_reach_a_file(spool: Path, tmp_path: Path, events: Any) -> None:
    path = tmp_path / "events.jsonl"
    configure(type="file", log_file_path=str(path), append=True)
    with LineageEmitter(spool) as emitter:
        assert [emitter.emit(event) for event in events] == [True, True]
        assert emitter.check().ok
    written = [json.loads(line) for line in path.read_text().splitlines()]
    assert types(written) == ["START", "COMPLETE"]
    # As they go out: with the facets that the client adds.
    assert problems(written) == []
    assert not spool.exists()


def test_events_reach_a_server(spool: Path, server: Any, events: Any) -> None:
    os.environ["OPENLINEAGE_URL"] = server.url
    with LineageEmitter(spool) as emitter:
        assert [emitter.emit(event) for event in events] == [True, True]
    assert types(server.bodies) == ["START", "COMPLETE"]
    assert problems(server.bodies) == []
    assert not spool.exists()


def test_the_namespace_comes_from_the_environment() -> None:
    assert LineageEmitter().namespace == "default"
    os.environ["OPENLINEAGE_NAMESPACE"] = "lake"
    assert LineageEmitter().namespace == "lake"


@pytest.mark.parametrize("kind", ["http", "async_http"])
def test_a_failed_event_is_spooled_and_sent_again_in_order(
    kind: str, spool: Path, server: Any, events: Any, caplog: pytest.LogCaptureFixture
) -> None:
    configure(type=kind, url=server.url)
    server.answer = 500
    with LineageEmitter(spool) as emitter:
        assert [emitter.emit(event) for event in events] == [False, False]
        files = sorted(spool.iterdir())
        assert types(spooled(spool)) == ["START", "COMPLETE"]
        assert [path.read_text().count("\n") for path in files] == [1] * len(files)
        for path in files:
            assert str(path) in caplog.text
        originals = spooled(spool)
        server.bodies.clear()
        server.answer = 200
        assert emitter.resend(spool) == (2, 0)
        assert server.bodies == originals
        assert list(spool.iterdir()) == []
        assert emitter.resend(spool) == (0, 0)


def test_after_a_failure_later_events_are_not_tried(spool: Path, server: Any, events: Any) -> None:
    configure(type="http", url=server.url)
    server.answer = 503
    with LineageEmitter(spool) as emitter:
        emitter.emit(events[0])
        tried = len(server.bodies)
        assert tried >= 1
        server.answer = 200
        emitter.emit(events[1])
        # Else the end of the run would come before its start.
        assert len(server.bodies) == tried
    assert types(spooled(spool)) == ["START", "COMPLETE"]


@pytest.mark.timing
def test_a_refused_connection_costs_little_time(spool: Path, dead_url: str, events: Any) -> None:
    os.environ["OPENLINEAGE_URL"] = dead_url
    with LineageEmitter(spool) as emitter, at_most(2):
        assert not emitter.emit(events[0])
        assert not emitter.emit(events[1])
    assert len(spooled(spool)) == 2


@pytest.mark.timing
def test_a_retry_after_header_does_not_delay_the_gate(
    spool: Path, server: Any, events: Any
) -> None:
    os.environ["OPENLINEAGE_URL"] = server.url
    server.answer, server.headers = 503, {"Retry-After": "3600"}
    with LineageEmitter(spool) as emitter, at_most(2):
        assert not emitter.emit(events[0])
    assert len(spooled(spool)) == 1


@pytest.mark.timing
def test_an_unresponsive_transport_times_out(
    spool: Path, server: Any, events: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "TIME_BUDGET_S", 0.2)
    configure(type="http", url=server.url, timeout=0.1, retry={"total": 0})
    server.delay_s = 10
    with LineageEmitter(spool) as emitter, at_most(2):
        assert not emitter.emit(events[0])
    assert len(spooled(spool)) == 1


@pytest.mark.timing
def test_a_transport_without_a_timeout_times_out(
    spool: Path, events: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "TIME_BUDGET_S", 0.1)
    configure(type=f"{__name__}.Sleepy")
    with LineageEmitter(spool) as emitter, at_most(2):
        assert not emitter.emit(events[0])
    assert len(spooled(spool)) == 1


class Sleepy(Transport):
    """A transport like Kafka's, without a broker."""

    kind = "sleepy"

    def __init__(self, config: Config) -> None:
        self.config = config

    def emit(self, event: Any) -> None:
        time.sleep(3)


@pytest.mark.parametrize(
    ("config", "timeout_s", "total"),
    [
        ({}, 2.0, 1),
        ({"timeout": 30}, 2.0, 1),
        ({"timeout": 0.5}, 0.5, 1),
        ({"retry": {"total": 4}}, 2.0, 4),
        ({"timeout": 1.5, "retry": {"total": 0}}, 1.5, 0),
    ],
)
def test_a_stricter_limit_of_the_user_wins(
    config: dict[str, Any], timeout_s: float, total: int
) -> None:
    asked = {"type": "http", "url": "http://127.0.0.1:1", **config}
    built, _ = transport.watched(asked, TimeBudget(2))
    assert isinstance(built, transport.Watched)
    http: Any = built.inner
    assert (http.timeout, http.config.retry["total"]) == (timeout_s, total)
    assert http.config.retry["respect_retry_after_header"] is False


def test_an_event_that_a_part_of_a_composite_missed_is_sent_to_all_again(
    spool: Path, tmp_path: Path, server: Any, events: Any
) -> None:
    path = tmp_path / "events.jsonl"
    configure(
        type="composite",
        transports={
            "the file": {"type": "file", "log_file_path": str(path), "append": True},
            "the/server": {"type": "http", "url": server.url},
        },
    )
    server.answer = 500
    with LineageEmitter(spool) as emitter:
        assert [emitter.emit(event) for event in events] == [False, False]
        assert len(path.read_text().splitlines()) == 2
        server.answer = 200
        server.bodies.clear()
        assert types(spooled(spool)) == ["START", "COMPLETE"]
        assert emitter.resend() == (2, 0)
    assert types(server.bodies) == ["START", "COMPLETE"]
    written = [json.loads(line) for line in path.read_text().splitlines()]
    assert types(written) == ["START", "COMPLETE"] * 2
    assert written[2:] == written[:2]


def test_a_composite_may_need_only_one_success(
    spool: Path, tmp_path: Path, dead_url: str, events: Any
) -> None:
    path = tmp_path / "events.jsonl"
    configure(
        type="composite",
        continue_on_success=False,
        transports=[
            {"type": "http", "url": dead_url},
            {"type": "file", "log_file_path": str(path), "append": True},
        ],
    )
    with LineageEmitter(spool) as emitter:
        assert [emitter.emit(event) for event in events] == [True, True]
    assert len(path.read_text().splitlines()) == 2
    assert not spool.exists()


def test_a_composite_that_failed_as_a_whole_is_spooled_once(
    spool: Path, tmp_path: Path, dead_url: str, events: Any
) -> None:
    configure(
        type="composite",
        transports=[
            {"type": "http", "url": dead_url},
            {"type": "file", "log_file_path": str(tmp_path / "no" / "such"), "append": True},
        ],
    )
    with LineageEmitter(spool) as emitter:
        assert not emitter.emit(events[0])
        assert len(spooled(spool)) == 1
        (tmp_path / "no").mkdir()
        assert emitter.resend() == (0, 1)


def test_resend_goes_on_past_an_event_that_the_server_refuses(
    spool: Path, server: Any, events: Any, request_: GateRequest, passed: GateReport
) -> None:
    other = start_event(request_, "01939b7e-0000-7000-8000-0000000000ff", passed.started_at)
    spool.mkdir()
    for number, event in enumerate([*events, other]):
        (spool / f"{number:020d}-event.json").write_text(Serde.to_json(event) + "\n")
    configure(type="http", url=server.url)
    server.answer = 400
    with LineageEmitter(spool) as emitter:
        assert emitter.resend() == (0, 3)
        # The end of the first run was not even tried: its start has to come first.
        assert types(server.bodies) == ["START", "START"]


@pytest.mark.timing
def test_resend_stops_if_the_server_is_unreachable(spool: Path, dead_url: str, events: Any) -> None:
    configure(type="http", url=dead_url)
    with LineageEmitter(spool) as emitter:
        for event in events:
            emitter.emit(event)
        with at_most(2):
            assert emitter.resend() == (0, 2)
    assert len(spooled(spool)) == 2


def test_resend_leaves_foreign_and_damaged_files(spool: Path, server: Any, events: Any) -> None:
    spool.mkdir()
    (spool / "notes.txt").write_text("mine")
    (spool / f"{1:020d}-a.json").write_text('{"run": {"runId"')
    (spool / f"{2:020d}-b.json").write_text("[1]")
    (spool / f"{3:020d}-c.json").write_bytes(b"\xff\xfe\x00")
    (spool / f"{4:020d}-d.json").write_text(Serde.to_json(events[0]))
    configure(type="http", url=server.url)
    with LineageEmitter(spool) as emitter:
        assert emitter.resend() == (1, 3)
    assert len(list(spool.iterdir())) == 4
    assert len(server.bodies) == 1


@pytest.mark.parametrize("switch", ["unconfigured", "disabled", "noop"])
def test_resend_keeps_the_spool_where_events_would_go_nowhere(
    switch: str, spool: Path, events: Any
) -> None:
    spool.mkdir()
    (spool / f"{4:020d}-d.json").write_text(Serde.to_json(events[0]))
    if switch == "disabled":
        os.environ["OPENLINEAGE_DISABLED"] = "true"
        os.environ["OPENLINEAGE_URL"] = "http://127.0.0.1:1"
    elif switch == "noop":
        configure(type="noop")
    with LineageEmitter(spool) as emitter:
        assert emitter.resend() == (0, 1)
        assert emitter.emit(events[1])
    assert len(spooled(spool)) == 1


def _yaml(text: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / "openlineage.yml").write_text(text)

    return write


def _environment(**variables: str) -> Callable[[Path], None]:
    def write(_: Path) -> None:
        os.environ.update(variables)

    return write


@pytest.mark.parametrize(
    "break_it",
    [
        _yaml(f"transport: [type: http\n  apiKey: {SECRET}\n"),
        _yaml("transport: {type: http}\n"),
        _yaml(f"transport: {{type: no.such.Thing, password: {SECRET}}}\n"),
        _yaml(f"transport: {{type: http, url: 'ftp//user:{SECRET}@host'}}\n"),
        _yaml(f"transport: {{type: http, url: 'http://u:{SECRET}@[::bad'}}\n"),
        _environment(OPENLINEAGE__TRANSPORT=f'{{"type": "http", "auth": {{"apiKey": "{SECRET}"'),
        _environment(OPENLINEAGE__TRANSPORT='"http"'),
        _environment(OPENLINEAGE__TRANSPORT__TYPE="kafka", OPENLINEAGE__TRANSPORT__CONFIG="[]"),
        _environment(OPENLINEAGE_URL="not a url"),
    ],
)
def test_a_bad_configuration_raises_nothing_and_loses_no_event(
    break_it: Callable[[Path], None],
    tmp_path: Path,
    spool: Path,
    events: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    break_it(tmp_path)
    with caplog.at_level(LOUD), LineageEmitter(spool) as emitter:
        assert not emitter.emit(events[0])
        found = emitter.check()
        assert not found.ok
        assert found.line.startswith("the configuration cannot be used: ")
        assert emitter.resend() == (0, 1)
    assert len(spooled(spool)) == 1
    assert SECRET not in caplog.text + found.line


@pytest.mark.parametrize("answer", [200, 401, 500, None])
@pytest.mark.parametrize("shape", ["plain", "composite"])
def test_secrets_are_never_logged(
    answer: int | None,
    shape: str,
    spool: Path,
    server: Any,
    dead_url: str,
    events: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    address = dead_url if answer is None else server.url
    server.answer = answer or 200
    http = {
        "type": "http",
        "url": address.replace("//", f"//user:{SECRET}-1@"),
        "endpoint": f"api/v1/lineage?api_key={SECRET}-2",
        "auth": {"type": "api_key", "apiKey": f"{SECRET}-3"},
        "custom_headers": {"X-Api-Key": f"{SECRET}-4"},
    }
    configure(**(http if shape == "plain" else {"type": "composite", "transports": [http]}))
    with caplog.at_level(LOUD), LineageEmitter(spool) as emitter:
        emitter.emit(events[0])
        emitter.emit(events[1])
        line = emitter.check().line
        emitter.resend()
    assert caplog.text
    assert SECRET not in caplog.text + line
    assert "127.0.0.1" in line


def test_foreign_loggers_are_restored(spool: Path) -> None:
    logger = logging.getLogger("openlineage.client.client")
    before = list(logger.filters)
    with LineageEmitter(spool):
        assert logger.filters != before
    assert logger.filters == before


def test_without_a_usable_spool_the_event_is_in_the_log(
    tmp_path: Path, dead_url: str, events: Any, caplog: pytest.LogCaptureFixture
) -> None:
    os.environ["OPENLINEAGE_URL"] = dead_url
    (tmp_path / "file").write_text("")
    for spool in (None, tmp_path / "file" / "spool"):
        caplog.clear()
        with LineageEmitter(spool) as emitter:
            assert not emitter.emit(events[0])
            assert emitter.resend() == (0, 0)
        logged = caplog.messages[-1]
        content = json.loads(logged[logged.index("The event: ") + len("The event: ") :])
        assert content["eventType"] == "START"


def test_whatever_is_emitted_nothing_is_raised(spool: Path) -> None:
    with LineageEmitter(spool) as emitter:
        assert not emitter.emit(None)  # type: ignore[arg-type]
        assert not emitter.emit({"run": 1})  # type: ignore[arg-type]


def test_no_half_written_event_is_left_in_the_spool(
    spool: Path, dead_url: str, events: Any
) -> None:
    os.environ["OPENLINEAGE_URL"] = dead_url
    with LineageEmitter(spool) as emitter:
        emitter.emit(events[0])
    assert [path.suffix for path in spool.iterdir()] == [".json"]


def test_check_names_the_transport_and_whether_it_can_be_reached(
    server: Any, dead_url: str, tmp_path: Path
) -> None:
    def check(**config: Any) -> tuple[bool, str]:
        configure(**config)
        with LineageEmitter() as emitter:
            found = emitter.check()
        return found.ok, found.line

    ok, line = check(type="http", url=server.url)
    assert ok
    assert line == f"http: {server.url}/api/v1/lineage can be reached (HTTP 404)"
    ok, line = check(type="http", url=dead_url)
    assert not ok
    assert line.startswith(f"http: {dead_url}/api/v1/lineage cannot be reached (ConnectionError")
    path = tmp_path / "events"
    assert check(type="file", log_file_path=str(path)) == (True, f"file: {path} can be written")
    ok, line = check(type="file", log_file_path=str(tmp_path / "no" / "events"))
    assert not ok
    assert line.endswith(f"folder {tmp_path / 'no'} does not exist")
    ok, line = check(type="file", log_file_path=str(tmp_path), append=True)
    assert not ok
    assert check(type="console") == (True, "console: events go to the log of the job")
    assert check(type="noop")[1].startswith("noop: ")
    ok, line = check(
        type="composite", transports=[{"type": "console"}, {"type": "http", "url": dead_url}]
    )
    assert not ok
    assert line.startswith("composite: console: events go to the log of the job; http: ")


def test_check_reports_a_missing_configuration() -> None:
    with LineageEmitter() as emitter:
        found = emitter.check()
    assert found.ok
    assert found.line.startswith("no OpenLineage transport is configured")
