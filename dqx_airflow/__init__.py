"""Gates between the tasks of an Airflow pipeline: bad data stops here.

Importing this package imports nothing heavy: the public names are looked up when they are used.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"

_HOME = {
    "DatasetRef": "dqx_airflow.values",
    "GateReport": "dqx_airflow.values",
    "GateRequest": "dqx_airflow.values",
    "Outcome": "dqx_airflow.values",
    "Severity": "dqx_airflow.values",
    "Status": "dqx_airflow.values",
    "Verdict": "dqx_airflow.values",
    "DqlGateOperator": "dqx_airflow.operators",
}

__all__ = [  # noqa: PLE0604 (the names are those of the table)
    "__version__",
    *_HOME,
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)


def get_provider_info() -> dict[str, Any]:
    """What Airflow shows of this package under Admin, Providers. Called in every process."""
    return {
        "package-name": "dqx-airflow",
        "name": "DQX gates",
        "description": "Gate operators that stop bad data between two tasks of a pipeline.",
        "versions": [__version__],
        "operators": [
            {"integration-name": "DQX", "python-modules": ["dqx_airflow.operators.dql_gate"]}
        ],
    }
