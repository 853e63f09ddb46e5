"""Keeps the results store small and fast: deletes old runs and merges small files.

prune -> optimize -> vacuum

Gates may run at the same time. A task that was interrupted resumes when it is retried.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from airflow.sdk import DAG, task

KEEP_RESULTS = timedelta(days=400)
KEEP_REPLACED_FILES = timedelta(days=7)


def store() -> dict[str, Any]:
    """The results store that the section [dqx] of the Airflow configuration names."""
    from dqx_airflow.operators.results_location import results_location_of

    location = results_location_of()
    if location is None:
        raise ValueError("set results_root or results_conn_id in section [dqx]")
    return {"root": location.root, "storage_options": location.storage_options}


@task
def prune() -> None:
    """Deletes the runs that finished more than 400 days ago."""
    from dqx_airflow.results import upkeep

    for table in upkeep.prune(older_than=KEEP_RESULTS, **store()):
        print(table)


@task
def optimize() -> None:
    """Merges small files, so that the store opens fast."""
    from dqx_airflow.results import upkeep

    for table in upkeep.optimize(**store()):
        print(table)


@task
def vacuum() -> None:
    """Deletes the files that were replaced more than a week ago."""
    from dqx_airflow.results import upkeep

    for table in upkeep.vacuum(keep=KEEP_REPLACED_FILES, **store()):
        print(table)


with DAG(
    "results_upkeep",
    description="Keeps the results store small and fast.",
    start_date=datetime(2026, 1, 1),
    schedule="@daily",
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2},
    tags=["dqx", "example"],
):
    prune() >> optimize() >> vacuum()
