"""Types as strings: their spellings, which of two is wider, and which fits into which."""

from __future__ import annotations

from decimal import Decimal

import pytest

from dqx_airflow.metrics.types import (
    TypeTextError,
    canonical_type,
    decimal_size,
    decimal_type,
    fields_of,
    find_column_path,
    find_column_paths,
    misfits,
    parts_of,
    spelled_like,
    widest,
)
from dqx_airflow.plan.row_types import objection_to_comparison

SPELLED = {
    "INTEGER": "int",
    "Long": "bigint",
    "byte": "tinyint",
    "short": "smallint",
    "real": "float",
    "bool": "boolean",
    "timestamp_ltz": "timestamp",
    "TIMESTAMP_NTZ": "timestamp_ntz",
    "decimal": "decimal(10,0)",
    "dec(5)": "decimal(5,0)",
    "numeric( 38 , 38 )": "decimal(38,38)",
    "decimal(1,1)": "decimal(1,1)",
    "varchar(20)": "varchar(20)",
    "char(3)": "char(3)",
    "array< int >": "array<int>",
    "map<string, array<long>>": "map<string,array<bigint>>",
    "struct<>": "struct<>",
    "struct<a:struct<>,b:int>": "struct<a:struct<>,b:int>",
    "array<struct<>>": "array<struct<>>",
    "decimal(1)": "decimal(1,0)",
    "struct<X:int>": "struct<X:int>",
    "struct<`a b`:int,c:decimal(4,2)>": "struct<a b:int,c:decimal(4,2)>",
    "struct<A:struct<b:void>>": "struct<A:struct<b:void>>",
    "array<" * 50 + "int" + ">" * 50: "array<" * 50 + "int" + ">" * 50,
    "ANY": "any",
}
NO_TYPES = {
    "": "",
    "txt": "txt",
    "int int": "int",
    "int)": ")",
    "array": "",
    "array<int,int>": "array",
    "map<int>": "map",
    "map<int,int,int>": "map",
    "array(int>": ">",
    "struct<a>": ">",
    "struct<a int>": "int",
    "decimal(0,0)": "decimal(0,0)",
    "decimal(39,0)": "decimal(39,0)",
    "decimal(4,5)": "decimal(4,5)",
    "decimal(4,2,1)": "decimal(4,2,1)",
    "decimal(a)": "decimal(a)",
    "varchar(1,2)": "varchar(1,2)",
    "int(3)": "int(3)",
    "int!": "int!",
    "array<" * 51 + "int" + ">" * 51: "int",
    "struct<a:" * 51 + "int" + ">" * 51: "int",
}
WIDEST = [
    ("int", "int", "int"),
    ("void", "date", "date"),
    ("date", "void", "date"),
    ("tinyint", "smallint", "smallint"),
    ("bigint", "int", "bigint"),
    ("int", "float", "double"),
    ("float", "decimal(4,2)", "double"),
    ("double", "float", "double"),
    ("decimal(10,2)", "decimal(8,4)", "decimal(12,4)"),
    ("decimal(4,4)", "int", "decimal(14,4)"),
    ("bigint", "decimal(5,5)", "decimal(25,5)"),
    ("decimal(38,10)", "decimal(38,30)", "decimal(38,30)"),
    ("decimal(38,0)", "decimal(38,38)", "decimal(38,38)"),
    ("date", "string", "timestamp_ntz"),
    ("string", "timestamp_ntz", "timestamp"),
    ("date", "timestamp", "timestamp"),
    ("timestamp", "date", "timestamp"),
    ("date", "timestamp_ntz", "timestamp_ntz"),
    ("timestamp", "timestamp_ntz", "timestamp"),
    ("string", "varchar(3)", "string"),
    ("boolean", "boolean", "boolean"),
]


@pytest.mark.parametrize(("text", "spelled"), SPELLED.items())
def test_a_type_has_one_spelling(text: str, spelled: str) -> None:
    assert canonical_type(text, ("any",)) == spelled


@pytest.mark.parametrize(("text", "guilty"), NO_TYPES.items())
def test_an_invalid_type_names_the_part_at_fault(text: str, guilty: str) -> None:
    with pytest.raises(TypeTextError) as raised:
        canonical_type(text)
    assert raised.value.text == guilty
    assert str(raised.value) == guilty


def test_a_type_is_split_at_its_outer_commas() -> None:
    assert parts_of("decimal(18,2)") == ("18", "2")
    assert parts_of("map<decimal(4,2),struct<a:int,b:int>>") == (
        "decimal(4,2)",
        "struct<a:int,b:int>",
    )
    assert parts_of("int") == ()
    assert fields_of("struct<a:int,b:struct<c:date>>") == {"a": "int", "b": "struct<c:date>"}
    assert (fields_of("struct<>"), fields_of("array<int>")) == ({}, {})


@pytest.mark.parametrize(("one", "other", "wide"), WIDEST)
def test_the_wider_type_holds_both(one: str, other: str, wide: str) -> None:
    assert widest(one, other) == wide


def test_the_widest_of_several_is_found_from_left_to_right() -> None:
    assert widest("void", "tinyint", "int", "decimal(3,1)") == "decimal(11,1)"


def test_decimals_have_as_many_digits_as_they_need() -> None:
    sizes = [decimal_size(kind) for kind in ("tinyint", "smallint", "int", "bigint")]
    assert sizes == [(3, 0), (5, 0), (10, 0), (20, 0)]
    assert decimal_size("decimal(18,2)") == (18, 2)
    assert decimal_type(Decimal("1.50")) == "decimal(3,2)"
    assert decimal_type(Decimal("0.001")) == "decimal(3,3)"
    assert decimal_type(Decimal("1e3")) == "decimal(4,0)"
    assert decimal_type(Decimal("-9" * 1 + "9" * 37)) == "decimal(38,0)"
    assert decimal_type(Decimal("9" * 39)) is None
    assert decimal_type(Decimal("1e-39")) is None
    assert decimal_type(Decimal("NaN")) is None


def test_a_name_matches_exactly_or_uniquely_ignoring_case() -> None:
    assert spelled_like("a", ["A", "a"]) == "a"
    assert spelled_like("PRICE", ["id", "Price"]) == "Price"
    assert spelled_like("x", ["X", "y"]) == "X"
    assert spelled_like("AA", ["aa", "Aa"]) is None
    assert spelled_like("z", ["X", "y"]) is None


TYPES = {
    "a": "struct<b:struct<c:int>,B2:date>",
    "a.b": "string",
    "a.b.c": "boolean",
    "Id": "bigint",
}


def test_a_name_leads_to_columns_first_and_then_to_fields() -> None:
    found = [(path.path, path.type) for path in find_column_paths("a.b.c", TYPES)]
    assert found == [(("a.b.c",), "boolean"), (("a", "b", "c"), "int")]
    (only,) = find_column_paths("A.b2", TYPES)
    assert (only.path, only.type) == (("a", "B2"), "date")
    assert find_column_path("ID", TYPES) == next(find_column_paths("Id", TYPES))
    for name in ("a.x", "Id.x", "x.a", "a.b.c.d", "", "."):
        assert find_column_path(name, TYPES) is None


FITS = [
    ("void", "date"),
    ("array<int>", "any"),
    ("decimal(4,0)", "whole_number"),
    ("bigint", "whole_number"),
    ("decimal(18,2)", "decimal_number"),
    ("float", "floating_number"),
    ("array<int>", "array"),
    ("map<string,int>", "map"),
    ("struct<a:int>", "struct"),
    ("array<array<int>>", "array<array>"),
    ("double", "number"),
    ("varchar(3)", "text"),
    ("char(3)", "string"),
    ("tinyint", "smallint"),
    ("smallint", "int"),
    ("int", "int"),
    ("smallint", "bigint"),
    ("int", "decimal(10,0)"),
    ("decimal(4,2)", "decimal(5,2)"),
    ("decimal(4,2)", "decimal(5,3)"),
    ("smallint", "float"),
    ("int", "double"),
    ("float", "double"),
    ("timestamp_ntz", "timestamp"),
    ("timestamp", "timestamp"),
    ("char(3)", "varchar(3)"),
    ("varchar(2)", "varchar(3)"),
    ("struct<A:int,b:date>", "struct<a:bigint>"),
    ("array<int>", "array<bigint>"),
    ("map<int,float>", "map<bigint,double>"),
]
MISFITS = [
    ("string", "date", ["c is string, not date"]),
    ("decimal(4,1)", "whole_number", ["c is decimal(4,1), not whole_number"]),
    ("double", "decimal_number", ["c is double, not decimal_number"]),
    ("decimal(4,1)", "floating_number", ["c is decimal(4,1), not floating_number"]),
    ("array<int>", "map", ["c is array<int>, not map"]),
    ("array<int>", "array<map>", ["c[item] is int, not map"]),
    ("string", "number", ["c is string, not number"]),
    ("date", "text", ["c is date, not text"]),
    ("bigint", "int", ["c is bigint, not int"]),
    ("decimal(4,0)", "int", ["c is decimal(4,0), not int"]),
    ("int", "decimal(9,0)", ["c is int, not decimal(9,0)"]),
    ("decimal(5,2)", "decimal(5,3)", ["c is decimal(5,2), not decimal(5,3)"]),
    ("decimal(5,3)", "decimal(9,2)", ["c is decimal(5,3), not decimal(9,2)"]),
    ("date", "decimal(9,2)", ["c is date, not decimal(9,2)"]),
    ("int", "float", ["c is int, not float"]),
    ("bigint", "double", ["c is bigint, not double"]),
    ("double", "float", ["c is double, not float"]),
    ("date", "timestamp", ["c is date, not timestamp"]),
    ("timestamp", "timestamp_ntz", ["c is timestamp, not timestamp_ntz"]),
    ("varchar(4)", "varchar(3)", ["c is varchar(4), not varchar(3)"]),
    ("string", "varchar(3)", ["c is string, not varchar(3)"]),
    ("decimal(2,0)", "varchar(3)", ["c is decimal(2,0), not varchar(3)"]),
    ("date", "string", ["c is date, not string"]),
    ("struct<a:date>", "struct<a:int,b:int>", ["c.a is date, not int", "c.b is missing"]),
    ("array<string>", "array<date>", ["c[item] is string, not date"]),
    (
        "map<string,int>",
        "map<date,string>",
        ["c[key] is string, not date", "c[value] is int, not string"],
    ),
    ("array<int>", "struct<a:int>", ["c is array<int>, not struct<a:int>"]),
    ("struct<a:int>", "array<int>", ["c is struct<a:int>, not array<int>"]),
]


@pytest.mark.parametrize(("found", "wanted"), FITS)
def test_compatible_types_have_no_misfits(found: str, wanted: str) -> None:
    assert list(misfits(found, wanted, "c")) == []


@pytest.mark.parametrize(("found", "wanted", "expected"), MISFITS)
def test_a_type_that_does_not_fit_is_reported(found: str, wanted: str, expected: list[str]) -> None:
    assert list(misfits(found, wanted, "c")) == expected


def test_strings_of_two_collations_cannot_be_compared() -> None:
    reason = objection_to_comparison("string collate UTF8_LCASE", "string", text="a")
    assert reason is not None
    assert "COLLATE UTF8_BINARY" in reason
