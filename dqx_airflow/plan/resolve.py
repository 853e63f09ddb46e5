"""From the assertions of a suite to the plan of a gate for a date."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from types import MappingProxyType

from dqx_airflow.dql import nodes
from dqx_airflow.dql.checks.profile_rules import is_required
from dqx_airflow.dql.checks.suite import IMPLICIT_CHECK
from dqx_airflow.dql.constants import settle
from dqx_airflow.dql.printer import show_for_each, show_where
from dqx_airflow.dql.walk import joined
from dqx_airflow.errors import RequestError
from dqx_airflow.metrics.metric import Scan
from dqx_airflow.plan import claim_compiler, model
from dqx_airflow.plan.adjustments import Adjustment, active_profiles, adjust
from dqx_airflow.plan.groupings import columns_of, groupings_of, judged_groups
from dqx_airflow.plan.measurements import reading_of
from dqx_airflow.plan.predicates import lookups_of
from dqx_airflow.values import DatasetRef, RunOptions, Severity, SourceFile, Span

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
        stated = chosen.stated
        kept = chosen.kept
    assertions: list[model.PlannedAssertion] = []
    if not options.allow_empty:
        assertions += [_not_empty(ref, on) for ref in datasets]
    strict = (ref for ref in datasets if ref.is_of_texts and not ref.is_lenient)
    assertions += [_well_formed(ref, on, stated) for ref in strict]
    assertions += kept
    threshold = suite.availability_threshold
    requests = _requests_behind(assertions, datasets, on)
    return model.Plan(
        suite=suite.name.value,
        date=on,
        availability_threshold=(
            DEFAULT_AVAILABILITY_THRESHOLD if threshold is None else float(threshold.value)
        ),
        assertions=tuple(assertions),
        requests=requests,
        lookups=lookups_of(*requests),
        masked={ref.name: ref.masked for ref in datasets if ref.masked},
        require_history=suite.requires_history,
        reads={ref.name: reading_of(ref, on) for ref in datasets},
        partial=chosen.partial if chosen is not None else None,
        ansi=options.ansi,
        max_clock_skew_hours=options.max_clock_skew_hours,
        watched=suite.watched,
    )


def _requests_behind(
    assertions: Iterable[model.PlannedAssertion], datasets: Iterable[DatasetRef], on: date
) -> tuple[model.MetricRequest, ...]:
    """The requests of assertions, and the row counts that show whether there is data, each once."""
    requests: dict[model.MetricRequest, None] = {}
    for assertion in assertions:
        if assertion.disabled_by is None:
            requests |= dict.fromkeys((*assertion.requests, *assertion.history))
    for request in tuple(requests):
        if request.definition.scan is Scan.FLAT:
            requests[model.row_count(request.dataset, request.date)] = None
        if request.where is not None and request.date in (None, on):
            # Shows whether any row satisfies the filter.
            requests[model.row_count(request.dataset, request.date, request.where)] = None
    for ref in datasets:
        requests[model.row_count(ref.name, claim_compiler.date_in(ref, on))] = None
    return tuple(requests)


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
        name=f"{rows.dataset}.{name}",
        check=IMPLICIT_CHECK,
        datasets=(rows.dataset,),
        expression=expression,
        term=model.Measured(rows),
        condition=model.PlannedCondition(op, (model.ConstantTerm(0),), text),
        severity=Severity.P1,
        is_implicit=True,
    )


def _planned(
    assertion: nodes.Assertion,
    terms: claim_compiler.TermCompiler,
    adjustment: Adjustment,
    lines: Mapping[str, Sequence[str]],
    names: set[str],
) -> model.PlannedAssertion:
    """An assertion with its terms, its condition and the effect of the profiles.

    :param names: the names in use, to which a generated one is added.
    """
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
        name=name,
        check=check.name.value,
        datasets=datasets,
        expression=text,
        term=term,
        condition=condition,
        severity=adjustment.severity,
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
    if name not in names:
        return name
    number = 2
    while f"{name}_{number}" in names:
        number += 1
    return f"{name}_{number}"


def _slug(text: str) -> str:
    return re.sub(r"\W+", "_", text.lower()).strip("_")
