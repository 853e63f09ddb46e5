"""Files that Spark would silently read in part or wrongly never pass."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyarrow import orc

from dqx_airflow.engine.job import try_gates
from dqx_airflow.engine.sources import declared_texts
from dqx_airflow.values import DatasetRef, GateReport, Outcome
from tests.engine.lake import TODAY, request

pytestmark = pytest.mark.spark

Judge = Callable[..., GateReport]

GOOD = 'assert each row: x > 0 name "good"\nassert num_rows() > 0 name "rows"'
"""What holds of all that Spark reads by itself."""


@pytest.fixture
def judge(spark: Any, tmp_path: Path) -> Judge:
    def run(ref: DatasetRef, body: str = GOOD, on: date = TODAY) -> GateReport:
        return try_gates([request(tmp_path, body, [ref], on)], lambda _: spark)[0]

    return run


def put(folder: Path, **files: str | bytes) -> None:
    """Writes files; `__` in a name stands for a slash, `_` before its last word for a point."""
    for name, content in files.items():
        path = folder / ".".join(name.replace("__", "/").rsplit("_", 1))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def json_ref(path: Path, schema: str | None = None, **options: str) -> DatasetRef:
    given = tuple(options.items())
    return DatasetRef("orders", str(path), format="json", schema=schema, options=given)


def csv_ref(path: Path, schema: str | None = None, **options: str) -> DatasetRef:
    return replace(json_ref(path, schema, **options), format="csv")


def why(report: GateReport) -> str:
    """Why nothing of the dataset could be judged."""
    assert {item.status.value for item in report.verdicts} == {"error"}, report.verdicts
    return report.verdicts[0].reason or ""


def malformed(report: GateReport) -> Any:
    return next(v.value for v in report.verdicts if v.name == "orders.well_formed")


# JSON

ONE_TOO_MANY = (
    '{"x":1}{"x":-1}',
    '{"x":1}\t{"x":-1}',
    '{"x":1} garbage',
    '{"x":1},',
    '{"x":1},{"x":-1}',
    '{"x":1},2]',
    '{"x":1}}',
    '{"x":1},"y":2}',
    '{"x":1,"y":{"a":[{"b":"}"}]}} {"x":-1}',
    '[{"x":1}]{"x":-1}',
    '[]{"x":-1}',
    '\ufeff{"x":1}{"x":-1}',
    "{'x':1}{'x':-1}",
    '{"x":1}//{"x":-1}',
)
TWICE = (
    '{"x":-1,"x":1}',
    "{'x':-1,'x':1}",
    '{"x":-1,"y":NaN,"x":1}',
    '{"x":1,"y":{"a":-1,"a":1}}',
    '{"x":1,"y":[{"a":{"b":-1,"b":1}}]}',
    '[{"x":-1,"x":1}]',
)
FINE = (
    '{"x":1}',
    ' {"x" : 1 }  ',
    '{"x":1,"y":"}{"}',
    '{"x":1,"y":"\\"}{\\""}',
    '{"x":1,"y":{"a":[{"b":"]"},{"b":1}]},"z":[]}',
    '[{"x":1},{"x":2}]',
    "[]",
    "",
    "   ",
    '\ufeff{"x":1}',
    '{"x":1,"y":NaN}',
    "{'x':1}",
)


def test_data_after_the_first_json_value_of_a_line_is_malformed(
    spark: Any, judge: Judge, tmp_path: Path
) -> None:
    whole = "\n".join(ONE_TOO_MANY) + "\n"
    put(tmp_path / "t", a_json=whole)
    report = judge(json_ref(tmp_path / "t", "x int"), 'assert num_rows() > 0 name "rows"')
    assert malformed(report) == len(ONE_TOO_MANY)
    assert report.outcome is Outcome.BLOCKED


@pytest.mark.parametrize("line", [ONE_TOO_MANY[n] for n in (0, 2, 3, 8, 9)])
@pytest.mark.parametrize(
    "body", [pytest.param(GOOD, marks=pytest.mark.slow), 'assert num_rows() > 0 name "rows"']
)
@pytest.mark.slow
def test_data_after_the_first_json_value_is_an_error_with_inferred_types(
    judge: Judge, tmp_path: Path, line: str, body: str
) -> None:
    put(tmp_path / "t", a_json='{"x":1}\n' * 3, b_json=f'{{"x":1}}\n{line}\n')
    assert "b.json cannot be read: line 2 is not JSON" in why(judge(json_ref(tmp_path / "t"), body))


@pytest.mark.few(1)
@pytest.mark.parametrize("line", TWICE)
def test_a_duplicate_field_of_a_json_object_is_an_error(
    judge: Judge, tmp_path: Path, line: str
) -> None:
    put(tmp_path / "t", a_json=f'{{"x":1}}\n{line}\n')
    for schema in (None, "x int"):
        assert "duplicate" in why(judge(json_ref(tmp_path / "t", schema)))


@pytest.mark.more
def test_a_json_field_in_another_case_is_an_error_with_inferred_types(
    judge: Judge, tmp_path: Path
) -> None:
    put(tmp_path / "t", a_json='{"x":1}\n{"X":-1}\n')
    assert "case" in why(judge(json_ref(tmp_path / "t")))


@pytest.mark.slow
def test_a_duplicate_json_field_is_malformed_if_columns_are_sampled(
    judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [TWICE[number] for number in (0, 1, 3, 5)]
    put(tmp_path / "t", a_json="\n".join(lines), b_json='{"x":1,"y":{"a":1}}\n')
    os.utime(tmp_path / "t/a.json", (1, 1))
    monkeypatch.setattr(declared_texts, "MOST_SAMPLED_BYTES", 10)
    ref = json_ref(tmp_path / "t", "x int, y struct<a:int>")
    assert malformed(judge(ref)) == len(lines)


@pytest.mark.parametrize("schema", [pytest.param(None, marks=pytest.mark.slow), "x int"])
def test_sound_json_is_read(judge: Judge, tmp_path: Path, schema: str | None) -> None:
    lines = "\n".join(FINE)
    put(tmp_path / "t", a_json=lines, b_json="", c_json=lines.replace("\n", "\r"))
    (tmp_path / "t/d.json.gz").write_bytes(gzip.compress(lines.encode()))
    body = GOOD + f'\nassert count(x) == {3 * 10} name "n"'
    report = judge(json_ref(tmp_path / "t", schema), body)
    assert report.outcome is Outcome.PASSED, report.verdicts
    lenient = judge(json_ref(tmp_path / "t", schema, mode="PERMISSIVE"), body)
    assert lenient.outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('{"x":1}\n{"x":-1}\n', {"multiLine": "true"}),
        ('{"x":1}|{"x":1}{"x":-1}|', {"lineSep": "|"}),
        (
            '{"x":1}\n{"x":1}{"x":-1}\n'.encode("utf-16le"),
            {"encoding": "UTF-16LE", "lineSep": "\n"},
        ),
        (gzip.compress(b'{"x":1}\n' * 9, mtime=0)[:-9], {}),
        ('[{"x":1},\n{"x":2}]\n[{"x":-1}]', {"multiLine": "true"}),
        ('{"x":1 /*c*/} //{"x":-1}\n{"x":1} {"x":-1}', {"allowComments": "true"}),
        (gzip.compress(b'{"x":1}{"x":-1}\n', mtime=0), {}),
        ('{"x":1}\n{"x":', {}),
    ],
)
@pytest.mark.parametrize("schema", [pytest.param(None, marks=pytest.mark.slow), "x int"])
@pytest.mark.slow
def test_duplicate_json_fields_are_found_in_every_layout(
    judge: Judge, tmp_path: Path, text: str | bytes, options: dict[str, str], schema: str | None
) -> None:
    name = "a_json" if isinstance(text, str) or text[:2] != b"\x1f\x8b" else "a.json_gz"
    put(tmp_path / "t", **{name: text})
    report = judge(json_ref(tmp_path / "t", schema, **options))
    assert report.outcome in (Outcome.BLOCKED, Outcome.BROKEN), report.verdicts


@pytest.mark.slow
def test_a_bad_json_line_of_another_date_is_ignored(judge: Judge, tmp_path: Path) -> None:
    bad, good = '{"x":1}{"x":-1}\n', '{"x":1}\n'
    put(tmp_path / "t", **{"ds=2024-03-01__a_json": bad, "ds=2024-03-02__a_json": good})
    for schema in (None, "x int, ds date"):
        ref = replace(json_ref(tmp_path / "t", schema), date_column="ds")
        assert judge(ref).outcome is Outcome.PASSED
        assert judge(ref, on=date(2024, 3, 1)).outcome is not Outcome.PASSED
        filtered = replace(ref, filter="x < 1")
        assert judge(filtered, on=date(2024, 3, 1)).outcome is not Outcome.PASSED


# Headers of CSV

HEADERS = {
    "none": ("-1,-2\n", "has no header"),
    "spaces": (" x,y\n-1,2\n", "' x' for the column 'x'"),
    "quoted spaces": ('"x ",y\n-1,2\n', "'x ' for the column 'x'"),
    "twice": ("x,x,y\n-1,-1,2\n", "names the column 'x' twice"),
    "all twice": ("x,X\n-1,-1\n", "names the column 'x' twice"),
    "empty": ("", "is empty"),
    "a blank": ("\n", "has no header"),
    "text": ("a,b\n-1,2\n", "has no header"),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("case", HEADERS)
def test_a_csv_file_without_the_header_that_was_declared_is_an_error(
    judge: Judge, tmp_path: Path, case: str
) -> None:
    text, problem = HEADERS[case]
    put(tmp_path / "t", a_csv="x,y\n1,2\n", b_csv=text)
    message = why(judge(csv_ref(tmp_path / "t", "x int, y int")))
    assert problem in message
    assert "b.csv" in message or case == "a blank"


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("1,2\n-3,4\n", {}),
        ("2024-03-02,-1.5\n2024-03-02,1\n", {}),
        ("\x1f\x8b\x08\x00,y\n1,2\n", {}),
    ],
)
def test_a_missing_csv_header_is_an_error_with_inferred_types(
    judge: Judge, tmp_path: Path, text: str, options: dict[str, str]
) -> None:
    put(tmp_path / "t", a_csv=text)
    body = 'assert num_rows() > 0 name "rows"'
    assert "header" in why(judge(csv_ref(tmp_path / "t", **options), body))


@pytest.mark.more
def test_headers_that_name_the_columns_are_read(judge: Judge, tmp_path: Path) -> None:
    bom = "\ufeffx,y\n1,2\n"
    put(tmp_path / "t", a_csv="x,y\n1,2\n", b_csv="Y,X\n2,1\n", c_csv="x\n1\n", d_csv=bom)
    put(tmp_path / "t", e_csv='"x","z"\n1,2\n', f_csv="x,y\n")
    body = GOOD + '\nassert count(x) == 5 name "n"'
    report = judge(csv_ref(tmp_path / "t", "x int, y int"), body)
    assert report.outcome is Outcome.PASSED, report.verdicts


# Quotes of CSV that go over lines

SWALLOWING = (
    '1,"abc\n-2,x\n3,y\n',
    '1,"abc\n-2,"def"\n3,x\n',
    '1,"abc\n-2,"def\n3,x\n4,"y"\n',
    '1,"C:\\"\n-2,"b"\n',
    '1,a\n2,"',
)
CLOSED = (
    '1,"a\nb"\n2,"x y z"\n',
    '1,5" pipe\n2,"a\\"b"\n3,""\n4,\n',
    '1,"a\r\nb"\r\n2,"\\z"\r\n',
    "1,a",
)


@pytest.mark.more
@pytest.mark.parametrize("schema", [pytest.param(None, marks=pytest.mark.slow), "x int"])
def test_an_unclosed_quote_is_an_error(judge: Judge, tmp_path: Path, schema: str | None) -> None:
    for number, text in enumerate(SWALLOWING):
        put(tmp_path / f"{number}", a_csv="x,note\n" + text)
        message = why(judge(csv_ref(tmp_path / f"{number}", schema, multiLine="true")))
        assert re.search(r"a\.csv cannot be read: line \d has .*escape=", message)
    for number, text in enumerate(CLOSED):
        put(tmp_path / f"good {number}", a_csv="x,note\n" + text)
        report = judge(csv_ref(tmp_path / f"good {number}", schema, multiLine="true"))
        assert report.outcome is Outcome.PASSED, report.verdicts


@pytest.mark.parametrize(
    ("text", "options", "is_sound"),
    [
        ("x;note\n1;'a\n-2;b\n", {"sep": ";", "quote": "'"}, False),
        ("x;note\n1;'a\n2';b\n", {"sep": ";", "quote": "'"}, False),
        ("x;note\n1;'a\n2'\n", {"sep": ";", "quote": "'"}, True),
        ('x\tnote\n1\t"a""b\n"\n', {"sep": "\\t", "escape": '"'}, True),
        ('x,note\n#"\n1,b\n', {"comment": "#"}, True),
        ('x,note\n1, "a\nb" \n', {"ignoreLeadingWhiteSpace": "true"}, False),
        ('x,note\n1,"a "b" c"\n', {"unescapedQuoteHandling": "STOP_AT_CLOSING_QUOTE"}, True),
        ('x,note\n1,"a\n2,"b\n', {"quote": ""}, True),
    ],
)
@pytest.mark.slow
def test_quotes_are_those_of_the_options(
    judge: Judge, tmp_path: Path, text: str, options: dict[str, str], is_sound: bool
) -> None:
    put(tmp_path / "t", a_csv=text)
    report = judge(csv_ref(tmp_path / "t", multiLine="true", **options))
    assert (report.outcome is Outcome.PASSED) == is_sound, report.verdicts


# Folders


def _write(format: str, path: Path, x: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    match format:
        case "parquet":
            pq.write_table(pa.table({"x": [x]}), path)
        case "orc":
            orc.write_table(pa.table({"x": [x]}), path)
        case "csv":
            path.write_text(f"x\n{x}\n")
        case "json":
            path.write_text(json.dumps({"x": x}))


@pytest.mark.parametrize("format", ["parquet", "json", "csv", "orc"])
@pytest.mark.slow
def test_files_in_folders_other_than_partitions_are_an_error(
    judge: Judge, tmp_path: Path, format: str
) -> None:
    root = tmp_path / "t"
    for name, x in (("a", 1), ("sub/b", -1), ("_hidden/c", -1), (".tmp/d", -1)):
        _write(format, root / f"{name}.{format}", x)
    ref = DatasetRef("orders", str(root), format=format)
    assert f"sub/b.{format} would not be read" in why(judge(ref))
    deep = replace(ref, options=(("recursiveFileLookup", "true"),))
    assert judge(deep).outcome is Outcome.BLOCKED
    for path in (f"t/*.{format}", f"t/a.{format}"):
        assert judge(replace(ref, path=str(tmp_path / path))).outcome is Outcome.PASSED
    chosen = replace(ref, options=(("pathGlobFilter", f"a.{format}"),))
    assert judge(chosen).outcome is Outcome.PASSED


@pytest.mark.parametrize("name", ["b.json", "day=2", "_hidden.json"])
def test_a_dangling_link_is_an_error(judge: Judge, tmp_path: Path, name: str) -> None:
    folder = "t/day=1" if "=" in name else "t"
    _write("json", tmp_path / folder / "a.json", 1)
    (tmp_path / "t" / name).symlink_to(tmp_path / "gone")
    report = judge(DatasetRef("orders", str(tmp_path / "t"), format="json"))
    if name.startswith("_"):
        assert report.outcome is Outcome.PASSED
    else:
        assert f"{name} is a link to a file that does not exist" in why(report)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("names", "unread"),
    [
        (["a", "day=2/b"], "a.parquet"),
        (["day=1/a", "sub/b"], "sub/b.parquet"),
        (["day=1/a", "=2/b"], "=2/b.parquet"),
        (["day=1/a", "day=2/sub/b"], None),
        (["day=1/a", "_day=2/b"], None),
        (["sub/day=1/a"], None),
    ],
)
def test_files_beside_partitions_are_an_error(
    judge: Judge, tmp_path: Path, names: list[str], unread: str | None
) -> None:
    for name in names:
        _write("parquet", tmp_path / "t" / f"{name}.parquet", 1)
    report = judge(DatasetRef("orders", str(tmp_path / "t"), format="parquet"))
    if unread is None:
        assert "would not be read" not in str(report.verdicts)
    else:
        assert f"{unread} would not be read" in why(report)


@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_an_empty_file_among_others_is_an_error_whatever_its_name(
    judge: Judge, tmp_path: Path, format: str
) -> None:
    _write(format, tmp_path / "t" / f"a.{format}", 1)
    put(tmp_path / "t", part_1="")
    assert "part.1 is empty" in why(judge(DatasetRef("orders", str(tmp_path / "t"), format=format)))


@pytest.mark.parametrize(
    ("one", "other", "schema", "is_sound"),
    [
        (pa.array(["a"]), pa.array([5]), None, False),
        (pa.array([1]), pa.array([-2.5]), None, False),
        (pa.array([Decimal("1.50")]), pa.array([Decimal("-123")]), None, False),
        (pa.array(["abc"]), pa.array(["d"]), "x int", False),
        (pa.array([{"a": 1}]), pa.array([{"a": 2.5}]), None, False),
        (pa.array([[1]]), pa.array([["2"]]), None, False),
        (pa.array([0.5], pa.float32()), pa.array([0.1]), "x float", False),
        (pa.array([1], pa.int32()), pa.array([2**40]), "x bigint", True),
        (pa.array([[{"a": 1}]]), pa.array([[{"a": 2, "b": 0.5}]]), None, True),
        (pa.array([1]), pa.array([2]), None, True),
    ],
)
def test_orc_files_in_which_a_column_has_other_types_are_an_error(
    judge: Judge, tmp_path: Path, one: pa.Array, other: pa.Array, schema: str | None, is_sound: bool
) -> None:
    (tmp_path / "t").mkdir()
    # Which file Spark takes the types from is its own affair: either order has to be an error.
    orc.write_table(pa.table({"x": one}), tmp_path / "t/a.orc")
    orc.write_table(pa.table({"x": other}), tmp_path / "t/b.orc")
    report = judge(
        DatasetRef("orders", str(tmp_path / "t"), format="orc", schema=schema),
        'assert num_rows() > 0 name "rows"',
    )
    if is_sound:
        assert report.outcome is Outcome.PASSED
    else:
        assert "would be read as" in why(report)


def test_a_partition_column_must_have_the_same_value_in_the_files(
    judge: Judge, tmp_path: Path
) -> None:
    for value in (1, 2):
        (tmp_path / f"t/p={value}").mkdir(parents=True)
        pq.write_table(pa.table({"x": [1], "p": [value]}), tmp_path / f"t/p={value}/a.parquet")
    ref = DatasetRef("orders", str(tmp_path / "t"), format="parquet")
    assert judge(ref).outcome is Outcome.PASSED
    pq.write_table(pa.table({"x": [1, 1], "p": [2, -2]}), tmp_path / "t/p=2/a.parquet")
    assert "p=2/a.parquet, and in the name of its folder" in why(judge(ref))


def test_the_footers_of_all_files_are_read(judge: Judge, tmp_path: Path) -> None:
    # One file of doubles among 1,001, the oldest; Spark takes the columns from another one.
    (tmp_path / "t").mkdir()
    for number in range(1001):
        path = tmp_path / f"t/part-{1001 - number:05}.orc"
        orc.write_table(pa.table({"x": [5] if number else [5.9]}), path)
        os.utime(path, (1_700_000_000 + number,) * 2)
    report = judge(DatasetRef("orders", str(tmp_path / "t"), format="orc"))
    assert "part-01001.orc, but would be read as bigint" in why(report)


def test_a_partition_column_in_a_later_file_only_is_an_error_on_its_date(
    judge: Judge, tmp_path: Path
) -> None:
    other = date(2024, 3, 1)
    for on in (TODAY, other):
        (tmp_path / f"t/ds={on}").mkdir(parents=True)
        pq.write_table(pa.table({"x": [1]}), tmp_path / f"t/ds={on}/a.parquet")
    file = tmp_path / f"t/ds={TODAY}/b.parquet"
    pq.write_table(pa.table({"x": [1], "ds": ["2099-01-01"]}), file)
    ref = DatasetRef("orders", str(tmp_path / "t"), format="parquet", date_column="ds")
    assert f"'ds' is in {file}, and in the name of its folder" in why(judge(ref))
    assert judge(ref, on=other).outcome is Outcome.PASSED
    assert judge(replace(ref, date_column=None)).outcome is Outcome.BROKEN


# Partitions of Delta tables


@pytest.mark.parametrize(
    ("folder", "logged"),
    [
        ("x=5/a.parquet", None),
        ("x=5/a.parquet", "-5"),
        ("y=5/a.parquet", "-5"),
        ("a.parquet", "-5"),
    ],
)
def test_folder_names_of_a_delta_table_are_ignored(
    judge: Judge, tmp_path: Path, folder: str, logged: str | None
) -> None:
    by = None if logged is None else ["x"]
    table = pa.table({"x": pa.array([-5], pa.int32()), "id": [1]})
    write_deltalake(str(tmp_path / "t"), table, partition_by=by)
    (file,) = (tmp_path / "t").rglob("*.parquet")
    (tmp_path / "t" / folder).parent.mkdir(exist_ok=True)
    file.rename(tmp_path / "t" / folder)
    log = tmp_path / "t" / "_delta_log" / f"{0:020}.json"
    log.write_text(log.read_text().replace(str(file.relative_to(tmp_path / "t")), folder))
    body = 'assert maximum(x) == -5 name "x"\nassert each row: x == -5 name "row"'
    assert judge(DatasetRef("orders", str(tmp_path / "t")), body).outcome is Outcome.PASSED


VALUES = {
    "int": pa.array([7, -7, None], pa.int32()),
    "date": pa.array([date(2024, 3, 2), date(1969, 1, 1), None]),
    "string": pa.array(["01", "__HIVE_DEFAULT_PARTITION__ ", None]),
    "decimal": pa.array([Decimal("1.50"), Decimal("2.01"), None]),
    "bool": pa.array([True, False, None]),
}


@pytest.mark.more
@pytest.mark.parametrize("kind", VALUES)
def test_partitions_of_delta_have_the_values_of_the_log(
    spark: Any, tmp_path: Path, kind: str
) -> None:
    from dqx_airflow.engine.sources.open import open_dataset

    table = pa.table({"p": VALUES[kind], "id": [1, 2, 3]})
    write_deltalake(str(tmp_path / "t"), table, partition_by=["p"])
    opened = open_dataset(spark, DatasetRef("orders", str(tmp_path / "t")))
    found = {row.id: row.p for row in opened.read([None]).collect()}
    assert found == dict(zip([1, 2, 3], VALUES[kind].to_pylist(), strict=True))


def test_partitions_of_files_have_the_declared_types(
    spark: Any, judge: Judge, tmp_path: Path
) -> None:
    _write("parquet", tmp_path / "t/p=1/a.parquet", 1)
    _write("parquet", tmp_path / "t/p=abc/a.parquet", 1)
    ref = DatasetRef("orders", str(tmp_path / "t"), format="parquet", schema="x bigint, p int")
    assert "INVALID_PARTITION_VALUE" in why(judge(ref))
    with setting(spark, "spark.sql.sources.validatePartitionColumns", "false"):
        assert "validatePartitionColumns=false" in why(judge(ref))


# Sessions that pass over files


@contextmanager
def setting(spark: Any, name: str, value: str) -> Iterator[None]:
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.unset(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("escapedStringLiterals", "other strings than those in the suite"),
        ("quotedRegexColumnNames", "the name of a column would be a pattern"),
    ],
)
def test_a_session_that_reads_sql_in_another_way_judges_nothing(
    spark: Any, judge: Judge, tmp_path: Path, name: str, message: str
) -> None:
    _write("parquet", tmp_path / "a.parquet", 1)
    with setting(spark, f"spark.sql.parser.{name}", "true"):
        assert message in why(judge(DatasetRef("orders", str(tmp_path), format="parquet")))


@pytest.mark.few(2)
@pytest.mark.parametrize("format", ["parquet", "orc", "csv", "json", "delta"])
def test_a_session_that_ignores_corrupt_files_does_not_for_a_gate(
    spark: Any, judge: Judge, tmp_path: Path, format: str
) -> None:
    root = tmp_path / "t"
    if format == "delta":
        for x in (1, 2):
            write_deltalake(str(root), pa.table({"x": [x]}), mode="append")
        file = sorted(root.glob("*.parquet"))[0]
        file.write_bytes(b"x" * file.stat().st_size)
    else:
        for name in "ab":
            _write(format, root / f"{name}.{format}", 1)
        file = root / f"b.{format}"
        if format in ("csv", "json"):
            cut = gzip.compress(file.read_bytes() * 50)[:-9]
            file.unlink()
            Path(f"{file}.gz").write_bytes(cut)
        else:
            file.write_bytes(file.read_bytes()[:-9] + b"123456789")
    ref = DatasetRef("orders", str(root), format=format)
    with setting(spark, "spark.sql.files.ignoreCorruptFiles", "true"):
        report = judge(ref, 'assert each row: x + 0 > 0 name "good"')
    assert {v.status.value for v in report.verdicts if v.name == "good"} == {"error"}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["ignoreCorruptFiles", "ignoreMissingFiles"])
def test_a_session_that_ignores_files_is_refused_for_tables_and_queries(
    spark: Any, judge: Judge, name: str
) -> None:
    spark.sql("SELECT 1 AS x").createOrReplaceTempView("ones")
    for ref in (
        DatasetRef("orders", table="ones"),
        DatasetRef("orders", query="SELECT * FROM ones"),
    ):
        assert judge(ref).outcome is Outcome.PASSED
        with setting(spark, f"spark.sql.files.{name}", "true"):
            assert f"spark.sql.files.{name}=true" in why(judge(ref))


@pytest.mark.parametrize(
    ("kind", "lines"), [("csv", "1,2\nx,3\n"), ("json", '{"x": 1}\n{"x": "one"}\n')]
)
@pytest.mark.slow
def test_a_table_over_text_files_does_not_turn_malformed_values_into_null(
    spark: Any, judge: Judge, tmp_path: Path, kind: str, lines: str
) -> None:
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / f"a.{kind}").write_text(lines)
    rule = 'assert each row: x > 0 name "x"'
    spark.sql(f"CREATE TABLE lenient (x INT, y INT) USING {kind} LOCATION '{tmp_path}/rows'")
    spark.sql("CREATE VIEW behind AS SELECT * FROM lenient")
    try:
        table = DatasetRef("orders", table="lenient")
        assert judge(table, rule).outcome is Outcome.BROKEN
        chosen = replace(table, options=(("mode", "PERMISSIVE"),))
        assert judge(chosen, rule).outcome is Outcome.PASSED
        for ref in (
            DatasetRef("orders", table="behind"),
            DatasetRef("orders", query="SELECT x FROM default.lenient"),
            DatasetRef("orders", query="WITH b AS (SELECT * FROM behind) SELECT x FROM b"),
        ):
            report = judge(ref, rule)
            assert f"lenient, a table of {kind} files" in why(report)
            assert report.outcome is Outcome.BROKEN
        spark.sql("ALTER TABLE lenient SET SERDEPROPERTIES ('mode' = 'PERMISSIVE')")
        assert judge(DatasetRef("orders", table="behind"), rule).outcome is Outcome.PASSED
    finally:
        spark.sql("DROP VIEW behind")
        spark.sql("DROP TABLE lenient")


@pytest.mark.slow
def test_what_is_behind_more_than_20_views_is_an_error(spark: Any, judge: Judge) -> None:
    spark.sql("CREATE TABLE view0 USING parquet AS SELECT 1 AS x")
    try:
        for number in range(1, 22):
            spark.sql(f"CREATE VIEW view{number} AS SELECT * FROM view{number - 1}")
        body = 'assert num_rows() == 1 name "n"'
        for form in ({"table": "view{}"}, {"query": "SELECT x FROM view{}"}):
            (setting, text), *_ = form.items()
            read = {deep: DatasetRef("orders", **{setting: text.format(deep)}) for deep in (20, 21)}
            assert judge(read[20], body).outcome is Outcome.PASSED
            report = judge(read[21], body)
            assert report.outcome is Outcome.BROKEN
            assert "view0 is behind more than 20 nested views" in why(report)
    finally:
        for number in range(21, 0, -1):
            spark.sql(f"DROP VIEW IF EXISTS view{number}")
        spark.sql("DROP TABLE view0")


def test_a_table_may_have_columns_named_like_catalog_properties(spark: Any, judge: Judge) -> None:
    spark.sql("CREATE VIEW odd AS SELECT 1 AS Provider, 'csv' AS `View Text`, 2 AS `Type`")
    try:
        body = 'assert minimum(Provider) == 1 name "p"'
        assert judge(DatasetRef("orders", table="odd"), body).outcome is Outcome.PASSED
        query = DatasetRef("orders", query="SELECT * FROM odd")
        assert judge(query, body).outcome is Outcome.PASSED
    finally:
        spark.sql("DROP VIEW odd")


# Names with points


@pytest.mark.slow
def test_a_column_name_that_is_also_a_struct_path_is_an_error(
    spark: Any, judge: Judge, tmp_path: Path
) -> None:
    table = pa.table({"a.b": [1], "a": [{"b": -1, "c": {"d": 1}}], "a.c": [{"d": 1}], "e.f": [1]})
    pq.write_table(table, tmp_path / "t")
    ref = DatasetRef("orders", str(tmp_path / "t"), format="parquet")
    for body in ("each row: a.b > 0", "minimum(a.b) > 0", "sum(a.c.d) == 1", "not_null(A.b)"):
        report = judge(ref, f'assert {body} name "x"')
        reason = next(v.reason for v in report.verdicts if v.name == "x") or ""
        assert "is ambiguous" in reason
        assert report.outcome is Outcome.BROKEN
    assert judge(ref, 'assert minimum(`e.f`) == 1 name "x"').outcome is Outcome.PASSED
    assert "is both a column and a field" in why(judge(replace(ref, date_column="a.b")))
