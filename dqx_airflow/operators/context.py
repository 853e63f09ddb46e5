"""What a gate needs of the task that runs it: its key, its attempt, its lineage parent."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from dqx_airflow.values import Attempt, ParentRun, RunKey


def run_key_of(context: Any, gate: str | None, on: date) -> RunKey:
    """The run key of a task run. Every map index is a run of its own."""
    ti = context["ti"]
    map_index = getattr(ti, "map_index", -1)
    suffix = f"[{map_index}]" if isinstance(map_index, int) and map_index >= 0 else ""
    return RunKey(gate or f"{ti.dag_id}.{ti.task_id}", on, f"{ti.run_id}{suffix}")


def attempt_of(context: Any) -> Attempt:
    """Airflow gives each try of a task instance an id of its own, also after a clear."""
    ti = context["ti"]
    return Attempt(int(ti.try_number), str(ti.id))


def date_of(context: Any, given: object) -> date:
    """The date of the data: as given, else the logical date of the run, else the day it is due.

    The date of a moment is the one it is written with, as in `{{ ds }}`.

    :raises ValueError: what is given is no date.
    """
    # A template may yield a moment, or, with native rendering, a date or a number like 20240517.
    text = "" if given is None else str(given).strip()
    if text:
        try:
            return date.fromisoformat(text)
        except ValueError:
            return datetime.fromisoformat(text.replace("Z", "+00:00")).date()
    run = context["dag_run"]
    when = getattr(run, "logical_date", None) or run.run_after
    return date(when.year, when.month, when.day)


def lineage_parent_of(context: Any) -> ParentRun | None:
    """The OpenLineage run of this task; None where the OpenLineage provider is not installed."""
    try:
        from airflow.providers.openlineage.plugins import macros
    except ImportError:
        return None
    ti = context["ti"]
    return ParentRun(
        namespace=macros.lineage_job_namespace(),
        job=macros.lineage_job_name(ti),
        run_id=macros.lineage_run_id(ti),
        root_namespace=macros.lineage_root_job_namespace(ti),
        root_job=macros.lineage_root_job_name(ti),
        root_run_id=macros.lineage_root_run_id(ti),
    )
