"""The events about contracts match the published schemas."""

from __future__ import annotations

from datetime import datetime, timezone

from dqx_airflow.lineage.events import block_events, contract_event
from dqx_airflow.values import ContractDescription, FieldDescription, FieldSource
from tests.openlineage_schemas import problems

NOW = datetime(2026, 5, 1, 12, tzinfo=timezone.utc)
FULL = ContractDescription(
    "urn:orders",
    "1.2.0",
    "One record per order." * 100,
    ("checkout", "it@example.com"),
    (
        FieldDescription(
            "id",
            "bigint",
            "The number.",
            (
                FieldSource("pg", "orders", "id"),
                FieldSource("pg", "orders", "mail", "INDIRECT", "JOIN", "joined", masking=True),
            ),
        ),
        FieldDescription("we ird`\0", "struct<a:int>"),
    ),
)


def test_the_event_of_a_contract_is_valid() -> None:
    bare = ContractDescription("x", None)
    events = [
        contract_event(FULL, "s3://lake/orders", NOW, "dq"),
        contract_event(FULL, "main.sales.orders", NOW, "dq"),
        contract_event(bare, "/lake/orders", NOW, "dq"),
    ]
    assert problems(events) == []


def test_the_events_of_a_broken_block_are_valid() -> None:
    run_id = "01939b7e-0000-7000-8000-000000000001"
    events = block_events("Active \0", "a.B.c@1", "it is gone", run_id, NOW, "dq")
    assert problems(events) == []
