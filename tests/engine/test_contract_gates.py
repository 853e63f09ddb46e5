"""Gates on contracts, on a real Spark: clauses in verdicts, results and lineage; tables that tell
their contract; texts whose values cannot be cast."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from dqx_airflow.contracts.enforcement.contract_datasets import dataset_settings
from dqx_airflow.contracts.enforcement.enforced_contract import enforce
from dqx_airflow.datasets.settings import dataset_ref
from dqx_airflow.engine.contract_properties import publish
from dqx_airflow.results.runs import read_report
from dqx_airflow.values import (
    ContractDescription,
    DatasetRef,
    GateReport,
    GateRequest,
    Outcome,
    SourceFile,
    Status,
    Verdict,
)
from tests.engine.lake import TODAY, Run, delta, request

pytestmark = pytest.mark.spark


CONTRACT = """\
dataContractSpecification: 1.2.1
id: urn:orders
info:
  title: Orders
  version: 2.3.0
models:
  orders:
    fields:
      id:
        type: bigint
        required: true
        unique: true
        primaryKey: true
      total:
        type: double
        minimum: 0
      mail:
        type: string
        format: email
        pii: true
      address:
        type: struct
        fields:
          city:
            type: string
            required: true
      tags:
        type: array
        items:
          type: string
          enum: [new, used]
"""
ROWS: list[dict[str, Any]] = [
    {"id": 1, "total": 1.5, "mail": "a@b.ch", "address": {"city": "Bern"}, "tags": ["new"]},
    {"id": 2, "total": 2.5, "mail": None, "address": {"city": "Biel"}, "tags": []},
]
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("total", pa.float64()),
        ("mail", pa.string()),
        ("address", pa.struct([("city", pa.string())])),
        ("tags", pa.list_(pa.string())),
    ]
)


def gate_on(folder: Path, text: str, given: DatasetRef) -> GateRequest:
    """The request of a gate that enforces a contract of one model."""
    found = enforce(SourceFile("orders.yaml", text), on=TODAY)
    assert found.contract is not None, found.diagnostics
    settings = dataset_settings(found.contract, {"orders": given})
    datasets = [dataset_ref(name, item) for name, item in settings.items()]
    enforced = found.over(datasets)
    assert enforced.objections == ()
    asked = request(folder, enforced.suite.text, datasets)
    return replace(asked, suite=enforced.suite, contract=enforced.contract)


def orders(folder: Path, *more: dict[str, Any]) -> DatasetRef:
    return delta(folder, "orders", pa.Table.from_pylist([*ROWS, *more], schema=SCHEMA))


def failed(report: GateReport) -> dict[str, Verdict]:
    return {item.name: item for item in report.verdicts if item.status is not Status.PASSED}


def test_data_that_keeps_the_contract_passes(run: Run, tmp_path: Path) -> None:
    report = run(gate_on(tmp_path, CONTRACT, orders(tmp_path)))
    assert failed(report) == {}
    assert report.outcome is Outcome.PASSED


BROKEN = [
    ({"id": None}, "orders.id.required", "models.orders.fields.id.required"),
    ({"id": 1}, "orders.id.unique", "models.orders.fields.id.unique"),
    ({"total": -1.0}, "orders.total.minimum", "models.orders.fields.total.minimum"),
    ({"mail": "nobody"}, "orders.mail.format", "models.orders.fields.mail.format"),
    ({"address": {"city": None}}, "orders.address.city.required", "address.fields.city.required"),
    ({"tags": ["new", "old"]}, "orders.tags[].enum", "models.orders.fields.tags.items.enum"),
]


@pytest.mark.few(1)
@pytest.mark.parametrize(("changed", "name", "clause"), BROKEN, ids=[row[1] for row in BROKEN])
def test_a_broken_clause_is_reported_with_its_location(
    run: Run, tmp_path: Path, changed: dict[str, Any], name: str, clause: str
) -> None:
    row = {**ROWS[0], "id": 3, **changed}
    report = run(gate_on(tmp_path, CONTRACT, orders(tmp_path, row)))
    verdict = failed(report)[name]
    assert report.outcome is Outcome.BLOCKED
    assert verdict.clause is not None
    assert clause in verdict.clause
    assert verdict.span is not None
    assert verdict.source_line == CONTRACT.split("\n")[verdict.span.line - 1]
    assert "nobody" not in str(report)


def test_results_and_lineage_carry_contract_and_clause(run: Run, tmp_path: Path) -> None:
    asked = gate_on(tmp_path, CONTRACT, orders(tmp_path, {**ROWS[0], "id": 3, "total": -1.0}))
    report = run(asked)
    assert read_report(asked.results_root, asked.run_key, asked.attempt.id) == report
    assert report.contract is not None
    assert (report.contract.id, report.contract.version) == ("urn:orders", "2.3.0")
    rows = DeltaTable(f"{asked.results_root}/results").to_pyarrow_table().to_pylist()
    clauses = {row["name"]: row["clause"] for row in rows if row["contract_version"] == "2.3.0"}
    assert clauses["orders.total.minimum"] == "models.orders.fields.total.minimum"
    lines = (tmp_path / "lineage.jsonl").read_text().splitlines()
    (fail,) = [event for event in map(json.loads, lines) if event["eventType"] == "FAIL"]
    tests = fail["run"]["facets"]["test"]["tests"]
    (lineage_test,) = [test for test in tests if test["name"] == "orders.total.minimum"]
    assert lineage_test["params"]["contract"] == "urn:orders"
    assert lineage_test["params"]["contract_version"] == "2.3.0"
    assert lineage_test["params"]["clause"] == "models.orders.fields.total.minimum"


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("published", "status"),
    [
        (("urn:orders", "2.3.0"), Status.PASSED),
        (("urn:orders", "2.2.0"), Status.FAILED),
        (("urn:other", "1.0.0"), None),
    ],
)
def test_a_table_of_another_contract_version_is_reported(
    run: Run, tmp_path: Path, published: tuple[str, str], status: Status | None
) -> None:
    given = orders(tmp_path)
    assert given.path is not None
    publish(ContractDescription(*published), given.path)
    report = run(gate_on(tmp_path, CONTRACT, given))
    found = [item.status for item in report.verdicts if item.name == "orders.contract_version"]
    assert found == ([] if status is None else [status])
    assert report.outcome is (Outcome.WARNED if status is Status.FAILED else Outcome.PASSED)


CSV = CONTRACT.split("      address:", maxsplit=1)[0]


@pytest.mark.more
def test_one_value_that_cannot_be_cast_is_one_failing_row(run: Run, tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text(
        "mail,id,total\na@b.ch,1,1.5\nb@b.ch,two,2.5\nc@b.ch,3,many\n"
    )
    given = DatasetRef(
        "orders", path=str(tmp_path / "orders.csv"), format="csv", options=(("header", "true"),)
    )
    report = run(gate_on(tmp_path, CSV, given))
    verdict = failed(report)["orders.well_formed"]
    assert verdict.value == 2
    rows = sorted(item.row for item in verdict.failing_rows)
    assert len(rows) == 2, rows
    assert '"two"' in "\n".join(rows)
    assert '"many"' in "\n".join(rows)
