"""What the OpenLineage events of a gate's task contain, for Airflow's OpenLineage provider.

The job of a gate sends events of its own, about a run that has the run of the task as its parent.
They name the datasets, wait in a spool where the server is down, and come from wherever the job
runs. The task names the datasets only where its job sends no events: a catalog would otherwise
have two jobs with the same edges. The provider is optional: it alone calls these functions.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from dqx_airflow.datasets.settings import DatasetSetting, dataset_ref
from dqx_airflow.errors import RequestError
from dqx_airflow.lineage import is_configured
from dqx_airflow.values import DatasetRef, GateReport, GateRequest

_OF_DRIVERS = ("spark.yarn.appMasterEnv.", "spark.kubernetes.driverEnv.")


class Stated(list[Any]):
    """Datasets as they are, even if there are none.

    Airflow's provider takes an empty list for an unknown one, and would name the outlets of the
    task as outputs, even for a run that blocked.
    """

    def __bool__(self) -> bool:
        return True


def job_sends_events(
    env_vars: Mapping[str, Any] | None, conf: Mapping[str, Any] | None, *, is_driver_here: bool
) -> bool:
    """True if the job of a gate is known to find a configuration of OpenLineage.

    Of a driver in a cluster only the task's own settings are known.
    """
    env = {name: str(value) for name, value in (env_vars or {}).items()}
    for setting, value in (conf or {}).items():
        for prefix in _OF_DRIVERS:
            if setting.startswith(prefix):
                env[setting.removeprefix(prefix)] = str(value)
    if is_driver_here:
        return is_configured({**os.environ, **env})
    return any(name.startswith("OPENLINEAGE") for name in env) and is_configured(env)


def no_datasets() -> Any:
    """The lineage of the task if its job names the datasets."""
    from airflow.providers.openlineage.extractors import OperatorLineage

    return OperatorLineage(inputs=Stated(), outputs=Stated())


def lineage_before(settings: Iterable[tuple[str, Any]]) -> Any:
    """The datasets of a gate that has not begun, as far as they are known.

    :param settings: pairs of a dataset and its settings in the DAG.
    """
    from airflow.providers.openlineage.extractors import OperatorLineage

    from dqx_airflow.lineage.events import bare_inputs

    return OperatorLineage(inputs=Stated(bare_inputs(_refs(settings))), outputs=Stated())


def lineage_after(request: GateRequest, report: GateReport) -> Any:
    """The datasets with their verdicts, those to which rows were promoted, and all tests."""
    from airflow.providers.openlineage.extractors import OperatorLineage

    from dqx_airflow.lineage import events

    catalog = request.parent.namespace if request.parent else events.DEFAULT_NAMESPACE
    return OperatorLineage(
        inputs=Stated(events.inputs(request, report, catalog=catalog)),
        outputs=Stated(events.promoted(report, catalog=catalog)),
        run_facets={"test": events.tests(report)},
    )


def _refs(settings: Iterable[tuple[str, DatasetSetting]]) -> tuple[DatasetRef, ...]:
    """Without any `DatasetRef`: its templates are rendered when the gate begins."""
    refs = []
    for name, setting in settings:
        if not isinstance(setting, DatasetRef):
            try:
                refs.append(dataset_ref(str(name), setting))
            except RequestError:
                continue  # the gate will report it
    return tuple(refs)
