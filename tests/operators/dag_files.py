"""Reads DAG files as Airflow does, whatever its version."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def read_dags(path: Path) -> dict[str, Any]:
    """The DAGs of a file by their ids.

    :raises ImportError: the file cannot be imported.
    """
    try:
        from airflow.dag_processing.dagbag import DagBag
    except ImportError:  # Airflow before 3.2
        from airflow.models.dagbag import DagBag
    bag = DagBag(dag_folder=str(path))
    if bag.import_errors:
        raise ImportError("\n".join(bag.import_errors.values()))
    return dict(bag.dags)
