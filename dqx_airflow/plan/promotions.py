"""The verdict on a promotion that was refused."""

from __future__ import annotations

from dqx_airflow.dql.check import IMPLICIT_CHECK
from dqx_airflow.values import Severity, Status, Verdict


def not_promoted(dataset: str, target: str, reason: str, severity: Severity) -> Verdict:
    """Rows hold what is asserted of them, and the place where they are to go does not take them.

    :param severity: that of what fails the gate: it must not be green.
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
