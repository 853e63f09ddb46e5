"""Folders whose names are bytes of UTF-8 behind `%`, as PyArrow writes them, are strings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import dataset as ds

from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.engine.sources.partition_values import are_utf8, text_in_spark
from dqx_airflow.values import DatasetRef

CITIES = ["Zürich", "東京", "a=b %/c", "Bern"]


@pytest.mark.parametrize(
    ("folders", "expected"),
    [
        (["Z%C3%BCrich", "Bern"], True),
        (["%E6%9D%B1"], True),
        (["a%3Db", "Bern"], False),  # Spark reads these rightly
        (["Zürich"], False),
        (["Z%C3%BCrich", "Genève"], False),  # of two writers
        (["Z%FCrich"], False),
        (["Z%C3%BCrich", "Gen%E8ve"], False),
    ],
)
def test_only_folders_that_are_certainly_utf8_are_taken_for_it(
    folders: list[str], expected: bool
) -> None:
    assert are_utf8(folders) is expected


def test_spark_takes_each_byte_for_a_character() -> None:
    assert text_in_spark("Z%C3%BCrich 100%") == "ZÃ¼rich 100%"


def write_some(root: Path, format: str) -> None:
    """The files of PyArrow; those of text with the names of its folders."""
    table = pa.table({"city": CITIES, "v": list(range(len(CITIES)))})
    schema = pa.schema([("city", pa.string())])
    ds.write_dataset(
        table, root, format="parquet", partitioning=ds.partitioning(schema, flavor="hive")
    )
    for file in list(root.rglob("*.parquet")):
        values = pq.ParquetFile(file).read().column("v").to_pylist()
        if format == "json":
            lines = [json.dumps({"v": value, "city": CITIES[value]}) for value in values]
            file.with_suffix(".json").write_text("\n".join(lines))
        if format == "csv":
            file.with_suffix(".csv").write_text("v\n" + "\n".join(map(str, values)))
        if format != "parquet":
            file.unlink()


@pytest.mark.spark
@pytest.mark.parametrize(
    "schema", [None, pytest.param("v bigint, city string", marks=pytest.mark.more)]
)
@pytest.mark.parametrize("format", ["parquet", "json", "csv"])
def test_the_folders_of_pyarrow_have_its_strings(
    spark: Any, tmp_path: Path, format: str, schema: str | None
) -> None:
    write_some(tmp_path / "t", format)
    ref = DatasetRef(
        "t", str(tmp_path / "t"), format=format, schema=schema, filter="city <> 'Bern'"
    )
    opened = open_dataset(spark, ref)
    rows = opened.read([None]).select("v", "city").collect()
    assert {row.v: row.city for row in rows} == {at: CITIES[at] for at in range(3)}
    assert "city" not in opened.notes


@pytest.mark.spark
def test_a_folder_that_is_not_certainly_utf8_has_a_note(spark: Any, tmp_path: Path) -> None:
    for folder in ("city=Z%C3%BCrich", "city=Genève"):
        (tmp_path / folder).mkdir()
        pq.write_table(pa.table({"v": [1]}), tmp_path / folder / "a.parquet")
    opened = open_dataset(spark, DatasetRef("t", str(tmp_path), format="parquet"))
    read = {row.city for row in opened.read([None]).collect()}
    assert read == {"ZÃ¼rich", "Genève"}
    assert "city=Z%C3%BCrich is read as 'ZÃ¼rich', not as UTF-8" in opened.notes["city"]
