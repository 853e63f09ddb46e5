"""A verdict in words: its value, its limit, its failure, the same in a sentence about the data, its
clause, the metrics behind it, and the number of failing rows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from dqx_airflow.diagnostics.verdicts import (
    finding,
    format_in_unit,
    format_percent,
    format_value,
    is_age,
    unscaled_limit,
)
from dqx_airflow.values import DatasetSnapshot, MetricValue, Status, Verdict

if TYPE_CHECKING:
    from dqx_airflow.plan.model import GroupValues

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
    return value if isinstance(value, str) else grouped(reading_of(verdict)(value))


_LONG_NUMBER = re.compile(r"-?[0-9]{5,}(?:\.[0-9]+)?")


def grouped(text: str) -> str:
    """A number with separators of thousands, from five digits on: four may be a year."""
    if not _LONG_NUMBER.fullmatch(text):
        return text
    whole, point, part = text.partition(".")
    return f"{int(whole):,}{point}{part}"


_COMPARISONS = ("<", ">", "=", "!")
_COMPARED = re.compile(r"([<>=!]=? )(-?[0-9]{5,}(?:\.[0-9]+)?)(.*)")
_NONE_ALLOWED = re.compile(r"== 0(?: [a-z ]+)?")


def limit_words(verdict: Verdict) -> str:
    """The limit beside a value: `limit < 2%`, `limit > 10,000`, `limit 0`, `expected between 1 and
    5`."""
    expected = verdict.expected
    if _NONE_ALLOWED.fullmatch(expected):
        return "limit 0"
    compared = _COMPARED.fullmatch(expected)
    if compared is not None:
        comparison, number, unit = compared.groups()
        return f"limit {comparison}{grouped(number)}{unit}"
    return f"{'limit' if expected.startswith(_COMPARISONS) else 'expected'} {expected}"


def counted_value(verdict: Verdict) -> str:
    """The compared value with the unit of what it counts: `10 rows`, `2.4%`."""
    shown = value_of(verdict)
    value = verdict.scaled_value
    if not isinstance(value, int) or isinstance(value, bool):
        return shown
    if _counts_rows(verdict):
        return f"{value:,} row{'' if value == 1 else 's'}"
    return shown


def _counts_rows(verdict: Verdict) -> bool:
    """True if the value of an assertion is a number of rows."""
    from dqx_airflow.metrics.builtin import METRICS
    from dqx_airflow.metrics.metric import MetricUnit

    if verdict.expected.startswith("== 0 violating rows"):
        return True
    called = _CALL.fullmatch(verdict.expression)
    metric = METRICS.get(verdict.metric or (called[1] if called else ""))
    return metric is not None and metric.unit is MetricUnit.ROWS


_CALL = re.compile(r"(\w+)\(([^()]*)\)")
_SHARE_OF_CALL = re.compile(r"(\w+)\(([^()]*)\) / num_rows\(\)")
_COLUMN_NAME = re.compile(r"`[^`]+`|\w+")
_COLUMN_NAMES = re.compile(r"\[?((?:`[^`]+`|\w+)(?:, (?:`[^`]+`|\w+))*)\]?")


def sentence_of(verdict: Verdict, dataset: str = "") -> str:
    """A failure in the words of the data: `2.4% of orders have no customer_id`; of an assertion
    that could not be evaluated, the reason.

    For missing and repeated values, rules about rows, the age of data and the number of rows; of
    other metrics, the metric and its value.

    :param dataset: the only dataset of the gate, for a verdict that does not name its own.
    """
    if verdict.status in (Status.ERROR, Status.SKIPPED):
        return verdict.reason or "could not be evaluated"
    if len(verdict.datasets) == 1:
        dataset = verdict.datasets[0]
    is_plain = dataset and verdict.worst_group is None and verdict.multiplier == 1
    if is_plain and verdict.scaled_value is not None:
        words = _words_of_metric(verdict, dataset)
        if words:
            return words
    found = finding(verdict).partition(", expected ")[0]
    return _about_rows(found, dataset) if is_plain else found


def _words_of_metric(verdict: Verdict, dataset: str) -> str:
    """The sentence about a metric of a dataset, or about its share of all rows; empty for metrics
    that have none."""
    share = _SHARE_OF_CALL.fullmatch(verdict.expression)
    called = share or _CALL.fullmatch(verdict.expression)
    if called is None:
        return ""
    metric, argument = called.groups()
    if metric == _ROW_COUNT and not argument and share is None:
        rows = verdict.scaled_value
        return f"{dataset} has {counted_value(verdict) if rows else 'no rows'}"
    if metric == "freshness" and share is None and _COLUMN_NAME.fullmatch(argument):
        return f"the newest {argument} of {dataset} is {value_of(verdict)} old"
    column = _COLUMN_NAMES.fullmatch(argument)
    if column is None or metric not in ("null_count", "duplicate_count"):
        return ""
    is_one = share is None and verdict.scaled_value == 1
    shown = _share_shown(verdict) if share else counted_value(verdict)
    rows = f"{shown} of"
    if metric == "null_count":
        return f"{rows} {dataset} {'has' if is_one else 'have'} no {column[1]}"
    values = "values" if "," in column[1] else "a value"
    return f"{rows} {dataset} {'repeats' if is_one else 'repeat'} {values} of {column[1]}"


def _share_shown(verdict: Verdict) -> str:
    """A share of rows as a percentage, also beside a limit that is a plain number."""
    shown = value_of(verdict)
    value = verdict.scaled_value
    is_plain = isinstance(value, int | float | Fraction) and not shown.endswith("%")
    return format_percent(value) if is_plain else shown  # type: ignore[arg-type]


_VIOLATING = re.compile(r"([0-9]+) (rows?) (violates?) ")


def _about_rows(found: str, dataset: str) -> str:
    """A finding about rows with the name of their dataset."""
    counted = _VIOLATING.match(found)
    if counted is not None:
        number, rows, verb = counted.groups()
        return f"{int(number):,} {rows} of {dataset} {verb} {found[counted.end() :]}"
    return found.replace(" of the rows ", f" of the rows of {dataset} ", 1)


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
_SATISFYING = "satisfying_share"
_SHARE = re.compile(r"(?!num_rows)(\w+)\([^()]*\) / num_rows\(\)")
"""A number of rows, of which a failure has too many, divided by the number of all rows."""


def operands_of(verdict: Verdict) -> tuple[tuple[str, str], ...]:
    """The metric values from which a value is computed, each with its name, the values of its own
    date first; for an assertion that is judged for each group the values of the worst group. Empty
    if the value is a single metric."""
    if not verdict.measured:
        return ()
    from dqx_airflow.plan.measurements import measurements_from

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
    from dqx_airflow.plan.groupings import show_group

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


def failing_total(verdict: Verdict, datasets: Sequence[DatasetSnapshot]) -> str:
    """The number of failing rows, and their share: `472 of 930 rows (50.8%)`, also for a number of
    rows divided by the number of all; for an assertion that is judged for each group the number of
    failed groups.
    Empty if the assertion counts neither."""
    if verdict.groups is not None:
        return f"{verdict.failed_groups or 0} of {verdict.groups} groups"
    if not verdict.failing_rows:
        return ""
    return _rows_in_share(verdict) or _rows_of_metric(verdict, datasets)


def _rows_in_share(verdict: Verdict) -> str:
    """The failing rows, if the assertion divides a number of rows by that of all rows."""
    from dqx_airflow.metrics.builtin import METRICS
    from dqx_airflow.metrics.metric import MetricUnit

    share = _SHARE.fullmatch(verdict.expression)
    value = verdict.value
    if share is None or not isinstance(value, int | float | Fraction):
        return ""
    metric = METRICS.get(share[1])
    if metric is None or metric.unit is not MetricUnit.ROWS:
        return ""
    operands = dict(operands_of(verdict))
    all_rows = operands.pop(_ALL_ROWS, None)
    if not all_rows or len(operands) != 1:
        return ""
    (failing,) = operands.values()
    return f"{_separated(failing)} of {_separated(all_rows)} rows ({format_percent(value)})"


def _separated(count: str) -> str:
    return f"{int(count):,}" if count.isdecimal() else count


def _rows_of_metric(verdict: Verdict, datasets: Sequence[DatasetSnapshot]) -> str:
    """The failing rows, if the value of the assertion is their number, or the share of others."""
    from dqx_airflow.metrics.builtin import METRICS
    from dqx_airflow.metrics.metric import MetricUnit

    metric = METRICS.get(verdict.metric or "")
    value = verdict.value
    if metric is None:
        return ""
    if metric.name == _SATISFYING and isinstance(value, int | float | Fraction) and value < 1:
        return f"{format_percent(1 - value)} of the rows that were evaluated"
    if metric.unit is not MetricUnit.ROWS or not isinstance(value, int):
        return ""
    for snapshot in datasets:
        if snapshot.name in verdict.datasets:
            return _part_of_rows(value, snapshot.rows)
    return ""


def _part_of_rows(failing: int, rows: int | None) -> str:
    if not rows or not 0 < failing <= rows:
        return ""
    return f"{failing:,} of {rows:,} rows ({format_percent(failing / rows)})"
