"""`dql lineage flush`: what it sends, what it leaves, and its messages."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.lineage import spool as spools
from dqx_airflow.lineage.emitter import LineageEmitter
from dqx_airflow.lineage.events import start_event, terminal_event
from dqx_airflow.values import GateReport, GateRequest
from tests.command_line import Called, dql
from tests.hostile_endpoints import endpoint, hangs_on_accept


def flush(*arguments: str) -> Called:
    return dql("lineage", "flush", *arguments)


def configure(url: str) -> None:
    os.environ["OPENLINEAGE__TRANSPORT"] = json.dumps({"type": "http", "url": url})


@pytest.fixture
def root(tmp_path: Path, request_: GateRequest, passed: GateReport) -> Path:
    """A results root, beside which the two events of a run wait."""
    configure("http://127.0.0.1:1")
    with LineageEmitter(spools.beside(str(tmp_path))) as emitter:
        emitter.emit(start_event(request_, passed.run_id, passed.started_at))
        emitter.emit(terminal_event(request_, passed))
    return tmp_path


def test_spooled_events_are_sent_in_order(root: Path, server: Any) -> None:
    configure(server.url)
    done = flush("--results-root", str(root))
    spool = spools.beside(str(root))
    assert (done.returncode, done.stdout) == (0, f"2 sent, 0 left in {spool}\n")
    assert [body["eventType"] for body in server.bodies] == ["START", "COMPLETE"]
    again = flush("--spool", str(spool), "--format", "json")
    assert again.returncode == 0
    assert json.loads(again.stdout) == {"spool": str(spool), "sent": 0, "left": 0}


def test_unsent_events_stay_in_the_spool(root: Path) -> None:
    spool = spools.beside(str(root))
    with endpoint(hangs_on_accept) as port:
        configure(f"http://127.0.0.1:{port}")
        done = flush("--results-root", f"file://{root}", "--timeout", "0.3s", "--format", "json")
    assert done.returncode == 4
    assert json.loads(done.stdout) == {"spool": str(spool), "sent": 0, "left": 2}
    del os.environ["OPENLINEAGE__TRANSPORT"]
    os.environ["DQX_LINEAGE_SPOOL"] = str(spool)
    assert (flush().returncode, flush().stdout) == (4, f"0 sent, 2 left in {spool}\n")
    assert len(spools.kept(spool)) == 2


@pytest.mark.parametrize("arguments", [(), ("--results-root", "s3://lake/dqx")])
def test_a_missing_spool_is_an_error(arguments: tuple[str, ...]) -> None:
    done = flush(*arguments)
    assert done.returncode == 2
    assert "error: no spool " in done.stderr
    assert "DQX_LINEAGE_SPOOL" in done.stderr


def test_a_missing_folder_is_an_empty_spool(tmp_path: Path) -> None:
    assert flush("--spool", str(tmp_path / "nowhere")).returncode == 0


def test_a_gate_spools_its_events_to_the_configured_folder(
    tmp_path: Path, request_: GateRequest, passed: GateReport
) -> None:
    from dqx_airflow.engine.run_events import run_events
    from dqx_airflow.results.store import ResultsStore

    os.environ["DQX_LINEAGE_SPOOL"] = str(tmp_path / "elsewhere")
    configure("http://127.0.0.1:1")
    store = ResultsStore(str(tmp_path / "results"))
    with run_events({passed.run_id: request_}, passed.started_at, store) as end:
        end(passed)
    assert len(spools.kept(tmp_path / "elsewhere")) == 2
    assert not spools.beside(str(tmp_path / "results")).exists()
