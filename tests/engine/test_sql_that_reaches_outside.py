"""SQL in suites calls reviewed functions only, in filters and queries too."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dqx_airflow.dql.spark_calls import REVIEWED, objection_to_call
from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.errors import DatasetError
from dqx_airflow.values import DatasetRef
from tests.engine.functions_of_spark import built_in, unreviewed

pytestmark = pytest.mark.spark


def test_every_function_of_this_spark_is_reviewed(spark: SparkSession) -> None:
    assert list(unreviewed(spark)) == []


def test_every_function_that_is_permitted_exists(spark: SparkSession) -> None:
    """What Spark does not have could be registered by anybody."""
    syntax = "character cube dec numeric rollup timestampadd timestampdiff try_cast varchar"
    permitted = {name for name in REVIEWED if objection_to_call(name) is None}
    assert permitted - built_in(spark) == set(syntax.split())


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "filter_",
    [
        "xpath_string(concat('<!DOCTYPE a SYSTEM \"http://127.0.0.1:9/', id, '\"><a/>'), 'a') = ''",
        "`reflect`('java.lang.System', 'getenv', 'HOME') = id",
        "id = '${env:HOME}'",
        "my_function(id)",
    ],
)
def test_a_filter_computes_from_its_rows_alone(
    spark: SparkSession, tmp_path: object, filter_: str
) -> None:
    path = f"{tmp_path}/t"
    spark.createDataFrame([("a",)], "id string").write.parquet(path)
    ref = DatasetRef("t", path=path, format="parquet", filter=filter_)
    with pytest.raises(DatasetError, match="the filter of dataset 't'"):
        open_dataset(spark, ref)
    assert open_dataset(spark, DatasetRef("t", path=path, format="parquet", filter="id = 'a'"))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT input_file_name() AS place FROM t",
        "SELECT current_user AS who",
        "SELECT from_xml(x, 'a INT', map('rowValidationXSDPath', '/etc/hosts')) FROM t",
    ],
)
def test_a_query_of_a_dataset_reads_tables_alone(spark: SparkSession, query: str) -> None:
    with pytest.raises(DatasetError, match="the query of dataset 't'"):
        open_dataset(spark, DatasetRef("t", query=query))
