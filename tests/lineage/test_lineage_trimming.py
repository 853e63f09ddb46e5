from __future__ import annotations

from pathlib import Path

import pytest
from markdown_cases import rows

from dqx_airflow.lineage.names import name_of_data, trimmed

TABLES = Path(__file__).with_name("names.md")


@pytest.mark.parametrize(("name", "expected"), rows(TABLES, "Trimmed names"))
def test_dates_and_globs_of_deliveries_are_trimmed_from_the_name(name: str, expected: str) -> None:
    assert trimmed(name) == expected


def test_the_address_of_the_data_is_trimmed_with_its_name() -> None:
    found = name_of_data("s3a://lake/landing/orders/2026-11-23/")
    assert (found.name, found.uri) == ("landing/orders", "s3://lake/landing/orders")
    found = name_of_data("file:/data/a b/2026-11-23")
    assert (found.name, found.uri) == ("/data/a b", "file:///data/a%20b")
