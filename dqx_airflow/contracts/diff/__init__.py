"""The changes between two versions of a contract, and the version bump that they require."""

from dqx_airflow.contracts.diff.compare import diff
from dqx_airflow.contracts.diff.kinds import Change, Diff

__all__ = ["Change", "Diff", "diff"]
