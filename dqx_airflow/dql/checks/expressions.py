"""Checks predicates over rows (`each row: price > 0`), groups of rows, and shares of them; and
expressions over metrics: existing calls, defined constants, no columns.

Groups have columns, a list, and claims that have a value in each group. Profiles do not multiply a
share, a part of a whole: twice 50% is not 100%, so with a scaled share, half of the required rows
would be enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from dqx_airflow.diagnostics.diagnostic import define_constant, did_you_mean, nearest
from dqx_airflow.dql import nodes
from dqx_airflow.dql.checks import call_arguments
from dqx_airflow.dql.moments import check_beside_moments
from dqx_airflow.dql.printer import show, show_columns, show_name
from dqx_airflow.dql.satisfiability import Surroundings
from dqx_airflow.dql.walk import calls_in, expressions_in, fold, is_about_items
from dqx_airflow.metrics.aliases import function_elsewhere, measure_elsewhere, name_alone
from dqx_airflow.metrics.builtin import CALLABLE, METRICS
from dqx_airflow.metrics.derived import (
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
from dqx_airflow.metrics.metric import MetricUnit, Scan
from dqx_airflow.metrics.patterns.bounds import bounded, bounded_like
from dqx_airflow.metrics.patterns.syntax import ExplodingError, PatternError
from dqx_airflow.metrics.row_functions import QUANTIFIERS, ROW_FUNCTIONS
from dqx_airflow.metrics.text_formats import TEXT_FORMATS
from dqx_airflow.metrics.usual_limits import DEFAULT_DAYS
from dqx_airflow.values import MetricValue, Span

_SOUND_LIKE = re.compile(r"([^\\]|\\[%_\\])*\Z", re.DOTALL)
_OF_METRICS = {
    "positive": "write `> 0`",
    "negative": "write `< 0`",
    "None": "a value of a row `is null`",
}
_METRICS = frozenset((*METRICS, *CHANGES, *WINDOWS, *AGES, *DRIFT, *SHORTCUTS))
_VALUES = frozenset((*ROW_FUNCTIONS, *_METRICS))


@dataclass(slots=True)
class RowChecker:
    """Collects the mistakes in the predicates of one check."""

    arguments: call_arguments.ArgumentChecker

    def check_filter(self, where: nodes.Expression) -> None:
        """Checks a filter."""
        self._predicate(where)

    def check(self, claim: nodes.Rows) -> None:
        if claim.share is not None and not 0 < claim.share.value <= 1:
            message = "a share of rows must be above 0% and at most 100%"
            self.arguments.error("E109", message, claim.share.span)
        self.arguments.unambiguous(claim.span, "move the assertion to a check on one dataset")
        self._predicate(claim.predicate)

    def _predicate(self, node: nodes.Expression) -> None:
        match node:
            case nodes.Junction(left=left, right=right):
                self._predicate(left)
                self._predicate(right)
            case nodes.Not(operand=operand):
                self._predicate(operand)
            case nodes.Compare() | nodes.Within() | nodes.IsNull() | nodes.IsNan():
                operands = nodes.operands_of(node)
                for part in operands:
                    self._value(part)
                self._moments(operands)
            case nodes.Member(operand=operand, choices=choices):
                self._member(operand, choices)
            case nodes.Matches(operand=operand, pattern=pattern):
                self._value(operand)
                self._pattern(pattern)
            case nodes.Like(operand=operand, pattern=pattern):
                self._value(operand)
                self._like(pattern)
            case nodes.HasFormat(operand=operand, format=name):
                self._value(operand)
                self._format(name)
            case nodes.Quantified():
                self._quantified(node)
            case nodes.Call(name=name) if name.text not in _VALUES:
                self._call(node)
            case _:
                message = "expected a predicate: this is neither true nor false"
                help_line = "compare it, such as `price > 0`, or `flag == true`"
                self.arguments.error("E106", message, node.span, help_line)

    def _quantified(self, node: nodes.Quantified) -> None:
        self._value(node.array)
        self._predicate(node.predicate)
        if not is_about_items(node):
            message = "this does not use `item`, the item of the array"
            help_line = "write `item`, or `item.price` for one of its fields"
            self.arguments.error("E106", message, node.predicate.span, help_line)

    def _member(self, operand: nodes.Expression, choices: nodes.Expression) -> None:
        self._value(operand)
        if isinstance(choices, nodes.Listing):
            self.arguments.choices(choices)
            self._moments((operand, *choices.items))
        elif not isinstance(operand, nodes.Name):
            message = "only a column can be looked up in another dataset"
            self.arguments.error("E106", message, operand.span)
        else:
            self.arguments.values_of_other(choices)

    def _value(self, node: nodes.Expression) -> None:
        """Checks that `node` is a value of a single row."""
        match node:
            case nodes.Name(text=name):
                # In a row predicate a name is a column, unless a constant has that name.
                if name in self.arguments.constants:
                    self.arguments.used.add(name)
                elif call_arguments.is_null_word(node):
                    self._never_equal("null", node.span)
            case nodes.Number() | nodes.Text() | nodes.Day() | nodes.Truth() | nodes.Item():
                pass
            case nodes.Null():
                self._never_equal("None", node.span)
            case nodes.Negative(operand=operand):
                self._value(operand)
            case nodes.Arithmetic(left=left, right=right):
                self._value(left)
                self._value(right)
            case nodes.Call():
                self._call(node)
            case _:
                self.arguments.error("E106", "expected a value of the row", node.span)

    def _moments(self, operands: tuple[nodes.Expression, ...]) -> None:
        for mistake in check_beside_moments(operands, self.arguments.constants):
            self.arguments.report(mistake)

    def _never_equal(self, word: str, span: Span) -> None:
        message = f"nothing equals {word}, so this is never evaluated"
        self.arguments.error("E106", message, span, "write `is null` or `is not null`")

    def _call(self, call: nodes.Call) -> None:
        name = call.name
        function = ROW_FUNCTIONS.get(name.text)
        if function is not None:
            self.arguments.count(call, function.fewest, function.most)
            self.arguments.no_parameters(call)
            for argument in call.arguments:
                self._value(argument)
            if name.text == "coalesce":
                self._moments(call.arguments)
        elif name.text in _METRICS:
            message = f"`{name.text}` is a metric and has no value for a single row"
            help_line = "compare metrics outside `each row`"
            self.arguments.error("E106", message, name.span, help_line)
        elif name.text in QUANTIFIERS:
            self.arguments.count(call, 2, 2, f"{name.text}(tags, item is not null)")
            self.arguments.no_parameters(call)
        else:
            written = function_elsewhere(name.text, call_arguments.first_column(call))
            meant = did_you_mean(name.text, (*QUANTIFIERS, *ROW_FUNCTIONS))
            if written:
                near = name_alone(written, len(call.arguments))
                meant = f"did you mean '{near}'?" if near else f"write {written}"
            elif metric := measure_elsewhere(name.text, call_arguments.first_column(call)):
                meant = f"compare the metric outside `each row`: {metric}"
            self.arguments.error("E001", f"unknown function '{name.text}'", name.span, meant)

    def _pattern(self, pattern: nodes.Text) -> None:
        try:
            bounded(pattern.value)
        except PatternError as error:
            self._bad_pattern(error, pattern)

    def _bad_pattern(self, error: PatternError, pattern: nodes.Text) -> None:
        if isinstance(error, ExplodingError):
            message = f"unbounded regular expression: {error.problem}"
            self.arguments.error("E120", message, pattern.span, error.hint)
        else:
            message = f"bad regular expression: {error.problem}"
            self.arguments.error("E110", message, pattern.span, error.hint)

    def _like(self, pattern: nodes.Text) -> None:
        if not _SOUND_LIKE.match(pattern.value):
            message = "a backslash in a `like` pattern must precede `%`, `_` or a backslash"
            self.arguments.error("E110", message, pattern.span, "write `\\\\\\\\` for a backslash")
            return
        try:
            bounded_like(pattern.value)
        except PatternError as error:
            self._bad_pattern(error, pattern)

    def _format(self, name: nodes.Name) -> None:
        if name.text not in TEXT_FORMATS:
            near = did_you_mean(name.text, (*TEXT_FORMATS, "null", "nan"))
            help_line = _OF_METRICS.get(name.text, near)
            self.arguments.error("E113", f"unknown format '{name.text}'", name.span, help_line)


_COMPARED = "compare a metric of both: num_rows(dataset a) == num_rows(dataset b) for each ..."


@dataclass(slots=True)
class GroupChecker:
    """Collects the mistakes in the groups of the assertions of one check."""

    arguments: call_arguments.ArgumentChecker

    def check(self, for_each: nodes.ForEach, claim: nodes.Claim) -> None:
        columns: set[str] = set()
        for column in for_each.columns:
            self.arguments.check(call_arguments.COLUMN, column)
            if isinstance(column, nodes.Name):
                if column.text.lower() in columns:
                    message = f"'{column.text}' is listed twice"
                    self._error("E141", message, column.span, "remove one of them")
                columns.add(column.text.lower())
        share = for_each.share
        if share is not None and not 0 < share.value <= 1:
            message = "the share of the groups must be above 0% and at most 100%"
            self._error("E109", message, share)
        if for_each.groups is not None:
            self._listed(for_each.groups, for_each.columns)
        for message, span, help_line in _objections(claim):
            self._error("E140", message, span, help_line)
        if for_each.groups is None:
            self._blind(claim, for_each)

    def _listed(self, groups: nodes.Expression, columns: tuple[nodes.Expression, ...]) -> None:
        if not isinstance(groups, nodes.Listing) or not groups.items:
            message = 'expected a list of groups such as ["CH", "DE"]'
            self._error("E141", message, groups)
            return
        seen: set[tuple[tuple[type, MetricValue], ...]] = set()
        for group in groups.items:
            values = group.items if isinstance(group, nodes.Listing) else (group,)
            if len(values) != len(columns):
                names = ", ".join(map(show, columns))
                message = f"a group has {len(columns)} values here, one of each of: {names}"
                self._error("E141", message, group, "write groups like " + _example(len(columns)))
                continue
            for value in values:
                self._literal(value)
            key = tuple(map(self._key, values))
            if key in seen:
                self._error("E141", "this group is listed twice", group, "remove one of them")
            seen.add(key)

    def _literal(self, value: nodes.Expression) -> None:
        match value:
            case nodes.Name(text=name) if name in self.arguments.constants:
                self.arguments.used.add(name)
            case nodes.Name(text=name):
                help_line = f'write strings in quotes: "{name}"'
                self._error("E003", f"unknown constant '{name}'", value, help_line)
            case nodes.Text() | nodes.Number() | nodes.Truth() | nodes.Day() | nodes.Null():
                pass
            case _:
                self._error("E141", "expected a string, a number, a date or null", value)

    def _key(self, value: nodes.Expression) -> tuple[type, MetricValue]:
        folded = fold(value, self.arguments.constants)
        return type(folded) if isinstance(folded, bool | str) else int, folded

    def _blind(self, claim: nodes.Claim, for_each: nodes.ForEach) -> None:
        """Reports a claim that only groups without rows violate, which do not exist."""
        if _requires_rows_alone(claim, self.arguments.constants):
            columns = show_columns(for_each.columns)
            listed = ", ".join([_example(len(for_each.columns)), "..."])
            self.arguments.error(
                "W060",
                "this can never fail: only groups with rows are judged",
                for_each.span,
                f"list the groups, as in `{columns} in [{listed}]`, or compare with another day",
            )

    def _error(
        self, code: str, message: str, at: nodes.Expression | Span, help_line: str | None = None
    ) -> None:
        span = at if isinstance(at, Span) else at.span
        self.arguments.error(code, message, span, help_line)


def _example(columns: int) -> str:
    values = ", ".join(['"A"', '"B"', '"C"'][:columns])
    return f"({values})" if columns > 1 else values


def _objections(claim: nodes.Claim) -> Iterator[tuple[str, Span, str | None]]:
    """The parts of a claim that have no value in a group, with the reasons."""
    if isinstance(claim, nodes.HasColumn):
        yield "a column is the same in every group", claim.span, "remove `for each ...`"
        return
    if isinstance(claim, nodes.Composite):
        help_line = "write a separate assertion with `for each ...` for each claim"
        yield "several claims are judged together, for all rows", claim.span, help_line
        return
    if isinstance(claim, nodes.RowsMatch | nodes.ColumnsMatch):
        yield "two datasets are compared as a whole", claim.span, _COMPARED
        return
    for part in calls_in(claim):
        if part.name.text not in METRICS:
            continue
        metric = METRICS[part.name.text]
        name = f"`{metric.name}`"
        match metric.scan:
            case Scan.QUERY:
                help_line = "write GROUP BY in the query itself, or use `sql` or another metric"
                yield f"{name} cannot be computed for each group", part.span, help_line
            case Scan.MATCH:
                yield f"{name} compares two datasets as a whole", part.span, _COMPARED
            case Scan.SCHEMA | Scan.LOG:
                yield f"{name} is the same in every group", part.span, "remove `for each ...`"
            case _ if metric.is_of_texts:
                help_line = "assert it for all rows, without `for each ...`"
                yield f"{name} cannot be computed for each group", part.span, help_line


def _requires_rows_alone(claim: nodes.Claim, constants: nodes.Constants) -> bool:
    """True for `num_rows() > 0` and its equivalents, which hold for every existing group."""
    match claim:
        case nodes.Measure(expression=nodes.Call(name=nodes.Name(text="not_empty"))):
            return True
        case nodes.Measure(
            expression=nodes.Call(name=nodes.Name(text="num_rows"), parameters=()),
            condition=nodes.Comparison(op=op, bound=bound),
        ):
            return (op, fold(bound, constants)) in ((">", 0), (">=", 1), ("!=", 0))
        case _:
            return False


_SAME_KIND = frozenset({"abs", "min", "max", "coalesce", *WINDOWS})
"""Functions that turn shares into shares. A change, as from `day_over_day`, is no share."""


def is_about_share(claim: nodes.Claim, constants: nodes.Constants, dataset: str) -> bool:
    """True if a side of the comparison in an assertion is a share.

    Shares are `N% of rows`, a distribution, a metric that is a share, numbers of rows or values
    divided by others of the same dataset and date, and results of arithmetic between these and
    numbers; also a single metric in the unit of its column, or `sql` or `query`, if it is compared
    with a percentage.

    :param constants: the constants of the suite, evaluated.
    :param dataset: the default dataset of calls.
    """
    match claim:
        case nodes.Rows(share=share):
            return share is not None
        case nodes.RowsMatch(allowing=allowing):
            return allowing is not None
        case nodes.Composite():
            return True  # the result is whether claims hold, which cannot be multiplied
        case nodes.Measure(condition=nodes.MatchesShares()):
            return True
        case nodes.Measure(expression=expression, condition=condition):
            bounds = nodes.bounds_of(condition)
            surroundings = Surroundings({}, dataset)
            if any(_is_share(side, surroundings) for side in (expression, *bounds)):
                return True
            return _is_of_any_unit(expression) and any(
                _is_percentage(bound, constants) for bound in bounds
            )
        case _:
            return False


def _is_share(node: nodes.Expression, surroundings: Surroundings) -> bool:
    match node:
        case nodes.Call(name=name, arguments=arguments):
            if name.text in METRICS:
                return METRICS[name.text].unit is MetricUnit.SHARE
            return name.text in _SAME_KIND and any(
                _is_share(argument, surroundings) for argument in arguments
            )
        case nodes.Negative(operand=operand):
            return _is_share(operand, surroundings)
        case nodes.Arithmetic(op="/", left=left, right=right):
            if _is_share(left, surroundings):
                return not any(_calls_in(right))
            return _are_counts_of_same_rows(left, right, surroundings)
        case nodes.Arithmetic(op="*", left=left, right=right):
            sides = ((left, right), (right, left))
            return any(_is_share(a, surroundings) and not any(_calls_in(b)) for a, b in sides)
        case nodes.Arithmetic(left=left, right=right):
            return _is_share(left, surroundings) or _is_share(right, surroundings)
        case _:
            return False


def _are_counts_of_same_rows(
    part: nodes.Expression, whole: nodes.Expression, surroundings: Surroundings
) -> bool:
    """True if both count rows, or values in them, of one dataset on one date; only the numerator
    may have a filter of its own."""
    calls = [tuple(_calls_in(side)) for side in (part, whole)]
    if not calls[1] or any(not _is_count_of_rows(call) for side in calls for call in side):
        return False
    all_rows, *other_rows = (surroundings.rows_of(call) for call in calls[1])
    parts = [surroundings.rows_of(call) for call in calls[0]]
    are_whole = all(
        call.name.text == "num_rows" and rows == all_rows
        for call, rows in zip(calls[0], parts, strict=True)
    )
    if are_whole or any(other != all_rows for other in other_rows):
        return False  # rows per value are not a share
    return all(rows.are_among(all_rows) for rows in parts)


def _is_count_of_rows(call: nodes.Call) -> bool:
    metric = METRICS.get(call.name.text)
    return metric is not None and metric.unit.is_part_of_rows


def _calls_in(node: nodes.Expression) -> Iterator[nodes.Call]:
    """The outermost calls, including those within arithmetic functions."""
    match node:
        case nodes.Call(name=name, arguments=arguments) if name.text in _SAME_KIND:
            for argument in arguments:
                yield from _calls_in(argument)
        case nodes.Call():
            yield node
        case nodes.Negative(operand=operand):
            yield from _calls_in(operand)
        case nodes.Arithmetic(left=left, right=right):
            yield from _calls_in(left)
            yield from _calls_in(right)


def _is_of_any_unit(node: nodes.Expression) -> bool:
    """True for a single metric of unknown unit: it is a share if it is compared with one."""
    if not isinstance(node, nodes.Call) or node.name.text not in METRICS:
        return False
    return METRICS[node.name.text].unit in (MetricUnit.COLUMN, MetricUnit.UNKNOWN)


def _is_percentage(node: nodes.Expression, constants: nodes.Constants) -> bool:
    match node:
        case nodes.Number(unit=unit):
            return unit is nodes.Unit.PERCENT
        case nodes.Name(text=name) if name in constants:
            value = constants[name].value
            return isinstance(value, nodes.Number) and value.unit is nodes.Unit.PERCENT
        case _:
            return False


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
                call_arguments.check_sql(metric.name, text, self.arguments)
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
