"""The language: source text to tokens, to a tree with spans, to diagnostics. Pure Python.

Modules above run and tune suites; their public names are re-exported here, imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dqx_airflow import lazy_names

if TYPE_CHECKING:
    from dqx_airflow.api.suite import Interpreter as Interpreter
    from dqx_airflow.api.suite import Suite as Suite
    from dqx_airflow.errors import UpstreamFailure as UpstreamFailure
    from dqx_airflow.tuning.suite_history import History as History
    from dqx_airflow.tuning.tunables import TunableChoice as TunableChoice
    from dqx_airflow.tuning.tunables import TunableFloat as TunableFloat
    from dqx_airflow.tuning.tunables import TunableInt as TunableInt
    from dqx_airflow.tuning.tunables import TunablePercent as TunablePercent

_NAMES, __getattr__ = lazy_names(
    __name__,
    {
        "tuning.suite_history": "History",
        "api.suite": "Interpreter Suite",
        "tuning.tunables": "TunableChoice TunableFloat TunableInt TunablePercent",
        "errors": "UpstreamFailure",
    },
    "dqx_airflow",
)

__all__ = [*_NAMES]  # noqa: PLE0604 (the names are in the table)
