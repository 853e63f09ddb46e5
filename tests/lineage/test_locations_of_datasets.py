"""Datasets are identified by their locations, however these are written."""

from __future__ import annotations

import pytest

from dqx_airflow.lineage.names import location_of, trimmed_location
from dqx_airflow.values import DatasetSnapshot


@pytest.mark.parametrize(
    ("location", "place"),
    [
        ("s3a://lake/orders/", "s3://lake/orders"),
        ("s3://lake/orders/2026/11/23", "s3://lake/orders"),
        ("s3://key:secret@lake/orders", "s3://lake/orders"),
        (
            "abfss://box@account.dfs.core.windows.net/a b",
            "abfss://box@account.dfs.core.windows.net/a b",
        ),
        ("file:///lake/orders", "/lake/orders"),
        ("/lake/orders/day=2026-11-23", "/lake/orders"),
        ("data/orders/2026-11-23/*.csv", "data/orders"),
        ("dbfs:/lake/orders", "dbfs:/lake/orders"),
        ("sales.`orders`", "sales.orders"),
        ("/", "/"),
    ],
)
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
