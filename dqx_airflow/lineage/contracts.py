"""The event of a dataset that was put under a contract: catalogs show the promise with the data."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from openlineage.client.event_v2 import DatasetEvent, StaticDataset
from openlineage.client.facet_v2 import (
    DatasetFacet,
    column_lineage_dataset,
    documentation_dataset,
    ownership_dataset,
    schema_dataset,
    tags_dataset,
)

from dqx_airflow.lineage import sanitize
from dqx_airflow.lineage.events import timestamp
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
                ownership_dataset.Owner(name=sanitize.text(owner, sanitize.NAME), type="MAINTAINER")
                for owner in contract.owners
            ],
            producer=PRODUCER,
        )
    if contract.fields:
        dataset_facets["schema"] = schema_dataset.SchemaDatasetFacet(
            fields=[_column(item) for item in contract.fields], producer=PRODUCER
        )
    column_fields = {
        sanitize.text(item.name, sanitize.NAME): column_lineage_dataset.Fields(
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
            tags_dataset.TagsDatasetFacetFields(
                key=key, value=sanitize.text(value, sanitize.NAME), source=SOURCE
            )
            for key, value in pairs.items()
            if value is not None
        ],
        producer=PRODUCER,
    )


def _column(item: FieldDescription) -> schema_dataset.SchemaDatasetFacetFields:
    return schema_dataset.SchemaDatasetFacetFields(
        name=sanitize.text(item.name, sanitize.NAME),
        type=sanitize.text(item.type, sanitize.CONTENT),
        description=sanitize.optional_text(item.description, sanitize.DESCRIPTION),
        fields=None,
    )


def _input(source: FieldSource) -> column_lineage_dataset.InputField:
    details: dict[str, Any] = {
        "subtype": sanitize.optional_text(source.subtype, sanitize.NAME),
        "description": sanitize.optional_text(source.description, sanitize.DESCRIPTION),
        "masking": source.masking,
    }
    return column_lineage_dataset.InputField(
        namespace=sanitize.text(source.namespace, sanitize.NAME),
        name=sanitize.text(source.name, sanitize.NAME),
        field=sanitize.text(source.field, sanitize.NAME),
        transformations=[
            column_lineage_dataset.Transformation(type=source.type or "DIRECT", **details)
        ],
    )
