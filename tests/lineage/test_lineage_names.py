from __future__ import annotations

import os
from pathlib import Path

import pytest
from markdown_cases import rows

from dqx_airflow.lineage.names import name_of_path, name_of_table

TABLES = Path(__file__).with_name("names.md")


@pytest.mark.parametrize(("location", "namespace", "name"), rows(TABLES, "Names of paths"))
def test_a_path_has_the_name_that_spark_gives_it(location: str, namespace: str, name: str) -> None:
    found = name_of_path(location)
    assert (found.namespace, found.name) == (namespace, name)


def test_a_relative_path_is_resolved_from_the_working_directory() -> None:
    assert name_of_path("data/orders").name == f"{os.getcwd()}/data/orders"


def test_a_table_has_its_catalog_as_namespace() -> None:
    found = name_of_table("`sales`.`orders`", "hive://metastore:9083")
    assert (found.namespace, found.name) == ("hive://metastore:9083", "sales.orders")
