"""Verdicts and snapshots as OpenLineage facets. Pure functions; imports the OpenLineage client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from openlineage.client import facet_v2 as ol
from openlineage.client.facet_v2 import DatasetFacet, InputDatasetFacet, JobFacet

from dqx_airflow import __version__, values
from dqx_airflow.lineage import sanitize
from dqx_airflow.lineage.names import DatasetName
from dqx_airflow.values.redact import redact_urls

PRODUCER = f"https://github.com/dqx-airflow/dqx-airflow/tree/{__version__}"

F = TypeVar("F")


def ours(facet: Callable[..., F], **fields: Any) -> F:
    """A facet that names us as its producer."""
    return facet(**fields, producer=PRODUCER)


ColumnMetrics = TypeVar(
    "ColumnMetrics",
    ol.data_quality_metrics_dataset.ColumnMetrics,
    ol.data_quality_metrics_input_dataset.ColumnMetrics,
)

# Our metric, the standard's field for it, and the values of that field. What is missing here
# (averages, percentiles) has no field in the standard, and is only in the assertions.
_COLUMN_FIELDS = {
    "null_count": ("nullCount", sanitize.integer),
    "unique_count": ("distinctCount", sanitize.integer),
    "sum": ("sum", sanitize.finite_number),
    "count": ("count", sanitize.finite_number),
    "minimum": ("min", sanitize.finite_number),
    "maximum": ("max", sanitize.finite_number),
}
_TEST_STATUS = {
    values.Status.PASSED: "pass",
    values.Status.FAILED: "fail",
    values.Status.SKIPPED: "skip",
    # "Could not be evaluated" has no status; it must not look like a pass or a choice.
    values.Status.ERROR: "fail",
}


def data_assertions(
    verdicts: Iterable[values.Verdict], report: values.GateReport
) -> ol.data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet:
    """The verdicts as assertions about one dataset.

    A skipped verdict is left out: an assertion has no third state, and neither would be true. It is
    in the test facet of the run.
    """
    assertions = [
        ol.data_quality_assertions_dataset.Assertion(
            assertion=_kind(verdict),
            success=verdict.status is values.Status.PASSED,
            column=sanitize.optional_name(verdict.column),
            **_details(verdict, report),
        )
        for verdict in verdicts
        if verdict.status is not values.Status.SKIPPED
    ]
    return ours(
        ol.data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet, assertions=assertions
    )


def tests(report: values.GateReport) -> ol.test_run.TestRunFacet:
    """All verdicts of a run, including skipped ones and those about no dataset."""
    return ours(
        ol.test_run.TestRunFacet,
        tests=[
            ol.test_run.TestExecution(
                status=_TEST_STATUS[verdict.status],
                type=_kind(verdict),
                **_details(verdict, report),
            )
            for verdict in report.verdicts
        ],
    )


def tags(report: values.GateReport) -> ol.tags_run.TagsRunFacet | None:
    """Tags of a run: its selection if assertions were left out, where it quarantined the rows of a
    dataset, what it promoted although it was blocked or without its bad rows, SQL without ANSI
    mode, and the proof of the engine. None if there is nothing to say.

    A quarantine is not an output: readers of the data of a gate do not read it, and a run that
    blocked has no outputs.
    """
    partial, accepted = report.partial, report.accepted
    texts = {
        "dqx_partial": f"{partial.selected} of {partial.assertions} assertions"
        if partial
        else None,
        "dqx_selection": str(partial.selection) if partial else None,
        **{
            f"dqx_quarantine.{dataset.name}": redact_urls(dataset.quarantine)
            for dataset in report.datasets
            if dataset.quarantined and dataset.quarantine
        },
        "dqx_promoted_blocked": ", ".join(report.promoted_blocked) or None,
        "dqx_left_out": ", ".join(report.left_out) or None,
        "dqx_accepted_by": accepted.author if accepted else None,
        "dqx_accepted_reason": accepted.reason if accepted else None,
        "dqx_waived": str(len(report.waived)) if report.waived else None,
        "dqx_ansi": "false" if report.ansi is False else None,
        "dqx_engine": report.engine_proof,
    }
    present = {key: text for key, text in texts.items() if text is not None}
    if not present:
        return None
    return ours(
        ol.tags_run.TagsRunFacet,
        tags=[
            ol.tags_run.TagsRunFacetFields(sanitize.name(key), sanitize.name(text), "dqx-airflow")
            for key, text in present.items()
        ],
    )


def origin(request: values.GateRequest) -> dict[str, JobFacet]:
    """The owner of a gate, its contract and incident response, and its source.

    The owner of the contract comes before that of the task.
    """
    gate_origin = request.origin or values.GateOrigin()
    responsible = (
        request.contract.responsible if request.contract else None
    ) or values.Responsible()
    facets: dict[str, JobFacet] = {
        "documentation": ours(
            ol.documentation_job.DocumentationJobFacet,
            description=sanitize.shortened(_documentation(request), sanitize.MESSAGE),
        )
    }
    if name := responsible.owner or gate_origin.owner:
        owner = ol.ownership_job.Owner(sanitize.name(name), "OWNER")
        facets["ownership"] = ours(ol.ownership_job.OwnershipJobFacet, owners=[owner])
    if place := gate_origin.source:
        facets["sourceCodeLocation"] = ours(
            ol.source_code_location_job.SourceCodeLocationJobFacet,
            type="git" if place.repository else "file",
            url=sanitize.content(place.url),
            repoUrl=sanitize.optional_shortened(place.repository, sanitize.CONTENT),
            path=sanitize.optional_shortened(place.path, sanitize.CONTENT),
            version=sanitize.optional_name(place.version),
        )
    return facets


def _documentation(request: values.GateRequest) -> str:
    contract = request.contract
    parts = [f"data quality gate: enforces {request.suite.name}"]
    if contract is not None:
        version = f" {contract.version}" if contract.version else ""
        parts = [f"data quality gate: enforces contract {contract.id}{version}"]
        facts = contract.responsible.facts if contract.responsible else ()
        parts += [f"{name}: {text}" for name, text in facts]
    if request.origin is not None and request.origin.documentation:
        parts.append(request.origin.documentation)
    return "; ".join(parts)


def data_facets(
    name: DatasetName, snapshot: values.DatasetSnapshot, symlink: DatasetName | None = None
) -> dict[str, DatasetFacet]:
    """The known facts about the data itself: source, schema, version, metrics, and its other
    name."""
    facets: dict[str, DatasetFacet] = {"dataSource": data_source(name)}
    if symlink is not None:
        facets["symlinks"] = symlinks(symlink)
    if snapshot.fields:
        facets["schema"] = schema(snapshot.fields)
    if snapshot.version is not None:
        facets["version"] = ours(
            ol.dataset_version_dataset.DatasetVersionDatasetFacet,
            datasetVersion=str(snapshot.version),
        )
    standard = ol.data_quality_metrics_dataset
    return facets | _metrics(
        snapshot, standard.DataQualityMetricsDatasetFacet, standard.ColumnMetrics
    )


def schema(
    fields: Iterable[values.DatasetField | values.FieldDescription],
) -> ol.schema_dataset.SchemaDatasetFacet:
    """The columns of a dataset, or of a contract, which may describe them."""
    columns = [
        ol.schema_dataset.SchemaDatasetFacetFields(
            name=sanitize.name(field.name),
            type=sanitize.content(field.type),
            description=sanitize.optional_shortened(
                getattr(field, "description", None), sanitize.DESCRIPTION
            ),
            fields=None,
        )
        for field in fields
    ]
    return ours(ol.schema_dataset.SchemaDatasetFacet, fields=columns)


def input_metrics(snapshot: values.DatasetSnapshot) -> dict[str, InputDatasetFacet]:
    """The metrics again: the standard has one facet for a dataset and one for an input."""
    standard = ol.data_quality_metrics_input_dataset
    return _metrics(snapshot, standard.DataQualityMetricsInputDatasetFacet, standard.ColumnMetrics)


def output_rows(
    rows: int,
) -> ol.output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet:
    return ours(
        ol.output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet, rowCount=rows
    )


def data_source(name: DatasetName) -> ol.datasource_dataset.DatasourceDatasetFacet:
    return ours(ol.datasource_dataset.DatasourceDatasetFacet, name=name.namespace, uri=name.uri)


def symlinks(table: DatasetName) -> ol.symlinks_dataset.SymlinksDatasetFacet:
    return ours(
        ol.symlinks_dataset.SymlinksDatasetFacet,
        identifiers=[ol.symlinks_dataset.Identifier(table.namespace, table.name, "TABLE")],
    )


def _kind(verdict: values.Verdict) -> str:
    return sanitize.name(verdict.metric or "expression")


def _details(verdict: values.Verdict, report: values.GateReport) -> dict[str, Any]:
    """The fields that an assertion and a test have in common."""
    return {
        "name": sanitize.name(verdict.name),
        "severity": "error" if verdict.can_block(report.fail_on) else "warn",
        "description": _description(verdict.reason),
        "expected": sanitize.shortened(verdict.expected, sanitize.VALUE),
        "actual": sanitize.value_text(verdict.scaled_value),
        "content": sanitize.content(verdict.expression),
        "contentType": "expression",
        "params": _params(verdict, report),
    }


def _description(reason: str | None) -> str | None:
    # The reason of an error quotes the engine, and the engine quotes locations.
    return None if reason is None else redact_urls(sanitize.shortened(reason, sanitize.DESCRIPTION))


def _params(verdict: values.Verdict, report: values.GateReport) -> dict[str, Any]:
    params: dict[str, Any] = {
        "suite": sanitize.name(report.suite),
        "check": sanitize.name(verdict.check),
        "date": report.run_key.date.isoformat(),
        "severity": verdict.severity.value,
        "status": verdict.status.value,
        "datasets": _texts(verdict.datasets),
        "tags": _texts(verdict.tags),
        "profiles": _texts(verdict.profiles),
        "value": sanitize.param(verdict.value),
        "threshold": sanitize.param(verdict.threshold),
    }
    if verdict.multiplier != 1.0:
        params["multiplier"] = sanitize.param(verdict.multiplier)
        params["scaled_value"] = sanitize.param(verdict.scaled_value)
    if verdict.groups is not None:
        params["groups"] = verdict.groups
        params["failed_groups"] = verdict.failed_groups
        params["worst_group"] = sanitize.optional_name(verdict.worst_group)
    for name in ("let_by", "waived_by", "accepted_by"):
        params[name] = sanitize.optional_name(getattr(verdict, name))
    params["rows_left_out"] = verdict.rows_left_out or None
    if report.contract is not None:
        params["contract"] = sanitize.name(report.contract.id)
        params["contract_version"] = sanitize.optional_name(report.contract.version)
        params["clause"] = sanitize.optional_name(verdict.clause)
    return {key: value for key, value in params.items() if value is not None and value != []}


def _texts(texts: Sequence[str]) -> list[str]:
    return [sanitize.name(text) for text in texts]


def _metrics(
    snapshot: values.DatasetSnapshot, facet: Callable[..., F], columns: type[ColumnMetrics]
) -> dict[str, F]:
    if not snapshot.metrics and snapshot.rows is None:
        return {}
    rows, by_column = _row_count(snapshot), _column_metrics(snapshot.metrics, columns)
    return {"dataQualityMetrics": ours(facet, rowCount=rows, columnMetrics=by_column)}


def _row_count(snapshot: values.DatasetSnapshot) -> int | None:
    if snapshot.rows is not None:
        return snapshot.rows
    whole = [metric.value for metric in snapshot.metrics if metric.metric == "num_rows"]
    return sanitize.integer(whole[0]) if whole else None


def _column_metrics(
    metrics: Sequence[values.MetricResult], kind: type[ColumnMetrics]
) -> dict[str, ColumnMetrics]:
    columns: dict[str, dict[str, Any]] = {}
    for metric in metrics:
        if metric.column is None or metric.metric not in _COLUMN_FIELDS:
            continue
        field, convert = _COLUMN_FIELDS[metric.metric]
        if (value := convert(metric.value)) is not None:
            columns.setdefault(sanitize.name(metric.column), {}).setdefault(field, value)
    return {column: kind(quantiles=None, **fields) for column, fields in columns.items()}
