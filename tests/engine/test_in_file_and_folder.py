"""A column that is in the files and in the names of their folders has one value, or is refused."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as T

from dqx_airflow.engine.sources.footers import require_read_as_written
from dqx_airflow.engine.sources.listing import files_at
from dqx_airflow.engine.sources.parquet_types import ReadColumns
from dqx_airflow.errors import DatasetError
from dqx_airflow.values import DatasetRef

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
        read = ReadColumns.of(T.StructType([]))
        require_read_as_written(ref, str(tmp_path), files_at(str(tmp_path)) or (), read)

    if is_same:
        check()
    else:
        with pytest.raises(DatasetError, match=f"column 'k' is in {file}, and in the name of its"):
            check()
