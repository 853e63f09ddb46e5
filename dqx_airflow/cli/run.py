"""`dql run`: checks suites, runs them against datasets, prints the results."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from dqx_airflow.cli import command, exit_codes
from dqx_airflow.cli.arguments import Options, with_shared_options
from dqx_airflow.diagnostics.renderers import draw
from dqx_airflow.errors import DqxError
from dqx_airflow.values import GateReport, Outcome
from dqx_airflow.values.redact import redact

if TYPE_CHECKING:
    from dqx_airflow.cli.calls import RunCall
    from dqx_airflow.cli.spark import Spark


EXIT_OF = {
    Outcome.PASSED: 0,
    Outcome.WARNED: 0,
    Outcome.ACCEPTED: 0,
    Outcome.BLOCKED: exit_codes.EXIT_FAILED,
    Outcome.BROKEN: exit_codes.EXIT_BROKEN,
}


@with_shared_options
def run(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...")],
    *,
    shadow: Annotated[Path | None, typer.Option(metavar="SUITE")] = None,
    shared: Options,
) -> None:
    """Run suites and contracts against datasets, in one Spark session.

    Settings that are not given here come from the dqx.toml nearest to the suite. A run with a
    selection (--only, --tag, --min-severity ...) is partial: it leaves out other assertions.

    Exit code 0 passed or warned, 1 blocked, 2 an error in a suite or on the command line, 3 broken,
    4 Spark or the results store failed. With several suites, the worst one counts.

    :param paths: Suites, contracts, or folders with .dql files.
    :param shadow: A second suite to compare with, evaluated in the same scan. It never changes the
        outcome.
    """
    raise typer.Exit(run_call(replace(shared, paths=tuple(paths), shadow=shadow)))


def run_call(options: Options) -> int:
    """Runs a call, once or until interrupted; returns the exit code."""
    logging.basicConfig(format="%(name)s: %(message)s", stream=sys.stderr)
    logging.getLogger("openlineage.client.transport.console").setLevel(logging.INFO)
    runner = _Runner(options, command.writable(options.output, force=options.force))
    try:
        return runner.watch() if options.watch else runner.run()
    except KeyboardInterrupt:
        return exit_codes.EXIT_INTERRUPTED
    finally:
        runner.close()


@dataclass(slots=True)
class _Runner:
    """Runs the same call, once or repeatedly, over one Spark session.

    `output` is the file for the reports; None for standard output.
    """

    options: Options
    output: Path | None
    _spark: Spark | None = None
    _read: Stamps = field(default_factory=dict)

    def run(self) -> int:
        """Parses the call again and runs it; returns the exit code."""
        from dqx_airflow.cli.calls import read_call

        call = read_call(self.options, date.today())
        if self.options.watch:
            self._read = stamps_of(call.files)
        print_diagnostics(call)
        if call.has_errors:
            return exit_codes.EXIT_WRONG
        quiet, verbose = self.options.quiet, self.options.verbose
        command.require_text(call.format.value, quiet=quiet, verbose=verbose)
        settings = {**call.requests[0].session_settings, **call.settings.session}
        extra = "sail" if call.settings.connection.address == "sail" else "spark"
        of_spark = command.of_spark("dqx_airflow.cli.spark", extra)
        reached: Spark = of_spark.Spark(call.settings.connection, settings)
        if self._spark is None:
            self._spark = reached
        elif reached != self._spark:
            typer.echo("warning: the new connection takes effect at the next start", err=True)
        first = call.requests[0]
        if not self.options.quiet:
            typer.echo(_dates_text(call), err=True)
        codes: list[int] = []
        with ExitStack() as opened:
            file = None
            if self.output is not None:
                try:
                    file = opened.enter_context(self.output.open("w", encoding="utf-8"))
                except OSError as error:
                    _print_error(f"{self.output} cannot be written: {error.strerror or error}")
                    return exit_codes.EXIT_WRONG
            reports = self._reports(call, self._spark, codes)
            earliest = [*islice(reports, 1)]
            # Imported by now, while Spark worked on the first report.
            from dqx_airflow.cli.reports import write_reports

            write_reports(
                chain(earliest, reports),
                call.format,
                file,
                first.results_root,
                dates=call.dates,
                folders=call.folders,
                is_quiet=self.options.quiet,
                is_verbose=self.options.verbose,
            )
        return max(codes)

    def _reports(self, call: RunCall, spark: Spark, codes: list[int]) -> Iterator[GateReport]:
        """The reports of the requests, as soon as they are available. Adds their exit codes to
        `codes`."""
        for requests in call.shared_scans:
            try:
                reports = spark.run(requests)
            except DqxError as error:
                codes.append(exit_codes.exit_code_of(error))
                names = dict.fromkeys(request.suite.name for request in requests)
                _print_error(f"{', '.join(names)}: {error.problem}", error.hint)
            else:
                codes += (EXIT_OF[report.outcome] for report in reports)
                yield from reports

    def watch(self) -> int:
        """Runs repeatedly, until interrupted."""
        while True:
            self.run()
            typer.echo("waiting for a change; press Ctrl+C to stop", err=True)
            changed = wait_for_change(self._read)
            typer.echo(f"changed: {', '.join(map(str, changed))}", err=True)

    def close(self) -> None:
        if self._spark is not None:
            self._spark.close()


def _dates_text(call: RunCall) -> str:
    """The judged dates, and their origin."""
    first, last = call.dates[0].isoformat(), call.dates[-1].isoformat()
    origin = call.requests[0].date_from
    if len(call.dates) == 1:
        return f"date {first}, {origin}"
    return f"{len(call.dates)} dates from {first} to {last}, {origin}"


def print_diagnostics(call: RunCall) -> None:
    """Draws the diagnostics of a call, with its secrets hidden."""
    if not call.diagnostics:
        return

    sources = {
        name: "\n".join(map(_without_secrets, text.split("\n")))
        for name, text in call.sources.items()
    }
    typer.echo(draw(call.diagnostics, sources, colour=command.has_colours(sys.stderr)), err=True)


def _without_secrets(line: str) -> str:
    """A line of the same length, with stars from the first secret to the last."""
    shown = redact(line)
    if shown == line:
        return line
    start = _shared(line, shown)
    end = len(line) - _shared(line[:start:-1], shown[:start:-1])
    return f"{line[:start]}{'*' * (end - start)}{line[end:]}"


def _shared(first: str, second: str) -> int:
    """The length of the common prefix of two texts."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(first), len(second)))


def _print_error(problem: str, hint: str = "") -> None:
    from dqx_airflow.cli.reports import printable

    message = f"error: {problem}\n  help: {hint}" if hint else f"error: {problem}"
    typer.echo(printable(message, keep="\n"), err=True)


_INTERVAL_S = 0.3

Stamps: TypeAlias = "dict[Path, tuple[int, int] | None]"


def stamps_of(files: Collection[Path]) -> Stamps:
    """The modification time and the size of each file; None for a missing one."""
    return {file: _stamp(file) for file in files}


def wait_for_change(before: Stamps) -> tuple[Path, ...]:
    """The changed files, as soon as they no longer change."""
    changed: set[Path] = set()
    last = before
    while True:
        current = stamps_of(before)
        if changed and current == last:
            return tuple(sorted(changed))
        changed |= {file for file in current if current[file] != last[file]}
        last = current
        time.sleep(_INTERVAL_S)


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
