"""From a checked suite, the datasets of a gate and a date to the plan."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from fractions import Fraction
from types import MappingProxyType

from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.diagnostics.verdicts import format_value
from dqx_airflow.dql import nodes
from dqx_airflow.dql.check import IMPLICIT_CHECK
from dqx_airflow.dql.checks.assertions import (
    clock_of,
    compares_datasets,
    datasets_of,
    window_days,
    zone_of,
)
from dqx_airflow.dql.constants import fold, settle
from dqx_airflow.dql.filters import joined, simple_claims
from dqx_airflow.dql.printer import (
    show,
    show_claim,
    show_condition,
    show_for_each,
    show_number,
    show_where,
)
from dqx_airflow.exact import Number
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.derived import (
    AGES,
    CHANGES,
    DEFAULT_SHARE_TOLERANCE,
    WINDOWS,
)
from dqx_airflow.metrics.plain_values import plain, spark_number
from dqx_airflow.metrics.registry import Argument, ArgumentKind, Arguments, Scan
from dqx_airflow.metrics.type_compatibility import TYPE_WORDS
from dqx_airflow.metrics.types import canonical_type
from dqx_airflow.plan.groupings import columns_of, groupings_of, judged_groups
from dqx_airflow.plan.measured import reading_of
from dqx_airflow.plan.model import (
    Applied,
    Chosen,
    Claimed,
    Condition,
    Constant,
    Cost,
    Grouping,
    Measured,
    MetricRequest,
    Now,
    Plan,
    PlannedAssertion,
    Term,
    requests_of,
    row_count,
)
from dqx_airflow.plan.predicates import lookups_of, settled
from dqx_airflow.plan.profiles import Adjustment, active_profiles, adjust
from dqx_airflow.values import DatasetRef, Severity, SourceFile, Span

_CLAIMS = (
    nodes.Measure,
    nodes.Rows,
    nodes.HasColumn,
    nodes.RowsMatch,
    nodes.ColumnsMatch,
    nodes.Composite,
)

DEFAULT_AVAILABILITY_THRESHOLD = 0.9

_LONGEST_WORDS = 80

_HOLDING = {
    nodes.Junctor.ANY: "one of {} claims holds",
    nodes.Junctor.ALL: "all {} claims hold",
    nodes.Junctor.IF: "the claim holds",
}


def check_datasets(suite: nodes.Suite, datasets: Sequence[DatasetRef]) -> tuple[Diagnostic, ...]:
    """What the suite asks of the datasets of a gate and does not get: a name, a date column."""
    given = {dataset.name: dataset for dataset in datasets}
    found = []
    for name in datasets_of(suite.checks):
        if name not in given:
            names = ", ".join(given) or "none"
            found.append(
                Diagnostic(
                    f"the gate has no dataset '{name}'",
                    _first_mention(suite, name),
                    code="E009",
                    help=f"its datasets are: {names}; add '{name}', or correct the suite",
                )
            )
    for check in suite.checks:
        own = [name.text for name in check.datasets]
        undated = [name for name in own if name in given and given[name].date_column is None]
        for call in _lagged_metrics(check):
            named = _parameter(call, "dataset")
            name = named.text if isinstance(named, nodes.Name) else own[0]
            if name in undated:
                message = f"this needs `{call.name.text}` on other dates, but '{name}' has no dates"
                help_line = f"set the date_column of dataset '{name}' in the gate"
                found.append(Diagnostic(message, call.span, code="E111", help=help_line))
    return tuple(found)


def resolve(
    suite: nodes.Suite,
    source: SourceFile,
    datasets: Sequence[DatasetRef],
    on: date,
    *,
    allow_empty: bool = False,
    sources: Mapping[str, str] = MappingProxyType({}),
    chosen: Chosen | None = None,
) -> Plan:
    """The plan of a suite without errors, over datasets that `check_datasets` found sound.

    :param sources: the texts of more files that assertions stand in, by name.
    :param chosen: what a selection leaves of it: the datasets need be no more than it reads.
    """
    stated: Sequence[PlannedAssertion]
    if chosen is None:
        stated = kept = stated_assertions(suite, source, datasets, on, sources=sources)
    else:
        stated, kept = chosen.stated, chosen.kept
    assertions = [_not_empty(ref, _date_in(ref, on)) for ref in datasets if not allow_empty]
    assertions += [
        _well_formed(ref, _date_in(ref, on), stated)
        for ref in datasets
        if ref.is_of_texts and not ref.is_lenient
    ]
    assertions += kept
    threshold = suite.availability_threshold
    active = [assertion for assertion in assertions if assertion.disabled_by is None]
    requests = {request: None for assertion in active for request in assertion.requests}
    for request in tuple(requests):
        if request.definition.scan is Scan.FLAT:
            requests[row_count(request.dataset, request.date)] = None
        if request.where is not None and request.date in (None, on):
            # By this it is known whether any row meets the filter.
            requests[row_count(request.dataset, request.date, request.where)] = None
    for ref in datasets:
        requests[row_count(ref.name, _date_in(ref, on))] = None
    lookups = dict.fromkeys(item for request in requests for item in lookups_of(request))
    return Plan(
        suite.name.value,
        on,
        DEFAULT_AVAILABILITY_THRESHOLD if threshold is None else float(threshold.value),
        tuple(assertions),
        tuple(requests),
        tuple(lookups),
        {ref.name: ref.masked for ref in datasets if ref.masked},
        suite.requires_history,
        {ref.name: reading_of(ref, on) for ref in datasets},
        chosen.partial if chosen is not None else None,
    )


def stated_assertions(
    suite: nodes.Suite,
    source: SourceFile,
    datasets: Sequence[DatasetRef],
    on: date,
    *,
    sources: Mapping[str, str] = MappingProxyType({}),
) -> tuple[PlannedAssertion, ...]:
    """The assertions that a suite states, in its order, for a date; arguments as of `resolve`."""
    texts = {**sources, source.name: source.text}
    lines = {name: text.split("\n") for name, text in texts.items()}
    refs = {dataset.name: dataset for dataset in datasets}
    constants = settle(suite.constants)
    profiles = active_profiles(suite, on)
    stated: list[PlannedAssertion] = []
    names = {item.name.value for check in suite.checks for item in check.assertions if item.name}
    groupings = groupings_of(suite, constants)
    for check in suite.checks:
        for assertion in check.assertions:
            for_each = assertion.for_each
            grouping = None if for_each is None else groupings[columns_of(for_each)]
            compiler = _Compiler(check, constants, refs, on, lines, grouping)
            adjustment = adjust(profiles, check, assertion, constants)
            stated.append(compiler.plan(assertion, adjustment, names))
    return tuple(stated)


def _not_empty(ref: DatasetRef, on: date | None) -> PlannedAssertion:
    return PlannedAssertion(
        f"{ref.name}.not_empty",
        IMPLICIT_CHECK,
        (ref.name,),
        "num_rows()",
        Measured(row_count(ref.name, on)),
        Condition(">", (Constant(0),), "> 0"),
        Severity.P1,
        is_implicit=True,
    )


def _well_formed(
    ref: DatasetRef, on: date | None, stated: Sequence[PlannedAssertion]
) -> PlannedAssertion:
    """That no text of a column is malformed, save where the suite itself says what may be, of all
    rows."""
    asked = {
        request.arguments[0]: None
        for assertion in stated
        for request in assertion.requests
        if request == MetricRequest(ref.name, "malformed_count", request.arguments, on)
    }
    return PlannedAssertion(
        f"{ref.name}.well_formed",
        IMPLICIT_CHECK,
        (ref.name,),
        "malformed_rows()",
        Measured(MetricRequest(ref.name, "malformed_rows", (tuple(asked),), on)),
        Condition("==", (Constant(0),), "== 0 malformed rows"),
        Severity.P1,
        is_implicit=True,
    )


def _date_in(ref: DatasetRef, on: date) -> date | None:
    return on if ref.date_column else None


@dataclass(slots=True)
class _Compiler:
    """Compiles assertions of one check, those with one grouping, or without groups."""

    check: nodes.Check
    constants: Mapping[str, nodes.Constant]
    refs: Mapping[str, DatasetRef]
    on: date
    lines: Mapping[str, Sequence[str]]
    grouping: Grouping | None
    around: nodes.Expression | None = None
    """The filter around the metrics of the assertion that is being compiled."""

    def plan(
        self, assertion: nodes.Assertion, adjustment: Adjustment, names: set[str]
    ) -> PlannedAssertion:
        self.around = joined(self.check.where, assertion.where)
        term, condition, marked = self._claim(assertion)
        for_each = assertion.for_each
        text = show_claim(marked) if isinstance(marked, _CLAIMS) else show(marked)
        text += show_where(self.around)
        # Of what a macro made, the suite shows the place that asked for it.
        span = assertion.uses[0] if assertion.uses else marked.span
        terms = (term, *condition.bounds)
        requests = (request for part in terms for request in requests_of(part))
        measured = (name for request in requests for name in request.datasets)
        datasets = tuple(dict.fromkeys(measured)) or (self.check.datasets[0].text,)
        if assertion.name is not None:
            name = assertion.name.value
        else:
            words = text if for_each is None else f"{text} {show_for_each(for_each)}"
            name = _unused(self._generated_name(datasets[0], words), names)
            names.add(name)
        return PlannedAssertion(
            name,
            self.check.name.value,
            datasets,
            text,
            term,
            condition,
            adjustment.severity,
            tuple(tag.text for tag in assertion.tags),
            adjustment.multiplier,
            adjustment.profiles,
            adjustment.disabled_by,
            False,
            span,
            self._line(span),
            cost_of(assertion),
            assertion.is_annotated("experimental"),
            groups=None if for_each is None else judged_groups(for_each, self.constants),
        )

    def _line(self, span: Span) -> str | None:
        """The line of a span; None where nobody has its text, as of what is typed at a prompt."""
        lines = self.lines.get(span.file, ())
        return lines[span.line - 1].rstrip("\r") if span.line <= len(lines) else None

    def _claim(
        self, assertion: nodes.Assertion
    ) -> tuple[Term, Condition, nodes.Expression | nodes.Claim]:
        """The term, its condition, and the node under which carets are drawn."""
        claim = assertion.claim
        if isinstance(claim, nodes.Rows):
            return (*self._rows(claim), claim)
        if isinstance(claim, nodes.HasColumn):
            return (*self._column(claim), claim)
        if isinstance(claim, nodes.Composite):
            return (*self._composite(claim, self.around), claim)
        if isinstance(claim, nodes.RowsMatch):
            return (*self._rows_match(claim), claim)
        if isinstance(claim, nodes.ColumnsMatch):
            return (*self._columns_match(claim), claim)
        expression = claim.expression
        match claim.condition:
            case None:
                assert isinstance(expression, nodes.Call)
                return (*self._shortcut(expression), claim)
            case nodes.InValues(choices=choices):
                assert isinstance(expression, nodes.Call)
                if isinstance(choices, nodes.Listing):
                    return (*self._in_list(expression, choices), claim)
                assert isinstance(choices, nodes.Call)
                return (*self._in_values(expression, choices), claim)
            case nodes.ByTime() as by:
                assert isinstance(expression, nodes.Call)
                return (*self._by_time(expression, by), claim)
            case nodes.MatchesShares() as matches:
                assert isinstance(expression, nodes.Call)
                return (*self._matches(expression, matches, assertion.tolerance), claim)
            case nodes.WithinStddev() as within:
                return self._term(expression, 0), self._within(expression, within), expression
            case condition:
                tolerance = assertion.tolerance
                planned = self._condition(condition, None if tolerance is None else tolerance.value)
                return self._term(expression, 0), planned, expression

    # Claims

    def _rows(self, claim: nodes.Rows) -> tuple[Term, Condition]:
        if claim.share is None:
            return self._violating_rows(claim.predicate, None)
        predicate = settled(claim.predicate, self.constants)
        share = self._measured("satisfying_share", (predicate,))
        bound = Constant(claim.share.value)
        return share, Condition(">=", (bound,), f">= {show_number(claim.share)} of rows")

    def _violating_rows(
        self, predicate: nodes.Expression, call: nodes.Call | None
    ) -> tuple[Term, Condition]:
        arguments = (settled(predicate, self.constants),)
        term = self._measured("violating_rows", arguments, call)
        return term, Condition("==", (Constant(0),), "== 0 violating rows")

    def _in_values(self, values: nodes.Call, choices: nodes.Call) -> tuple[Term, Condition]:
        member = nodes.Member(values.arguments[0], choices, values.span)
        return self._violating_rows(member, values)

    def _in_list(self, call: nodes.Call, choices: nodes.Listing) -> tuple[Term, Condition]:
        metric = METRICS["unlisted_common_values"]
        given = (*call.arguments, choices)
        arguments = tuple(map(self._argument, metric.arguments, given))
        term = self._measured(metric.name, arguments, call)
        return term, Condition("==", (Constant(0),), f"in {show(choices)}")

    def _column(self, claim: nodes.HasColumn) -> tuple[Term, Condition]:
        term = self._measured("column_type", (_column(claim.column),))
        if claim.type is None:
            return term, Condition("is not None", (), "exists")
        if not claim.is_exact:
            wanted = canonical_type(claim.type.value, TYPE_WORDS)
            return term, Condition("fits", (Constant(wanted),), f"fits {wanted}")
        wanted = canonical_type(claim.type.value)
        return term, Condition("==", (Constant(wanted),), f"type {wanted}")

    def _composite(
        self, claim: nodes.Composite, around: nodes.Expression | None
    ) -> tuple[Term, Condition]:
        """The parts, each under the filters around it; no profile scales them."""
        parts = []
        for part in claim.parts:
            self.around = joined(around, part.where)
            term, condition, marked = self._claim(part)
            text = show_claim(marked) if isinstance(marked, _CLAIMS) else show(marked)
            requests = {
                request: None for one in (term, *condition.bounds) for request in requests_of(one)
            }
            datasets = dict.fromkeys(name for request in requests for name in request.datasets)
            parts.append(
                PlannedAssertion(
                    "",
                    self.check.name.value,
                    tuple(datasets) or (self.check.datasets[0].text,),
                    text + show_where(part.where),
                    term,
                    condition,
                    nodes.DEFAULT_SEVERITY,
                )
            )
        self.around = around
        text = _HOLDING[claim.junctor].format(len(parts))
        return Claimed(claim.junctor, tuple(parts)), Condition("hold", (), text)

    def _rows_match(self, claim: nodes.RowsMatch) -> tuple[Term, Condition]:
        keys = tuple(map(_column, claim.keys.items))
        items = claim.compared.items if claim.compared is not None else ()
        compared = None if claim.compares_all else tuple(map(_column, items))
        tolerance = None if claim.tolerance is None else claim.tolerance.value
        arguments = (keys, compared, _column(claim.reference), tolerance)
        dataset, allowed = _column(claim.dataset), claim.allowing
        if allowed is None:
            term = Measured(MetricRequest(dataset, "mismatch_count", arguments, None))
            return term, Condition("==", (Constant(0),), "== 0 rows that differ")
        text = f"<= {show_number(allowed)} of rows"
        term = Measured(MetricRequest(dataset, "mismatch_share", arguments, None))
        return term, Condition("<=", (Constant(allowed.value),), text)

    def _columns_match(self, claim: nodes.ColumnsMatch) -> tuple[Term, Condition]:
        dataset, arguments = _column(claim.dataset), (_column(claim.reference),)
        term = Measured(MetricRequest(dataset, "column_mismatch_count", arguments, None))
        return term, Condition("==", (Constant(0),), "== 0 columns that differ")

    def _by_time(self, call: nodes.Call, by: nodes.ByTime) -> tuple[Term, Condition]:
        newest = self._measured("newest", (_column(call.arguments[0]),), call)
        clock, zone = clock_of(by), zone_of(by)
        due = Applied("deadline", (newest, Constant(clock), Constant(zone)))
        return Now(), Condition("<=", (due,), f"by {clock} {zone}")

    def _matches(
        self, call: nodes.Call, matches: nodes.MatchesShares, tolerance: nodes.Number | None
    ) -> tuple[Term, Condition]:
        shares = tuple((_literal(value), plain(share.value)) for value, share in matches.shares)
        arguments = (_column(call.arguments[0]), shares)
        term = self._measured("share_difference", arguments, call)
        most = DEFAULT_SHARE_TOLERANCE if tolerance is None else tolerance.value
        text = f"{show_condition(matches)} tolerance {format_value(most)}"
        return term, Condition("<=", (Constant(most),), text)

    def _within(self, metric: nodes.Expression, within: nodes.WithinStddev) -> Condition:
        """Near the mean of the days before the target date, which is not among them."""
        days = window_days(within)
        window = tuple(self._term(metric, day) for day in range(1, days + 1))
        mean, count = Applied("mean", window), self._term(within.count, 0)
        reach = Applied("*", (count, Applied("sample_stddev", window)))
        low, high = Applied("-", (mean, reach)), Applied("+", (mean, reach))
        return Condition(
            "between", (low, high), f"within {show(within.count)} stddev of {days} days"
        )

    def _shortcut(self, call: nodes.Call) -> tuple[Term, Condition]:
        if call.name.text == "in_set":
            column, choices = call.arguments
            return self._violating_rows(nodes.Member(column, choices, call.span), call)
        columns = tuple(_column(argument) for argument in call.arguments)

        def each(metric: str) -> tuple[Term, ...]:
            return tuple(self._measured(metric, (column,), call) for column in columns)

        def over_all(function: str, terms: tuple[Term, ...]) -> Term:
            term = terms[0]
            for other in terms[1:]:
                term = Applied(function, (term, other))
            return term

        zero = (Constant(0),)
        match call.name.text:
            case "unique":
                term: Term = self._measured("duplicate_count", (_columns(columns),), call)
                return term, Condition("==", zero, "== 0 duplicates")
            case "is_sorted":
                order = _parameter(call, "order_by")
                assert order is not None
                term = self._measured("decrease_count", (*columns, _column(order)), call)
                return term, Condition("==", zero, "== 0 decreases")
            case "not_null":
                return over_all("+", each("null_count")), Condition("==", zero, "== 0 nulls")
            case "positive":
                return over_all("min", each("minimum")), Condition(">", zero, "minimum > 0")
            case "non_negative":
                return over_all("min", each("minimum")), Condition(">=", zero, "minimum >= 0")
            case _:
                return self._measured("num_rows", (), call), Condition(">", zero, "> 0")

    def _condition(
        self, condition: nodes.Comparison | nodes.Between | nodes.Is, tolerance: Number | None
    ) -> Condition:
        match condition:
            case nodes.Comparison(op=op, bound=bound):
                text = f"{op} {self._bound_text(bound)}"
                if tolerance is not None:
                    text += f" +/- {format_value(tolerance)}"
                return Condition(op, (self._bound(bound),), text, tolerance)
            case nodes.Between(low=low, high=high):
                text = f"between {self._bound_text(low)} and {self._bound_text(high)}"
                return Condition("between", (self._bound(low), self._bound(high)), text)
            case nodes.Is(keyword=nodes.Keyword.POSITIVE):
                return Condition(">", (Constant(0),), "> 0")
            case nodes.Is(keyword=nodes.Keyword.NEGATIVE):
                return Condition("<", (Constant(0),), "< 0")
            case nodes.Is(keyword=keyword):
                return Condition(f"is {keyword.value}", (), f"is {keyword.value}")

    def _bound(self, node: nodes.Expression) -> Term:
        if isinstance(node, nodes.Truth):
            return Constant(int(node.value))  # a metric over a boolean column yields 0 or 1
        if isinstance(node, nodes.Text | nodes.Day):
            return Constant(fold(node, {}))
        return self._term(node, 0)

    def _bound_text(self, node: nodes.Expression) -> str:
        """The bound as written; the value beside it where a name stands for it."""
        text = show(node)
        if isinstance(node, nodes.Name) and node.text in self.constants:
            constant = self.constants[node.text].value
            match constant:
                case nodes.Number(value=value, unit=nodes.Unit.PLAIN):
                    return f"{text} ({format_value(value)})"
                case _:
                    return f"{text} ({show(constant)})"
        return text

    # Terms

    def _term(self, node: nodes.Expression, lag: int) -> Term:
        match node:
            case nodes.Name():
                return Constant(fold(node, self.constants))
            case nodes.Number(value=value):
                return Constant(value)
            case nodes.Negative(operand=operand):
                return Applied("negative", (self._term(operand, lag),))
            case nodes.Arithmetic(op=op, left=left, right=right):
                return Applied(op, (self._term(left, lag), self._term(right, lag)))
            case nodes.Call():
                return self._call(node, lag)
            case _:
                return Constant(None)

    def _call(self, call: nodes.Call, lag: int) -> Term:
        name = call.name.text
        lag += self._days(call, "lag")
        if name in METRICS:
            metric = METRICS[name]
            pairs = zip(metric.arguments, call.arguments, strict=True)
            arguments = tuple(self._argument(kind, node) for kind, node in pairs)
            for parameter in metric.parameters:
                given = _parameter(call, parameter.name)
                arguments += (None if given is None else self._own_parameter(parameter, given),)
            return self._measured(name, arguments, call, lag)
        if name in AGES:
            column = _column(call.arguments[0])
            newest: Term = self._measured("newest", (column,), call, lag)
            since = Applied("midnight", (newest,)) if name == "data_lag" else newest
            return Applied("age", (Now(), since))
        if name in CHANGES:
            today = self._term(call.arguments[0], lag)
            base = self._term(call.arguments[0], lag + CHANGES[name])
            change = Applied("/", (Applied("-", (today, base)), base))
            return Applied("abs", (change,))
        if name in WINDOWS:
            days = range(self._days(call, "n"))
            return Applied(name, tuple(self._term(call.arguments[0], lag + day) for day in days))
        return Applied(name, tuple(self._term(argument, lag) for argument in call.arguments))

    def _own_parameter(self, parameter: Argument, node: nodes.Expression) -> object:
        match parameter.kind:
            case ArgumentKind.TOLERANCE:
                return fold(node, self.constants)
            case ArgumentKind.STEP:
                literal = _settled(node, self.constants)
                step = fold(literal, {})
                return ("seconds", step) if _is_duration(literal) else step
            case _:
                return _column(node)

    def _argument(self, argument: Argument, node: nodes.Expression) -> object:
        if argument.kind not in (ArgumentKind.COLUMN, ArgumentKind.COLUMNS, ArgumentKind.NAMES):
            if isinstance(node, nodes.Listing):
                return tuple(self._argument(argument, item) for item in node.items)
            found = fold(node, self.constants)
            return spark_number(found) if isinstance(found, Fraction) else found
        items = node.items if isinstance(node, nodes.Listing) else (node,)
        return _columns(tuple(_column(item) for item in items))

    def _measured(
        self, metric: str, arguments: Arguments, call: nodes.Call | None = None, lag: int = 0
    ) -> Measured:
        """What a call asks for, or what is asked of the dataset of the check."""
        name = self._dataset(call)
        is_dated = METRICS[metric].scan.has_dates
        on = _date_in(self.refs[name], self.on) if is_dated else None
        on = on - timedelta(days=lag) if on else None
        where = joined(self.around, call.where if call else None)
        chosen = None if where is None else settled(where, self.constants)
        return Measured(MetricRequest(name, metric, arguments, on, chosen, self.grouping))

    def _days(self, call: nodes.Call, parameter: str) -> int:
        value = _parameter(call, parameter)
        days = fold(value, self.constants) if value is not None else 0
        return int(days or 0)

    def _dataset(self, call: nodes.Call | None) -> str:
        named = _parameter(call, "dataset") if call else None
        if call is not None and named is not None and compares_datasets(call):
            other = _column(named)
            return next(name.text for name in self.check.datasets if name.text != other)
        return _column(named) if named else self.check.datasets[0].text

    # Texts

    def _generated_name(self, dataset: str, text: str) -> str:
        """`dataset.check.metric_column`: the words of what is measured, without the condition."""
        words = _slug(text)[:_LONGEST_WORDS]
        return f"{dataset}.{_slug(self.check.name.value)}.{words}"


def cost_of(assertion: nodes.Assertion) -> Cost:
    """What `@cost` says; where it says nothing, a missed problem costs ten times a false alarm."""
    given = {
        name.text: float(value.value)
        for annotation in assertion.annotations
        if annotation.name.text == "cost"
        for name, value in annotation.arguments
        if isinstance(value, nodes.Number)
    }
    return Cost(**given)


def _unused(name: str, names: set[str]) -> str:
    candidate, number = name, 2
    while candidate in names:
        candidate, number = f"{name}_{number}", number + 1
    return candidate


def _slug(text: str) -> str:
    return re.sub(r"\W+", "_", text.lower()).strip("_")


def _column(node: nodes.Expression) -> str:
    assert isinstance(node, nodes.Name)
    return node.text


def _settled(node: nodes.Expression, constants: Mapping[str, nodes.Constant]) -> nodes.Expression:
    """What a name stands for; anything else as it is."""
    return constants[node.text].value if isinstance(node, nodes.Name) else node


def _is_duration(node: nodes.Expression) -> bool:
    return isinstance(node, nodes.Number) and node.unit is nodes.Unit.DURATION


def _literal(node: nodes.Text | nodes.Number | nodes.Truth) -> object:
    value = node.value
    return spark_number(value) if isinstance(value, Fraction) else value


def _columns(names: tuple[str, ...]) -> object:
    """One column as its name, several as a tuple, so that equal requests are equal."""
    return names[0] if len(names) == 1 else names


def _parameter(call: nodes.Call, name: str) -> nodes.Expression | None:
    return next((item.value for item in call.parameters if item.name.text == name), None)


def _lagged_metrics(check: nodes.Check) -> Iterator[nodes.Call]:
    """The metric calls of a check that are asked of other dates than the target date."""
    claims = (claim for assertion in check.assertions for claim in simple_claims(assertion.claim))
    for claim in claims:
        if not isinstance(claim, nodes.Measure):
            continue
        condition = claim.condition
        is_lagged = isinstance(condition, nodes.WithinStddev)
        yield from _lagged_in(claim.expression, is_lagged)
        match condition:
            case nodes.Comparison(bound=bound):
                yield from _lagged_in(bound, False)
            case nodes.Between(low=low, high=high):
                yield from _lagged_in(low, False)
                yield from _lagged_in(high, False)


def _lagged_in(node: nodes.Expression, is_lagged: bool) -> Iterator[nodes.Call]:
    match node:
        case nodes.Call(name=name, arguments=arguments):
            is_lagged |= name.text in (*CHANGES, *WINDOWS)
            is_lagged |= _parameter(node, "lag") is not None
            if is_lagged and name.text in (*METRICS, *AGES):
                yield node
            for argument in arguments:
                yield from _lagged_in(argument, is_lagged)
        case nodes.Negative(operand=operand):
            yield from _lagged_in(operand, is_lagged)
        case nodes.Arithmetic(left=left, right=right):
            yield from _lagged_in(left, is_lagged)
            yield from _lagged_in(right, is_lagged)


def _first_mention(suite: nodes.Suite, dataset: str) -> Span:
    for check in suite.checks:
        for name in check.datasets:
            if name.text == dataset:
                return name.span
    for check in suite.checks:
        for assertion in check.assertions:
            if dataset in datasets_of([replace(check, datasets=(), body=(assertion,))]):
                return assertion.claim.span
    return suite.name.span
