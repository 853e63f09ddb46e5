"""What changes from one version of a contract to the next, and the bump that is due for it."""

from dqx_airflow.contracts.diff.change import Change, ChangeClass, Diff
from dqx_airflow.contracts.diff.compare import diff

__all__ = ["Change", "ChangeClass", "Diff", "diff"]
