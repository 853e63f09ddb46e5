"""The kinds of demands on data that contracts make, each with all that its readers ask of it.

A kind is a class: its words, its quality dimension, what identifies it, which of its fields make it
stricter, what it claims in DQL, and its form in other tools. All demands on a column except
`Required` and `Presence` are about the values that are not NULL.
"""

from __future__ import annotations

from dqx_airflow.contracts.demand import *  # noqa: F403
from dqx_airflow.contracts.demand import Demand
from dqx_airflow.contracts.demands.columns import *  # noqa: F403
from dqx_airflow.contracts.demands.deliveries import *  # noqa: F403
from dqx_airflow.contracts.demands.measures import *  # noqa: F403
from dqx_airflow.contracts.demands.values import *  # noqa: F403

KINDS: tuple[type[Demand], ...] = tuple(
    kind
    for kind in list(globals().values())
    if isinstance(kind, type) and issubclass(kind, Demand) and not kind.__subclasses__()
)
"""All kinds of demands."""
