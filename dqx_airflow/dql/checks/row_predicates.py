"""Checks predicates over rows, as in `each row: price > 0` and `where`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.dql import nodes
from dqx_airflow.dql.checks import call_arguments
from dqx_airflow.dql.moments import check_beside_moments
from dqx_airflow.dql.walk import is_about_items
from dqx_airflow.metrics.aliases import function_elsewhere, measure_elsewhere, name_alone
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.calls import AGES, CHANGES, SHORTCUTS, WINDOWS
from dqx_airflow.metrics.drift import DRIFT
from dqx_airflow.metrics.patterns.bounds import bounded, bounded_like
from dqx_airflow.metrics.patterns.syntax import ExplodingError, PatternError
from dqx_airflow.metrics.row_functions import QUANTIFIERS, ROW_FUNCTIONS
from dqx_airflow.metrics.text_formats import TEXT_FORMATS
from dqx_airflow.values import Span

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
