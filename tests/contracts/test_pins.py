"""The version that a gate pins, and the effect of a contract's lifecycle on a date."""

from __future__ import annotations

from datetime import date

import pytest

from dqx_airflow.contracts.enforcement.lifecycle import lifecycle_status
from dqx_airflow.contracts.enforcement.pins import objection_to_version
from dqx_airflow.contracts.model import Contract, Dialect, Lifecycle
from dqx_airflow.values import Span

DAY = date(2026, 6, 15)


def contract(version: str | None = "2.3.0", **lifecycle: object) -> Contract:
    start = Span("c.yaml", 1, 1, 1, 2)
    cycle = Lifecycle(**lifecycle)  # type: ignore[arg-type]
    return Contract(Dialect.FABRIC, None, "bronze.slots", version, start, lifecycle=cycle)


@pytest.mark.parametrize(
    ("version", "pin"),
    [
        ("2.3.0", "2"), ("2.3.0", "2.3"), ("2.3.0", "2.3.0"), ("v2.3.0", "2.3"), ("2", "2.0"),
        ("2.3.0-rc1", "2.3"), ("2024-06", "2024-06"), ("02.3", "2"), ("2.3.0.7", "2.3"),
        ("2.3.0-rc1", "2.3.0-rc1"), ("v2.3.0-rc1", "2.3.0-rc1"), ("2.3", "2.3.0"),
        ("2.3.0.7", "2.3.0.7"), ("2.3.0", " v2.3.0"),
    ],
)  # fmt: skip
def test_a_pin_admits_all_versions_below_it(version: str, pin: str) -> None:
    assert objection_to_version(contract(version), pin) is None


@pytest.mark.parametrize(
    ("version", "pin", "message"),
    [
        ("3.0.0", "2", "has version 3.0.0, but version 2 is pinned"),
        ("2.3.0", "2.4", "pinned"),
        ("2.3.0", "2.3.1", "pinned"),
        ("20.3.0", "2", "pinned"),
        ("2.3.0-rc1", "2.3.0", "pinned"),
        ("2.3.0.7", "2.3.0", "pinned"),
        ("2.3.0+build5", "2.3.0", "pinned"),
        ("2.3.0.beta", "2.3.0", "pinned"),
        ("2.3.0", "2.3.0-rc1", "pinned"),
        ("2.3.0-rc2", "2.3.0-rc1", "pinned"),
        ("2.3.0-rc10", "2.3.0-rc1", "pinned"),
        ("2.3.1-rc1", "2.3-rc1", "pinned"),
        ("2.3.0", "2.3.0.7", "pinned"),
        (None, "2", "has no version"),
        ("newest", "2", "'newest'"),
        ("2.3.0", "two", "'two' is not a version"),
        ("2.3.0", "", "'' is not a version"),
    ],
)
def test_any_other_version_is_objected_to(version: str | None, pin: str, message: str) -> None:
    objection = objection_to_version(contract(version), pin)
    assert objection is not None
    assert message in objection


@pytest.mark.parametrize(
    ("lifecycle", "is_refused", "expected"),
    [
        ({}, None, None),
        ({"status": "active", "sunset_date": "2026-06-16"}, None, None),
        ({"sunset_date": "2026-06-15"}, True, "was sunset on 2026-06-15"),
        ({"status": "sunset", "successor": "v3"}, True, "its successor is v3"),
        ({"status": "deprecated"}, False, "is deprecated"),
        ({"deprecation_date": "2026-06-16"}, False, "will be deprecated on 2026-06-16"),
        (
            {"deprecation_date": "2026-06-01", "sunset_date": "2026-07-01"},
            False,
            "since 2026-06-01, until 2026-07-01",
        ),
        ({"deprecation_date": "2026-05-20", "notice_days": 30}, False, "until 2026-06-19"),
        ({"deprecation_date": "2026-05-01", "notice_days": 30}, True, "ended on 2026-05-31"),
        ({"deprecation_date": "2026-05-01", "notice_days": 10**12}, False, "until 9999-12-31"),
        ({"effective_date": "2026-07-01"}, False, "not in effect before 2026-07-01"),
        ({"sunset_date": "some day"}, None, None),
    ],
)
def test_the_lifecycle_decides_on_the_day(
    lifecycle: dict[str, object], is_refused: bool | None, expected: str | None
) -> None:
    found = lifecycle_status(contract(**lifecycle), DAY)
    if expected is None:
        assert found is None
        return
    assert found is not None
    assert found.is_refused is is_refused
    assert expected in found.message
