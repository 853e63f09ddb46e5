"""The statements that migrate a Delta table from one version of its contract to the next.

Compatible changes are made at once. Breaking changes are spread over releases, so that readers have
time: the successor is added, then filled while the old column is deprecated, and in the release
with the major bump the old column is dropped.
"""

from dqx_airflow.contracts.evolve.evolution import evolution, versioned_evolution
from dqx_airflow.contracts.evolve.plan import Evolution

__all__ = ["Evolution", "evolution", "versioned_evolution"]
