"""What the OpenLineage events of a gate's task say of the data, in the words of the SQL checks.

The job sends events of its own, about a run of its own that has the run of the task as its parent;
these here are those of the task. The OpenLineage provider of Airflow is optional: it alone calls
these functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dqx_airflow.dataset_settings import DatasetSetting, dataset_ref
from dqx_airflow.errors import RequestError
from dqx_airflow.values import DatasetRef, GateReport, GateRequest


def lineage_before(datasets: Any) -> Any:
    """The datasets of a gate that has not begun, as far as they are known."""
    from airflow.providers.openlineage.extractors import OperatorLineage

    from dqx_airflow.lineage.events import bare_inputs

    return OperatorLineage(inputs=bare_inputs(_refs(datasets)))


def lineage_after(request: GateRequest, report: GateReport) -> Any:
    """The datasets with their verdicts, those to which rows were promoted, and all tests."""
    from airflow.providers.openlineage.extractors import OperatorLineage

    from dqx_airflow.lineage import events, facets

    catalog = request.parent.namespace if request.parent else events.DEFAULT_NAMESPACE
    return OperatorLineage(
        inputs=events.inputs(request, report, catalog=catalog),
        outputs=events.promoted(report, catalog=catalog),
        run_facets={"test": facets.tests(report)},
    )


def _refs(datasets: Any) -> tuple[DatasetRef, ...]:
    """Without any `DatasetRef`: its templates are rendered when the gate begins."""
    given: Mapping[str, DatasetSetting] = datasets if isinstance(datasets, Mapping) else {}
    found = []
    for name, setting in given.items():
        if not isinstance(setting, DatasetRef):
            try:
                found.append(dataset_ref(str(name), setting))
            except RequestError:
                continue  # the gate will say so
    return tuple(found)
