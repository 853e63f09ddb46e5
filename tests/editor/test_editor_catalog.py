"""The columns of the datasets in a `dqx.toml`."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pyarrow
import pytest
from deltalake import write_deltalake
from pyarrow import parquet

from dqx_airflow.editor.catalog import KnownColumn, find_catalog

ROWS = pyarrow.table({"id": [1], "day": [date(2024, 11, 29)], "tags": [["a"]]})


@pytest.fixture
def suite(tmp_path: Path) -> str:
    (tmp_path / "suites").mkdir()
    return str(tmp_path / "suites" / "orders.dql")


def settle(suite: str, text: str) -> None:
    (Path(suite).parents[1] / "dqx.toml").write_text(text, encoding="utf-8")


def test_a_delta_table_is_read_without_its_data(suite: str, tmp_path: Path) -> None:
    write_deltalake(tmp_path / "lake", ROWS)
    settle(suite, '[datasets.orders]\npath = "lake"\n')
    for file in (tmp_path / "lake").glob("*.parquet"):
        file.unlink()
    columns = find_catalog(suite).columns("orders")
    assert columns == (
        KnownColumn("id", "long"),
        KnownColumn("day", "date"),
        KnownColumn("tags", "array"),
    )


def test_parquet_files_are_read_with_their_partitions(suite: str, tmp_path: Path) -> None:
    home = tmp_path / "lake" / "ds=2024-11-29"
    home.mkdir(parents=True)
    parquet.write_table(ROWS.select(["id"]), home / "part-0.parquet")
    settle(suite, '[datasets.orders]\npath = "lake"\nformat = "parquet"\n')
    assert find_catalog(suite).columns("orders") == (KnownColumn("id", "int64"), KnownColumn("ds"))


def test_a_path_alone_is_a_delta_table(suite: str, tmp_path: Path) -> None:
    write_deltalake(tmp_path / "lake", ROWS)
    settle(suite, '[datasets]\norders = "lake"\n')
    assert KnownColumn("id", "long") in find_catalog(suite).columns("orders")


def test_columns_can_be_declared(suite: str) -> None:
    settle(suite, '[datasets.orders]\npath = "s3://lake/orders"\ncolumns = ["id", "price"]\n')
    catalog = find_catalog(suite)
    assert catalog.columns("orders") == (KnownColumn("id"), KnownColumn("price"))
    assert catalog.path("orders") == "s3://lake/orders"


@pytest.mark.parametrize("setting", ['path = "s3://lake/o"', 'path = "o"\nformat = "csv"', ""])
def test_slow_sources_and_those_of_spark_are_not_read(suite: str, setting: str) -> None:
    settle(suite, f"[datasets.orders]\n{setting}\n")
    catalog = find_catalog(suite)
    assert catalog.columns("orders") == ()
    assert catalog.problems == []


def test_an_unreadable_dataset_is_one_problem_however_often_it_is_read(suite: str) -> None:
    settle(suite, '[datasets.orders]\npath = "nowhere"\n')
    catalog = find_catalog(suite)
    assert catalog.columns("orders") == catalog.columns("orders") == ()
    (problem,) = catalog.problems
    assert "dqx.toml: the columns of dataset 'orders' cannot be read" in problem


@pytest.mark.parametrize("text", ["[datasets", "datasets = 3", "[datasets]\norders = 3", "\xff"])
def test_an_invalid_settings_file_is_a_problem(suite: str, text: str) -> None:
    (Path(suite).parent / "dqx.toml").write_bytes(text.encode("latin-1"))
    catalog = find_catalog(suite)
    assert catalog.datasets == ()
    assert len(catalog.problems) == 1


def test_the_nearest_settings_file_is_used(suite: str) -> None:
    settle(suite, "[datasets.far]\n")
    assert find_catalog(suite).datasets == ("far",)
    (Path(suite).parent / "dqx.toml").write_text("[datasets.near]\n")
    assert find_catalog(suite).datasets == ("near",)


def test_the_example_of_the_page_is_read(suite: str) -> None:
    page = Path(__file__).parents[2] / "dqx_airflow" / "docs" / "editor.md"
    examples = re.findall(r"^```toml\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
    for example in examples:
        settle(suite, example)
        assert not find_catalog(suite).problems, example
    (with_columns,) = (example for example in examples if "columns = [" in example)
    settle(suite, with_columns)
    catalog = find_catalog(suite)
    assert catalog.path("orders") == "lake/orders"
    assert catalog.columns("returns") == (KnownColumn("order_id"), KnownColumn("reason"))


def test_an_unsaved_file_has_no_datasets() -> None:
    assert find_catalog("untitled:Untitled-1").datasets == ()
