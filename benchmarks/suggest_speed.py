"""Compares the time of `dql suggest` with the same aggregates written by hand with Arrow.

    python -m benchmarks.suggest_speed [--rows 1000000] [--columns 100]

By hand are, for each column, the NULL values, the distinct values and the extremes; for each date,
the rows; and for each column with NULL values, those by date.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet as pq
from typer.testing import CliRunner

from dqx_airflow.cli.main import app

_CHUNK = 500_000
_DAYS = 30


def write_table(path: Path, rows: int, columns: int) -> None:
    """Writes whole numbers, doubles, categories and strings; every fifth column has NULLs."""
    writer = None
    for start in range(0, rows, _CHUNK):
        number = pa.array(range(start, min(start + _CHUNK, rows)), pa.int64())
        data = {"id": number, "ds": pc.cast(pc.cast(_modulo(number, _DAYS), pa.int32()), "date32")}
        for place in range(columns - 2):
            mixed = _modulo(pc.multiply(number, 7919 + 2 * place), 1_000_003)
            kind = place % 4
            if kind == 1:
                mixed = pc.divide(pc.cast(mixed, pa.float64()), 100.0)
            elif kind == 2:
                mixed = pc.binary_join_element_wise("v", pc.cast(_modulo(mixed, 9), "string"), "")
            elif kind == 3:
                mixed = pc.binary_join_element_wise("T", pc.cast(mixed, "string"), "-")
            if place % 5 == 0:
                is_null = pc.equal(_modulo(number, 50), place % 50)
                mixed = pc.if_else(is_null, pa.scalar(None, mixed.type), mixed)
            data[f"c{place}"] = mixed
        table = pa.table(data)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer:
        writer.close()


def _modulo(values: pa.Array, by: int) -> pa.Array:
    return pc.subtract(values, pc.multiply(pc.divide(values, by), by))


def by_hand(path: Path) -> None:
    dataset = pa.dataset.dataset(path)
    days = dataset.to_table(columns=["ds"]).column(0)
    pc.value_counts(days)
    for field in dataset.schema:
        column = dataset.to_table(columns=[field.name]).column(0)
        pc.count_distinct(column)
        pc.min_max(column)
        if column.null_count:
            pc.value_counts(pc.filter(days, pc.is_null(column)))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--columns", type=int, default=100)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "orders.parquet"
        write_table(path, given.rows, given.columns)
        for title, run in (
            ("by hand", lambda: by_hand(path)),
            ("dql suggest", lambda: _ours(path)),
        ):
            start, used = time.perf_counter(), time.process_time()
            run()
            wall, cpu = time.perf_counter() - start, time.process_time() - used
            print(f"{title:12} {wall:7.1f} s {cpu:7.1f} s CPU")


def _ours(path: Path) -> None:
    done = CliRunner().invoke(app, ["suggest", "--dataset", f"orders={path}?date_column=ds"])
    assert done.exit_code == 0, done.output


if __name__ == "__main__":
    main()
