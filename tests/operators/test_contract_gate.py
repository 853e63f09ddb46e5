"""The gate on a contract: its request to the job, and what it refuses before submitting."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dqx_airflow.values import DatasetRef, Severity
from tests.operators.gate_stubs import Gates, Log, Run, SparkSubmit, dag_file

pytestmark = pytest.mark.airflow

CONTRACT = """\
dataContractSpecification: 1.2.1
id: orders
info:
  title: Orders
  version: 2.3.0
  owner: checkout
servers:
  lake:
    type: local
    path: /lake/{model}
    format: delta
models:
  orders:
    fields:
      order_id:
        type: string
        primaryKey: true
      email:
        type: string
        required: true
        pii: true
      total:
        type: number
        minimum: 0
"""


@pytest.fixture
def gate(operators: ModuleType, context: dict[str, Any], dag_folder: Path) -> Gates:
    (dag_folder / "orders.yaml").write_text(CONTRACT)
    return Gates(operators, context, "ContractGateOperator", {"contract": "orders.yaml"})


def test_a_contract_is_submitted_as_its_compiled_suite(gate: Gates) -> None:
    request = gate.checked(expect_version="2")
    assert 'name "orders.order_id.required"' in request.suite.text
    assert request.contract is not None
    contract = request.contract
    assert (contract.id, contract.version, contract.pin) == ("orders", "2.3.0", "2")
    (clause,) = [
        item for item in request.contract.clauses if item.assertion == "orders.total.minimum"
    ]
    assert clause.path == "models.orders.fields.total.minimum"
    assert (clause.span.file, clause.line) == ("orders.yaml", "        minimum: 0")
    assert request.contract.checked > 5


def test_the_servers_of_the_contract_give_the_location(gate: Gates) -> None:
    (ref,) = gate.checked().datasets
    assert ref == DatasetRef(
        "orders", path="/lake/orders", format="delta", keys=("order_id",), masked=("email",)
    )


@pytest.mark.parametrize(
    "given",
    [
        {"data": "/other/orders"},
        {"datasets": {"orders": "/other/orders"}},
        {"data": {"path": "/other/orders"}},
        {"data": DatasetRef("x", path="/{{ layer }}/orders")},
    ],
)
def test_the_dag_may_give_the_location(gate: Gates, given: dict[str, Any]) -> None:
    (ref,) = gate.checked(**given).datasets
    assert ref.name == "orders"
    assert ref.path in ("/other/orders", "/silver/orders")
    assert ref.masked == ("email",)


def test_settings_in_the_dag_win(gate: Gates) -> None:
    given = {"path": "/x/y", "keys": ["email"], "masked": ["total"], "date_column": "ds"}
    (ref,) = gate.checked(data=given).datasets
    assert (ref.keys, ref.date_column) == (("email",), "ds")


@pytest.mark.parametrize("masked", [["total"], "total", ["total", "email"]])
def test_a_dag_can_only_add_to_the_masks_of_the_contract(gate: Gates, masked: Any) -> None:
    (ref,) = gate.checked(data={"path": "/x/y", "masked": masked}).datasets
    assert ref.masked == ("email", "total")


def test_a_contract_may_be_inline(gate: Gates) -> None:
    request = gate.checked(contract=CONTRACT)
    assert request.contract is not None
    assert request.contract.clauses[0].span.file == "<inline contract>"


def test_a_strict_gate_looks_for_columns_that_the_contract_does_not_name(gate: Gates) -> None:
    assert "extra_column_count" not in gate.checked().suite.text
    assert "extra_column_count" in gate.checked(strict=True).suite.text


def test_a_contract_gate_returns_the_outcome(gate: Gates, spark_submit: SparkSubmit) -> None:
    assert gate.run(fail_on="P0") == "passed"
    (request,) = spark_submit.requests
    assert request.fail_on is Severity.P0
    assert request.contract is not None


ODCS = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers:
  - {server: lake, type: local, path: "${LAKE}/orders", format: delta}
schema:
  - name: orders
    properties:
      - {name: region, logicalType: string, enum: [{value: "${REGION:-CH}"}]}
"""


def test_the_worker_resolves_the_variables_of_a_contract(
    gate: Gates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGION", "AT")
    given = {"LAKE": "/lake/{{ ds }}", "REGION": None}
    request = gate.checked(contract=ODCS, variables=given)
    assert request.datasets[0].path == f"/lake/{gate.context['ds']}/orders"
    assert '"AT"' in request.suite.text
    assert request.contract is not None
    assert [source.text for source in request.contract.sources] == [ODCS.strip()]
    # What is not listed is not read from the environment.
    request = gate.checked(contract=ODCS, variables={"LAKE": "/lake"})
    assert '"CH"' in request.suite.text


MISTAKES = [
    ({"contract": ODCS}, "servers[0].path has the unknown variable 'LAKE'"),
    ({"contract": ODCS, "variables": {"LAKE": 5}}, "write a mapping of names to strings or None"),
    ({"contract": ODCS, "variables": {"A B": "x"}}, "'A B' is not the name of a variable"),
    ({"contract": ODCS, "variables": {"TOKEN": "x"}}, "TOKEN may be a secret"),
    ({"contract": "nowhere.yaml"}, "contract nowhere.yaml not found: searched "),
    ({"contract": ""}, "contract='': give the path of a file, or a contract"),
    ({"contract": "id: 1\nname: x\n"}, "unknown contract format"),
    ({"contract": CONTRACT.replace("minimum: 0", "minimum: many")}, "line 24"),
    ({"contract": CONTRACT.replace("type: number", "type: nummer")}, "line 23"),
    ({"expect_version": "3"}, "has version 2.3.0, but version 3 is pinned"),
    ({"expect_version": "two"}, "'two' is not a version"),
    ({"models": "order"}, "no model 'order': did you mean 'orders'?"),
    ({"server": "lakes"}, "did you mean 'lake'?"),
    ({"data": "/a/b", "datasets": {"orders": "/a/b"}}, "data is for a contract of one model"),
    ({"contract": CONTRACT.replace("local", "kafka")}, "Spark does not read the server 'lake'"),
    ({"contract": CONTRACT.replace("2.3.0", "2.3.0\n  status: retired")}, "orders was sunset"),
]


@pytest.mark.parametrize(("given", "message"), MISTAKES, ids=[message for _, message in MISTAKES])
def test_a_gate_that_cannot_run_ends_before_any_job(
    gate: Gates, spark_submit: SparkSubmit, given: dict[str, Any], message: str
) -> None:
    assert message in str(gate.fails("GateMisconfiguredError", **given))
    assert spark_submit.calls == []


def test_unchecked_clauses_are_logged(gate: Gates, log: Log) -> None:
    gate.checked(contract=CONTRACT + "        requird: true\n")
    (warning,) = log.at("warning")
    assert warning.startswith("not checked: models.orders.fields.total.requird (P1): ")


def test_a_deprecated_contract_is_logged(gate: Gates, log: Log) -> None:
    gate.checked(contract=CONTRACT.replace("2.3.0", "2.3.0\n  status: deprecated"))
    assert "orders is deprecated" in log.at("warning")


MAPPED = dag_file("""
    ContractGateOperator.partial(
        task_id="gate", contract="orders.yaml", expect_version="{{ 2 }}"
    ).expand(
        data=["/lake/passed", {"path": "/lake/blocked"}]
    ) >> EmptyOperator(task_id="downstream")
""")


@pytest.mark.more
def test_mapped_gates_are_judged_one_by_one(
    run_file: Callable[..., Run], spark_submit: SparkSubmit
) -> None:
    spark_submit.will("by_dataset")
    run = run_file(MAPPED, {"orders.yaml": CONTRACT})
    assert [run["gate[0]"], run["gate[1]"]] == ["success", "failed"]
    assert run["downstream"] == "upstream_failed"
    # Which of two mapped tasks goes first is the scheduler's own affair.
    paths = {request.datasets[0].path for request in spark_submit.requests}
    assert paths == {"/lake/passed", "/lake/blocked"}


def test_each_date_of_a_range_has_the_contract_as_of_that_date(
    gate: Gates, spark_submit: SparkSubmit
) -> None:
    data = {"path": "/lake/orders", "format": "delta"}
    assert gate.run(data=data, date="2024-05-30..2024-06-01") == "passed"
    (request,) = spark_submit.requests
    assert [part.run_key.date.day for part in request.parts] == [30, 31, 1]
    contracts = {part.contract.id if part.contract else None for part in request.parts}
    assert contracts == {"orders"}
    # Nothing depends on the date here: the suite travels once.
    assert [part.suite for part in request.more] == [None, None]
