"""The language: source text to tokens, to a tree with spans, to diagnostics. Pure Python.

Modules above run and tune suites; their public names are re-exported here, imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dqx_airflow.api.suite import Interpreter as Interpreter
    from dqx_airflow.api.suite import Suite as Suite
    from dqx_airflow.errors import UpstreamFailure as UpstreamFailure
    from dqx_airflow.tuning.suite_history import History as History
    from dqx_airflow.tuning.tunables import TunableChoice as TunableChoice
    from dqx_airflow.tuning.tunables import TunableFloat as TunableFloat
    from dqx_airflow.tuning.tunables import TunableInt as TunableInt
    from dqx_airflow.tuning.tunables import TunablePercent as TunablePercent

_HOME = {
    "History": "dqx_airflow.tuning.suite_history",
    "Interpreter": "dqx_airflow.api.suite",
    "Suite": "dqx_airflow.api.suite",
    "TunableChoice": "dqx_airflow.tuning.tunables",
    "TunableFloat": "dqx_airflow.tuning.tunables",
    "TunableInt": "dqx_airflow.tuning.tunables",
    "TunablePercent": "dqx_airflow.tuning.tunables",
    "UpstreamFailure": "dqx_airflow.errors",
}

__all__ = [*_HOME]  # noqa: PLE0604 (the names are those of the table)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)
