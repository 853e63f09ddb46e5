"""The events of a run from start to end, and runs without lineage."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from dqx_airflow.engine.run_events import run_events
from dqx_airflow.lineage import is_configured
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.values import GateReport, GateRequest, ParentRun
from tests.openlineage_schemas import problems

Begin = Callable[[], AbstractContextManager[Callable[[GateReport], None]]]


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    return tmp_path / "results" / "lineage_spool"


@pytest.fixture
def begin(request_: GateRequest, passed: GateReport, tmp_path: Path) -> Begin:
    store = ResultsStore(str(tmp_path / "results"))
    return lambda: run_events({passed.run_id: request_}, passed.started_at, store)


def test_a_completed_and_a_crashed_run_emit_their_events(
    begin: Begin, passed: GateReport, tmp_path: Path
) -> None:
    path = tmp_path / "events.jsonl"
    transport = {"type": "file", "log_file_path": str(path), "append": True}
    os.environ["OPENLINEAGE__TRANSPORT"] = json.dumps(transport)
    with begin() as end:
        end(passed)
    with pytest.raises(MemoryError, match="no room"), begin():
        raise MemoryError("no room")
    written = [json.loads(line) for line in path.read_text().splitlines()]
    assert [event["eventType"] for event in written] == ["START", "COMPLETE", "START", "FAIL"]
    assert written[-1]["run"]["facets"]["errorMessage"]["message"] == "MemoryError: no room"
    assert problems(written[:2]) == problems(written[2:]) == []


@pytest.mark.parametrize(("of_environment", "namespace"), [(None, "night"), ("lake", "lake")])
def test_jobs_are_in_the_namespace_of_airflow_unless_the_environment_names_one(
    request_: GateRequest,
    passed: GateReport,
    tmp_path: Path,
    of_environment: str | None,
    namespace: str,
) -> None:
    path = tmp_path / "events.jsonl"
    transport = {"type": "file", "log_file_path": str(path), "append": True}
    os.environ["OPENLINEAGE__TRANSPORT"] = json.dumps(transport)
    if of_environment:
        os.environ["OPENLINEAGE_NAMESPACE"] = of_environment
    parent = ParentRun("night", "shop.gate", passed.run_id, "night", "shop", passed.run_id)
    own = {passed.run_id: replace(request_, parent=parent)}
    store = ResultsStore(str(tmp_path / "results"))
    with run_events(own, passed.started_at, store) as end:
        end(passed)
    written = [json.loads(line) for line in path.read_text().splitlines()]
    assert {event["job"]["namespace"] for event in written} == {namespace}
    assert {event["run"]["facets"]["parent"]["job"]["namespace"] for event in written} == {"night"}


def test_waiting_events_are_reported_without_a_configuration(
    begin: Begin, passed: GateReport, spool: Path, caplog: pytest.LogCaptureFixture
) -> None:
    os.environ["OPENLINEAGE_URL"] = "http://127.0.0.1:1"
    with begin() as end:
        end(passed)
    waiting = sorted(spool.iterdir())
    assert len(waiting) == 2
    del os.environ["OPENLINEAGE_URL"]
    with caplog.at_level(logging.WARNING), begin() as end:
        end(passed)
    assert f"2 lineage events remain in {spool}: no OpenLineage transport" in caplog.text
    assert sorted(spool.iterdir()) == waiting


def test_without_a_configuration_there_are_no_events(
    begin: Begin, passed: GateReport, spool: Path
) -> None:
    with begin() as end:
        end(passed)
    assert not spool.exists()


@pytest.mark.parametrize(
    ("env", "file", "configured"),
    [
        ({}, None, False),
        ({"PATH": "/bin", "AIRFLOW__OPENLINEAGE__TRANSPORT": "{}"}, None, False),
        ({"OPENLINEAGE_URL": "http://server"}, None, True),
        ({"OPENLINEAGE__TRANSPORT__TYPE": "http"}, None, True),
        ({"OPENLINEAGE_CONFIG": "lineage.yml"}, None, True),
        ({}, "openlineage.yml", True),
        ({}, "home/.openlineage/openlineage.yml", True),
        ({}, "home/openlineage.yml", False),
        ({"OPENLINEAGE_URL": "http://server", "OPENLINEAGE_DISABLED": " True"}, None, False),
        ({"OPENLINEAGE_DISABLED": "false"}, "openlineage.yml", True),
    ],
)
def test_events_are_wanted_where_openlineage_finds_a_configuration(
    env: dict[str, str],
    file: str | None,
    configured: bool,
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", str(here / "home"))
    if file is not None:
        (here / file).parent.mkdir(parents=True, exist_ok=True)
        (here / file).write_text("transport: {type: console}\n")
    assert is_configured(env) is configured
