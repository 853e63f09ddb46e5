"""The report of a gate as displayed: complete, or the summary of its task; its values, failing rows
and datasets."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from dqx_airflow import values
from dqx_airflow.diagnostics.verdicts import (
    finding,
    format_in_unit,
    format_percent,
    format_value,
    headline,
    is_age,
    unscaled_limit,
)
from dqx_airflow.lineage.names import location_of, trimmed_location
from dqx_airflow.operators.summary import (
    COUNTS_OF_A_CONTRACT,
    TEXTS_OF_A_CONTRACT,
    TEXTS_OF_A_VERDICT,
)
from dqx_airflow.values import DatasetSnapshot, FailingRow, MetricValue, Outcome, Status, Verdict

if TYPE_CHECKING:
    from dqx_airflow.plan.model import GroupValues


T = TypeVar("T")

WORST_FIRST = (Status.FAILED, Status.ERROR, Status.SKIPPED, Status.PASSED)


@dataclass(frozen=True, slots=True)
class PromotionView:
    """The target of a dataset's rows on a pass: `validated` is the version that they were read
    from, `version` the one that they became there, None if the gate did not pass. Not every summary
    has the place and the number of rows."""

    dataset: str
    validated: int | None
    location: str
    version: int | None
    rows: int | None


@dataclass(frozen=True, slots=True)
class PartialView:
    """The selection of a partial run, with the numbers of its assertions and of all."""

    selection: str
    selected: int
    assertions: int

    @property
    def shown(self) -> str:
        """As displayed: `2 of 5 assertions selected (tag slow)`."""
        return f"{self.selected} of {self.assertions} assertions selected ({self.selection})"


@dataclass(frozen=True, slots=True)
class ReportView:
    """A report for display. `is_whole` is False if only the summary is known: its verdicts are
    those that did not pass, and `more_verdicts` of these are missing. `not_evaluated` is the number
    of assertions that could fail the gate and lack data of other dates. `results_root` is where a
    report is of which only the summary is known; empty if that does not say."""

    run_id: str
    gate: str
    date: date | None
    suite: str
    outcome: Outcome
    headline: str
    counts: Mapping[Status, int]
    verdicts: tuple[Verdict, ...]
    datasets: tuple[DatasetSnapshot, ...]
    fail_on: values.Severity | None
    finished_at: datetime | None
    is_whole: bool
    more_verdicts: int = 0
    contract: values.EnforcedContract | None = None
    promotions: tuple[PromotionView, ...] = ()
    not_evaluated: int = 0
    partial: PartialView | None = None
    results_root: str = ""

    @property
    def summary(self) -> str:
        """The headline without the gate and the date, which are displayed above it."""
        head, _, tail = self.headline.partition(f"date {self.date}: ")
        if not tail:
            return self.headline
        own = rf"gate {re.escape(self.gate)}(?:\[\d+\])?, "
        first = re.split(own, head.removeprefix(f"{self.outcome.value}: "), maxsplit=1)[0]
        return first + tail

    @property
    def worst(self) -> Verdict | None:
        """The verdict that the headline names, or the first one in the summary."""
        bad = [verdict for verdict in self.verdicts if self.is_wrong(verdict)]
        if self.outcome is Outcome.BROKEN:
            bad.sort(
                key=lambda verdict: (verdict.status is not Status.ERROR, not self.lacks(verdict))
            )
        elif self.outcome is Outcome.BLOCKED:
            bad.sort(key=self.lacks)
        return bad[0] if bad else None

    def is_wrong(self, verdict: Verdict) -> bool:
        """True for an assertion that failed, or that could fail the gate and was not evaluated."""
        return is_bad(verdict) or self.lacks(verdict)

    def lacks(self, verdict: Verdict) -> bool:
        """True for an assertion that could fail the gate, and lacks data of other dates."""
        is_severe = self.fail_on is None or verdict.can_block(self.fail_on)
        return verdict.is_not_evaluated and is_severe


def is_bad(verdict: Verdict) -> bool:
    return verdict.status in (Status.FAILED, Status.ERROR)


def view_of_report(report: values.GateReport) -> ReportView:
    """A complete report. Its verdicts are in the order of their importance."""
    return ReportView(
        run_id=report.run_id,
        gate=report.run_key.gate,
        date=report.run_key.date,
        suite=report.suite,
        outcome=report.outcome,
        headline=headline(report),
        counts={status: report.count(status) for status in Status},
        verdicts=_ranked(report),
        not_evaluated=len(report.not_evaluated),
        datasets=report.datasets,
        fail_on=report.fail_on,
        finished_at=report.finished_at,
        is_whole=True,
        contract=report.contract,
        promotions=tuple(filter(None, map(promotion_of, report.datasets))),
        partial=partial_view(report.partial),
    )


def partial_view(partial: values.PartialRun | None) -> PartialView | None:
    """The selection of a partial run; None for a complete one."""
    if partial is None:
        return None
    return PartialView(str(partial.selection), partial.selected, partial.assertions)


def _ranked(report: values.GateReport) -> tuple[Verdict, ...]:
    """The verdicts by importance: assertions that were not evaluated first, unless the gate is
    blocked, then the worst status."""
    ranked = [verdict for status in WORST_FIRST for verdict in report.with_status(status)]
    lacking = report.not_evaluated
    if lacking and report.outcome is not Outcome.BLOCKED:
        ranked.sort(key=lambda verdict: verdict not in lacking)
    return tuple(ranked)


def promotion_of(snapshot: DatasetSnapshot) -> PromotionView | None:
    """The promotion of a dataset; None if it was not to be promoted."""
    done = snapshot.promotion
    if done is not None:
        return PromotionView(
            snapshot.name, snapshot.version, done.location, done.version, done.rows
        )
    if snapshot.promote_to is None:
        return None
    return PromotionView(snapshot.name, snapshot.version, snapshot.promote_to, None, None)


class Summary(dict[str, Any]):
    """The XCom value of a task under our key, as a mapping that is never changed.

    Its view, and the locations that it may be about, are cached in it.
    """

    __slots__ = ("mentioned", "view")
    view: ReportView | None
    mentioned: frozenset[str]


def outcome_of_summary(pushed: object) -> Outcome | None:
    """The outcome in the summary of a task; None for anything that is not one."""
    return parsed(Outcome, pushed.get("outcome")) if isinstance(pushed, Mapping) else None


def view_of_summary(pushed: object) -> ReportView | None:
    """The view of a task's summary; None for anything that is not one.

    Any task can push anything under our key, so nothing in it is trusted.
    """
    if not isinstance(pushed, Summary):
        return _view_of(pushed)
    if not hasattr(pushed, "view"):
        pushed.view = _view_of(pushed)
    return pushed.view


def _view_of(pushed: object) -> ReportView | None:
    outcome = outcome_of_summary(pushed)
    if outcome is None or not isinstance(pushed, Mapping):
        return None
    counts = mapping_of(pushed.get("counts"))
    quarantined = mapping_of(pushed.get("quarantined"))
    versions = mapping_of(pushed.get("versions"))
    places = mapping_of(pushed.get("places"))
    return ReportView(
        run_id=_string_of(pushed.get("run_id")),
        gate=_string_of(pushed.get("gate")),
        date=parsed(date.fromisoformat, _string_of(pushed.get("date"))),
        suite=_string_of(pushed.get("suite")),
        outcome=outcome,
        headline=_string_of(pushed.get("headline")),
        counts={status: _count(counts.get(status.value)) for status in Status},
        verdicts=tuple(
            verdict for item in list_of(pushed.get("verdicts")) if (verdict := _verdict(item))
        ),
        datasets=tuple(
            DatasetSnapshot(
                name,
                location=_string_of(places.get(name)),
                format="",
                version=_whole(versions.get(name)),
                quarantined=_whole(quarantined.get(name)),
            )
            for name in map(_string_of, list_of(pushed.get("datasets")))
        ),
        fail_on=parsed(values.Severity, pushed.get("fail_on")),
        finished_at=parsed(datetime.fromisoformat, _string_of(pushed.get("finished_at"))),
        is_whole=False,
        results_root=_string_of(pushed.get("results_root")),
        more_verdicts=_count(pushed.get("more_verdicts")),
        not_evaluated=_count(pushed.get("not_evaluated")),
        contract=_contract(pushed.get("contract")),
        promotions=_promotions(pushed),
        partial=_partial(pushed.get("partial")),
    )


def _partial(value: object) -> PartialView | None:
    fields = mapping_of(value)
    if not fields:
        return None
    selected, assertions = _count(fields.get("selected")), _count(fields.get("assertions"))
    return PartialView(_string_of(fields.get("selection")), selected, assertions)


def _promotions(pushed: Mapping[str, Any]) -> tuple[PromotionView, ...]:
    versions, validated = mapping_of(pushed.get("versions")), mapping_of(pushed.get("validated"))
    done = {
        _string_of(name): _whole(version)
        for name, version in mapping_of(pushed.get("promoted")).items()
    }
    names = [*done, *map(_string_of, list_of(pushed.get("not_promoted")))]
    places = {name: mapping_of(validated.get(name)) for name in done}
    return tuple(
        PromotionView(
            dataset=name,
            validated=_whole(versions.get(name)),
            location=_string_of(places.get(name, {}).get("location")),
            version=done.get(name),
            rows=None,
        )
        for name in names
    )


def _contract(value: object) -> values.EnforcedContract | None:
    contract = mapping_of(value)
    fields: dict[str, Any] = {name: _text(contract.get(name)) for name in TEXTS_OF_A_CONTRACT}
    if fields["id"] is None:
        return None
    fields |= {name: _count(contract.get(name)) for name in COUNTS_OF_A_CONTRACT}
    dialect, responsible = fields.pop("dialect") or "", _responsible(contract.get("responsible"))
    return values.EnforcedContract(dialect=dialect, responsible=responsible, **fields)


def _responsible(value: object) -> values.Responsible | None:
    texts = {_string_of(name): _text(text) for name, text in mapping_of(value).items()}
    responsible = values.Responsible(
        texts.get("owner"),
        tuple(filter(None, [texts.get("contacts")])),
        texts.get("channel"),
        texts.get("runbook"),
        texts.get("incident response"),
        texts.get("business hours"),
    )
    return responsible if responsible.facts else None


def _verdict(value: object) -> Verdict | None:
    row = mapping_of(value)
    status, severity = (
        parsed(Status, row.get("status")),
        parsed(values.Severity, row.get("severity")),
    )
    if status is None or severity is None:
        return None
    multiplier = row.get("multiplier")
    texts: dict[str, Any] = {name: _text(row.get(name)) for name in TEXTS_OF_A_VERDICT}
    texts |= {name: texts[name] or "" for name in ("name", "expression", "expected")}
    return Verdict(
        check="",
        datasets=(),
        severity=severity,
        status=status,
        value=_metric_value_of(row.get("raw_value")),
        scaled_value=_metric_value_of(row.get("value")),
        multiplier=float(multiplier) if isinstance(multiplier, int | float) else 1.0,
        rows_left_out=row.get("rows_left_out") is True,
        **texts,
    )


def parsed(parse: Callable[[Any], T], value: object) -> T | None:
    """The result of a parser for a value; None if it raises ValueError."""
    try:
        return parse(value)
    except ValueError:
        return None


def _string_of(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _text(value: object) -> str | None:
    return _string_of(value) or None


def _metric_value_of(value: object) -> MetricValue:
    return value if value is None or isinstance(value, int | float | str) else str(value)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _count(value: object) -> int:
    return max(_whole(value) or 0, 0)


def mapping_of(value: object) -> Mapping[str, Any]:
    """The value, if it is a mapping; otherwise an empty one."""
    return value if isinstance(value, Mapping) else {}


def list_of(value: object) -> Sequence[Any]:
    """The value, if it is a list; otherwise an empty one."""
    return value if isinstance(value, list | tuple) else ()


Reading: TypeAlias = Callable[[MetricValue], str]


def reading_of(verdict: Verdict) -> Reading:
    """The format of the values and the limits of an assertion."""
    if is_age(verdict.expression) or "%" in verdict.expected:
        return lambda value: format_in_unit(value, verdict)
    return format_value


def value_of(verdict: Verdict) -> str:
    """The compared value in readable form."""
    value = verdict.scaled_value
    if value is None:
        return "\N{EN DASH}"
    return value if isinstance(value, str) else reading_of(verdict)(value)


def raw_of(verdict: Verdict) -> str:
    """The measured value in readable form, before a profile scales it."""
    value = verdict.value
    return value if isinstance(value, str) else reading_of(verdict)(value)


def limit_of(verdict: Verdict) -> str:
    """The limit, also for the value before a profile scales it."""
    return unscaled_limit(verdict) or reading_of(verdict)(verdict.threshold)


def fault_of(verdict: Verdict) -> str:
    """A failure on one line: `orders.id: null_count(id) is 3, expected == 0`, or why there is no
    value."""
    if verdict.status is Status.ERROR:
        return f"{verdict.name}: {verdict.reason or 'could not be evaluated'}"
    if verdict.status is Status.SKIPPED:
        return f"{verdict.name}: not evaluated, {verdict.reason}"
    return f"{verdict.name}: {finding(verdict)}"


_MOST = 40
_ROW_COUNT = "num_rows"
_ALL_ROWS = f"{_ROW_COUNT}()"
_SHARE = re.compile(r"(?!num_rows)(\w+)\([^()]*\) / num_rows\(\)")
"""A number of rows, of which a failure has too many, divided by that of all."""


def operands_of(verdict: Verdict) -> tuple[tuple[str, str], ...]:
    """The metric values from which a value is computed, each with its name, those of the date
    first; for an assertion that is judged for each group those of the worst group. Empty if the
    value is that of a single metric."""
    if not verdict.measured:
        return ()
    from dqx_airflow.plan.term_values import measurements_from

    measured = measurements_from(verdict.measured)
    found = dict(measured.values)
    if verdict.groups is not None:
        found = _of_group(verdict.worst_group, measured.groups)
    operands = []
    for key, value in found.items():
        try:
            dataset, metric, arguments, lag, *_ = json.loads(key)
        except (ValueError, TypeError):
            continue  # of a newer version
        if metric == _ROW_COUNT and _ROW_COUNT not in verdict.expression:
            continue  # it only shows whether there is data
        name = f"{metric}({', '.join(map(_argument, arguments))})"
        if len(verdict.datasets) > 1:
            name = f"{dataset}: {name}"
        operands.append((int(lag or 0), name, format_value(value)))
    if len(operands) < 2:
        return ()
    operands.sort(key=lambda operand: operand[:2])
    return tuple((f"{name}{_days(lag)}", value) for lag, name, value in operands[:_MOST])


def _of_group(shown: str | None, groups: Mapping[str, GroupValues]) -> dict[str, MetricValue]:
    """The measurements of the group with this displayed name."""
    from dqx_airflow.plan.predicates import show_group

    return {
        key: value
        for key, by_group in groups.items()
        for group, value in by_group.values.items()
        if show_group(group) == shown
    }


def _days(lag: int) -> str:
    return "" if lag == 0 else f", {lag} day{'' if lag == 1 else 's'} before"


def _argument(argument: Any) -> str:
    if isinstance(argument, list):
        return f"[{', '.join(map(_argument, argument))}]"
    if isinstance(argument, dict) and "where" in argument:
        return f"where {argument['where']}"
    return str(argument.get("rows", argument) if isinstance(argument, dict) else argument)


_SCALAR = r"""("[^"]*"|'[^']*'|[^\s,#}\]][^,#}\]]*)"""


def clause_line(verdict: Verdict) -> str:
    """The clause of an assertion in readable form: `orders.amount: minimum 0`.

    Its demand is taken from its line in the contract. If it is not about a column, or is an element
    of a list such as `quality[0]`, the assertion is used instead.
    """
    path = verdict.clause or ""
    key = path.rpartition(".")[2]
    if not verdict.column or not verdict.datasets or "[" in key:
        return verdict.name
    subject = f"{verdict.datasets[0]}.{verdict.column}"
    rule = verdict.name.removeprefix(f"{subject}.")
    words = (key if rule == verdict.name else rule).replace("_", " ")
    match = re.search(rf"""\b{re.escape(key)}["']?\s*:\s*{_SCALAR}""", verdict.source_line or "")
    demanded = match[1].strip() if match else ""
    return f"{subject}: {words}{'' if demanded in ('', 'true') else f' {demanded}'}"


_SHOWN_ROWS, _SHOWN_COLUMNS = 20, 12
_SATISFYING = "satisfying_share"
# The beginnings of strings that spreadsheets read as a formula.
_FORMULA = re.compile(r"[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?[0-9.]+([eE][+-]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Sample:
    """Failing rows as a table, as many as fit. A cell is None for NULL."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    reasons: tuple[str, ...]
    more_rows: int
    more_columns: int


def samples_of(rows: Sequence[FailingRow]) -> tuple[Sample, ...]:
    """Failing rows as a table for each dataset."""
    by_dataset: dict[str, list[FailingRow]] = {}
    for row in rows:
        by_dataset.setdefault(row.dataset, []).append(row)
    return tuple(map(sample_of, by_dataset.values()))


def sample_of(rows: Sequence[FailingRow]) -> Sample:
    """Failing rows as one table, as stored: masked values are masked here."""
    cells = [_cells(failing.row) for failing in rows[:_SHOWN_ROWS]]
    names = tuple(dict.fromkeys(name for row in cells for name in row))
    columns = names[:_SHOWN_COLUMNS]
    return Sample(
        columns=columns,
        rows=tuple(tuple(row.get(column, "") for column in columns) for row in cells),
        reasons=tuple(failing.reason for failing in rows[:_SHOWN_ROWS]),
        more_rows=max(len(rows) - _SHOWN_ROWS, 0),
        more_columns=len(names) - len(columns),
    )


def csv_of(rows: Sequence[FailingRow]) -> str:
    """Failing rows as CSV with a header. NULL is empty; a value that a spreadsheet would read as a
    formula gets an apostrophe before it."""
    cells = [_cells(failing.row) for failing in rows]
    names = tuple(dict.fromkeys(name for row in cells for name in row))
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["dataset", "why", *map(_harmless, names)])
    for failing, row in zip(rows, cells, strict=True):
        own = [row.get(name) for name in names]
        writer.writerow(map(_harmless, [failing.dataset, failing.reason, *own]))
    return text.getvalue().encode("utf-8", "replace").decode("utf-8")


def failing_total(verdict: Verdict, datasets: Sequence[DatasetSnapshot]) -> str:
    """The number of failing rows, and their share: `472 of 930 rows (50.8%)`, also for a number of
    rows divided by that of all; for one that is judged for each group the number of failed groups.
    Empty if the assertion counts neither."""
    from dqx_airflow.metrics.builtin import METRICS
    from dqx_airflow.metrics.metric import MetricUnit

    if verdict.groups is not None:
        return f"{verdict.failed_groups or 0} of {verdict.groups} groups"
    metric, value = METRICS.get(verdict.metric or ""), verdict.value
    if not verdict.failing_rows:
        return ""
    share = _SHARE.fullmatch(verdict.expression)
    if share and share[1] in METRICS and isinstance(value, int | float | Fraction):
        operands = dict(operands_of(verdict))
        rows_there = operands.pop(_ALL_ROWS, None)
        if rows_there and len(operands) == 1 and METRICS[share[1]].unit is MetricUnit.ROWS:
            return f"{operands.popitem()[1]} of {rows_there} rows ({format_percent(value)})"
    if metric is None:
        return ""
    if metric.name == _SATISFYING and isinstance(value, int | float | Fraction) and value < 1:
        return f"{format_percent(1 - value)} of the rows that were evaluated"
    if metric.unit is not MetricUnit.ROWS or not isinstance(value, int):
        return ""
    rows = next((snapshot.rows for snapshot in datasets if snapshot.name in verdict.datasets), None)
    if not rows or not 0 < value <= rows:
        return ""
    return f"{value} of {rows} rows ({format_percent(value / rows)})"


def _harmless(cell: str | None) -> str:
    if cell is None:
        return ""
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell


def _cells(row: str) -> dict[str, str | None]:
    """The cells of a row, with numbers as written."""
    try:
        cells = json.loads(row, parse_int=str, parse_float=str)
    except ValueError:
        return {"row": row}
    if not isinstance(cells, dict):
        return {"row": row}
    return {name: _cell(value) for name, value in cells.items()}


def _cell(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class LocatedDataset:
    """A dataset of a gate: its name in the gate, and its location."""

    name: str
    location: str


def location_in(gate: str, snapshot: DatasetSnapshot) -> str:
    """The location of a dataset of a gate; for a query, or if it is unknown, its name there."""
    location = location_of(snapshot) if snapshot.location else None
    return location or _name_in(gate, snapshot)


def is_at(location: str, gate: str, snapshot: DatasetSnapshot) -> bool:
    """True if a dataset of a gate is at a location; older summaries only have its name."""
    return location in (location_in(gate, snapshot), _name_in(gate, snapshot))


def _name_in(gate: str, snapshot: DatasetSnapshot) -> str:
    return f"{snapshot.name} of {gate}"


def datasets_in(report: ReportView) -> tuple[LocatedDataset, ...]:
    """The datasets of a report."""
    return tuple(
        LocatedDataset(snapshot.name, location_in(report.gate, snapshot))
        for snapshot in report.datasets
    )


def promotions_in(report: ReportView) -> tuple[str, ...]:
    """The locations into which a report's rows were promoted."""
    done = (
        promotion.location
        for promotion in report.promotions
        if promotion.version is not None and promotion.location
    )
    return tuple(map(trimmed_location, done))
