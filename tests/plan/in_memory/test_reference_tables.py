"""Tables in memory: the types of their values, and invalid values."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from dqx_airflow.plan.in_memory.table import Table, TableError, columns_of, value_of

HERE = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("value", "spark_type"),
    [
        (1, "bigint"),
        (2**63, "decimal(38,0)"),
        (1.5, "double"),
        (Decimal("1.50"), "decimal(3,2)"),
        (Decimal("0.001"), "decimal(3,3)"),
        (Decimal("1E+2"), "decimal(3,0)"),
        ("", "string"),
        (True, "boolean"),
        (b"", "binary"),
        (date(2024, 1, 1), "date"),
        (datetime(2024, 1, 1), "timestamp_ntz"),
        (datetime(2024, 1, 1, tzinfo=HERE), "timestamp"),
        ([1, None, 2.5], "array<double>"),
        ([], "array<void>"),
        ({"a": 1, "b": {"c": "x"}}, "struct<a:bigint,b:struct<c:string>>"),
        ({1: "a", 2: None}, "map<bigint,string>"),
    ],
)
def test_a_type_is_inferred_from_the_values(value: Any, spark_type: str) -> None:
    table = Table.of_columns(columns_of([{"x": None}, {"x": value}]))
    assert [(field.name, field.type) for field in table.fields] == [("x", spark_type)]


def test_rows_may_lack_columns_and_have_more() -> None:
    table = Table.of_columns(columns_of([{"a": 1}, {"b": "x", "a": Decimal("1.5")}, {"c": None}]))
    assert [field.type for field in table.fields] == ["decimal(21,1)", "string", "void"]
    assert table.rows == ((1, None, None), (Decimal("1.5"), "x", None), (None, None, None))


@pytest.mark.parametrize("text", ["9E99999999999999999999", "1E-99999999999999999999", "9E999999"])
def test_a_number_without_room_in_a_decimal_is_malformed(text: str) -> None:
    assert value_of(text, "decimal(5,2)") is None


def test_timestamps_are_stored_in_utc_and_floats_as_float() -> None:
    types = {"at": "timestamp", "plain": "timestamp", "f": "float", "m": "map<int,string>"}
    noon = datetime(2024, 1, 1, 12)
    row = (noon.replace(tzinfo=HERE), noon, 0.1, {2: "b", 1: "a"})
    ((at, plain, number, pairs),) = Table.typed(types, [row]).rows
    assert at == datetime(2024, 1, 1, 10, tzinfo=timezone.utc)
    assert plain == noon.replace(tzinfo=timezone.utc)
    assert number == 0.10000000149011612
    assert pairs == ((1, "a"), (2, "b"))


@pytest.mark.parametrize(
    ("spark_type", "value"),
    [
        ("int", 2**31),
        ("int", 1.5),
        ("int", "1"),
        ("tinyint", -129),
        ("decimal(5,2)", Decimal("1.005")),
        ("decimal(5,2)", Decimal("1000")),
        ("decimal(5,2)", 1.5),
        ("double", "1.5"),
        ("string", 1),
        ("boolean", 1),
        ("date", "2024-01-01"),
        ("date", datetime(2024, 1, 1)),
        ("timestamp", date(2024, 1, 1)),
        ("timestamp_ntz", datetime(2024, 1, 1, tzinfo=HERE)),
        ("array<int>", ["x"]),
        ("array<string>", "abc"),
        ("array<string>", {"a": "x"}),
        ("array<int>", b"abc"),
        ("map<string,string>", ["kv"]),
        ("map<string,int>", [("k", 1), ("k", 2)]),
        ("struct<a:int>", {"a": "x"}),
        ("struct<a:int>", {"A": 1}),
        ("struct<a:int>", {"b": 1}),
        ("struct<a:int>", "a"),
        ("struct<a:int>", ["a"]),
    ],
)
def test_a_value_that_does_not_fit_its_column_is_reported(spark_type: str, value: Any) -> None:
    with pytest.raises(TableError) as raised:
        Table.typed({"x": spark_type}, [(None,), (value,)])
    assert str(raised.value).startswith("row 2: ")
    assert str(raised.value).endswith(f"does not fit column 'x' of type {spark_type}")


def test_values_of_several_types_are_refused() -> None:
    with pytest.raises(TableError, match="x contains values of several types: bigint, string"):
        Table.of_columns(columns_of([{"x": 1}, {"x": "1"}]))


def test_a_row_needs_one_value_per_column() -> None:
    with pytest.raises(TableError, match="row 1 has 1 values for 2 columns"):
        Table.typed({"a": "int", "b": "int"}, [(1,)])
