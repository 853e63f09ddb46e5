"""The kinds of demands on data that contracts make, each with everything that its readers need.

A kind is a class: its wording, its quality dimension, the fields that identify it and that make it
stricter, its claim in DQL, and its form in other tools. All demands on a column except
`Required` and `Presence` are about the values that are not NULL.
"""

from __future__ import annotations

from dqx_airflow.contracts.demand import *  # noqa: F403
from dqx_airflow.contracts.demand import Demand
from dqx_airflow.contracts.demands.columns import *  # noqa: F403
from dqx_airflow.contracts.demands.deliveries import *  # noqa: F403
from dqx_airflow.contracts.demands.keys import *  # noqa: F403
from dqx_airflow.contracts.demands.measures import *  # noqa: F403
from dqx_airflow.contracts.demands.queries import *  # noqa: F403
from dqx_airflow.contracts.demands.values import *  # noqa: F403

KINDS: tuple[type[Demand], ...] = tuple(
    kind
    for kind in list(globals().values())
    if isinstance(kind, type) and issubclass(kind, Demand) and not kind.__subclasses__()
)
"""All kinds of demands."""
