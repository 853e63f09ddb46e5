"""Compiles expressions over metrics to terms of the plan, and calls to metric requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from fractions import Fraction

from dqx_airflow.dql import nodes
from dqx_airflow.dql.checks.assertions import compares_datasets
from dqx_airflow.dql.constants import fold
from dqx_airflow.dql.walk import joined
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.derived import AGES, CHANGES, WINDOWS, window_lags
from dqx_airflow.metrics.metric import Argument, ArgumentKind, Arguments
from dqx_airflow.metrics.plain_values import spark_number
from dqx_airflow.plan.model import (
    Applied,
    ConstantTerm,
    Grouping,
    Measured,
    MetricRequest,
    Now,
    Term,
    row_count,
)
from dqx_airflow.plan.predicates import settled
from dqx_airflow.values import DatasetRef


@dataclass(frozen=True, slots=True)
class TermCompiler:
    """Compiles the expressions of one check.

    :param grouping: of the rows; None without groups.
    :param around: the filter around the metrics of the current assertion.
    """

    check: nodes.Check
    constants: Mapping[str, nodes.Constant]
    refs: Mapping[str, DatasetRef]
    on: date
    grouping: Grouping | None
    around: nodes.Expression | None

    def term(self, node: nodes.Expression, lag: int = 0) -> Term:
        """The term of an expression, `lag` days before the date."""
        match node:
            case nodes.Name():
                return ConstantTerm(fold(node, self.constants))
            case nodes.Number(value=value):
                return ConstantTerm(value)
            case nodes.Negative(operand=operand):
                return Applied("negative", (self.term(operand, lag),))
            case nodes.Arithmetic(op=op, left=left, right=right):
                return Applied(op, (self.term(left, lag), self.term(right, lag)))
            case nodes.Call():
                return self._call(node, lag)
            case _:
                return ConstantTerm(None)

    def _call(self, call: nodes.Call, lag: int) -> Term:
        name = call.name.text
        lag += self._days(call, "lag")
        if name in METRICS:
            metric = METRICS[name]
            pairs = zip(metric.arguments, call.arguments, strict=True)
            arguments = tuple(self.argument(kind, node) for kind, node in pairs)
            for parameter in metric.parameters:
                value = call.parameter(parameter.name)
                arguments += (None if value is None else self._own_parameter(parameter, value),)
            return self.measured(name, arguments, call, lag)
        if name in AGES:
            column = column_name(call.arguments[0])
            newest: Term = self.measured("newest", (column,), call, lag)
            zone = ConstantTerm(self.refs[self._dataset(call)].time_zone or "UTC")
            since = Applied("midnight", (newest, zone)) if name == "data_lag" else newest
            return Applied("age", (Now(), since, zone))
        if name in CHANGES:
            today = self.term(call.arguments[0], lag)
            base = self.term(call.arguments[0], lag + CHANGES[name])
            change = Applied("/", (Applied("-", (today, base)), base))
            return Applied("abs", (change,))
        if name in WINDOWS:
            days = window_lags(name, self._days(call, "n"), self._days(call, "step") or 1)
            return Applied(name, tuple(self.term(call.arguments[0], lag + day) for day in days))
        return Applied(name, tuple(self.term(argument, lag) for argument in call.arguments))

    def _own_parameter(self, parameter: Argument, node: nodes.Expression) -> object:
        match parameter.kind:
            case ArgumentKind.TOLERANCE:
                return fold(node, self.constants)
            case ArgumentKind.STEP:
                literal = _settled(node, self.constants)
                step = fold(literal, {})
                return ("seconds", step) if _is_duration(literal) else step
            case _:
                return column_name(node)

    def argument(self, argument: Argument, node: nodes.Expression) -> object:
        """The value of an argument of a metric."""
        if argument.kind not in (ArgumentKind.COLUMN, ArgumentKind.COLUMNS, ArgumentKind.NAMES):
            if isinstance(node, nodes.Listing):
                return tuple(self.argument(argument, item) for item in node.items)
            value = fold(node, self.constants)
            return spark_number(value) if isinstance(value, Fraction) else value
        items = node.items if isinstance(node, nodes.Listing) else (node,)
        return one_or_more(tuple(column_name(item) for item in items))

    def measured(
        self, metric: str, arguments: Arguments, call: nodes.Call | None = None, lag: int = 0
    ) -> Measured:
        """The request of a call, about its own dataset or that of the check."""
        name = self._dataset(call)
        is_dated = METRICS[metric].scan.has_dates
        on = date_in(self.refs[name], self.on) if is_dated else None
        on = on - timedelta(days=lag) if on else None
        where = joined(self.around, call.where if call else None)
        chosen = None if where is None else settled(where, self.constants)
        return Measured(MetricRequest(name, metric, arguments, on, chosen, self.grouping))

    def rows_of_groups(self, requests: Iterable[MetricRequest]) -> tuple[MetricRequest, ...]:
        """For requests with filters of their own, the number of rows in each group without the
        filter."""
        around = None if self.around is None else settled(self.around, self.constants)
        counts = (
            replace(row_count(request.dataset, request.date, around), grouping=request.grouping)
            for request in requests
            if request.where != around
        )
        return tuple(dict.fromkeys(counts))

    def _days(self, call: nodes.Call, parameter: str) -> int:
        value = call.parameter(parameter)
        days = fold(value, self.constants) if value is not None else 0
        return int(days or 0)

    def _dataset(self, call: nodes.Call | None) -> str:
        named = call.parameter("dataset") if call else None
        if call is not None and named is not None and compares_datasets(call):
            other = column_name(named)
            return next(name.text for name in self.check.datasets if name.text != other)
        return column_name(named) if named else self.check.datasets[0].text


def date_in(ref: DatasetRef, on: date) -> date | None:
    """The date for a dataset: None if it has no dates."""
    return on if ref.date_column else None


def column_name(node: nodes.Expression) -> str:
    """The identifier that refers to a column or a dataset."""
    assert isinstance(node, nodes.Name)
    return node.text


def _settled(node: nodes.Expression, constants: Mapping[str, nodes.Constant]) -> nodes.Expression:
    """The value of a name; anything else unchanged."""
    return constants[node.text].value if isinstance(node, nodes.Name) else node


def _is_duration(node: nodes.Expression) -> bool:
    return isinstance(node, nodes.Number) and node.unit is nodes.Unit.DURATION


def one_or_more(names: tuple[str, ...]) -> object:
    """One column as its name, several as a tuple, so that equal requests are equal."""
    return names[0] if len(names) == 1 else names
