"""Datasets are identified by their locations, however these are written."""

from __future__ import annotations

from pathlib import Path

import pytest
from markdown_cases import rows

from dqx_airflow.lineage.names import location_of, trimmed_location
from dqx_airflow.values import DatasetSnapshot

TABLES = Path(__file__).with_name("names.md")


@pytest.mark.parametrize(("location", "place"), rows(TABLES, "Locations"))
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
