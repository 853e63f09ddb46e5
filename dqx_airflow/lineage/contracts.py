"""The event of a dataset that was put under a contract, so that catalogs show the promise with the
data; and the events of a block and its contract, which show the binding without a manifest."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from openlineage.client.event_v2 import (
    DatasetEvent,
    InputDataset,
    Run,
    RunEvent,
    RunState,
    StaticDataset,
)
from openlineage.client.facet_v2 import (
    DatasetFacet,
    column_lineage_dataset,
    documentation_dataset,
    ownership_dataset,
    schema_dataset,
    tags_dataset,
)

from dqx_airflow.lineage import sanitize
from dqx_airflow.lineage.events import error_message, job_event, timestamp
from dqx_airflow.lineage.facets import PRODUCER, data_source
from dqx_airflow.lineage.names import is_path, name_of_path, name_of_table
from dqx_airflow.values import ContractDescription, FieldDescription, FieldSource

SOURCE = "DQX"


def contract_event(
    contract: ContractDescription, location: str, when: datetime, namespace: str
) -> DatasetEvent:
    """The promises of a contract about the dataset at a location: texts, owners, columns, lineage.

    :param location: a path, or the name of a catalog table.
    :param namespace: that of tables without a path.
    """
    name = name_of_path(location) if is_path(location) else name_of_table(location, namespace)
    dataset_facets: dict[str, DatasetFacet] = {
        "dataSource": data_source(name),
        "tags": _tags(contract),
    }
    if contract.description:
        dataset_facets["documentation"] = documentation_dataset.DocumentationDatasetFacet(
            description=sanitize.text(contract.description, sanitize.DESCRIPTION), producer=PRODUCER
        )
    if contract.owners:
        dataset_facets["ownership"] = ownership_dataset.OwnershipDatasetFacet(
            owners=[
                ownership_dataset.Owner(name=sanitize.name(owner), type="MAINTAINER")
                for owner in contract.owners
            ],
            producer=PRODUCER,
        )
    if contract.fields:
        dataset_facets["schema"] = schema_dataset.SchemaDatasetFacet(
            fields=[_column(item) for item in contract.fields], producer=PRODUCER
        )
    column_fields = {
        sanitize.name(item.name): column_lineage_dataset.Fields(
            inputFields=[_input(source) for source in item.sources]
        )
        for item in contract.fields
        if item.sources
    }
    if column_fields:
        dataset_facets["columnLineage"] = column_lineage_dataset.ColumnLineageDatasetFacet(
            fields=column_fields, producer=PRODUCER
        )
    return DatasetEvent(
        eventTime=timestamp(when),
        producer=PRODUCER,
        dataset=StaticDataset(name.namespace, name.name, facets=dataset_facets),
    )


def _tags(contract: ContractDescription) -> tags_dataset.TagsDatasetFacet:
    pairs = {"contract": contract.id, "contract_version": contract.version}
    return tags_dataset.TagsDatasetFacet(
        tags=[
            tags_dataset.TagsDatasetFacetFields(key=key, value=sanitize.name(value), source=SOURCE)
            for key, value in pairs.items()
            if value is not None
        ],
        producer=PRODUCER,
    )


def _column(item: FieldDescription) -> schema_dataset.SchemaDatasetFacetFields:
    return schema_dataset.SchemaDatasetFacetFields(
        name=sanitize.name(item.name),
        type=sanitize.content(item.type),
        description=sanitize.optional_text(item.description, sanitize.DESCRIPTION),
        fields=None,
    )


def _input(source: FieldSource) -> column_lineage_dataset.InputField:
    details: dict[str, Any] = {
        "subtype": sanitize.optional_name(source.subtype),
        "description": sanitize.optional_text(source.description, sanitize.DESCRIPTION),
        "masking": source.masking,
    }
    return column_lineage_dataset.InputField(
        namespace=sanitize.name(source.namespace),
        name=sanitize.name(source.name),
        field=sanitize.name(source.field),
        transformations=[
            column_lineage_dataset.Transformation(type=source.type or "DIRECT", **details)
        ],
    )


CONTRACTS = "datalex"
"""The namespace of the contracts, which are the inputs of their blocks."""


def block_events(
    block: str, contract: str, problem: str | None, run_id: str, when: datetime, namespace: str
) -> tuple[RunEvent, RunEvent]:
    """START of the job `<block>.block`, whose input is the contract that it relies on, and its end:
    COMPLETE, or FAIL with the problem.

    :param contract: the id with its version: `commerce.Customer.active@1`.
    """
    begun = _event(RunState.START, block, contract, Run(run_id), when, namespace)
    if problem is None:
        return begun, _event(RunState.COMPLETE, block, contract, Run(run_id), when, namespace)
    failed = Run(run_id, facets={"errorMessage": error_message(problem)})
    return begun, _event(RunState.FAIL, block, contract, failed, when, namespace)


def _event(
    state: RunState, block: str, contract: str, run: Run, when: datetime, namespace: str
) -> RunEvent:
    job = sanitize.name(f"{block}.block")
    inputs = [InputDataset(CONTRACTS, sanitize.name(contract))]
    return job_event(state, run, when, namespace, job, "BLOCK", inputs)
