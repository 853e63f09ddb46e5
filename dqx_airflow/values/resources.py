"""Finds the folders that ship with the package but are not part of it: jobs and example DAGs."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def shipped(path: str) -> Path:
    """The file or folder `path`, such as `spark_jobs/gate_job.py`.

    In a checkout it is next to the package, in an installed wheel inside of it.

    :raises FileNotFoundError: it is in neither place.
    """
    for home in (_PACKAGE.parent, _PACKAGE):
        if (home / path).exists():
            return home / path
    raise FileNotFoundError(f"{path} is missing: reinstall dqx-airflow")
