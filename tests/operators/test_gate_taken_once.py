"""A service that starts the job of a gate twice, and names the one that came too late.

The jobs are processes that take the request as the real job does: `taking_job.py`. The services are
those of `spark_services.py`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.engine.session.launch import name_of_job
from dqx_airflow.results.runs import list_runs
from dqx_airflow.values.json_form import EXIT_TAKEN
from tests.operators.gate_stubs import Gates, Log, wait_for
from tests.operators.spark_services import SERVICES, SparkService, serving
from tests.operators.test_gate_on_services import PROVIDERS

pytestmark = pytest.mark.airflow

FIRST, *OTHERS = SERVICES
PROGRAM = Path(__file__).with_name("taking_job.py")


@dataclass
class Twice:
    """A service that starts each job twice, the second one when the first has the request."""

    service: SparkService
    folder: Path

    def will(self, what: str) -> None:
        (self.folder / "will").write_text(what)

    def go(self) -> None:
        (self.folder / "go").touch()

    @property
    def took(self) -> list[int]:
        """The processes that have got a request."""
        return [int(path.name.partition("-")[2]) for path in self.folder.glob("took-*")]

    def has_refused_one(self) -> bool:
        return any(job.code == EXIT_TAKEN for job in self.service.jobs)


@pytest.fixture(params=[FIRST, *(pytest.param(kind, marks=pytest.mark.slow) for kind in OTHERS)])
def twice(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    airflow_environment: None,
) -> Iterator[Twice]:
    pytest.importorskip(PROVIDERS[request.param])
    from dqx_airflow.operators import trigger

    monkeypatch.setattr(trigger, "_FIRST_WAIT_S", 0.05)
    monkeypatch.setattr(trigger, "_LEAST_POLL_S", 0.2)
    folder = tmp_path / "taking"
    folder.mkdir()
    program = tmp_path / "submit"
    # What comes before the program is for spark-submit.
    program.write_text(
        "#!/bin/sh\n"
        'while [ "${1##*/}" != gate_job.py ]; do shift; done; shift\n'
        f'exec {sys.executable} {PROGRAM} "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("DQX_TAKING", str(folder))
    with serving(SERVICES[request.param](tmp_path)) as service:
        monkeypatch.setenv("AIRFLOW_CONN_SERVICE", service.connection)
        service.spark_submit = str(program)
        found = Twice(service, folder)
        run = service.run

        def run_twice(*given: Any) -> int:
            took = len(found.took)
            run(*given)
            wait_for(lambda: len(found.took) > took)
            return run(*given)

        monkeypatch.setattr(service, "run", run_twice)
        yield found


@pytest.fixture
def gate_there(gate: Gates, twice: Twice) -> Gates:
    there = {"status_poll_interval": 0, "submit": twice.service.submitter()}
    return replace(gate, given={**gate.given, **there})


def ended(gates: Gates, deferrable: bool, **given: Any) -> Any:
    """The ending of the task of a gate."""
    made = gates.rendered(deferrable=deferrable, **given)
    if not deferrable:
        return made.execute(gates.context)
    trigger = gates.deferred(made).trigger
    _, arguments = trigger.serialize()
    again = type(trigger)(**arguments)

    async def first() -> Any:
        return await anext(again.run())

    return made.execute_complete(gates.context, asyncio.run(first()).payload)


def later(do: Callable[[], object], when: Callable[[], bool]) -> None:
    """Does something on another thread as soon as something is so."""

    def wait() -> None:
        wait_for(when)
        do()

    threading.Thread(target=wait, daemon=True).start()


def stored(tmp_path: Path) -> list[Path]:
    return [*(tmp_path / "results" / "_dqx_requests").glob("*")]


@pytest.mark.few(1)
@pytest.mark.parametrize("deferrable", [False, True])
def test_a_gate_waits_for_the_report_of_the_job_that_was_first(
    gate_there: Gates, twice: Twice, tmp_path: Path, log: Log, deferrable: bool
) -> None:
    twice.will("passed")
    later(twice.go, twice.has_refused_one)
    assert ended(gate_there, deferrable) == "passed"
    assert len(twice.took) == 1
    assert sorted(job.process.wait() for job in twice.service.jobs) == [0, EXIT_TAKEN]
    assert len(list_runs(str(tmp_path / "results"))) == 1
    assert stored(tmp_path) == []
    refused = next(job for job in twice.service.jobs if job.code == EXIT_TAKEN)
    assert f"was taken by another job: process {twice.took[0]} on" in "\n".join(refused.log)


@pytest.mark.more
def test_a_gate_says_how_the_job_ended_that_was_first(
    gate_there: Gates, twice: Twice, tmp_path: Path
) -> None:
    twice.will("4")
    later(twice.go, twice.has_refused_one)
    with pytest.raises(
        gate_there.operators.GateInfrastructureError,
        match=r"no report.*process \d+ on .* ended: the catalog does not answer",
    ):
        ended(gate_there, False)
    assert stored(tmp_path) == []


@pytest.mark.slow
def test_a_gate_does_not_wait_for_a_dead_job_and_the_next_try_has_one_of_its_own(
    gate_there: Gates, twice: Twice, tmp_path: Path
) -> None:
    twice.will("passed")

    def kill() -> None:
        os.kill(twice.took[0], signal.SIGKILL)

    later(kill, twice.has_refused_one)
    with pytest.raises(
        gate_there.operators.GateInfrastructureError,
        match=r"was taken by process \d+ on .*, which has given no sign of life for",
    ):
        ended(gate_there, False)
    assert stored(tmp_path) == []
    twice.go()
    gate_there.context["ti"].id = "attempt-2"
    gate_there.context["ti"].try_number = 2
    assert ended(gate_there, False) == "passed"


@pytest.mark.more
def test_a_job_that_no_one_follows_ends_with_its_gate(
    gate_there: Gates, twice: Twice, tmp_path: Path
) -> None:
    """By itself, unless it is the one that the gate follows, which is cancelled."""
    twice.will("passed")
    with pytest.raises(gate_there.operators.GateTimeoutError, match="its execution_timeout"):
        ended(gate_there, True, execution_timeout=timedelta(seconds=4))
    taker = next(job for job in twice.service.jobs if job.process.pid in twice.took)
    ended_with = taker.process.wait(60)
    assert ended_with == (-signal.SIGKILL if taker.is_cancelled else 4)
    assert ("error: the gate of this job has ended" in taker.log) is not taker.is_cancelled
    assert not (tmp_path / "results" / "runs").exists()


@pytest.mark.parametrize(
    ("variables", "given", "expected"),
    [
        ({}, [], "process "),
        ({}, ["--JOB_NAME", "g", "--JOB_RUN_ID", "jr_7", "--x"], "the run jr_7 of Glue, process "),
        (
            {"CONTAINER_ID": "container_e12_1700000000000_0042_02_000001"},
            [],
            "application_1700000000000_0042, attempt 2, process ",
        ),
        ({"SPARK_APPLICATION_ID": "spark-1f"}, [], "the application spark-1f, process "),
    ],
)
def test_a_job_has_a_name_that_people_find(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], given: list[str], expected: str
) -> None:
    for name in ("CONTAINER_ID", "SPARK_APPLICATION_ID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert name_of_job(given).startswith(expected)
