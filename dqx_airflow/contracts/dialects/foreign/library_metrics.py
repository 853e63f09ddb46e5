"""The metrics of the Data Contract Specification 1.2, which are those of ODCS 3.1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dqx_airflow.contracts.column_paths import column_path
from dqx_airflow.contracts.demands import Condition, Demand, MetricRule, OneOf, Pattern
from dqx_airflow.contracts.dialects.extensions import slug
from dqx_airflow.contracts.dialects.foreign import Translation
from dqx_airflow.contracts.dialects.foreign.thresholds import conditions
from dqx_airflow.contracts.dialects.foreign.values import (
    ValueDemand,
    invalid_values,
    repeated_rows,
    values_in,
)
from dqx_airflow.errors import NoCounterpartError

_OLDER_NAMES = {
    "duplicateCount": "duplicateValues",
    "nullCheck": "nullValues",
    "nullCount": "nullValues",
    "missingCount": "missingValues",
    "invalidCount": "invalidValues",
    "validValues": "invalidValues",
}
_UNITS = {"rows": False, "percent": True}


def translate(rule: Mapping[str, Any], column: str | None) -> Translation:
    """The demands of a rule with a `metric` on a column, or on the rows of a model.

    :raises NoCounterpartError: there are none.
    """
    written = str(rule.get("metric") or rule.get("rule") or "")
    metric = _OLDER_NAMES.get(written, written)
    if metric not in _METRICS:
        raise NoCounterpartError(f"unknown metric '{written}': there is {', '.join(_METRICS)}")
    compared = conditions(rule)
    if not compared:
        raise NoCounterpartError("it has no threshold: add one, such as mustBe or mustBeLessThan")
    unit = str(rule.get("unit") or "rows")
    if unit not in _UNITS:
        raise NoCounterpartError(f"unknown unit '{unit}': there is rows and percent")
    arguments = rule.get("arguments") or {}
    if not isinstance(arguments, Mapping):
        raise NoCounterpartError("its arguments are not a mapping")
    demands = (
        demand
        for condition in compared
        for demand in _METRICS[metric](column, arguments, condition, _UNITS[unit])
    )
    return Translation(slug(metric), tuple(demands))


_Found = tuple[Demand, ...]


def _null_values(column: str | None, _: Any, condition: Condition, is_percent: bool) -> _Found:
    if column is None:
        raise NoCounterpartError("it belongs to a field")
    return (MetricRule("null_count", (column,), condition, is_percent),)


def _missing_values(
    column: str | None, arguments: Mapping[str, Any], condition: Condition, is_percent: bool
) -> _Found:
    if column is None:
        raise NoCounterpartError("it belongs to a field")
    missing = arguments.get("missingValues", [None, ""])
    if missing == [None]:
        return _null_values(column, arguments, condition, is_percent)
    values = values_in(missing)
    if values is None:
        raise NoCounterpartError("missingValues takes a list of values")
    return (MetricRule("missing_count", (column,), condition, is_percent, values),)


def _invalid_values(
    column: str | None, arguments: Mapping[str, Any], condition: Condition, is_percent: bool
) -> _Found:
    if column is None:
        raise NoCounterpartError("it belongs to a field")
    values, pattern = values_in(arguments.get("validValues")), arguments.get("pattern")
    demands: list[ValueDemand] = []
    if values:
        demands.append(OneOf(values))
    if isinstance(pattern, str):
        demands.append(Pattern(pattern))
    if not demands:
        raise NoCounterpartError("its arguments have neither validValues nor a pattern")
    return invalid_values(column, tuple(demands), condition, is_percent=is_percent)


def _duplicate_values(
    column: str | None, arguments: Mapping[str, Any], condition: Condition, is_percent: bool
) -> _Found:
    names = arguments.get("properties", [])
    if not isinstance(names, list):
        raise NoCounterpartError("properties is not a list")
    columns = (column,) if column is not None else tuple(column_path(str(name)) for name in names)
    if not columns:
        raise NoCounterpartError("its arguments have no properties: list the fields of the key")
    return repeated_rows(columns, condition, is_percent=is_percent)


def _row_count(_: Any, __: Any, condition: Condition, is_percent: bool) -> _Found:
    if is_percent:
        raise NoCounterpartError("the number of rows is not a percentage")
    return (MetricRule("num_rows", (), condition),)


_METRICS: dict[str, Callable[[str | None, Mapping[str, Any], Condition, bool], _Found]] = {
    "nullValues": _null_values,
    "missingValues": _missing_values,
    "invalidValues": _invalid_values,
    "duplicateValues": _duplicate_values,
    "rowCount": _row_count,
}
