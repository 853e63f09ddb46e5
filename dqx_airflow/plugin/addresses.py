"""The addresses of our pages, and of Airflow's own, each relative to any of ours.

Airflow itself may live below a path of its host, so none of them begins with a slash.
"""

from __future__ import annotations

from urllib.parse import quote, urlencode

from dqx_airflow.plugin.airflow import TaskRef, TaskRun
from dqx_airflow.values import RunKey


def address(page: str, /, **query: object) -> str:
    """The address of one of our pages, without empty parameters."""
    given = {name: str(value) for name, value in query.items() if value not in ("", None)}
    return f"{page}?{urlencode(given, errors='replace')}" if given else page


def gate_address(run: TaskRun | TaskRef, attempt: str = "", status: str = "") -> str:
    """The tab of a task instance as a separate page; optionally of one of its attempts, with its
    assertions of one status."""
    return address(
        "gate",
        dag_id=run.dag_id,
        run_id=run.run_id,
        task_id=run.task_id,
        map_index=run.map_index,
        attempt=attempt,
        status=status,
    )


def runs_address(dag_id: str, task_id: str, map_index: int = -1) -> str:
    """The list of the runs of a gate; optionally of one instance of a mapped one."""
    instance = map_index if map_index >= 0 else ""
    return address("runs", dag_id=dag_id, task_id=task_id, instance=instance)


def incident_address(dag_id: str, task_id: str, map_index: int = -1, on: object = "") -> str:
    """The incident of a gate: the newest, or that of a date of its data."""
    instance = map_index if map_index >= 0 else ""
    return address("incident", dag_id=dag_id, task_id=task_id, instance=instance, on=on)


def report_address(dag_id: str, task_id: str, key: RunKey, attempt: str, report: str = "") -> str:
    """The page of an attempt's report; of several reports that of a run id."""
    return address(
        "gate",
        dag_id=dag_id,
        run_id=key.dag_run_id,
        task_id=task_id,
        map_index=key.map_index,
        attempt=report_name(attempt, report),
    )


def report_name(attempt: str, report: str = "") -> str:
    """The part of an address that identifies a report: its attempt, and its run id if there are
    several."""
    return f"{attempt}/{report}" if report else attempt


def dag_address(dag_id: str) -> str:
    """The DAG in Airflow."""
    return f"../dags/{_part(dag_id)}"


def dag_run_address(dag_id: str, run_id: str) -> str:
    """The run of a DAG in Airflow."""
    return f"{dag_address(dag_id)}/runs/{_part(run_id)}"


def task_address(run: TaskRun) -> str:
    """The task instance in Airflow, which opens with its log."""
    instance = f"/mapped/{run.map_index}" if run.map_index >= 0 else ""
    return f"{dag_run_address(run.dag_id, run.run_id)}/tasks/{_part(run.task_id)}{instance}"


def _part(text: str) -> str:
    return quote(text, safe="", errors="replace")
