"""The results of a suite in Python: of one date, or of several; also as HTML for notebooks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import date
from decimal import Decimal
from fractions import Fraction
from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from dqx_airflow.datasets.settings import is_table
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.diagnostics.verdicts import draw_report, format_value, headline
from dqx_airflow.errors import RequestError, UpstreamFailure
from dqx_airflow.plan.model import DEFAULT_COST, Cost
from dqx_airflow.values import (
    DatasetRef,
    DatasetSnapshot,
    GateReport,
    Outcome,
    Status,
    ValidatedRows,
    Verdict,
    from_json,
    worst_outcome,
)
from dqx_airflow.values.exact import exact_text, is_decimal, nearest_float

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLOURS = {
    Status.PASSED: "#1a7f37",
    Status.FAILED: "#c62828",
    Status.ERROR: "#c62828",
    Status.SKIPPED: "#8a6100",
}
_HEADS = ("status", "severity", "check", "assertion", "value", "expected")


def html_of(report: GateReport) -> str:
    """A table of the assertions, first those that did not pass, and the report below it."""
    verdicts = sorted(report.verdicts, key=lambda verdict: verdict.status is Status.PASSED)
    rows = "".join(map(_row, verdicts))
    heads = "".join(f"<th style='text-align:left'>{head}</th>" for head in _HEADS)
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    title = f"<p><b>{escape(headline(report))}</b></p>"
    is_open = "" if report.outcome is Outcome.PASSED else " open"
    details = f"<details{is_open}><summary>Report</summary><pre>{escape(draw_report(report))}</pre>"
    return f"<div>{title}{table}{details}</details></div>"


def _row(verdict: Verdict) -> str:
    colour = _COLOURS.get(verdict.status, "inherit")
    value = "" if verdict.value is None else format_value(verdict.value)
    cells = (verdict.severity.value, verdict.check, verdict.name, value, verdict.expected)
    shown = "".join(f"<td style='text-align:left'>{escape(str(cell))}</td>" for cell in cells)
    status = f"<td style='color:{colour}'>{escape(verdict.status.value)}</td>"
    return f"<tr>{status}{shown}</tr>"


@dataclass(frozen=True, slots=True)
class Result(Verdict):
    """The verdict on one assertion: `f"{result.check}/{result.assertion}: {result.status}"`.

    Its attributes are also available by name, as in `result["passed"]`. `costs` are those of its
    `@cost`. `ground_truth` is its label: whether there was a real issue; None without a label.
    """

    costs: Cost = DEFAULT_COST
    ground_truth: bool | None = None

    def __getitem__(self, name: str) -> Any:
        """:raises KeyError: a result has no such part."""
        if name.startswith("_") or not hasattr(self, name):
            raise KeyError(name)
        return getattr(self, name)

    def get(self, name: str, default: Any = None) -> Any:
        """The attribute with a name, or `default`."""
        return getattr(self, name, default)

    @property
    def cost(self) -> dict[str, float]:
        """The costs of errors: `{"false_positive": 1.0, "false_negative": 10.0}`."""
        return asdict(self.costs)

    @property
    def is_fp(self) -> bool | None:
        """True if this failure is labelled as a false alarm; None without a label."""
        if self.ground_truth is None:
            return None
        return self.status is Status.FAILED and not self.ground_truth

    @property
    def raw_value(self) -> int | Decimal | float | str | None:
        """The same as `metric_value`."""
        return self.metric_value

    @property
    def assertion(self) -> str:
        """The name of the assertion."""
        return self.name

    @property
    def passed(self) -> bool:
        """True if the assertion holds: False also for skipped ones and errors."""
        return self.status is Status.PASSED

    @property
    def metric_value(self) -> int | Decimal | float | str | None:
        """The value before profiles scaled it; the compared value is `scaled_value`.

        Durations are in seconds. A decimal is a `Decimal`, a quotient without a finite decimal form
        the nearest float; `value` has both as an exact `Fraction`.
        """
        value = self.value
        if not isinstance(value, Fraction):
            return value
        return Decimal(exact_text(value)) if is_decimal(value) else nearest_float(value)


class SuiteFailed(AssertionError):  # noqa: N818 (it reads as what happened, in a test)
    """A suite did not pass. `results` has its results; the message is the report of a gate."""

    def __init__(self, results: Results) -> None:
        super().__init__(f"\n{results}")
        self.results = results


@dataclass(frozen=True, slots=True)
class Results:
    """The results of a suite in its order, after those of the implicit assertions.

    `report` is the complete report as a value with a JSON form; `warnings` are the diagnostics of
    the suite. `costs` are those of the verdicts, in order; `labels` are by check and name. Printed,
    results look like the output of a gate.
    """

    report: GateReport
    warnings: tuple[Diagnostic, ...] = ()
    costs: tuple[Cost, ...] = ()
    labels: Mapping[tuple[str, str], bool] = field(default_factory=dict)

    @property
    def assertions(self) -> tuple[Result, ...]:
        """One result per assertion, in the order of the suite."""
        names = [item.name for item in fields(Verdict)]
        return tuple(
            Result(
                **{name: getattr(verdict, name) for name in names},
                costs=costs or DEFAULT_COST,
                ground_truth=self.labels.get((verdict.check, verdict.name)),
            )
            for verdict, costs in zip_longest(self.report.verdicts, self.costs)
        )

    @property
    def outcome(self) -> Outcome:
        """The outcome of a gate: passed, warned, blocked, or broken."""
        return self.report.outcome

    @property
    def datasets(self) -> tuple[DatasetSnapshot, ...]:
        """The checked data: location, version, number of rows."""
        return self.report.datasets

    def __iter__(self) -> Iterator[Result]:
        return iter(self.assertions)

    def __len__(self) -> int:
        return len(self.report.verdicts)

    def __str__(self) -> str:
        return draw_report(self.report)

    def _repr_html_(self) -> str:
        """The results as displayed in a notebook."""
        return html_of(self.report)

    def raise_for_failures(self, *, allow_warnings: bool = True) -> Results:
        """Returns these results, unless a gate would stop the task.

            suite.run(db, day).raise_for_failures()

        :param allow_warnings: accepts `warned`: failures below `fail_on`, or missing history.
        :raises SuiteFailed: the outcome is another one; the message is the report.
        """
        passes = {Outcome.PASSED, Outcome.WARNED} if allow_warnings else {Outcome.PASSED}
        if self.outcome not in passes:
            raise SuiteFailed(self)
        return self

    def to_pandas(self) -> Any:
        """A pandas DataFrame with a row per assertion, and the columns of the table `results`.

        :raises ImportError: pandas is not installed.
        """
        import pandas  # type: ignore[import-untyped]

        from dqx_airflow.results.schema import RESULTS_COLUMNS, Source, written

        verdicts = enumerate(self.report.verdicts)
        rows = [
            written(RESULTS_COLUMNS, Source(self.report, at, verdict)) for at, verdict in verdicts
        ]
        names = [column.name for column in RESULTS_COLUMNS if column.get is not None]
        return pandas.DataFrame(rows, columns=names)


class DatesFailed(AssertionError):  # noqa: N818 (as `SuiteFailed`)
    """A suite did not pass on all dates.

    `results` has all dates; the message has the report of each date that did not pass.
    """

    def __init__(self, results: DatedResults) -> None:
        super().__init__(f"\n{results}")
        self.results = results


@dataclass(frozen=True, slots=True)
class DatedResults(Mapping[date, Results]):
    """The results of a suite by date, in order, each as of a run for that date alone.

        for day, results in suite.run_dates(db, "2026-01-01..2026-03-31").items():
            print(day, results.outcome)

    `not_run` has the dates for which a `StoredDatabase` has no results, with the reason.
    """

    by_date: Mapping[date, Results]
    not_run: Mapping[date, UpstreamFailure] = field(default_factory=dict)

    def __getitem__(self, on: date) -> Results:
        return self.by_date[on]

    def __iter__(self) -> Iterator[date]:
        return iter(self.by_date)

    def __len__(self) -> int:
        return len(self.by_date)

    @property
    def outcome(self) -> Outcome:
        """The worst outcome; broken if a date was not run."""
        if self.not_run or not self.by_date:
            return Outcome.BROKEN
        return worst_outcome(results.outcome for results in self.by_date.values())

    @property
    def outcomes(self) -> dict[date, Outcome]:
        """The outcome of each date."""
        return {on: results.outcome for on, results in self.by_date.items()}

    def raise_for_failures(self, *, allow_warnings: bool = True) -> DatedResults:
        """Returns these results, unless a gate would stop the task on one of the dates.

        :param allow_warnings: accepts `warned`: failures below `fail_on`, or missing history.
        :raises DatesFailed: a date has another outcome.
        """
        passes = {Outcome.PASSED, Outcome.WARNED} if allow_warnings else {Outcome.PASSED}
        if self.outcome not in passes:
            raise DatesFailed(self)
        return self

    def to_pandas(self) -> Any:
        """A pandas DataFrame with a row per date and assertion, and the columns of the table
        `results`.

        The date is in the column `dataset_date`.

        :raises ImportError: pandas is not installed.
        """
        import pandas

        frames = [results.to_pandas() for results in self.by_date.values()]
        return pandas.concat(frames, ignore_index=True) if frames else pandas.DataFrame()

    def __str__(self) -> str:
        lines = [f"{on.isoformat()}: {outcome.value}" for on, outcome in self.outcomes.items()]
        lines += [f"{on.isoformat()}: not run: {why.problem}" for on, why in self.not_run.items()]
        reports = [
            str(results)
            for results in self.by_date.values()
            if results.outcome is not Outcome.PASSED
        ]
        return "\n\n".join(["\n".join(sorted(lines)), *reports])

    def _repr_html_(self) -> str:
        """The outcomes as displayed in a notebook."""
        outcomes = [(on, outcome.value) for on, outcome in self.outcomes.items()]
        outcomes += [(on, "not run") for on in self.not_run]
        rows = "".join(
            f"<tr><td>{on.isoformat()}</td><td>{text}</td></tr>" for on, text in sorted(outcomes)
        )
        head = "<thead><tr><th>date</th><th>outcome</th></tr></thead>"
        return f"<table>{head}<tbody>{rows}</tbody></table>"


def read_validated(
    spark: SparkSession, report: GateReport | Mapping[str, Any] | str, dataset: str
) -> DataFrame:
    """The rows of a dataset that a gate let through, in exactly that version.

    They are read from where the gate promoted them to or, without a promotion, from where it read
    them.

        summary = context["ti"].xcom_pull(task_ids="gate", key="dqx_report")
        orders = read_validated(spark, summary, "orders")

    :param report: a report, or its summary in the XCom `dqx_report`, also as JSON, for the
        arguments of a job.
    :param dataset: the name of the dataset in the gate.
    :raises RequestError: the gate let nothing through, or the version of the dataset is unknown.
    :raises DatasetError: the version can no longer be read.
    """
    from dqx_airflow.engine.sources.open import open_dataset

    rows = _validated(report, dataset)
    place = {"table" if is_table(rows.location) else "path": rows.location}
    opened = open_dataset(spark, DatasetRef(dataset, version=rows.version, **place))  # type: ignore[arg-type]
    frame = opened.read({None})
    return frame if rows.condition is None else frame.where(rows.condition)


def _validated(report: GateReport | Mapping[str, Any] | str, dataset: str) -> ValidatedRows:
    if isinstance(report, GateReport):
        outcome, validated = report.outcome.value, report.validated
    else:
        summary = _summary(report)
        outcome = str(summary.get("outcome"))
        try:
            text = json.dumps(summary.get("validated"))
            validated = from_json(dict[str, ValidatedRows], text)
        except ValueError as error:
            raise RequestError(f"the summary of the gate cannot be read: {error}") from error
    if dataset in validated:
        return validated[dataset]
    if outcome not in ("passed", "warned"):
        raise RequestError(f"the gate is {outcome}, so no data was released")
    raise RequestError(
        f"the gate knows no version of dataset '{dataset}'",
        f"known datasets: {', '.join(validated) or 'none'}; only Delta tables have versions",
    )


def _summary(given: Mapping[str, Any] | str) -> Mapping[str, Any]:
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError as error:
            raise RequestError(f"invalid summary of a gate: {error}") from error
    if not isinstance(given, Mapping) or "validated" not in given:
        raise RequestError("invalid summary of a gate", "pass the XCom dqx_report of the gate")
    return given
