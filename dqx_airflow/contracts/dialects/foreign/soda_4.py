"""The checks of Soda 4 contracts as demands: `missing:`, `invalid:`, `duplicate:` and others.

Most of them have a counterpart in Soda 3, with other names of settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dqx_airflow.contracts import demands as kinds
from dqx_airflow.contracts.compile.terms import sql_name
from dqx_airflow.contracts.dialects import foreign
from dqx_airflow.contracts.dialects.foreign import soda
from dqx_airflow.contracts.model import column_path
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.values import Severity

_KINDS = (
    *("missing", "invalid", "duplicate", "row_count"),
    *("aggregate", "freshness", "metric", "failed_rows"),
)
_OF_MISSING = ("missing_",)
_OF_VALIDITY = ("valid_", "invalid_")
_UNITS = {
    "minute": "freshness_in_minutes",
    "hour": "freshness_in_hours",
    "day": "freshness_in_days",
}
_FUNCTIONS = {"minlength": "min_length", "maxlength": "max_length", "avglength": "avg_length"}
_THRESHOLD_KEYS = ("metric", "unit", "level", "additional")
_REMARKS = ("name", "qualifier", "attributes", "store_failed_rows")


def is_check(kind: object, settings: object) -> bool:
    """True for a kind of checks of Soda 4 with its settings; `row_count` with levels is SodaCL."""
    if kind not in _KINDS:
        return False
    return settings is None or (
        isinstance(settings, Mapping) and not {"fail", "warn"} & {*settings}
    )


def translations_of(
    kind: str,
    settings: Mapping[str, Any] | None,
    described: Mapping[str, Any],
    column: str | None,
    sql_dialect: str | None = None,
) -> tuple[foreign.Translation, ...]:
    """The demands of a check: at two levels, if its threshold has an additional one.

    :param described: the keys of the column, of which a check takes over what it does not say.
    :raises NoCounterpartError: there are none.
    """
    own = dict(settings or {})
    name, where = own.pop("name", None), own.pop("filter", None)
    for key in _REMARKS:
        own.pop(key, None)
    threshold = own.pop("threshold", None) or {}
    if not isinstance(threshold, Mapping):
        raise NoCounterpartError("its threshold has no comparison, such as `must_be: 0`")
    translations = []
    for one in _levels(threshold):
        check = _Check(kind, _with_defaults(own, described), one, column, sql_dialect)
        translation = _translated(check)
        if where is not None:
            demands = (kinds.AmongRows(it, str(where), sql_dialect) for it in translation.demands)
            translation = replace(translation, demands=tuple(demands))
        severity = Severity.P3 if str(one.get("level")).lower() == "warn" else None
        named = str(name) if name else None
        translations.append(replace(translation, name=named, severity=severity))
    return tuple(translations)


def _levels(threshold: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A threshold, and the additional one below it, which has its metric and unit."""
    additional = threshold.get("additional")
    if additional is None:
        return [threshold]
    if not isinstance(additional, Mapping):
        raise NoCounterpartError("its additional threshold has no comparison")
    shared = {key: threshold[key] for key in ("metric", "unit") if key in threshold}
    return [threshold, {**shared, **additional}]


def _with_defaults(own: Mapping[str, Any], described: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a check, with the column's keys on missing or valid values unless the check
    has such keys itself."""
    found = dict(own)
    for prefixes in (_OF_MISSING, _OF_VALIDITY):
        if not any(key.startswith(prefixes) for key in own):
            found |= {key: it for key, it in described.items() if str(key).startswith(prefixes)}
    return found


class _Check:
    """A check with one of its thresholds, and the limits in it as Soda 3 writes them."""

    def __init__(
        self,
        kind: str,
        settings: dict[str, Any],
        threshold: Mapping[str, Any],
        column: str | None,
        sql_dialect: str | None,
    ) -> None:
        self.kind = kind
        self.settings = settings
        self.threshold = threshold
        self.column = column
        self.sql_dialect = sql_dialect
        self.limits = _limits_of(threshold)

    @property
    def is_percent(self) -> bool:
        """Whether a percentage is compared.

        :raises NoCounterpartError: it is neither a percentage nor a number."""
        metric = self.threshold.get("metric", "count")
        if metric not in ("count", "percent"):
            raise NoCounterpartError(f"{self.kind}: the metric '{metric}' has no counterpart")
        return bool(metric == "percent")

    def through_soda_3(self, kind: str, **keys: Any) -> foreign.Translation:
        check = {"type": kind, **keys, **self.limits}
        return soda.translate(check, self.column, self.sql_dialect)

    def without(self, *prefixes: str) -> dict[str, Any]:
        return {key: it for key, it in self.settings.items() if not key.startswith(prefixes)}


def _limits_of(threshold: Mapping[str, Any]) -> dict[str, Any]:
    """The limits in a threshold, such as `must_be_less_than: 5`, as Soda 3 writes them: without
    the two limits below `must_be_between` and `must_be_not_between`, which Soda 3 has beside it."""
    limits: dict[str, Any] = {}
    for key, value in threshold.items():
        if key in _THRESHOLD_KEYS:
            continue
        if key in ("must_be_between", "must_be_not_between") and isinstance(value, Mapping):
            for bound, limit in value.items():
                if not bound.startswith(("greater_than", "less_than")):
                    raise NoCounterpartError(f"{key}: '{bound}' is not a bound")
                limits[f"must_be_{bound}"] = limit
        else:
            limits[key] = value
    return limits


def _translated(check: _Check) -> foreign.Translation:
    """:raises NoCounterpartError: there are no demands for the check."""
    match check.kind:
        case "missing" | "invalid":
            return _of_values(check)
        case "duplicate":
            return _duplicates(check)
        case "row_count":
            check.limits = check.limits or {"must_be_greater_than": 0}
            return check.through_soda_3("row_count", **check.settings)
        case "aggregate":
            return _aggregate(check)
        case "freshness":
            return _freshness(check)
        case "metric":
            form, sql = _sql_of(check)
            return check.through_soda_3(f"metric_{form}", **{f"{form}_sql": sql}, **check.settings)
        case "failed_rows":
            return _failed_rows(check)
    raise NoCounterpartError(f"Soda's check '{check.kind}' has no counterpart")


def _of_values(check: _Check) -> foreign.Translation:
    """The demands on the number or the share of missing or invalid values."""
    check.limits = check.limits or {"must_be": 0}
    metric = "percent" if check.is_percent else "count"
    settings = check.settings
    if check.kind == "missing":
        settings = check.without(*_OF_VALIDITY)
    elif "valid_reference_data" in settings:
        settings = check.without("valid_reference_data")
        reference = check.settings["valid_reference_data"]
        if isinstance(reference, Mapping):
            dataset = str(reference.get("dataset", "")).split("/")[-1]
            reference = {**reference, "dataset": dataset}
        settings["valid_values_reference_data"] = reference
    return check.through_soda_3(f"{check.kind}_{metric}", **settings)


def _duplicates(check: _Check) -> foreign.Translation:
    """The demands on the number of rows that repeat others, or on its percentage.

    Of one column, missing values are left out; of several columns, NULL equals NULL.
    """
    check.limits = check.limits or {"must_be": 0}
    kind = "duplicate_percent" if check.is_percent else "duplicate_count"
    named = check.without(*_OF_VALIDITY).pop("columns", None)
    if named is None and check.column is not None:
        return _duplicates_of_column(check, kind, check.column)
    if not isinstance(named, list) or not named:
        raise NoCounterpartError("duplicate has no columns")
    if others := [*check.without("columns", *_OF_MISSING, *_OF_VALIDITY)]:
        raise NoCounterpartError(f"Soda's '{others[0]}' has no counterpart for {kind}")
    names = tuple(column_path(str(name)) for name in named)
    rules = (
        kinds.MetricRule("duplicate_count", names, limit, check.is_percent, with_null=True)
        for limit in soda.comparisons(check.limits)
    )
    return foreign.Translation(kind, tuple(rules))


def _duplicates_of_column(check: _Check, kind: str, column: str) -> foreign.Translation:
    settings = check.without(*_OF_VALIDITY)
    compared = soda.comparisons(check.limits)
    if not settings and all(limit == kinds.NONE for limit in compared):
        return foreign.Translation(kind, (kinds.Unique((column,)),), column)
    value = sql_name(column)
    if settings:
        missing = soda.missing_predicate(column, settings)
        value = f"CASE WHEN NOT ({missing}) THEN {value} END"
    number = f"count({value}) - count(DISTINCT {value})"
    if check.is_percent:
        number = f"coalesce(100 * ({number}) / nullif(count({value}), 0), 0)"
    query = foreign.aggregate_query(number)
    return foreign.Translation(kind, tuple(kinds.QueryGives(query, it) for it in compared), column)


def _aggregate(check: _Check) -> foreign.Translation:
    """The demands on an aggregate of the values that are not missing."""
    written = str(check.settings.get("function", ""))
    function = _FUNCTIONS.get(written.lower(), written)
    settings = check.without("function", *_OF_VALIDITY)
    if any(key.startswith(_OF_MISSING) for key in settings):
        raise NoCounterpartError(
            "values of its column count as missing: write them in its `filter`, such as "
            "`amount <> -1`"
        )
    return check.through_soda_3(function, **settings)


def _freshness(check: _Check) -> foreign.Translation:
    """:raises NoCounterpartError: it has other settings than a column, or an unknown unit."""
    column = check.settings.pop("column", None)
    unit = str(check.threshold.get("unit", "hour"))
    if unit not in _UNITS or check.settings or not column:
        message = "freshness needs a column and a threshold in minutes, hours or days"
        raise NoCounterpartError(message)
    return soda.translate({"type": _UNITS[unit], **check.limits}, column_path(str(column)))


def _failed_rows(check: _Check) -> foreign.Translation:
    """:raises NoCounterpartError: it has no SQL, or other settings."""
    is_default = not check.limits and not check.is_percent
    check.limits = check.limits or {"must_be": 0}
    form, sql = _sql_of(check)
    if not isinstance(sql, str) or check.is_percent:
        raise NoCounterpartError("failed_rows needs an expression or a query, and a number of rows")
    is_zero = is_default or check.limits == {"must_be": 0}
    if form == "expression" and is_zero and not check.settings:  # the failing rows are shown
        demand = kinds.RowsSatisfy(f"NOT ({sql})", check.sql_dialect)
        return foreign.Translation("failed_rows", (demand,))
    counted = f"count_if({sql})" if form == "expression" else count_of(sql)
    return check.through_soda_3(f"metric_{form}", **{f"{form}_sql": counted}, **check.settings)


def _sql_of(check: _Check) -> tuple[str, Any]:
    """Removes the SQL of a check from its settings: its form, `expression` or `query`, and it."""
    form = "expression" if "expression" in check.settings else "query"
    return form, check.settings.pop(form, None)


def count_of(query: str) -> str:
    """A query for the number of rows that `query` returns."""
    return " ".join(("SELECT count(*) FROM (", query.strip().rstrip(";"), ") AS failed"))
