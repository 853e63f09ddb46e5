"""What a suite requires of a gate: of its datasets, and of its `fail_on`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.dql import nodes
from dqx_airflow.dql.checks.assertions import datasets_of
from dqx_airflow.dql.checks.profile_rules import check_downgrades
from dqx_airflow.dql.walk import simple_claims
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.derived import AGES, CHANGES, WINDOWS
from dqx_airflow.values import DatasetRef, Severity, Span


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
        named_datasets = [name.text for name in check.datasets]
        undated = [
            name for name in named_datasets if name in by_name and by_name[name].date_column is None
        ]
        for call in _lagged_metrics(check):
            named = call.parameter("dataset")
            name = named.text if isinstance(named, nodes.Name) else named_datasets[0]
            if name in undated:
                message = f"this needs `{call.name.text}` on other dates, but '{name}' has no dates"
                help_line = f"set the date_column of dataset '{name}' in the gate"
                mistakes.append(Diagnostic(message, call.span, code="E111", help=help_line))
    return tuple(mistakes)


def _lagged_metrics(check: nodes.Check) -> Iterator[nodes.Call]:
    """The metric calls of a check for dates other than the target date."""
    claims = (claim for assertion in check.assertions for claim in simple_claims(assertion.claim))
    for claim in claims:
        if not isinstance(claim, nodes.Measure):
            continue
        is_lagged = isinstance(claim.condition, nodes.WithinStddev)
        yield from _lagged_in(claim.expression, is_lagged)
        for bound in nodes.bounds_of(claim.condition):
            yield from _lagged_in(bound, False)


def _lagged_in(node: nodes.Expression, is_lagged: bool) -> Iterator[nodes.Call]:
    match node:
        case nodes.Call(name=name, arguments=arguments):
            is_lagged |= name.text in (*CHANGES, *WINDOWS)
            is_lagged |= node.parameter("lag") is not None
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
