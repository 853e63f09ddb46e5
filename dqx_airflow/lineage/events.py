"""Builds OpenLineage events: for a gate run START, then COMPLETE or FAIL; for a dataset under a
contract, so that catalogs show the promise with the data; and for a block and its contract, so that
the binding is visible without a manifest.

Pure functions from a request and a report to an event; nothing is sent and no environment is read.
All facets have the same producer, and every text is truncated, so that an event stays small. The
format and the states of runs follow the OpenLineage specification (`OpenLineage.json`, version 2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any, TypeVar
from uuid import UUID

from openlineage.client import event_v2
from openlineage.client import facet_v2 as ol
from openlineage.client.event_v2 import InputDataset, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import DatasetFacet, InputDatasetFacet, JobFacet, RunFacet

from dqx_airflow import __version__, values
from dqx_airflow.lineage import sanitize
from dqx_airflow.lineage.names import (
    DatasetName,
    is_path,
    name_of_data,
    name_of_path,
    name_of_table,
)
from dqx_airflow.values import DatasetRef, DatasetSnapshot, GateReport, GateRequest, Status
from dqx_airflow.values.redact import redact, redact_urls

DEFAULT_NAMESPACE = "default"
PRODUCER = f"https://github.com/dqx-airflow/dqx-airflow/tree/{__version__}"

F = TypeVar("F")


def ours(facet: Callable[..., F], **fields: Any) -> F:
    """A facet with this package as its producer."""
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


def job_name(gate: str) -> str:
    """The OpenLineage job of a gate: `<gate>.gate`.

    A gate is usually called `dag_id.task_id`, which is the job of the Airflow task itself, so it
    needs a suffix. The suite's name is not suitable: a START event is sent before the suite is
    read, all events of a run must have the same job, and a gate keeps its history when its suite is
    renamed. The name of the suite is in the parameters of the assertions.
    """
    return sanitize.name(f"{gate}.gate")


def start_event(
    request: GateRequest, run_id: str, when: datetime, namespace: str = DEFAULT_NAMESPACE
) -> RunEvent:
    """The START event of a gate. It lists the inputs without any facts about them.

    A catalog table is not an input before the terminal event: only then is its location known,
    which is its name (see `inputs`), and a run must not use two names for one dataset.

    :raises ValueError: `run_id` is not a UUID.
    """
    return _event(RunState.START, request, run_id, when, namespace)


def terminal_event(
    request: GateRequest,
    report: GateReport,
    namespace: str = DEFAULT_NAMESPACE,
    *,
    catalog: str | None = None,
) -> RunEvent:
    """The last event of a gate: COMPLETE if its data is released, FAIL if it blocked or broke.

    Its only outputs are the tables to which rows were promoted: the results store is shared by all
    gates, and would join unrelated tables in a catalog.

    `catalog` is the namespace of catalog tables (see `inputs`).

    :raises ValueError: the run id of the report is not a UUID.
    """
    catalog = catalog or namespace or DEFAULT_NAMESPACE
    run_facets: dict[str, RunFacet] = {"test": tests(report)}
    if report.spark_version is not None:
        run_facets["processing_engine"] = ours(
            ol.processing_engine_run.ProcessingEngineRunFacet,
            version=report.spark_version,
            name="spark",
            openlineageAdapterVersion=__version__,
        )
    if (facet := tags(report)) is not None:
        run_facets["tags"] = facet
    completed = report.is_released
    if not completed:
        run_facets["errorMessage"] = error_message(redact_urls(failure_message(report)))
    return _event(
        RunState.COMPLETE if completed else RunState.FAIL,
        request,
        report.run_id,
        report.finished_at,
        namespace,
        run_facets,
        inputs(request, report, catalog=catalog),
        promoted(report, catalog=catalog),
    )


def crash_event(
    request: GateRequest,
    run_id: str,
    when: datetime,
    message: str,
    namespace: str = DEFAULT_NAMESPACE,
) -> RunEvent:
    """The FAIL event of a gate that ended without a report, with `message` and no verdicts.

    It has no output: readers must not trust data that a crashed run wrote.

    :raises ValueError: `run_id` is not a UUID.
    """
    run_facets = {"errorMessage": error_message(redact(message))}
    return _event(RunState.FAIL, request, run_id, when, namespace, run_facets)


def inputs(
    request: GateRequest, report: GateReport, *, catalog: str = DEFAULT_NAMESPACE
) -> list[InputDataset]:
    """The datasets of a report with all known facts about them, including verdicts.

    A dataset is named by its location, as by the Spark listener, and a catalog table has its table
    name as a symlink. A table with an unknown location is named in the namespace `catalog`.

    A verdict about several datasets belongs to the first of them, the dataset under test: it is
    compared with the others, and a failure must not mark a correct reference table. The parameters
    of the assertion list all of them. A verdict whose dataset is unknown is only in the run's test
    facet.
    """
    input_datasets: dict[tuple[str, str], InputDataset] = {}
    for subject in _subjects(request, report, catalog):
        verdicts = [
            verdict
            for verdict in report.verdicts
            if verdict.datasets and verdict.datasets[0] in subject.aliases
        ]
        assertions = data_assertions(verdicts, report, subject.snapshot.fields)
        dataset = InputDataset(
            subject.name.namespace,
            subject.name.name,
            facets=data_facets(subject.name, subject.snapshot, subject.symlink),
            inputFacets=input_metrics(subject.snapshot),
        )
        if assertions.assertions and dataset.facets is not None and dataset.inputFacets is not None:
            # By its schema this is a facet of inputs; in practice consumers read it from the
            # dataset (Marquez) or from the input (the standard), so it is in both.
            dataset.facets["dataQualityAssertions"] = assertions  # type: ignore[assignment]
            dataset.inputFacets["dataQualityAssertions"] = assertions
        input_datasets[(dataset.namespace, dataset.name)] = dataset
    return list(input_datasets.values())


def promoted(report: GateReport, *, catalog: str = DEFAULT_NAMESPACE) -> list[OutputDataset]:
    """The tables to which rows were promoted, in their new version.

    A run that blocked or broke has written none, whatever its report contains, unless it promotes
    although it is blocked.
    """
    if not report.is_released:
        return []
    statistics = ol.output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet
    output_datasets = []
    for snapshot in report.datasets:
        promotion = snapshot.promotion
        if promotion is None:
            continue
        place = promotion.location
        name = _name_of(place, catalog)
        target = DatasetSnapshot(
            snapshot.name, place, "delta", promotion.version, fields=snapshot.fields
        )
        output_datasets.append(
            OutputDataset(
                name.namespace,
                name.name,
                facets=data_facets(name, target),
                outputFacets={"outputStatistics": ours(statistics, rowCount=promotion.rows)},
            )
        )
    return output_datasets


def failure_message(report: GateReport) -> str:
    """The number of assertions that did not hold, and the worst of them, on one line."""
    failed = report.count(Status.FAILED)
    errors = report.count(Status.ERROR)
    line = f"{report.outcome.value}: {failed} of {len(report.verdicts)} assertions failed"
    if errors:
        line += f", {errors} could not be evaluated"
    if lacking := len(report.not_evaluated):
        line += f", {lacking} not evaluated"
    worst = report.worst
    if worst is None:
        return f"{line}; {report.nothing_checked}"
    detail = worst.reason or f"expected {worst.expected}"
    line += f"; worst: {worst.name} ({worst.severity.value}): {detail}"
    responsible = report.contract.responsible if report.contract else None
    facts = responsible.facts if responsible else ()
    return "; ".join([line, *(f"{name}: {text}" for name, text in facts)])


@dataclass(frozen=True, slots=True)
class _Subject:
    """A dataset in lineage. `aliases` are its names in the suite, which may be several."""

    name: DatasetName
    symlink: DatasetName | None
    snapshot: DatasetSnapshot
    aliases: tuple[str, ...]


def _subjects(request: GateRequest, report: GateReport, catalog: str) -> list[_Subject]:
    snapshots = {snapshot.name: snapshot for snapshot in report.datasets}
    # A dataset that could not be read has no snapshot, but its verdicts need a place.
    for ref in request.datasets:
        snapshots.setdefault(ref.name, DatasetSnapshot(ref.name, ref.location, ref.format))
    refs = {ref.name: ref for ref in request.datasets}
    subjects: dict[DatasetName, _Subject] = {}
    for snapshot in snapshots.values():
        name, symlink = _names(refs.get(snapshot.name), snapshot.location, catalog)
        earlier = subjects.get(name)
        # The same table under two names (for example with two filters) is one dataset: its metrics
        # come from the first name, its assertions from all of them.
        subjects[name] = _Subject(
            name,
            earlier.symlink if earlier else symlink,
            earlier.snapshot if earlier else snapshot,
            (*(earlier.aliases if earlier else ()), snapshot.name),
        )
    return list(subjects.values())


def _names(
    ref: DatasetRef | None, location: str, catalog: str
) -> tuple[DatasetName, DatasetName | None]:
    if ref is None:
        return _name_of(location, catalog), None
    is_in_catalog = ref.table is not None and ref.conn_id is None
    table = name_of_table(ref.table or "", catalog) if is_in_catalog else None
    if ref.lineage_name is not None:
        return _name_of(ref.lineage_name, catalog), table
    if table is not None and (location == ref.table or not is_path(location)):
        return table, None
    if ref.path is not None or is_path(location):
        return name_of_data(location), table
    return name_of_table(location, catalog), None


def _name_of(place: str, catalog: str) -> DatasetName:
    return name_of_data(place) if is_path(place) else name_of_table(place, catalog)


def bare_inputs(refs: Sequence[DatasetRef]) -> list[InputDataset]:
    """The datasets whose names are known before anything is read, without any facts about them."""
    named = (ref.lineage_name if ref.lineage_name is not None else ref.path for ref in refs)
    names = {name_of_data(place): None for place in named if place is not None and is_path(place)}
    return [
        InputDataset(name.namespace, name.name, facets={"dataSource": data_source(name)})
        for name in names
    ]


def _event(
    state: RunState,
    request: GateRequest,
    run_id: str,
    when: datetime,
    namespace: str,
    run_facets: Mapping[str, RunFacet] = MappingProxyType({}),
    inputs: Sequence[InputDataset] | None = None,
    outputs: Sequence[OutputDataset] = (),
) -> RunEvent:
    """An event of a gate.

    :param run_facets: facets besides the facets that all events of the gate have.
    :param inputs: by default the datasets of the request, without any facts about them.
    """
    run = Run(str(UUID(run_id)), facets={**_run_facets(request), **run_facets})
    known = bare_inputs(request.datasets) if inputs is None else inputs
    job = job_name(request.job_key.gate)
    about = origin(request)
    return job_event(state, run, when, namespace, job, "GATE", known, outputs, about)


def job_event(
    state: RunState,
    run: Run,
    when: datetime,
    namespace: str,
    job: str,
    job_type: str,
    inputs: Sequence[InputDataset] = (),
    outputs: Sequence[OutputDataset] = (),
    about: Mapping[str, JobFacet] = MappingProxyType({}),
) -> RunEvent:
    """An event of a batch job, with the job type.

    :param about: the other facets of the job.
    """
    facet = ours(
        ol.job_type_job.JobTypeJobFacet, processingType="BATCH", integration="DQX", jobType=job_type
    )
    in_namespace = sanitize.name(namespace) or DEFAULT_NAMESPACE
    return RunEvent(
        eventType=state,
        eventTime=timestamp(when),
        run=run,
        job=event_v2.Job(in_namespace, job, facets={"jobType": facet, **about}),
        inputs=list(inputs),
        outputs=list(outputs),
        producer=PRODUCER,
    )


def _run_facets(request: GateRequest) -> dict[str, RunFacet]:
    run_facets: dict[str, RunFacet] = {"nominalTime": _nominal_time(request.run_key.date)}
    if request.parent is not None and (parent := _parent(request.parent)) is not None:
        run_facets["parent"] = parent
    return run_facets


def _nominal_time(day: date) -> ol.nominal_time_run.NominalTimeRunFacet:
    # Python's last day has no next one.
    end = None if day == date.max else f"{day + timedelta(days=1)}T00:00:00Z"
    return ours(
        ol.nominal_time_run.NominalTimeRunFacet,
        nominalStartTime=f"{day}T00:00:00Z",
        nominalEndTime=end,
    )


def _parent(parent: values.ParentRun) -> ol.parent_run.ParentRunFacet | None:
    """The facet of a parent run; None if its run id is not a UUID: receivers would reject the
    event."""
    if not _is_uuid(parent.run_id):
        return None
    root = None
    if _is_uuid(parent.root_run_id):
        root = ol.parent_run.Root(
            run=ol.parent_run.RootRun(runId=parent.root_run_id),
            job=ol.parent_run.RootJob(
                sanitize.name(parent.root_namespace), sanitize.name(parent.root_job)
            ),
        )
    return ours(
        ol.parent_run.ParentRunFacet,
        run=ol.parent_run.Run(runId=parent.run_id),
        job=ol.parent_run.Job(sanitize.name(parent.namespace), sanitize.name(parent.job)),
        root=root,
    )


def _is_uuid(value: str) -> bool:
    try:
        return str(UUID(value)) == value.lower()
    except ValueError:
        return False


def error_message(message: str) -> ol.error_message_run.ErrorMessageRunFacet:
    """The facet of a failed run, with as much of the message as an event may contain."""
    return ours(
        ol.error_message_run.ErrorMessageRunFacet,
        message=sanitize.shortened(message, sanitize.MESSAGE),
        programmingLanguage="PYTHON",
    )


def timestamp(when: datetime) -> str:
    """The timestamp in the format of events, in UTC."""
    if when.tzinfo is None:  # all times of our values are in UTC
        when = when.replace(tzinfo=timezone.utc)
    return when.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


_SOURCE = "DQX"


def contract_event(
    contract: values.ContractDescription, location: str, when: datetime, namespace: str
) -> event_v2.DatasetEvent:
    """The promises of a contract about the dataset at a location: texts, owners, columns, lineage.

    :param location: a path, or the name of a catalog table.
    :param namespace: the namespace of tables without a path.
    """
    name = name_of_path(location) if is_path(location) else name_of_table(location, namespace)
    dataset_facets: dict[str, DatasetFacet] = {
        "dataSource": data_source(name),
        "tags": _contract_tags(contract),
    }
    if contract.description:
        dataset_facets["documentation"] = ours(
            ol.documentation_dataset.DocumentationDatasetFacet,
            description=sanitize.shortened(contract.description, sanitize.DESCRIPTION),
        )
    if contract.owners:
        dataset_facets["ownership"] = ours(
            ol.ownership_dataset.OwnershipDatasetFacet,
            owners=[
                ol.ownership_dataset.Owner(name=sanitize.name(owner), type="MAINTAINER")
                for owner in contract.owners
            ],
        )
    if contract.fields:
        dataset_facets["schema"] = schema(contract.fields)
    column_fields = {
        sanitize.name(item.name): ol.column_lineage_dataset.Fields(
            inputFields=[_lineage_input(source) for source in item.sources]
        )
        for item in contract.fields
        if item.sources
    }
    if column_fields:
        dataset_facets["columnLineage"] = ours(
            ol.column_lineage_dataset.ColumnLineageDatasetFacet, fields=column_fields
        )
    return event_v2.DatasetEvent(
        eventTime=timestamp(when),
        producer=PRODUCER,
        dataset=event_v2.StaticDataset(name.namespace, name.name, facets=dataset_facets),
    )


def _contract_tags(contract: values.ContractDescription) -> ol.tags_dataset.TagsDatasetFacet:
    pairs = {"contract": contract.id, "contract_version": contract.version}
    return ours(
        ol.tags_dataset.TagsDatasetFacet,
        tags=[
            ol.tags_dataset.TagsDatasetFacetFields(
                key=key, value=sanitize.name(value), source=_SOURCE
            )
            for key, value in pairs.items()
            if value is not None
        ],
    )


def _lineage_input(source: values.FieldSource) -> ol.column_lineage_dataset.InputField:
    details: dict[str, Any] = {
        "subtype": sanitize.optional_name(source.subtype),
        "description": sanitize.optional_shortened(source.description, sanitize.DESCRIPTION),
        "masking": source.masking,
    }
    return ol.column_lineage_dataset.InputField(
        namespace=sanitize.name(source.namespace),
        name=sanitize.name(source.name),
        field=sanitize.name(source.field),
        transformations=[
            ol.column_lineage_dataset.Transformation(type=source.type or "DIRECT", **details)
        ],
    )


_CONTRACTS = "datalex"
"""The namespace of the contracts, which are the inputs of their blocks."""


def block_events(
    block: str, contract: str, problem: str | None, run_id: str, when: datetime, namespace: str
) -> tuple[RunEvent, RunEvent]:
    """START of the job `<block>.block`, whose input is the contract that it relies on, and its end:
    COMPLETE, or FAIL with the problem.

    :param contract: the id with its version: `commerce.Customer.active@1`.
    """
    end = RunState.COMPLETE if problem is None else RunState.FAIL
    run_facets: dict[str, RunFacet] = (
        {} if problem is None else {"errorMessage": error_message(problem)}
    )
    job = sanitize.name(f"{block}.block")
    inputs = [InputDataset(_CONTRACTS, sanitize.name(contract))]
    begun = job_event(RunState.START, Run(run_id), when, namespace, job, "BLOCK", inputs)
    run = Run(run_id, facets=run_facets)
    return begun, job_event(end, run, when, namespace, job, "BLOCK", inputs)


def data_assertions(
    verdicts: Iterable[values.Verdict],
    report: values.GateReport,
    fields: Sequence[values.DatasetField],
) -> ol.data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet:
    """The verdicts as assertions about one dataset.

    A skipped verdict is left out: an assertion is a success or a failure, and neither would be
    true. The verdict is in the test facet of the run.

    :param fields: the columns of the dataset, whose names assertions have as in the schema facet.
    """
    as_in_schema = _spelling(fields)
    assertions = [
        ol.data_quality_assertions_dataset.Assertion(
            assertion=_kind(verdict),
            success=verdict.status is values.Status.PASSED,
            column=verdict.column and sanitize.name(as_in_schema(verdict.column)),
            **_details(verdict, report),
        )
        for verdict in verdicts
        if verdict.status is not values.Status.SKIPPED
    ]
    return ours(
        ol.data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet, assertions=assertions
    )


def tests(report: values.GateReport) -> ol.test_run.TestRunFacet:
    """All verdicts of a run, including skipped verdicts and verdicts about no dataset."""
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
    partial = report.partial
    accepted = report.accepted
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

    The owner of the contract comes before the owner of the task.
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
    rows = _row_count(snapshot)
    by_column = _column_metrics(snapshot, columns)
    return {"dataQualityMetrics": ours(facet, rowCount=rows, columnMetrics=by_column)}


def _row_count(snapshot: values.DatasetSnapshot) -> int | None:
    if snapshot.rows is not None:
        return snapshot.rows
    whole = [metric.value for metric in snapshot.metrics if metric.metric == "num_rows"]
    return sanitize.integer(whole[0]) if whole else None


def _spelling(fields: Sequence[values.DatasetField]) -> Callable[[str], str]:
    """Returns the name of a column as the dataset has it: Spark ignores the case of a suite."""
    names = [one.name for one in fields]
    by_lower_case = {name.lower(): name for name in names}
    if len(by_lower_case) < len(names):
        return lambda name: name
    return lambda name: by_lower_case.get(name.lower(), name)


def _column_metrics(
    snapshot: values.DatasetSnapshot, kind: type[ColumnMetrics]
) -> dict[str, ColumnMetrics]:
    as_in_schema = _spelling(snapshot.fields)
    columns: dict[str, dict[str, Any]] = {}
    for metric in snapshot.metrics:
        if metric.column is None or metric.metric not in _COLUMN_FIELDS:
            continue
        field, convert = _COLUMN_FIELDS[metric.metric]
        if (value := convert(metric.value)) is not None:
            column = sanitize.name(as_in_schema(metric.column))
            columns.setdefault(column, {}).setdefault(field, value)
    return {column: kind(quantiles=None, **fields) for column, fields in columns.items()}
