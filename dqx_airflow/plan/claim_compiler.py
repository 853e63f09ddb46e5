"""Compiles the claim of an assertion into a term of the plan and a condition on it: expressions
over metrics become terms, and calls become metric requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from fractions import Fraction
from functools import reduce
from typing import TypeAlias

from dqx_airflow.diagnostics.verdicts import format_value
from dqx_airflow.dql import nodes
from dqx_airflow.dql.checks.assertions import clock_of, compares_datasets, window_days, zone_of
from dqx_airflow.dql.constants import fold
from dqx_airflow.dql.printer import show, show_claim, show_condition, show_number, show_where
from dqx_airflow.dql.walk import joined
from dqx_airflow.metrics import calls
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.drift import DRIFT_SUMMARY, EARLIER_DAYS
from dqx_airflow.metrics.metric import Argument, ArgumentKind, Arguments
from dqx_airflow.metrics.spark_values import metric_value, spark_number
from dqx_airflow.metrics.types import TYPE_WORDS, canonical_type
from dqx_airflow.metrics.usual_limits import DEFAULT_DAYS, Kind
from dqx_airflow.plan.model import (
    Applied,
    Claimed,
    ConstantTerm,
    Grouping,
    KnownDay,
    Measured,
    MetricRequest,
    Now,
    PlannedAssertion,
    PlannedCondition,
    Term,
    requests_of,
    row_count,
)
from dqx_airflow.plan.predicates import settled
from dqx_airflow.values import DatasetRef
from dqx_airflow.values.exact import Number


@dataclass(frozen=True, slots=True)
class TermCompiler:
    """Compiles the expressions of one check.

    :param grouping: of the rows; None without groups.
    :param around: the filter around the metrics of the current assertion.
    """

    check: nodes.Check
    constants: nodes.Constants
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
        """The term of a call of a metric or a function, `lag` days before the date of the plan."""
        name = call.name.text
        if name in DRIFT_SUMMARY:
            return self._drift(call, lag)
        lag += self._days(call, "lag")
        if name in METRICS:
            metric = METRICS[name]
            pairs = zip(metric.arguments, call.arguments, strict=True)
            arguments = tuple(self.argument(kind, node) for kind, node in pairs)
            for parameter in metric.parameters:
                value = call.parameter(parameter.name)
                arguments += (None if value is None else self._own_parameter(parameter, value),)
            return self.measured(name, arguments, call, lag)
        if name in calls.AGES:
            column = column_name(call.arguments[0])
            newest: Term = self.measured("newest", (column,), call, lag)
            zone = ConstantTerm(self.refs[self._dataset(call)].time_zone or "UTC")
            since = Applied("midnight", (newest, zone)) if name == "data_lag" else newest
            return Applied("age", (Now(), since, zone))
        if name in calls.CHANGES:
            today = self.term(call.arguments[0], lag)
            base = self.term(call.arguments[0], lag + calls.CHANGES[name])
            change = Applied("/", (Applied("-", (today, base)), base))
            return Applied("abs", (change,))
        if name in calls.USUAL_LIMITS:
            return self._usual_limit(call, lag)
        if name in calls.WINDOWS:
            days = calls.window_lags(name, self._days(call, "n"), self._days(call, "step") or 1)
            return Applied(name, tuple(self.term(call.arguments[0], lag + day) for day in days))
        return Applied(name, tuple(self.term(argument, lag) for argument in call.arguments))

    def _drift(self, call: nodes.Call, lag: int) -> Term:
        """The summaries of the day and of the days that it is compared with."""
        metric = DRIFT_SUMMARY[call.name.text]
        column = column_name(call.arguments[0])
        days: Iterable[int] = (self._days(call, "lag"),)
        if n := self._days(call, EARLIER_DAYS):
            days = calls.window_lags(calls.USUAL, n, self._days(call, "step") or 1)
        summaries = (self.measured(metric, (column,), call, lag + day) for day in (0, *days))
        return Applied(call.name.text, tuple(summaries))

    def _usual_limit(self, call: nodes.Call, lag: int) -> Term:
        """The term of a usual limit. Its operands: the facts known about the day, the kind of
        metric, the country, and the values of the day and of the days before it, earliest first."""
        (measured,) = call.arguments
        today = self.term(measured, lag)
        dataset = next((request.dataset for request in requests_of(today)), "")
        holidays = call.parameter(calls.HOLIDAYS)
        country = holidays.value if isinstance(holidays, nodes.Text) else None
        days = self._days(call, "n") or DEFAULT_DAYS
        return Applied(
            call.name.text,
            (
                KnownDay(dataset),
                ConstantTerm((Kind.VOLUME if is_volume(measured) else Kind.OTHER).value),
                ConstantTerm(country),
                today,
                *(_days_before(today, day) for day in range(days, 0, -1)),
            ),
        )

    def _own_parameter(self, parameter: Argument, node: nodes.Expression) -> object:
        match parameter.kind:
            case ArgumentKind.TOLERANCE:
                return fold(node, self.constants)
            case ArgumentKind.STEP:
                literal = self.constants[node.text].value if isinstance(node, nodes.Name) else node
                step = fold(literal, {})
                match literal:
                    case nodes.Number(unit=nodes.Unit.DURATION):
                        return "seconds", step
                return step
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
        return one_or_more(tuple(map(column_name, items)))

    def measured(
        self, metric: str, arguments: Arguments, call: nodes.Call | None = None, lag: int = 0
    ) -> Measured:
        """The request of a call, about its own dataset or the dataset of the check."""
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


_VOLUMES = frozenset({"num_rows", "sum", "count", "null_count", "unique_count", "duplicate_count"})


def is_volume(measured: nodes.Expression) -> bool:
    """True for counts and sums; anything else, such as a share or a mean, has a level."""
    return isinstance(measured, nodes.Call) and measured.name.text in _VOLUMES


def _days_before(term: Term, days: int) -> Term:
    """The same term about data of some days before."""
    match term:
        case Measured(request=request) if request.date is not None:
            # A plan has thousands of these: `replace` would take half of its time.
            return Measured(
                MetricRequest(
                    request.dataset,
                    request.metric,
                    request.arguments,
                    request.date - timedelta(days=days),
                    request.where,
                    request.grouping,
                )
            )
        case Applied(function=function, terms=terms):
            before = Applied(function, tuple(_days_before(inner, days) for inner in terms))
            # As it was at this time of that day.
            is_age = function == "age"
            return Applied("-", (before, ConstantTerm(days * 86_400))) if is_age else before
    return term


def date_in(ref: DatasetRef, on: date) -> date | None:
    """The date for a dataset: None if it has no dates."""
    return on if ref.date_column else None


def column_name(node: nodes.Expression) -> str:
    """The identifier that refers to a column or a dataset."""
    assert isinstance(node, nodes.Name)
    return node.text


def one_or_more(names: tuple[str, ...]) -> object:
    """One column as its name, several as a tuple, so that equal requests are equal."""
    return names[0] if len(names) == 1 else names


_TermAndCondition: TypeAlias = tuple[Term, PlannedCondition]

_HOLDING = {
    nodes.Junctor.ANY: "at least one of {} assertions is true",
    nodes.Junctor.ALL: "all {} assertions are true",
    nodes.Junctor.IF: "the assertion is true",
}


@dataclass(frozen=True, slots=True)
class ClaimCompiler:
    """Compiles the claims of one check, with the context that its terms need."""

    terms: TermCompiler

    def compile(
        self, assertion: nodes.Assertion
    ) -> tuple[Term, PlannedCondition, nodes.Expression | nodes.Claim]:
        """The term, its condition, and the node that carets are drawn under."""
        claim = assertion.claim
        if isinstance(claim, nodes.Rows):
            return (*self._rows(claim), claim)
        if isinstance(claim, nodes.HasColumn):
            return (*self._column(claim), claim)
        if isinstance(claim, nodes.Composite):
            return (*self._composite(claim), claim)
        if isinstance(claim, nodes.RowsMatch):
            return (*self._rows_match(claim), claim)
        if isinstance(claim, nodes.ColumnsMatch):
            return (*self._columns_match(claim), claim)
        match claim.expression, claim.condition:
            case nodes.Call() as call, None:
                return (*self._shortcut(call), claim)
            case nodes.Call() as call, nodes.InValues(choices=nodes.Listing() as choices):
                return (*self._in_list(call, choices), claim)
            case nodes.Call() as call, nodes.InValues(choices=choices):
                member = nodes.Member(call.arguments[0], choices, span=call.span)
                return (*self._violating_rows(member, call), claim)
            case nodes.Call() as call, nodes.ByTime() as by:
                return (*self._by_time(call, by), claim)
            case nodes.Call() as call, nodes.MatchesShares() as matches:
                return (*self._matches(call, matches, assertion.tolerance), claim)
            case expression, nodes.WithinStddev() as within:
                return self.terms.term(expression), self._within(expression, within), expression
            case (
                expression,
                (
                    nodes.Comparison() | nodes.Between() | nodes.NotBetween() | nodes.Is()
                ) as condition,
            ):
                tolerance = None if assertion.tolerance is None else assertion.tolerance.value
                planned = self._condition(condition, tolerance)
                return self.terms.term(expression), planned, expression
        raise AssertionError(f"not an assertion: {claim}")

    def _rows(self, claim: nodes.Rows) -> _TermAndCondition:
        if claim.share is None:
            return self._violating_rows(claim.predicate, None)
        predicate = settled(claim.predicate, self.terms.constants)
        share = self.terms.measured("satisfying_share", (predicate,))
        bound = ConstantTerm(claim.share.value)
        return share, PlannedCondition(">=", (bound,), f">= {show_number(claim.share)} of rows")

    def _violating_rows(
        self, predicate: nodes.Expression, call: nodes.Call | None
    ) -> _TermAndCondition:
        arguments = (settled(predicate, self.terms.constants),)
        term = self.terms.measured("violating_rows", arguments, call)
        return term, PlannedCondition("==", (ConstantTerm(0),), "== 0 violating rows")

    def _in_list(self, call: nodes.Call, choices: nodes.Listing) -> _TermAndCondition:
        metric = METRICS["unlisted_common_values"]
        operands = (*call.arguments, choices)
        arguments = tuple(map(self.terms.argument, metric.arguments, operands))
        term = self.terms.measured(metric.name, arguments, call)
        return term, PlannedCondition("==", (ConstantTerm(0),), f"in {show(choices)}")

    def _column(self, claim: nodes.HasColumn) -> _TermAndCondition:
        term = self.terms.measured("column_type", (column_name(claim.column),))
        if claim.type is None:
            return term, PlannedCondition("is not None", (), "exists")
        if not claim.is_exact:
            wanted = canonical_type(claim.type.value, TYPE_WORDS)
            return term, PlannedCondition("fits", (ConstantTerm(wanted),), f"fits {wanted}")
        wanted = canonical_type(claim.type.value)
        return term, PlannedCondition("==", (ConstantTerm(wanted),), f"type {wanted}")

    def _composite(self, claim: nodes.Composite) -> _TermAndCondition:
        """The claims of a composite as one term and condition, each claim under the filters around
        it; profiles do not scale them."""
        parts = tuple(map(self._part, claim.parts))
        text = _HOLDING[claim.junctor].format(len(parts))
        return Claimed(claim.junctor, parts), PlannedCondition("hold", (), text)

    def _part(self, part: nodes.Assertion) -> PlannedAssertion:
        terms = replace(self.terms, around=joined(self.terms.around, part.where))
        term, condition, marked = ClaimCompiler(terms).compile(part)
        return PlannedAssertion(
            "",
            terms.check.name.value,
            datasets_measured(terms.check, term, condition),
            claim_text(marked) + show_where(part.where),
            term,
            condition,
            nodes.DEFAULT_SEVERITY,
        )

    def _rows_match(self, claim: nodes.RowsMatch) -> _TermAndCondition:
        keys = tuple(map(column_name, claim.keys.items))
        items = claim.compared.items if claim.compared is not None else ()
        compared = None if claim.compares_all else tuple(map(column_name, items))
        tolerance = None if claim.tolerance is None else claim.tolerance.value
        arguments = (keys, compared, column_name(claim.reference), tolerance)
        dataset = column_name(claim.dataset)
        allowed = claim.allowing
        if allowed is None:
            term = Measured(MetricRequest(dataset, "mismatch_count", arguments, None))
            return term, PlannedCondition("==", (ConstantTerm(0),), "== 0 rows that differ")
        text = f"<= {show_number(allowed)} of rows"
        term = Measured(MetricRequest(dataset, "mismatch_share", arguments, None))
        return term, PlannedCondition("<=", (ConstantTerm(allowed.value),), text)

    def _columns_match(self, claim: nodes.ColumnsMatch) -> _TermAndCondition:
        dataset = column_name(claim.dataset)
        arguments = (column_name(claim.reference),)
        term = Measured(MetricRequest(dataset, "column_mismatch_count", arguments, None))
        return term, PlannedCondition("==", (ConstantTerm(0),), "== 0 columns that differ")

    def _by_time(self, call: nodes.Call, by: nodes.ByTime) -> _TermAndCondition:
        newest = self.terms.measured("newest", (column_name(call.arguments[0]),), call)
        clock = clock_of(by)
        zone = zone_of(by)
        deadline = Applied("deadline", (newest, ConstantTerm(clock), ConstantTerm(zone)))
        return Now(), PlannedCondition("<=", (deadline,), f"by {clock} {zone}")

    def _matches(
        self, call: nodes.Call, matches: nodes.MatchesShares, tolerance: nodes.Number | None
    ) -> _TermAndCondition:
        shares = tuple(
            (_literal(value), metric_value(share.value)) for value, share in matches.shares
        )
        arguments = (column_name(call.arguments[0]), shares)
        term = self.terms.measured("share_difference", arguments, call)
        most = calls.DEFAULT_SHARE_TOLERANCE if tolerance is None else tolerance.value
        text = f"{show_condition(matches)} tolerance {format_value(most)}"
        return term, PlannedCondition("<=", (ConstantTerm(most),), text)

    def _within(self, metric: nodes.Expression, within: nodes.WithinStddev) -> PlannedCondition:
        """The condition that a metric is near the mean of the days before the target date."""
        days = window_days(within)
        window = tuple(self.terms.term(metric, day) for day in range(1, days + 1))
        mean = Applied("mean", window)
        count = self.terms.term(within.count)
        reach = Applied("*", (count, Applied("sample_stddev", window)))
        low, high = Applied("-", (mean, reach)), Applied("+", (mean, reach))
        return PlannedCondition(
            "between", (low, high), f"within {show(within.count)} stddev of {days} days"
        )

    def _shortcut(self, call: nodes.Call) -> _TermAndCondition:
        """The term and the condition that a shortcut such as `unique(id)` stands for."""
        if call.name.text == "in_set":
            column, choices = call.arguments
            return self._violating_rows(nodes.Member(column, choices, span=call.span), call)
        columns = tuple(column_name(argument) for argument in call.arguments)

        def over_all(function: str, metric: str) -> Term:
            each: list[Term] = [self.terms.measured(metric, (name,), call) for name in columns]
            return reduce(lambda term, other: Applied(function, (term, other)), each)

        zero = (ConstantTerm(0),)
        match call.name.text:
            case "unique":
                term: Term = self.terms.measured("duplicate_count", (one_or_more(columns),), call)
                return term, PlannedCondition("==", zero, "== 0 duplicates")
            case "is_sorted":
                order = call.parameter("order_by")
                assert order is not None
                term = self.terms.measured("decrease_count", (*columns, column_name(order)), call)
                return term, PlannedCondition("==", zero, "== 0 decreases")
            case "not_null":
                return over_all("+", "null_count"), PlannedCondition("==", zero, "== 0 nulls")
            case "positive":
                return over_all("min", "minimum"), PlannedCondition(">", zero, "minimum > 0")
            case "non_negative":
                return over_all("min", "minimum"), PlannedCondition(">=", zero, "minimum >= 0")
            case _:
                return self.terms.measured("num_rows", (), call), PlannedCondition(">", zero, "> 0")

    def _condition(
        self,
        condition: nodes.Comparison | nodes.Between | nodes.NotBetween | nodes.Is,
        tolerance: Number | None,
    ) -> PlannedCondition:
        """The condition, with its bounds as terms and its text."""
        match condition:
            case nodes.Comparison(op=op, bound=bound):
                text = f"{op} {self._bound_text(bound)}"
                if tolerance is not None:
                    text += f" +/- {format_value(tolerance)}"
                return PlannedCondition(op, (self._bound(bound),), text, tolerance)
            case nodes.Between(low=low, high=high) as between:
                text = f"between {self._bound_text(low)} and {self._bound_text(high)}"
                if nodes.usual_of(between):
                    text = show_condition(between)
                return PlannedCondition("between", (self._bound(low), self._bound(high)), text)
            case nodes.NotBetween(low=low, high=high):
                text = f"not between {self._bound_text(low)} and {self._bound_text(high)}"
                return PlannedCondition("not between", (self._bound(low), self._bound(high)), text)
            case nodes.Is(keyword=nodes.Keyword.POSITIVE | nodes.Keyword.NEGATIVE as keyword):
                op = ">" if keyword is nodes.Keyword.POSITIVE else "<"
                return PlannedCondition(op, (ConstantTerm(0),), f"{op} 0")
            case nodes.Is(keyword=keyword):
                return PlannedCondition(f"is {keyword.value}", (), f"is {keyword.value}")

    def _bound(self, node: nodes.Expression) -> Term:
        if isinstance(node, nodes.Truth):
            return ConstantTerm(int(node.value))  # a metric over a boolean column yields 0 or 1
        if isinstance(node, nodes.Text | nodes.Day):
            return ConstantTerm(fold(node, {}))
        return self.terms.term(node)

    def _bound_text(self, node: nodes.Expression) -> str:
        """The bound as written, followed by its value if it is a name."""
        text = show(node)
        if isinstance(node, nodes.Name) and node.text in self.terms.constants:
            constant = self.terms.constants[node.text].value
            match constant:
                case nodes.Number(value=value, unit=nodes.Unit.PLAIN):
                    return f"{text} ({format_value(value)})"
                case _:
                    return f"{text} ({show(constant)})"
        return text


def claim_text(marked: nodes.Expression | nodes.Claim) -> str:
    """A claim as a verdict displays it, without its condition if that is displayed separately."""
    return show_claim(marked) if isinstance(marked, nodes.Claim) else show(marked)


def datasets_measured(
    check: nodes.Check, term: Term, condition: PlannedCondition
) -> tuple[str, ...]:
    """The datasets that a claim measures, in its order; if none, the first one of its check."""
    names = dict.fromkeys(
        name
        for part in (term, *condition.bounds)
        for request in requests_of(part)
        for name in request.datasets
    )
    return tuple(names) or (check.datasets[0].text,)


def _literal(node: nodes.Text | nodes.Number | nodes.Truth) -> object:
    value = node.value
    return spark_number(value) if isinstance(value, Fraction) else value
