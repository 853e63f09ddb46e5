"""Demands on the metrics of columns and tables."""

from __future__ import annotations

from math import ceil, floor
from typing import Any

from dqx_airflow.contracts import demand as base
from dqx_airflow.contracts.compile import (
    claims,
    expectations,
    rule_context,
    spark_predicates,
    terms,
)
from dqx_airflow.contracts.demands.keys import repeated
from dqx_airflow.contracts.demands.values import Pattern, among
from dqx_airflow.contracts.model import Field, plain_name
from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.metrics.builtin import CALLABLE
from dqx_airflow.metrics.calls import MOST_COMMON

_OF_METRICS = {
    **dict.fromkeys(("null_count", "missing_count"), "completeness"),
    **dict.fromkeys(("duplicate_count", "unique_count"), "uniqueness"),
    **dict.fromkeys(("malformed_count", "invalid_count"), "conformity"),
    "num_rows": "coverage",
}
MEASURED = {
    "minimum": "expect_column_min_to_be_between",
    "maximum": "expect_column_max_to_be_between",
    "average": "expect_column_mean_to_be_between",
    "sum": "expect_column_sum_to_be_between",
    "median": "expect_column_median_to_be_between",
    "distinctness": "expect_column_proportion_of_unique_values_to_be_between",
    "unique_count": "expect_column_unique_value_count_to_be_between",
    "num_rows": "expect_table_row_count_to_be_between",
    "column_count": "expect_table_column_count_to_be_between",
}
"""The expectations about a range for a metric of a column, or of the table, by the metric."""


class MetricRule(
    base.Demand,
    is_quality=True,
    subject_fields=("metric", "arguments", "is_percent", "with_null"),
    stricter={"condition": base.Condition.order},
):
    """A condition on a metric of DQL. `arguments` are columns; `metric` is one of `metrics`.

    `is_percent`: the metric is a count, and its percentage of the rows is compared. `values` are
    the values that a metric such as `invalid_count` accepts or counts; for `most_common`, the
    values allowed as the most common value. Among duplicates, NULL equals NULL `with_null`;
    without it, rows with NULL are exempt.
    """

    metric: str
    arguments: tuple[str, ...]
    condition: base.Condition
    is_percent: bool = False
    values: tuple[base.Literal, ...] = ()
    pattern: str | None = None
    with_null: bool = False

    @property
    def text(self) -> str:
        share = "% of the rows" if self.is_percent else ""
        of = [f"among {base.values_text(self.values)}"] if self.values else []
        of += [f"matching {self.pattern}"] if self.pattern is not None else []
        named = f"{self.metric}({', '.join(self.arguments)})"
        return " ".join([named, *of, self.condition.text + share])

    @property
    def dimension(self) -> str | None:  # type: ignore[override]
        return _OF_METRICS.get(self.metric)

    def claim(self, context: rule_context.RuleContext) -> claims.CompiledClaim:
        """A metric with a condition. A count of rows becomes a demand on each of them if
        possible: then failing rows can be shown."""
        if self.metric == MOST_COMMON:
            column, item = _subject(context, self)
            membership = among(column, self.values, item)
            if isinstance(membership, nodes.Member):
                return claims.CompiledClaim(
                    f"{MOST_COMMON}({show(column)}, 1) in {show(membership.choices)}"
                )
        counted = _COUNTED.get(self.metric)
        if counted is None:
            expression = _metric(self)
        else:
            bad = counted(context, self)
            condition = self.condition
            if condition == base.NONE or (condition.op == "<=" and condition.bound == 0):
                return claims.each_row(terms.negation(bad))
            expression = (
                f"num_rows(where {show(bad)})"
                if context.is_filtered
                else claims.sql(f"count_if({spark_predicates.spark_text(bad)})")
            )
        if self.is_percent:
            return claims.compared(f"{expression} / num_rows()", self.condition, "%")
        return claims.compared(expression, self.condition)

    def expectation(self, place: expectations.ExportedRule) -> expectations.Expectation:
        if self.metric == "null_count" and self.is_percent:
            if self.condition.op != "<=":
                raise NoCounterpartError(base.NO_EXPECTATION)
            share = round(1 - self.condition.bound / 100, 12)
            kwargs: dict[str, Any] = {"column": plain_name(self.arguments[0]), "mostly": share}
            return expectations.Expectation("expect_column_values_to_not_be_null", kwargs)
        if self.metric == "most_common" and len(self.arguments) == 1:
            values = [value for value in self.values if value is not None]
            kwargs = {"column": plain_name(self.arguments[0]), "value_set": values}
            return expectations.Expectation("expect_column_most_common_value_to_be_in_set", kwargs)
        ends = _ends(self.condition, is_count=self.metric in _COUNTS)
        kind = MEASURED.get(self.metric, "")
        column = {"column": plain_name(self.arguments[0])} if self.arguments else {}
        is_plain = not (self.is_percent or self.values or self.pattern is not None)
        if len(self.arguments) != ("_table_" not in kind) or not (kind and ends and is_plain):
            raise NoCounterpartError(base.NO_EXPECTATION)
        return expectations.Expectation(kind, {**column, **ends})


def _metric(demand: MetricRule) -> str:
    if demand.metric == "duplicate_count" and not demand.with_null:
        return repeated(demand.arguments)
    if demand.metric not in CALLABLE:
        hint = did_you_mean(demand.metric, CALLABLE)
        raise NoCounterpartError(f"unknown metric '{demand.metric}': {hint}")
    arguments = ", ".join(show(terms.column(column)) for column in demand.arguments)
    if demand.metric == "duplicate_count" and len(demand.arguments) > 1:
        arguments = f"[{arguments}]"
    return f"{demand.metric}({arguments})"


def _invalid(context: rule_context.RuleContext, demand: MetricRule) -> nodes.Expression:
    """The predicate that a value is not one of the valid values."""
    return terms.negated(_joined(_stated(context, demand, "valid"), "and"))


def _missing(context: rule_context.RuleContext, demand: MetricRule) -> nodes.Expression:
    """The predicate that a value is NULL, or one of the values that mean a missing value."""
    column, item = _subject(context, demand)
    try:
        listed = _listed(column, demand, item)
    except NoCounterpartError:
        if demand.pattern is not None:
            raise
        listed = []  # No value of a numeric column is such a string.
    return _joined([nodes.IsNull(column), *listed], "or")


def _equal(context: rule_context.RuleContext, demand: MetricRule) -> nodes.Expression:
    """The predicate that a value is one of the counted values."""
    return _joined(_stated(context, demand, "counted"), "or")


def _stated(
    context: rule_context.RuleContext, demand: MetricRule, what: str
) -> list[nodes.Expression]:
    """The predicates for the values of a demand.

    :raises NoCounterpartError: it has none.
    """
    column, item = _subject(context, demand)
    predicates = _listed(column, demand, item)
    if not predicates:
        raise NoCounterpartError(f"it does not define which values are {what}")
    return predicates


_COUNTED = {"invalid_count": _invalid, "missing_count": _missing, "count_values": _equal}
"""Metrics that count the rows for which a predicate is true."""


def _subject(
    context: rule_context.RuleContext, demand: MetricRule
) -> tuple[nodes.Name, Field | None]:
    if len(demand.arguments) != 1:
        raise NoCounterpartError(f"{demand.metric} takes exactly one column")
    (path,) = demand.arguments
    return terms.column(path), context.model.field_at(path)


def _listed(column: nodes.Name, demand: MetricRule, item: Field | None) -> list[nodes.Expression]:
    predicates = []
    if demand.values:
        predicates.append(among(column, demand.values, item))
    if demand.pattern is not None:
        predicates.append(Pattern(demand.pattern).predicate(column, item))
    return predicates


def _joined(predicates: list[nodes.Expression], op: str) -> nodes.Expression:
    joined = predicates[0]
    for predicate in predicates[1:]:
        joined = nodes.Junction(op, joined, predicate)
    return joined


_COUNTS = ("num_rows", "unique_count", "column_count")


def _ends(condition: base.Condition, *, is_count: bool) -> dict[str, Any] | None:
    """A comparison as a range; None if it is not a range. Ranges of counts are inclusive."""
    op = condition.op
    bound = condition.bound
    high = condition.high
    if op == "==" or (op == "between" and high is not None):
        return {"min_value": bound, "max_value": bound if high is None else high}
    if op not in (">", ">=", "<", "<="):
        return None
    end, step, nearest = ("min", 1, floor) if op[0] == ">" else ("max", -1, ceil)
    ends = {"min_value": None, "max_value": None}
    if not is_count:
        strict = {f"strict_{end}": True} if len(op) == 1 else {}
        return {**ends, f"{end}_value": bound, **strict}
    inclusive = nearest(bound) + step if len(op) == 1 else -nearest(-bound)
    return {**ends, f"{end}_value": inclusive}
