"""The context of the task that runs a gate: its key, its attempt, its lineage parent."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

from dqx_airflow.values import Attempt, GateOrigin, ParentRun, RunKey


def run_key_of(context: Any, gate: str | None, on: date) -> RunKey:
    """The run key of a task run. Every map index is a separate run."""
    ti = context["ti"]
    map_index = getattr(ti, "map_index", -1)
    suffix = f"[{map_index}]" if isinstance(map_index, int) and map_index >= 0 else ""
    return RunKey(gate or f"{ti.dag_id}.{ti.task_id}", on, f"{ti.run_id}{suffix}")


def attempt_of(context: Any) -> Attempt:
    """Airflow gives each try of a task instance an id of its own, also after a clear."""
    ti = context["ti"]
    return Attempt(int(ti.try_number), str(ti.id))


def lineage_parent_of(context: Any) -> ParentRun | None:
    """The OpenLineage run of this task; None if the OpenLineage provider is not installed."""
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


def origin_of(task: Any, source: Path | None) -> GateOrigin:
    """The owner and the documentation of the task, and the location of its suite or contract.

    Airflow's default owner is ignored.
    """
    from airflow.providers.common.compat.sdk import conf

    from dqx_airflow.values.source_location import source_location

    default = conf.get("operators", "default_owner", fallback="airflow")
    written = (getattr(task, name, None) for name in ("doc_md", "doc", "doc_rst"))
    return GateOrigin(
        owner=task.owner if task.owner != default else None,
        documentation=next(filter(None, written), None),
        source=None if source is None else source_location(source),
    )
