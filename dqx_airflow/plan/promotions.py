"""The verdict on a promotion that was rejected."""

from __future__ import annotations

from dqx_airflow.dql.checks.suite import IMPLICIT_CHECK
from dqx_airflow.values import Severity, Status, Verdict


def not_promoted(dataset: str, target: str, reason: str, severity: Severity) -> Verdict:
    """The rows satisfy the assertions, but the target does not take them.

    :param severity: one that fails the gate, which must not be green.
    """
    return Verdict(
        name=f"{dataset}.promoted",
        check=IMPLICIT_CHECK,
        datasets=(dataset,),
        expression=f"promotion to {target}",
        expected="the target accepts the rows",
        severity=severity,
        status=Status.ERROR,
        reason=f"the rows passed, but cannot be promoted to {target}: {reason}",
    )
