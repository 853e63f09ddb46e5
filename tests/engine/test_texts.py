"""Text files with declared columns: one bad value is one failing row, and is never missed."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from dqx_airflow.engine.sources import declared_texts
from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.errors import DatasetError
from dqx_airflow.values import DatasetRef, GateReport, Outcome
from tests.engine.lake import TODAY, YESTERDAY, Gate, verdict

pytestmark = pytest.mark.spark


WELL_FORMED = "orders.well_formed"
PRICES = "price,id,note\n2.5,1,a\nabc,2,\n1.239,3,c\n7,4\n"
"""A text that is no number, a number with too many digits, and a line that is too short."""


@pytest.fixture
def prices(tmp_path: Path) -> DatasetRef:
    (tmp_path / "prices.csv").write_text(PRICES)
    schema = "id int, price decimal(4,2)"
    return DatasetRef("orders", str(tmp_path / "prices.csv"), format="csv", schema=schema)


def rows(report: GateReport, name: str) -> list[dict[str, Any]]:
    found = [json.loads(row.row) for row in verdict(report, name).failing_rows]
    return sorted(found, key=str)


def fields(spark: Any, ref: DatasetRef) -> dict[str, str]:
    return {field.name: field.type for field in open_dataset(spark, ref).fields}


# What is malformed


def test_a_bad_value_fails_the_gate_whatever_the_suite_asks_and_the_rest_is_judged(
    gate: Gate, prices: DatasetRef
) -> None:
    report = gate('assert sum(id) == 10 name "sum"', replace(prices, keys=("id",)))
    assert report.outcome is Outcome.BLOCKED
    assert verdict(report, "sum").status.value == "passed"
    assert verdict(report, WELL_FORMED).value == 3
    assert rows(report, WELL_FORMED) == [
        {"id": "2", "price": "abc"},
        {"id": "3", "price": "1.239"},
        {"id": "4", "(the whole line)": "7,4"},
    ]
    assert verdict(report, WELL_FORMED).failing_rows[0].reason == "a value is malformed"


@pytest.mark.more
def test_an_explicit_malformed_count_replaces_the_implicit_assertion(
    gate: Gate, prices: DatasetRef
) -> None:
    report = gate('assert malformed_count(price) <= 3 name "p"', prices)
    assert report.outcome is Outcome.PASSED
    assert verdict(report, "p").value == 3
    report = gate('assert malformed_count(id) <= 1 name "i"', prices)
    assert verdict(report, "i").value == 1  # the line that is too short
    assert verdict(report, WELL_FORMED).value == 2


@pytest.mark.more
def test_without_keys_the_strings_of_the_whole_row_are_shown(
    gate: Gate, prices: DatasetRef
) -> None:
    report = gate('assert malformed_count(price) == 0 name "p"', prices)
    assert rows(report, "p") == [
        {"(the whole line)": "7,4"},
        {"price": "1.239", "id": "3", "note": "c"},
        {"price": "abc", "id": "2"},
    ]
    assert verdict(report, "p").failing_rows[0].reason == "price is malformed"


def test_masked_strings_and_lines_that_may_contain_them_are_hidden(
    gate: Gate, prices: DatasetRef
) -> None:
    hidden = replace(prices, keys=("id",), masked=("price",))
    report = gate('assert malformed_count(price) == 0 name "p"', hidden)
    assert rows(report, "p") == [
        {"id": "2", "price": "***"},
        {"id": "3", "price": "***"},
        {"id": "4", "(the whole line)": "***"},
    ]


@pytest.mark.slow
def test_a_null_from_a_malformed_value_is_shown_as_its_string(
    gate: Gate, prices: DatasetRef, tmp_path: Path
) -> None:
    missing = 'assert null_count(price) == 0 name "price" assert null_count(note) == 0 name "note"'
    report = gate(missing, replace(prices, keys=("id",)))
    shown = {
        name: [(row.reason, row.row) for row in verdict(report, name).failing_rows]
        for name in ("price", "note")
    }
    assert shown == {
        "price": [
            ("price is malformed: price is NULL", '{"id":2,"price":"abc"}'),
            ("price is malformed: price is NULL", '{"id":3,"price":"1.239"}'),
        ],
        "note": [
            ("note is NULL", '{"id":2,"note":null}'),
            (
                "the line is malformed: note is NULL",
                '{"id":4,"note":null,"(the whole line)":"7,4"}',
            ),
        ],
    }
    hidden = gate(missing, replace(prices, keys=("id",), masked=("price",)))
    assert rows(hidden, "price") == [{"id": 2, "price": "***"}, {"id": 3, "price": "***"}]
    assert rows(hidden, "note")[1] == {"id": 4, "note": None, "(the whole line)": "***"}


@pytest.mark.more
def test_malformed_rows_are_quarantined_as_written(
    gate: Gate, prices: DatasetRef, tmp_path: Path
) -> None:
    place = str(tmp_path / "quarantine")
    gate("assert num_rows() > 0", prices, quarantine=(("orders", place),))
    kept = DeltaTable(place).to_pyarrow_table().sort_by("id").to_pylist()
    columns = ("id", "price", "note", "dqx_line", "dqx_reasons")
    assert [tuple(row[name] for name in columns) for row in kept] == [
        ("2", "abc", None, None, [WELL_FORMED]),
        ("3", "1.239", "c", None, [WELL_FORMED]),
        ("4", "7", None, "7,4", [WELL_FORMED]),
    ]


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
@pytest.mark.slow
def test_a_lenient_mode_is_respected(gate: Gate, prices: DatasetRef, mode: str) -> None:
    lenient = replace(prices, options=(("Mode", mode),))
    report = gate('assert count(price) >= 1 name "n"', lenient)
    assert report.outcome is Outcome.PASSED
    report = gate('assert malformed_count(price) == 2 name "n"', lenient)
    assert report.outcome is Outcome.PASSED


@pytest.mark.more
def test_a_query_sees_the_columns_of_the_dataset_and_no_others(
    gate: Gate, prices: DatasetRef
) -> None:
    body = 'assert query("SELECT max(size(array(*))) FROM orders") == 3 name "q"'
    assert verdict(gate(body, replace(prices, schema="id string")), "q").status.value == "passed"


@pytest.mark.few(1)
@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_where_values_are_typed_or_guessed_nothing_is_malformed(
    gate: Gate, tmp_path: Path, format: str
) -> None:
    if format == "parquet":
        pq.write_table(pa.table({"id": [1, None]}), tmp_path / "t")
    else:
        (tmp_path / "t").write_text("id\n1\nx\n")
    ref = DatasetRef("orders", str(tmp_path / "t"), format=format)
    report = gate('assert malformed_count(id) == 0 name "m"', ref)
    assert report.outcome is Outcome.PASSED
    assert WELL_FORMED not in [item.name for item in report.verdicts]


# Which column is which


def test_the_header_decides_which_column_is_which(spark: Any, prices: DatasetRef) -> None:
    assert fields(spark, prices) == {"price": "decimal(4,2)", "id": "int", "note": "string"}
    declared = replace(prices, schema="ID bigint, Note string, missing int")
    assert fields(spark, declared) == {"price": "string", "id": "bigint", "note": "string"}


@pytest.mark.more
def test_without_a_header_columns_are_matched_by_position(
    spark: Any, gate: Gate, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("1;2.5;x\n2;y;z\n")
    options = (("header", "false"), ("sep", ";"))
    ref = DatasetRef("orders", str(tmp_path / "a.csv"), format="csv", options=options)
    some = replace(ref, schema="id int, price double")
    assert fields(spark, some) == {"id": "int", "price": "double", "_c2": "string"}
    body = 'assert malformed_count(price) == 1 name "p"\nassert sum(id) == 3 name "s"'
    assert gate(body, some).outcome is Outcome.PASSED
    more = replace(ref, schema="id int, price double, kind string, missing int")
    assert fields(spark, more) == {"id": "int", "price": "double", "kind": "string"}


@pytest.mark.more
def test_missing_and_extra_columns_are_reported(gate: Gate, prices: DatasetRef) -> None:
    declared = replace(prices, schema="id int, weight double")
    body = """
    assert column weight exists name "missing"
    assert extra_column_count([id, weight]) == 0 name "extra"
    """
    report = gate(body, declared)
    assert verdict(report, "missing").reason == "the column does not exist"
    assert verdict(report, "extra").reason == "not listed: price, note"


@pytest.mark.slow
def test_files_with_other_headers_have_the_columns_of_all_of_them(
    gate: Gate, spark: Any, tmp_path: Path
) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.csv").write_text("id,price\n1,2.5\n")
    (tmp_path / "t" / "b.csv").write_text("ID,price\n2,2.5\n")
    (tmp_path / "t" / "c.csv").write_text("note,price,id\nx,abc,3\n4,5\n")
    (tmp_path / "t" / "d.csv").write_text("id\n")
    ref = DatasetRef("orders", str(tmp_path / "t" / "*.csv"), format="csv")
    ref = replace(ref, schema="id int, price double, note string", keys=("id",))
    assert fields(spark, ref) == {"id": "int", "price": "double", "note": "string"}
    body = """
    assert sum(id) == 6 name "sum"
    assert null_count(note) == 2 name "notes"
    assert malformed_count(price) == 0 name "price"
    """
    report = gate(body, ref)
    assert [verdict(report, name).value for name in ("sum", "notes", "price")] == [6, 2, 2]
    assert rows(report, "price") == [{"(the whole line)": "4,5"}, {"id": "3", "price": "abc"}]


def test_a_nested_type_in_a_csv_file_is_an_error(spark: Any, prices: DatasetRef) -> None:
    with pytest.raises(DatasetError, match=r"(?i)array<int>"):
        open_dataset(spark, replace(prices, schema="id array<int>"))


# Dates


@pytest.mark.more
def test_dates_and_timestamps_follow_the_reader_options(gate: Gate, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("day,at\n02.03.2024,02.03.2024 10:30\n2024-03-02,x\n")
    ref = DatasetRef(
        "orders",
        str(tmp_path / "a.csv"),
        format="csv",
        schema="day date, at timestamp",
        options=(("dateFormat", "dd.MM.yyyy"), ("timestampformat", "dd.MM.yyyy HH:mm")),
    )
    body = """
    assert malformed_count(day) == 1 name "day"
    assert malformed_count(at) == 1 name "at"
    assert minimum(day) == 2024-03-02 name "least"
    assert maximum(at) == "2024-03-02 10:30:00" name "most"
    """
    assert gate(body, ref).outcome is Outcome.PASSED


@pytest.mark.parametrize("format", ["csv", "json"])
@pytest.mark.slow
def test_date_partitions_are_typed_and_other_dates_are_not_read(
    spark: Any, gate: Gate, tmp_path: Path, format: str
) -> None:
    for day in (TODAY, YESTERDAY):
        folder = tmp_path / "t" / f"ds={day}"
        folder.mkdir(parents=True)
        row = {"csv": "id\nx\n7\n", "json": '{"id": "x"}\n{"id": 7}\n'}[format]
        (folder / f"a.{format}").write_text(row)
    schema = "id int, ds date"
    ref = DatasetRef("orders", str(tmp_path / "t"), format=format, schema=schema, date_column="ds")
    assert fields(spark, ref) == {"id": "int", "ds": "date"}
    opened = open_dataset(spark, ref)
    assert opened.dates is not None
    frame = opened.read({TODAY}).where(opened.dates.filter({TODAY}))
    assert "PartitionFilters: [isnotnull(ds" in frame._jdf.queryExecution().toString()
    body = 'assert malformed_count(id) == 1 name "m"\nassert sum(id, lag 1) == 7 name "s"'
    assert gate(body, ref).outcome is Outcome.PASSED


@pytest.mark.slow
def test_states_are_reused_while_the_files_are_the_same(gate: Gate, prices: DatasetRef) -> None:
    gate("assert num_rows() > 0", prices)
    assert verdict(gate("assert num_rows() > 0", prices), WELL_FORMED).origin == "stored state"
    Path(str(prices.path)).write_text(PRICES.replace("abc", "8"))
    assert verdict(gate("assert num_rows() > 0", prices), WELL_FORMED).value == 2


# JSON

OBJECTS = """\
{"id": 1, "price": 2.5, "address": {"zip": 3000, "city": "Bern"}, "tags": ["a"]}
{"id": "x", "price": "3.25", "address": {"zip": "?"}, "tags": "a"}
{"id": "3", "pri
{"id": null, "price": 1e1, "tags": null, "note": [1]}
"""


@pytest.fixture
def objects(tmp_path: Path) -> DatasetRef:
    (tmp_path / "a.json").write_text(OBJECTS)
    schema = "id int, price decimal(4,2), address struct<zip:int,city:string>, tags array<string>"
    return DatasetRef("orders", str(tmp_path / "a.json"), format="json", schema=schema)


@pytest.mark.slow
def test_values_of_json_are_cast_and_nested_ones_are_malformed_as_a_whole(
    gate: Gate, objects: DatasetRef
) -> None:
    body = """
    assert malformed_count(id) == 2 name "id"
    assert malformed_count(price) == 1 name "price"
    assert malformed_count(address) == 2 name "address"
    assert malformed_count(address.zip) == 2 name "zip"
    assert malformed_count(tags) == 2 name "tags"
    assert malformed_count(note) == 1 name "note"
    assert sum(price) == 15.75 name "sum"
    assert sum(address.zip) == 3000 name "sum of zip"
    assert num_rows() == 4 name "rows"
    """
    report = gate(body, objects)
    assert report.outcome is Outcome.PASSED
    shown = gate('assert malformed_count(tags) == 0 name "t"', replace(objects, keys=("price",)))
    assert rows(shown, "t") == [
        {"(the whole line)": '{"id": "3", "pri'},
        {"price": "3.25", "tags": "a"},
    ]


@pytest.mark.more
def test_a_broken_line_is_counted_once(gate: Gate, objects: DatasetRef) -> None:
    report = gate("assert num_rows() == 4", objects)
    assert verdict(report, WELL_FORMED).value == 2


def test_undeclared_json_columns_are_found(spark: Any, objects: DatasetRef) -> None:
    declared = replace(objects, schema="id int, missing string")
    assert fields(spark, declared) == {
        "id": "int",
        "address": "struct<city:string,zip:string>",
        "note": "array<bigint>",
        "price": "string",
        "tags": "string",
    }


@pytest.mark.more
@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["string", "struct<x:int>", "map<string,int>"])
def test_a_declared_json_column_with_empty_objects_is_there(
    spark: Any, gate: Gate, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "a.json").write_text('{"id": 1, "n": {}}\n{"id": 2, "n": {}}\n{"id": 3}\n')
    schema = f"id int, n {kind}, missing string"
    ref = DatasetRef("orders", str(tmp_path / "a.json"), format="json", schema=schema)
    assert fields(spark, ref) == {"id": "int", "n": kind}
    assert gate('assert null_count(n) == 1 name "n"', ref).outcome is Outcome.PASSED


NESTED = "id int, c struct<x:string,y:int>, l array<struct<x:string,y:int>>"


@pytest.mark.few(4, apart=True)
@pytest.mark.parametrize(
    ("row", "c", "item"),
    [
        ('{"id": 1, "c": {"X": "b"}, "l": [{"Y": 1}, {}]}', "X:string", "Y:int"),
        ('{"ID": 1, "C": {"z": 1}, "l": [{"z": {"x": 1}}]}', "z:string", "z:string"),
        ('{"id": 1, "c": {"x": null, "Y": "no"}, "l": []}', "x:string,Y:int", "x:string,y:int"),
        ('{"id": 1, "c": {}, "l": [{}]}', "x:string,y:int", "x:string,y:int"),
        ('{"id": 1, "c": null, "l": [null]}', "x:string,y:int", "x:string,y:int"),
        ('{"id": 1, "c": "text", "l": "text"}', "x:string,y:int", "x:string,y:int"),
        ('{"id": 1, "c": [1], "l": {"x": "a"}}', "x:string,y:int", "x:string,y:int"),
    ],
)
def test_structs_have_the_declared_fields_that_a_value_has_as_it_spells_them(
    spark: Any, tmp_path: Path, row: str, c: str, item: str
) -> None:
    (tmp_path / "a.json").write_text(row + "\n")
    ref = DatasetRef("orders", str(tmp_path / "a.json"), format="json", schema=NESTED)
    found = {name.lower(): kind for name, kind in fields(spark, ref).items()}
    assert found == {"id": "int", "c": f"struct<{c}>", "l": f"array<struct<{item}>>"}


@pytest.mark.parametrize(
    "lines",
    [
        ('{"id": 1, "c": {"x": "a"}, "z": {"C": 1}}', '{"id": 2, "c": {"X": "b"}}'),
        pytest.param(('{"id": 1}', ' [{"ID": 2}]'), marks=pytest.mark.more),
        pytest.param(('{"id": 1}', '{"\\u0049d": 2}'), marks=pytest.mark.more),
        pytest.param(('{"id": 1}', "{'ID': 2}"), marks=pytest.mark.more),
        pytest.param(('{"id": 1, "ä-z": 1}', '{"id": 2, "Ä-z": 1}'), marks=pytest.mark.more),
    ],
)
def test_a_json_field_in_another_case_than_before_is_malformed(
    gate: Gate, tmp_path: Path, lines: tuple[str, ...]
) -> None:
    (tmp_path / "a.json").write_text("\n".join(lines) + "\n")
    ref = DatasetRef("orders", str(tmp_path / "a.json"), format="json", schema=NESTED)
    report = gate('assert num_rows() > 0 name "rows"', ref)
    assert verdict(report, WELL_FORMED).value == 1
    assert report.outcome is Outcome.BLOCKED


def test_json_columns_come_from_the_newest_files_and_the_declaration(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "odd [name]"
    folder.mkdir()
    for number, text in enumerate(['{"id": 1, "old": 2}', '{"id": "2", "new": 3}']):
        (folder / f"{number}.json").write_text(text + "\n")
        os.utime(folder / f"{number}.json", (number, number))
    schema = "id int, rare int"
    ref = DatasetRef("orders", str(folder), format="json", schema=schema)
    assert list(fields(spark, ref)) == ["id", "new", "old"]
    monkeypatch.setattr(declared_texts, "MOST_SAMPLED_BYTES", 10)
    plain = tmp_path / "plain"
    folder.rename(plain)
    assert list(fields(spark, replace(ref, path=str(plain)))) == ["id", "rare", "new"]
