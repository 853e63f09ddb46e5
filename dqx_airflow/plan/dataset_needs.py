"""Checks that a gate has the datasets of its suite, and their date columns; and that its suites
are about the datasets that it promotes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.dql import nodes
from dqx_airflow.dql.checks.assertions import datasets_of
from dqx_airflow.dql.checks.profile_rules import check_downgrades
from dqx_airflow.dql.walk import simple_claims
from dqx_airflow.errors import RequestError
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.calls import AGES, CHANGES, WINDOWS
from dqx_airflow.metrics.drift import DRIFT
from dqx_airflow.values import DatasetRef, Severity, Span


def check_datasets(
    suite: nodes.Suite, datasets: Sequence[DatasetRef], fail_on: Severity = Severity.P1
) -> tuple[Diagnostic, ...]:
    """The requirements that the datasets of a gate do not meet: a name, a date column; and profiles
    by which required assertions would not block with this `fail_on`.
    """
    by_name = {dataset.name: dataset for dataset in datasets}
    mistakes: list[Diagnostic] = []
    if fail_on is not Severity.P1:  # with P1, they are errors of the suite itself
        mistakes += check_downgrades(suite, fail_on)
    mistakes += _missing_datasets(suite, by_name)
    mistakes += _missing_dates(suite, by_name)
    return tuple(mistakes)


def unchecked_promotion(dataset: str, target: str) -> RequestError:
    """The error of a gate that would promote a dataset of which it would judge nothing but that it
    has rows: one that only serves to look up the values of another one."""
    return RequestError(
        f"dataset '{dataset}' would be promoted to {target}, and no assertion is about it",
        "add a check on it, or remove it from promote_to",
    )


def _missing_datasets(
    suite: nodes.Suite, by_name: Mapping[str, DatasetRef]
) -> Iterator[Diagnostic]:
    names = ", ".join(by_name) or "none"
    for name in datasets_of(suite.checks):
        if name not in by_name:
            yield Diagnostic(
                f"the gate has no dataset '{name}'",
                _first_mention(suite, name),
                code="E009",
                help=f"its datasets are: {names}; add '{name}', or correct the suite",
            )


def _missing_dates(suite: nodes.Suite, by_name: Mapping[str, DatasetRef]) -> Iterator[Diagnostic]:
    """Errors about metrics on other dates of datasets that have no dates."""
    for check in suite.checks:
        for call in _lagged_metrics(check):
            named = call.parameter("dataset")
            name = named.text if isinstance(named, nodes.Name) else check.datasets[0].text
            if name in by_name and by_name[name].date_column is None:
                message = f"this needs `{call.name.text}` on other dates, but '{name}' has no dates"
                help_line = f"set the date_column of dataset '{name}' in the gate"
                yield Diagnostic(message, call.span, code="E111", help=help_line)


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
