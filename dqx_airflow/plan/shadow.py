"""A shadow suite, judged beside the suite of a gate: in the same scan, without affecting the
outcome."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import date, datetime

from dqx_airflow.dql.check import Checked, check_source
from dqx_airflow.dql.imports import Reader, inlined
from dqx_airflow.dql.syntax.source_file import Unreadable
from dqx_airflow.plan.evaluate import decide, evaluate
from dqx_airflow.plan.model import Plan, Scanned, joined
from dqx_airflow.plan.resolve import check_datasets
from dqx_airflow.plan.selection import plan_of
from dqx_airflow.values import (
    DatasetRef,
    GateRequest,
    Severity,
    ShadowReport,
    ShadowSuite,
    SourceFile,
)


def shadow_suite(
    source: SourceFile | Unreadable, read: Reader, datasets: Sequence[DatasetRef], name: str
) -> ShadowSuite:
    """A shadow for a request, with its imports; an error in it becomes its `problem`.

    :param datasets: those of the gate: a shadow must not use others.
    :param name: its name in results.
    """
    if isinstance(source, Unreadable):
        return ShadowSuite(name, problem=source.reason)
    checked = check_source(source, read, needs_suite=True)
    problem = _problem(checked, datasets)
    if problem is not None:
        return ShadowSuite(name, problem=problem)
    return ShadowSuite(name, source, checked.imports)


def shadow_plan(request: GateRequest) -> tuple[Plan | None, str | None]:
    """The plan of the shadow of a request, or why it has none; neither without a shadow."""
    shadow = request.shadow
    if shadow is None:
        return None, None
    if shadow.suite is None:
        return None, shadow.problem or "it has no suite"
    try:
        checked = check_source(shadow.suite, inlined(shadow.imports), needs_suite=True)
        problem = _problem(checked, request.datasets, request.fail_on)
        if problem is not None:
            return None, problem
        # The shadow of a gate with a selection uses the same selection.
        return plan_of(replace(request, suite=shadow.suite, contract=None), checked), None
    except Exception as error:  # whatever it is, the gate goes on without its shadow
        return None, _on_one_line(error)


def with_requests_of(plan: Plan, shadow: Plan | None) -> Plan:
    """The plan with the requests of its shadow, to be measured in the same scans."""
    return plan if shadow is None else joined((plan, shadow))


def shadow_report(
    request: GateRequest,
    planned: tuple[Plan | None, str | None],
    scanned: Scanned,
    skip_dates: Collection[date],
    now: datetime,
) -> ShadowReport | None:
    """The verdicts of the shadow of a request; None if there is no shadow.

    :param planned: the result of `shadow_plan`.
    """
    shadow, (plan, problem) = request.shadow, planned
    if shadow is None:
        return None
    if plan is None:
        return ShadowReport(shadow.name, problem=problem)
    try:
        verdicts = evaluate(plan, scanned, skip_dates, now=now)
        requires = request.require_history or plan.require_history
        outcome = decide(verdicts, request.fail_on, require_history=requires)
    except Exception as error:  # as above
        return ShadowReport(shadow.name, problem=_on_one_line(error))
    return ShadowReport(shadow.name, plan.suite, outcome, verdicts)


def _problem(
    checked: Checked, datasets: Sequence[DatasetRef], fail_on: Severity = Severity.P1
) -> str | None:
    """The first of the errors in one line; None if there are none."""
    errors = list(checked.errors)
    if checked.suite is not None and not errors:
        errors = list(check_datasets(checked.suite, datasets, fail_on))
    if not errors:
        return None if checked.suite is not None else "it has no suite"
    first = errors[0]
    count = f"{len(errors)} errors, the first" if len(errors) > 1 else "an error"
    return f"{count} in {first.span.file}:{first.span.line}: {first.message}"


def _on_one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:400]
