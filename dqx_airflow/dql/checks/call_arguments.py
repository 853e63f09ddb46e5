"""Checks the arguments of calls: their number, names, types and filters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

from dqx_airflow.diagnostics.diagnostic import Diagnostic, did_you_mean, nearest
from dqx_airflow.diagnostics.verdicts import format_value
from dqx_airflow.dql import nodes
from dqx_airflow.dql.constants import fold
from dqx_airflow.dql.printer import show, show_name
from dqx_airflow.errors import RequestError
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.calls import (
    AGES,
    DISTRIBUTION,
    HOLIDAYS,
    MOST_COMMON,
    SHORTCUTS,
    TIMELINESS,
)
from dqx_airflow.metrics.drift import DRIFT, EARLIER_DAYS
from dqx_airflow.metrics.metric import Argument, ArgumentKind, Scan
from dqx_airflow.metrics.row_functions import QUANTIFIERS, ROW_FUNCTIONS
from dqx_airflow.metrics.usual_limits import holidays_of
from dqx_airflow.values import MetricValue, Span
from dqx_airflow.values.exact import NUMBERS

if TYPE_CHECKING:
    pass

_OF_ROWS = frozenset((*AGES, *DRIFT, *SHORTCUTS, DISTRIBUTION, MOST_COMMON, TIMELINESS, "values"))
"""Calls other than metrics that select rows."""


def takes_where(name: str) -> bool:
    """True for a call that measures rows, and so can measure some of them."""
    return METRICS[name].takes_where if name in METRICS else name in _OF_ROWS


def hint_without_where(name: str) -> str:
    """The hint for a filter in a call that takes none."""
    if name == "sql":
        return "write it in the SQL, as in sum(amount) FILTER (WHERE status = 'paid')"
    if name == "query":
        return "write it in the SQL, as in SELECT count(*) FROM orders WHERE status = 'paid'"
    if name in METRICS and METRICS[name].scan is Scan.MATCH:
        return "set a filter on each dataset"
    if name in METRICS and METRICS[name].scan is not Scan.FLAT:
        return "remove it: the result does not depend on the rows"
    if name in ROW_FUNCTIONS or name in QUANTIFIERS:
        return "write it after the assertion"
    return f'write it in the metric: {name}(average(price, where status == "paid"))'


def _one_column_each(call: str, columns: Iterable[nodes.Expression]) -> str:
    """The hint for a list where one column is expected: a call for each column."""
    listed = ", ".join(map(show, columns))
    if call == "unique":
        return f"write duplicate_count([{listed}]) == 0"
    if call in SHORTCUTS:
        return f"write {call}({listed}), without brackets"
    return "write an assertion for each column"


def _as_written(call: nodes.Call, form: str | None = None) -> str | None:
    """The hint with the form of a call; None if that is unknown."""
    if (metric := METRICS.get(call.name.text)) is not None:
        form = metric.signature
    return f"write {form}" if form else None


COLUMN = Argument("column", ArgumentKind.COLUMN)
_OF_COLUMNS = (ArgumentKind.COLUMN, ArgumentKind.COLUMNS, ArgumentKind.NAMES)


@dataclass(slots=True)
class ArgumentChecker:
    """Checks calls in one check of a suite. `used` collects the constants it meets."""

    datasets: tuple[nodes.Name, ...]
    constants: nodes.Constants
    report: Callable[[Diagnostic], None]
    used: set[str] = field(default_factory=set)

    def error(
        self, code: str, message: str, span: Span, help_line: str | None = None, *, label: str = ""
    ) -> None:
        self.report(Diagnostic(message, span, code=code, label=label, help=help_line))

    def count(
        self, call: nodes.Call, fewest: int, most: int | None, form: str | None = None
    ) -> bool:
        """False if the call has too few or too many arguments.

        :param form: how to write the call; by default, the form of the metric.
        """
        given = len(call.arguments)
        if given >= fewest and (most is None or given <= most):
            return True
        if self._signed_parameter(call):
            return False
        name = call.name.text
        wanted = str(fewest) if fewest == most else f"{fewest} or more"
        plural = "argument" if wanted == "1" else "arguments"
        message = f"{name} takes {wanted} {plural}, not {given}"
        self.error("E101", message, call.span, _as_written(call, form))
        return False

    def _signed_parameter(self, call: nodes.Call) -> bool:
        """True if an argument is a parameter with a sign, `lag -1`, which reads as a difference."""
        for node in call.arguments:
            match node:
                case nodes.Arithmetic(left=nodes.Name(text="lag" | "n" | "step" as name)):
                    message = f"'{name}' takes a whole number of days"
                    self.error("E101", message, node.span, f"write {name} 1")
                    return True
        return False

    def check(self, argument: Argument, node: nodes.Expression, call: str = "") -> None:
        """Checks that `node` is what the argument of a call requires."""
        match argument.kind, node:
            case ArgumentKind.COLUMN | ArgumentKind.COLUMNS | ArgumentKind.NAMES, nodes.Name():
                pass
            case ArgumentKind.COLUMNS | ArgumentKind.NAMES, nodes.Listing(items=items) if items:
                for item in items:
                    if not isinstance(item, nodes.Name):
                        self.error("E101", "this is not a column", item.span)
            case ArgumentKind.LITERALS, nodes.Text() | nodes.Number() | nodes.Truth():
                pass
            case ArgumentKind.LITERALS, nodes.Name(text=name) if name in self.constants:
                self.used.add(name)
            case ArgumentKind.LITERALS, nodes.Listing():
                self.choices(node)
            case ArgumentKind.COUNT, _:
                self._count(node)
            case ArgumentKind.SHARE, _:
                self._share(node)
            case ArgumentKind.SQL, nodes.Text():
                pass  # its content is checked by `check_sql`
            case _:
                self._wrong_kind(argument, node, call)

    def _share(self, node: nodes.Expression) -> None:
        share = self._constant_value(node)
        if not isinstance(share, NUMBERS) or not 0 <= share <= 1:
            is_plain = not (isinstance(node, nodes.Number) and node.unit is nodes.Unit.PERCENT)
            is_percent = is_plain and isinstance(share, NUMBERS) and 1 < share <= 100
            help_line = f"write {format_value(share)}%" if is_percent else None
            self.error("E101", f"expected {ArgumentKind.SHARE.value}", node.span, help_line)

    def _count(self, node: nodes.Expression) -> None:
        count = self._constant_value(node)
        if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= 1000:
            self.error("E101", f"expected {ArgumentKind.COUNT.value}", node.span)

    def _constant_value(self, node: nodes.Expression) -> MetricValue:
        """The value of a constant expression; the constant that it may name is used."""
        if isinstance(node, nodes.Name):
            self.used.add(node.text)
        return fold(node, self.constants)

    def _wrong_kind(self, argument: Argument, node: nodes.Expression, call: str) -> None:
        help_line = None
        match argument.kind, node:
            case ArgumentKind.COLUMN, nodes.Listing(items=items) if items:
                help_line = _one_column_each(call, items)
            case ArgumentKind.LITERALS, nodes.Name(text=name):
                help_line = f'write strings in quotes: "{name}"'
            case kind, nodes.Text() if kind in _OF_COLUMNS:
                help_line = "write columns without quotes, or in backticks"
            case kind, nodes.Truth() | nodes.Null() if kind in _OF_COLUMNS:
                help_line = f"for a column of this name, write backticks: `{show(node)}`"
        self.error("E101", f"expected {argument.kind.value}", node.span, help_line)

    # Parameters

    def no_parameters(self, call: nodes.Call) -> None:
        for parameter in call.parameters:
            if parameter.name.text == "where":
                self._no_filter(call, parameter)
                continue
            message = f"{call.name.text} has no parameter '{parameter.name.text}'"
            self.error("E101", message, parameter.span)

    def _no_filter(self, call: nodes.Call, parameter: nodes.Parameter) -> None:
        name = call.name.text
        self.error("E121", f"`{name}` takes no filter", parameter.span, hint_without_where(name))

    def parameters(
        self, call: nodes.Call, allowed: tuple[str, ...], of_metric: tuple[Argument, ...] = ()
    ) -> None:
        """Checks `lag`, `n`, `dataset` and `where` where they are allowed, and the parameters of
        the metric. The predicate of a filter is checked elsewhere."""
        seen: set[str] = set()
        names = (*allowed, *(argument.name for argument in of_metric))
        for parameter in call.parameters:
            name = parameter.name.text
            if name == "where" and name not in names:
                self._no_filter(call, parameter)
            elif name not in names:
                message = f"{call.name.text} has no parameter '{name}'"
                self.error("E101", message, parameter.name.span, did_you_mean(name, names))
            elif name in seen:
                self.error("E101", f"duplicate parameter '{name}'", parameter.span)
            elif name == "dataset" and name in allowed:
                self._dataset(parameter)
            elif name == "where":
                pass
            elif name == HOLIDAYS:
                self._country(parameter)
            elif name in allowed:
                self._days(parameter, fewest=1 if name in ("n", "step", EARLIER_DAYS) else 0)
            else:
                self._own(
                    parameter, next(argument for argument in of_metric if argument.name == name)
                )
            seen.add(name)

    def _own(self, parameter: nodes.Parameter, argument: Argument) -> None:
        match argument.kind:
            case ArgumentKind.DATASET:
                pass  # checked by `other_dataset`
            case ArgumentKind.TOLERANCE | ArgumentKind.STEP as kind:
                is_step = kind is ArgumentKind.STEP
                value = self._constant_value(parameter.value)
                if not isinstance(value, NUMBERS) or value < 0 or (is_step and value == 0):
                    example = "step 10, or step 1 hour" if is_step else "tolerance 0.01"
                    message = f"expected {kind.value}"
                    self.error("E101", message, parameter.value.span, f"write {example}")
            case _:
                self.check(COLUMN, parameter.value)

    def required(self, call: nodes.Call, of_metric: tuple[Argument, ...], form: str = "") -> None:
        """Checks the required parameters of a call; `form` as for `count`."""
        for argument in of_metric:
            if argument.is_required and call.parameter(argument.name) is None:
                message = f"{call.name.text} needs `{argument.name}`"
                self.error("E101", message, call.span, _as_written(call, form))

    def _days(self, parameter: nodes.Parameter, *, fewest: int) -> None:
        days = self._constant_value(parameter.value)
        if not isinstance(days, int) or not fewest <= days <= 3660:
            message = f"'{parameter.name.text}' takes a whole number of days"
            self.error("E101", message, parameter.value.span, f"from {fewest} to 3660")

    def _country(self, parameter: nodes.Parameter) -> None:
        value = parameter.value
        if not isinstance(value, nodes.Text):
            message = f"'{HOLIDAYS}' takes a country or region"
            self.error("E101", message, value.span, 'write holidays "US", or holidays "DE-BY"')
            return
        try:
            holidays_of(value.value, date(2024, 1, 1), date(2024, 1, 1))
        except RequestError as error:
            self.error("E101", error.problem, value.span, error.hint)

    def _dataset(self, parameter: nodes.Parameter) -> None:
        value = parameter.value
        if not isinstance(value, nodes.Name):
            self.error("E101", "'dataset' takes the name of a dataset", value.span)
        else:
            self.known_dataset(value)

    def known_dataset(self, name: nodes.Name) -> None:
        """Checks that the name is one of the datasets of this check."""
        known = [dataset.text for dataset in self.datasets]
        if name.text in known:
            return
        message = f"dataset '{name.text}' is not one of this check's datasets"
        near = nearest(name.text, known)
        added = f"add it: on {', '.join([*known, name.text])}"
        self.error("E009", message, name.span, f"did you mean '{near}'?" if near else added)

    def other_dataset(self, call: nodes.Call) -> None:
        """Checks a call that compares a dataset of the check with another one."""
        dataset = call.parameter("dataset")
        if dataset is None:
            message = f"{call.name.text} needs a dataset to compare with"
            # Soda and others count NULL with `missing_count`.
            help_line = f"{_as_written(call)}; null_count(column) counts NULL values"
            self.error("E101", message, call.span, help_line)
        elif not isinstance(dataset, nodes.Name):
            self.error("E101", "'dataset' takes the name of a dataset", dataset.span)
        else:
            self._base(dataset)

    def _base(self, other: nodes.Name) -> None:
        """Checks that a single dataset is compared with the other one."""
        rest = [dataset.text for dataset in self.datasets if dataset.text != other.text]
        if not rest:
            help_line = "name another dataset, or move the assertion to a check on another one"
            self.error("E130", f"'{other.text}' is compared with itself", other.span, help_line)
        elif len(rest) > 1:
            message = f"this check has several datasets to compare ({', '.join(rest)})"
            self.error("E009", message, other.span, "move the assertion to a check on one of them")

    def unambiguous(self, span: Span, help_line: str) -> None:
        """Checks that rows without a dataset of their own are in a check with a single dataset."""
        if len(self.datasets) > 1:
            names = ", ".join(dataset.text for dataset in self.datasets)
            self.error("E009", f"ambiguous dataset: this check has {names}", span, help_line)

    def one_dataset(self, call: nodes.Call) -> None:
        """Checks that a call without `dataset` is in a check with a single dataset."""
        if call.parameter("dataset") is not None:
            return
        if len(self.datasets) > 1:
            names = ", ".join(dataset.text for dataset in self.datasets)
            example = f"dataset {self.datasets[0].text}"
            message = f"this check has several datasets ({names}): choose one"
            self.error("E009", message, call.span, f"add `{example}` to the arguments")

    # Lists and values of other datasets

    def choices(self, node: nodes.Expression) -> None:
        """Checks that `node` is a list of literals."""
        if not isinstance(node, nodes.Listing) or not node.items:
            self.error("E101", 'expected a list of values such as ["A", "B"]', node.span)
            return
        for item in node.items:
            if isinstance(item, nodes.Name) and item.text in self.constants:
                self.used.add(item.text)
            elif isinstance(item, nodes.Name):
                help_line = (
                    "a list cannot contain null: in a predicate, add `or x is null`"
                    if is_null_word(item)
                    else f'write strings in quotes: "{item.text}"'
                )
                self.error("E003", f"unknown constant '{item.text}'", item.span, help_line)
            elif not isinstance(item, nodes.Text | nodes.Number | nodes.Day | nodes.Truth):
                self.error("E101", "expected a string, a number or a date", item.span)

    def values_of_other(self, node: nodes.Expression) -> None:
        """Checks `values(column, dataset other)`; the other dataset need not be listed after
        `on`."""
        if not isinstance(node, nodes.Call) or node.name.text != "values":
            message = "expected a list, or the values of a dataset"
            self.error("E101", message, node.span, "write values(column, dataset other)")
            return
        if self.count(node, 1, 1, "values(column, dataset other)"):
            self.check(COLUMN, node.arguments[0])
        match node.parameters:
            case (nodes.Parameter(name=nodes.Name(text="dataset"), value=nodes.Name()),):
                pass
            case _ if (where := node.where) is not None:
                message = "the values of another dataset cannot be filtered"
                other = node.parameter("dataset")
                name = show(other) if other is not None else "it"
                help_line = (
                    f"set the `filter` of dataset {name}: it selects the rows whose values are "
                    "known (a filter after the assertion selects the rows that are checked)"
                )
                self.error("E121", message, where.span, help_line)
            case _:
                message = "missing dataset for `values`"
                self.error("E101", message, node.span, "write values(column, dataset other)")


def is_null_word(node: nodes.Name) -> bool:
    """True for the word `null`; a column of that name needs backticks."""
    span = node.span
    is_bare = span.end_column - span.column == len(node.text)
    return is_bare and node.text.casefold() == "null"


def first_column(call: nodes.Call) -> str:
    """The column of a call, as written; "column" if it has none."""
    match call.arguments:
        case (nodes.Name(text=name), *_):
            return show_name(name)
        case _:
            return "column"
