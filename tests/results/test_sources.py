"""The sources of gates are stored once, and found by the report that refers to them."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest
from deltalake import DeltaTable, write_deltalake

from dqx_airflow.results.query import StoredResults
from dqx_airflow.results.report_rows import digest_of, digests_of, run_row
from dqx_airflow.results.runs import find_report, list_runs
from dqx_airflow.results.schema import RUNS, RUNS_SCHEMA, SOURCES
from dqx_airflow.results.store import ResultsStore, arrow_table
from dqx_airflow.values import GateReport, SourceFile
from dqx_airflow.values.contracts import LONGEST_KEPT_SOURCE
from tests.results.samples import sample_report

SUITE = SourceFile("orders.dql", 'suite "Orders" {\n    import "common.dql"\n}\n')
LIBRARY = SourceFile("common.dql", "export const MOST = 1%\n")


def wrote(root: Path, run: int, *sources: SourceFile) -> GateReport:
    """Writes the report number `run` of a gate that went by these texts."""
    report = sample_report(run, attempt=run, sources=digests_of(sources))
    ResultsStore(str(root)).write(report, sources)
    return report


def kept(root: Path) -> list[str]:
    table = DeltaTable(f"{root}/{SOURCES}").to_pyarrow_table()
    return sorted(table.column("text").to_pylist())


def test_the_sources_of_a_run_are_found_by_its_report(tmp_path: Path) -> None:
    report = wrote(tmp_path, 1, SUITE, LIBRARY)
    assert find_report(str(tmp_path), report.run_id) == report
    assert StoredResults(str(tmp_path)).sources_of(report) == (SUITE, LIBRARY)


def test_a_source_used_by_many_runs_is_stored_once(tmp_path: Path) -> None:
    for run in range(1, 6):
        wrote(tmp_path, run, SUITE, LIBRARY)
    assert kept(tmp_path) == sorted([SUITE.text, LIBRARY.text])
    assert DeltaTable(f"{tmp_path}/{SOURCES}").version() == 1, "one commit brought both"


def test_a_run_finds_its_own_source_not_a_later_one(tmp_path: Path) -> None:
    first = wrote(tmp_path, 1, SUITE)
    changed = SourceFile(SUITE.name, SUITE.text.replace("Orders", "All orders"))
    second = wrote(tmp_path, 2, changed)
    store = StoredResults(str(tmp_path))
    assert store.sources_of(first) == (SUITE,)
    assert store.sources_of(second) == (changed,)


def test_identical_files_share_one_source(tmp_path: Path) -> None:
    copy = SourceFile("copy.dql", LIBRARY.text)
    report = wrote(tmp_path, 1, LIBRARY, copy)
    assert kept(tmp_path) == [LIBRARY.text]
    assert StoredResults(str(tmp_path)).sources_of(report) == (LIBRARY, copy)


def test_concurrent_gates_store_a_source_once(tmp_path: Path) -> None:
    ResultsStore(str(tmp_path)).write(sample_report(99))
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda run: wrote(tmp_path, run, SUITE, LIBRARY), range(1, 7)))
    assert kept(tmp_path) == sorted([SUITE.text, LIBRARY.text])
    assert len(list_runs(str(tmp_path), all_attempts=True)) == 7


def test_of_a_source_that_is_too_long_only_the_digest_is_stored(tmp_path: Path) -> None:
    long = SourceFile("long.dql", "#" * (LONGEST_KEPT_SOURCE + 1))
    report = wrote(tmp_path, 1, SUITE, long)
    assert kept(tmp_path) == [SUITE.text]
    assert StoredResults(str(tmp_path)).sources_of(report) == (SUITE,)
    assert report.sources[1].digest == digest_of(long.text)


def test_without_sources_there_is_no_table(tmp_path: Path) -> None:
    wrote(tmp_path, 1)
    assert not (tmp_path / SOURCES).exists()


def test_removed_sources_are_not_an_error(tmp_path: Path) -> None:
    report = wrote(tmp_path, 1, SUITE)
    store = StoredResults(str(tmp_path))
    assert store.sources_of(report) == (SUITE,)
    shutil.rmtree(tmp_path / SOURCES)
    assert store.sources_of(report) == ()


def test_a_store_of_an_older_version_gets_the_table_and_the_column(tmp_path: Path) -> None:
    old = sample_report(1)
    runs = arrow_table([run_row(old)], RUNS_SCHEMA)
    write_deltalake(f"{tmp_path}/{RUNS}", runs.drop_columns(["sources"]))
    report = wrote(tmp_path, 2, SUITE)
    assert StoredResults(str(tmp_path)).sources_of(report) == (SUITE,)
    assert {run.run_id for run in list_runs(str(tmp_path), all_attempts=True)} == {
        old.run_id,
        report.run_id,
    }


@pytest.mark.few(2)
@pytest.mark.parametrize("text", ["it's", '"', "\\", "a\r\nb", "\U0001f600", ""])
def test_a_source_survives_a_round_trip(tmp_path: Path, text: str) -> None:
    source = SourceFile("odd.dql", text)
    report = wrote(tmp_path, 1, source)
    assert StoredResults(str(tmp_path)).sources_of(report) == (source,)


def test_runs_and_sources_can_be_joined_in_sql(tmp_path: Path) -> None:
    wrote(tmp_path, 1, SUITE)
    texts = DeltaTable(f"{tmp_path}/{SOURCES}").to_pyarrow_table()  # noqa: F841 (read by the query)
    runs = DeltaTable(f"{tmp_path}/{RUNS}").to_pyarrow_table()  # noqa: F841 (read by the query)
    found = duckdb.sql(
        "SELECT file, text FROM (SELECT unnest(from_json(sources, "
        '\'[{"file": "VARCHAR", "digest": "VARCHAR"}]\'), recursive := true) FROM runs) '
        "JOIN texts USING (digest)"
    ).fetchall()
    assert found == [(SUITE.name, SUITE.text)]
