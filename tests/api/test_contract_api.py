"""Contracts in Python: run over tables, and compared with the schema of a DataFrame."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from dqx_airflow import Contract, ContractViolationError, MemoryDatabase, Status, assert_contract
from dqx_airflow.errors import RequestError, SourceError

DAY = date(2026, 5, 1)
CONTRACT = """\
dataContractSpecification: 1.2.1
id: orders
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
      total:
        type: number
        minimum: 0
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "orders.yaml"
    place.write_text(CONTRACT)
    return place


def rows(*pairs: tuple[int | None, float]) -> list[dict[str, Any]]:
    return [{"id": number, "total": total} for number, total in pairs]


def frame(**columns: str) -> Any:
    """What `assert_contract` asks of a DataFrame."""
    return SimpleNamespace(dtypes=list(columns.items()))


def test_a_contract_runs_like_a_suite_and_names_its_clauses(path: Path) -> None:
    contract = Contract.load(path, version="2.3")
    assert (contract.id, contract.version, contract.models) == ("orders", "2.3.0", ("orders",))
    data = {"orders": rows((1, 5.0), (1, -2.0), (None, 3.0))}
    results = contract.run(MemoryDatabase(data), DAY)
    failed = {item.name: item.clause for item in results if item.status is Status.FAILED}
    assert failed == {
        "orders.id.required": "models.orders.fields.id.required",
        "orders.id.unique": "models.orders.fields.id.unique",
        "orders.total.minimum": "models.orders.fields.total.minimum",
    }
    assert results.report.contract is not None
    assert results.report.contract.version == "2.3.0"
    assert "orders.yaml:11:19" in str(results)


def test_data_that_keeps_the_contract_passes(path: Path) -> None:
    data = {"orders": rows((1, 5.0), (2, 0.0))}
    results = Contract.load(path).run(MemoryDatabase(data), DAY)
    assert {item.status for item in results} == {Status.PASSED}


def test_a_contract_from_a_string_shows_its_compiled_suite() -> None:
    assert "assert null_count(id) == 0" in Contract.from_string(CONTRACT).suite


def test_an_unusable_contract_is_refused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="version 3 is pinned"):
        Contract.load(path, version="3")
    with pytest.raises(SourceError, match="file not found"):
        Contract.load(tmp_path / "nothing.yaml")
    with pytest.raises(SourceError, match="E405"):
        Contract.from_string(CONTRACT.replace("minimum: 0", "minimum: none"))
    with pytest.raises(RequestError, match="the gate has no dataset 'orders'"):
        Contract.load(path).run(MemoryDatabase({"order": rows((1, 1.0))}), DAY)


def test_a_frame_with_the_columns_of_the_contract_is_returned(path: Path) -> None:
    given = frame(id="int", total="decimal(10,2)", more="string")
    assert assert_contract(given, path, version="2") is given


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"total": "double"}, "orders.id.exists"),
        ({"id": "string", "total": "double"}, "orders.id.type"),
        ({"id": "bigint", "total": "string"}, "orders.total.type"),
    ],
)
def test_a_frame_that_breaks_the_contract_is_refused(
    path: Path, columns: dict[str, str], message: str
) -> None:
    with pytest.raises(ContractViolationError) as caught:
        assert_contract(frame(**columns), path)
    assert message in str(caught.value)
    assert "orders 2.3.0" in caught.value.problem
    assert caught.value.verdicts


def test_a_strict_reader_refuses_other_columns(path: Path) -> None:
    with pytest.raises(ContractViolationError, match="only_columns"):
        assert_contract(frame(id="bigint", total="double", more="string"), path, strict=True)


def test_a_reader_asks_for_no_values_nested_ones_included() -> None:
    record = "address: {type: record, fields: {zip: {type: string, minLength: 5}}}"
    text = CONTRACT + f"      {record}\n"
    compiled = Contract.from_string(text).of_schemas().suite
    assert "address.zip" in compiled
    assert "length" not in compiled


def test_a_reader_relies_on_a_version(path: Path) -> None:
    with pytest.raises(RequestError, match="version 1 is pinned"):
        assert_contract(frame(id="bigint", total="double"), path, version="1")


def test_a_contract_of_several_models_needs_a_model_name(tmp_path: Path) -> None:
    place = tmp_path / "two.yaml"
    place.write_text(CONTRACT + "  items:\n    fields:\n      id:\n        type: bigint\n")
    with pytest.raises(RequestError, match=r"orders, items\n  help: choose one"):
        assert_contract(frame(id="bigint"), place)
    assert assert_contract(frame(id="bigint"), place, model="items")


def test_a_loaded_contract_is_checked_with_the_arguments_of_the_reader(path: Path) -> None:
    loaded = Contract.load(path)
    given = frame(id="bigint", total="double", more="string")
    assert assert_contract(given, loaded, version="2") is given
    with pytest.raises(RequestError, match="version 3 is pinned"):
        assert_contract(given, loaded, version="3")
    with pytest.raises(ContractViolationError, match="only_columns"):
        assert_contract(given, loaded, strict=True)
    with pytest.raises(RequestError, match="choose one"):
        assert_contract(given, loaded, model="order")


def test_a_contract_without_columns_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "empty.yaml"
    place.write_text(CONTRACT.split("    fields:", maxsplit=1)[0] + "    description: Orders.\n")
    with pytest.raises(RequestError, match="declares no columns for orders"):
        assert_contract(frame(id="bigint"), place)


def test_anything_but_a_frame_is_refused(path: Path) -> None:
    with pytest.raises(RequestError, match="list is not a DataFrame of Spark"):
        assert_contract([1], path)
    pandas = pytest.importorskip("pandas").DataFrame({"id": [1], "total": [1.5]})
    arrow = pa.table({"id": [1], "total": [1.5]})
    for given in (pandas, arrow, pandas["id"], {"orders": pandas}, None, "orders.csv"):
        with pytest.raises(RequestError, match="not a DataFrame of Spark") as refused:
            assert_contract(given, path)
        assert "ContractValidator(contract).validate(frame)" in str(refused.value)
        if not isinstance(given, str):
            with pytest.raises(RequestError, match=r"write assert_contract\(frame, contract\)"):
                assert_contract(path, given)  # type: ignore[arg-type]
