"""Which tables a folder holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from dqx_airflow.datasets.locations import place_of
from dqx_airflow.tuning.lake.found_tables import (
    FoundTable,
    chosen_tables,
    is_folder_of_tables,
    tables_in,
    with_names,
)

LAYOUTS = {
    "files of a table": (["a/part-0.parquet", "a/part-1.parquet"], {"a": "parquet"}),
    "files by year": (["a/orders_2024.csv", "a/orders_2025.csv"], {"a": "csv"}),
    "files with ids": (["a/0f3c9a7e1b22.json", "a/99c1d2e3f4a5.json"], {"a": "json"}),
    "a file named like its folder": (["orders/orders.csv"], {"orders": "csv"}),
    "different files": (["customers.csv", "orders.csv"], {"customers": "csv", "orders": "csv"}),
    "different files of one folder": (["a/x.csv", "a/y.parquet"], {"x": "csv", "y": "parquet"}),
    "partitions": (["a/ds=1/x.parquet", "a/ds=2/y.parquet"], {"a": "parquet"}),
    "levels": (["a/y=1/m=1/x.parquet", "a/y=1/m=2/x.parquet"], {"a": "parquet"}),
    "a Delta table": (["a/_delta_log/0.json", "a/x.parquet"], {"a": "delta"}),
    "hidden files": (["a/part-0.parquet", "a/_tmp/x.parquet", ".b/x.csv"], {"a": "parquet"}),
    "nothing but texts": (["a/README.md"], {}),
    "one name in two folders": (
        ["x/orders/part-0.csv", "y/orders/part-0.csv", "z/b.csv"],
        {"x_orders": "csv", "y_orders": "csv", "b": "csv"},
    ),
    "names that are not names": (
        ["2024 Sales (EU).csv", "é.csv"],
        {"t_2024_sales_eu": "csv", "e": "csv"},
    ),
}


def found(root: Path, files: list[str], **how: list[str]) -> list[FoundTable]:
    for file in files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text("x")
    known = {name: how.pop(name) for name in ("known", "taken") if name in how}
    named = with_names(tables_in(str(root)), **known)  # type: ignore[arg-type]
    return chosen_tables(named, **how)  # type: ignore[arg-type]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tables_are_found(layout: str, tmp_path: Path) -> None:
    files, tables = LAYOUTS[layout]
    assert {table.name: table.format for table in found(tmp_path, files)} == tables


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (["a/2024/01/x.parquet"], "do not name their column"),
        (["a/ds=1/x.parquet", "a/ds=2/x.csv"], "several formats: csv+parquet"),
        (["a/metadata/v1.metadata.json", "a/data/x.parquet"], "an Iceberg table"),
    ],
)
def test_a_folder_that_no_gate_could_read_is_a_table_with_a_reason(
    files: list[str], problem: str, tmp_path: Path
) -> None:
    (table,) = found(tmp_path, files)
    assert table.place == "a"
    assert problem in table.problem


def test_a_folder_that_is_a_table_is_no_folder_of_tables(tmp_path: Path) -> None:
    found(tmp_path, ["lake/a.csv", "lake/b.csv", "one/part-0.csv", "one/part-1.csv", "empty/x.md"])
    folders = ("lake", "one", "empty", "missing")
    assert [is_folder_of_tables(str(tmp_path / name)) for name in folders] == [
        True,
        False,
        False,
        False,
    ]


def test_a_table_keeps_the_name_that_it_had(tmp_path: Path) -> None:
    found(tmp_path, ["x/orders.csv"])
    known = {place_of(str(tmp_path / "x" / "orders.csv")): "orders"}
    tables = found(tmp_path, ["y/orders.csv"], known=known)  # type: ignore[arg-type]
    assert [table.name for table in tables] == ["orders", "y_orders"]


def test_the_stamp_of_a_table_changes_with_its_files(tmp_path: Path) -> None:
    (first,) = found(tmp_path, ["a/part-0.csv"])
    (same,) = with_names(tables_in(str(tmp_path)))
    (second,) = found(tmp_path, ["a/part-1.csv"])
    assert first.stamp == same.stamp != second.stamp
