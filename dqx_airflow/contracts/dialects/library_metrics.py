"""The metrics of the library of ODCS as demands."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping as MappingType
from typing import Any

from dqx_airflow.contracts import demands as kinds
from dqx_airflow.contracts.dialects import foreign
from dqx_airflow.contracts.dialects.rule_names import slug
from dqx_airflow.contracts.model import dotted_path, parts_of, plain_name
from dqx_airflow.diagnostics.diagnostic import slip_of
from dqx_airflow.errors import NoCounterpartError

DQL_METRICS = {
    "null_count": "nullValues",
    "missing_count": "missingValues",
    "invalid_count": "invalidValues",
    "duplicate_count": "duplicateValues",
    "num_rows": "rowCount",
}
"""The metrics of ODCS by their names in DQL."""
LIBRARY_METRICS = tuple(DQL_METRICS.values())
OLDER_NAMES = {
    "nullCheck": "nullValues",
    "nullCount": "nullValues",
    "missingCount": "missingValues",
    "invalidCount": "invalidValues",
    "validValues": "invalidValues",
    "duplicateCount": "duplicateValues",
}
"""The metrics of ODCS by their names in older versions."""
_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "nullValues": (),
    "missingValues": ("missingValues",),
    "invalidValues": ("validValues", "pattern"),
    "duplicateValues": ("properties",),
    "rowCount": (),
}
"""The arguments of each metric."""
_ARE_PERCENT = {"rows": False, "percent": True}


def translate_metric(rule: MappingType[str, Any], column: str | None) -> foreign.Translation:
    """The demands of a rule with a `metric` on a column, or on the rows of a model.

    :raises NoCounterpartError: there are none.
    """
    names = [str(rule[key]) for key in ("metric", "rule") if rule.get(key)]
    metrics = [OLDER_NAMES.get(name, name) for name in names]
    if len({*metrics}) > 1:
        stated = " and ".join(f"'{name}'" for name in names)
        raise NoCounterpartError(f"its metric and its rule differ: {stated}: remove the rule")
    written = names[0] if names else ""
    metric = metrics[0] if metrics else ""
    if metric not in _METRICS:
        raise NoCounterpartError(f"unknown metric '{written}': there is {', '.join(_METRICS)}")
    compared = foreign.conditions(rule)
    if not compared:
        raise NoCounterpartError(NO_THRESHOLD)
    unit = str(rule.get("unit") or "rows")
    if unit not in _ARE_PERCENT:
        raise NoCounterpartError(f"unknown unit '{unit}': there is rows and percent")
    arguments = rule.get("arguments") or {}
    if not isinstance(arguments, MappingType):
        raise NoCounterpartError("its arguments are not a mapping")
    _refuse_unknown(metric, arguments)
    checks = (foreign.Check(column, arguments, one, _ARE_PERCENT[unit]) for one in compared)
    demands = tuple(demand for check in checks for demand in _METRICS[metric](check))
    return foreign.Translation(slug(metric), demands)


def _refuse_unknown(metric: str, arguments: MappingType[str, Any]) -> None:
    """:raises NoCounterpartError: the metric does not have one of the arguments."""
    taken = _ARGUMENTS[metric]
    unknown = [str(key) for key in arguments if key not in taken]
    if not unknown:
        return
    near = slip_of(unknown[0], taken)
    if near is not None:
        hint = f"did you mean '{near}'?"
    elif taken:
        hint = f"it takes {' and '.join(taken)}"
    else:
        hint = "it takes none"
    raise NoCounterpartError(f"{metric} has no argument '{unknown[0]}': {hint}")


def _null_values(check: foreign.Check) -> foreign.Demands:
    return check.measured("null_count", check.own_column)


def _missing_values(check: foreign.Check) -> foreign.Demands:
    column = check.own_column
    missing = check.keys.get("missingValues", [None, ""])
    if missing == [None]:
        return _null_values(check)
    values = foreign.values_in(missing)
    if values is None:
        raise NoCounterpartError("missingValues takes a list of values")
    return check.measured("missing_count", column, values=values)


def _invalid_values(check: foreign.Check) -> foreign.Demands:
    column = check.own_column
    pattern = check.keys.get("pattern")
    values = foreign.values_in(check.keys.get("validValues"))
    if pattern is not None and not isinstance(pattern, str):
        raise NoCounterpartError("its pattern is not a string")
    if "validValues" in check.keys and not values:
        raise NoCounterpartError("validValues takes a list of values")
    demands: list[foreign.ColumnDemand] = [kinds.OneOf(values)] if values else []
    if pattern is not None:
        demands.append(kinds.Pattern(pattern))
    if not demands:
        raise NoCounterpartError("its arguments have neither validValues nor a pattern")
    return check.invalid(column, tuple(demands))


def _duplicate_values(check: foreign.Check) -> foreign.Demands:
    names = check.keys.get("properties", [])
    if not isinstance(names, list):
        raise NoCounterpartError("properties is not a list")
    columns = tuple(dotted_path(str(name)) for name in names)
    if check.column is not None:
        own = (plain_name(check.column), parts_of(check.column)[-1])
        if columns and (len(columns) > 1 or plain_name(columns[0]) not in own):
            raise NoCounterpartError(
                f"its properties are not {check.column} alone: leave them out, or move the rule to "
                "the quality of the model"
            )
        columns = (check.column,)
    if not columns:
        raise NoCounterpartError("its arguments have no properties: list the fields of the key")
    return check.repeated(columns)


def _row_count(check: foreign.Check) -> foreign.Demands:
    if check.is_percent:
        raise NoCounterpartError("the number of rows is not a percentage")
    return check.measured("num_rows")


_METRICS: dict[str, Callable[[foreign.Check], foreign.Demands]] = {
    "nullValues": _null_values,
    "missingValues": _missing_values,
    "invalidValues": _invalid_values,
    "duplicateValues": _duplicate_values,
    "rowCount": _row_count,
}
NO_THRESHOLD = "it has no threshold: add one, such as mustBe or mustBeLessThan"
