"""Checks the claims of assertions, and determines their datasets."""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import time

from dqx_airflow.diagnostics.diagnostic import (
    Diagnostic,
    Related,
    define_constant,
    did_you_mean,
    nearest,
)
from dqx_airflow.diagnostics.verdicts import format_value
from dqx_airflow.dql import nodes
from dqx_airflow.dql.checks import expressions, for_each, row_predicates
from dqx_airflow.dql.checks.call_arguments import COLUMN, ArgumentChecker, takes_where
from dqx_airflow.dql.constants import fold
from dqx_airflow.dql.moments import check_bounds
from dqx_airflow.dql.printer import show
from dqx_airflow.dql.walk import calls_in, expressions_in, filters_over, simple_claims
from dqx_airflow.metrics import calls
from dqx_airflow.metrics.aliases import assertion_elsewhere
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.metric import Scan
from dqx_airflow.metrics.types import TYPE_NAMES, TYPE_WORDS, TypeTextError, canonical_type
from dqx_airflow.values import MetricValue, Span
from dqx_airflow.values.exact import NUMBERS, Number

MOST_VALUES = 10_000
"""The maximum number of metric values in one assertion: nested windows multiply."""


@dataclass(slots=True)
class ClaimChecker:
    """Collects the mistakes in the claims of one check. `used` collects the constants it meets."""

    datasets: tuple[nodes.Name, ...]
    constants: nodes.Constants
    report: Callable[[Diagnostic], None]
    used: set[str] = field(default_factory=set)
    arguments: ArgumentChecker = field(init=False)
    measures: expressions.MeasureChecker = field(init=False)

    def __post_init__(self) -> None:
        self.arguments = ArgumentChecker(self.datasets, self.constants, self.report, self.used)
        self.measures = expressions.MeasureChecker(self.arguments)

    def check_filter(self, where: nodes.Expression) -> None:
        """Checks a filter of a check, or of an assertion."""
        help_line = f"write it in a metric: num_rows(dataset {self.datasets[0].text}, where ...)"
        self.arguments.unambiguous(where.span, help_line)
        row_predicates.RowChecker(self.arguments).check_filter(where)

    def check(self, assertion: nodes.Assertion, around: nodes.Expression | None) -> None:
        """Checks the claim of an assertion, its filter, and its groups.

        :param around: the valid filter of its check.
        """
        if isinstance(assertion.claim, nodes.Composite):
            self._check_composite(assertion, around)
            return
        self._check_claim(assertion.claim, assertion.tolerance)
        if assertion.where is not None:
            self.check_filter(assertion.where)
            self._check_rows_under(assertion.claim, assertion.where)
        elif around is not None:
            self._check_rows_under(assertion.claim, around)
        if assertion.for_each is not None:
            for_each.GroupChecker(self.arguments).check(assertion.for_each, assertion.claim)

    def _check_composite(self, assertion: nodes.Assertion, around: nodes.Expression | None) -> None:
        assert isinstance(assertion.claim, nodes.Composite)
        if assertion.tolerance is not None:
            message = "a tolerance needs `==` or `!=`"
            help_line = "write it after one of the assertions in it"
            self._error("E103", message, assertion.tolerance.span, help_line)
        if assertion.where is not None:
            self.check_filter(assertion.where)
        if assertion.for_each is not None:
            for_each.GroupChecker(self.arguments).check(assertion.for_each, assertion.claim)
        for part in assertion.claim.parts:
            for repeated in part.repeated:
                self._error("E013", "duplicate modifier", repeated, "remove one of them")
            self.check(part, assertion.where or around)

    def _check_rows_under(self, claim: nodes.Claim, where: nodes.Expression) -> None:
        """Checks that a claim under a filter is about rows."""
        if isinstance(claim, nodes.HasColumn):
            message = "a column has the same type in all rows, so a filter has no effect"
            self._without_rows(message, claim.span, where)
        if isinstance(claim, nodes.RowsMatch | nodes.ColumnsMatch):
            message = "two datasets are compared as a whole, so a filter has no effect"
            self._without_rows(message, claim.span, where)
        for call in calls_in(claim):
            name = call.name.text
            if name in METRICS and not takes_where(name):
                self._without_rows(f"`{name}` takes no filter", call.span, where)

    def _without_rows(self, message: str, span: Span, where: nodes.Expression) -> None:
        related = (Related(where.span, "the filter around it"),)
        help_line = "move the assertion out of the filter"
        diagnostic = Diagnostic(message, span, code="E121", related=related, help=help_line)
        self.report(diagnostic)

    def _check_claim(self, claim: nodes.Claim, tolerance: nodes.Number | None) -> None:
        match claim:
            case nodes.Rows():
                row_predicates.RowChecker(self.arguments).check(claim)
            case nodes.HasColumn():
                self._check_column(claim)
            case nodes.RowsMatch():
                self._check_rows_match(claim)
            case nodes.ColumnsMatch(dataset=dataset, reference=reference):
                self._two_datasets(dataset, reference)
            case nodes.Measure(expression=expression, condition=nodes.InValues() as condition):
                self._check_in_values(expression, condition)
            case nodes.Measure(expression=expression, condition=nodes.ByTime() as condition):
                self._check_by_time(expression, condition)
            case nodes.Measure(expression=expression, condition=nodes.MatchesShares() as condition):
                self._check_shares(expression, condition)
            case nodes.Measure(expression=nodes.Call(name=name)) if name.text in calls.SHORTCUTS:
                self._check_shortcut(claim)
            case nodes.Measure(expression=expression):
                self.measures.check(expression)
                self._check_condition(claim)
                self._check_demand(claim)
        if tolerance is not None and not _takes_tolerance(claim):
            message = "a tolerance needs `==` or `!=`"
            help_line = "remove it"
            if isinstance(claim, nodes.RowsMatch):
                message = "the tolerance does not apply to a column"
                help_line = "write comparing [column] tolerance 0.01, before `allowing`"
            self._error("E103", message, tolerance.span, help_line)

    # Conditions

    def _check_condition(self, claim: nodes.Measure) -> None:
        for no_moment in check_bounds(nodes.bounds_of(claim.condition), self.constants):
            self.report(no_moment)
        match claim.condition:
            case None if isinstance(claim.expression, nodes.Predicate):
                pass  # a predicate in place of a metric, which was reported before
            case None:
                call = claim.expression
                if not isinstance(call, nodes.Call) or not assertion_elsewhere(call.name.text):
                    message = "this assertion has no condition"
                    self._error("E108", message, claim.span, "add one, such as `> 0`")
            case nodes.Comparison(bound=bound):
                self._bound(bound)
            case nodes.Between(low=nodes.Call() as low, high=high) if low == high:
                help_line = f"write within usual({show(claim.expression)})"
                message = f"nothing is within {low.name.text}(...)"
                self._error("E101", message, low.name.span, help_line)
            case nodes.Between() as between if usual := nodes.usual_of(between):
                self._bound(replace(usual, name=replace(usual.name, text=calls.USUAL_LIMITS[0])))
            case nodes.Between() | nodes.NotBetween() as between:
                self._check_range(between)
            case nodes.WithinStddev(count=count, days=days):
                self.measures.check(count)
                self.measures.on_other_dates(claim.expression)
                number = fold(count, self.constants)
                if isinstance(number, NUMBERS) and number <= 0:
                    message = "the number of standard deviations must be above 0"
                    self._error("E109", message, count.span, "write within 3 stddev")
                if days is not None and not (days.value % 86400 == 0 and 2 <= _days(days) <= 3660):
                    message = "the window must be a whole number of days from 2 to 3660"
                    self._error("E109", message, days.span, "write of 30 days")

    def _check_range(self, between: nodes.Between | nodes.NotBetween) -> None:
        low, high = between.low, between.high
        self._bound(low)
        self._bound(high)
        bottom = fold(low, self.constants)
        top = fold(high, self.constants)
        if _is_above(bottom, top):
            first, second = format_value(bottom), format_value(top)
            message = f"no value is between {first} and {second}"
            negation = "not " if isinstance(between, nodes.NotBetween) else ""
            help_line = f"write {negation}between {second} and {first}"
            self._error("E104", message, between.span, help_line)

    def _bound(self, node: nodes.Expression) -> None:
        match node:
            case nodes.Text() | nodes.Day() | nodes.Truth():
                pass
            case nodes.Name(text=name) if name not in self.constants:
                help_line = did_you_mean(name, self.constants) or define_constant(name)
                self._error("E003", f"unknown constant '{name}'", node.span, help_line)
            case _:
                self.measures.check(node)

    def _check_demand(self, claim: nodes.Measure) -> None:
        demand = self.measures.demand(claim.expression)
        if isinstance(claim.condition, nodes.WithinStddev):
            demand *= window_days(claim.condition)
        if demand > MOST_VALUES:
            message = f"this requests {demand} metric values, at most {MOST_VALUES} are allowed"
            self._error("E014", message, claim.expression.span, "shorten the windows")

    # Claims with a form of their own

    def _check_shortcut(self, claim: nodes.Measure) -> None:
        call = claim.expression
        assert isinstance(call, nodes.Call)
        name = call.name.text
        if claim.condition is not None:
            message = f"`{name}` is a complete assertion and takes no condition"
            self._error(
                "E101", message, claim.condition.span, f"it is short for {calls.SHORTCUTS[name]}"
            )
        parameters = METRICS["decrease_count"].parameters if name == "is_sorted" else ()
        self.arguments.parameters(call, ("dataset", "where"), parameters)
        self.arguments.required(call, parameters, "is_sorted(column, order_by other)")
        self.arguments.one_dataset(call)
        self.measures.filter(call)
        if name == "is_sorted":
            if self.arguments.count(call, 1, 1, "is_sorted(column, order_by other)"):
                self.arguments.check(COLUMN, call.arguments[0])
        elif name == "in_set":
            if self.arguments.count(call, 2, 2, 'in_set(column, ["A", "B"])'):
                self.arguments.check(COLUMN, call.arguments[0])
                self.arguments.choices(call.arguments[1])
        elif name == "not_empty":
            self.arguments.count(call, 0, 0, "not_empty()")
        elif self.arguments.count(call, 1, None, f"{name}(column)"):
            for argument in call.arguments:
                self.arguments.check(COLUMN, argument, name)

    def _check_in_values(self, subject: nodes.Expression, condition: nodes.InValues) -> None:
        if isinstance(condition.choices, nodes.Listing):
            self._check_in_list(subject, condition.choices)
            return
        if self._is_call_of(subject, "values", "in", "write values(a) in values(b, dataset d)"):
            self.measures.column_call(subject, "values(column)")  # type: ignore[arg-type]
            self.arguments.values_of_other(condition.choices)

    def _check_in_list(self, subject: nodes.Expression, choices: nodes.Listing) -> None:
        self.arguments.choices(choices)
        written = expressions.WITH_CONDITION[calls.MOST_COMMON]
        match subject:
            case nodes.Call(name=nodes.Name(text="mode"), arguments=(nodes.Name() as column, *_)):
                written = f"{calls.MOST_COMMON}({show(column)}, 1) in {show(choices)}"
            case nodes.Call(name=nodes.Name(text="values"), arguments=(nodes.Name() as column,)):
                written = f"each row: {show(column)} in {show(choices)}"
            case nodes.Name():
                written = f"each row: {show(subject)} in {show(choices)}"
        help_line = f"write {written}"
        if not self._is_call_of(subject, calls.MOST_COMMON, "in", help_line):
            return
        assert isinstance(subject, nodes.Call)
        if self.arguments.count(subject, 2, 2, f"{calls.MOST_COMMON}(column, 3)"):
            wanted = METRICS["unlisted_common_values"].arguments
            for argument, node in zip(wanted, subject.arguments, strict=False):
                self.arguments.check(argument, node)
        self.arguments.parameters(subject, ("dataset", "where"))
        self.arguments.one_dataset(subject)
        self.measures.filter(subject)

    def _check_by_time(self, subject: nodes.Expression, condition: nodes.ByTime) -> None:
        if self._is_call_of(
            subject, calls.TIMELINESS, "by", f"write {calls.TIMELINESS}(column) by 06:00 UTC"
        ):
            self.measures.column_call(subject, f"{calls.TIMELINESS}(column)")  # type: ignore[arg-type]
        try:
            time.fromisoformat(clock_of(condition))
        except ValueError:
            message = f"'{condition.time.value}' is not a time of day"
            self._error("E301", message, condition.time.span, "write 06:00, up to 23:59")
        zone = zone_of(condition)
        if zone != "UTC" and not _is_zone(zone):
            assert condition.zone is not None
            near = nearest(zone, ("UTC", *zoneinfo.available_timezones()))
            help_line = f'did you mean "{near}"?' if near else 'write UTC, or "Europe/Berlin"'
            self._error("E301", f"unknown time zone '{zone}'", condition.zone.span, help_line)

    def _check_shares(self, subject: nodes.Expression, condition: nodes.MatchesShares) -> None:
        example = f'write {calls.DISTRIBUTION}(column) matches {{"A": 50%, "B": 50%}}'
        if self._is_call_of(subject, calls.DISTRIBUTION, "matches", example):
            self.measures.column_call(subject, f"{calls.DISTRIBUTION}(column)")  # type: ignore[arg-type]
        seen: set[tuple[type, MetricValue]] = set()
        total: Number = 0
        for value, share in condition.shares:
            key = (type(value), value.value)  # 1 is not true
            if key in seen:
                message = f"{format_value(value.value)} is listed twice"
                self._error("E013", message, value.span, "remove one of them")
            seen.add(key)
            total += share.value
            if share.value > 1:
                self._error("E109", "a share cannot exceed 100%", share.span)
        if total > 1 and all(share.value <= 1 for _, share in condition.shares):
            message = f"the shares add up to {float(total) * 100:.6g}%, more than 100%"
            help_line = "the remainder to 100% is the share of all other values"
            self._error("E109", message, condition.span, help_line)

    def _is_call_of(
        self, subject: nodes.Expression, name: str, keyword: str, help_line: str
    ) -> bool:
        if isinstance(subject, nodes.Call) and subject.name.text == name:
            return True
        arguments = "column, 3" if name == calls.MOST_COMMON else "column"
        message = f"`{keyword}` only works with `{name}({arguments})`"
        self._error("E101", message, subject.span, help_line)
        return False

    def _check_column(self, claim: nodes.HasColumn) -> None:
        self.arguments.unambiguous(claim.span, "move the assertion to a check on one dataset")
        self.arguments.check(COLUMN, claim.column)
        if claim.type is None:
            return
        words = () if claim.is_exact else TYPE_WORDS
        try:
            canonical_type(claim.type.value, words)
        except TypeTextError as error:
            hint = did_you_mean(error.text, (*words, *TYPE_NAMES))
            message = f"'{claim.type.value}' is not a Spark type"
            self._error("E114", message, claim.type.span, hint)

    def _check_rows_match(self, claim: nodes.RowsMatch) -> None:
        self._two_datasets(claim.dataset, claim.reference)
        seen: set[str] = set()
        for column in (*claim.keys.items, *(claim.compared.items if claim.compared else ())):
            self.arguments.check(COLUMN, column)
            if isinstance(column, nodes.Name) and column.text in seen:
                message = f"'{column.text}' is listed twice"
                self._error("E130", message, column.span, "remove it: key columns always match")
            elif isinstance(column, nodes.Name):
                seen.add(column.text)
        tolerance = claim.tolerance
        allowing = claim.allowing
        if tolerance is not None and claim.compared is None and not claim.compares_all:
            message = "the tolerance does not apply to a column"
            self._error("E130", message, tolerance.span, "write comparing [column] tolerance 0.01")
        if allowing is not None and allowing.value >= 1:
            message = "this can never fail: all rows may differ"
            self._error("E109", message, allowing.span, "write a share below 100%")

    def _two_datasets(self, dataset: nodes.Expression, reference: nodes.Expression) -> None:
        assert isinstance(dataset, nodes.Name)
        assert isinstance(reference, nodes.Name)
        self.arguments.known_dataset(dataset)
        if dataset.text == reference.text:
            message = f"'{dataset.text}' is compared with itself"
            self._error("E130", message, reference.span, "name another dataset")

    def _error(self, code: str, message: str, span: Span, help_line: str | None = None) -> None:
        self.arguments.error(code, message, span, help_line)


def clock_of(condition: nodes.ByTime) -> str:
    """The time of day as `06:00`, with a two-digit hour."""
    return condition.time.value.rjust(len("06:00"), "0")


def zone_of(condition: nodes.ByTime) -> str:
    match condition.zone:
        case None:
            return "UTC"
        case nodes.Name(text=name) | nodes.Text(value=name):
            return name


def window_days(condition: nodes.WithinStddev) -> int:
    """The number of days before the target date that are read."""
    return calls.DEFAULT_STDDEV_DAYS if condition.days is None else _days(condition.days)


def _days(duration: nodes.Number) -> int:
    return int(duration.value // 86400)


def _is_zone(name: str) -> bool:
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _is_above(low: MetricValue, high: MetricValue) -> bool:
    if isinstance(low, str) and isinstance(high, str):
        return low > high
    return isinstance(low, NUMBERS) and isinstance(high, NUMBERS) and low > high


def _takes_tolerance(claim: nodes.Claim) -> bool:
    """True for `==`, `!=`, and `matches`, which is an equality of shares."""
    match claim:
        case nodes.Measure(condition=nodes.Comparison(op=op)):
            return op in ("==", "!=")
        case nodes.Measure(condition=nodes.MatchesShares()):
            return True
        case _:
            return False


def datasets_of(checks: Sequence[nodes.Check]) -> tuple[str, ...]:
    """The datasets that a suite needs: first the ones of its checks, then the ones of lookups."""
    names = dict.fromkeys(name.text for check in checks for name in check.datasets)
    for check in checks:
        for assertion in check.assertions:
            predicates = list(filters_over(check, assertion))
            for claim in simple_claims(assertion.claim):
                match claim:
                    case nodes.Rows(predicate=predicate):
                        predicates.append(predicate)
                    case nodes.Measure(condition=nodes.InValues(choices=choices)):
                        names.update(dict.fromkeys(_dataset_names(choices)))
                names.update(dict.fromkeys(_compared_with(claim)))
            for predicate in predicates:
                for member in members_in(predicate):
                    names.update(dict.fromkeys(_dataset_names(member.choices)))
    return tuple(names)


def datasets_judged(checks: Sequence[nodes.Check]) -> frozenset[str]:
    """The datasets that an assertion of the checks may be about. The others of `datasets_of` only
    serve for lookups."""
    of_checks = {name.text for check in checks for name in check.datasets}
    compared = {
        name
        for check in checks
        for assertion in check.assertions
        for claim in simple_claims(assertion.claim)
        for name in _compared_with(claim)
    }
    return frozenset(of_checks | compared)


def _compared_with(claim: nodes.Claim) -> Iterator[str]:
    """The datasets with which a claim compares the datasets of its check."""
    match claim:
        case nodes.RowsMatch(reference=nodes.Name(text=name)):
            yield name
        case nodes.ColumnsMatch(reference=nodes.Name(text=name)):
            yield name
        case nodes.Measure():
            for call in filter(compares_datasets, calls_in(claim)):
                yield from _dataset_names(call)


def compares_datasets(call: nodes.Call) -> bool:
    """True for a metric of two datasets, whose parameter `dataset` is the one to compare with."""
    metric = METRICS.get(call.name.text)
    return metric is not None and metric.scan is Scan.MATCH


def members_in(node: nodes.Expression) -> list[nodes.Member]:
    """The membership tests in a predicate."""
    return [part for part in expressions_in(node) if isinstance(part, nodes.Member)]


def _dataset_names(choices: nodes.Expression) -> list[str]:
    named = choices.parameter("dataset") if isinstance(choices, nodes.Call) else None
    return [named.text] if isinstance(named, nodes.Name) else []
