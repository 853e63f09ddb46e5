"""From the reports of a gate to the end of its task: several combined into one, the log, the XCom
summary, success or a typed exception, the assets that a gate declares as its outlets, and the
metrics of Airflow."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from airflow.providers.common.compat.sdk import AirflowSkipException, Asset, Stats
from airflow.providers.common.compat.sdk import conf as airflow_conf
from airflow.sdk.definitions.asset import AssetRef, BaseAsset

from dqx_airflow import values
from dqx_airflow.diagnostics import verdicts
from dqx_airflow.diagnostics.diagnostic import listed
from dqx_airflow.diagnostics.renderers import printable
from dqx_airflow.errors import StoreError
from dqx_airflow.lineage.names import location_of
from dqx_airflow.operators.exceptions import GateBlocked, GateBroken
from dqx_airflow.operators.results_location import ResultsLocation
from dqx_airflow.values import DatasetSnapshot, GateReport, Outcome, Severity, Status, Verdict
from dqx_airflow.values.exact import exact_as_written, exact_text, is_decimal, nearest_float
from dqx_airflow.values.redact import redact_urls

log = logging.getLogger(__name__)


def announce(
    report: GateReport,
    outlets: Sequence[Any],
    context: Any,
    *,
    is_announced: bool = True,
    partitions: Sequence[str] = (),
) -> list[Any]:
    """Sets the extra of asset events; returns the outlets for which Airflow emits an update.

    Assets, references to assets and aliases are left out if the data did not pass: a gate that only
    warns lets the task succeed, but nothing was validated, unless it promotes although it is
    blocked: the extra says so. After a pass, an alias is left to the
    code that adds assets to it.

    :param is_announced: False for a run that left assertions out, and must not update assets.
    :param partitions: the keys of the partitions of the assets that are updated; none if the
        assets as a whole are.
    """
    if not is_announced or not report.is_released:
        return [outlet for outlet in outlets if not isinstance(outlet, BaseAsset)]
    for outlet in outlets:
        if isinstance(outlet, Asset | AssetRef):
            update = context["outlet_events"][outlet]
            update.extra = asset_extra(report)
            if partitions:
                update.extra["partitions"] = [*partitions]
                update.add_partitions([*partitions])
            if len(partitions) > 1:  # the dates need not be consecutive
                update.extra["date"] = None
    return list(outlets)


def emit_metrics(gate: str, context: Any, report: GateReport | None) -> None:
    """Reports a run of a gate to the metrics of Airflow: its outcome, its duration, the rows of its
    datasets, its assertions by status, and how many of those on the age of the data failed.

    :param report: None for a run without one, whose outcome is "no_report".
    """
    ti = context["ti"]
    tags = {"gate": gate, "dag_id": ti.dag_id, "task_id": ti.task_id}
    ended = report.outcome.value if report is not None else NO_REPORT.replace(" ", "_")
    Stats.incr("dqx.gate.outcome", tags={**tags, "outcome": ended})
    if report is None:
        return
    Stats.timing("dqx.gate.duration", report.finished_at - report.started_at, tags=tags)
    for dataset in report.datasets:
        if dataset.rows is not None:
            Stats.gauge("dqx.gate.rows", dataset.rows, tags={**tags, "dataset": dataset.name})
    for status in Status:
        tagged = {**tags, "status": status.value}
        Stats.gauge("dqx.gate.assertions", report.count(status), tags=tagged)
    ages = [one.status for one in report.verdicts if verdicts.is_age(one.expression)]
    if ages:
        Stats.gauge("dqx.gate.late", ages.count(Status.FAILED), tags=tags)


_SENDS_METRICS = ("statsd_on", "statsd_datadog_enabled", "otel_on")


def emit_open_slices(
    gate: str, context: Any, reports: Sequence[GateReport], location: ResultsLocation
) -> None:
    """Reports how many slices of a gate are still blocked or broken, of all dates and map indexes.

    The results store is only queried, for the runs of this gate, if Airflow sends metrics.
    """
    from dqx_airflow.results.incidents import open_slices
    from dqx_airflow.results.query import StoredResults

    if not any(airflow_conf.getboolean("metrics", name, fallback=False) for name in _SENDS_METRICS):
        return
    ti = context["ti"]
    tags = {"gate": gate, "dag_id": ti.dag_id, "task_id": ti.task_id}
    try:
        results = StoredResults(location.root, location.storage_options)
        still_open = open_slices(results, {report.run_key.gate for report in reports})
    except StoreError as error:
        log.warning("the open slices are not counted: %s", error)
        return
    Stats.gauge("dqx.gate.open_slices", len(still_open), tags=tags)


def is_certified(on: date, reports: Sequence[GateReport]) -> bool:
    """True if the next tasks may read the data of a date, by all suites that judged it."""
    return all(report.is_released for report in reports if report.run_key.date == on)


def asset_extra(report: GateReport) -> dict[str, Any]:
    """The extra of an asset event about the data; `read_validated` accepts it like a summary."""
    contract = report.contract
    return {
        "gate": report.run_key.gate,
        "run_id": report.run_id,
        "date": report.dates,
        "outcome": report.outcome.value,
        "accepted": str(report.accepted) if report.accepted else None,
        "partial": partial_summary(report),
        "promoted_blocked": list(report.promoted_blocked),
        "left_out": list(report.left_out),
        "not_promoted": list(report.not_promoted),
        "versions": {name: rows.version for name, rows in report.validated.items()},
        "rows": {item.name: item.rows for item in report.datasets if item.rows is not None},
        "contract": contract.id if contract else None,
        "contract_version": contract.version if contract else None,
        "validated": validated_places(report),
        "airflow.dataquality.result": _quality_result(report),
    }


_WEIGHTS = {Severity.P0: 8, Severity.P1: 4, Severity.P2: 2, Severity.P3: 1}


def _quality_result(report: GateReport) -> dict[str, Any]:
    """The summary by which `require_quality` of Airflow's data quality provider decides.

    Its score is the share of the evaluated assertions that passed, weighted by severity, and 0 with
    a failed P0.
    """
    failed, passed = report.with_status(Status.FAILED), report.with_status(Status.PASSED)
    lost, kept = (sum(_WEIGHTS[one.severity] for one in some) for some in (failed, passed))
    score = kept / (lost + kept) if lost + kept else None
    blocking = [cut(one.name) for one in failed if one.can_block(report.fail_on)]
    warned = [cut(one.name) for one in failed if not one.can_block(report.fail_on)]
    return {
        "run_uid": report.run_id,
        "ruleset": report.suite,
        "table": ", ".join(dataset.name for dataset in report.datasets),
        "score": 0.0 if any(one.severity is Severity.P0 for one in failed) else score,
        "passed": len(passed),
        "warned": len(warned),
        "failed": len(blocking),
        "errored": report.count(Status.ERROR),
        "failed_rules": sorted(blocking)[:_MOST_VERDICTS],
        "warned_rules": sorted(warned)[:_MOST_VERDICTS],
    }


OnViolation: TypeAlias = Literal["fail", "skip", "warn", "ask"]

XCOM_KEY = "dqx_report"
"""The key of the report's summary in XCom."""

NO_REPORT = "no report"
"""The outcome in the summary of a gate that has no report."""

TEXTS_OF_A_VERDICT = (
    *("name", "expression", "expected", "reason", "clause", "let_by", "waived_by"),
    *("accepted_by", "worst_group"),
)
TEXTS_OF_A_CONTRACT = ("id", "version", "dialect", "pin", "name", "description", "status")
COUNTS_OF_A_CONTRACT = ("checked", "documented", "unsupported", "accepted")
"""The fields of a verdict and of a contract that a summary contains."""

_MOST_VERDICTS = 20
_MOST_DATASETS = 25
_LONGEST_TEXT = 200
_LONGEST_MESSAGE = 1000
_LONGEST_PLACE = 1000


def end_task(report: GateReport, on_violation: OnViolation) -> str:
    """Returns the outcome if the task succeeds, else raises the exception that ends it.

    :raises GateBlocked: blocked, and `on_violation` is neither "skip" nor "warn".
    :raises AirflowSkipException: blocked, and `on_violation` is "skip".
    :raises GateBroken: broken.
    """
    parts = filter(None, [verdicts.headline(report), verdicts.on_call(report)])
    message = cut("; ".join(parts), _LONGEST_MESSAGE)
    if report.outcome is Outcome.BROKEN:
        raise GateBroken(message)
    if report.outcome is Outcome.BLOCKED and on_violation == "skip":
        raise AirflowSkipException(message)
    # Only the exact word lets blocked data through, never a typo.
    if report.outcome is Outcome.BLOCKED and on_violation != "warn":
        raise GateBlocked(message)
    outcome: str = report.outcome.value
    return outcome


def summary(report: GateReport) -> dict[str, Any]:
    """The report for XCom: counts and the relevant verdicts, a few kB at most."""
    failed, errors = report.with_status(Status.FAILED), report.with_status(Status.ERROR)
    lacking = report.not_evaluated
    is_blocked = report.outcome is Outcome.BLOCKED
    shown = failed + errors + lacking if is_blocked else lacking + failed + errors
    return {
        "run_id": report.run_id,
        "gate": cut(report.run_key.gate),
        "date": report.run_key.date.isoformat(),
        "suite": cut(report.suite),
        "fail_on": report.fail_on.value,
        "finished_at": report.finished_at.isoformat(),
        "datasets": [cut(dataset.name) for dataset in report.datasets[:_MOST_DATASETS]],
        "places": _places(report),
        "contract": _contract(report),
        "partial": partial_summary(report),
        "outcome": report.outcome.value,
        "accepted": cut(str(report.accepted)) if report.accepted else None,
        "waived": len(report.waived),
        "headline": cut(verdicts.headline(report), _LONGEST_MESSAGE),
        "counts": {status.value: report.count(status) for status in Status},
        "not_evaluated": len(lacking),
        "versions": _by_dataset(report, lambda dataset: dataset.version),
        "quarantined": _by_dataset(report, lambda dataset: dataset.quarantined),
        "promoted": _by_dataset(
            report, lambda dataset: dataset.promotion and dataset.promotion.version
        ),
        "left_out": [cut(rows) for rows in report.left_out[:_MOST_DATASETS]],
        "not_promoted": [cut(name) for name in report.not_promoted[:_MOST_DATASETS]],
        "promoted_blocked": [cut(name) for name in report.promoted_blocked[:_MOST_DATASETS]],
        "validated": validated_places(report),
        "verdicts": [
            {
                **_texts(verdict, TEXTS_OF_A_VERDICT),
                "status": verdict.status.value,
                "severity": verdict.severity.value,
                "value": _cut_value(verdict.scaled_value),
                "raw_value": _cut_value(verdict.value) if verdict.multiplier != 1 else None,
                "multiplier": verdict.multiplier,
                "rows_left_out": verdict.rows_left_out,
            }
            for verdict in shown[:_MOST_VERDICTS]
        ],
        "more_verdicts": max(len(shown) - _MOST_VERDICTS, 0),
    }


def failure_summary(error: Exception, gate: str, key: values.RunKey | None) -> dict[str, Any]:
    """The XCom summary of a gate without a report: `error` is the exception, `error_type` its name.

    :param key: the run of the gate, None if it is not known yet.
    """
    message = redact_urls(" ".join(str(error).split()))
    return {
        "outcome": NO_REPORT,
        "gate": cut(gate),
        "date": key.date.isoformat() if key is not None else None,
        "headline": cut(f"{NO_REPORT}: gate {gate}: {message}", _LONGEST_MESSAGE),
        "error": cut(message, _LONGEST_MESSAGE),
        "error_type": type(error).__name__,
    }


def validated_places(report: GateReport) -> dict[str, dict[str, Any]]:
    """The locations of the validated rows, promoted or not, never truncated."""
    places = {name: asdict(rows) for name, rows in report.validated.items()}
    short = (name for name in places if len(f"{name}{places[name]}") <= _LONGEST_PLACE)
    return {name: places[name] for name in [*short][:_MOST_DATASETS]}


def _places(report: GateReport) -> dict[str, str]:
    """The locations of the datasets over time. One that is too long is left out: truncated, it
    would be another location."""
    places = {
        cut(dataset.name): location_of(dataset) for dataset in report.datasets[:_MOST_DATASETS]
    }
    return {name: place for name, place in places.items() if place and len(place) <= _LONGEST_PLACE}


def partial_summary(report: GateReport) -> dict[str, Any] | None:
    """The selection of a partial run: None if no assertion was left out."""
    partial = report.partial
    if partial is None:
        return None
    return {
        "selection": cut(str(partial.selection)),
        "selected": partial.selected,
        "assertions": partial.assertions,
        "left_out": [cut(name) for name in partial.protected[:_MOST_VERDICTS]],
    }


def _contract(report: GateReport) -> dict[str, Any] | None:
    """The enforced contract, with the number of its clauses that were checked."""
    contract = report.contract
    if contract is None:
        return None
    responsible = contract.responsible
    return {
        **_texts(contract, TEXTS_OF_A_CONTRACT),
        **{name: getattr(contract, name) for name in COUNTS_OF_A_CONTRACT},
        "responsible": {
            name: cut(text) for name, text in (responsible.facts if responsible else ())
        },
    }


def _by_dataset(report: GateReport, fact: Callable[[DatasetSnapshot], object]) -> dict[str, object]:
    """A fact about each dataset for which it is known."""
    found = [(cut(dataset.name), fact(dataset)) for dataset in report.datasets]
    return dict([pair for pair in found if pair[1] is not None][:_MOST_DATASETS])


def _texts(value: object, names: Sequence[str]) -> dict[str, str | None]:
    """Some string fields of a verdict or a contract, shortened; None for empty ones."""
    texts = {name: getattr(value, name) for name in names}
    return {name: cut(text) if text else None for name, text in texts.items()}


def cut(text: str, longest: int = _LONGEST_TEXT) -> str:
    """A string of at most `longest` characters; a longer one ends in three dots."""
    return text if len(text) <= longest else text[: longest - 3] + "..."


def _cut_value(value: values.MetricValue) -> values.MetricValue:
    """A value for JSON: a fraction as a float, or as its exact text if that would round it."""
    if isinstance(value, Fraction):
        near = nearest_float(value)
        is_kept = math.isfinite(near) and (exact_as_written(near) == value or not is_decimal(value))
        return near if is_kept else cut(exact_text(value))
    return cut(value) if isinstance(value, str) else value


_MOST_PARTS = 100


_BAD = (Outcome.BLOCKED, Outcome.BROKEN)


def combined_report(reports: Sequence[GateReport], gate: str) -> GateReport:
    """The reports as one, whose assertions are named after their date and their suite.

    Its outcome is the worst, and its run is the run of the first report with this outcome.

    :param gate: the name of the gate as a whole.
    """
    if len(reports) == 1:
        return reports[0]
    outcome = values.worst_outcome(report.outcome for report in reports)
    worst = next(report for report in reports if report.outcome is outcome)
    dates = sorted({report.run_key.date for report in reports})
    suites = tuple(dict.fromkeys(report.suite for report in reports))
    key = replace(worst.run_key, gate=gate, date=dates[0])
    return replace(
        worst,
        run_key=key,
        suite=", ".join(suites),
        outcome=outcome,
        verdicts=tuple(
            _named(verdict, report, has_dates=len(dates) > 1, has_suites=len(suites) > 1)
            for report in reports
            for verdict in report.verdicts
        ),
        datasets=_datasets(reports),
        started_at=min(report.started_at for report in reports),
        finished_at=max(report.finished_at for report in reports),
        sources=tuple(dict.fromkeys(source for report in reports for source in report.sources)),
        until=dates[-1] if len(dates) > 1 else None,
        unpromoted=tuple(
            dict.fromkeys(
                f"{name} of {report.run_key.date}"
                for report in (reports if len(dates) > 1 else ())
                for name in report.not_promoted
            )
        ),
    )


def summaries_of_parts(reports: Sequence[GateReport]) -> dict[str, Any]:
    """The key `parts` of the XCom summary, with an entry for each report; empty for one report."""
    if len(reports) == 1:
        return {}
    ranked = sorted(reports, key=lambda report: report.outcome not in _BAD)
    return {
        "parts": [
            {
                "date": report.run_key.date.isoformat(),
                "suite": report.suite,
                "outcome": report.outcome.value,
                "run_id": report.run_id,
            }
            for report in ranked[:_MOST_PARTS]
        ],
        "more_parts": max(len(reports) - _MOST_PARTS, 0),
    }


def part_lines(reports: Sequence[GateReport]) -> list[str]:
    """A log line about the reports with each outcome, the worst last; none for one report."""
    lines = []
    for outcome in Outcome:
        own = [report for report in reports if report.outcome is outcome]
        if own and len(reports) > 1:
            named = [f"{report.run_key.date.isoformat()} {report.suite}" for report in own]
            lines.append(f"{outcome.value}: {len(own)} of {len(reports)}: {listed(named, most=5)}")
    return lines


def _named(verdict: Verdict, report: GateReport, *, has_dates: bool, has_suites: bool) -> Verdict:
    on = f"{report.run_key.date.isoformat()} " if has_dates else ""
    suite = f"{report.suite}: " if has_suites else ""
    return replace(verdict, name=f"{on}{suite}{verdict.name}")


def _datasets(reports: Sequence[GateReport]) -> tuple[DatasetSnapshot, ...]:
    """Each dataset once, with the rows of all dates, which were read in one version."""
    by_name: dict[str, dict[object, DatasetSnapshot]] = {}
    for report in reports:
        for snapshot in report.datasets:
            of_dates = by_name.setdefault(snapshot.name, {})
            earlier = of_dates.get(report.run_key.date)
            if earlier is None or earlier.quarantined is None:  # each has the rows of all suites
                quarantined = snapshot.quarantined
                of_dates[report.run_key.date] = replace(
                    earlier or snapshot, quarantined=quarantined
                )
    return tuple(_joined(tuple(of_dates.values())) for of_dates in by_name.values())


def _joined(items: Sequence[DatasetSnapshot]) -> DatasetSnapshot:
    """One snapshot of a dataset on several dates."""
    if len(items) == 1 or all(snapshot.condition is None for snapshot in items):
        return items[0]
    promotions = [snapshot.promotion for snapshot in items if snapshot.promotion is not None]
    newest = max(promotions, key=lambda promotion: promotion.version, default=None)
    return replace(
        items[0],
        rows=_sum([snapshot.rows for snapshot in items]),
        metrics=(),
        quarantined=_sum([snapshot.quarantined for snapshot in items]),
        condition=" OR ".join(f"({snapshot.condition})" for snapshot in items),
        promotion=newest
        if newest is None
        else replace(
            newest,
            rows=sum(promotion.rows for promotion in promotions),
            is_blocked=any(promotion.is_blocked for promotion in promotions),
            left_out=sum(promotion.left_out for promotion in promotions),
        ),
    )


def _sum(numbers: Sequence[int | None]) -> int | None:
    present = [number for number in numbers if number is not None]
    return sum(present) if present else None


MOST_LINES = 30
_LEAST_DRAWN = 12
_MOST_LISTED = 2
_MOST_NAMED = 4

Level: TypeAlias = Literal["info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An entry of a log; its text may have several lines."""

    level: Level
    text: str


def report_entries(report: GateReport, root: str, *, fails: bool) -> list[LogEntry]:
    """The log entries of a task about its report, about `MOST_LINES` lines; the headline is last.

    The worst assertions are shown in full, others by a line each or by their number.

    :param root: the results root, for the command that shows the rest.
    :param fails: the task fails because of the outcome of the report.
    """
    lacking = report.not_evaluated
    level: Level = "error" if report.outcome is Outcome.BROKEN else "warning"
    lists = [
        _listed(level, "not evaluated", [(v, f"{v.name} ({v.severity.value})") for v in lacking]),
        _listed(
            "info",
            "skipped",
            [(v, v.name) for v in report.with_status(Status.SKIPPED) if v not in lacking],
        ),
        _listed(
            "info", "passed", [(v, v.name) for v in report.with_status(Status.PASSED) if v.note]
        ),
    ]
    before = [entry for entries in lists for entry in entries]
    after = [LogEntry("warning", line) for line in _first_lines(verdicts.account(report))]
    after += [
        LogEntry("info", printable(line))
        for line in _first_lines(verdicts.shadow_account(report), "shadow")
    ]
    if to_do := verdicts.on_call(report):
        after.append(LogEntry("warning", to_do))
    after.append(LogEntry("info", f"all verdicts: {verdicts.results_command(report, root)}"))
    last: Level = "info" if report.outcome is Outcome.PASSED else "warning"
    after.append(LogEntry("error" if fails else last, verdicts.headline(report)))
    room = max(MOST_LINES - len(before) - len(after), _LEAST_DRAWN)
    return [*before, *_drawn(report, root, room, fails=fails), *after]


def _drawn(report: GateReport, root: str, room: int, *, fails: bool) -> list[LogEntry]:
    """Entries in full for the assertions that failed or were not evaluated, within `room` lines."""
    failing = [*report.with_status(Status.ERROR), *report.with_status(Status.FAILED)]
    failing.sort(key=lambda verdict: not verdict.can_block(report.fail_on))
    entries: list[LogEntry] = []
    causes = verdicts.by_cause(failing)
    for index, (verdict, others) in enumerate(causes):
        drawing = verdicts.draw_verdict(verdict, report, root=root, others=others)
        lines = drawing.count("\n") + 1
        remaining = len(causes) - index - 1
        if index and lines + min(remaining, _MOST_NAMED + 1) > room:
            rest = [one for first, others in causes[index:] for one in (first, *others)]
            return [*entries, *_named_lines(report, rest, fails=fails)]
        room -= lines
        entries.append(LogEntry(_level_of(verdict, report, fails=fails), drawing))
    return entries


def _named_lines(report: GateReport, rest: Sequence[Verdict], *, fails: bool) -> list[LogEntry]:
    """A line for each of the next assertions, and a line with the number of the others."""
    entries = []
    for verdict in rest[:_MOST_NAMED]:
        name = f"{verdict.status.value}: {verdict.name} ({verdict.severity.value})"
        detail = verdicts.finding(verdict)
        if verdict.status is not Status.FAILED:
            detail = verdict.reason or ""
        level = _level_of(verdict, report, fails=fails)
        entries.append(LogEntry(level, printable(f"{name}: {detail}")))
    if len(rest) > _MOST_NAMED:
        level = _level_of(rest[_MOST_NAMED], report, fails=fails)
        more = len(rest) - _MOST_NAMED
        entries.append(LogEntry(level, f"... and {more} more that did not pass"))
    return entries


def _level_of(verdict: Verdict, report: GateReport, *, fails: bool) -> Level:
    return "error" if fails and verdict.can_block(report.fail_on) else "warning"


def _listed(level: Level, heading: str, graded: Sequence[tuple[Verdict, str]]) -> list[LogEntry]:
    lines = [
        f"{heading}: {name}: {verdict.note if heading == 'passed' else verdict.reason}"
        for verdict, name in graded
    ]
    return [LogEntry(level, printable(line)) for line in _first_lines(lines, heading)]


def _first_lines(lines: Sequence[str], heading: str = "") -> list[str]:
    if len(lines) <= _MOST_LISTED + 1:
        return [*lines]
    more = f"{f'{heading}: ' if heading else ''}... and {len(lines) - _MOST_LISTED} more"
    return [*lines[:_MOST_LISTED], more]
