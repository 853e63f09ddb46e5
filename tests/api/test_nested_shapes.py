"""Nested values of a wrong shape: rows of Python, pandas and Arrow get the same verdicts."""

from __future__ import annotations

from typing import Any

import pytest

from dqx_airflow import Contract, ContractValidator
from dqx_airflow.errors import RequestError

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

CONTRACT = """\
apiVersion: v3.1.0
kind: DataContract
id: o
version: 1.0.0
status: active
schema:
  - name: t
    properties:
"""
TEXT = "logicalType: string, logicalTypeOptions: {pattern: '^good$'}"
OBJECT = f"logicalType: object, properties: [{{name: x, required: true, {TEXT}}}]"
PROPERTIES = {
    "string": TEXT,
    "array": f"logicalType: array, items: {{{TEXT}}}",
    "array of integers": "logicalType: array, items: {logicalType: integer}",
    "array of arrays": f"logicalType: array, items: {{logicalType: array, items: {{{TEXT}}}}}",
    "array of objects": f"logicalType: array, items: {{{OBJECT}}}",
    "object": OBJECT,
    "object of an object": f"logicalType: object, properties: [{{name: o, {OBJECT}}}]",
    "object of an array": (
        f"logicalType: object, properties: [{{name: l, logicalType: array, items: {{{TEXT}}}}}]"
    ),
    "map": "logicalType: object, physicalType: 'map<string,string>'",
}
SCALARS = ("good", "bad", b"good", 1, 1.5, True)
OBJECTS = (
    *({name: value} for name in "xXy" for value in (*SCALARS, None)),
    {},
    {"x": "good", "y": 1},
    {"x": ["good"]},
    {"x": {"x": "good"}},
)
ITEMS = (*SCALARS, *OBJECTS, None, "kv")
LISTS = ([], *([value] for value in ITEMS), [{"x": "good"}, {"y": "good"}])
VALUES = (
    *SCALARS,
    *OBJECTS,
    *LISTS,
    *([value] for value in LISTS),
    *({name: value} for name in "oO" for value in (*OBJECTS, "good", [{"x": "good"}])),
    *({name: value} for name in "lL" for value in (*LISTS, "good")),
)


def contract_of(column: str) -> Contract:
    return Contract.from_string(f"{CONTRACT}      - {{name: a, {column}}}")


def verdicts(contract: Contract, frame: Any) -> list[tuple[str, str, str | None]]:
    results = ContractValidator(contract).validate(frame)["results"]
    return [(one.name, one.status.value, one.reason) for one in results]


def arrow_of(value: Any, kind: str) -> Any:
    """The value in Arrow, where a dict is a struct if no type is given."""
    if kind == "map" and isinstance(value, dict):
        inner = pa.array(list(value.values())).type
        return pa.array([value], pa.map_(pa.string(), inner))
    return pa.array([value])


def is_in_arrow(value: Any, kind: str) -> bool:
    """False for an empty list as a map, which is an empty map of Arrow in pandas, and for a map
    with values of several types, which Arrow has not."""
    if kind == "map" and isinstance(value, dict):
        return len(set(map(type, value.values()))) < 2
    return kind != "map" or value != []


@pytest.mark.few(12, apart=True)
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_of_any_shape_has_the_verdicts_of_arrow(value: Any) -> None:
    kinds = {f"c{number}": kind for number, kind in enumerate(PROPERTIES)}
    columns = {name: kind for name, kind in kinds.items() if is_in_arrow(value, kind)}
    properties = [f"      - {{name: {name}, {PROPERTIES[columns[name]]}}}" for name in columns]
    contract = Contract.from_string(CONTRACT + "\n".join(properties))
    arrow = pa.table({name: arrow_of(value, kind) for name, kind in columns.items()})
    row = dict.fromkeys(columns, value)
    expected = verdicts(contract, arrow)
    assert verdicts(contract, [row]) == expected
    assert verdicts(contract, pd.DataFrame({name: [value] for name in columns})) == expected


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("array", "good", "a is string, not array<string>"),
        ("array", {"x": "good"}, "a is struct<x:string>, not array<string>"),
        ("array of integers", b"good", "a is binary, not array<whole_number>"),
        ("array of arrays", ["good"], "a[item] is string, not array<string>"),
        ("array of objects", [{"y": "good"}], "a[item].x is missing"),
        ("array of objects", {"x": "good"}, "a is struct<x:string>, not array<struct<x:string>>"),
        ("object", [1], "a is array<bigint>, not struct<>"),
        ("object of an object", {"o": "good"}, "a.o is string, not struct<>"),
        ("object of an array", {"l": {"x": "good"}}, "a.l is struct<x:string>, not array<string>"),
        ("map", ["kv"], "a is array<string>, not map<string,string>"),
    ],
)
def test_a_wrong_shape_is_a_wrong_type_at_its_place(kind: str, value: Any, words: str) -> None:
    contract = contract_of(PROPERTIES[kind])
    errors = ContractValidator(contract).validate([{"a": value}])["schema_errors"]
    assert words in "\n".join(errors)


def test_a_field_is_found_in_another_case_and_missing_if_no_value_has_it() -> None:
    contract = contract_of(OBJECT)
    validator = ContractValidator(contract)
    assert validator.validate([{"a": {"X": "good"}}, {"a": {"X": "good", "y": 1}}])["valid"]
    assert validator.validate([{"A": {"X": "good"}}])["valid"]
    (errors,) = validator.validate([{"a": {"X": "bad"}}])["field_errors"].values()
    assert [error.partition(":")[0] for error in errors] == ["t.a.x.pattern"]
    missing = validator.validate([{"a": {"y": "good"}}])["schema_errors"]
    assert missing[0] == "t.a.x.exists: the column does not exist"


def test_a_field_of_any_name_gets_its_type() -> None:
    column = "logicalType: object, properties: [{name: first name, physicalType: int}]"
    assert ContractValidator(contract_of(column)).validate([{"a": {"first name": 1}}])["valid"]


def test_a_column_of_several_shapes_is_no_column() -> None:
    contract = contract_of(OBJECT)
    with pytest.raises(RequestError, match="a contains values of several types: struct<x:string>"):
        ContractValidator(contract).validate([{"a": {"x": "good"}}, {"a": "good"}])
