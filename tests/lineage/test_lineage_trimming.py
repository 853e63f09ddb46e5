from __future__ import annotations

import pytest

from dqx_airflow.lineage.names import name_of_data, trimmed


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # As the tests of the trimmers of OpenLineage's Java client have it.
        ("/data/orders/2026-11-23", "/data/orders"),
        ("/data/orders/20261123", "/data/orders"),
        ("/data/orders/23.11.2026", "/data/orders"),
        ("/data/orders/2026-11-23T10:00:00Z", "/data/orders"),
        ("/data/orders/20261123 101500", "/data/orders"),
        ("/data/orders/2026/11/23", "/data/orders"),
        ("/data/orders/2026/11", "/data/orders"),
        ("/data/orders/202611", "/data/orders"),
        ("/data/orders/2026-11", "/data/orders"),
        ("/data/orders/ds=2026-11-23", "/data/orders"),
        ("/data/orders/year=2026/month=11", "/data/orders"),
        ("data/orders/2026-11-23/hour=7", "data/orders"),
        # These are no dates, or not only.
        ("/data/orders/20261323", "/data/orders/20261323"),
        ("/data/orders/12345678", "/data/orders/12345678"),
        ("/data/orders/2026-11-23.csv", "/data/orders/2026-11-23.csv"),
        ("/data/orders/2026-11-23-late", "/data/orders/2026-11-23-late"),
        ("/data/2026-11-23/orders", "/data/2026-11-23/orders"),
        ("/data/orders/a=b=c", "/data/orders/a=b=c"),
        # The first part always stays.
        ("/2026-11-23", "/2026-11-23"),
        ("/2026/11", "/2026/11"),
        ("/", "/"),
        # A pattern names what lies above it.
        ("/landing/*/2026-11-23/*.csv", "/landing"),
        ("/landing/orders/{a,b}/x.csv", "/landing/orders"),
        ("/landing/orders/2026-11-23/part-?.csv", "/landing/orders"),
        ("/*/orders", "/*"),
    ],
)
def test_dates_and_globs_of_deliveries_are_trimmed_from_the_name(name: str, expected: str) -> None:
    assert trimmed(name) == expected


def test_the_address_of_the_data_is_trimmed_with_its_name() -> None:
    found = name_of_data("s3a://lake/landing/orders/2026-11-23/")
    assert (found.name, found.uri) == ("landing/orders", "s3://lake/landing/orders")
    found = name_of_data("file:/data/a b/2026-11-23")
    assert (found.name, found.uri) == ("/data/a b", "file:///data/a%20b")
