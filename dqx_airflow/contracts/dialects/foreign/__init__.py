"""Rules of contracts in other languages, as demands: ONE module for each language.

Each has `translate`, which takes a rule as dicts, lists and scalars and returns a `Translation`, or
raises an error with the reason why there is no counterpart. They share thresholds, severities, and
the SQL of demands that some values may violate. Columns are written as in DQL: `address.city`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from dqx_airflow.contracts import demands as kinds
from dqx_airflow.contracts.compile.terms import sql_name
from dqx_airflow.contracts.dialects.rule_names import slug
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.metrics.patterns.bounds import ended, ending_as_in_java
from dqx_airflow.metrics.patterns.syntax import PatternError
from dqx_airflow.metrics.sql import quote_literal
from dqx_airflow.metrics.text_formats import TEXT_FORMATS, whole
from dqx_airflow.values import Severity
from dqx_airflow.values.exact import is_finite_number


@dataclass(frozen=True, slots=True)
class Translation:
    """The demands of a foreign rule.

    `kind` is its name if it has no `name` of its own. The demands are about `column`, or about the
    model if `column` is None; `share` becomes `Rule.share`. `remarks` are keys of the rule that
    data cannot violate.
    """

    kind: str
    demands: tuple[kinds.Demand, ...]
    column: str | None = None
    name: str | None = None
    severity: Severity | None = None
    share: float = 1.0
    remarks: tuple[str, ...] = ()

    def has_place(self, columns: Collection[str | None]) -> bool:
        """False if a demand is about the field that it is placed in, and no field has the
        column."""
        if self.column is None or self.column in columns:
            return True
        return not any(isinstance(demand, _OF_A_FIELD) for demand in self.demands)

    @property
    def is_about_each_value(self) -> bool:
        """True if all demands are about the field that they are placed in."""
        return all(isinstance(demand, _OF_A_FIELD) for demand in self.demands)


_OF_A_FIELD = (kinds.Presence, kinds.Required, kinds.ValueDemand)
"""Demands that do not name their column."""

_SEVERITIES = {
    **dict.fromkeys(("p0", "critical", "blocker", "fatal"), Severity.P0),
    **dict.fromkeys(("p1", "error", "high", "major"), Severity.P1),
    **dict.fromkeys(("p2", "warning", "warn", "medium", "minor"), Severity.P2),
    **dict.fromkeys(("p3", "info", "low", "informational", "notice"), Severity.P3),
}
"""The severities by their names in other languages, in lower case."""


def severity_of(word: object) -> Severity | None:
    """The severity for a word; None for an unknown word, and for any other value."""
    return _SEVERITIES.get(word.strip().lower()) if isinstance(word, str) else None


THRESHOLDS = {
    "==": ("mustBe",),
    "!=": ("mustNotBe",),
    ">": ("mustBeGreaterThan",),
    ">=": ("mustBeGreaterOrEqualTo", "mustBeGreaterThanOrEqual", "mustBeGreaterThanOrEqualTo"),
    "<": ("mustBeLessThan",),
    "<=": ("mustBeLessOrEqualTo", "mustBeLessThanOrEqual", "mustBeLessThanOrEqualTo"),
    "between": ("mustBeBetween",),
    "not between": ("mustNotBeBetween", "mustBeNotBetween"),
}
"""The keys of each comparison, first the key of ODCS. Soda writes them in snake case."""
_OPERATORS = {slug(key): op for op, keys in THRESHOLDS.items() for key in keys}


def is_threshold(key: str) -> bool:
    """True for a key such as `mustBe` or `must_be_between`."""
    return slug(key) in _OPERATORS


def conditions(rule: Mapping[str, Any]) -> tuple[kinds.Condition, ...]:
    """All comparisons of a rule.

    :raises NoCounterpartError: a comparison has no counterpart.
    """
    bounds = []
    for key, value in rule.items():
        if not is_threshold(key):
            continue
        op = _OPERATORS[slug(key)]
        condition = _condition(op, value)
        if condition is None:
            wanted = "two numbers, the lower first" if op.endswith("between") else "a number"
            raise NoCounterpartError(f"{key} takes {wanted}")
        bounds.append(condition)
    return tuple(bounds)


def _condition(op: str, value: object) -> kinds.Condition | None:
    if not op.endswith("between"):
        return kinds.Condition(op, value) if is_finite_number(value) else None
    match value:
        case [low, high] if is_finite_number(low) and is_finite_number(high) and low <= high:
            return kinds.Condition(op, low, high)
    return None


ColumnDemand: TypeAlias = kinds.OneOf | kinds.Pattern | kinds.OfFormat | kinds.Bound | kinds.Length
"""A demand that each value of a column satisfies, or not."""


def values_in(items: object) -> tuple[kinds.Literal, ...] | None:
    """The values in a list, without NULL; None if it is not a list, or has nothing to compare
    with."""
    if not isinstance(items, list):
        return None
    values = tuple(item for item in items if item is not None)
    return values if values and all(map(is_value, values)) else None


def is_value(item: object) -> bool:
    """True for a value that a column may have: no mapping, no list, no NaN."""
    return isinstance(item, str | bool) or is_finite_number(item)


def rlike(name: str, expression: str, *, is_forbidden: bool = False) -> str:
    """The Spark SQL predicate that a string matches an expression; `$` is the end of the string.

    :param is_forbidden: strings that match it are wrong. For other tools, `$` may also be before a
        last line break: such strings are wrong, too.
    """
    with suppress(PatternError):  # its mistakes are reported when the SQL is parsed
        expression = ended(ending_as_in_java(expression) if is_forbidden else expression)
    return f"{name} RLIKE {quote_literal(expression)}"


def predicate(column: str, demand: ColumnDemand) -> str:
    """A Spark SQL predicate that is true if the value of the column satisfies the demand."""
    name = sql_name(column)
    match demand:
        case kinds.OneOf(values):
            return f"{name} IN ({literals(values)})"
        case kinds.Pattern(expression):
            return rlike(name, expression)
        case kinds.OfFormat(format_name):
            form = TEXT_FORMATS[format_name]
            return form.sql(name, rlike(name, whole(form.pattern)))
        case kinds.Bound(op, value):
            return f"{name} {op} {literals((value,))}"
        case kinds.Length(op, count):
            return f"char_length({name}) {op} {count}"


def all_hold(column: str, demands: tuple[ColumnDemand, ...]) -> str:
    return " AND ".join(predicate(column, demand) for demand in demands)


def aggregate_query(value: str) -> str:
    """The query for an aggregate over the rows of a model."""
    return " ".join(("SELECT", value.strip(), "FROM {model}"))


def literals(values: tuple[kinds.Literal, ...]) -> str:
    return ", ".join("NULL" if value is None else quote_literal(value) for value in values)


Demands: TypeAlias = tuple[kinds.Demand, ...]


@dataclass(frozen=True, slots=True)
class Check:
    """A check of a column, or of the rows of a model, with one of its conditions: on a number, or
    on a percentage of the rows. `keys` are the keys and values of the check."""

    column: str | None
    keys: Mapping[str, Any]
    condition: kinds.Condition
    is_percent: bool

    @property
    def own_column(self) -> str:
        if self.column is None:
            raise NoCounterpartError("it belongs to a field")
        return self.column

    @property
    def permits_none(self) -> bool:
        """True if only zero satisfies the condition on a count, or on a percentage of the rows."""
        op = self.condition.op
        bound = self.condition.bound
        if op == "==" or self.is_percent:
            return op in ("==", "<=") and bound == 0
        return (op == "<" and 0 < bound <= 1) or (op == "<=" and 0 <= bound < 1)

    def values(self, key: str) -> tuple[kinds.Literal, ...]:
        values = values_in(self.keys[key])
        if values is None:
            raise NoCounterpartError(f"{key} takes a list of values")
        return values

    def measured(
        self,
        metric: str,
        *columns: str,
        values: tuple[kinds.Literal, ...] = (),
        pattern: str | None = None,
    ) -> Demands:
        """The condition on a metric of columns."""
        terms = metric, columns, self.condition, self.is_percent, values, pattern
        return (kinds.MetricRule(*terms),)

    def counted(self, predicate: str) -> Demands:
        """The condition on the number of rows for which a predicate in Spark SQL is true."""
        found = f"count_if({predicate})"
        value = f"100 * {found} / count(*)" if self.is_percent else found
        return (kinds.QueryGives(aggregate_query(value), self.condition),)

    def invalid(self, column: str, valid: tuple[ColumnDemand, ...]) -> Demands:
        """The condition on the number of invalid values; NULL is not invalid."""
        if self.permits_none:
            return valid
        match valid:
            case (kinds.OneOf(values),):
                return self.measured("invalid_count", column, values=values)
            case (kinds.Pattern(expression),):
                return self.measured("invalid_count", column, pattern=expression)
        return self.counted(f"NOT ({all_hold(column, valid)})")

    def repeated(self, columns: tuple[str, ...]) -> Demands:
        """The condition on the number of duplicates in columns."""
        unique = (kinds.Unique(columns),)
        return unique if self.permits_none else self.measured("duplicate_count", *columns)
