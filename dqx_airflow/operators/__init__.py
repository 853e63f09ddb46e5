"""Gate operators. With `ui`, the only package that imports Airflow; it never imports pyspark.

The names are imported on first use: the UI needs some modules of this package in processes in which
the Spark provider may not be installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dqx_airflow import lazy_names

if TYPE_CHECKING:
    from dqx_airflow.operators.contract_gate import ContractGateOperator as ContractGateOperator
    from dqx_airflow.operators.contract_gate import contract_deadline as contract_deadline
    from dqx_airflow.operators.dql_gate import DqlGateOperator as DqlGateOperator
    from dqx_airflow.operators.exceptions import GateBlockedError as GateBlockedError
    from dqx_airflow.operators.exceptions import GateBrokenError as GateBrokenError
    from dqx_airflow.operators.exceptions import GateInfrastructureError as GateInfrastructureError
    from dqx_airflow.operators.exceptions import GateMisconfiguredError as GateMisconfiguredError
    from dqx_airflow.operators.exceptions import GateTimeoutError as GateTimeoutError
    from dqx_airflow.operators.gate_batch import GateBatchOperator as GateBatchOperator
    from dqx_airflow.operators.notifications import GateNotification as GateNotification
    from dqx_airflow.operators.notifications import gate_notification as gate_notification
    from dqx_airflow.operators.notifications import notify_on_change as notify_on_change
    from dqx_airflow.operators.notifications import notify_with as notify_with
    from dqx_airflow.operators.toml_gates import gates_of as gates_of

_NAMES, __getattr__ = lazy_names(
    __name__,
    {
        "contract_gate": "ContractGateOperator contract_deadline",
        "dql_gate": "DqlGateOperator",
        "exceptions": "GateBlockedError GateBrokenError GateInfrastructureError "
        "GateMisconfiguredError GateTimeoutError",
        "gate_batch": "GateBatchOperator",
        "notifications": "GateNotification gate_notification notify_on_change notify_with",
        "toml_gates": "gates_of",
    },
)

__all__ = [*_NAMES]  # noqa: PLE0604 (the names of the table)
