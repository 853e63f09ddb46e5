"""Gate operators. With `plugin`, the only house that imports Airflow; it never imports pyspark."""

from dqx_airflow.operators.dql_gate import DqlGateOperator
from dqx_airflow.operators.outcome import (
    GateBlocked,
    GateBroken,
    GateInfrastructureError,
    GateMisconfigured,
)

__all__ = [
    "DqlGateOperator",
    "GateBlocked",
    "GateBroken",
    "GateInfrastructureError",
    "GateMisconfigured",
]
