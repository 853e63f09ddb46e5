"""Measures how finding the files of a table grows with their number.

    python benchmarks/log_growth.py [--files 1000 100000] [--dates 126] [--by partition]

For each size, a process of its own opens the log of a Delta table, compares the files of each date
with storage, and makes their fingerprints, as a rerun does that reads no data: the processor time,
and the peak of its memory. The files are hard links to one Parquet file, added by one commit, with
a checkpoint. `--by folders` has the same files in folders without a log, which are listed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, Field, Schema
from deltalake.transaction import AddAction, create_table_with_add_actions
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from dqx_airflow.engine.scan.fingerprints import chain_of
from dqx_airflow.engine.sources import listing
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.date_column import DateColumn
from dqx_airflow.engine.sources.delta_files import DeltaLog, struct_of
from dqx_airflow.engine.sources.delta_table import table_at
from dqx_airflow.engine.sources.folder_columns import columns_of_folders
from dqx_airflow.values import DatasetRef

FIRST = date(2024, 1, 1)
_MOST_LINKS = 50_000
"""File systems have a limit on the links of a file."""
_FIELDS = ("id", "long"), ("amount", "double"), ("ds", "date")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--dates", type=int, default=126)
    parser.add_argument("--by", choices=list(_MEASURES), default="partition")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure is not None:
        started = time.process_time()
        count = _MEASURES[given.by](given.measure, given.dates)
        used = time.process_time() - started
        print(f"| {count:,} | {used:.1f} | {_peak_mb():,.0f} |", flush=True)
        return
    print("| files | CPU s | peak MB |\n|---|---|---|")
    for number in given.files:
        with TemporaryDirectory(prefix="dqx_log_growth_") as folder:
            write_table(Path(folder), number, is_partitioned=given.by != "statistics")
            if given.by == "folders":
                shutil.rmtree(Path(folder) / "_delta_log")
                for source in Path(folder).glob("*.parquet"):
                    source.unlink()
            words = [sys.executable, __file__, "--measure", folder]
            subprocess.run([*words, "--dates", str(given.dates), "--by", given.by], check=True)


def write_table(root: Path, files: int, *, days: int = 366, is_partitioned: bool) -> None:
    """Writes a table with some number of files, each of one row, spread over dates."""
    row = {"id": [1], "amount": [1.0]} | ({} if is_partitioned else {"ds": [FIRST]})
    one = root / "one.parquet"
    pq.write_table(pa.table(row), one)
    size = one.stat().st_size
    sources = [root / f"{number}.parquet" for number in range(files // _MOST_LINKS + 1)]
    for source in sources:
        shutil.copy(one, source)
    now_ms = int(time.time() * 1000) + 60_000
    adds = []
    for number in range(files):
        day = str(FIRST + timedelta(number % days))
        folder = f"ds={day}" if is_partitioned else "data"
        (root / folder).mkdir(exist_ok=True)
        os.link(sources[number // _MOST_LINKS], root / folder / f"{number}.parquet")
        bounds = {"id": 1, "amount": 1.0} | ({} if is_partitioned else {"ds": day})
        nulls = dict.fromkeys(bounds, 0)
        statistics = {"numRecords": 1, "minValues": bounds, "maxValues": bounds, "nullCount": nulls}
        values = {"ds": day} if is_partitioned else {}
        path = f"{folder}/{number}.parquet"
        adds.append(AddAction(path, size, values, now_ms, True, json.dumps(statistics)))
    schema = Schema([Field(name, kind) for name, kind in _FIELDS])
    by = ["ds"] if is_partitioned else []
    create_table_with_add_actions(str(root), schema, adds, partition_by=by)
    DeltaTable(str(root)).create_checkpoint()


def _measure_log(root: Path, dates: int) -> int:
    ref = DatasetRef("growing", path=str(root), format="delta", date_column="ds")
    table = table_at(ref, str(root))
    struct = struct_of(table)
    column = DateColumn.of(ref, struct)
    log = DeltaLog(table, str(root), struct, column)
    opened = OpenDataset(ref, struct, _read_nothing, str(root), column, log=log)
    chains = []
    for number in range(dates):
        on = FIRST + timedelta(number)
        chain = chain_of(opened, on, None)
        assert chain is not None
        assert chain.fingerprint
        chains.append(chain)
        log.is_believed([on])
        log.rows_of(on)
    return log.count


def _measure_folders(root: Path, dates: int) -> int:
    ref = DatasetRef("growing", path=str(root), format="parquet", date_column="ds")
    files = listing.files_at(str(root))
    assert files is not None
    assert not listing.dangling_links(str(root))
    assert not listing.unread_files(str(root), files)
    by_folder = listing.ListedFiles(files)
    partitions = listing.partitions_of(ref, str(root), by_folder)
    columns = columns_of_folders(partitions, {"id", "amount"})
    struct = StructType([StructField(column.name, column.type) for column in columns])
    dated = DateColumn.of(ref, struct)
    opened = OpenDataset(
        ref, struct, _read_nothing, str(root), dated, files=files, partitions=partitions
    )
    for number in range(dates):
        chain = chain_of(opened, FIRST + timedelta(number), by_folder)
        assert chain is not None
        assert chain.fingerprint
    return len(files)


_MEASURES: Mapping[str, Callable[[Path, int], int]] = {
    "partition": _measure_log,
    "statistics": _measure_log,
    "folders": _measure_folders,
}
"""How the files of the dates are found; the measures return the number of all files."""


def _read_nothing(dates: Collection[date | None]) -> DataFrame:
    raise NotImplementedError("a rerun reads no data")


def _peak_mb() -> float:
    """The peak of the memory of this process, without its parent's, which `ru_maxrss` has."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "VmHWM":
            return int(value.split()[0]) / 1000
    return 0.0


if __name__ == "__main__":
    main()
