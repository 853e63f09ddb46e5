"""The request of a task run of a gate: templates rendered, source inlined, locations checked; with
the key of the run, its attempt and its lineage parent from the context of the task.

Only a worker needs its imports: this module is imported where a gate runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dqx_airflow.datasets.settings import check_locations, check_promotion, check_quarantine
from dqx_airflow.errors import RequestError
from dqx_airflow.operators.data_date import date_of_run, given_date
from dqx_airflow.operators.datasets import (
    dataset_ref,
    max_bad_rows,
    promotions,
    quarantine_paths,
    slice_values,
    with_databases,
)
from dqx_airflow.operators.exceptions import GateMisconfigured
from dqx_airflow.operators.results_location import ResultsLocation, require_results_location
from dqx_airflow.values import (
    Attempt,
    GateOrigin,
    GatePart,
    GateRequest,
    ParentRun,
    RunKey,
    Severity,
)
from dqx_airflow.values.request import SETTABLE_OPTIONS, require_whole_run

if TYPE_CHECKING:
    from dqx_airflow.datasets.connections import DatabaseConnection
    from dqx_airflow.datasets.settings import DatasetSetting
    from dqx_airflow.operators.data_date import DataDate
    from dqx_airflow.operators.gate_arguments import GateArguments
    from dqx_airflow.values import SourceFile


_AS_GIVEN = (*SETTABLE_OPTIONS, "recompute", "sample_rows", "promote_partial", "accept_required")
"""The arguments that the request takes over by name."""


def build_request(
    gate: GateArguments,
    context: Any,
    chosen: DataDate,
    source: SourceFile,
    settings: Mapping[str, DatasetSetting],
    origin: GateOrigin,
    execution_timeout: timedelta | None,
) -> tuple[GateRequest, ResultsLocation, Mapping[str, DatabaseConnection]]:
    """The request, where its results go, and the databases of its datasets by connection ID.

    :raises GateMisconfigured: the gate cannot run as it is written.
    """
    location = require_results_location(gate.results_root, gate.results_conn_id)
    datasets, databases = with_databases(
        dataset_ref(str(name), given, trust_log=gate.trust_log) for name, given in settings.items()
    )
    timeouts = [_seconds(timeout) for timeout in (gate.timeout, execution_timeout) if timeout]
    request = GateRequest(
        run_key=run_key_of(context, gate.gate, chosen.on),
        attempt=attempt_of(context),
        suite=source,
        datasets=datasets,
        results_root=location.root,
        parent=lineage_parent_of(context),
        timeout_s=min(timeouts, default=None),
        quarantine=quarantine_paths(gate.quarantine, tuple(map(str, settings))),
        promote_to=promotions(gate.promote_to, tuple(map(str, settings))),
        date_from=chosen.source,
        promote_slice=slice_values(gate.promote_slice),
        origin=origin,
        selection=gate.selection,
        promote_blocked=bool(gate.promote_blocked),
        promote_valid=max_bad_rows(gate.promote_valid),
        **{name: getattr(gate, name) for name in _AS_GIVEN},
    )
    request = replace(request, fail_on=Severity(gate.fail_on))
    parts = (GatePart(replace(request.run_key, date=on)) for on in chosen.later)
    request = replace(request, more=tuple(parts))
    if chosen.objection and (dated := [ref.name for ref in request.datasets if ref.date_column]):
        raise GateMisconfigured(
            f"the date of dataset '{dated[0]}' is ambiguous: {chosen.objection}"
        )
    try:
        check_locations(request)
        check_quarantine(request)
        check_promotion(request, [key.date for key in request.run_keys])
        require_whole_run(
            request.selection, request.promote_to, promote_partial=request.promote_partial
        )
    except RequestError as error:
        raise GateMisconfigured(str(error)) from None
    return request, location, databases


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

    from dqx_airflow.values.files import source_location

    default = conf.get("operators", "default_owner", fallback="airflow")
    written = (getattr(task, name, None) for name in ("doc_md", "doc", "doc_rst"))
    return GateOrigin(
        owner=task.owner if task.owner != default else None,
        documentation=next(filter(None, written), None),
        source=None if source is None else source_location(source),
    )


def data_date(given: object, template: object, context: Any, log: Any) -> DataDate:
    """The date of the data, which is also the first thing in the log.

    :param given: the argument `date`, rendered; a value may render to nothing.
    :param template: the argument as written in the DAG.
    :raises GateMisconfigured: it is not a date.
    """
    is_given = template is not None or given is not None
    chosen = given_date(given, template) if is_given else date_of_run(context)
    write = log.info if chosen.objection is None else log.warning
    write("%s", chosen)
    return chosen


def _seconds(given: timedelta | float) -> float:
    return given.total_seconds() if isinstance(given, timedelta) else float(given)
