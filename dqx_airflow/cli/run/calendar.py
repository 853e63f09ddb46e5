"""The outcomes of many dates as a calendar: a row for each month, a character for each date."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date

from rich.console import Console
from rich.text import Text

from dqx_airflow.cli.reports import COLOURS, printable
from dqx_airflow.diagnostics.listing import listed
from dqx_airflow.values import GateReport, Outcome

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
