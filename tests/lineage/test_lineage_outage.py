"""All events of a gate take two seconds at most, whatever the endpoint does, and none is lost.

Most are tried with a smaller budget, so that the tests are quick; `benchmarks/lineage_outage.py`
measures the real thing.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.lineage import spool as spools
from dqx_airflow.lineage import transport
from dqx_airflow.lineage.emitter import LineageEmitter
from dqx_airflow.lineage.events import start_event, terminal_event
from dqx_airflow.lineage.transport import ExhaustedError, TimeBudget, UnfinishedError
from dqx_airflow.values import GateReport, GateRequest
from tests.hostile_endpoints import ACCEPTS, KINDS, bomb, endpoint, full_backlog, hangs_on_accept
from tests.processes import output_of
from tests.stopwatch import is_in_time

pytestmark = pytest.mark.timing

TIME_BUDGET_S, GENEROUS_S = 0.4, 2.5


@pytest.fixture(autouse=True)
def small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "TIME_BUDGET_S", TIME_BUDGET_S)


@pytest.fixture
def events(request_: GateRequest, passed: GateReport) -> list[Any]:
    start = start_event(request_, passed.run_id, passed.started_at)
    return [start, terminal_event(request_, passed)]


def configure(**settings: Any) -> None:
    os.environ["OPENLINEAGE__TRANSPORT"] = json.dumps(settings)


def emitted(spool: Path, events: list[Any]) -> tuple[list[bool], float]:
    """Which events were sent, and how long that took, with all that a gate does about lineage."""
    began = time.monotonic()
    with LineageEmitter(spool) as emitter:
        sent = [emitter.emit(event) for event in events]
        emitter.resend()
    return sent, time.monotonic() - began


def types(spool: Path) -> list[str]:
    return [spools.event_in(spooled)["eventType"] for spooled in spools.kept(spool)]


@pytest.mark.parametrize(
    ("scheme", "kind"),
    [*(("http", kind) for kind in KINDS), ("https", "hangs on accept"), ("https", "talks garbage")],
)
def test_no_endpoint_delays_a_gate_or_loses_its_events(
    tmp_path: Path, events: list[Any], kind: str, scheme: str
) -> None:
    bomb()
    with endpoint(KINDS[kind]) as port:
        # The generous settings of a user do not count.
        retry = {"total": 9, "status_forcelist": [500, 503], "backoff_factor": 1}
        address = f"{scheme}://127.0.0.1:{port}"
        configure(type="http", url=address, timeout=60, retry=retry)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        sent, took_s = emitted(tmp_path / "spool", events)
        grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert is_in_time(took_s, GENEROUS_S)
    assert sent == [kind in ACCEPTS] * 2
    assert types(tmp_path / "spool") == ([] if kind in ACCEPTS else ["START", "COMPLETE"])
    assert grown_kb < 50_000


def test_a_full_queue_of_a_server_does_not_delay_a_gate(tmp_path: Path, events: list[Any]) -> None:
    with full_backlog() as port:
        configure(type="http", url=f"http://127.0.0.1:{port}")
        sent, took_s = emitted(tmp_path / "spool", events)
    assert (sent, is_in_time(took_s, GENEROUS_S)) == ([False, False], True)
    assert types(tmp_path / "spool") == ["START", "COMPLETE"]


def test_a_hanging_name_lookup_does_not_delay_a_gate(
    tmp_path: Path, events: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: time.sleep(20))
    configure(type="http", url="http://lineage.invalid")
    sent, took_s = emitted(tmp_path / "spool", events)
    assert (sent, is_in_time(took_s, GENEROUS_S)) == ([False, False], True)
    assert types(tmp_path / "spool") == ["START", "COMPLETE"]


def test_a_hanging_proxy_does_not_delay_a_gate(
    tmp_path: Path, events: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_PROXY")
    with endpoint(hangs_on_accept) as port:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
        configure(type="http", url="http://lineage.example")
        sent, took_s = emitted(tmp_path / "spool", events)
    assert (sent, is_in_time(took_s, GENEROUS_S)) == ([False, False], True)
    assert len(types(tmp_path / "spool")) == 2


def test_a_hanging_part_of_a_composite_leaves_time_for_the_others(
    tmp_path: Path, events: list[Any], server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "TIME_BUDGET_S", 1.0)
    with endpoint(hangs_on_accept) as port:
        parts = {
            "dead": {"type": "http", "url": f"http://127.0.0.1:{port}"},
            "well": {"type": "http", "url": server.url},
        }
        configure(type="composite", transports=parts)
        _, took_s = emitted(tmp_path / "spool", events)
    assert is_in_time(took_s, GENEROUS_S)
    # What the dead part missed is sent to all again, of which the first one is tried.
    assert [body["eventType"] for body in server.bodies] == ["START", "COMPLETE", "START"]
    assert server.bodies[2] == server.bodies[0]
    assert len(spools.kept(tmp_path / "spool")) == 2


@pytest.mark.nightly
def test_a_long_spool_takes_no_more_time_than_a_gate_has(
    tmp_path: Path, events: list[Any], server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "TIME_BUDGET_S", 1.5)
    spool = tmp_path / "spool"
    configure(type="http", url="http://127.0.0.1:1")
    with LineageEmitter(spool) as emitter:
        emitter.emit(events[0])
    (first,) = spool.iterdir()
    for number in range(200):
        text = first.read_text()
        spools.keep(spool, text.replace("01939b7e", f"{number:08x}"), f"{number}-START")
    server.delay_s = 0.05
    configure(type="http", url=server.url)
    sent, took_s = emitted(spool, events)
    assert (sent, is_in_time(took_s, 2 * GENEROUS_S)) == ([True, True], True)
    left = len(spools.kept(spool))
    assert 0 < left < 201
    # Every one of them is in the spool or with the server.
    assert left + len(server.bodies) - 2 >= 201


@pytest.mark.nightly
def test_a_gate_waits_two_seconds_and_its_process_ends(tmp_path: Path, events: list[Any]) -> None:
    program = (
        "import sys, time; from pathlib import Path\n"
        "from dqx_airflow.lineage.emitter import LineageEmitter\n"
        "from dqx_airflow.lineage.transport import rebuilt\n"
        "import json\n"
        "event = rebuilt(json.loads(sys.stdin.read()))\n"
        "began = time.monotonic()\n"
        "with LineageEmitter(Path(sys.argv[1])) as emitter:\n"
        "    sent = [emitter.emit(event), emitter.emit(event)]\n"
        "print(sent, time.monotonic() - began, flush=True)\n"
    )
    from openlineage.client.serde import Serde

    with endpoint(hangs_on_accept) as port:
        configure(type="http", url=f"http://127.0.0.1:{port}")
        printed = output_of(
            [sys.executable, "-c", program, str(tmp_path / "spool")],
            input=Serde.to_json(events[0]),
            timeout=60,
        )
    sent, _, took_s = printed.rpartition(" ")
    assert sent == "[False, False]"
    assert is_in_time(float(took_s), 2 * GENEROUS_S)
    assert len(types(tmp_path / "spool")) == 2


def test_the_budget_is_shared() -> None:
    time_budget = TimeBudget(1.5, each_s=0.9)
    assert time_budget.wait_for(lambda: 5) == 5
    with pytest.raises(KeyError):
        time_budget.wait_for(lambda: {}["a"])
    with pytest.raises(UnfinishedError, match=r"within 0\.9 s"):
        time_budget.wait_for(lambda: time.sleep(9))
    with pytest.raises(UnfinishedError):
        time_budget.wait_for(lambda: time.sleep(9))
    with pytest.raises(ExhaustedError, match=r"the 1\.5 s for lineage are used up"):
        time_budget.wait_for(lambda: 5)
