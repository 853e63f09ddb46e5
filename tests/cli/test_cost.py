"""`dql explain --cost` and `dql diff --cost`: what assertions would read, without Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyarrow import csv

from tests.command_line import dql_prints as dql
from tests.processes import output_of

FIRST = date(2024, 12, 1)
ROWS = 2_000
SUITE = """\
suite "Orders" {
    check "Orders" on orders {
        assert num_rows() >= 10 name "rows"
        assert null_count(email) == 0 name "nulls"
        assert sum(amount) > 3 name "sum"
        assert minimum(amount) >= 0 name "least"
        assert average(id) within 3 stddev of 3 days name "usual"
    }
}
"""


def rows(on: date, *, has_date: bool = True) -> pa.Table:
    columns: dict[str, list[Any]] = {
        "id": list(range(ROWS)),
        "email": [f"user{number * 7919}@example.org" for number in range(ROWS)],
        "amount": [number / 7 for number in range(ROWS)],
    }
    return pa.table({**columns, "ds": [on] * ROWS} if has_date else columns)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake = tmp_path_factory.mktemp("lake")
    for number in range(3):
        on = FIRST + timedelta(days=number)
        write_deltalake(lake / "parts", rows(on), mode="append", partition_by=["ds"])
        write_deltalake(lake / "whole", rows(on), mode="append")
        folder = lake / "files" / f"ds={on}"
        folder.mkdir(parents=True)
        pq.write_table(rows(on, has_date=False), folder / "a.parquet")
    csv.write_csv(rows(FIRST), lake / "orders.csv")
    return lake


@pytest.fixture(autouse=True)
def here(lake: Path, here: Path) -> Path:
    Path("dqx.toml").write_text("")
    Path("orders.dql").write_text(SUITE)
    return here


def costs(location: str, *arguments: str) -> dict[str, dict[str, Any]]:
    dataset = ("--dataset", f"orders={location}", "--date", "2024-12-03", "--format", "json")
    return {
        cost["assertion"]: cost
        for cost in json.loads(dql("explain", "orders.dql", "--cost", *dataset, *arguments))[
            "costs"
        ]
    }


def column_bytes(files: list[Path], *columns: str) -> int:
    """The compressed bytes of some columns, or of all."""
    chunks = [
        chunk
        for file in files
        for group in pq.read_metadata(file).to_dict()["row_groups"]
        for chunk in group["columns"]
        if not columns or chunk["path_in_schema"] in columns
    ]
    return sum(chunk["total_compressed_size"] for chunk in chunks)


def share(files: list[Path], *columns: str) -> int:
    """Their part of the bytes of the files, headers and footers included."""
    size = sum(file.stat().st_size for file in files)
    return round(size * column_bytes(files, *columns) / column_bytes(files))


def test_the_bytes_are_those_of_the_columns_in_the_files_of_the_date(lake: Path) -> None:
    found = costs(f"{lake}/files?format=parquet&date_column=ds")
    files = [lake / "files/ds=2024-12-03/a.parquet"]
    assert {name: cost["bytes_read"] for name, cost in found.items()} == {
        "orders.not_empty": 0,
        "rows": 0,
        "nulls": share(files, "email"),
        "sum": share(files, "amount"),
        "least": share(files, "amount"),
        "usual": share(files, "id"),
    }
    assert found["nulls"]["columns"] == ["email"]
    # Two assertions share the column `amount`.
    assert (found["sum"]["bytes_more"], found["nulls"]["bytes_more"] > 0) == (0, True)


def test_what_the_log_or_states_answer_is_not_read(lake: Path) -> None:
    found = costs(f"{lake}/parts?date_column=ds")
    answered = {name: (cost["bytes_read"], cost["by_log"]) for name, cost in found.items()}
    assert answered["rows"] == answered["nulls"] == (0, 1)
    (file,) = (lake / "parts/ds=2024-12-03").glob("*.parquet")
    assert answered["sum"] == (share([file], "amount"), 0)
    # The averages of the three days before.
    assert (found["usual"]["by_states"], found["usual"]["passes"]) == (3, 1)
    untrusted = costs(f"{lake}/parts?date_column=ds&trust_log=false")
    assert {cost["by_log"] for cost in untrusted.values()} == {0}


def test_a_table_without_partitions_is_read_by_the_statistics_of_its_files(lake: Path) -> None:
    found = costs(f"{lake}/whole?date_column=ds")
    newest = [
        file
        for file in (lake / "whole").glob("*.parquet")
        if pq.read_table(file, columns=["ds"])["ds"][0].as_py() == date(2024, 12, 3)
    ]
    assert found["sum"]["bytes_read"] == share(newest, "amount", "ds")
    assert found["nulls"]["by_log"] == 0  # a file of the date may have rows of others


@pytest.mark.parametrize(
    ("settings", "suite"),
    [
        ("whole?date_column=ds&filter=id > 3", SUITE),
        ("whole?date_column=ds", SUITE.replace("sum(amount) > 3", "sum(amount) > 3 where id > 0")),
    ],
)
def test_filters_read_more_columns(lake: Path, settings: str, suite: str) -> None:
    plain = costs(f"{lake}/whole?date_column=ds")["sum"]["bytes_read"]
    Path("orders.dql").write_text(suite)
    assert costs(f"{lake}/{settings}")["sum"]["bytes_read"] > plain


def test_text_is_read_as_a_whole_and_tables_have_no_known_size(lake: Path) -> None:
    found = costs(f"{lake}/orders.csv?format=csv&date_column=ds&option.header=true")
    assert found["sum"]["bytes_read"] == (lake / "orders.csv").stat().st_size
    table = "table:main.orders?date_column=ds"
    assert {cost["bytes_read"] for cost in costs(table).values()} == {0}
    assert "of no dataset of known size" in dql(
        "explain", "orders.dql", "--cost", "--dataset", f"orders={table}"
    )
    missing = ["explain", "orders.dql", "--cost", "--dataset", "orders=/nowhere?date_column=ds"]
    assert "no Delta table at /nowhere" in dql(*missing, code=4)


@pytest.mark.more
def test_no_java_is_needed(lake: Path) -> None:
    dataset = f"orders={lake}/parts?date_column=ds"
    printed = output_of(
        [
            Path(sys.executable).with_name("dql"),
            "explain",
            "orders.dql",
            "--cost",
            "--dataset",
            dataset,
            "--date",
            "2024-12-03",
        ],
        env={**os.environ, "JAVA_HOME": "/nowhere"},
    )
    head, _, first, second, *_ = printed.splitlines()
    assert head.startswith("Orders on 2024-12-03 reads ")
    assert head.endswith("of orders, estimated from file sizes, Delta logs and Parquet footers")
    assert first == "orders.not_empty: 0 bytes, 0 bytes for it alone"
    assert second == "    passes: 0, columns: none, values answered by the log: 1, by states: 0"


def test_a_comment_says_how_much_more_a_gate_reads(lake: Path) -> None:
    for command in ("init -q", "add .", "-c user.name=a -c user.email=a@x.org commit -q -m a"):
        subprocess.run(["git", *command.split()], check=True)
    cost = ("--cost", "--dataset", f"orders={lake}/parts?date_column=ds", "--to", "2024-12-03")
    Path("orders.dql").write_text(SUITE.replace("null_count(email) == 0", "unique(email)"))
    more = dql("diff", *cost)
    assert " more of orders for 2024-12-03: " in more
    assert more.count("alone makes it read") == 1, "the others read what they read before"
    assert "nulls alone makes it read 19.5 kB more" in more
    same_name = 'check "Other" on orders { assert minimum(email) > "a" name "nulls" }'
    Path("orders.dql").write_text(SUITE.replace("    check", f"    {same_name}\n    check", 1))
    assert dql("diff", *cost).count("nulls alone makes it read") == 1, "the other one is as before"
    Path("orders.dql").write_text(SUITE.replace("average(id)", "num_rows()"))
    output = dql("diff", *cost, "--format", "markdown")
    assert " less of orders for 2024-12-03: " in output
    without = dql("diff", "--cost", "--to", "2024-12-03")
    assert "what the gate reads is not known: add --dataset NAME=PATH" in without
    wrong = dql("diff", "--cost", "--dataset", "orders=", code=2)
    assert "missing the dataset name" in wrong
    assert output.rstrip().endswith("estimated from file sizes, Delta logs and Parquet footers")


@pytest.mark.parametrize("command", ["explain", "diff"])
def test_a_file_without_a_footer_is_named(lake: Path, command: str) -> None:
    for words in ("init -q", "add .", "-c user.name=a -c user.email=a@x.org commit -q -m a"):
        subprocess.run(["git", *words.split()], check=True)
    Path("orders.dql").write_text(SUITE.replace("sum(amount) > 3", "sum(amount) > 4"))
    Path("broken.parquet").write_bytes(b"PAR1, and no more")
    date_given = ["orders.dql", "--date", "2024-12-03"] if command == "explain" else []
    call = [command, *date_given, "--cost"]
    printed = dql(*call, "--dataset", "orders=broken.parquet?date_column=ds", code=4)
    assert "broken.parquet cannot be read" in printed
