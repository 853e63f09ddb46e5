"""Checks what assertions claim: metrics and their arguments, conditions, predicates over rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.diagnostics.nearest import did_you_mean, nearest
from dqx_airflow.diagnostics.verdicts import format_value
from dqx_airflow.dql import nodes
from dqx_airflow.dql.constants import fold
from dqx_airflow.dql.patterns import check_pattern
from dqx_airflow.metrics.builtin import CALLABLE, METRICS
from dqx_airflow.metrics.derived import ARITY, CHANGES, SHORTCUTS, WINDOWS
from dqx_airflow.metrics.registry import Argument, Kind
from dqx_airflow.values import MetricValue, Span

_KNOWN = (*CALLABLE, *CHANGES, *WINDOWS, *ARITY, *SHORTCUTS, "values")

ROW_FUNCTIONS: dict[str, tuple[int, int]] = {
    "length": (1, 1),
    "lower": (1, 1),
    "upper": (1, 1),
    "trim": (1, 1),
    "abs": (1, 1),
    "round": (1, 2),
    "coalesce": (1, 99),
}
"""Functions over the columns of a row: fewest and most arguments. Spark has them by these names."""

MOST_VALUES = 10_000
"""So many metric values may go into one assertion: windows in windows multiply."""

_BOOLEAN = (nodes.Junction, nodes.Not, nodes.Compare, nodes.Within, nodes.Member, nodes.Matches)
_PREDICATES = (*_BOOLEAN, nodes.IsNull)


@dataclass(slots=True)
class ClaimChecker:
    """Collects what is wrong with the claims of one check. `used` gathers the constants met."""

    datasets: tuple[nodes.Name, ...]
    constants: Mapping[str, nodes.Constant]
    report: Callable[[Diagnostic], None]
    used: set[str] = field(default_factory=set)

    def check(self, claim: nodes.Measure | nodes.Rows, tolerance: nodes.Number | None) -> None:
        if isinstance(claim, nodes.Rows):
            self._check_rows(claim)
        elif isinstance(claim.condition, nodes.InValues):
            self._check_in_values(claim.expression, claim.condition)
        elif _is_shortcut(claim.expression):
            self._check_shortcut(claim)
        else:
            self._metric(claim.expression)
            self._check_condition(claim)
            self._check_demand(claim)
        if tolerance is not None and not _takes_tolerance(claim):
            self._error("E103", "a tolerance belongs to `==` and `!=`", tolerance.span, "remove it")

    # Metric expressions

    def _metric(self, node: nodes.Expression) -> None:
        """`node` has to be an expression over metrics."""
        match node:
            case nodes.Number() | nodes.Null():
                pass
            case nodes.Negative(operand=operand):
                self._metric(operand)
            case nodes.Arithmetic(left=left, right=right):
                self._metric(left)
                self._metric(right)
            case nodes.Name():
                self._constant(node)
            case nodes.Call():
                self._call(node)
            case nodes.Text() | nodes.Day() | nodes.Listing():
                self._error("E107", "this is not a number", node.span)
            case _:
                help_line = "write `assert each row: ...` to check every row"
                message = "a predicate over rows where a metric belongs"
                self._error("E102", message, node.span, help_line)

    def _constant(self, name: nodes.Name) -> None:
        if name.text in self.constants:
            self.used.add(name.text)
            return
        near = nearest(name.text, self.constants)
        if near or name.text.isupper():
            help_line = did_you_mean(name.text, self.constants)
            self._error("E003", f"unknown constant '{name.text}'", name.span, help_line)
        else:
            help_line = f"write a metric such as average({name.text}) or null_count({name.text})"
            message = f"'{name.text}' is not a constant; a column needs a metric around it"
            self._error("E102", message, name.span, help_line)

    def _call(self, call: nodes.Call) -> None:
        name = call.name.text
        if name in CALLABLE:
            self._metric_call(call)
        elif name in CHANGES or name in WINDOWS:
            self._derived_call(call)
        elif name in ARITY:
            fewest, most = ARITY[name]
            self._count_arguments(call, fewest, most)
            self._reject_parameters(call)
            for argument in call.arguments:
                self._metric(argument)
        elif name in SHORTCUTS:
            message = f"`{name}` is an assertion of its own, it has no value"
            self._error("E101", message, call.name.span, f"it stands for {SHORTCUTS[name]}")
        else:
            near = nearest(name, _KNOWN)
            label = f"did you mean '{near}'?" if near else ""
            help_line = None if near else did_you_mean(name, _KNOWN)
            self._error("E001", f"unknown metric '{name}'", call.name.span, help_line, label=label)

    def _metric_call(self, call: nodes.Call) -> None:
        metric = METRICS[call.name.text]
        wanted = len(metric.arguments)
        if self._count_arguments(call, wanted, wanted, metric.signature):
            for argument, node in zip(metric.arguments, call.arguments, strict=True):
                self._argument(argument, node)
        self._parameters(call, ("lag", "dataset"))
        if not any(parameter.name.text == "dataset" for parameter in call.parameters):
            self._needs_one_dataset(call)

    def _argument(self, argument: Argument, node: nodes.Expression) -> None:
        match argument.kind, node:
            case Kind.COLUMN | Kind.COLUMNS, nodes.Name():
                pass
            case Kind.COLUMNS, nodes.Listing(items=items) if items:
                for item in items:
                    if not isinstance(item, nodes.Name):
                        self._error("E101", "this is not a column", item.span)
            case Kind.LITERAL, nodes.Text() | nodes.Number():
                pass
            case Kind.LITERAL, nodes.Name(text=name) if name in self.constants:
                self.used.add(name)
            case _:
                message = f"this has to be {argument.kind.value}"
                help_line = None
                if argument.kind is Kind.LITERAL and isinstance(node, nodes.Name):
                    help_line = f'a text is written in quotes: "{node.text}"'
                elif argument.kind is not Kind.LITERAL and isinstance(node, nodes.Text):
                    help_line = "a column is written without quotes, or in backticks"
                self._error("E101", message, node.span, help_line)

    def _derived_call(self, call: nodes.Call) -> None:
        name = call.name.text
        signature = f"{name}(metric)" if name in CHANGES else f"{name}(metric, n 7)"
        if self._count_arguments(call, 1, 1, signature):
            inner = call.arguments[0]
            if isinstance(inner, nodes.Name) and inner.text not in self.constants:
                message = f"'{inner.text}' is a column where a metric belongs"
                help_line = f"write {name}(average({inner.text}))"
                self._error("E102", message, inner.span, help_line)
            else:
                self._metric(inner)
        if name in WINDOWS:
            self._parameters(call, ("n", "lag"))
            if not any(parameter.name.text == "n" for parameter in call.parameters):
                message = f"{name} needs the number of days"
                self._error("E101", message, call.span, f"write {signature}")
        else:
            self._parameters(call, ("lag",))

    def _count_arguments(
        self, call: nodes.Call, fewest: int, most: int | None, signature: str | None = None
    ) -> bool:
        given = len(call.arguments)
        if given >= fewest and (most is None or given <= most):
            return True
        name = call.name.text
        wanted = str(fewest) if fewest == most else f"{fewest} or more"
        plural = "argument" if wanted == "1" else "arguments"
        help_line = f"write {signature}" if signature else None
        message = f"{name} takes {wanted} {plural}, not {given}"
        self._error("E101", message, call.span, help_line)
        return False

    def _reject_parameters(self, call: nodes.Call) -> None:
        for parameter in call.parameters:
            message = f"{call.name.text} has no parameter '{parameter.name.text}'"
            self._error("E101", message, parameter.span)

    def _parameters(self, call: nodes.Call, allowed: tuple[str, ...]) -> None:
        seen: set[str] = set()
        for parameter in call.parameters:
            name = parameter.name.text
            if name not in allowed:
                message = f"{call.name.text} has no parameter '{name}'"
                self._error("E101", message, parameter.name.span, did_you_mean(name, allowed))
            elif name in seen:
                self._error("E101", f"'{name}' is given twice", parameter.span)
            elif name == "dataset":
                self._dataset(parameter)
            else:
                self._days(parameter, fewest=1 if name == "n" else 0)
            seen.add(name)

    def _days(self, parameter: nodes.Parameter, *, fewest: int) -> None:
        if isinstance(parameter.value, nodes.Name):
            self.used.add(parameter.value.text)
        days = fold(parameter.value, self.constants)
        if not isinstance(days, int) or not fewest <= days <= 3660:
            message = f"'{parameter.name.text}' takes a whole number of days"
            self._error("E101", message, parameter.value.span, f"from {fewest} to 3660")

    def _dataset(self, parameter: nodes.Parameter) -> None:
        known = [dataset.text for dataset in self.datasets]
        value = parameter.value
        if not isinstance(value, nodes.Name):
            self._error("E101", "'dataset' takes the name of a dataset", value.span)
        elif value.text not in known:
            message = f"dataset '{value.text}' is not one of this check's datasets"
            near = nearest(value.text, known)
            help_line = (
                f"did you mean '{near}'?"
                if near
                else f"add it: on {', '.join([*known, value.text])}"
            )
            self._error("E009", message, value.span, help_line)

    def _needs_one_dataset(self, call: nodes.Call) -> None:
        if len(self.datasets) > 1:
            names = ", ".join(dataset.text for dataset in self.datasets)
            example = f"dataset {self.datasets[0].text}"
            message = f"this check has several datasets ({names}): which one is meant?"
            self._error("E009", message, call.span, f"add `{example}` to the arguments")

    # Conditions

    def _check_condition(self, claim: nodes.Measure) -> None:
        match claim.condition:
            case None if isinstance(claim.expression, _PREDICATES):
                pass  # a predicate where a metric belongs: that is said already
            case None:
                message = "this assertion has no condition"
                self._error("E108", message, claim.span, "add one, such as `> 0`")
            case nodes.Comparison(bound=bound):
                self._bound(bound)
            case nodes.Between(low=low, high=high) as between:
                self._bound(low)
                self._bound(high)
                bottom, top = fold(low, self.constants), fold(high, self.constants)
                if _is_above(bottom, top):
                    first, second = format_value(bottom), format_value(top)
                    message = f"nothing lies between {first} and {second}"
                    help_line = f"write between {second} and {first}"
                    self._error("E104", message, between.span, help_line)

    def _check_demand(self, claim: nodes.Measure) -> None:
        demand = self._demand(claim.expression)
        if demand > MOST_VALUES:
            message = f"this asks for {demand} metric values, {MOST_VALUES} are allowed"
            self._error("E014", message, claim.expression.span, "shorten the windows")

    def _demand(self, node: nodes.Expression) -> int:
        """How many metric values an expression takes."""
        match node:
            case nodes.Negative(operand=operand):
                return self._demand(operand)
            case nodes.Arithmetic(left=left, right=right):
                return self._demand(left) + self._demand(right)
            case nodes.Call(name=name, arguments=arguments, parameters=parameters):
                if name.text in METRICS:
                    return 1
                each = sum(self._demand(argument) for argument in arguments)
                if name.text in CHANGES:
                    return 2 * each
                days = [fold(p.value, self.constants) for p in parameters if p.name.text == "n"]
                return each * next((day for day in days if isinstance(day, int)), 1)
            case _:
                return 0

    def _bound(self, node: nodes.Expression) -> None:
        match node:
            case nodes.Text() | nodes.Day():
                pass
            case nodes.Name(text=name) if name not in self.constants:
                help_line = did_you_mean(name, self.constants)
                self._error("E003", f"unknown constant '{name}'", node.span, help_line)
            case _:
                self._metric(node)

    # Shortcuts and values(..) in values(..)

    def _check_shortcut(self, claim: nodes.Measure) -> None:
        call = claim.expression
        assert isinstance(call, nodes.Call)
        name = call.name.text
        if claim.condition is not None:
            message = f"`{name}` is an assertion of its own and takes no condition"
            self._error("E101", message, claim.condition.span, f"it stands for {SHORTCUTS[name]}")
        self._parameters(call, ("dataset",))
        if not call.parameters:
            self._needs_one_dataset(call)
        if name == "in_set":
            if self._count_arguments(call, 2, 2, 'in_set(column, ["A", "B"])'):
                self._argument(Argument("column", Kind.COLUMN), call.arguments[0])
                self._choices(call.arguments[1])
        elif name == "not_empty":
            self._count_arguments(call, 0, 0, "not_empty()")
        elif self._count_arguments(call, 1, None, f"{name}(column)"):
            for argument in call.arguments:
                self._argument(Argument("column", Kind.COLUMN), argument)

    def _check_in_values(self, subject: nodes.Expression, condition: nodes.InValues) -> None:
        if not _is_call(subject, "values"):
            message = "only `values(column)` can be in the values of another dataset"
            self._error("E101", message, subject.span, "write values(a) in values(b, dataset d)")
            return
        assert isinstance(subject, nodes.Call)
        if self._count_arguments(subject, 1, 1, "values(column)"):
            self._argument(Argument("column", Kind.COLUMN), subject.arguments[0])
        self._parameters(subject, ("dataset",))
        if not subject.parameters:
            self._needs_one_dataset(subject)
        self._values_of_other(condition.choices)

    def _values_of_other(self, node: nodes.Expression) -> None:
        """`values(column, dataset other)`; the other dataset need not stand behind `on`."""
        if not isinstance(node, nodes.Call) or node.name.text != "values":
            message = "expected a list, or the values of a dataset"
            self._error("E101", message, node.span, "write values(column, dataset other)")
            return
        if self._count_arguments(node, 1, 1, "values(column, dataset other)"):
            self._argument(Argument("column", Kind.COLUMN), node.arguments[0])
        named = [parameter for parameter in node.parameters if parameter.name.text == "dataset"]
        if (
            len(named) != 1
            or len(node.parameters) != 1
            or not isinstance(named[0].value, nodes.Name)
        ):
            message = "the values of which dataset?"
            self._error("E101", message, node.span, "write values(column, dataset other)")

    # Predicates over rows

    def _check_rows(self, claim: nodes.Rows) -> None:
        if claim.share is not None and not 0 < claim.share.value <= 1:
            message = "a share of rows lies above 0% and up to 100%"
            self._error("E109", message, claim.share.span)
        if len(self.datasets) > 1:
            names = ", ".join(dataset.text for dataset in self.datasets)
            message = f"rows of which dataset? this check has {names}"
            help_line = "move the assertion to a check on one dataset"
            self._error("E009", message, claim.span, help_line)
        self._predicate(claim.predicate)

    def _predicate(self, node: nodes.Expression) -> None:
        match node:
            case nodes.Junction(left=left, right=right):
                self._predicate(left)
                self._predicate(right)
            case nodes.Not(operand=operand):
                self._predicate(operand)
            case nodes.Compare(left=left, right=right):
                self._row_value(left)
                self._row_value(right)
            case nodes.Within(operand=operand, low=low, high=high):
                for part in (operand, low, high):
                    self._row_value(part)
            case nodes.Member(operand=operand, choices=choices):
                self._row_value(operand)
                if isinstance(choices, nodes.Listing):
                    self._choices(choices)
                elif not isinstance(operand, nodes.Name):
                    message = "only a column can be in the values of another dataset"
                    self._error("E106", message, operand.span)
                else:
                    self._values_of_other(choices)
            case nodes.Matches(operand=operand, pattern=pattern):
                self._row_value(operand)
                self._pattern(pattern)
            case nodes.IsNull(operand=operand):
                self._row_value(operand)
            case _:
                message = "this is not a predicate: it is neither true nor false"
                self._error("E106", message, node.span, "compare it, such as `price > 0`")

    def _row_value(self, node: nodes.Expression) -> None:
        match node:
            case nodes.Name(text=name):
                # In a row a name is a column, unless a constant has that name.
                if name in self.constants:
                    self.used.add(name)
            case nodes.Number() | nodes.Text() | nodes.Day():
                pass
            case nodes.Null():
                message = "nothing equals None, so this would never be evaluated"
                self._error("E106", message, node.span, "write `is null` or `is not null`")
            case nodes.Negative(operand=operand):
                self._row_value(operand)
            case nodes.Arithmetic(left=left, right=right):
                self._row_value(left)
                self._row_value(right)
            case nodes.Call(name=name) if name.text in ROW_FUNCTIONS:
                fewest, most = ROW_FUNCTIONS[name.text]
                self._count_arguments(node, fewest, most)
                self._reject_parameters(node)
                for argument in node.arguments:
                    self._row_value(argument)
            case nodes.Call(name=name) if name.text in _KNOWN:
                message = f"`{name.text}` is a metric: it has no value for a single row"
                self._error("E106", message, name.span, "compare metrics outside of `each row`")
            case nodes.Call(name=name):
                help_line = did_you_mean(name.text, ROW_FUNCTIONS)
                self._error("E001", f"unknown function '{name.text}'", name.span, help_line)
            case _:
                self._error("E106", "a value of a row is expected here", node.span)

    def _choices(self, node: nodes.Expression) -> None:
        if not isinstance(node, nodes.Listing) or not node.items:
            self._error("E101", 'expected a list of values such as ["A", "B"]', node.span)
            return
        for item in node.items:
            if isinstance(item, nodes.Name) and item.text in self.constants:
                self.used.add(item.text)
            elif isinstance(item, nodes.Name):
                message = f"unknown constant '{item.text}'"
                self._error(
                    "E003", message, item.span, f'a text is written in quotes: "{item.text}"'
                )
            elif not isinstance(item, nodes.Text | nodes.Number | nodes.Day):
                self._error("E101", "a text, a number or a date is expected here", item.span)

    def _pattern(self, pattern: nodes.Text) -> None:
        problem = check_pattern(pattern.value)
        if problem:
            self._error("E110", f"bad regular expression: {problem}", pattern.span)

    def _error(
        self, code: str, message: str, span: Span, help_line: str | None = None, *, label: str = ""
    ) -> None:
        self.report(Diagnostic(message, span, code=code, label=label, help=help_line))


def _is_above(low: MetricValue, high: MetricValue) -> bool:
    if isinstance(low, str) and isinstance(high, str):
        return low > high
    return isinstance(low, int | float) and isinstance(high, int | float) and low > high


def _is_call(node: nodes.Expression, *names: str) -> bool:
    return isinstance(node, nodes.Call) and node.name.text in names


def _is_shortcut(node: nodes.Expression) -> bool:
    return _is_call(node, *SHORTCUTS)


def _takes_tolerance(claim: nodes.Measure | nodes.Rows) -> bool:
    if isinstance(claim, nodes.Rows) or not isinstance(claim.condition, nodes.Comparison):
        return False
    return claim.condition.op in ("==", "!=")


def datasets_of(checks: Iterable[nodes.Check]) -> tuple[str, ...]:
    """The datasets that a suite needs: those of its checks first, then those it looks up."""
    found: dict[str, None] = {}
    for check in checks:
        found.update((name.text, None) for name in check.datasets)
    for check in checks:
        for assertion in check.assertions:
            found.update((name, None) for name in _looked_up(assertion.claim))
    return tuple(found)


def _looked_up(claim: nodes.Measure | nodes.Rows) -> list[str]:
    if isinstance(claim, nodes.Rows):
        return [name for node in _members(claim.predicate) for name in _dataset_names(node.choices)]
    if isinstance(claim.condition, nodes.InValues):
        return _dataset_names(claim.condition.choices)
    return []


def _members(node: nodes.Expression) -> list[nodes.Member]:
    match node:
        case nodes.Junction(left=left, right=right):
            return _members(left) + _members(right)
        case nodes.Not(operand=operand):
            return _members(operand)
        case nodes.Member():
            return [node]
        case _:
            return []


def _dataset_names(choices: nodes.Expression) -> list[str]:
    parameters = choices.parameters if isinstance(choices, nodes.Call) else ()
    return [
        parameter.value.text
        for parameter in parameters
        if parameter.name.text == "dataset" and isinstance(parameter.value, nodes.Name)
    ]
