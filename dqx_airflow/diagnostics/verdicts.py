"""Verdicts and reports as text: the drawing of a failure, the one-line headline."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache

from dqx_airflow.diagnostics.diagnostic import Diagnostic, listed
from dqx_airflow.diagnostics.renderers import draw, printable
from dqx_airflow.values import (
    FailingRow,
    GateReport,
    MetricValue,
    Outcome,
    PartialRun,
    Span,
    Status,
    Verdict,
)
from dqx_airflow.values.exact import exact_as_written, exact_text, is_decimal, nearest_float

SHOWN_ROWS = 3
_NO_VALUE = "no value"
_MOST_NAMED = 3
_MOST_OTHERS = 5
_LONGEST_ROW = 200
_PERCENTAGE = re.compile(
    r"(-?[\d_]+(?:\.\d+)?)%\)?(?: of rows)?(?: for (?:each|\S+ of groups by) .*)?$", re.DOTALL
)
_PERCENTAGE_BEFORE = re.compile(r"(-?[\d_]+(?:\.\d+)?)%\)? and ")
_LONGEST_DECIMAL = 40  # the digits of decimal(38), a sign and a point
_AGE = re.compile(r"(?:freshness|data_lag|timeliness|commit_age)\((?:[^()]|\([^()]*\))*\)")
"""The expressions whose value is a duration in seconds."""
_UNITS = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))
_MESSAGE = {Status.FAILED: "assertion failed", Status.ERROR: "assertion could not be evaluated"}


def format_value(value: MetricValue) -> str:
    """A metric value in readable form: decimals and integers in full, other numbers with six
    significant digits."""
    if value is None:
        return _NO_VALUE
    if isinstance(value, Fraction):
        shown = exact_text(value) if is_decimal(value) else ""
        return shown if 0 < len(shown) <= _LONGEST_DECIMAL else f"{nearest_float(value):.6g}"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def format_percent(share: int | float | Fraction, limit: float | None = None) -> str:
    """A share as `50.8%`: with as many digits as distinguish it from its limit, and from zero."""
    for digits in range(1, 10):
        text = f"{100 * float(share):.{digits}f}"
        is_limit = limit is not None and text == f"{100 * limit:.{digits}f}"
        if float(text) == 100 * float(share) or not (is_limit or float(text) == 0):
            break
    return f"{text.rstrip('0').rstrip('.')}%"


def format_in_unit(value: MetricValue, verdict: Verdict) -> str:
    """A value of a verdict in the unit of its limit: as a percentage or a duration if it is one."""
    return format_like_limit(value, verdict.expression, verdict.expected, verdict.threshold)


def format_like_limit(
    value: MetricValue, expression: str, expected: str, limit: MetricValue = None
) -> str:
    """A value of an expression in the unit of its limit.

    :param expected: the condition as text, such as `< MAX_SHARE (10%)`.
    :param limit: its number, if known.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        return format_value(value)
    if is_age(expression):
        shown = format_duration(value)
        is_rounded_to_limit = value != limit and shown == format_duration(limit)
        return f"{format_value(value)} seconds" if is_rounded_to_limit else shown
    stated = _stated_shares(expected)
    if not stated:
        return format_value(value)
    if not isinstance(limit, int | float | Fraction):
        return format_percent(value, stated[0])
    if any(math.isclose(float(limit), stated_limit) for stated_limit in stated):
        return format_percent(value, float(limit))
    return format_value(value)


@lru_cache(maxsize=1024)
def _stated_shares(expected: str) -> tuple[float, ...]:
    """The percentages in a condition as shares: the last one first; none if it has no percentage.

    A chart formats hundreds of values by one condition.
    """
    match = _PERCENTAGE.search(expected)
    if match is None:
        return ()
    found = filter(None, (match, _PERCENTAGE_BEFORE.search(expected)))
    return tuple(float(percentage[1].replace("_", "")) / 100 for percentage in found)


@lru_cache(maxsize=1024)
def is_age(expression: str) -> bool:
    """True if the value is a duration, as for `freshness(at)`."""
    return _AGE.fullmatch(expression) is not None


def show_in_full(value: MetricValue) -> str:
    """A metric value with all of its digits."""
    return exact_text(value) if isinstance(value, int | Fraction) else str(value)


def format_duration(seconds: MetricValue) -> str:
    """A duration in its two largest units: `2 hours 4 minutes`."""
    if not isinstance(seconds, int | float | Fraction):
        return _NO_VALUE
    rest = abs(int(seconds))
    parts: list[str] = []
    for unit, length in _UNITS:
        count, rest = divmod(rest, length)
        if count or (unit == "second" and not parts):
            parts.append(f"{count} {unit}{'' if count == 1 else 's'}")
    return ("-" if seconds < 0 else "") + " ".join(parts[:2])


def format_row(failing: FailingRow, longest: int | None = None) -> str:
    """A failing row as text: `id=3, price=NULL (price is NULL)`."""
    cells = json.loads(failing.row, parse_int=str, parse_float=str)
    shown = ", ".join(
        f"{name}={'NULL' if value is None else value}" for name, value in cells.items()
    )
    if longest is not None and len(shown) > longest:
        shown = f"{shown[: longest - 3]}..."
    return f"{shown} ({failing.reason})"


def by_cause(verdicts: Iterable[Verdict]) -> list[tuple[Verdict, list[Verdict]]]:
    """Groups verdicts by cause, each first one with the others: assertions that could not be
    evaluated for the same reason, or failed with the implicit one that their dataset has rows."""
    found: dict[object, list[Verdict]] = {}
    empty: dict[str, object] = {}
    for verdict in verdicts:
        cause: object = id(verdict)
        if verdict.status is Status.ERROR:
            cause = verdict.reason or cause
        elif verdict.status is Status.FAILED:
            cause = next((empty[name] for name in verdict.datasets if name in empty), cause)
            if (verdict.check, verdict.expression) == ("implicit", "num_rows()"):
                empty |= dict.fromkeys(verdict.datasets, cause)
        found.setdefault(cause, []).append(verdict)
    return [(first, others) for first, *others in found.values()]


def draw_verdict(
    verdict: Verdict,
    report: GateReport,
    *,
    colour: bool = False,
    all_rows: bool = False,
    root: str | None = None,
    others: Sequence[Verdict] = (),
) -> str:
    """A failed or unevaluated assertion in the form of seed 001; a warning below `fail_on`.

    :param others: the other verdicts of the same cause, see `by_cause`.
    :param all_rows: displays all failing rows of its sample, in full.
    :param root: the results root, for the command that displays the rest.
    """
    is_mild = not verdict.can_block(report.fail_on)
    notes = [*_value_notes(verdict), *_rule_notes(verdict, report)]
    if verdict.reason:
        notes.append(("reason", verdict.reason))
    if others:
        notes.append(("also", listed([other.name for other in others], most=_MOST_OTHERS)))
    notes += _rows_shown(verdict, report, all_rows, root)
    if verdict.note:
        notes.append(("note", verdict.note))
    if decision := verdict.waived_by or verdict.accepted_by:
        notes.append(("decision", decision))
    if verdict.rows_left_out:
        notes.append(("decision", "promoted without the rows that violate it"))
    message = f"{_MESSAGE.get(verdict.status, verdict.status.value)}: {verdict.name}"
    if verdict.span is None or verdict.source_line is None:
        first = f"{'warning' if is_mild else 'error'}: {printable(message)}"
        return "\n".join([first, *(f"   = {name}: {printable(text)}" for name, text in notes)])
    diagnostic = Diagnostic(message, verdict.span, notes=tuple(notes), is_mild=is_mild)
    source = "\n" * (verdict.span.line - 1) + verdict.source_line
    return draw([diagnostic], {verdict.span.file: source}, colour=colour)


def _value_notes(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """The compared values of a verdict, each with its title."""
    unit = " seconds" if is_age(verdict.expression) and verdict.value is not None else ""
    yield "metric value", f"{format_value(verdict.value)}{unit}"
    if verdict.multiplier != 1.0:
        yield "scaled value", scaled_text(verdict)
    yield "expected", verdict.expected
    if (unscaled := unscaled_limit(verdict)) is not None:
        yield "limit", unscaled


def _rule_notes(verdict: Verdict, report: GateReport) -> Iterator[tuple[str, str]]:
    """The data that a verdict is about, and the rule behind it, each with a title."""
    yield "dataset", ", ".join(verdict.datasets)
    yield "date", report.run_key.date.isoformat()
    never = ", experimental: it never blocks" if verdict.is_experimental else ""
    yield "severity", f"{verdict.severity.value}{never}"
    if verdict.clause:
        contract = report.contract
        of_contract = f" of {contract.id} {contract.version or ''}".rstrip() if contract else ""
        yield "clause", f"{verdict.clause}{of_contract}"
    if verdict.profiles:
        yield "profiles", ", ".join(verdict.profiles)


def _rows_shown(
    verdict: Verdict, report: GateReport, all_rows: bool, root: str | None
) -> list[tuple[str, str]]:
    rows = verdict.failing_rows
    if all_rows:
        return [("failing row", format_row(row)) for row in rows]
    shown = [("failing row", format_row(row, _LONGEST_ROW)) for row in rows[:SHOWN_ROWS]]
    more = len(rows) - len(shown)
    if more:
        rest = f"{more} more in the sample: {results_command(report, root, '--rows')}"
        shown.append(("failing row", rest))
    return shown


def results_command(report: GateReport, root: str | None = None, *options: str) -> str:
    """The command that displays a report, ready for a shell.

    :param root: the results root; by default the one in the settings.
    """
    words = ["dql", "results", "show", report.run_id[:8], *options]
    return shlex.join([*words, *(["--results-root", root] if root else [])])


def draw_report(report: GateReport, *, colour: bool = False, root: str | None = None) -> str:
    """The report as text: what was not evaluated, failures in full, the headline last.

    :param root: the results root, for the commands that display the rest.
    """
    lacking = [
        f"not evaluated: {printable(verdict.name)} ({verdict.severity.value}): "
        f"{printable(verdict.reason or '')}"
        for verdict in report.not_evaluated
    ]
    parts = ["\n".join(lacking)] if lacking else []
    parts += [
        draw_verdict(verdict, report, colour=colour, root=root, others=others)
        for status in (Status.ERROR, Status.FAILED)
        for verdict, others in by_cause(report.with_status(status))
    ]
    if notes := [*account(report), *shadow_account(report)]:
        parts.append("\n".join(map(printable, notes)))
    return "\n\n".join([*parts, "\n".join(filter(None, [on_call(report), headline(report)]))])


def account(report: GateReport) -> list[str]:
    """Notes on a report, one line each: clauses of the contract that no assertion checked and that
    are not errors (accepted, or not understood), SQL without ANSI mode, the proof of the engine."""
    contract = report.contract
    accepted = [
        f"accepted: {verdict.clause or verdict.name} ({verdict.severity.value}): {verdict.reason}"
        for verdict in report.let_through
        if verdict.status is Status.SKIPPED
    ]
    mode = [f"SQL without ANSI mode (Spark {report.spark_version})"] if report.ansi is False else []
    if report.engine_proof is not None:
        mode.append(f"Spark {report.spark_version}: {report.engine_proof}")
    return [*accepted, *(contract.not_understood if contract else ()), *mode]


def shadow_account(report: GateReport) -> list[str]:
    """The verdicts of a gate's shadow suite that differ, one line each; empty without a shadow."""
    shadow = report.shadow
    if shadow is None:
        return []
    if shadow.outcome is None:
        return [
            f"shadow {shadow.name} was not evaluated; the gate is not affected: {shadow.problem}"
        ]
    changes = shadow_changes(report)
    first = f"shadow {shadow.name}: would be {shadow.outcome.value}, the gate is "
    differing = "1 verdict differs" if len(changes) == 1 else f"{len(changes)} verdicts differ"
    first += f"{report.outcome.value}; {differing}"
    return [first, *(f"shadow {shadow.name}: {_shadow_change(*pair)}" for pair in changes)]


def shadow_changes(report: GateReport) -> list[tuple[Verdict | None, Verdict | None]]:
    """The verdicts of the gate and of its shadow, in pairs, where their status differs. None stands
    for an assertion that only one of them has."""
    shadow = report.shadow
    if shadow is None or shadow.outcome is None:
        return []
    of_gate = {(verdict.check, verdict.name): verdict for verdict in report.verdicts}
    of_shadow = {(verdict.check, verdict.name): verdict for verdict in shadow.verdicts}
    pairs = (
        (of_gate.get(key), of_shadow.get(key)) for key in dict.fromkeys((*of_gate, *of_shadow))
    )
    return [
        (gate_verdict, shadow_verdict)
        for gate_verdict, shadow_verdict in pairs
        if gate_verdict is None
        or shadow_verdict is None
        or gate_verdict.status is not shadow_verdict.status
    ]


def _shadow_change(gate: Verdict | None, shadow: Verdict | None) -> str:
    verdict = gate or shadow
    assert verdict is not None
    if gate is None or shadow is None:
        where = "only in the shadow" if gate is None else "not in the shadow"
        return f"{verdict.name}: {where}, {verdict.status.value}"
    expected = f"{gate.expected}, in the shadow {shadow.expected}"
    found = found_text(shadow.expression, expected, scaled_text(shadow), shadow.worst_group)
    return f"{gate.name}: {gate.status.value} -> {shadow.status.value}; {found}"


def on_call(report: GateReport) -> str:
    """The contacts and instructions for a gate that did not pass, from its contract, on one line;
    empty if unknown."""
    contract = report.contract
    if report.outcome is Outcome.PASSED or contract is None or contract.responsible is None:
        return ""
    facts = contract.responsible.facts
    return printable("; ".join(f"{name}: {' '.join(text.split())}" for name, text in facts))


def unscaled_limit(verdict: Verdict) -> str | None:
    """The limit for the value before a profile scales it; None without a scaling profile, or if the
    limit is not a single number."""
    limit = verdict.threshold
    if verdict.multiplier == 1.0 or isinstance(limit, str) or limit is None:
        return None
    unscaled = limit / Fraction(exact_as_written(verdict.multiplier))
    value = format_in_unit(unscaled, verdict)
    return f"{format_in_unit(limit, verdict)}, for the metric value {value}"


def not_evaluated(report: GateReport) -> str | None:
    """The first line about a gate that is warned or broken: how many assertions of `fail_on` or
    worse lack data of other dates. None if all were evaluated."""
    verdicts = report.not_evaluated
    if not verdicts or report.outcome not in (Outcome.WARNED, Outcome.BROKEN):
        return None
    return f"{len(verdicts)} of {len(report.verdicts)} assertions not evaluated"


def partial_text(partial: PartialRun) -> str:
    """Describes the selection of a run: `partial, 2 of 8 assertions selected (tag slow)`."""
    text = f"partial, {partial.selected} of {partial.assertions} assertions selected"
    text += f" ({partial.selection})"
    if partial.protected:
        text += f", P0 or @required left out: {listed(partial.protected, most=_MOST_NAMED)}"
    return text


def headline(report: GateReport) -> str:
    """One line: outcome, selection, unevaluated assertions, what was not promoted, gate, dataset,
    date, the number of failures, and the worst."""
    key = report.run_key
    # The subject of a gate is its first dataset: reference tables come after it.
    dataset = report.datasets[0].name if report.datasets else "no dataset"
    line = f"{report.outcome.value}: "
    if report.partial is not None:
        line += f"{partial_text(report.partial)}; "
    if first := not_evaluated(report):
        line += f"{first}; "
    if report.promoted_blocked:
        line += f"promoted although blocked ({listed(report.promoted_blocked, most=_MOST_NAMED)}); "
    if report.accepted is not None:
        line += f"by {report.accepted.author}: {report.accepted.reason}; "
    if report.left_out:
        line += f"{listed(report.left_out, most=_MOST_NAMED)} left out; "
    if report.not_promoted:
        line += f"no rows promoted ({listed(report.not_promoted, most=_MOST_NAMED)}); "
    dates = f"date{'s' * (report.until is not None)} {report.dates}"
    line += f"gate {key.gate_instance}, dataset {dataset}, {dates}: "
    line += f"{report.count(Status.FAILED)} of {len(report.verdicts)} assertions failed"
    if errors := report.count(Status.ERROR):
        line += f", {errors} could not be evaluated"
    if report.waived:
        line += f", {len(report.waived)} waived"
    if skipped := report.count(Status.SKIPPED):
        line += f", {skipped} skipped"
    verdict = report.worst
    if verdict is None:
        return line + (f"; {report.nothing_checked}" if report.outcome is Outcome.BROKEN else "")
    line += f"; worst: {verdict.name} ({verdict.severity.value})"
    if verdict.status is not Status.FAILED:
        return printable(f"{line}: {verdict.reason}")
    return printable(f"{line}: {finding(verdict)}")


_LONGEST_CLAIM = 100
_COUNTED = {
    "violating rows": ("row", "rows"),
    "rows that differ": ("row", "rows"),
    "columns that differ": ("column", "columns"),
    "nulls": ("NULL", "NULLs"),
    "duplicates": ("duplicate", "duplicates"),
    "decreases": ("decrease", "decreases"),
    "values": ("value", "values"),
}
"""The singular and plural of violations, by the name of their count in a condition."""
_NONE_OF = re.compile(rf"== 0 ({'|'.join(_COUNTED)})( for .*)?", re.DOTALL)
_EACH_ROW = re.compile(r"each row: (.*)", re.DOTALL)
_SHARE_OF_ROWS = re.compile(r"\S+% of rows: (.*)", re.DOTALL)
_WRONG_ROWS = re.compile(r'sql\("count_if\(NOT \((.*)\)\)"\)', re.DOTALL)
_COLUMN = re.compile(r"(column .+?) (?:exists|type .*|fits .*)", re.DOTALL)
_SOME_ARE_TRUE = re.compile(r"(?:at least one of|all) \d+ \w+ (?:is|are) true")
_ONE_IS_TRUE = re.compile(r"the \w+ is true")
"""The expectation of several assertions in one; reports of 0.2.0 have another noun."""


def finding(verdict: Verdict) -> str:
    """The finding of a verdict in words: `num_rows() is 0 for "basel", expected > 0`, or
    `3 rows violate "price > 0"`."""
    shown = scaled_text(verdict)
    return found_text(verdict.expression, verdict.expected, shown, verdict.worst_group)


def findings_of(report: GateReport) -> Iterator[Diagnostic]:
    """A finding at the position of each assertion that failed or could not be evaluated: an error
    if it blocks or breaks the gate, else a warning."""
    is_told = False
    for verdict in report.verdicts:
        is_lacking = verdict.status is Status.SKIPPED and verdict in report.not_evaluated
        if verdict.status in (Status.PASSED, Status.SKIPPED) and not is_lacking:
            continue
        # What lacks data of other dates breaks a gate, and never blocks one.
        stopping = (Outcome.BROKEN,) if is_lacking else (Outcome.BLOCKED, Outcome.BROKEN)
        is_mild = not (report.outcome in stopping and verdict.can_block(report.fail_on))
        is_told = is_told or not is_mild
        message = finding(verdict)
        if verdict.status is not Status.FAILED and verdict.reason:
            message = f"not evaluated: {verdict.reason}"
        rule = f"{verdict.check}::{verdict.name}"
        yield Diagnostic(
            f"{verdict.severity.value} {rule}, {report.run_key.date.isoformat()}: {message}",
            verdict.span or _top_of(report),
            is_mild=is_mild,
            rule=rule,
        )
    if report.outcome in (Outcome.BLOCKED, Outcome.BROKEN) and not is_told:
        yield Diagnostic(headline(report), _top_of(report))


def _top_of(report: GateReport) -> Span:
    """The position of what no assertion of the source states, such as that a dataset has rows."""
    spans = (verdict.span for verdict in report.verdicts if verdict.span is not None)
    first = next(spans, None)
    return Span(report.suite if first is None else first.file, 1, 1, 1, 2)


def found_text(expression: str, expected: str, shown: str, group: str | None = None) -> str:
    """The finding behind a value in words: the number of rows that violate a claim about rows, or
    the value of a metric with its condition.

    :param shown: the value as text.
    :param group: the group that has the value, if any.
    """
    of_group = f" for {group}" if group else ""
    column = _COLUMN.fullmatch(expression)
    if shown == _NO_VALUE and expected == "exists" and column:
        return f"{column[1]} does not exist{of_group}"
    if shown == _NO_VALUE:
        return f"{_claim(expression)} has no value{of_group}, expected {expected}"
    violations = _violations(expression, expected, shown, of_group)
    if violations is not None:
        return violations
    if (share := _SHARE_OF_ROWS.fullmatch(expression)) is not None:
        return f"{shown} of the rows satisfy `{_claim(share[1])}`{of_group}, expected {expected}"
    if expression.startswith("rows of "):
        return f"{shown} of the rows violate `{_claim(expression)}`{of_group}, expected {expected}"
    if expected.startswith("matches {"):
        return f"a share differs by {shown}{of_group}, expected {expected}"
    if expected.startswith("minimum "):
        bare = expected.removeprefix("minimum ")
        return f"the minimum is {shown}{of_group}, expected {bare}"
    if _SOME_ARE_TRUE.match(expected):
        verb = "assertion holds" if shown == "1" else "assertions hold"
        return f"{shown} {verb}{of_group}, expected that {expected}"
    if _ONE_IS_TRUE.match(expected):
        return f"`{_claim(expression)}` is false{of_group}"
    subject = column[1] if column else _claim(expression) or "the value"
    return f"{subject} is {shown}{of_group}, expected {expected}"


def _violations(expression: str, expected: str, shown: str, of_group: str) -> str | None:
    """The finding behind a number of violations; None if the value is something else.

    :param of_group: the group that has the value, as in ` for "basel"`.
    """
    if (none_of := _NONE_OF.fullmatch(expected)) is not None:
        groups = f", expected none{none_of[2]}" if none_of[2] else ""
        each = _EACH_ROW.fullmatch(expression)
        claim = each[1] if each else expression
        return f"{_violating(shown, none_of[1], claim)}{of_group}{groups}"
    if expected == "== 0" and (wrong := _WRONG_ROWS.fullmatch(expression)) is not None:
        predicate = wrong[1].replace('\\"', '"').replace("\\\\", "\\")
        return f"{_violating(shown, 'violating rows', predicate)}{of_group}"
    if expected.startswith("in ["):
        return f"{_violating(shown, 'values', expression)}{of_group}"
    return None


def _violating(shown: str, counted: str, claim: str) -> str:
    """`1 row violates "price > 0"`"""
    one, several = _COUNTED[counted]
    counts = f"{one} violates" if shown == "1" else f"{several} violate"
    return f"{shown} {counts} `{_claim(claim)}`"


def _claim(text: str) -> str:
    """A claim, or what it measures, on one line of limited length."""
    line = text.replace("\n", " ")
    return line if len(line) <= _LONGEST_CLAIM else f"{line[: _LONGEST_CLAIM - 3].rstrip()}..."


def scaled_text(verdict: Verdict) -> str:
    """The value that was compared, with the profile's factor: `900 (500 x 1.8)`."""
    shown = format_in_unit(verdict.scaled_value, verdict)
    if verdict.multiplier == 1.0 or verdict.scaled_value is None:
        return shown
    return f"{shown} ({format_in_unit(verdict.value, verdict)} x {verdict.multiplier:g})"
