"""Types of CSV and JSON files without a schema: no digit is lost, what is undecided is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from dqx_airflow.engine.job import try_gates
from dqx_airflow.engine.sources import guessed_types
from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.errors import DatasetError
from dqx_airflow.values import DatasetRef
from tests.engine.lake import request

pytestmark = pytest.mark.spark

BIG = "9007199254740993"
"""The first whole number that a double does not hold."""
TIMES = ("2024-03-02T10:00:00.123456789", "2024-03-02T10:00:00.123456")
CSV = {
    "whole_and_decimal": ((BIG, "1.5"), "decimal(17,1)"),
    "money": (("1.50", "-100"), "decimal(5,2)"),
    "points": ((".5", "5."), "decimal(2,1)"),
    "point_at_the_end": (("1.", BIG), "decimal(16,0)"),
    "minus_zero": (("-0", "-0.0"), "decimal(2,1)"),
    "ints": (("2147483647", "-2147483648"), "int"),
    "bigints": (("2147483648", "1"), "bigint"),
    "longer": (("9223372036854775808", "1"), "decimal(19,0)"),
    "longest": (("1" * 38, "1"), "decimal(38,0)"),
    "exponents": (("1e3", "1.5"), "double"),
    "large_exponents": (("1.5e308", "2E-300"), "double"),
    "floats": (("0.30000000000000004", "-1E-9"), "double"),
    "no_number": (("NaN", "-Inf"), "double"),
    "spaces": ((" 5", "2.5 "), "double"),
    "zeros": (("007", "12"), "string"),
    "zeros_before_decimals": (("00.5", "1.5"), "string"),
    "plus": (("+41", "44"), "string"),
    "codes": (("1d", "2f"), "string"),
    "null": (("NULL", "1"), "string"),
    "signs": (("5-", "1-2"), "string"),
    "truth": (("true", "FALSE"), "boolean"),
    "truth_and_number": (("true", "1"), "string"),
    "dates": (("2024-03-02", "2024-02-29"), "date"),
    "no_dates": (("2024-03-02", "2024-02-30"), "string"),
    "times": (("2024-03-02 10:00:00", "2024-03-02T10:00:00Z"), "timestamp"),
    "date_and_time": (("2024-03-02 10:00:00", "2024-03-02"), "timestamp"),
    "date_and_number": (("2024-03-02", "20240302"), "string"),
    "empty": (("", ""), "string"),
    "text": (("a", "b"), "string"),
}


def put(folder: Path, format: str, *contents: str) -> DatasetRef:
    folder.mkdir(exist_ok=True)
    for number, content in enumerate(contents):
        (folder / f"{number}.{format}").write_text(content)
    return DatasetRef("orders", str(folder), format=format)


def types(spark: Any, ref: DatasetRef) -> dict[str, str]:
    opened = open_dataset(spark, ref)
    opened.read(()).collect()  # strictly
    return {field.name: field.type for field in opened.fields}


def test_types_of_csv_keep_all_digits(spark: Any, tmp_path: Path) -> None:
    rows = zip(*(values for values, _ in CSV.values()), strict=True)
    lines = [",".join(CSV), *(",".join(row) for row in rows)]
    ref = put(tmp_path / "t", "csv", "\n".join(lines))
    assert types(spark, ref) == {name: kind for name, (_, kind) in CSV.items()}


JSON: list[tuple[list[str], str]] = [
    ([BIG, "1.5"], "decimal(21,1)"),
    (["1.50", "100.0"], "decimal(4,1)"),
    (["1e3", "1.5"], "double"),
    ([f"[1, {BIG}]", "[2.5]"], "array<decimal(21,1)>"),
    (['{"y": 1}', '{"y": 1.5, "z": null}'], "struct<y:decimal(21,1),z:string>"),
    (["null", "true"], "boolean"),
    (["null", "null"], "string"),
    (["{}", "{}"], "string"),
    (["null", "{}"], "string"),
    (["[{}]", "[]"], "array<string>"),
    (['{"y": {}}', '{"y": null}'], "struct<y:string>"),
    (["{}", '{"y": {"OBJECT<>": 1}}'], "struct<y:struct<OBJECT<>:bigint>>"),
]


@pytest.mark.since_spark("4.0", "guesses the types of JSON")
def test_types_of_json_keep_all_digits(spark: Any, tmp_path: Path) -> None:
    names = [f"c{number}" for number in range(len(JSON))]
    lines = [
        "{" + ", ".join(f'"{n}": {values[at]}' for n, (values, _) in zip(names, JSON)) + "}"  # noqa: B905
        for at in range(2)
    ]
    expected = {name: kind for name, (_, kind) in zip(names, JSON, strict=True)}
    assert types(spark, put(tmp_path / "t", "json", "\n".join(lines))) == expected
    assert types(spark, put(tmp_path / "d", "json", f"[{lines[0]},\n{lines[1]}]")) == expected


@pytest.mark.more
def test_a_guess_for_many_columns_is_one_plan_of_the_same_size(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six aggregates a column used up the memory of Spark."""
    sizes: list[int] = []
    frames = type(spark.range(1))
    collect = frames.collect

    def counted(frame: Any) -> Any:
        sizes.append(len(frame.columns))
        return collect(frame)

    monkeypatch.setattr(frames, "collect", counted)
    for columns in (2, 600):
        header = ",".join(f"c{number}" for number in range(columns))
        row = ",".join(["1.5"] * columns)
        ref = put(tmp_path / f"{columns}", "csv", f"{header}\n{row}\n{row}\n")
        assert set(types(spark, ref).values()) == {"decimal(2,1)"}
    guessed, _, guessed_wide, _ = sizes
    assert guessed == guessed_wide


def test_memory_that_runs_out_is_explained_with_the_way_out() -> None:
    ref = DatasetRef("orders", "/t", format="csv")
    out_of_memory = PySparkException("java.lang.OutOfMemoryError: Java heap space")
    with (
        pytest.raises(DatasetError, match=r"out of memory .* 5000 columns") as refused,
        guessed_types._memory_explained(ref, 5000),
    ):
        raise out_of_memory
    assert "schema=" in refused.value.hint


UNDECIDED = {
    "whole numbers beside exponents": ("csv", ["x\n1e3\n" + BIG], "more digits"),
    "a number beside one in another file": (
        "csv",
        ["x,y\n1,1", "x,y\na,1"],
        "numbers in one file and",
    ),
    "JSON of two types": ("json", ['{"x":1}\n{"x":"1"}'], "are of different types"),
    "whole numbers beside exponents in JSON": (
        "json",
        ['{"x":1e-7}\n{"x":' + BIG + "}"],
        "more digits",
    ),
    "an exponent beyond doubles": ("csv", ["x\n1.5\n-1e400"], "more digits"),
    "an exponent below doubles": ("csv", ["x\n1.5\n2.5E-0400"], "more digits"),
    "an exponent beyond doubles, in JSON": ("json", ['{"x":1.5e3}\n{"x":1e309}'], "more digits"),
    "whole numbers beside NaN": ("csv", ["x\nNaN\n" + BIG], "more digits"),
    "41 digits": ("csv", ["x\n1\n" + "1" * 41], "more digits"),
    "38 digits of two scales": ("csv", [f"x\n{'1' * 30}\n0.{'1' * 20}"], "more digits"),
    "dates in another file": ("csv", ["x\n2024-03-02", "x\nn/a"], "dates in one file and strings"),
    "41 digits of JSON": ("json", ['{"x":' + "1" * 41 + "}"], "more digits"),
    "nested numbers": ("json", ['{"x":[{"y":1e5},{"y":' + BIG + "}]}"], "more digits"),
    "an array of two types": ("json", ['{"x":[1,"a"]}'], "are of different types"),
    "JSON of two types in two files": ("json", ['{"x":true}', '{"x":1}'], "are of different types"),
    "an object beside a string": ("json", ['{"x":{"y":1}}\n{"x":"y"}'], "are of different types"),
}


@pytest.mark.few(2)
@pytest.mark.since_spark("4.0", "guesses the types of JSON")
@pytest.mark.parametrize("case", UNDECIDED)
def test_a_type_that_cannot_be_decided_is_an_error(spark: Any, tmp_path: Path, case: str) -> None:
    format, contents, problem = UNDECIDED[case]
    with pytest.raises(DatasetError, match=f"'x' .*{problem}") as refused:
        open_dataset(spark, put(tmp_path / "t", format, *contents))
    assert 'schema="`x` ' in refused.value.hint


@pytest.mark.more
def test_numbers_are_exact_and_mixed_columns_have_a_note(spark: Any, tmp_path: Path) -> None:
    ref = put(
        tmp_path / "t", "csv", f"x,code,zip,at\n{BIG},NULL,01,{TIMES[0]}\n1.5,7,02,{TIMES[1]}\n"
    )
    body = """
        assert maximum(x) == 9007199254740992 name "rounded"
        assert not_null(code) name "code"
        assert unique(zip) name "zip"
        assert unique(at) name "at"
    """
    report = try_gates([request(tmp_path, body, [ref])], lambda _: spark)[0]
    found = {item.name: (item.status.value, item.note) for item in report.verdicts}
    assert found["rounded"] == ("failed", None)
    mixed = "some of its values look like numbers, dates or booleans, and others do not"
    assert found["code"] == ("passed", f"column 'code' is read as strings: {mixed}")
    assert found["zip"] == (
        "passed",
        "column 'zip' is read as strings: some of its numbers begin with zeros",
    )
    assert found["at"] == ("failed", "column 'at' is read without its nanoseconds")
