"""The changes between two versions of a contract, and the version bump that they require."""

from dqx_airflow.contracts.diff.change import Change, ChangeClass, Diff
from dqx_airflow.contracts.diff.compare import diff

__all__ = ["Change", "ChangeClass", "Diff", "diff"]
