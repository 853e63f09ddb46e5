"""Reads DAG files as Airflow does, whatever its version."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def read_dags(path: Path) -> dict[str, Any]:
    """The DAGs of a file by their ids.

    :raises ImportError: the file cannot be imported.
    """
    bag = _bag(path)
    if bag.import_errors:
        raise ImportError("\n".join(bag.import_errors.values()))
    return dict(bag.dags)


def read_folder(path: Path) -> tuple[set[str], dict[str, str]]:
    """The ids of the DAGs of a folder, and its import errors by file."""
    bag = _bag(path)
    return set(bag.dags), dict(bag.import_errors)


def _bag(path: Path) -> Any:
    try:
        from airflow.dag_processing.dagbag import DagBag
    except ImportError:  # Airflow before 3.2
        from airflow.models.dagbag import DagBag
    return DagBag(dag_folder=str(path))
