"""Metrics and checks of Soda as demands, including SodaCL, its older language: `row_count > 0`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from dqx_airflow.contracts import demands as kinds
from dqx_airflow.contracts.compile.terms import sql_name
from dqx_airflow.contracts.dialects import foreign
from dqx_airflow.contracts.dialects.durations import DAY_S, HOUR_S, MINUTE_S, seconds_of
from dqx_airflow.contracts.dialects.rule_names import slug
from dqx_airflow.contracts.model import column_path, dotted_path
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.values.exact import finite_number, is_finite_number

_LISTED = files(__package__).joinpath("soda_formats.txt").read_text("utf-8").splitlines()
SODA_PATTERNS = {name: text for name, _, text in (line.partition(": ") for line in _LISTED[1:])}
"""The patterns by the names of their formats, in lower case with spaces."""


_REMARKS = ("name", "attributes")
_FORMATS = {"email": "email", "ipv4 address": "ipv4", "ipv6 address": "ipv6", "uuid": "uuid"}
_AGGREGATES = {
    "avg": "average",
    "sum": "sum",
    "min": "minimum",
    "max": "maximum",
    "min_length": "min_length",
    "max_length": "max_length",
    "variance": "variance",
    "var_samp": "variance",
}
"""The metrics of DQL by the types of checks."""
_EXPRESSIONS = {
    "avg_length": "avg(char_length({}))",
    "stddev": "stddev_samp({})",
    "stddev_samp": "stddev_samp({})",
    "stddev_pop": "stddev_pop({})",
    "var_pop": "var_pop({})",
}
"""SQL with a placeholder for the column, by the types of checks."""
_AGES = {"freshness_in_days": DAY_S, "freshness_in_hours": HOUR_S, "freshness_in_minutes": MINUTE_S}
_FILTERS = ("filter_sql", "filter")


def translate(
    check: Mapping[str, Any], column: str | None, sql_dialect: str | None = None
) -> foreign.Translation:
    """The demands of a check on a column, or on a model if `column` is None.

    :param sql_dialect: the dialect of the SQL in the check.
    :raises NoCounterpartError: there are none.
    """
    kind = str(check.get("type") or "")
    check_type = _TYPES.get(kind)
    if check_type is None:
        raise NoCounterpartError(f"Soda's check '{kind}' has no counterpart")
    _refuse_unknown_keys(check, kind, check_type)
    conditions = _conditions(check, kind, check_type)
    if check_type.needs_column and column is None:
        raise NoCounterpartError(f"{kind} belongs to a field")
    is_percent = kind.endswith("_percent")
    demands: list[kinds.Demand] = []
    for condition in conditions:
        one = _Check(column, check, condition, is_percent, kind, sql_dialect)
        demands += check_type.demands_of(one)
    where = _filter(check, check_type)
    if where is not None:
        demands = [kinds.AmongRows(demand, where, sql_dialect) for demand in demands]
    name = check.get("name")
    return foreign.Translation(
        kind,
        tuple(demands),
        column,
        str(name) if name else None,
        remarks=tuple({*_REMARKS} & {*check}),
    )


def _refuse_unknown_keys(check: Mapping[str, Any], kind: str, check_type: _CheckType) -> None:
    """Checks the keys of a check.

    :raises NoCounterpartError: a check of this type does not take one of them.
    """
    known = ("type", *_REMARKS, *check_type.filters, *check_type.keys)
    for key in check:
        if key not in known and not foreign.is_threshold(key):
            raise NoCounterpartError(f"Soda's '{key}' has no counterpart for {kind}")


def _conditions(
    check: Mapping[str, Any], kind: str, check_type: _CheckType
) -> tuple[kinds.Condition, ...]:
    """The comparisons of a check, or the comparison that its type implies.

    :raises NoCounterpartError: there is none, or a comparison has no counterpart.
    """
    compared = comparisons(check)
    if check_type.implied is not None:
        if compared:
            raise NoCounterpartError(f"{kind} takes no threshold")
        return (check_type.implied,)
    if not compared:
        message = f"{kind} has no threshold: add one, such as must_be or must_be_less_than"
        raise NoCounterpartError(message)
    return compared


def _filter(check: Mapping[str, Any], check_type: _CheckType) -> str | None:
    """The SQL condition that limits a check to some rows.

    :raises NoCounterpartError: the filter is not a string.
    """
    for key in check_type.filters:
        if key in check:
            where = check[key]
            if where is not None and not isinstance(where, str):
                raise NoCounterpartError("a filter must be a SQL condition")
            return where
    return None


def comparisons(check: Mapping[str, Any]) -> tuple[kinds.Condition, ...]:
    """The comparisons of a check. A lower bound above the upper bound requires a value outside of
    the range.

    :raises NoCounterpartError: a comparison has no counterpart.
    """
    compared = foreign.conditions(check)
    lower = [condition for condition in compared if condition.op in (">", ">=")]
    upper = [condition for condition in compared if condition.op in ("<", "<=")]
    if not (lower and upper) or lower[0].bound <= upper[0].bound:
        return compared
    if lower[0].op == ">" and upper[0].op == "<":
        return (kinds.Condition("not between", upper[0].bound, lower[0].bound),)
    message = "the excluded range includes only one of its ends: use must_be_not_between"
    raise NoCounterpartError(message)


_LIMITS: tuple[tuple[str, type[kinds.Bound | kinds.Length], tuple[str, ...]], ...] = (
    ("valid_min", kinds.Bound, (">=",)),
    ("valid_max", kinds.Bound, ("<=",)),
    ("valid_length", kinds.Length, (">=", "<=")),
    ("valid_min_length", kinds.Length, (">=",)),
    ("valid_max_length", kinds.Length, ("<=",)),
)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class _Check(foreign.Check):
    """A check with one of its comparisons."""

    kind: str
    sql_dialect: str | None

    def first(self, *keys: str) -> Any:
        """The value of the first existing spelling of a key."""
        return next((self.keys[key] for key in keys if key in self.keys), None)

    def row_count(self) -> foreign.Demands:
        return self.measured("num_rows")

    def duplicates(self) -> foreign.Demands:
        named = self.keys.get("columns")
        if not isinstance(named, list) and self.column is None:
            raise NoCounterpartError(f"{self.kind} has no columns")
        names = tuple(column_path(str(name)) for name in named) if isinstance(named, list) else ()
        return self.repeated(names or (str(self.column),))

    def missing(self) -> foreign.Demands:
        pattern = self.first("missing_regex", "missing_regex_sql", "missing_sql_regex")
        is_listed = "missing_values" in self.keys
        counted = foreign.values_in(self.keys["missing_values"]) if is_listed else ()
        if counted is None or not isinstance(pattern, str | None):
            message = "missing_values takes a list of values, missing_regex a string"
            raise NoCounterpartError(message)
        if counted or pattern:
            return self.measured("missing_count", self.own_column, values=counted, pattern=pattern)
        if self.permits_none:
            return (kinds.Required(),)
        return self.measured("null_count", self.own_column)

    def invalid_values(self) -> foreign.Demands:
        reference = self.keys.get("valid_values_reference_data")
        if reference is not None:
            return self._reference(reference)
        valid = self._valid()
        refused = self._refused()
        if not refused:
            if not valid:
                message = f"{self.kind} has no key that defines valid values, such as valid_values"
                raise NoCounterpartError(message)
            return self.invalid(self.own_column, valid)
        if valid:
            refused.append(f"NOT ({foreign.all_hold(self.own_column, valid)})")
        broken = " OR ".join(refused)
        if self.permits_none:
            return (kinds.RowsSatisfy(f"NOT ({broken})"),)
        return self.counted(broken)

    def _refused(self) -> list[str]:
        """The SQL predicates for values named as invalid."""
        name = sql_name(self.own_column)
        refused = []
        if "invalid_values" in self.keys:
            refused.append(f"{name} IN ({foreign.literals(self.values('invalid_values'))})")
        if "invalid_regex" in self.keys:
            refused.append(foreign.rlike(name, str(self.keys["invalid_regex"])))
        return refused

    def _valid(self) -> tuple[foreign.ColumnDemand, ...]:
        """The conditions on a valid value, which must all hold."""
        demands = list[foreign.ColumnDemand]()
        pattern = self.first("valid_regex", "valid_regex_sql", "valid_sql_regex")
        if "valid_values" in self.keys:
            demands.append(kinds.OneOf(self.values("valid_values")))
        if pattern is not None:
            demands.append(kinds.Pattern(str(pattern)))
        if "valid_format" in self.keys:
            written = str(self.keys["valid_format"])
            format_name = written.replace("_", " ").lower()
            if format_name in _FORMATS:
                demands.append(kinds.OfFormat(_FORMATS[format_name]))
            elif format_name in SODA_PATTERNS:
                demands.append(kinds.Pattern(SODA_PATTERNS[format_name]))
            else:
                raise NoCounterpartError(f"Soda's format '{written}' has no counterpart")
        for key, demand, ops in _LIMITS:
            if key in self.keys:
                limit = self.keys[key]
                of_lengths = demand is kinds.Length
                if not (_is_whole(limit) if of_lengths else is_finite_number(limit)):
                    wanted = "a whole number" if of_lengths else "a number"
                    raise NoCounterpartError(f"{key} takes {wanted}")
                demands += [demand(op, limit) for op in ops]
        return tuple(demands)

    def _reference(self, reference: object) -> foreign.Demands:
        match reference:
            case {"dataset": str(dataset), "column": str(column)}:
                pass
            case _:
                message = "valid_values_reference_data takes a dataset and a column"
                raise NoCounterpartError(message)
        others = {key for key in self.keys if key.startswith("valid_")}
        if others != {"valid_values_reference_data"}:
            message = (
                "valid_values_reference_data cannot be combined with other keys for valid values"
            )
            raise NoCounterpartError(message)
        if not self.permits_none:
            raise NoCounterpartError("a reference cannot have a threshold: use no_invalid_values")
        return (kinds.Refers((self.own_column,), dataset, (column_path(column),)),)

    def aggregate(self) -> foreign.Demands:
        return self.measured(_AGGREGATES[self.kind], self.own_column)

    def expression(self) -> foreign.Demands:
        value = _EXPRESSIONS[self.kind].format(sql_name(self.own_column))
        return (kinds.QueryGives(foreign.aggregate_query(value), self.condition),)

    def freshness(self) -> foreign.Demands:
        if self.condition.op not in ("<", "<="):
            raise NoCounterpartError(f"{self.kind} is an upper limit: use must_be_less_than")
        return (kinds.Fresh(self.own_column, self.condition.bound * _AGES[self.kind]),)

    def metric_expression(self) -> foreign.Demands:
        return self._given(foreign.aggregate_query, "expression_sql", "sql_expression")

    def metric_query(self) -> foreign.Demands:
        return self._given(str.strip, "query_sql", "query")

    def _given(self, query_of: Callable[[str], str], *keys: str) -> foreign.Demands:
        """The condition on the SQL of the check itself."""
        sql = self.first(*keys)
        if not isinstance(sql, str):
            raise NoCounterpartError(f"{self.kind} has no {keys[0]}")
        query = query_of(sql).replace("{table_name}", "{model}")
        return (kinds.QueryGives(query, self.condition, self.sql_dialect),)


@dataclass(frozen=True, slots=True)
class _CheckType:
    """A type of checks: its demands, and the keys that it takes besides thresholds and remarks.

    `implied` is the comparison of a type that takes no threshold.
    """

    demands_of: Callable[[_Check], foreign.Demands]
    keys: tuple[str, ...] = ()
    needs_column: bool = True
    implied: kinds.Condition | None = None
    filters: tuple[str, ...] = _FILTERS


_MISSING = _CheckType(
    _Check.missing, ("missing_values", "missing_regex", "missing_regex_sql", "missing_sql_regex")
)
_INVALID = _CheckType(
    _Check.invalid_values,
    (
        "valid_values",
        "valid_format",
        "valid_min",
        "valid_max",
        "valid_length",
        "valid_min_length",
        "valid_max_length",
        "valid_regex",
        "valid_regex_sql",
        "valid_sql_regex",
        "valid_values_reference_data",
        "invalid_values",
        "invalid_regex",
    ),
)
_ROW_COUNT = _CheckType(_Check.row_count, needs_column=False)
_DUPLICATES = _CheckType(_Check.duplicates, ("columns",), needs_column=False)
_TYPES: dict[str, _CheckType] = {
    "row_count": _ROW_COUNT,
    "rows_exist": replace(_ROW_COUNT, implied=kinds.Condition(">", 0)),
    "duplicate_count": _DUPLICATES,
    "duplicate_percent": _DUPLICATES,
    "no_duplicate_values": replace(_DUPLICATES, implied=kinds.NONE),
    "missing_count": _MISSING,
    "missing_percent": _MISSING,
    "no_missing_values": replace(_MISSING, implied=kinds.NONE),
    "invalid_count": _INVALID,
    "invalid_percent": _INVALID,
    "no_invalid_values": replace(_INVALID, implied=kinds.NONE),
    "metric_expression": _CheckType(
        _Check.metric_expression,
        ("metric", "expression_sql", "sql_expression"),
        needs_column=False,
        filters=(),
    ),
    "metric_query": _CheckType(
        _Check.metric_query, ("metric", "query_sql", "query"), needs_column=False, filters=()
    ),
    **dict.fromkeys(_AGGREGATES, _CheckType(_Check.aggregate)),
    **dict.fromkeys(_EXPRESSIONS, _CheckType(_Check.expression)),
    **dict.fromkeys(_AGES, _CheckType(_Check.freshness)),
}


_CHECK = re.compile(
    r"\s*(?P<metric>\w+)\s*(\((?P<arguments>[^()]*)\))?\s*(?P<comparison>.*?)\s*", re.DOTALL
)
_COMPARISON = re.compile(r"(?P<op><=|>=|!=|<>|<|>|=)\s*(?P<bound>\S.*)")
_RANGE = re.compile(r"(?P<negation>not\s+)?between\s+(?P<low>\S+)\s+and\s+(?P<high>\S+)")
_REFERENCE = re.compile(
    r"\s*values\s+in\s+\((?P<columns>[^()]+)\)\s+must\s+exist\s+in\s+"
    r"(?P<dataset>[^\s()]+)\s*\((?P<others>[^()]+)\)\s*"
)
_THRESHOLDS = {op: slug(foreign.THRESHOLDS[op][0]) for op in ("!=", "<", "<=", ">", ">=")}
_THRESHOLDS |= {"=": "must_be", "<>": "must_not_be"}
_OF_COLUMNS = ("duplicate_count", "duplicate_percent")


def translate_sodacl(check: object) -> foreign.Translation:
    """The demands of a check: a string, or a mapping from a string to its configuration.

    :raises NoCounterpartError: the check has no counterpart.
    """
    text: object = check
    given: object = {}
    if isinstance(check, dict) and check:
        text, given = next(iter(check.items()))
    if not isinstance(text, str) or not isinstance(given, Mapping):
        raise NoCounterpartError(f"SodaCL's check '{text}' has no counterpart")
    settings = {str(key).replace(" ", "_"): value for key, value in given.items()}
    match = _REFERENCE.fullmatch(text)
    if match is None:
        return _sodacl_metric(text, settings)
    if settings:
        raise NoCounterpartError("a reference with further settings")
    return _sodacl_reference(match)


def _sodacl_metric(text: str, settings: Mapping[str, Any]) -> foreign.Translation:
    """The demands of a check such as `avg(price) > 5`, with its settings."""
    parts = _CHECK.fullmatch(text)
    if parts is None:
        raise NoCounterpartError(f"SodaCL's check '{text}' has no counterpart")
    metric = parts["metric"]
    arguments = _names(parts["arguments"] or "")
    if metric == "freshness":
        return _sodacl_freshness(arguments, parts["comparison"])
    compared = threshold(parts["comparison"])
    if compared is None:
        raise NoCounterpartError(f"SodaCL's check '{text}' does not compare with a number")
    if metric == "percentile":
        return _percentile(arguments, compared)
    own_metric = _own_metric(metric, settings)
    if own_metric is not None and not arguments:
        return translate({**own_metric, **compared}, None)
    rule = {"type": metric, **settings, **compared}
    if metric in _OF_COLUMNS and len(arguments) > 1:
        return translate({**rule, "columns": arguments}, None)
    if metric == "row_count" and not arguments:
        return translate(rule, None)
    if metric != "row_count" and len(arguments) == 1:
        return translate(rule, dotted_path(arguments[0]))
    raise NoCounterpartError(f"SodaCL's check '{text}' has no counterpart")


def _names(text: str) -> list[str]:
    return [name.strip().strip('"`') for name in text.split(",") if name.strip()]


def _number(text: str) -> int | float | None:
    """A number; SodaCL writes percentages with or without a percent sign."""
    bare = text.strip().removesuffix("%").strip()
    return finite_number(bare) if re.fullmatch(r"[-+]?\d+(\.\d+)?", bare) else None


def _own_metric(metric: str, settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """The metric that a check defines itself: `avg_span expression: AVG(a - b)`."""
    rest = dict(settings)
    for kind in ("expression", "query"):
        if (sql := rest.pop(f"{metric}_{kind}", None)) is not None:
            return {"type": f"metric_{kind}", f"{kind}_sql": sql, **rest}
    return None


def threshold(comparison: str) -> dict[str, Any] | None:
    """A comparison with numbers as keys of Soda: `> 5` is `must_be_greater_than: 5`; None for any
    other comparison."""
    if match := _RANGE.fullmatch(comparison):
        bounds = [_number(match["low"]), _number(match["high"])]
        key = "must_not_be_between" if match["negation"] else "must_be_between"
        return {key: bounds} if None not in bounds else None
    match = _COMPARISON.fullmatch(comparison)
    bound = _number(match["bound"]) if match else None
    return {_THRESHOLDS[match["op"]]: bound} if match and bound is not None else None


def _sodacl_reference(match: re.Match[str]) -> foreign.Translation:
    columns = _names(match["columns"])
    other_columns = _names(match["others"])
    if len(columns) != len(other_columns):
        raise NoCounterpartError("a reference needs the same number of columns on both sides")
    paths = tuple(map(dotted_path, columns))
    other_paths = tuple(map(dotted_path, other_columns))
    demand = kinds.Refers(paths, match["dataset"], other_paths)
    return foreign.Translation("references", (demand,), paths[0] if len(paths) == 1 else None)


def _sodacl_freshness(arguments: list[str], comparison: str) -> foreign.Translation:
    match = _COMPARISON.fullmatch(comparison)
    seconds = seconds_of(match["bound"]) if match and match["op"] in ("<", "<=") else None
    if seconds is None or len(arguments) != 1 or "::" in arguments[0]:
        raise NoCounterpartError("freshness needs `<` and a duration: write `freshness(at) < 24h`")
    path = dotted_path(arguments[0])
    return foreign.Translation("freshness", (kinds.Fresh(path, seconds),), path)


def _percentile(arguments: list[str], threshold: dict[str, Any]) -> foreign.Translation:
    share = _number(arguments[1]) if len(arguments) == 2 else None
    if share is None or not 0 <= share <= 1:
        raise NoCounterpartError("a percentile needs a column and a number between 0 and 1")
    path = dotted_path(arguments[0])
    query = foreign.aggregate_query(f"percentile({sql_name(path)}, {share})")
    demands = tuple(kinds.QueryGives(query, condition) for condition in comparisons(threshold))
    return foreign.Translation("percentile", demands, path)
