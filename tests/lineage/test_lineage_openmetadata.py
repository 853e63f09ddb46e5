"""Our events in OpenMetadata's real connector.

DQX_TEST_OPENMETADATA is the path of a Python that has `openmetadata-ingestion`, whose pins do not
go together with ours. Version 2.0.6 was tried.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.values import DatasetRef, GateReport, GateRequest
from tests.lineage.test_lineage_events import as_dict, history
from tests.processes import output_of

HERE = Path(__file__).parent
PYTHON = os.environ.get("DQX_TEST_OPENMETADATA", "")

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not PYTHON, reason="DQX_TEST_OPENMETADATA is not set"),
]


def read(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lineage that the connector reads from events."""
    printed = output_of(
        [PYTHON, "-W", "ignore", str(HERE / "openmetadata_reads.py")],
        input=json.dumps(list(events)),
    )
    found: list[dict[str, Any]] = json.loads(printed)
    return found


def test_every_event_is_understood_and_all_of_a_gate_are_one_pipeline() -> None:
    files = sorted((HERE / "golden").glob("*.json"))
    events = [event for file in files for event in json.loads(file.read_text())]
    found = read(events)
    assert len(found) == len(events) > 5
    assert {one["type"] for one in found} == {"START", "COMPLETE", "FAIL"}
    assert {one["pipeline"] for one in found} == {"airflow-shop.check_orders"}


def test_a_table_is_found_by_its_name_where_lineage_names_its_location(
    request_: GateRequest, passed: GateReport
) -> None:
    request = replace(request_, datasets=(DatasetRef("orders", table="sales.orders"),))
    snapshots = tuple(one for one in passed.datasets if one.name == "orders")
    events = history(request, replace(passed, datasets=snapshots))
    (place,) = {one["name"] for one in as_dict(events[-1])["inputs"]}
    assert read([as_dict(events[-1])])[0]["tables"] == {place: ["sales.orders"]}
