"""The statements that bring a Delta table from one version of its contract to the next.

What breaks nobody is done at once. What breaks is spread over releases, so that readers have time:
the successor is added, then filled while the old column is deprecated, and in the release with the
major bump the old column is dropped.
"""

from dqx_airflow.contracts.evolve.evolution import evolution, versioned_evolution
from dqx_airflow.contracts.evolve.plan import Evolution

__all__ = ["Evolution", "evolution", "versioned_evolution"]
