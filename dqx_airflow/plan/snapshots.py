"""The snapshot of a dataset in a report: its location, number of rows, and what was measured."""

from __future__ import annotations

from dqx_airflow.metrics.metric import ArgumentKind
from dqx_airflow.plan.masks import reveals
from dqx_airflow.plan.model import MetricRequest, Plan, Scanned, row_count
from dqx_airflow.values import DatasetField, DatasetRef, DatasetSnapshot, MetricResult


def snapshot_of(
    ref: DatasetRef,
    plan: Plan,
    scanned: Scanned,
    *,
    location: str | None = None,
    version: int | None = None,
    fields: tuple[DatasetField, ...] = (),
) -> DatasetSnapshot:
    """The snapshot of a dataset on the date of the plan; for an unreadable one only its
    location."""
    on = plan.date if ref.date_column else None
    rows = scanned.values.get(row_count(ref.name, on))
    return DatasetSnapshot(
        name=ref.name,
        location=location or ref.location,
        format=_format_of(ref),
        version=version,
        rows=rows if isinstance(rows, int) else None,
        fields=fields,
        metrics=tuple(
            MetricResult(request.metric, _column_of(request), value)
            for request, value in scanned.values.items()
            if request.dataset == ref.name
            and request.date == on
            and request.where is None
            and _is_of_one_column(request)
            and not reveals(request, plan.masked)
        ),
        lineage_name=ref.lineage_name,
    )


def _format_of(ref: DatasetRef) -> str:
    if ref.table is not None and ref.conn_id is None:
        return "table"
    return "query" if ref.query else ref.format


def _is_of_one_column(request: MetricRequest) -> bool:
    metric = request.definition
    kinds = [argument.kind for argument in metric.arguments]
    return not metric.is_internal and kinds in ([], [ArgumentKind.COLUMN]) and not metric.parameters


def _column_of(request: MetricRequest) -> str | None:
    return str(request.arguments[0]) if request.arguments else None
