"""Verdicts and snapshots as OpenLineage facets. Pure functions; imports the OpenLineage client."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from openlineage.client.facet_v2 import (
    DatasetFacet,
    InputDatasetFacet,
    data_quality_assertions_dataset,
    data_quality_metrics_dataset,
    data_quality_metrics_input_dataset,
    dataset_version_dataset,
    datasource_dataset,
    output_statistics_output_dataset,
    schema_dataset,
    symlinks_dataset,
    test_run,
)

from dqx_airflow import __version__
from dqx_airflow.lineage import plain
from dqx_airflow.lineage.names import DatasetName
from dqx_airflow.redact import redact_urls
from dqx_airflow.values import (
    DatasetSnapshot,
    GateReport,
    MetricResult,
    Status,
    Verdict,
)

PRODUCER = f"https://github.com/dqx-airflow/dqx-airflow/tree/{__version__}"

ColumnMetrics = TypeVar(
    "ColumnMetrics",
    data_quality_metrics_dataset.ColumnMetrics,
    data_quality_metrics_input_dataset.ColumnMetrics,
)

# Our metric, the standard's field for it, and the numbers which that field takes. What is not
# here (averages, percentiles) has no field in the standard: it is found in the assertions.
_COLUMN_FIELDS = {
    "null_count": ("nullCount", plain.integer),
    "unique_count": ("distinctCount", plain.integer),
    "sum": ("sum", plain.number),
    "count": ("count", plain.number),
    "minimum": ("min", plain.number),
    "maximum": ("max", plain.number),
}
_TEST_STATUS = {
    Status.PASSED: "pass",
    Status.FAILED: "fail",
    Status.SKIPPED: "skip",
    # "Could not be evaluated" has no status of its own; it must not look like a pass or a choice.
    Status.ERROR: "fail",
}


def data_assertions(
    verdicts: Iterable[Verdict], report: GateReport
) -> data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet:
    """The verdicts as assertions about one dataset.

    A skipped verdict is left out: an assertion has no third state, and neither would be true. It
    is in the test facet of the run.
    """
    assertions = [
        data_quality_assertions_dataset.Assertion(
            assertion=_kind(verdict),
            success=verdict.status is Status.PASSED,
            column=plain.optional_text(verdict.column, plain.NAME),
            **_details(verdict, report),
        )
        for verdict in verdicts
        if verdict.status is not Status.SKIPPED
    ]
    return data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(
        assertions=assertions, producer=PRODUCER
    )


def tests(report: GateReport) -> test_run.TestRunFacet:
    """All verdicts of a run, the skipped ones and those about no dataset too."""
    return test_run.TestRunFacet(
        tests=[
            test_run.TestExecution(
                status=_TEST_STATUS[verdict.status],
                type=_kind(verdict),
                **_details(verdict, report),
            )
            for verdict in report.verdicts
        ],
        producer=PRODUCER,
    )


def data_facets(
    name: DatasetName, snapshot: DatasetSnapshot, symlink: DatasetName | None = None
) -> dict[str, DatasetFacet]:
    """What is known of the data itself: source, schema, version, metrics, and its other name."""
    facets: dict[str, DatasetFacet] = {"dataSource": data_source(name)}
    if symlink is not None:
        facets["symlinks"] = symlinks(symlink)
    if snapshot.fields:
        facets["schema"] = schema_dataset.SchemaDatasetFacet(
            fields=[
                schema_dataset.SchemaDatasetFacetFields(
                    name=plain.text(field.name, plain.NAME),
                    type=plain.text(field.type, plain.CONTENT),
                    fields=None,
                )
                for field in snapshot.fields
            ],
            producer=PRODUCER,
        )
    if snapshot.version is not None:
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(
            datasetVersion=str(snapshot.version), producer=PRODUCER
        )
    if _has_metrics(snapshot):
        facets["dataQualityMetrics"] = data_quality_metrics_dataset.DataQualityMetricsDatasetFacet(
            rowCount=_row_count(snapshot),
            columnMetrics=_column_metrics(
                snapshot.metrics, data_quality_metrics_dataset.ColumnMetrics
            ),
            producer=PRODUCER,
        )
    return facets


def input_metrics(snapshot: DatasetSnapshot) -> dict[str, InputDatasetFacet]:
    """The metrics once more: the standard has one facet for a dataset and one for an input."""
    if not _has_metrics(snapshot):
        return {}
    return {
        "dataQualityMetrics": (
            data_quality_metrics_input_dataset.DataQualityMetricsInputDatasetFacet(
                rowCount=_row_count(snapshot),
                columnMetrics=_column_metrics(
                    snapshot.metrics, data_quality_metrics_input_dataset.ColumnMetrics
                ),
                producer=PRODUCER,
            )
        )
    }


def output_rows(
    rows: int,
) -> output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet:
    return output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        rowCount=rows, producer=PRODUCER
    )


def data_source(name: DatasetName) -> datasource_dataset.DatasourceDatasetFacet:
    return datasource_dataset.DatasourceDatasetFacet(
        name=name.namespace, uri=name.uri, producer=PRODUCER
    )


def symlinks(table: DatasetName) -> symlinks_dataset.SymlinksDatasetFacet:
    return symlinks_dataset.SymlinksDatasetFacet(
        identifiers=[symlinks_dataset.Identifier(table.namespace, table.name, "TABLE")],
        producer=PRODUCER,
    )


def _kind(verdict: Verdict) -> str:
    return plain.text(verdict.metric or "expression", plain.NAME)


def _details(verdict: Verdict, report: GateReport) -> dict[str, Any]:
    """The fields that an assertion and a test have in common."""
    return {
        "name": plain.text(verdict.name, plain.NAME),
        "severity": "error" if verdict.severity.at_least(report.fail_on) else "warn",
        "description": _description(verdict.reason),
        "expected": plain.text(verdict.expected, plain.VALUE),
        "actual": plain.value_text(verdict.scaled_value),
        "content": plain.text(verdict.expression, plain.CONTENT),
        "contentType": "expression",
        "params": _params(verdict, report),
    }


def _description(reason: str | None) -> str | None:
    # The reason of an error quotes the engine, and the engine quotes locations.
    return None if reason is None else redact_urls(plain.text(reason, plain.DESCRIPTION))


def _params(verdict: Verdict, report: GateReport) -> dict[str, Any]:
    params: dict[str, Any] = {
        "suite": plain.text(report.suite, plain.NAME),
        "check": plain.text(verdict.check, plain.NAME),
        "date": report.run_key.date.isoformat(),
        "severity": verdict.severity.value,
        "status": verdict.status.value,
        "datasets": _texts(verdict.datasets),
        "tags": _texts(verdict.tags),
        "profiles": _texts(verdict.profiles),
        "value": plain.param(verdict.value),
        "threshold": plain.param(verdict.threshold),
    }
    if verdict.multiplier != 1.0:
        params["multiplier"] = plain.param(verdict.multiplier)
        params["scaled_value"] = plain.param(verdict.scaled_value)
    if report.contract is not None:
        params["contract"] = plain.text(report.contract.id, plain.NAME)
        params["contract_version"] = plain.optional_text(report.contract.version, plain.NAME)
        params["clause"] = plain.optional_text(verdict.clause, plain.NAME)
    return {key: value for key, value in params.items() if value is not None and value != []}


def _texts(values: Sequence[str]) -> list[str]:
    return [plain.text(value, plain.NAME) for value in values]


def _has_metrics(snapshot: DatasetSnapshot) -> bool:
    return bool(snapshot.metrics) or snapshot.rows is not None


def _row_count(snapshot: DatasetSnapshot) -> int | None:
    if snapshot.rows is not None:
        return snapshot.rows
    whole = [metric.value for metric in snapshot.metrics if metric.metric == "num_rows"]
    return plain.integer(whole[0]) if whole else None


def _column_metrics(
    metrics: Sequence[MetricResult], kind: type[ColumnMetrics]
) -> dict[str, ColumnMetrics]:
    columns: dict[str, dict[str, Any]] = {}
    for metric in metrics:
        if metric.column is None or metric.metric not in _COLUMN_FIELDS:
            continue
        field, convert = _COLUMN_FIELDS[metric.metric]
        if (value := convert(metric.value)) is not None:
            columns.setdefault(plain.text(metric.column, plain.NAME), {}).setdefault(field, value)
    return {column: kind(quantiles=None, **fields) for column, fields in columns.items()}
