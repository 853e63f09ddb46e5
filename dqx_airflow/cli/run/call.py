"""One call of `dql run`: its arguments, its dates, and what is wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from dqx_airflow.cli.reports import COLOURS, printable
from dqx_airflow.datasets.dqx_toml import FILE_NAME, Output, Settings, Unsupported
from dqx_airflow.diagnostics.diagnostic import Diagnostic, errors_of, listed, nearest
from dqx_airflow.values import DatasetRef, GateReport, GateRequest, Outcome, Selection, Span


@dataclass(frozen=True, slots=True)
class CallProblems:
    """The diagnostics in order, each once, and their texts: files, and the values of arguments by
    flag."""

    diagnostics: dict[Diagnostic, None] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)

    @property
    def has_errors(self) -> bool:
        return bool(errors_of(self.diagnostics))

    def wrong(self, flag: str, text: str, message: str, hint: str | None = None) -> None:
        """Reports an argument as a whole."""
        lines = [*self.sources[flag].split("\n"), text] if flag in self.sources else [text]
        self.sources[flag] = "\n".join(lines)
        span = Span(flag, len(lines), 1, len(lines), len(text) + 1)
        self.diagnostics[Diagnostic(message, span, help=hint or None)] = None

    def warn(self, flag: str, text: str, message: str) -> None:
        """Warns about an argument that is ignored, or possibly meant otherwise."""
        span = Span(flag, 1, 1, 1, len(text) + 1)
        self.sources.setdefault(flag, text)
        self.diagnostics[Diagnostic(message, span, is_mild=True)] = None

    def add(self, diagnostics: Iterable[Diagnostic], sources: Mapping[str, str]) -> None:
        self.diagnostics.update(dict.fromkeys(diagnostics))
        self.sources.update(sources)


def with_advice(
    error: Diagnostic, sources: Mapping[str, str], given: Mapping[str, DatasetRef]
) -> Diagnostic:
    """An error of a suite about its datasets, with the `dql run` arguments that fix it."""
    match error.code:
        case "E009":
            span = error.span
            line = sources[span.file].split("\n")[span.line - 1]
            name = line[span.column - 1 : span.end_column - 1]
            nearest_name = nearest(name, given)
            how_to_add = (
                f"add --dataset {name}=PATH, or [datasets.{name}] with a path to {FILE_NAME}"
            )
            advice = f"did you mean '{nearest_name}'?" if nearest_name else how_to_add
        case "E111":
            advice = f"add date_column=COLUMN to its --dataset, or to its table in {FILE_NAME}"
        case _:
            return error
    return replace(error, help=advice)


_MARKS = {Outcome.PASSED: ".", Outcome.WARNED: "w", Outcome.BLOCKED: "B", Outcome.BROKEN: "X"}
_MOST_NAMED = 5


def print_calendar(reports: Sequence[GateReport], console: Console) -> None:
    """Prints the outcome of each date of each suite, and the number of dates with each outcome."""
    by_gate: dict[str, dict[date, Outcome]] = {}
    for report in reports:
        outcomes = by_gate.setdefault(report.run_key.gate, {})
        outcomes[report.run_key.date] = report.outcome
    for gate, outcomes in by_gate.items():
        console.print()
        for line in calendar_lines(printable(gate), outcomes):
            console.print(line, soft_wrap=True)


def calendar_lines(title: str, outcomes: dict[date, Outcome]) -> list[Text]:
    """The lines of a calendar: its header, the months, and the legend with the counts."""
    days = "".join(f"{day:>3}" for day in range(1, 32))
    width = max(len(title), len("2026-01"))
    lines = [Text(f"{title:<{width}}{days}", style="bold")]
    months = dict.fromkeys((on.year, on.month) for on in sorted(outcomes))
    for year, month in months:
        line = Text(f"{f'{year}-{month:02}':<{width}}")
        for day in range(1, 32):
            outcome = _outcome_on(outcomes, year, month, day)
            mark = "   " if outcome is None else f"  {_MARKS[outcome]}"
            line.append(mark, style=COLOURS[outcome.value] if outcome else "")
        line.rstrip()
        lines.append(line)
    counts = Counter(outcomes.values())
    counted = [
        f"{_MARKS[outcome]} {counts[outcome]} {outcome.value}"
        for outcome in Outcome
        if counts[outcome]
    ]
    lines.append(Text(f"{len(outcomes)} dates: {', '.join(counted)}"))
    for bad_outcome in (Outcome.BLOCKED, Outcome.BROKEN):
        dates = [
            on.isoformat() for on, outcome in sorted(outcomes.items()) if outcome is bad_outcome
        ]
        if dates:
            line = Text(f"{bad_outcome.value}: {listed(dates, most=_MOST_NAMED)}")
            line.stylize(COLOURS[bad_outcome.value], 0, len(bad_outcome.value))
            lines.append(line)
    return lines


def _outcome_on(outcomes: dict[date, Outcome], year: int, month: int, day: int) -> Outcome | None:
    try:
        return outcomes.get(date(year, month, day))
    except ValueError:  # the month is shorter
        return None


@dataclass(frozen=True, slots=True)
class Options:
    """The typed options; None if one is not given. `run_options` are those of `RunOptions`, by
    name. `data` to `unsupported` are for contracts only, `shadow` for a single suite."""

    paths: tuple[Path, ...]
    connection: str | None = None
    date: str | None = None
    skip_dates: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    config: Path | None = None
    output: Output | None = None
    results: str | None = None
    recompute: bool = False
    run_options: Mapping[str, Any] = field(default_factory=dict)
    data: str | None = None
    server: str | None = None
    expect_version: str | None = None
    models: tuple[str, ...] = ()
    is_strict: bool = False
    unsupported: Unsupported | None = None
    shadow: Path | None = None
    selection: Selection | None = None
    output_file: Path | None = None
    watch: bool = False

    @property
    def is_given(self) -> bool:
        """True if there is more than a path."""
        return replace(self, paths=()) != Options(())


@dataclass(frozen=True, slots=True)
class RunCall:
    """The work to do, or the mistakes in the call.

    `sources` are the texts to which the diagnostics refer, `files` all files that were read or
    searched. Without errors there is at least one request.
    """

    requests: tuple[GateRequest, ...]
    settings: Settings
    output: Output
    diagnostics: tuple[Diagnostic, ...]
    sources: Mapping[str, str]
    files: frozenset[Path]

    @property
    def has_errors(self) -> bool:
        return bool(errors_of(self.diagnostics))

    @property
    def dates(self) -> tuple[date, ...]:
        """The judged dates, in order."""
        return tuple(dict.fromkeys(request.run_key.date for request in self.requests))

    @property
    def shared_scans(self) -> tuple[tuple[GateRequest, ...], ...]:
        """The requests, grouped by the scans that they share: suites over a common dataset share
        one."""
        scans: list[list[GateRequest]] = []
        for request in self.requests:
            shared = next((scan for scan in scans if _shares_scan(request, scan)), None)
            if shared is None:
                scans.append([request])
            else:
                shared.append(request)
        return tuple(map(tuple, scans))


def _shares_scan(request: GateRequest, others: Sequence[GateRequest]) -> bool:
    """True if the request reads a dataset of the others, and means the same by each name."""
    refs_by_name = {ref.name: ref for other in others for ref in other.datasets}
    common = [ref for ref in request.datasets if ref.name in refs_by_name]
    return bool(common) and all(refs_by_name[ref.name] == ref for ref in common)
