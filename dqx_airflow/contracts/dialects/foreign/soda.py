"""The checks of Soda 3 contracts as demands: a type, its settings and thresholds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from dqx_airflow.contracts import demands as kinds
from dqx_airflow.contracts.compile.terms import sql_name
from dqx_airflow.contracts.dialects import foreign
from dqx_airflow.contracts.dialects.durations import DAY_S, HOUR_S, MINUTE_S
from dqx_airflow.contracts.model import column_path
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.metrics.text_formats import TEXT_FORMATS, whole
from dqx_airflow.values.exact import is_finite_number

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


def missing_predicate(column: str, settings: Mapping[str, Any]) -> str:
    """The SQL predicate for the values that count as missing beside NULL.

    :raises NoCounterpartError: a setting is unknown, or not as Soda writes it.
    """
    for key in settings:
        if key not in _MISSING_KEYS:
            raise NoCounterpartError(f"Soda's '{key}' has no counterpart for missing values")
    check = _Check(column, settings, kinds.NONE, False, "missing_count", None)
    return check.missing_predicate() or "false"


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
        """A condition on the number of values that occur more than once, or on its percentage of
        the rows. NULL is no value."""
        named = self.keys.get("columns")
        if not isinstance(named, list) and self.column is None:
            raise NoCounterpartError(f"{self.kind} has no columns")
        names = tuple(column_path(str(name)) for name in named) if isinstance(named, list) else ()
        names = names or (str(self.column),)
        if self.permits_none:
            return (kinds.Unique(names),)
        columns = ", ".join(map(sql_name, names))
        present = " AND ".join(f"{sql_name(name)} IS NOT NULL" for name in names)
        number = f"count_if(soda_copies > 1 AND {present})"
        if self.is_percent:  # Soda rounds a percentage
            number = f"coalesce(round(100 * {number} / sum(soda_copies), 2), 0)"
        counted = "count(*) AS soda_copies FROM {model} GROUP BY"
        copies = " ".join(("SELECT", f"{columns},", counted, columns))
        query = " ".join(("SELECT", number, "FROM (", copies, ") AS soda_values"))
        return (kinds.QueryGives(query, self.condition),)

    def missing(self) -> foreign.Demands:
        counted, pattern = self._missing_values()
        if counted or pattern:
            return self.measured("missing_count", self.own_column, values=counted, pattern=pattern)
        if self.permits_none:
            return (kinds.Required(),)
        return self.measured("null_count", self.own_column)

    def _missing_values(self) -> tuple[tuple[kinds.Literal, ...], str | None]:
        """The values that count as missing, and the expression that matches others.

        :raises NoCounterpartError: they are not as Soda writes them.
        """
        pattern = self.first("missing_regex", "missing_regex_sql", "missing_sql_regex")
        is_listed = "missing_values" in self.keys
        counted = foreign.values_in(self.keys["missing_values"]) if is_listed else ()
        if counted is None or not isinstance(pattern, str | None):
            message = "missing_values takes a list of values, missing_regex a string"
            raise NoCounterpartError(message)
        if "missing_format" in self.keys:
            if pattern is not None:
                raise NoCounterpartError("it has both missing_format and missing_regex")
            pattern = self._format("missing_format")
        return counted, pattern

    def invalid_values(self) -> foreign.Demands:
        reference = self.keys.get("valid_values_reference_data")
        if reference is not None:
            return self._reference(reference)
        valid = self._valid()
        refused = self._refused()
        missing = self.missing_predicate()
        if missing is not None:
            return self._invalid_among_present(valid, refused, missing)
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

    def valid_values(self) -> foreign.Demands:
        """A condition on the number of values that are valid, and not missing."""
        name = sql_name(self.own_column)
        conditions = [f"{name} IS NOT NULL"]
        missing = self.missing_predicate()
        if missing is not None:
            conditions.append(f"NOT ({missing})")
        valid = self._valid()
        if valid:
            conditions.append(foreign.all_hold(self.own_column, valid))
        conditions += [f"NOT ({refused})" for refused in self._refused()]
        return self.counted(" AND ".join(conditions))

    def missing_predicate(self) -> str | None:
        """The SQL predicate for values that count as missing; None if only NULL does."""
        counted, pattern = self._missing_values()
        name = sql_name(self.own_column)
        missing = []
        if counted:
            missing.append(f"{name} IN ({foreign.literals(counted)})")
        if pattern is not None:
            missing.append(foreign.rlike(name, pattern))
        return " OR ".join(missing) or None

    def _invalid_among_present(
        self, valid: tuple[foreign.ColumnDemand, ...], refused: list[str], missing: str
    ) -> foreign.Demands:
        """The condition on the number of invalid values, of which a missing value is none."""
        if valid:
            refused = [*refused, f"NOT ({foreign.all_hold(self.own_column, valid)})"]
        if not refused:
            message = f"{self.kind} has no key that defines valid values, such as valid_values"
            raise NoCounterpartError(message)
        broken = " OR ".join(refused)
        if self.permits_none:
            return (kinds.RowsSatisfy(f"{missing} OR NOT ({broken})"),)
        return self.counted(f"NOT ({missing}) AND ({broken})")

    def _format(self, key: str) -> str:
        """The regular expression of a format: its name, or a mapping with the expression.

        :raises NoCounterpartError: the format is unknown.
        """
        written = self.keys[key]
        match written:
            case {"regex": str(expression), **others} if not {*others} - {"name"}:
                return expression
            case str():
                name = written.replace("_", " ").lower()
                if name in SODA_PATTERNS:
                    return SODA_PATTERNS[name]
                if name in _FORMATS:
                    return whole(TEXT_FORMATS[_FORMATS[name]].pattern)
                raise NoCounterpartError(f"Soda's format '{written}' has no counterpart")
        raise NoCounterpartError(f"{key} takes a regex and a name, or the name of a format")

    def _refused(self) -> list[str]:
        """The SQL predicates for values named as invalid."""
        name = sql_name(self.own_column)
        refused = []
        if "invalid_values" in self.keys:
            refused.append(f"{name} IN ({foreign.literals(self.values('invalid_values'))})")
        if "invalid_regex" in self.keys:
            pattern = str(self.keys["invalid_regex"])
            refused.append(foreign.rlike(name, pattern, is_forbidden=True))
        if "invalid_format" in self.keys:
            pattern = self._format("invalid_format")
            refused.append(foreign.rlike(name, pattern, is_forbidden=True))
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
            format_name = str(self.keys["valid_format"]).replace("_", " ").lower()
            if format_name in _FORMATS:
                demands.append(kinds.OfFormat(_FORMATS[format_name]))
            else:
                demands.append(kinds.Pattern(self._format("valid_format")))
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


_MISSING_KEYS = (
    "missing_values",
    "missing_regex",
    "missing_regex_sql",
    "missing_sql_regex",
    "missing_format",
)
_MISSING = _CheckType(_Check.missing, _MISSING_KEYS)
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
        "invalid_format",
        *_MISSING_KEYS,
    ),
)
VALUE_KEYS = _INVALID.keys
"""The settings that define missing or valid values."""
_VALID = _CheckType(
    _Check.valid_values, tuple(key for key in _INVALID.keys if key != "valid_values_reference_data")
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
    "valid_count": _VALID,
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
