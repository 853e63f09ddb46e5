"""A column that is in the files and in the names of their folders has one value, or is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as T

from dqx_airflow.engine.job import try_gates
from dqx_airflow.engine.sources.footers import require_read_as_written
from dqx_airflow.engine.sources.listing import ListedFiles, files_at, partitions_of
from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.engine.sources.parquet_types import ReadColumns
from dqx_airflow.errors import DatasetError
from dqx_airflow.values import DatasetRef, GateReport, Outcome
from tests.engine.lake import request

NAN = float("nan")
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"

SAME = {
    "7": pa.array([7, 7]),
    "-7": pa.array([-7], pa.int8()),
    "1.0": pa.array([1.0, 1.0]),
    "eu": pa.array(["eu", "eu"]).dictionary_encode(),
    "2024-03-02": pa.array([date(2024, 3, 2)]),
    NO_VALUE: pa.array([None, None], pa.string()),
    "none": pa.array([], pa.string()),
}
OTHER = {
    "8": pa.array([8, 7]),
    "1.0": pa.array([1.0, NAN]),
    "eu": pa.array(["eu", "us"]),
    "us": pa.array(["us", None]),
    "2024-03-02": pa.array([date(2024, 3, 2), date(2024, 3, 1)]),
    NO_VALUE: pa.array([None, "a"]),
    "a": pa.array([None, None], pa.string()),
    "1": pa.array([{"x": 1}]),
}
CASES = [
    *((folder, values, True) for folder, values in SAME.items()),
    *((folder, values, False) for folder, values in OTHER.items()),
]


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize(("folder", "values", "is_same"), CASES)
def test_a_column_of_parquet_has_the_value_of_its_folder(
    tmp_path: Path, folder: str, values: pa.Array, is_same: bool, statistics: bool
) -> None:
    (tmp_path / f"k={folder}").mkdir()
    file = tmp_path / f"k={folder}" / "a.parquet"
    table = pa.table({"k": values, "v": list(range(len(values)))})
    pq.write_table(table, file, write_statistics=statistics)
    ref = DatasetRef("orders", str(tmp_path), format="parquet")

    def check() -> None:
        listed = ListedFiles(files_at(str(tmp_path)) or ())
        partitions = partitions_of(ref, str(tmp_path), listed)
        read = ReadColumns.of(T.StructType([]))
        require_read_as_written(
            ref, str(tmp_path), listed.files, read, partitions, reads_half_floats=True
        )

    if is_same:
        check()
    else:
        with pytest.raises(DatasetError, match=f"column 'k' is in {file}, and in the name of its"):
            check()


Judge = Callable[..., GateReport]


@pytest.fixture
def judge(spark: Any, tmp_path: Path) -> Judge:
    def run(ref: DatasetRef, on: date) -> GateReport:
        body = 'assert maximum(v) < 5 name "max"\nassert num_rows() > 0 name "rows"'
        return try_gates([request(tmp_path, body, [ref], on)], lambda _: spark)[0]

    return run


def written_json(root: Path, files: Mapping[str, str]) -> DatasetRef:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return DatasetRef("orders", str(root), format="json")


JSON_SAME = {
    "ds=2024-03-01/a.json": '{"ds":"2024-03-01","v":1}\n{"v":1}\n',
    "ds=2024-03-02/a.json": '{"v":1,"ds":"2024-03-02"}\n{"v":2,"ds":null}\n{"v":3,"tags":["ds"]}',
}
JSON_OTHER = {
    "a string": '{"ds":"2024-03-03","v":1}',
    "in another case": '{"DS":"2024-03-03","v":1}',
    "an escaped name": r'{"d\u0073":"2024-03-03","v":1}',
    "behind others": '{"v":1}\n{"v":1,"x":{"ds":"2024-03-02"},"ds":"2024-03-03"}',
    "an object": '{"ds":{"day":"2024-03-02"},"v":1}',
    "an array of objects": '[{"v":1,"ds":"2024-03-02"},\n{"v":1,"ds":"2024-03-03"}]',
}
SCHEMAS = [None, "v int, ds date"]


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("case", JSON_OTHER)
@pytest.mark.few(2)
def test_a_field_of_json_with_another_value_than_its_folder_is_an_error(
    judge: Judge, tmp_path: Path, case: str, schema: str | None
) -> None:
    root = tmp_path / "t"
    other = {"ds=2024-03-02/a.json": JSON_OTHER[case]}
    if case == "an array of objects":
        other["ds=2024-03-01/a.json"] = "[\n]"
    ref = replace(written_json(root, {**JSON_SAME, **other}), schema=schema, date_column="ds")
    report = judge(ref, date(2024, 3, 2))
    assert report.outcome is Outcome.BROKEN, report.verdicts
    for verdict in report.verdicts:
        assert "ds=2024-03-02/a.json cannot be read: column 'ds' is in it, and" in verdict.reason
    if case != "an array of objects":
        assert judge(ref, date(2024, 3, 1)).outcome is Outcome.PASSED


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_field_of_json_with_the_value_of_its_folder_is_read(
    judge: Judge, tmp_path: Path, schema: str | None
) -> None:
    ref = replace(written_json(tmp_path / "t", JSON_SAME), schema=schema, date_column="ds")
    report = judge(ref, date(2024, 3, 2))
    assert report.outcome is Outcome.PASSED, report.verdicts


@pytest.mark.spark
@pytest.mark.parametrize("schema", [None, "v int, ds date"])
@pytest.mark.parametrize("separator", [",", "\t"])
def test_a_column_of_csv_that_the_folders_have_is_named(
    spark: Any, tmp_path: Path, separator: str, schema: str | None
) -> None:
    for day in (1, 2):
        file = tmp_path / f"ds=2024-03-0{day}" / "a.csv"
        file.parent.mkdir()
        file.write_text(f"v,ds\n1,2024-03-0{day}\n".replace(",", separator))
    options = (("sep", separator.replace("\t", "\\t")),)
    ref = DatasetRef("orders", str(tmp_path), format="csv", options=options, schema=schema)
    with pytest.raises(DatasetError, match=r"'ds' is in .*/a\.csv, and in the name of its folder"):
        open_dataset(spark, ref)
