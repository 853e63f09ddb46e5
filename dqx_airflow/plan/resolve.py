"""From assertions to metric requests, with the profiles of the day and the needs of datasets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from types import MappingProxyType

from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.dql import nodes
from dqx_airflow.dql.checks.assertions import datasets_of
from dqx_airflow.dql.checks.expressions import is_about_share
from dqx_airflow.dql.checks.suite import (
    IMPLICIT_CHECK,
    check_downgrades,
    is_beyond,
    is_required,
    is_scalable,
    selects,
)
from dqx_airflow.dql.dates import is_active
from dqx_airflow.dql.printer import show_claim, show_for_each, show_where
from dqx_airflow.dql.walk import joined, settle, simple_claims
from dqx_airflow.errors import RequestError
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.derived import AGES, CHANGES, WINDOWS
from dqx_airflow.metrics.drift import DRIFT
from dqx_airflow.metrics.metric import Scan
from dqx_airflow.plan import claim_compiler, model
from dqx_airflow.plan.measurements import reading_of
from dqx_airflow.plan.predicates import columns_of, groupings_of, judged_groups, lookups_of
from dqx_airflow.values import DatasetRef, RunOptions, Severity, SourceFile, Span
from dqx_airflow.values.exact import Exact, exact, exact_text


@dataclass(frozen=True, slots=True)
class Adjustment:
    """The effect of the active profiles on one assertion.

    Multipliers compound, the last severity wins, and `profiles` are the names of those with a rule
    for the assertion, in definition order.
    """

    severity: Severity
    multiplier: Exact = 1
    disabled_by: str | None = None
    profiles: tuple[str, ...] = ()


def active_profiles(suite: nodes.Suite, on: date) -> tuple[nodes.Profile, ...]:
    """The profiles whose period contains `on`, in definition order."""
    return tuple(
        profile
        for profile in suite.profiles
        if profile.start and profile.end and is_active(profile.start, profile.end, on)
    )


def adjust(
    profiles: Iterable[nodes.Profile],
    check: nodes.Check,
    assertion: nodes.Assertion,
    constants: nodes.Constants,
) -> Adjustment:
    """Applies all rules of the profiles in definition order. A share is not scaled.

    :param constants: the constants of the suite, evaluated.
    :raises RequestError: together they nearly disable a required assertion.
    """
    severity = Severity(assertion.severity.text) if assertion.severity else nodes.DEFAULT_SEVERITY
    multiplier: Exact = 1
    unallowed: Exact = 1
    disabled_by, names = None, []
    for profile in profiles:
        for rule in profile.rules:
            if not selects(rule.selector, check, assertion):
                continue
            if isinstance(rule, nodes.Scale) and is_about_share(
                assertion.claim, constants, check.datasets[0].text
            ):
                continue
            names.append(profile.name.value)
            match rule:
                case nodes.Scale(factor=factor):
                    multiplier = exact(multiplier * factor)
                    unallowed = unallowed if profile.allows_required else exact(unallowed * factor)
                case nodes.Downgrade(severity=name):
                    severity = Severity(name.text)
                case nodes.Disable():
                    disabled_by = disabled_by or profile.name.value
    if is_beyond(unallowed) and is_required(assertion) and is_scalable(assertion.claim):
        title = assertion.name.value if assertion.name else show_claim(assertion.claim)
        together = ", ".join(map(repr, dict.fromkeys(names)))
        raise RequestError(
            f"the profiles {together} are active together: by the factor {exact_text(unallowed)} "
            f"they nearly disable {title!r}, which is required",
            "write factors that are together from 0.1x to 10x, or @allow_required above a profile",
        )
    return Adjustment(severity, multiplier, disabled_by, tuple(dict.fromkeys(names)))


def check_datasets(
    suite: nodes.Suite, datasets: Sequence[DatasetRef], fail_on: Severity = Severity.P1
) -> tuple[Diagnostic, ...]:
    """The requirements that the datasets of a gate do not meet: a name, a date column; and profiles
    by which required assertions would not block with this `fail_on`.
    """
    by_name = {dataset.name: dataset for dataset in datasets}
    # With P1, they are errors of the suite itself.
    mistakes = list(check_downgrades(suite, fail_on)) if fail_on is not Severity.P1 else []
    for name in datasets_of(suite.checks):
        if name not in by_name:
            names = ", ".join(by_name) or "none"
            mistakes.append(
                Diagnostic(
                    f"the gate has no dataset '{name}'",
                    _first_mention(suite, name),
                    code="E009",
                    help=f"its datasets are: {names}; add '{name}', or correct the suite",
                )
            )
    for check in suite.checks:
        for call in _lagged_metrics(check):
            named = call.parameter("dataset")
            name = named.text if isinstance(named, nodes.Name) else check.datasets[0].text
            if name in by_name and by_name[name].date_column is None:
                message = f"this needs `{call.name.text}` on other dates, but '{name}' has no dates"
                help_line = f"set the date_column of dataset '{name}' in the gate"
                mistakes.append(Diagnostic(message, call.span, code="E111", help=help_line))
    return tuple(mistakes)


def _lagged_metrics(check: nodes.Check) -> Iterator[nodes.Call]:
    """The metric calls of a check for dates other than the target date."""
    for assertion in check.assertions:
        for claim in simple_claims(assertion.claim):
            if isinstance(claim, nodes.Measure):
                is_lagged = isinstance(claim.condition, nodes.WithinStddev)
                yield from _lagged_in(claim.expression, is_lagged)
                for bound in nodes.bounds_of(claim.condition):
                    yield from _lagged_in(bound, False)


def _lagged_in(node: nodes.Expression, is_lagged: bool) -> Iterator[nodes.Call]:
    match node:
        case nodes.Call(name=name, arguments=arguments):
            is_lagged |= name.text in (*CHANGES, *WINDOWS, *DRIFT)
            is_lagged |= node.parameter("lag") is not None
            if is_lagged and name.text in (*METRICS, *AGES, *DRIFT):
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


DEFAULT_AVAILABILITY_THRESHOLD = 0.9
DEFAULT_OPTIONS = RunOptions()
QUIET = RunOptions(allow_empty=True)
"""Run options without the implicit assertions that datasets have rows."""

_LONGEST_WORDS = 80

_FIRST_DATE, _LAST_DATE = date(1000, 1, 1), date(9000, 12, 31)
"""The bounds of the target date, far enough from Python's for all dates of lagged metrics."""


def resolve(
    suite: nodes.Suite,
    source: SourceFile,
    datasets: Sequence[DatasetRef],
    on: date,
    options: RunOptions = DEFAULT_OPTIONS,
    *,
    sources: Mapping[str, str] = MappingProxyType({}),
    chosen: model.Chosen | None = None,
) -> model.Plan:
    """The plan of a suite without errors, over datasets that `check_datasets` accepted. For a
    request, call `plan_of`.

    :param sources: the contents of further files that contain assertions, by name.
    :param chosen: the result of a selection: only the datasets that it reads are needed.
    """
    stated: Sequence[model.PlannedAssertion]
    if chosen is None:
        stated = kept = stated_assertions(suite, source, datasets, on, sources=sources)
    else:
        stated, kept = chosen.stated, chosen.kept
    assertions = [] if options.allow_empty else [_not_empty(ref, on) for ref in datasets]
    strict = (ref for ref in datasets if ref.is_of_texts and not ref.is_lenient)
    assertions += [*(_well_formed(ref, on, stated) for ref in strict), *kept]
    threshold = suite.availability_threshold
    requests = {
        request: None
        for assertion in assertions
        if assertion.disabled_by is None
        for request in (*assertion.requests, *assertion.history)
    }
    for request in tuple(requests):
        if request.definition.scan is Scan.FLAT:
            requests[model.row_count(request.dataset, request.date)] = None
        if request.where is not None and request.date in (None, on):
            # Tells whether any row satisfies the filter.
            requests[model.row_count(request.dataset, request.date, request.where)] = None
    for ref in datasets:
        requests[model.row_count(ref.name, claim_compiler.date_in(ref, on))] = None
    return model.Plan(
        suite.name.value,
        on,
        DEFAULT_AVAILABILITY_THRESHOLD if threshold is None else float(threshold.value),
        tuple(assertions),
        tuple(requests),
        lookups_of(*requests),
        {ref.name: ref.masked for ref in datasets if ref.masked},
        suite.requires_history,
        {ref.name: reading_of(ref, on) for ref in datasets},
        chosen.partial if chosen is not None else None,
        options.ansi,
        options.max_clock_skew_hours,
        watched=suite.watched,
    )


def stated_assertions(
    suite: nodes.Suite,
    source: SourceFile,
    datasets: Sequence[DatasetRef],
    on: date,
    *,
    sources: Mapping[str, str] = MappingProxyType({}),
) -> tuple[model.PlannedAssertion, ...]:
    """The assertions that a suite states, in its order, for a date; arguments as for `resolve`.

    :raises RequestError: the date is not one of data.
    """
    if not _FIRST_DATE <= on <= _LAST_DATE:
        raise RequestError(f"no data is of {on}", f"give a date from {_FIRST_DATE} to {_LAST_DATE}")
    texts = {**sources, source.name: source.text}
    lines = {name: text.split("\n") for name, text in texts.items()}
    refs = {dataset.name: dataset for dataset in datasets}
    constants = settle(suite.constants)
    profiles = active_profiles(suite, on)
    stated: list[model.PlannedAssertion] = []
    names = {
        assertion.name.value
        for check in suite.checks
        for assertion in check.assertions
        if assertion.name
    }
    groupings = groupings_of(suite, constants)
    for check in suite.checks:
        for assertion in check.assertions:
            for_each = assertion.for_each
            grouping = None if for_each is None else groupings[columns_of(for_each)]
            around = joined(check.where, assertion.where)
            terms = claim_compiler.TermCompiler(check, constants, refs, on, grouping, around)
            adjustment = adjust(profiles, check, assertion, constants)
            stated.append(_planned(assertion, terms, adjustment, lines, names))
    return tuple(stated)


def _not_empty(ref: DatasetRef, on: date) -> model.PlannedAssertion:
    rows = model.row_count(ref.name, claim_compiler.date_in(ref, on))
    return _implicit("not_empty", "num_rows()", rows, ">", "> 0")


def _well_formed(
    ref: DatasetRef, on: date, stated: Sequence[model.PlannedAssertion]
) -> model.PlannedAssertion:
    """The implicit assertion that no string of a column is malformed, except for shares that the
    suite allows, over all rows."""
    day = claim_compiler.date_in(ref, on)
    columns = {
        request.arguments[0]: None
        for assertion in stated
        for request in assertion.requests
        if request == model.MetricRequest(ref.name, "malformed_count", request.arguments, day)
    }
    rows = model.MetricRequest(ref.name, "malformed_rows", (tuple(columns),), day)
    return _implicit("well_formed", "malformed_rows()", rows, "==", "== 0 malformed rows")


def _implicit(
    name: str, expression: str, rows: model.MetricRequest, op: str, text: str
) -> model.PlannedAssertion:
    """An assertion that compares a number of rows with 0."""
    return model.PlannedAssertion(
        f"{rows.dataset}.{name}",
        IMPLICIT_CHECK,
        (rows.dataset,),
        expression,
        model.Measured(rows),
        model.PlannedCondition(op, (model.ConstantTerm(0),), text),
        Severity.P1,
        is_implicit=True,
    )


def _planned(
    assertion: nodes.Assertion,
    terms: claim_compiler.TermCompiler,
    adjustment: Adjustment,
    lines: Mapping[str, Sequence[str]],
    names: set[str],
) -> model.PlannedAssertion:
    """:param names: the names in use, to which a generated one is added."""
    check = terms.check
    term, condition, marked = claim_compiler.ClaimCompiler(terms).compile(assertion)
    for_each = assertion.for_each
    text = claim_compiler.claim_text(marked) + show_where(terms.around)
    # For the result of a macro, the suite shows the place of the call.
    span = assertion.uses[0] if assertion.uses else marked.span
    datasets = claim_compiler.datasets_measured(check, term, condition)
    if assertion.name is not None:
        name = assertion.name.value
    else:
        words = text if for_each is None else f"{text} {show_for_each(for_each)}"
        measured = _slug(words)[:_LONGEST_WORDS]
        name = _unused(f"{datasets[0]}.{_slug(check.name.value)}.{measured}", names)
        names.add(name)
    groups = None if for_each is None else judged_groups(for_each, terms.constants)
    if groups is not None and groups.listed is None:
        sides = (term, *condition.bounds)
        requests = (request for side in sides for request in model.requests_of(side))
        groups = replace(groups, rows=terms.rows_of_groups(requests))
    return model.PlannedAssertion(
        name,
        check.name.value,
        datasets,
        text,
        term,
        condition,
        adjustment.severity,
        tags=tuple(tag.text for tag in assertion.tags),
        multiplier=adjustment.multiplier,
        profiles=adjustment.profiles,
        disabled_by=adjustment.disabled_by,
        span=span,
        source_line=_line(span, lines),
        cost=cost_of(assertion),
        is_experimental=assertion.is_annotated("experimental"),
        is_protected=is_required(assertion)
        or (adjustment.severity is Severity.P0 and not assertion.is_annotated("experimental")),
        groups=groups,
    )


def _line(span: Span, files: Mapping[str, Sequence[str]]) -> str | None:
    """The line of a span; None if its text is unknown, as for input at a prompt."""
    lines = files.get(span.file, ())
    return lines[span.line - 1].rstrip("\r") if span.line <= len(lines) else None


def cost_of(assertion: nodes.Assertion) -> model.Cost:
    """The cost in `@cost`; by default, a missed problem costs ten times as much as a false
    alarm."""
    costs = {
        name.text: float(value.value)
        for annotation in assertion.annotations
        if annotation.name.text == "cost"
        for name, value in annotation.arguments
        if isinstance(value, nodes.Number)
    }
    return model.Cost(**costs)


def _unused(name: str, names: set[str]) -> str:
    candidate, number = name, 2
    while candidate in names:
        candidate, number = f"{name}_{number}", number + 1
    return candidate


def _slug(text: str) -> str:
    return re.sub(r"\W+", "_", text.lower()).strip("_")
