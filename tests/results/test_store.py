"""Reports are appended completely, once, and beside other writers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from dqx_airflow.errors import StoreError
from dqx_airflow.results import store as store_module
from dqx_airflow.results.report_rows import failing_rows, results_rows, run_row
from dqx_airflow.results.runs import find_report, list_runs, read_report
from dqx_airflow.results.schema import (
    FAILING_ROWS,
    FAILING_ROWS_SCHEMA,
    RESULTS,
    RESULTS_SCHEMA,
    RUNS,
    RUNS_SCHEMA,
)
from dqx_airflow.results.store import ResultsStore, arrow_table, probe_objects
from dqx_airflow.results.tables import ResultsRoot
from dqx_airflow.values import GateReport, Outcome
from tests.results.samples import RUN_KEY, sample_report

WRITER = """
import sys, time
from tests.results.samples import sample_report
from dqx_airflow.results.store import ResultsStore
runs = [int(run) for run in sys.argv[3:]]
while time.time() < float(sys.argv[2]):  # all at the same moment
    pass
for run in runs:
    ResultsStore(sys.argv[1]).write(sample_report(run, attempt=run))
"""


def rows(root: Path, table: str) -> int:
    return int(DeltaTable(f"{root}/{table}").to_pyarrow_table().num_rows)


def write_at_once(root: Path, runs_of_each: list[list[int]]) -> None:
    import time

    moment = str(time.time() + 0.7)
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(root), moment, *map(str, runs)],
            stderr=subprocess.PIPE,
            text=True,
        )
        for runs in runs_of_each
    ]
    for writer in writers:
        _, errors = writer.communicate(timeout=60)
        assert writer.returncode == 0, errors


def test_a_written_report_is_read_back_exactly(tmp_path: Path) -> None:
    report = sample_report()
    ResultsStore(str(tmp_path / "store")).write(report)
    assert read_report(str(tmp_path / "store"), RUN_KEY, "attempt-1") == report


def test_writing_a_report_again_changes_nothing(tmp_path: Path) -> None:
    for _ in range(3):
        ResultsStore(str(tmp_path)).write(sample_report())
    assert rows(tmp_path, RESULTS) == 4
    assert rows(tmp_path, RUNS) == 1


def test_a_report_without_assertions_is_kept(tmp_path: Path) -> None:
    report = sample_report(outcome=Outcome.BROKEN, verdicts=(), datasets=())
    ResultsStore(str(tmp_path)).write(report)
    assert find_report(str(tmp_path), report.run_id) == report


def test_a_writer_killed_between_the_tables_is_invisible_until_it_writes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, report = str(tmp_path), sample_report(2, attempt=2)
    ResultsStore(root).write(sample_report(1))
    write_one_table = store_module.append_once

    def killed(location: ResultsRoot, name: str, *rest: object) -> None:
        if name == RUNS:
            assert rows(tmp_path, FAILING_ROWS) == 10
            raise KeyboardInterrupt
        write_one_table(location, name, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(store_module, "append_once", killed)
        with pytest.raises(KeyboardInterrupt):
            ResultsStore(root).write(report)
    assert rows(tmp_path, RESULTS) == 8
    assert read_report(root, RUN_KEY, "attempt-2") is None
    assert find_report(root, report.run_id) is None
    assert [run.attempt.number for run in list_runs(root, all_attempts=True)] == [1]

    ResultsStore(root).write(report)
    assert rows(tmp_path, RESULTS) == 8
    assert read_report(root, RUN_KEY, "attempt-2") == report


@pytest.mark.slow
def test_concurrent_creators_of_a_store_lose_nothing(tmp_path: Path) -> None:
    root = tmp_path / "store"
    write_at_once(root, [[1, 5, 9], [2, 6, 10], [3, 7, 11], [4, 8, 12]])
    assert rows(root, RUNS) == 12
    assert rows(root, RESULTS) == 48
    for run in list_runs(str(root), all_attempts=True):
        assert find_report(str(root), run.run_id) == sample_report(
            run.attempt.number, attempt=run.attempt.number
        )


@pytest.mark.more
def test_concurrent_writers_of_one_run_write_it_once(tmp_path: Path) -> None:
    write_at_once(tmp_path, [[1, 2, 3]] * 4)
    assert rows(tmp_path, RUNS) == 3
    assert rows(tmp_path, RESULTS) == 12


def tables_of(report: GateReport) -> dict[str, pa.Table]:
    return {
        RESULTS: arrow_table(results_rows(report), RESULTS_SCHEMA),
        FAILING_ROWS: arrow_table(failing_rows(report), FAILING_ROWS_SCHEMA),
        RUNS: arrow_table([run_row(report)], RUNS_SCHEMA),
    }


def test_a_table_of_an_older_version_gets_the_new_columns_and_still_reads(tmp_path: Path) -> None:
    root, older = str(tmp_path), sample_report(1)
    tables = tables_of(older)
    results, runs = tables[RESULTS], tables[RUNS]
    write_deltalake(f"{root}/{RESULTS}", results.drop_columns(["source_line", "profiles"]))
    write_deltalake(
        f"{root}/{RUNS}", runs.drop_columns(["worst", "worst_severity", "failing_rows"])
    )

    before = find_report(root, older.run_id)
    assert before is not None
    assert before.verdicts[1].source_line is None
    assert list_runs(root)[0].worst is None

    newer = sample_report(2, attempt=2)
    ResultsStore(root).write(newer)
    assert find_report(root, newer.run_id) == newer
    assert find_report(root, older.run_id) == before
    assert [run.worst for run in list_runs(root, all_attempts=True)].count(None) == 1


def test_a_table_of_a_newer_version_is_read_and_written(tmp_path: Path) -> None:
    root = str(tmp_path)
    for name, table in tables_of(sample_report(1)).items():
        newer = table.append_column("from_the_future", pa.array(["x"] * len(table)))
        write_deltalake(f"{root}/{name}", newer)
    ResultsStore(root).write(sample_report(2, attempt=2))
    assert find_report(root, sample_report(1).run_id) == sample_report(1)
    assert find_report(root, sample_report(2).run_id) == sample_report(2, attempt=2)


def test_duckdb_reads_the_tables(tmp_path: Path) -> None:
    ResultsStore(str(tmp_path)).write(sample_report())
    connection = duckdb.connect()
    for name in (RESULTS, FAILING_ROWS, RUNS):
        connection.register(name, DeltaTable(f"{tmp_path}/{name}").to_pyarrow_dataset())
    found = connection.execute(
        "SELECT s.name, s.value, s.value_text, s.datasets, r.failed FROM results s "
        "JOIN runs r USING (run_id) WHERE s.status = 'failed'"
    ).fetchall()
    assert found == [("no_negative_amounts", -1.5, "-1.5", ["orders", "customers"], 1)]


@pytest.mark.parametrize("name", ["with blank", "100% #1?", "ünïcode", "o'clock"])
def test_a_root_may_have_any_name(tmp_path: Path, name: str) -> None:
    root = str(tmp_path / name)
    ResultsStore(root).write(sample_report())
    assert os.listdir(tmp_path) == [name]
    assert read_report(root, RUN_KEY, "attempt-1") == sample_report()


def test_a_root_that_deltalake_would_decode_is_refused_before_it_is_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="percent"):
        ResultsStore(str(tmp_path / "a%20b")).write(sample_report())
    assert list(tmp_path.iterdir()) == []


def test_relative_home_and_file_roots_are_resolved(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(here))
    ResultsStore("a/../store").write(sample_report())
    for root in ("store", "~/store", f"file://{here}/store", str(here / "store")):
        assert ResultsStore(root).location.root == str(here / "store")
        assert read_report(root, RUN_KEY, "attempt-1") == sample_report()
    assert ResultsStore("s3://bucket/dqx").location.root == "s3://bucket/dqx"


def test_a_half_made_table_is_completed(tmp_path: Path) -> None:
    (tmp_path / RESULTS / "_delta_log").mkdir(parents=True)
    (tmp_path / RUNS).mkdir()
    ResultsStore(str(tmp_path)).write(sample_report())
    assert read_report(str(tmp_path), RUN_KEY, "attempt-1") == sample_report()


class TestFailuresAreReported:
    """Each as a StoreError that names the root, says what happened and what to do."""

    @staticmethod
    def problems_of(root: Path | str) -> str:
        problems = []
        for call in (
            lambda: ResultsStore(str(root)).write(sample_report()),
            lambda: ResultsStore(str(root)).check_writable(),
        ):
            with pytest.raises(StoreError) as caught:
                call()
            assert str(root) in caught.value.problem
            assert "\n" not in caught.value.problem
            assert caught.value.hint
            problems.append(caught.value.problem)
        return " | ".join(problems)

    def test_a_root_that_is_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        assert "file is a file" in self.problems_of(tmp_path / "file")

    def test_a_root_below_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        assert f"{tmp_path}/file is a file" in self.problems_of(tmp_path / "file" / "store")

    def test_a_folder_without_a_table(self, tmp_path: Path) -> None:
        (tmp_path / RUNS).mkdir()
        (tmp_path / RUNS / "notes.txt").write_text("")
        assert "not a Delta table" in self.problems_of(tmp_path)

    def test_a_foreign_table(self, tmp_path: Path) -> None:
        write_deltalake(f"{tmp_path}/{RUNS}", pa.table({"marathon": [42.195]}))
        assert "not one of a results store" in self.problems_of(tmp_path)
        assert DeltaTable(f"{tmp_path}/{RUNS}").version() == 0

    @pytest.mark.parametrize("log", ["", "{garbage\n", "\x00\xff"])
    def test_a_corrupt_log(self, tmp_path: Path, log: str) -> None:
        ResultsStore(str(tmp_path)).write(sample_report())
        for path in (tmp_path / RUNS / "_delta_log").glob("*.json"):
            path.write_text(log)
        self.problems_of(tmp_path)

    def test_a_column_of_another_type(self, tmp_path: Path) -> None:
        write_deltalake(f"{tmp_path}/{RESULTS}", pa.table({"run_id": ["a"], "gate": [1]}))
        with pytest.raises(StoreError, match="cannot write"):
            ResultsStore(str(tmp_path)).write(sample_report())

    def test_a_lone_surrogate(self, tmp_path: Path) -> None:
        with pytest.raises(StoreError, match="cannot write"):
            ResultsStore(str(tmp_path)).write(sample_report(suite="\udc80"))

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_a_root_without_permission(self, tmp_path: Path) -> None:
        (tmp_path / "store").mkdir(mode=0o555)
        assert "ermission" in self.problems_of(tmp_path / "store")

    @pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a read-only file system")
    def test_a_root_that_cannot_be_made(self) -> None:
        self.problems_of("/proc/self/dqx")

    def test_an_unreachable_object_store_hides_its_secret(self) -> None:
        options = {
            "aws_endpoint_url": "http://127.0.0.1:9",
            "aws_allow_http": "true",
            "aws_access_key_id": "me",
            "aws_secret_access_key": "hush",
            "aws_region": "us-east-1",
            "max_retries": "0",
        }
        store = ResultsStore("s3://bucket/dqx", options)
        for call in (store.check_writable, lambda: store.write(sample_report())):
            with pytest.raises(StoreError, match="s3://bucket/dqx") as caught:
                call()
            assert "credentials" in caught.value.hint
            assert "hush" not in str(caught.value) + repr(store)


class TestCheckWritable:
    def test_leaves_nothing_without_a_store(self, tmp_path: Path) -> None:
        ResultsStore(str(tmp_path / "a" / "b")).check_writable()
        assert list(tmp_path.iterdir()) == []

    def test_leaves_nothing_in_a_store(self, tmp_path: Path) -> None:
        ResultsStore(str(tmp_path)).write(sample_report())
        before = sorted(tmp_path.rglob("*"))
        ResultsStore(str(tmp_path)).check_writable()
        assert sorted(tmp_path.rglob("*")) == before

    def test_writes_and_deletes_an_object_in_an_object_store(self, tmp_path: Path) -> None:
        probe_objects(ResultsRoot(tmp_path.as_uri()))
        assert list(tmp_path.iterdir()) == []
