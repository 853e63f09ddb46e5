"""Publishes a contract in the properties and comments of a Delta table, where every catalog shows
it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.values import ContractDescription

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dqx_airflow.engine.sources.dataset import OpenDataset

ID = "dqx.contract.id"
VERSION = "dqx.contract.version"
OWNER = "dqx.contract.owner"
"""The table properties that name the contract of a table."""


@dataclass(frozen=True, slots=True)
class Published:
    """The properties and column comments written. `missing` columns are not in the table."""

    properties: dict[str, str]
    comments: dict[str, str]
    description: str | None
    missing: tuple[str, ...]
    version: int

    @property
    def is_changed(self) -> bool:
        return bool(self.properties or self.comments or self.description)


def publish(contract: ContractDescription, path: str, *, is_dry: bool = False) -> Published:
    """Writes a contract into a Delta table, and returns what was new. Existing entries stay
    untouched.

    Each kind of change is a commit of its own without data; publishing again makes no commit.

    :param is_dry: writes nothing, and returns what would be written.
    :raises DatasetError: the table does not exist, or cannot be written.
    """
    try:
        table = DeltaTable(path)
    except TableNotFoundError as error:
        raise DatasetError(f"no Delta table at {path}", "check the path") from error
    except Exception as error:  # deltalake has no base class for its exceptions
        raise DatasetError(f"the Delta table at {path} cannot be read: {error}") from error
    metadata = table.metadata()
    columns = {field.name: field.metadata.get("comment") for field in table.schema().fields}
    expected = properties_of(contract)
    properties = {
        key: value for key, value in expected.items() if metadata.configuration.get(key) != value
    }
    comments = {
        field.name: field.description
        for field in contract.fields
        if field.description and columns.get(field.name, field.description) != field.description
    }
    wanted = contract.description
    description = wanted if wanted and metadata.description != wanted else None
    if not is_dry:
        try:
            _write(table, properties, comments, description)
        except Exception as error:
            hint = "give this user access to the table, or publish with --sql"
            raise DatasetError(f"{path} cannot be changed: {error}", hint) from error
    return Published(
        properties,
        comments,
        description,
        tuple(field.name for field in contract.fields if field.name not in columns),
        int(table.version()),
    )


def properties_of(contract: ContractDescription) -> dict[str, str]:
    """Table properties with the id, version and owner of a contract, without those that it
    lacks."""
    owner = contract.owners[0] if contract.owners else None
    properties = {ID: contract.id, VERSION: contract.version, OWNER: owner}
    return {key: value for key, value in properties.items() if value is not None}


def published_in(properties: Mapping[str, str]) -> tuple[str, str | None] | None:
    """The id and version of the contract in the properties of a table, or None."""
    contract_id = properties.get(ID)
    return (contract_id, properties.get(VERSION)) if contract_id is not None else None


def statements(contract: ContractDescription, table: str) -> Iterator[str]:
    """The equivalent Spark SQL statements, for a catalog table.

    :param table: the name of the table, quoted for SQL.
    """
    pairs = ", ".join(
        f"{_text(key)} = {_text(value)}" for key, value in properties_of(contract).items()
    )
    yield f"ALTER TABLE {table} SET TBLPROPERTIES ({pairs})"
    if contract.description:
        yield f"COMMENT ON TABLE {table} IS {_text(contract.description)}"
    for field in contract.fields:
        if field.description:
            name = quote_name(field.name)
            yield f"ALTER TABLE {table} ALTER COLUMN {name} COMMENT {_text(field.description)}"


def _write(
    table: DeltaTable, properties: dict[str, str], comments: dict[str, str], description: str | None
) -> None:
    if properties:
        # Properties unknown to Delta may be set freely.
        table.alter.set_table_properties(properties, raise_if_not_exists=False)
    if description is not None:
        table.alter.set_table_description(description)
    for column, comment in comments.items():
        table.alter.set_column_metadata(column, {"comment": comment})


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


def published_contracts(
    spark: SparkSession, opened: Mapping[str, OpenDataset]
) -> dict[str, tuple[str, str | None]]:
    """The id and version of the contract of each dataset, without a Spark job.

    For a catalog table, the properties of its newest version are read.
    """
    contracts = {}
    for name, dataset in opened.items():
        published = published_in(_properties(spark, dataset))
        if published is not None:
            contracts[name] = published
    return contracts


def _properties(spark: SparkSession, dataset: OpenDataset) -> Mapping[str, str]:
    if dataset.log is not None:
        return dict(dataset.log.table.metadata().configuration)
    if dataset.ref.table is None or dataset.ref.conn_id is not None:
        return {}
    from pyspark.errors import PySparkException

    try:
        rows = spark.sql(f"SHOW TBLPROPERTIES {dataset.ref.table}").collect()
    except PySparkException:  # a temporary view has none
        return {}
    return {row[0]: row[1] for row in rows}
