"""A table of a catalog is read as it is now, in a session that has read it before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.values import DatasetRef
from tests.engine.lake import Gate, verdict

pytestmark = pytest.mark.spark

SUITE = 'assert sum(id) == 1 name "sum"'


@dataclass(frozen=True)
class Tables:
    """Tables over one folder each, and what is above them."""

    spark: Any
    folder: Path

    def make(self) -> None:
        for name in ("plain", "folders", "lines"):
            self.write(name, 1)
        sql = self.spark.sql
        at = f"LOCATION '{self.folder}"
        sql(f"CREATE TABLE anew_plain USING parquet {at}/plain'")
        columns = "id BIGINT, k INT"
        sql(f"CREATE TABLE anew_folders ({columns}) USING parquet PARTITIONED BY (k) {at}/folders'")
        sql("MSCK REPAIR TABLE anew_folders")
        sql(f"CREATE TABLE anew_lines (id BIGINT) USING csv OPTIONS (mode 'FAILFAST') {at}/lines'")
        sql("CREATE VIEW anew_view AS SELECT id FROM anew_plain")
        sql("CREATE VIEW anew_views AS SELECT id FROM anew_view WHERE id > 0")
        self.spark.read.parquet(f"{self.folder}/plain").createOrReplaceTempView("anew_of_session")

    def write(self, name: str, id: int) -> None:
        """Adds a file to the folder of a table, as another program does."""
        import pyarrow as pa
        from pyarrow import parquet

        folder = self.folder / name / ("k=1" if name == "folders" else "")
        folder.mkdir(parents=True, exist_ok=True)
        if name == "lines":
            (folder / f"{id}.csv").write_text(f"{id}\n")
        else:
            rows = pa.table({"id": pa.array([id], pa.int64())})
            parquet.write_table(rows, folder / f"{id}.parquet")

    def drop(self) -> None:
        for name in ("anew_views", "anew_view"):
            self.spark.sql(f"DROP VIEW IF EXISTS {name}")
        for name in ("plain", "folders", "lines"):
            self.spark.sql(f"DROP TABLE IF EXISTS anew_{name}")
        self.spark.catalog.dropTempView("anew_of_session")


@pytest.fixture
def tables(spark: Any, tmp_path: Path) -> Iterator[Tables]:
    made = Tables(spark, tmp_path)
    made.make()
    yield made
    made.drop()


@pytest.mark.parametrize(
    ("read", "folder"),
    [
        ({"table": "anew_plain"}, "plain"),
        ({"table": "anew_folders"}, "folders"),
        ({"table": "anew_lines"}, "lines"),
        ({"table": "anew_view"}, "plain"),
        ({"table": "anew_views"}, "plain"),
        ({"table": "anew_of_session"}, "plain"),
        ({"query": "SELECT id FROM anew_views"}, "plain"),
        ({"query": "WITH o AS (SELECT * FROM anew_folders) SELECT id FROM o"}, "folders"),
    ],
    ids=str,
)
def test_a_file_that_another_program_has_added_is_read(
    gate: Gate, tables: Tables, read: dict[str, str], folder: str
) -> None:
    orders = DatasetRef("orders", **read)
    assert gate(SUITE, orders).outcome.value == "passed"
    tables.write(folder, 1000)
    report = gate(SUITE, orders)
    assert verdict(report, "sum").value == 1001
    assert report.outcome.value == "blocked"


def test_rows_that_an_application_has_cached_are_computed_again(gate: Gate, tables: Tables) -> None:
    tables.spark.sql("CACHE TABLE anew_plain")
    tables.write("plain", 1000)
    for table in ("anew_plain", "anew_views"):
        assert verdict(gate(SUITE, DatasetRef("orders", table=table)), "sum").value == 1001
