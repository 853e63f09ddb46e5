"""The `dql demo` verb: three days of 2013, their results, and where to look next."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli.exit_codes import EXIT_FAILED
from dqx_airflow.values import Status

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from dqx_airflow.cli.demo.home import DemoHome
    from dqx_airflow.values import Verdict

_EXPECTATION = "Real flights through two gates: three days take about two minutes on two cores."


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
    home: Annotated[Path, typer.Option(help="The folder for all files of the demo.")] = Path(
        ".dqx/demo"
    ),
    day: Annotated[
        list[datetime] | None,
        typer.Option(
            formats=["%Y-%m-%d"],
            help="Run only this day. Repeatable. Default: all three days.",
        ),
    ] = None,
) -> None:
    """Run the example DAG on three days of real flights, in a local Airflow and Spark.

    The middle day is a snow storm, and its gate blocks. Takes about two minutes on two cores and
    writes nothing outside of the folder. Exit code 0 if the days end as expected, 1 if not, 4 if
    Airflow or Spark cannot be started.
    """
    from rich.console import Console

    from dqx_airflow.cli.demo.home import DemoHome

    days = _chosen({timestamp.date() for timestamp in day or ()})
    console = Console(highlight=False)
    started = datetime.now(timezone.utc)
    demo_home = DemoHome(home.resolve())
    states = _run(demo_home, days, console)
    surprises = _show(demo_home, states, started, console)
    console.print(
        f"\nThat took {(datetime.now(timezone.utc) - started).total_seconds():.0f} seconds."
    )
    if surprises:
        raise typer.Exit(EXIT_FAILED)


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
    """Lands the data and runs the DAG for each day; the states of the tasks."""
    from rich.live import Live

    from dqx_airflow.cli.demo.airflow import finish_migration, running_airflow, start_migration
    from dqx_airflow.cli.demo.flights import land

    home.prepare()
    console.print(_EXPECTATION)
    migration = start_migration(home)
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
        console.print(f"Running the DAG flights_medallion for {count}, with real spark-submit:\n")
        run_ids = {airflow.trigger(day.date): day for day in days}
        live = stack.enter_context(
            Live(_table(days, states), console=console, refresh_per_second=4, transient=True)
        )
        for task_states in airflow.follow(tuple(run_ids)):
            if not console.is_terminal:
                _print_changes(
                    console, {run_ids[run]: tasks for run, tasks in task_states.items()}, states
                )
            states = {run_ids[run]: tasks for run, tasks in task_states.items()}
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

    from dqx_airflow.cli.demo.airflow import TASKS

    table = Table("task", *(day.date.isoformat() for day in days))
    for task in TASKS:
        cells = [states.get(day, {}).get(task, "") for day in days]
        shown = [Text(state or "...", style=_STATE_STYLES.get(state, "dim")) for state in cells]
        table.add_row(task, *shown)
    return table


def _show(
    home: DemoHome,
    states: Mapping[DemoDay, Mapping[str, str]],
    since: datetime,
    console: Console,
) -> list[str]:
    """Prints the results of the days and where to look next; returns what was unexpected."""
    from dqx_airflow.diagnostics.verdicts import draw_verdict, headline
    from dqx_airflow.results.reader import find_report, list_runs

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
                drawn = draw_verdict(verdict, report, colour=console.is_terminal)
                console.print()
                console.out(drawn, highlight=False)
    for surprise in surprises:
        console.print(
            f"not as expected: {surprise}; see {home.task_logs}", style="red", markup=False
        )
    _print_next_steps(home, console)
    return surprises


def _scaled(verdict: Verdict) -> str:
    from dqx_airflow.diagnostics.verdicts import format_value

    value, scaled = format_value(verdict.value), format_value(verdict.scaled_value)
    return (
        f"{verdict.name}: {value} x {verdict.multiplier:g} = {scaled}, expected "
        f"{verdict.expected} (profile {', '.join(verdict.profiles)})"
    )


def _is_expected(day: DemoDay, states: Mapping[str, str]) -> bool:
    from dqx_airflow.cli.demo.airflow import TASKS

    expected = "success"
    for task in TASKS:
        if task == day.blocked_at:
            if states.get(task) != "failed":
                return False
            expected = "upstream_failed"
        elif states.get(task) != expected:
            return False
    return True


def _print_next_steps(home: DemoHome, console: Console) -> None:
    environment = _shown(home.environment_file)
    console.print("\n[bold]Where to look next[/bold]")
    steps = (
        ("results", f"dql results list --root {_shown(home.results)}"),
        ("one run", f"dql results show latest --root {_shown(home.results)}"),
        ("lineage", str(_shown(home.lineage))),
        ("task logs", f"{_shown(home.task_logs)}, and in the Airflow UI"),
        ("Airflow UI", f". {environment} && airflow standalone, then http://localhost:8080"),
    )
    for name, text in steps:
        console.print(f"  {name:<11} {text}", markup=False, soft_wrap=True)


def _shown(path: Path) -> Path:
    """The path relative to the working directory, if it is below."""
    working_folder = Path.cwd()
    return path.relative_to(working_folder) if path.is_relative_to(working_folder) else path
