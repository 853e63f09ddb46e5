"""The dates and periods of a lifecycle, compared with each other."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from itertools import combinations

from dqx_airflow.contracts.model import Contract, day_of
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.values import Span

_TO_WRITE = "write a date such as 2026-03-31"


def contradicting_dates(contract: Contract) -> Iterator[Diagnostic]:
    """The contradictions in the lifecycle of a contract."""
    life = contract.lifecycle
    named = (
        ("effective date", life.effective_date),
        ("deprecation", life.deprecation_date),
        ("sunset", life.sunset_date),
    )
    days: dict[str, date] = {}
    for name, text in named:
        if (day := day_of(text)) is not None:
            days[name] = day
        elif text is not None:
            message = f"the {name} '{text}' is not a date"
            yield Diagnostic(message, _span_of(contract, text), "E427", help=_TO_WRITE)
    for earlier, later in combinations(days, 2):
        if days[earlier] > days[later]:
            message = f"the {later} on {days[later]} is before the {earlier} on {days[earlier]}"
            span = _span_of(contract, days[later].isoformat())
            yield Diagnostic(message, span, "E427", help="correct one of the two dates")
    deprecated, sunset = days.get("deprecation"), days.get("sunset")
    if deprecated is None or sunset is None or sunset < deprecated:
        return
    between = (sunset - deprecated).days
    periods = ((life.notice_days, "notice"), (life.dual_write_days, "dual writes"))
    for promised, period in periods:
        if promised is not None and promised > between:
            message = f"there are {between} days from deprecation to sunset, and {promised} days "
            message += f"of {period} are promised"
            span = _span_of(contract, sunset.isoformat())
            yield Diagnostic(message, span, "E427", help="move the sunset, or deprecate earlier")


def _span_of(contract: Contract, text: str) -> Span:
    """The position of a value of the lifecycle."""
    spans = (note.clause.span for note in contract.notes if note.clause.text.startswith(text))
    return next(spans, contract.span)
