"""Names of data in lineage, and the locations by which datasets are identified however these are
written: see names.md."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dqx_airflow.lineage.names import (
    location_of,
    name_of_data,
    name_of_path,
    name_of_table,
    trimmed,
    trimmed_location,
)
from dqx_airflow.values import DatasetSnapshot
from tests.markdown_cases import rows

PAGE = Path(__file__).with_name("names.md")


@pytest.mark.parametrize(("location", "namespace", "name"), rows(PAGE, "Names of paths"))
def test_a_path_has_the_name_that_spark_gives_it(location: str, namespace: str, name: str) -> None:
    found = name_of_path(location)
    assert (found.namespace, found.name) == (namespace, name)


def test_a_relative_path_is_resolved_from_the_working_directory() -> None:
    assert name_of_path("data/orders").name == f"{os.getcwd()}/data/orders"


def test_a_table_has_its_catalog_as_namespace() -> None:
    found = name_of_table("`sales`.`orders`", "hive://metastore:9083")
    assert (found.namespace, found.name) == ("hive://metastore:9083", "sales.orders")


@pytest.mark.parametrize(("name", "expected"), rows(PAGE, "Trimmed names"))
def test_dates_and_globs_of_deliveries_are_trimmed_from_the_name(name: str, expected: str) -> None:
    assert trimmed(name) == expected


def test_the_address_of_the_data_is_trimmed_with_its_name() -> None:
    found = name_of_data("s3a://lake/landing/orders/2026-11-23/")
    assert (found.name, found.uri) == ("landing/orders", "s3://lake/landing/orders")
    found = name_of_data("file:/data/a b/2026-11-23")
    assert (found.name, found.uri) == ("/data/a b", "file:///data/a%20b")


@pytest.mark.parametrize(("location", "place"), rows(PAGE, "Locations"))
def test_spellings_of_one_location_are_equal(location: str, place: str) -> None:
    assert trimmed_location(location) == place
    assert trimmed_location(place) == place


@pytest.mark.parametrize(
    ("snapshot", "place"),
    [
        (DatasetSnapshot("o", "o", "query"), None),
        (DatasetSnapshot("o", "o", "query", lineage_name="sales.orders"), "sales.orders"),
        (DatasetSnapshot("o", "/landing/7f3a", "csv", lineage_name="/landing"), "/landing"),
        (DatasetSnapshot("o", "/" + "a" * 1000, "csv"), None),
    ],
)
def test_a_dataset_may_set_its_location_or_have_none(
    snapshot: DatasetSnapshot, place: str | None
) -> None:
    assert location_of(snapshot) == place
