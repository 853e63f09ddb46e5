"""Checks expressions over metrics: existing calls, defined constants, no columns."""

from __future__ import annotations

from dataclasses import dataclass

from dqx_airflow.diagnostics.diagnostic import define_constant, did_you_mean, nearest
from dqx_airflow.dql import nodes
from dqx_airflow.dql.checks import call_arguments, read_only_sql
from dqx_airflow.dql.checks.row_predicates import RowChecker
from dqx_airflow.dql.constants import fold
from dqx_airflow.dql.printer import show, show_name
from dqx_airflow.dql.walk import expressions_in
from dqx_airflow.metrics.aliases import measure_elsewhere, name_alone
from dqx_airflow.metrics.builtin import CALLABLE, METRICS
from dqx_airflow.metrics.calls import (
    AGES,
    ARITY,
    CHANGES,
    DISTRIBUTION,
    MOST_COMMON,
    SHORTCUTS,
    TIMELINESS,
    USUAL_LIMITS,
    WINDOWS,
    window_parameters,
)
from dqx_airflow.metrics.drift import DRIFT, DRIFT_PARAMETERS, EARLIER_DAYS
from dqx_airflow.metrics.metric import Scan
from dqx_airflow.metrics.usual_limits import DEFAULT_DAYS

WITH_CONDITION = {
    "values": "values(a) in values(b, dataset d)",
    MOST_COMMON: 'most_common(column, 3) in ["A", "B", "C"]',
    TIMELINESS: "timeliness(column) by 06:00 UTC",
    DISTRIBUTION: 'distribution(column) matches {"A": 50%, "B": 50%}',
}
"""Calls that are allowed only with a certain condition."""

_KNOWN = (*CALLABLE, *CHANGES, *WINDOWS, *AGES, *DRIFT, *ARITY, *SHORTCUTS, *WITH_CONDITION)


@dataclass(slots=True)
class MeasureChecker:
    """Collects the mistakes in the metric expressions of one check."""

    arguments: call_arguments.ArgumentChecker

    def check(self, node: nodes.Expression) -> None:
        """Checks that `node` is an expression over metrics."""
        match node:
            case nodes.Number() | nodes.Null():
                pass
            case nodes.Negative(operand=operand):
                self.check(operand)
            case nodes.Arithmetic(left=left, right=right):
                self.check(left)
                self.check(right)
            case nodes.Name():
                self._constant(node)
            case nodes.Call():
                self._call(node)
            case nodes.Text() | nodes.Day() | nodes.Truth() | nodes.Listing():
                self.arguments.error("E107", "not a number", node.span)
            case _:
                help_line = "write `assert each row: ...` to check every row"
                message = "expected a metric, found a predicate over rows"
                self.arguments.error("E102", message, node.span, help_line)

    def _constant(self, name: nodes.Name) -> None:
        constants = self.arguments.constants
        if name.text in constants:
            self.arguments.used.add(name.text)
            return
        near = nearest(name.text, constants)
        if near or name.text.isupper():
            meant = did_you_mean(name.text, constants) or define_constant(name.text)
            self.arguments.error("E003", f"unknown constant '{name.text}'", name.span, meant)
        else:
            column = show_name(name.text)
            metric = f"a metric such as average({column})"
            if measure_elsewhere(name.text) == "num_rows()":
                metric = f"num_rows(), {metric}"
            help_line = f"write {metric}, or start the rule with `each row:`"
            message = f"'{name.text}' is not a constant; wrap a column in a metric"
            self.arguments.error("E102", message, name.span, help_line)

    def _call(self, call: nodes.Call) -> None:
        """Checks a call in an expression over metrics."""
        name = call.name.text
        if name in CALLABLE:
            self._metric_call(call)
        elif name in CHANGES or name in WINDOWS:
            self._derived_call(call)
        elif name in AGES:
            self.column_call(call, f"{name}(column)")
        elif name in DRIFT:
            self._drift_call(call)
        elif name in ARITY:
            if self._column_where_a_metric_belongs(call):
                return
            fewest, most = ARITY[name]
            self.arguments.count(call, fewest, most)
            self.arguments.no_parameters(call)
            for argument in call.arguments:
                self.check(argument)
        elif name in SHORTCUTS:
            message = f"`{name}` is a complete assertion and has no value"
            help_line = f"it is short for {SHORTCUTS[name]}"
            self.arguments.error("E101", message, call.name.span, help_line)
        elif name in WITH_CONDITION:
            message = f"`{name}` is not a number"
            help_line = f"write {WITH_CONDITION[name]}"
            self.arguments.error("E101", message, call.name.span, help_line)
        else:
            self._unknown_call(call)

    def _unknown_call(self, call: nodes.Call) -> None:
        name = call.name.text
        written = measure_elsewhere(name, call_arguments.first_column(call))
        near = nearest(name.casefold(), _KNOWN)
        help_line = did_you_mean(name, _KNOWN)
        if written:
            near = name_alone(written, len(call.arguments))
            help_line = f"write {written}"
        label = f"did you mean '{near}'?" if near else ""
        message = f"unknown metric '{name}'"
        hint = None if near else help_line
        self.arguments.error("E001", message, call.name.span, hint, label=label)

    def _drift_call(self, call: nodes.Call) -> None:
        lag, earlier, step = map(call.parameter, ("lag", EARLIER_DAYS, "step"))
        column = show(call.arguments[0]) if call.arguments else "column"
        written = [f"{call.name.text}({column}, {days})" for days in ("usual n 28", "lag 7")]
        self.column_call(call, written[0], DRIFT_PARAMETERS)
        message = ""
        if lag is None and earlier is None:
            message = f"{call.name.text} needs the days to compare with"
        elif lag is not None and (earlier is not None or step is not None):
            message = "`lag` is one day to compare with, `usual n` are several: keep one of them"
        elif lag is not None and fold(lag, self.arguments.constants) == 0:
            message = "the day is compared with itself"
        known = {parameter.name.text for parameter in call.parameters} <= {*DRIFT_PARAMETERS}
        if message and known:
            self.arguments.error("E101", message, call.span, f"write {' or '.join(written)}")

    def column_call(
        self, call: nodes.Call, signature: str, parameters: tuple[str, ...] = ()
    ) -> None:
        """Checks a call with one column of one dataset, alone."""
        if self.arguments.count(call, 1, 1, signature):
            self.arguments.check(call_arguments.COLUMN, call.arguments[0])
        self.arguments.parameters(call, parameters or ("dataset", "where"))
        self.arguments.one_dataset(call)
        self.filter(call)

    def filter(self, call: nodes.Call) -> None:
        """Checks the filter of a call."""
        if call.where is not None and call_arguments.takes_where(call.name.text):
            RowChecker(self.arguments).check_filter(call.where)

    def _metric_call(self, call: nodes.Call) -> None:
        """Checks the arguments and the parameters of a metric."""
        metric = METRICS[call.name.text]
        wanted = len(metric.arguments)
        match call.arguments:
            case () | (nodes.Number(),) if metric.name == "count":
                self._sql_count(call)
                return
        is_complete = self.arguments.count(call, wanted, wanted)
        if is_complete:
            for argument, node in zip(metric.arguments, call.arguments, strict=True):
                self.arguments.check(argument, node, metric.name)
        if metric.scan is Scan.QUERY:
            self.arguments.no_parameters(call)
        elif metric.scan is Scan.MATCH:
            self.arguments.parameters(call, (), metric.parameters)
            self.arguments.other_dataset(call)
        else:
            # A schema and a log are current: they have no dates.
            general = ("lag", "dataset") if metric.scan.has_dates else ("dataset",)
            filters = ("where",) if metric.takes_where else ()
            self.arguments.parameters(call, (*general, *filters), metric.parameters)
            self.arguments.required(call, metric.parameters)
            self.arguments.one_dataset(call)
            self.filter(call)
        match call.arguments:
            case (nodes.Text() as text,) if metric.name in ("sql", "query"):
                read_only_sql.check_sql(metric.name, text, self.arguments)
        if metric.name == "first" and call.parameter("order_by") is None:
            message = "the first row is arbitrary: it depends on how the files are read"
            help_line = "add `order_by column` to the arguments"
            self.arguments.error("W011", message, call.span, help_line)

    def _sql_count(self, call: nodes.Call) -> None:
        """`count()`, `count(1)` and `count(distinct column)`."""
        help_line = "write num_rows() to count rows, count(column) to count values"
        match call.parameters:
            case (nodes.Parameter(name=nodes.Name(text="distinct"), value=nodes.Name(text=name)),):
                help_line = f"write unique_count({show_name(name)})"
        self.arguments.error("E101", "count needs a column", call.span, help_line)

    def _column_where_a_metric_belongs(self, call: nodes.Call) -> bool:
        """True, and reported, if `min(price)` means the `minimum(price)` of other languages."""
        match call.arguments:
            case (nodes.Name() as name,) if name.text not in self.arguments.constants:
                written = measure_elsewhere(call.name.text, call_arguments.first_column(call))
                if written is not None:
                    message = f"'{name.text}' is a column, expected a metric"
                    self.arguments.error("E102", message, name.span, f"write {written}")
                    return True
        return False

    def _derived_call(self, call: nodes.Call) -> None:
        name = call.name.text
        signature = f"{name}(metric)" if name in CHANGES else f"{name}(metric, n 7)"
        if not call.parameters and self._column_where_a_metric_belongs(call):
            return
        if self.arguments.count(call, 1, 1, signature):
            inner = call.arguments[0]
            if isinstance(inner, nodes.Name) and inner.text not in self.arguments.constants:
                message = f"'{inner.text}' is a column, expected a metric"
                help_line = f"write {name}(average({inner.text}))"
                self.arguments.error("E102", message, inner.span, help_line)
            else:
                self.check(inner)
                self.on_other_dates(inner)
        if name in WINDOWS:
            self.arguments.parameters(call, window_parameters(name))
            if call.parameter("n") is None and name not in USUAL_LIMITS:
                message = f"{name} needs a number of days"
                self.arguments.error("E101", message, call.span, f"write {signature}")
        else:
            self.arguments.parameters(call, ("lag",))

    def on_other_dates(self, node: nodes.Expression) -> None:
        """Reports parts of a lagged expression without dates, which are the same on all of them."""
        for call in expressions_in(node):
            metric = METRICS.get(call.name.text) if isinstance(call, nodes.Call) else None
            if metric is not None and not metric.scan.has_dates:
                message = f"`{metric.name}` has a value only on the date of the run"
                help_line = "compare it with a number"
                self.arguments.error("E101", message, call.name.span, help_line)

    def demand(self, node: nodes.Expression) -> int:
        """The number of metric values that an expression needs."""
        match node:
            case nodes.Negative(operand=operand):
                return self.demand(operand)
            case nodes.Arithmetic(left=left, right=right):
                return self.demand(left) + self.demand(right)
            case nodes.Call(name=name, arguments=arguments):
                if name.text in METRICS or name.text in AGES:
                    return 1
                if name.text in DRIFT:
                    days = node.parameter(EARLIER_DAYS)
                    count = None if days is None else fold(days, self.arguments.constants)
                    return 1 + (count if isinstance(count, int) else 1)
                demand = sum(self.demand(argument) for argument in arguments)
                if name.text in CHANGES:
                    return 2 * demand
                days = node.parameter("n")
                count = None if days is None else fold(days, self.arguments.constants)
                if days is None and name.text in USUAL_LIMITS:
                    count = DEFAULT_DAYS
                return demand * (count if isinstance(count, int) else 1)
            case _:
                return 0
