from __future__ import annotations

import os

import pytest

from dqx_airflow.lineage.names import name_of_path, name_of_table


@pytest.mark.parametrize(
    ("location", "namespace", "name"),
    [
        ("/data/orders", "file", "/data/orders"),
        ("/data/orders/", "file", "/data/orders"),
        ("/data/../data//orders", "file", "/data/orders"),
        ("file:/data/orders", "file", "/data/orders"),
        ("file:///data/orders/", "file", "/data/orders"),
        ("file://localhost/data/orders", "file", "/data/orders"),
        ("file://nas/data/orders", "file://nas", "/data/orders"),
        ("/", "file", "/"),
        ("/data/a b?c#d=*.csv", "file", "/data/a b?c#d=*.csv"),
        ("s3://lake/warehouse/orders", "s3://lake", "warehouse/orders"),
        ("s3a://lake/warehouse/orders/", "s3://lake", "warehouse/orders"),
        ("S3N://lake/orders", "s3://lake", "orders"),
        ("s3://lake", "s3://lake", "/"),
        ("gs://lake/orders/", "gs://lake", "orders"),
        ("hdfs://nn:8020/warehouse/orders", "hdfs://nn:8020", "/warehouse/orders"),
        ("hdfs:///warehouse/orders", "hdfs", "/warehouse/orders"),
        ("dbfs:/mnt/orders", "dbfs", "/mnt/orders"),
        (
            "abfss://box@account.dfs.core.windows.net/orders/",
            "abfss://box@account.dfs.core.windows.net",
            "/orders",
        ),
        (
            "wasb://box@account.blob.core.windows.net/orders",
            "wasbs://box@account.blob.core.windows.net",
            "orders",
        ),
        ("s3a://KEY:SECRET@lake/orders", "s3://lake", "orders"),
        ("abfss://box:KEY@account/orders", "abfss://box@account", "/orders"),
        ("https://host/orders?sv=1&sig=abc", "https://host", "/orders"),
    ],
)
def test_a_path_has_the_name_that_spark_gives_it(location: str, namespace: str, name: str) -> None:
    found = name_of_path(location)
    assert (found.namespace, found.name) == (namespace, name)


def test_a_relative_path_is_resolved_from_the_working_directory() -> None:
    assert name_of_path("data/orders").name == f"{os.getcwd()}/data/orders"


def test_a_table_has_its_catalog_as_namespace() -> None:
    found = name_of_table("`sales`.`orders`", "hive://metastore:9083")
    assert (found.namespace, found.name) == ("hive://metastore:9083", "sales.orders")
