"""Metrics and checks of Soda as demands; those of SodaCL, its older language: `row_count > 0`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from typing import Any

from dqx_airflow.contracts import demands as kinds
from dqx_airflow.contracts.compile.terms import sql_name
from dqx_airflow.contracts.dialects import clause_reader, foreign
from dqx_airflow.contracts.dialects.clause_reader import DAY_S, HOUR_S, MINUTE_S, seconds_of, slug
from dqx_airflow.contracts.model import column_path, dotted_path
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.values.exact import finite_number, is_finite_number

_LISTED = files(__package__).joinpath("soda_formats.txt").read_text("utf-8").splitlines()
SODA_PATTERNS = {name: text for name, _, text in (line.partition(": ") for line in _LISTED[1:])}
"""The patterns by the names of their formats, in lower case with spaces."""


_REMARKS = ("name", "attributes")
_FORMATS = {"email": "email", "ipv4 address": "ipv4", "ipv6 address": "ipv6", "uuid": "uuid"}
_AGGREGATES: dict[str, str] = dict(clause_reader.table_of("aggregates of Soda"))
_EXPRESSIONS: dict[str, str] = dict(clause_reader.table_of("expressions of Soda"))
_AGES = {"freshness_in_days": DAY_S, "freshness_in_hours": HOUR_S, "freshness_in_minutes": MINUTE_S}
_REGEX_KEYS = ("valid_regex", "valid_regex_sql", "valid_sql_regex")
_MISSING_REGEX_KEYS = ("missing_regex", "missing_regex_sql", "missing_sql_regex")
_VALIDITY = (
    *("valid_values", "valid_format", "valid_min", "valid_max"),
    *("valid_length", "valid_min_length", "valid_max_length"),
    *_REGEX_KEYS,
)
_EXPRESSION_KEYS = ("expression_sql", "sql_expression")
_QUERY_KEYS = ("query_sql", "query")
_FILTER_KEYS = ("filter_sql", "filter")


@dataclass(frozen=True, slots=True)
class _Check:
    """A check that is being translated: its keys, and one of its comparisons."""

    kind: str
    keys: Mapping[str, Any]
    column: str | None
    condition: kinds.Condition
    sql_dialect: str | None

    def first(self, keys: Iterable[str]) -> Any:
        """The value of the first existing spelling of a key."""
        return next((self.keys[key] for key in keys if key in self.keys), None)

    def values(self, key: str) -> tuple[kinds.Literal, ...]:
        values = foreign.values_in(self.keys[key])
        if values is None:
            raise NoCounterpartError(f"{key} takes a list of values")
        return values

    @property
    def is_percent(self) -> bool:
        return self.kind.endswith("_percent")

    @property
    def permits_none(self) -> bool:
        return foreign.permits_none(self.condition, is_percent=self.is_percent)


_Found = tuple[kinds.Demand, ...]


def translate(
    check: Mapping[str, Any], column: str | None, sql_dialect: str | None = None
) -> foreign.Translation:
    """The demands of a check on a column, or on a model if `column` is None.

    :param sql_dialect: the dialect of the SQL in the check.
    :raises NoCounterpartError: there are none.
    """
    kind = str(check.get("type") or "")
    if kind not in _KINDS:
        raise NoCounterpartError(f"Soda's check '{kind}' has no counterpart")
    found_kind = _KINDS[kind]
    filters = _FILTER_KEYS if found_kind.takes_filter else ()
    for key in check:
        if key not in ("type", *_REMARKS, *filters, *found_kind.keys) and not foreign.is_threshold(
            key
        ):
            raise NoCounterpartError(f"Soda's '{key}' has no counterpart for {kind}")
    compared = comparisons(check)
    if found_kind.implied is not None and compared:
        raise NoCounterpartError(f"{kind} takes no threshold")
    compared = compared or (found_kind.implied or ())
    if not compared:
        message = f"{kind} has no threshold: add one, such as must_be or must_be_less_than"
        raise NoCounterpartError(message)
    if found_kind.needs_column and column is None:
        raise NoCounterpartError(f"{kind} belongs to a field")
    each = (_Check(kind, check, column, one, sql_dialect) for one in compared)
    demands = tuple(demand for one in each for demand in found_kind.demands(one))
    where = next((check[key] for key in filters if key in check), None)
    if where is not None and not isinstance(where, str):
        raise NoCounterpartError("a filter must be a SQL condition")
    if where is not None:
        demands = tuple(kinds.AmongRows(demand, where, sql_dialect) for demand in demands)
    name = check.get("name")
    return foreign.Translation(
        kind, demands, column, str(name) if name else None, remarks=tuple({*_REMARKS} & {*check})
    )


def comparisons(check: Mapping[str, Any]) -> tuple[kinds.Condition, ...]:
    """The comparisons; a lower bound above the upper one means a value outside of both.

    :raises NoCounterpartError: one of them cannot be made.
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


def _row_count(check: _Check) -> _Found:
    return (kinds.MetricRule("num_rows", (), check.condition),)


def _duplicates(check: _Check) -> _Found:
    named = check.keys.get("columns")
    if not isinstance(named, list) and check.column is None:
        raise NoCounterpartError(f"{check.kind} has no columns")
    names = tuple(column_path(str(name)) for name in named) if isinstance(named, list) else ()
    columns = names or (str(check.column),)
    return foreign.repeated_rows(columns, check.condition, is_percent=check.is_percent)


def _missing(check: _Check) -> _Found:
    column, pattern = str(check.column), check.first(_MISSING_REGEX_KEYS)
    counted = (
        foreign.values_in(check.keys["missing_values"]) if "missing_values" in check.keys else ()
    )
    if counted is None or not isinstance(pattern, str | None):
        raise NoCounterpartError("missing_values takes a list of values, missing_regex a string")
    compared = (column,), check.condition, check.is_percent
    if counted or pattern:
        return (kinds.MetricRule("missing_count", *compared, counted, pattern),)
    return (kinds.Required() if check.permits_none else kinds.MetricRule("null_count", *compared),)


def _invalid(check: _Check) -> _Found:
    reference = check.keys.get("valid_values_reference_data")
    if reference is not None:
        return _reference(check, reference)
    valid, refused = _valid(check), _refused(check)
    if refused is not None:
        named = (
            (*refused, f"NOT ({foreign.all_hold(str(check.column), valid)})") if valid else refused
        )
        broken = " OR ".join(named)
        counted = f"count_if({broken})"
        counted = f"100 * {counted} / count(*)" if check.is_percent else counted
        if check.permits_none:
            return (kinds.RowsSatisfy(f"NOT ({broken})"),)
        return (kinds.QueryGives(foreign.aggregate_query(counted), check.condition),)
    if not valid:
        message = f"{check.kind} has no key that defines valid values, such as valid_values"
        raise NoCounterpartError(message)
    column, is_percent = str(check.column), check.is_percent
    return foreign.invalid_values(column, valid, check.condition, is_percent=is_percent)


def _refused(check: _Check) -> tuple[str, ...] | None:
    """The SQL predicates for values named as invalid; None if none is named."""
    keys, name = check.keys, sql_name(str(check.column))
    refused = []
    if "invalid_values" in keys:
        refused.append(f"{name} IN ({foreign.literals(check.values('invalid_values'))})")
    if "invalid_regex" in keys:
        refused.append(foreign.rlike(name, str(keys["invalid_regex"])))
    return tuple(refused) or None


def _valid(check: _Check) -> tuple[foreign.ColumnDemand, ...]:
    """The conditions on a valid value, which must all hold."""
    keys, demands = check.keys, list[foreign.ColumnDemand]()
    pattern = check.first(_REGEX_KEYS)
    if "valid_values" in keys:
        demands.append(kinds.OneOf(check.values("valid_values")))
    if pattern is not None:
        demands.append(kinds.Pattern(str(pattern)))
    if "valid_format" in keys:
        written = str(keys["valid_format"])
        format_name = written.replace("_", " ").lower()
        if format_name in _FORMATS:
            demands.append(kinds.OfFormat(_FORMATS[format_name]))
        elif format_name in SODA_PATTERNS:
            demands.append(kinds.Pattern(SODA_PATTERNS[format_name]))
        else:
            raise NoCounterpartError(f"Soda's format '{written}' has no counterpart")
    for key, op in (("valid_min", ">="), ("valid_max", "<=")):
        if key in keys:
            if not is_finite_number(keys[key]):
                raise NoCounterpartError(f"{key} takes a number")
            demands.append(kinds.Bound(op, keys[key]))
    for key, ops in (
        ("valid_length", (">=", "<=")),
        ("valid_min_length", (">=",)),
        ("valid_max_length", ("<=",)),
    ):
        if key in keys:
            count = keys[key]
            if not isinstance(count, int) or isinstance(count, bool):
                raise NoCounterpartError(f"{key} takes a whole number")
            demands += [kinds.Length(op, count) for op in ops]
    return tuple(demands)


def _reference(check: _Check, reference: object) -> _Found:
    match reference:
        case {"dataset": str(dataset), "column": str(column)}:
            pass
        case _:
            raise NoCounterpartError("valid_values_reference_data takes a dataset and a column")
    if any(key in check.keys for key in _VALIDITY):
        message = "valid_values_reference_data cannot be combined with other keys for valid values"
        raise NoCounterpartError(message)
    if not check.permits_none:
        raise NoCounterpartError("a reference cannot have a threshold: use no_invalid_values")
    return (kinds.Refers((str(check.column),), dataset, (column_path(column),)),)


def _aggregate(check: _Check) -> _Found:
    metric, column = _AGGREGATES[check.kind], str(check.column)
    return (kinds.MetricRule(metric, (column,), check.condition),)


def _expression(check: _Check) -> _Found:
    value = _EXPRESSIONS[check.kind].format(sql_name(str(check.column)))
    return (kinds.QueryGives(foreign.aggregate_query(value), check.condition),)


def _freshness(check: _Check) -> _Found:
    if check.condition.op not in ("<", "<="):
        raise NoCounterpartError(f"{check.kind} is an upper limit: use must_be_less_than")
    return (kinds.Fresh(str(check.column), check.condition.bound * _AGES[check.kind]),)


def _query(check: _Check, keys: tuple[str, ...], query_of: Callable[[str], str]) -> _Found:
    sql = check.first(keys)
    if not isinstance(sql, str):
        raise NoCounterpartError(f"{check.kind} has no {keys[0]}")
    query = query_of(sql).replace("{table_name}", "{model}")
    return (kinds.QueryGives(query, check.condition, check.sql_dialect),)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of check: its translation, and its keys besides thresholds.

    `implied` is the comparison of a kind without a threshold.
    """

    demands: Callable[[_Check], _Found]
    keys: tuple[str, ...] = ()
    needs_column: bool = True
    implied: tuple[kinds.Condition, ...] | None = None
    takes_filter: bool = True


_MISSING_KEYS = ("missing_values", *_MISSING_REGEX_KEYS)
_INVALID_KEYS = (*_VALIDITY, "invalid_values", "invalid_regex", "valid_values_reference_data")
_OF_FAMILIES = {
    "duplicate": _Kind(_duplicates, ("columns",), needs_column=False),
    "missing": _Kind(_missing, _MISSING_KEYS),
    "invalid": _Kind(_invalid, _INVALID_KEYS),
}
_KINDS = {
    "row_count": _Kind(_row_count, needs_column=False),
    "rows_exist": _Kind(_row_count, needs_column=False, implied=(kinds.Condition(">", 0),)),
    **{f"{name}_count": kind for name, kind in _OF_FAMILIES.items()},
    **{f"{name}_percent": kind for name, kind in _OF_FAMILIES.items()},
    **{
        f"no_{name}_values": replace(kind, implied=(kinds.NONE,))
        for name, kind in _OF_FAMILIES.items()
    },
    **dict.fromkeys(_AGGREGATES, _Kind(_aggregate)),
    **dict.fromkeys(_EXPRESSIONS, _Kind(_expression)),
    **dict.fromkeys(_AGES, _Kind(_freshness)),
    "metric_expression": _Kind(
        partial(_query, keys=_EXPRESSION_KEYS, query_of=foreign.aggregate_query),
        ("metric", *_EXPRESSION_KEYS),
        needs_column=False,
        takes_filter=False,
    ),
    "metric_query": _Kind(
        partial(_query, keys=_QUERY_KEYS, query_of=str.strip),
        ("metric", *_QUERY_KEYS),
        needs_column=False,
        takes_filter=False,
    ),
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
_OF_ROWS = ("row_count",)
_OF_COLUMNS = ("duplicate_count", "duplicate_percent")


def translate_sodacl(check: object) -> foreign.Translation:
    """The demands of a check: a string, or a mapping from one to its configuration.

    :raises NoCounterpartError: there are none.
    """
    text, given = next(iter(check.items())) if isinstance(check, dict) and check else (check, {})
    if not isinstance(text, str) or not isinstance(given, Mapping):
        raise NoCounterpartError(f"SodaCL's check '{text}' has no counterpart")
    settings = {str(key).replace(" ", "_"): value for key, value in given.items()}
    if (match := _REFERENCE.fullmatch(text)) is not None:
        if settings:
            raise NoCounterpartError("a reference with further settings")
        return _sodacl_reference(match)
    parts = _CHECK.fullmatch(text)
    if parts is None:
        raise NoCounterpartError(f"SodaCL's check '{text}' has no counterpart")
    arguments = _names(parts["arguments"] or "")
    if parts["metric"] == "freshness":
        return _sodacl_freshness(arguments, parts["comparison"])
    compared = threshold(parts["comparison"])
    if compared is None:
        raise NoCounterpartError(f"SodaCL's check '{text}' does not compare with a number")
    if parts["metric"] == "percentile":
        return _percentile(arguments, compared)
    if (own_metric := _own_metric(parts["metric"], settings)) is not None and not arguments:
        return translate({**own_metric, **compared}, None)
    rule = {"type": parts["metric"], **settings, **compared}
    if parts["metric"] in _OF_COLUMNS and len(arguments) > 1:
        return translate({**rule, "columns": arguments}, None)
    expected = 0 if parts["metric"] in _OF_ROWS else 1
    if len(arguments) != expected:
        raise NoCounterpartError(f"SodaCL's check '{text}' has no counterpart")
    return translate(rule, dotted_path(arguments[0]) if arguments else None)


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
    """A comparison with numbers as Soda's keys: `> 5` is `must_be_greater_than: 5`; None for other
    comparisons."""
    if match := _RANGE.fullmatch(comparison):
        bounds = [_number(match["low"]), _number(match["high"])]
        key = "must_not_be_between" if match["negation"] else "must_be_between"
        return {key: bounds} if None not in bounds else None
    match = _COMPARISON.fullmatch(comparison)
    bound = _number(match["bound"]) if match else None
    return {_THRESHOLDS[match["op"]]: bound} if match and bound is not None else None


def _sodacl_reference(match: re.Match[str]) -> foreign.Translation:
    columns, other_columns = _names(match["columns"]), _names(match["others"])
    if len(columns) != len(other_columns):
        raise NoCounterpartError("a reference needs the same number of columns on both sides")
    paths, other_paths = tuple(map(dotted_path, columns)), tuple(map(dotted_path, other_columns))
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
