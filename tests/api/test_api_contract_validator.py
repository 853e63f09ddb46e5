"""Contracts checked against DataFrames, and the registry of contracts, in Python."""

from __future__ import annotations

import re
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow import Contract, ContractRegistry, ContractValidator, MemoryDatabase
from dqx_airflow.errors import RegistryError, RequestError

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
numpy = pytest.importorskip("numpy")

NOW = datetime(2024, 11, 29, 12, tzinfo=timezone.utc)
TEXT = """\
contract: {name: Customers, version: "%s", owner: crm, description: d}
schema:
  fields:
    - {name: id, type: string, nullable: false, business_key: true, pattern: "^C[0-9]+$"}
    - {name: segment, type: string, valid_values: [A, B]}
    - {name: orders, type: integer, min_value: 0}
    - {name: spent, type: decimal, precision: 8, scale: 2}
    - {name: since, type: date}
quality: {completeness: 0.9, uniqueness: 1.0}
"""
SOUND = {
    "id": ["C1", "C2", "C3"],
    "segment": ["A", None, "B"],
    "orders": [1, 2, None],
    "spent": [1.25, 20.0, 3.5],
    "since": [date(2024, 1, 1), date(2024, 1, 2), None],
}
LOOSE = TEXT.replace("completeness: 0.9", "completeness: 0.8")


NUMBERS = {
    "dcs": (
        "dataContractSpecification: 1.2.1\nid: a\ninfo: {{title: A, version: 1.0.0}}\n"
        "models: {{m: {{fields: {{n: {{{}}}}}}}}}"
    ),
    "fabric": "contract: {{id: a.m, version: 1.0.0, schema: {{columns: [{{name: n, {}}}]}}}}",
    "product": ("contract: {{name: m, version: 1.0.0}}\nschema: {{fields: [{{name: n, {}}}]}}"),
}


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("dialect", "kind", "takes_halves"),
    [
        ("dcs", "type: int", False),
        ("dcs", "type: float", True),
        ("fabric", "type: smallint", False),
        ("fabric", "type: double", True),
        ("fabric", 'type: "decimal(18,2)"', True),
        ("product", "type: integer", False),
        ("product", "type: decimal, precision: 18, scale: 2", True),
    ],
)
def test_numbers_of_pandas_and_python_have_the_type_that_all_of_them_fit(
    dialect: str, kind: str, takes_halves: bool
) -> None:
    contract = Contract.from_string(NUMBERS[dialect].format(kind))

    def is_valid(values: Any, **form: Any) -> bool:
        frame = (
            pd.DataFrame({"n": values}, **form)
            if form or not isinstance(values, tuple)
            else [{"n": value} for value in values]
        )
        return ContractValidator(contract).validate(frame)["valid"]

    for fitting in ([1, 2], [1.0, 2.0], [1, None], pd.array([1, None], dtype="Int64")):
        assert is_valid(fitting), fitting
    for fitting in ((1, 2, None), (numpy.int64(1), pd.NA, numpy.float64(2)), (Decimal("1.0"),)):
        assert is_valid(fitting), fitting
    assert is_valid([1.5, 2]) is takes_halves
    assert is_valid((Decimal("1.5"), 2)) is takes_halves
    assert not is_valid(["1", "2"])
    assert not is_valid([True, False])


def test_types_of_an_arrow_table_are_those_of_the_data() -> None:
    contract = Contract.from_string(NUMBERS["dcs"].format("type: int"))
    report = ContractValidator(contract).validate(pa.table({"n": pa.array([1, 2])}))
    assert report["schema_errors"] == ["m.n.type: n is bigint, not int"]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("type: object, fields: {x: {type: int, required: true}}", [{"x": 1}, None, {"x": 2}]),
        ("type: object, fields: {x: {type: int}}", [{"x": 1}, {"x": None}, {}]),
        ("type: array, items: {type: int}", [[], [1], [None]]),
        ("type: map, keys: {type: string}, values: {type: int}", [{"a": 1}, {}, {"b": None}]),
    ],
)
def test_nested_values_may_be_null_or_empty(kind: str, values: list[Any]) -> None:
    contract = Contract.from_string(NUMBERS["dcs"].format(kind))
    database = MemoryDatabase({"m": [{"n": value} for value in values]})
    assert contract.run(database, date(2024, 1, 1)).report.outcome == "passed"


def of_objects(values: list[Any]) -> Any:
    """A column of objects, in which pandas converts no value."""
    column = pd.Series([None] * len(values), dtype=object)
    for row, value in enumerate(values):
        column.at[row] = value
    return pd.DataFrame({"n": column})


NESTED_INTS = "type: array, items: {type: array, items: {type: int}}"
OBJECT = "type: object, fields: {x: {type: int}}"
PRICES = "type: array, items: {type: object, fields: {x: {type: decimal, precision: 9, scale: 2}}}"
MAP = "type: map, keys: {type: string}, values: {type: int}"


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("type: int", [1, Decimal(2), 3.0, None]),
        ("type: int", [1, pd.NA, pd.NaT, float("nan")]),
        ("type: int", [numpy.int8(1), numpy.uint64(2), numpy.float32(3)]),
        ("type: long", [Decimal(2**53 + 1), 2**62]),
        ("type: double", [Decimal("0.1"), 0.1, 2**60]),
        ("type: decimal, precision: 9, scale: 2", [1, 1.1, Decimal("2.50"), Decimal("1E+3")]),
        ("type: boolean", [True, numpy.bool_(False), pd.NA]),
        ("type: string", ["a", numpy.str_("b"), float("nan")]),
        ("type: bytes", [b"a", bytearray(b"b"), memoryview(b"c")]),
        ("type: timestamp", [numpy.datetime64("2024-01-01", "ns"), pd.Timestamp("2024-01-02")]),
        ("type: date", [pd.Timestamp("2024-01-01"), datetime(2024, 1, 2), pd.NaT]),
        (NESTED_INTS, [[[1], []], [], [None, [2.0, Decimal(3)]], None]),
        (OBJECT, [{"x": 1.0}, {"x": pd.NA}, {"x": numpy.int64(2)}, {}, None]),
        (PRICES, [[{"x": 1}], [{"x": 1.25}, {}], []]),
        (MAP, [{"a": 1}, {"b": 2.0, "c": None}, {}]),
    ],
)
def test_mixed_objects_have_the_type_that_all_of_them_fit(kind: str, values: list[Any]) -> None:
    contract = Contract.from_string(NUMBERS["dcs"].format(kind))
    for frame in (of_objects(values), pd.DataFrame({"n": values}), _rows(values)):
        found = ContractValidator(contract).validate(frame)
        assert found["valid"], found


def _rows(values: list[Any]) -> list[dict[str, Any]]:
    """Python's own rows, in which NaN among numbers is a number."""
    return [{"n": None if value != value else value} for value in values if value is not pd.NA]


@pytest.mark.parametrize(
    ("kind", "values", "problem"),
    [
        ("type: int", [1, Decimal("2.5")], "n is decimal"),
        ("type: long", [2**63, 1], "n is decimal"),
        ("type: int", [Decimal(10**30)], "n is decimal"),
        (NESTED_INTS, [[[1.5]]], r"n\[item\]\[item\] is double"),
        (OBJECT, [{"x": "a"}], "n.x is string"),
        (MAP, [{"a": 1}, {"b": 2**31}], r"n\[value\] is bigint, not int"),
    ],
)
def test_an_object_that_does_not_fit_is_an_error_of_its_column(
    kind: str, values: list[Any], problem: str
) -> None:
    contract = Contract.from_string(NUMBERS["dcs"].format(kind))
    for frame in (of_objects(values), _rows(values)):
        (line,) = ContractValidator(contract).validate(frame)["schema_errors"]
        assert re.search(problem, line)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ([1, True], "n contains values of several types: bigint, boolean"),
        ([numpy.bool_(True), 1], "n contains values of several types: boolean, bigint"),
        (["a", 3], "n contains values of several types: string, bigint"),
        ([date(2024, 1, 1), datetime(2024, 1, 2, 3)], "several types: date, timestamp_ntz"),
        ([2**53 + 1, 0.5], "row 1: a value of type int does not fit column 'n' of type double"),
        ([{1, 2}], "set is a type that Spark does not support"),
        ([numpy.longdouble(1)], "is a type that Spark does not support"),
    ],
)
def test_objects_without_a_common_type_are_refused(values: list[Any], problem: str) -> None:
    for frame in (of_objects(values), _rows(values)):
        with pytest.raises(RequestError, match=problem):
            MemoryDatabase({"m": frame})


def test_maps_of_arrow_and_frames_without_rows_are_read() -> None:
    contract = Contract.from_string(NUMBERS["dcs"].format(MAP))
    pairs = pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int32()))
    for frame in (pa.table({"n": pairs}), of_objects([])):
        found = ContractValidator(contract).validate(frame, fail_on="P0")
        assert found["schema_errors"] == []


def validator(text: str = LOOSE) -> ContractValidator:
    return ContractValidator(Contract.from_string(text % "1.0.0"))


def of_pandas(columns: dict[str, list[Any]]) -> Any:
    frame = pd.DataFrame(columns)
    if "since" in frame:
        frame["since"] = pd.to_datetime(frame["since"])
    return frame


def of_arrow(columns: dict[str, list[Any]]) -> Any:
    table = pa.table(columns)
    if "spent" in columns:
        at = table.column_names.index("spent")
        table = table.set_column(at, "spent", table["spent"].cast(pa.decimal128(8, 2)))
    return table


@pytest.fixture(params=["pandas", "arrow", pytest.param("spark", marks=pytest.mark.spark)])
def frame_of(request: pytest.FixtureRequest) -> Any:
    if request.param != "spark":
        return {"pandas": of_pandas, "arrow": of_arrow}[request.param]
    spark = request.getfixturevalue("spark")
    types = "id string, segment string, orders bigint, spent double, since date, more string"

    def of_spark(columns: dict[str, list[Any]]) -> Any:
        chosen = [item for item in types.split(", ") if item.split()[0] in columns]
        names = [item.split()[0] for item in chosen]
        rows = list(zip(*(columns[name] for name in names), strict=True))
        frame = spark.createDataFrame(rows, ", ".join(chosen))
        return frame.withColumn("spent", frame.spent.cast("decimal(8,2)"))

    return of_spark


def test_a_sound_frame_is_valid_and_has_scores(frame_of: Any) -> None:
    found = validator().validate(frame_of(SOUND), now=NOW)
    assert found["valid"], found
    assert (found["schema_errors"], found["field_errors"], found["quality_errors"]) == ([], {}, [])
    assert found["quality_scores"]["completeness"] == pytest.approx(12 / 15)
    assert found["quality_scores"]["uniqueness_id"] == 1


@pytest.mark.few(1)
def test_errors_are_sorted_by_schema_fields_and_quality(frame_of: Any) -> None:
    broken = {
        "id": ["C1", "C1", "X", None],
        "segment": ["A", "Z", None, None],
        "orders": [-1, 2, 3, None],
        "spent": [1.25, 20.0, None, None],
        "more": ["x", "y", "z", "w"],
    }
    found = validator().validate(frame_of(broken), now=NOW)
    assert not found["valid"]
    assert set(found["field_errors"]) == {"id", "segment", "orders"}
    assert "since" in "\n".join(found["schema_errors"])
    assert "only_columns" in "\n".join(found["schema_errors"])
    assert "business_key" in "\n".join(found["quality_errors"])


def test_completeness_is_of_all_values_together() -> None:
    found = validator(TEXT).validate(of_pandas(SOUND), now=NOW)
    (line,) = found["quality_errors"]
    assert line.startswith("Customers.completeness: ")
    assert not found["valid"]
    full = {**SOUND, "segment": ["A", "A", "B"], "orders": [1, 2, 3]}
    assert validator(TEXT).validate(of_pandas(full), now=NOW)["valid"]


def test_pandas_floats_are_read_as_the_contract_type_only_without_loss() -> None:
    found = validator().validate(of_pandas({**SOUND, "orders": [1.5, 2, None]}), now=NOW)
    (line,) = found["schema_errors"]
    assert "orders" in line
    found = validator().validate(of_pandas({**SOUND, "spent": [1.255, 2, 3]}), now=NOW)
    assert "spent" in "\n".join(found["schema_errors"])


def test_pandas_nan_is_null_in_rows_too() -> None:
    rows = of_pandas(SOUND).astype(object).to_dict("records")
    segments = [row["segment"] for row in rows]
    assert any(value is None or value != value for value in segments), segments
    rows = [{"id": "C1", "segment": float("nan")}, {"id": "C2", "segment": "A"}]
    for given in (rows, pd.DataFrame(rows), pa.Table.from_pylist([{"id": "C1", "segment": None}])):
        database = MemoryDatabase({"Customers": given})
        contract = Contract.from_string(
            'contract: {name: Customers, version: "1.0.0", owner: crm, description: d}\n'
            "schema: {fields: [{name: id, type: string}, {name: segment, type: string, "
            "nullable: false}]}\n"
        )
        found = contract.run(database, date(2024, 11, 29), now=NOW)
        failed = {verdict.name for verdict in found if not verdict.passed}
        assert "Customers.segment.required" in failed


@pytest.mark.parametrize("given", [7, "rows", object()], ids=lambda given: type(given).__name__)
def test_anything_but_a_frame_is_refused(given: Any) -> None:
    with pytest.raises(RequestError):
        validator().validate(given)


def test_several_models_need_a_model_name() -> None:
    text = (
        "dataContractSpecification: 1.2.1\nid: o\ninfo: {title: O, version: 1.0.0}\nmodels:\n"
        "  a: {fields: {id: {type: long, required: true}}}\n"
        "  b: {fields: {id: {type: string}}}\n"
    )
    both = ContractValidator(Contract.from_string(text))
    with pytest.raises(RequestError, match="has several models: a, b"):
        both.validate(pd.DataFrame({"id": [1]}))
    assert both.validate(pd.DataFrame({"id": [1]}), model="a")["valid"]
    assert not both.validate(pd.DataFrame({"id": [1]}), model="b")["valid"]


def test_the_verbs_of_the_registry_are_methods(tmp_path: Path) -> None:
    registry = ContractRegistry(tmp_path / "registry")
    assert registry.get_latest("Customers") is None
    file = tmp_path / "c.yaml"

    def write(version: str, text: str = TEXT) -> Path:
        file.write_text(text % version)
        return file

    on = date(2024, 1, 1)
    assert registry.register(write("1.0.0"), on=on) == "Customers:1.0.0"
    assert registry.register(write("1.0.0"), on=on) == "Customers:1.0.0"
    without = TEXT.replace("    - {name: since, type: date}\n", "")
    assert registry.objections(write("1.1.0", without), on=on)
    with pytest.raises(RegistryError, match="major"):
        registry.register(write("1.1.0", without), on=on)
    assert registry.register(write("2.0.0", without), on=on) == "Customers:2.0.0"
    assert registry.ids() == ("Customers",)
    assert [item.contract.version for item in registry.history("Customers")] == ["1.0.0", "2.0.0"]
    latest = registry.get_latest("Customers")
    assert latest is not None
    assert latest.version == "2.0.0"
    assert registry.get("Customers", "1").version == "1.0.0"
    assert "name: since" in registry.text("Customers", "1.0.0")
    with pytest.raises(RequestError, match="not published"):
        registry.get("Customers", "3")
