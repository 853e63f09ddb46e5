"""Shared by the tests of the operators: a stub of `spark-submit`, a task instance, the log."""

from __future__ import annotations

import asyncio
import atexit
import json
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dqx_airflow.values import GateRequest
from dqx_airflow.values.json_form import FLAG, from_arguments
from tests.processes import processes_with

ENDLESS = "SELECT max(a.id * b.id % 7) AS id FROM range(9000000) a CROSS JOIN range(9000000) b"

WRITER = Path(__file__).with_name("report_writer.py")

SUITE = """suite "Orders" {
    check "Completeness" on orders {
        assert null_count(id) == 0
            name "orders.id"
            severity P0
    }
}
"""

CONTRACT = """\
dataContractSpecification: 1.2.1
id: orders
info: {title: Orders, version: 2.3.0}
models:
  orders:
    fields:
      total: {type: number, minimum: 0}
"""
STUB = """#!/bin/sh
# Notes its arguments and variables, then does what the plan says for this submission; the last line
# of it repeats.
calls=$(ls {home} | grep -c '^call')
export DQX_STUB={home}
printf '%s\\0' "$@" > {home}/call$((calls + 1))
env -0 > {home}/env
total=$(wc -l < {home}/plan)
line=$((calls + 1))
[ $line -gt $total ] && line=$total
for action in $(sed -n "${{line}}p" {home}/plan); do
    case $action in
        exit=*) exit ${{action#exit=}} ;;
        killed) kill -9 $$ ;;
        binary) printf 'caf\\351 \\377\\n' ;;
        on-yarn) echo 'Submitted application application_1700000000000_0001' ;;
        prints=*) cat {home}/${{action#prints=}} >&2 ;;
        sleep) exec sleep 30 ;;
        slow) sleep 5 ;;
        data=*) cp -r {home}/${{action#data=}}/. {home}/data ;;
        real) exec spark-submit "$@" ;;
        classes) printf '%s\\n' "$@" | grep -o 'ArchiveClassesAtExit=[^ ]*' | cut -d= -f2 \\
            | xargs -r touch ;;
        break-results) rm -rf {results}; echo > {results} ;;
        *) {python} -I -S {writer} {address} $action "$@" || exit 70 ;;
    esac
done
"""


def wait_for(is_so: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def killed(gate: Any, context: Any, is_running: Callable[[], bool]) -> BaseException:
    """The exception of a gate that is killed as soon as its job runs."""
    ended: list[BaseException] = []

    def run() -> None:
        try:
            gate.execute(context)
        except Exception as error:
            ended.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    wait_for(is_running)
    gate.on_kill()
    thread.join(30)
    (error,) = ended
    return error


def dag_file(tasks: str, before: str = "") -> str:
    """A DAG file, of which a test writes the tasks, and what they need before."""
    return f"""
from datetime import datetime, timedelta

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset, task

from dqx_airflow.operators import ContractGateOperator, DqlGateOperator

{before}
with DAG("DAG_ID", start_date=datetime(2024, 1, 1), schedule=None):{tasks}"""


def event_of(trigger: Any) -> dict[str, Any]:
    """The payload of the event of a trigger."""

    async def first() -> Any:
        return await anext(trigger.run())

    payload: dict[str, Any] = asyncio.run(first()).payload
    return payload


def needs_airflow(major: int, minor: int) -> pytest.MarkDecorator:
    """Skips a test of what an older Airflow does not have, or `dag.test()` of an older one."""
    is_older = installed_airflow() < (major, minor)
    return pytest.mark.skipif(is_older, reason=f"Airflow {major}.{minor} has it")


def installed_airflow() -> tuple[int, ...]:
    """The major and the minor version of Airflow in this environment."""
    return tuple(map(int, version("apache-airflow-core").split(".")[:2]))


@cache
def report_writer() -> str:
    """The address of the process that writes the reports; it lives as long as this one."""
    folder = tempfile.TemporaryDirectory(prefix="dqx-")  # short: it is the address of a socket
    address = f"{folder.name}/reports"
    process = subprocess.Popen(
        [sys.executable, WRITER, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin
    assert process.stdout
    assert process.stdout.readline() == b"ready\n"
    atexit.register(lambda: (process.stdin.close(), process.wait(), folder.cleanup()))
    return address


def install_stub(program: Path, home: Path, results: Path) -> SparkSubmit:
    """Writes the stub; it keeps its notes in `home`, and passes by default."""
    for folder in (home, program.parent):
        folder.mkdir(parents=True)
    paths = {
        "home": home,
        "python": sys.executable,
        "writer": WRITER,
        "address": report_writer(),
        "results": results,
    }
    program.write_text(STUB.format(**{key: shlex.quote(str(at)) for key, at in paths.items()}))
    program.chmod(0o755)
    stub = SparkSubmit(home)
    stub.will("passed")
    return stub


@dataclass(frozen=True, slots=True)
class SparkSubmit:
    """The `spark-submit` of a test, and what it was called with."""

    home: Path

    def will(self, *submissions: str) -> None:
        """Says what each submission does: words of STUB, in order (`"passed exit=1"`)."""
        (self.home / "plan").write_text("".join(f"{line}\n" for line in submissions))

    @property
    def calls(self) -> list[list[str]]:
        """The arguments of each call, in order."""
        count = len(list(self.home.glob("call*")))
        paths = [self.home / f"call{number}" for number in range(1, count + 1)]
        return [path.read_bytes().decode().split("\0")[:-1] for path in paths]

    @property
    def processes(self) -> list[int]:
        """The submissions that run now, and all that they started, oldest first."""
        return processes_with("DQX_STUB", self.home)

    @property
    def requests(self) -> list[GateRequest]:
        """The requests of the calls for one gate."""
        given = [call for call in self.calls if FLAG in call]
        found = [from_arguments(call[call.index(FLAG) :]) for call in given]
        return [request for request in found if isinstance(request, GateRequest)]

    @property
    def conf(self) -> dict[str, str]:
        """The `--conf` settings of the last call."""
        call = self.calls[-1]
        pairs = [call[place + 1] for place, word in enumerate(call) if word == "--conf"]
        return dict(pair.split("=", 1) for pair in pairs)

    @property
    def env(self) -> dict[str, str]:
        """The environment variables of the last call."""
        variables = (self.home / "env").read_bytes().decode().split("\0")[:-1]
        return dict(variable.split("=", 1) for variable in variables)


@dataclass(frozen=True, slots=True)
class Log:
    """The entries of the log, as structlog of Airflow keeps them: level and text."""

    entries: list[MutableMapping[str, Any]]

    def at(self, *levels: str) -> list[str]:
        found = [str(entry["event"]) for entry in self.entries if entry["log_level"] in levels]
        return [event for event in found if "outside of the Task Runner" not in event]

    @property
    def text(self) -> str:
        return "\n".join(str(entry["event"]) for entry in self.entries)


@dataclass(frozen=True)
class Run:
    """A DAG run that came to its end."""

    state: str
    tasks: dict[str, Any]

    def __getitem__(self, task: str) -> str:
        return str(self.tasks[task].state)

    def tries(self, task: str = "gate") -> int:
        return int(self.tasks[task].try_number)

    def xcom(self, key: str, task: str = "gate") -> Any:
        """As the next task would read it."""
        from airflow.models.xcom import XComModel
        from airflow.utils.session import create_session

        with create_session() as session:
            return session.scalar(
                XComModel.get_many(
                    run_id=self.tasks[task].run_id, task_ids=task.partition("[")[0], key=key
                )
                .with_only_columns(XComModel.value)
                .limit(1)
            )


@dataclass
class FakeRun:
    logical_date: datetime | None = datetime(2024, 5, 17, 3, tzinfo=timezone.utc)
    run_after: datetime = datetime(2024, 5, 18, 3, tzinfo=timezone.utc)
    start_date: datetime | None = datetime(2024, 5, 18, 3, 1, tzinfo=timezone.utc)
    conf: dict[str, Any] = field(default_factory=dict)
    clear_number: int = 0


@dataclass
class FakeTask:
    """A running task instance, with the attributes that a gate reads."""

    dag_id: str = "lake"
    task_id: str = "gate"
    run_id: str = "manual__1"
    map_index: int = -1
    try_number: int = 1
    id: str = "attempt-1"
    dag_run: FakeRun = field(default_factory=FakeRun)
    pushed: dict[str, Any] = field(default_factory=dict)

    def xcom_push(self, key: str, value: Any) -> None:
        json.dumps(value, allow_nan=False)
        self.pushed[key] = value

    def get_template_context(self) -> dict[str, Any]:
        return {"dag_run": self.dag_run}


@dataclass(frozen=True)
class FakeDag:
    fileloc: str


@dataclass(frozen=True)
class Gates:
    """Makes gates over `orders`, and runs them in the task of `context`, as Airflow does: with
    their templates rendered. Every argument of a gate can be given."""

    operators: ModuleType
    context: dict[str, Any]
    kind: str = "DqlGateOperator"
    given: Mapping[str, Any] = field(
        default_factory=lambda: {"suite": "orders.dql", "datasets": {"orders": "/lake/orders"}}
    )

    def __call__(self, **given: Any) -> Any:
        return getattr(self.operators, self.kind)(**{"task_id": "gate", **self.given, **given})

    def rendered(self, **given: Any) -> Any:
        """The gate as Airflow hands it to `execute`."""
        made = self(**given)
        made.render_template_fields(self.context)
        return made

    def run(self, **given: Any) -> Any:
        """The return value of the task."""
        return self.rendered(**given).execute(self.context)

    def fails(self, error: str, match: str = "", **given: Any) -> Exception:
        """The exception that ends the task, by its name and its message."""
        made = self.rendered(**given)
        with pytest.raises(getattr(self.operators, error), match=match or None) as raised:
            made.execute(self.context)
        return raised.value

    def deferred(self, made: Any) -> Any:
        """The exception that defers the task of a gate, with its trigger."""
        from airflow.providers.common.compat.sdk import TaskDeferred

        with pytest.raises(TaskDeferred) as raised:
            made.execute(self.context)
        return raised.value

    def request(self, **given: Any) -> GateRequest:
        """The request of the job, before the source is read."""
        request: GateRequest = self.rendered(**given).build_request(self.context)
        return request

    def checked(self, **given: Any) -> GateRequest:
        """The request of the job."""
        made = self.rendered(**given)
        request: GateRequest = made.check_source(made.build_request(self.context))
        return request
