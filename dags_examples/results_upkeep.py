"""Keeps the results store small and quick: merges its files, and deletes what is old.

prune -> optimize -> vacuum

Gates may run meanwhile. A task that is interrupted goes on where it was when it is tried again.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from airflow.sdk import DAG, task

KEEP_RESULTS = timedelta(days=400)
KEEP_REPLACED_FILES = timedelta(days=7)


def store() -> dict[str, Any]:
    """Where the gates of this Airflow keep their results."""
    from dqx_airflow.operators.results_location import results_place

    place = results_place()
    if place is None:
        raise ValueError("set results_root or results_conn_id in section [dqx]")
    return {"root": place.root, "storage_options": place.storage_options}


@task
def prune() -> None:
    """Deletes the runs that finished long ago."""
    from dqx_airflow.results import upkeep

    for table in upkeep.prune(older_than=KEEP_RESULTS, **store()):
        print(table)


@task
def optimize() -> None:
    """Merges small files, so that opening and reading the store stays quick."""
    from dqx_airflow.results import upkeep

    for table in upkeep.optimize(**store()):
        print(table)


@task
def vacuum() -> None:
    """Deletes the files that were replaced a week ago."""
    from dqx_airflow.results import upkeep

    for table in upkeep.vacuum(keep=KEEP_REPLACED_FILES, **store()):
        print(table)


with DAG(
    "results_upkeep",
    description="Keeps the results store small and quick.",
    start_date=datetime(2026, 1, 1),
    schedule="@daily",
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2},
    tags=["dqx", "example"],
):
    prune() >> optimize() >> vacuum()
