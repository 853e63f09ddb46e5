"""The contracts that the tables of a gate name in their properties."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dqx_airflow.engine.contract_properties import published_in
from dqx_airflow.engine.sources.dataset import OpenDataset


def published_contracts(
    spark: SparkSession, opened: Mapping[str, OpenDataset]
) -> dict[str, tuple[str, str | None]]:
    """The id and version of the contract of each dataset, without a Spark job.

    For a catalog table they are read from its newest version.
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
    try:
        rows = spark.sql(f"SHOW TBLPROPERTIES {dataset.ref.table}").collect()
    except PySparkException:  # a temporary view has none
        return {}
    return {row[0]: row[1] for row in rows}
