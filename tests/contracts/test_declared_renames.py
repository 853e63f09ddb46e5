"""`x-dqx-renamed`, in the form of each dialect, and the errors in it."""

from __future__ import annotations

import pytest

from dqx_airflow.contracts.model import Renamed
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.values import SourceFile

DCS = """\
dataContractSpecification: 1.2.1
id: r
info: {title: R, version: 1.0.0}
models: {orders: {fields: {qty: {type: int}, address: {type: struct, fields: {zip: {type: int}}}}}}
x-dqx-renamed:
  - RENAME
"""
ODCS = """\
apiVersion: v3.1.0
kind: DataContract
id: r
version: 1.0.0
status: active
schema: [{name: orders, properties: [{name: qty, logicalType: integer}]}]
customProperties: [{property: x-dqx-renamed, value: [RENAME]}]
"""
PRODUCT = """\
contract: {name: orders, version: "1.0.0", owner: us, x-dqx-renamed: [RENAME]}
schema: {fields: [{name: qty, type: integer}]}
"""


@pytest.mark.parametrize("text", [DCS, ODCS, PRODUCT], ids=["dcs", "odcs", "product"])
def test_a_rename_is_read_from_every_dialect(text: str) -> None:
    text = text.replace("RENAME", "{model: orders, field: qty, from: n}")
    found = read_contract(SourceFile("c.yaml", text))
    assert not found.errors
    assert found.contract is not None
    assert found.contract.renames == (Renamed("orders", "qty", "n"),)


@pytest.mark.parametrize(
    ("rename", "expected"),
    [
        ("{model: order, from: o}", "unknown model 'order'"),
        ("{model: orders, field: address.zap, from: zip}", "'orders' has no field 'address.zap'"),
        ("{model: orders}", "the rename has no 'from'"),
        ("{from: orders}", "the rename has no 'model'"),
        ("orders", "the rename has no 'model'"),
    ],
)
def test_a_rename_of_nothing_is_an_error(rename: str, expected: str) -> None:
    found = read_contract(SourceFile("c.yaml", DCS.replace("RENAME", rename)))
    assert [error.message for error in found.errors] == [expected]
