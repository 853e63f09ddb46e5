"""Drafts gates for a lake of 300 tables: the time and CPU of each step, and which faults are found.

    python -m benchmarks.whole_lake [--tables 300] [--rows 20000] [--large 10] [--folder FOLDER]

The tables have 30 columns and 30 days; a few have a million rows, the others about `--rows`. They
are Parquet (single files and partitions), Delta, CSV and JSON; of the large ones, one in 20 is CSV,
and one is JSON. 300 large tables need 33 GB; all but 47 of them are copies of 20. One in ten has a
fault: a key that is repeated or NULL, a reference to nothing, a table that stopped, half a day, a
column that is suddenly NULL, a file that is cut off. The steps are: a draft that is interrupted
after a third of the tables, its continuation, the report as a page, a second call in which nothing
is new, and two nights with all gates in one `dql run` on Sail, the first without results of earlier
days.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from deltalake import write_deltalake

DAYS, COLUMNS, LARGE_ROWS = 30, 30, 1_000_000
_KEYS_OF_DIMENSION = 500
_FORMATS = ("parquet", "delta", "partitions", "csv", "json")
_LARGE_FORMATS = ("csv", "json", *_FORMATS[:3] * 6)
"""Mostly Parquet and Delta: a large table of CSV has 230 MB, one of JSON 700 MB."""
_WITH_FAULT = 10
"""One table of this number has a fault."""

Fault = Callable[[pa.Table, np.random.Generator], pa.Table]


def _with(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, values)


def _on_last_day(table: pa.Table) -> np.ndarray:
    days = table["ds"].combine_chunks()
    return np.asarray(pc.equal(days, pc.max(days)))


def repeated_key(table: pa.Table, _: np.random.Generator) -> pa.Table:
    ids = table["id"].to_numpy().copy()
    ids[-3:] = ids[0]
    return _with(table, "id", pa.array(ids))


def key_without_value(table: pa.Table, _: np.random.Generator) -> pa.Table:
    ids = table["id"].to_numpy()
    return _with(table, "id", pa.array(ids, mask=np.arange(len(ids)) >= len(ids) - 3))


def reference_to_nothing(table: pa.Table, _: np.random.Generator) -> pa.Table:
    name = next(name for name in table.column_names if name.startswith("dim_"))
    ids = table[name].to_numpy().copy()
    ids[-3:] = 10**9
    return _with(table, name, pa.array(ids))


def stopped(table: pa.Table, _: np.random.Generator) -> pa.Table:
    last = pc.max(table["ds"]).as_py()
    return table.filter(pc.less_equal(table["ds"], pa.scalar(last - timedelta(days=9))))


def half_a_day(table: pa.Table, rng: np.random.Generator) -> pa.Table:
    is_lost = _on_last_day(table) & (rng.random(table.num_rows) < 0.6)
    return table.filter(pa.array(~is_lost))


def suddenly_null(table: pa.Table, rng: np.random.Generator) -> pa.Table:
    is_lost = _on_last_day(table) & (rng.random(table.num_rows) < 0.5)
    return _with(table, "amount_1", pa.array(table["amount_1"].to_numpy(), mask=is_lost))


FAULTS: dict[str, Fault | None] = {
    "repeated key": repeated_key,
    "key without value": key_without_value,
    "reference to nothing": reference_to_nothing,
    "stopped": stopped,
    "half a day": half_a_day,
    "suddenly NULL": suddenly_null,
    "cut off": None,  # the file, not its rows
}


def facts(rows: int, dimension: str, today: date, rng: np.random.Generator) -> pa.Table:
    """A table of some rows on the last days, with 30 columns."""
    first = today - timedelta(days=DAYS)
    day = np.sort(rng.integers(0, DAYS, rows))
    start = int(rng.integers(0, 10**6))
    columns: dict[str, pa.Array] = {
        "id": pa.array(start + np.arange(rows)),
        "ds": pa.array(np.datetime64(first) + day.astype("timedelta64[D]")),
        f"{dimension}_id": pa.array(rng.integers(0, _KEYS_OF_DIMENSION, rows)),
    }
    for number in range(7):
        kinds = pa.array([f"kind {one}" for one in range(2 + number)])
        columns[f"kind_{number}"] = kinds.take(pa.array(rng.integers(0, len(kinds), rows)))
    for number in range(10):
        values = rng.lognormal(3, 0.2 + number / 10, rows)
        is_null = rng.random(rows) < (0.02 if number == 0 else 0)
        columns[f"amount_{number}"] = pa.array(values.round(2), mask=is_null)
    for number in range(5):
        columns[f"count_{number}"] = pa.array(rng.integers(0, 10 ** (number + 1), rows))
    for number in range(COLUMNS - len(columns)):
        digits = pa.array(rng.integers(10**6, 10**7, rows)).cast(pa.string())
        columns[f"text_{number}"] = pc.binary_join_element_wise(f"T{number}-", digits, "")
    return pa.table(columns)


def write(table: pa.Table, path: Path, form: str) -> Path:
    """Writes a table in a form; the file that a fault cuts off."""
    if form == "delta":
        write_deltalake(str(path), table)
    elif form == "partitions":
        for on in pc.unique(table["ds"]):
            file = path / f"ds={on}" / "part-0.parquet"
            file.parent.mkdir(parents=True)
            rows = table.filter(pc.equal(table["ds"], on))
            pq.write_table(rows.drop_columns("ds"), file)
    else:
        path = path.with_name(f"{path.name}.{form}")
        path.parent.mkdir(parents=True, exist_ok=True)
        if form == "parquet":
            pq.write_table(table, path)
        elif form == "csv":
            pa.csv.write_csv(table, path)
        else:
            table.to_pandas().to_json(path, orient="records", lines=True, date_format="iso")
    return path


def copy_of_table(folder: Path, known: int, new: int) -> None:
    """Copies a table, which takes a hundredth of the time of writing one."""
    (source,) = (path for path in folder.iterdir() if path.name.split(".")[0] == f"facts_{known}")
    target = source.with_name(source.name.replace(f"facts_{known}", f"facts_{new}"))
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copyfile(source, target)


def write_lake(
    root: Path, tables: int, rows: int, large: int, with_fault: int = _WITH_FAULT
) -> dict[str, str]:
    """Writes tables of all forms; the faults by place.

    :param with_fault: one table in this number has a fault.
    """
    rng = np.random.default_rng(1)
    on = datetime.now(timezone.utc).date()
    groups = max(1, tables // 30)
    for group in range(groups):
        ids = np.arange(_KEYS_OF_DIMENSION)
        names = [f"name {one}" for one in ids]
        path = root / f"area_{group}" / f"dim_{group}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": ids, "name": names}), path)
    planted: dict[str, str] = {}
    faults = cycle(FAULTS)
    copied_after = math.lcm(groups, len(_LARGE_FORMATS))
    for number in range(tables - groups):
        has_fault = number % with_fault == with_fault - 1
        group = number % groups
        is_large = number < large
        if is_large and number >= copied_after and not has_fault:
            copy_of_table(root / f"area_{group}", number % copied_after, number)
            continue
        size = LARGE_ROWS if is_large else int(rows * rng.lognormal(0, 0.7)) + 600
        forms = _LARGE_FORMATS if is_large else _FORMATS
        form = forms[number % len(forms)]
        table = facts(size, f"dim_{group}", on, rng)
        name = ""
        if has_fault:
            name = next(faults)
            if name == "cut off":
                form = "parquet"
            elif (change := FAULTS[name]) is not None:
                table = change(table, rng)
        file = write(table, root / f"area_{group}" / f"facts_{number}", form)
        if name == "cut off":
            os.truncate(file, file.stat().st_size // 2)
        if name:
            planted[file.relative_to(root).as_posix()] = name
    return planted


@dataclass(frozen=True)
class Step:
    """A step with its wall time and the CPU time of its process."""

    title: str
    seconds: float
    cpu: float


_ENDED = (0, 1, 3)
"""Exit codes: passed or warned, blocked, broken."""


def _ended(call: list[str], until: Callable[[], bool] | None = None) -> str:
    """The output of a call, which is interrupted as soon as a condition holds."""
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True) as process:
        while until is not None and process.poll() is None:
            if until():
                process.send_signal(signal.SIGINT)
                break
            time.sleep(0.2)
        output = process.communicate()[0]
    if until is None and process.returncode not in _ENDED:
        raise SystemExit(f"{call} ended with {process.returncode}")
    return output


def steps(lake: Path, gates: Path, tables: int) -> Iterator[tuple[Step, str]]:
    """Yields each step with its output."""
    command = str(Path(sys.executable).with_name("dql"))
    draft = [command, "init", str(gates), "--dataset", str(lake)]
    more = ["--calls-per-month", "3", "--format"]

    def is_a_third() -> bool:
        return len([*gates.glob(".dql_init/*.json")]) >= tables // 3

    yield _measured("draft, interrupted", [*draft, "--format", "json"], is_a_third)
    yield _measured(DRAFT, [*draft, *more, "json"])
    yield _measured("the report as a page", [*draft, *more, "html"])
    yield _measured("nothing new, as a diff", [*draft, "--diff"])
    run = [command, "run", str(gates / "suites"), "--engine", "sail", "--format", "json"]
    yield _measured(f"first {NIGHT}", [*run, "--date", "-2d"])
    yield _measured(f"next {NIGHT}", [*run, "--date", "-1d"])


DRAFT, NIGHT = "draft, continued", "night"


def _measured(
    title: str, call: list[str], until: Callable[[], bool] | None = None
) -> tuple[Step, str]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    output = _ended(call, until)
    seconds = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Step(title, seconds, cpu), output


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=300)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--large", type=int, default=10)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        lake, gates = Path(folder) / "lake", Path(folder) / "gates"
        planted = write_lake(lake, given.tables, given.rows, given.large)
        size = sum(file.stat().st_size for file in lake.rglob("*") if file.is_file())
        print(f"{given.tables} tables, {size / 1e9:.2f} GB, {len(planted)} faults", flush=True)
        for step, output in steps(lake, gates, given.tables):
            print(f"{step.title:24} {step.seconds:7.0f} s {step.cpu:7.0f} s CPU", flush=True)
            if step.title == DRAFT:
                report(json.loads(output), planted)
            elif NIGHT in step.title:
                night([json.loads(line) for line in output.splitlines()], planted)
        shutil.rmtree(lake)


def report(found: dict[str, list[dict[str, object]]], planted: dict[str, str]) -> None:
    """Prints which faults were found, and which tables are said to have some without one."""
    rows = found["tables"]
    wrong = {str(row["location"]) for row in rows if row["wrong"] or row["problem"]}
    missed = {place: fault for place, fault in planted.items() if place not in wrong}
    print(f"    {len(planted) - len(missed)} of {len(planted)} faults found")
    for place, fault in missed.items():
        print(f"    missed: {fault} in {place}")
    for row in rows:
        if row["location"] in wrong - {*planted}:
            print(f"    without a fault: {row['location']}: {row['wrong'] or row['problem']}")
    blocking = [claim for claim in found["assertions"] if claim["blocks"]]
    print(f"    {len(blocking)} of {len(found['assertions'])} assertions may block", flush=True)


def night(reports: list[dict[str, Any]], planted: dict[str, str]) -> None:
    """Prints how the gates ended, and which tables failed something, with a fault and without."""
    outcomes = Counter(report["outcome"] for report in reports)
    print("   ", ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common()))
    with_fault = {Path(place).name.split(".")[0]: fault for place, fault in planted.items()}
    failed = {report["gate"] for report in reports if report["outcome"] != "passed"}
    seen = Counter(fault for gate, fault in with_fault.items() if gate in failed)
    of_all = Counter(with_fault.values())
    print("   ", ", ".join(f"{fault}: {seen[fault]} of {count}" for fault, count in of_all.items()))
    print(f"    {len(failed - {*with_fault})} others", flush=True)


if __name__ == "__main__":
    main()
