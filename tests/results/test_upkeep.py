"""The number of files stays small, and upkeep loses no row, with any number of writers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError

from dqx_airflow.engine.scan.states import State, StateStore
from dqx_airflow.errors import RequestError, StoreError
from dqx_airflow.results import compaction, upkeep
from dqx_airflow.results.compaction import TableFiles
from dqx_airflow.results.report_rows import digests_of, failing_rows, results_rows, run_row
from dqx_airflow.results.runs import find_report, list_runs, read_report
from dqx_airflow.results.schema import (
    FAILING_ROWS,
    RECEIPTS,
    RESULTS,
    RUNS,
    SOURCES,
    STATES,
    TABLES,
    Row,
)
from dqx_airflow.results.store import OF_GATES, ResultsStore, arrow_table
from dqx_airflow.results.tables import locate
from dqx_airflow.values import GateReport, Outcome, SourceFile
from tests.results.samples import RUN_KEY, START, sample_report
from tests.results.test_store import WRITER

NOW = datetime(2024, 3, 2, tzinfo=timezone.utc)


def files(root: Path | str, name: str) -> int:
    return len(DeltaTable(f"{root}/{name}").file_uris())


def rows(root: Path | str, name: str) -> list[Row]:
    found: list[Row] = DeltaTable(f"{root}/{name}").to_pyarrow_table().to_pylist()
    return found


def report(run: int, *, days_ago: int = 0, **changes: Any) -> GateReport:
    """A report of a run of its own, which finished so many days before the others."""
    key = replace(
        RUN_KEY, date=RUN_KEY.date - timedelta(days=days_ago), scheduler_run=f"scheduled__{run}"
    )
    made = sample_report(run, attempt=run, minutes=run - 1440 * days_ago, run_key=key)
    return replace(made, **changes)


def small(run: int, **changes: Any) -> GateReport:
    """A report without assertions: one row, in one table."""
    return report(run, verdicts=(), datasets=(), outcome=Outcome.BROKEN, **changes)


def write_as_before(root: Path | str, gate_report: GateReport) -> None:
    """Appends a report as the versions before the partitions did."""
    tables = {
        RESULTS: results_rows(gate_report),
        FAILING_ROWS: failing_rows(gate_report),
        RUNS: [run_row(gate_report)],
    }
    for name, of_table in tables.items():
        write_deltalake(
            f"{root}/{name}",
            arrow_table(of_table, TABLES[name].schema).drop_columns(["month"]),
            mode="append",
            schema_mode="merge",
            configuration={"delta.appendOnly": "true"},
            commit_properties=CommitProperties(
                app_transactions=[Transaction(f"dqx:{gate_report.run_id}", 1)]
            ),
        )


def stored(root: Path | str, reports: list[GateReport]) -> bool:
    """True where exactly these reports are there, each of them once and whole."""
    listed = [run.run_id for run in list_runs(str(root), limit=10_000, all_attempts=True)]
    assert sorted(listed) == sorted(gate_report.run_id for gate_report in reports)
    for gate_report in reports:
        assert find_report(str(root), gate_report.run_id) == gate_report
        assert read_report(str(root), gate_report.run_key, gate_report.attempt.id) == gate_report
    for name, many in (
        (RESULTS, sum(len(gate_report.verdicts) for gate_report in reports)),
        (
            FAILING_ROWS,
            sum(len(v.failing_rows) for gate_report in reports for v in gate_report.verdicts),
        ),
    ):
        assert not many or len(rows(root, name)) == many
    return True


class TestGatesCompact:
    @pytest.mark.nightly
    def test_files_and_logs_stay_few_after_many_appends(self, tmp_path: Path) -> None:
        store = ResultsStore(str(tmp_path))
        reports = [small(number, days_ago=35 * (number % 7 == 0)) for number in range(80)]
        most = 0
        for number, gate_report in enumerate(reports):
            store.write(gate_report)
            most = max(most, 0 if number % 10 else files(tmp_path, RUNS))
        assert 32 < most < 80
        listed = list_runs(str(tmp_path), limit=1000)
        assert {run.run_id for run in listed} == {gate_report.run_id for gate_report in reports}
        table = DeltaTable(f"{tmp_path}/{RUNS}")
        assert table.metadata().partition_columns == ["month"]
        assert {row["month"] for row in rows(tmp_path, RUNS)} == {"2024-03", "2024-01"}
        log = os.listdir(tmp_path / RUNS / "_delta_log")
        assert sum(".checkpoint." in name for name in log) == table.version() // 50

    @pytest.mark.slow
    def test_every_table_is_compacted_and_states_too(self, tmp_path: Path) -> None:
        store, states = ResultsStore(str(tmp_path)), StateStore(locate(str(tmp_path)))
        reports = [report(number) for number in range(35)]
        for gate_report in reports:
            text = SourceFile(f"{gate_report.run_id}.dql", f"-- {gate_report.run_id}")
            store.write(replace(gate_report, sources=digests_of([text])), [text])
            states.keep(
                "orders",
                gate_report.run_id,
                gate_report.finished_at,
                [state(gate_report.attempt.number)],
            )
        for name in set(OF_GATES) - {RECEIPTS}:  # these are of promotions
            assert files(tmp_path, name) <= 12, name
        assert states.recall("orders", [RUN_KEY.date]) == (state(34),)

    @pytest.mark.slow
    def test_a_gate_that_cannot_compact_writes_its_report(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fails(*_: object) -> None:
            raise CommitFailedError("another was quicker")

        monkeypatch.setattr(TableFiles, "merge", fails)
        reports = [small(number) for number in range(34)]
        for gate_report in reports:
            ResultsStore(str(tmp_path)).write(gate_report)
        assert files(tmp_path, RUNS) == 34
        assert stored(tmp_path, reports)

    def test_the_merging_of_a_gate_is_bounded(self) -> None:
        many = [
            compaction.LiveFile(f"{n}", 100_000, 400, "2024-03", START, START) for n in range(500)
        ]
        portion = compaction.next_portion(many, compaction.OF_A_GATE, by_month=True)
        assert len(portion) == 50
        assert compaction.next_portion(many[:31], compaction.OF_A_GATE, by_month=True) == []
        big = [replace(gate_report, rows=10_000) for gate_report in many]
        assert compaction.next_portion(big, compaction.OF_A_GATE, by_month=True) == []


def state(value: int) -> State:
    return State(RUN_KEY.date, {"count(1)": value}, {"count(1)": f"files {value}"})


class TestOptimize:
    @pytest.mark.parametrize("first_new", [pytest.param(False, marks=pytest.mark.slow), True])
    @pytest.mark.slow
    def test_a_store_of_an_older_version_is_read_written_and_then_migrated(
        self, tmp_path: Path, first_new: bool
    ) -> None:
        root = str(tmp_path)
        old = [report(number, days_ago=20 * number) for number in range(6)]
        for gate_report in old:
            write_as_before(root, gate_report)
        assert stored(root, old)
        new = [report(10 + number) for number in range(2 * first_new)]
        for gate_report in new:
            ResultsStore(root).write(gate_report)
        assert stored(root, old + new)

        rehearsed = {effect.table: effect for effect in upkeep.optimize(root, dry_run=True)}
        assert stored(root, old + new)
        done = {effect.table: effect for effect in upkeep.optimize(root)}
        assert rehearsed[RUNS].files_before == done[RUNS].files_before
        assert done[RUNS].files_after <= rehearsed[RUNS].files_after
        assert done[RUNS].files_after == len({row["month"] for row in rows(root, RUNS)}) == 5
        assert stored(root, old + new)
        for name in (RUNS, RESULTS, FAILING_ROWS):
            table = DeltaTable(f"{root}/{name}")
            assert table.metadata().partition_columns == ["month"]
            assert table.metadata().configuration["delta.checkpointInterval"] == "50"

        versions = [DeltaTable(f"{root}/{name}").version() for name in (RUNS, RESULTS)]
        upkeep.optimize(root)
        assert [DeltaTable(f"{root}/{name}").version() for name in (RUNS, RESULTS)] == versions
        ResultsStore(root).write(old[0])  # known by its transaction identifier
        assert stored(root, old + new)

    def test_rows_of_an_older_version_get_their_month(self, tmp_path: Path) -> None:
        root = str(tmp_path)
        new, old = report(1), report(2, days_ago=40)
        ResultsStore(root).write(new)
        write_as_before(root, old)
        assert stored(root, [new, old])
        upkeep.optimize(root)
        assert stored(root, [new, old])
        assert {row["month"] for row in rows(root, RESULTS)} == {"2024-03", "2024-01"}

    @pytest.mark.slow
    def test_rows_appended_during_a_migration_are_kept(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        root = str(tmp_path)
        old = [report(number, days_ago=20 * number) for number in range(4)]
        for gate_report in old:
            write_as_before(root, gate_report)
        meanwhile = iter([report(21), report(22), report(23)])
        read, came = TableFiles.read, list[GateReport]()

        def read_slowly(*given: Any) -> pa.Table:
            if (gate_report := next(meanwhile, None)) is not None:
                (write_as_before if len(came) % 2 else _write)(root, gate_report)
                came.append(gate_report)
            return read(*given)

        monkeypatch.setattr(TableFiles, "read", read_slowly)
        upkeep.optimize(root)
        assert len(came) == 3
        upkeep.optimize(root)
        assert stored(root, [*old, *came])
        assert None not in {row["month"] for row in rows(root, RESULTS)}

    def test_a_month_is_one_file_sorted_by_gate_with_statistics(self, tmp_path: Path) -> None:
        root = str(tmp_path)
        gates = ["c", "a", "b"]
        for number in range(9):
            gate_report = report(number)
            ResultsStore(root).write(
                replace(gate_report, run_key=replace(gate_report.run_key, gate=gates[number % 3]))
            )
        versions = DeltaTable(f"{root}/{RUNS}").version()
        rehearsed = {one.table: one for one in upkeep.optimize(root, dry_run=True)}
        assert (rehearsed[RUNS].files_before, rehearsed[RUNS].files_after) == (9, 1)
        assert DeltaTable(f"{root}/{RUNS}").version() == versions
        upkeep.optimize(root)
        assert [row["gate"] for row in rows(root, RUNS)] == [*"aaabbbccc"]
        table = DeltaTable(f"{root}/{RESULTS}")
        (file,) = TableFiles(locate(root), TABLES[RESULTS], table).live()
        assert (file.rows, file.month) == (36, "2024-03")
        actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()[0]
        for column in TABLES[RESULTS].keys:
            assert actions[f"min.{column}"] is not None
            assert actions[f"null_count.{column}"] == 0
        newest = max(row["finished_at"] for row in rows(root, RUNS))
        assert actions["max.finished_at"] >= newest

    def test_columns_of_a_newer_version_are_kept(self, tmp_path: Path) -> None:
        root = str(tmp_path)
        for number in range(3):
            ResultsStore(root).write(small(number))
            newer = pa.table({"run_id": [f"newer {number}"], "from_the_future": [number]})
            write_deltalake(f"{root}/{RUNS}", newer, mode="append", schema_mode="merge")
        upkeep.optimize(root)
        future = [row["from_the_future"] for row in rows(root, RUNS)]
        assert sorted(future, key=str) == [0, 1, 2, None, None, None]

    def test_of_states_the_newest_are_kept(self, tmp_path: Path) -> None:
        ResultsStore(str(tmp_path)).write(small(1))
        states = StateStore(locate(str(tmp_path)))
        undated = State(None, {"count(1)": 7}, {"count(1)": "all files"})
        for number in range(5):
            at = START + timedelta(minutes=number)
            states.keep("orders", "r", at, [state(number), undated])
            states.keep("other", "r", at, [State(RUN_KEY.date, None, {"count(1)": "none"})])
        upkeep.optimize(str(tmp_path))
        assert len(rows(tmp_path, STATES)) == 3
        recalled = states.recall("orders", [RUN_KEY.date, None])
        assert sorted(recalled, key=str) == sorted([state(4), undated], key=str)
        assert states.recall("other", [RUN_KEY.date])[0].results is None

    def test_a_table_with_deletion_vectors_of_another_tool_is_not_rewritten(
        self, tmp_path: Path
    ) -> None:
        ResultsStore(str(tmp_path)).write(small(1))
        table = DeltaTable(f"{tmp_path}/{RUNS}")
        from deltalake import TableFeatures

        table.alter.add_feature(
            TableFeatures.DeletionVectors, allow_protocol_versions_increase=True
        )
        with pytest.raises(StoreError, match="deletionVectors"):
            upkeep.optimize(str(tmp_path))

    @pytest.mark.nightly
    def test_a_long_log_is_trimmed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        reports = [small(number) for number in range(12)]
        for gate_report in reports:
            ResultsStore(str(tmp_path)).write(gate_report)
        log = tmp_path / RUNS / "_delta_log"
        monkeypatch.setattr(upkeep, "_LONG_LOG", 5)
        upkeep.optimize(str(tmp_path))
        assert len([*log.glob("*.json")]) > 12
        for entry in log.iterdir():
            os.utime(entry, (time.time() - 3600,) * 2)
        upkeep.optimize(str(tmp_path))
        assert len([*log.glob("*.json")]) == 1
        assert stored(tmp_path, reports)
        ResultsStore(str(tmp_path)).write(reports[3])
        ResultsStore(str(tmp_path)).write(small(20))
        assert stored(tmp_path, [*reports, small(20)])


def _write(root: str, gate_report: GateReport) -> None:
    ResultsStore(root).write(gate_report)


class TestConcurrentUpkeep:
    """Of two that rewrite files of a table one fails, and no row is lost or doubled."""

    @pytest.fixture
    def reports(self, tmp_path: Path) -> list[GateReport]:
        reports = [small(number, days_ago=number % 2) for number in range(6)]
        for gate_report in reports:
            ResultsStore(str(tmp_path)).write(gate_report)
        return reports

    @staticmethod
    def merge(root: Path, table: DeltaTable) -> None:
        files = TableFiles(locate(str(root)), TABLES[RUNS], table)
        files.merge(files.live())

    def test_two_merges(self, tmp_path: Path, reports: list[GateReport]) -> None:
        first, second = (DeltaTable(f"{tmp_path}/{RUNS}") for _ in range(2))
        self.merge(tmp_path, first)
        ResultsStore(str(tmp_path)).write(small(20))
        with pytest.raises(CommitFailedError):
            self.merge(tmp_path, second)
        assert stored(tmp_path, [*reports, small(20)])

    def test_merging_rows_that_were_pruned(self, tmp_path: Path, reports: list[GateReport]) -> None:
        table = DeltaTable(f"{tmp_path}/{RUNS}")
        upkeep.prune(str(tmp_path), timedelta(hours=30), now=NOW)
        with pytest.raises(CommitFailedError):
            self.merge(tmp_path, table)
        assert stored(tmp_path, reports[::2])

    def test_pruning_rows_that_were_merged(
        self, tmp_path: Path, reports: list[GateReport], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        replace_files, tries = TableFiles.replace, list[Any]()

        def after_a_merge(*given: Any, **named: Any) -> None:
            tries.append(given)
            if len(tries) == 1:
                self.merge(tmp_path, DeltaTable(f"{tmp_path}/{RUNS}"))
            replace_files(*given, **named)

        monkeypatch.setattr(TableFiles, "replace", after_a_merge)
        upkeep.prune(str(tmp_path), timedelta(hours=30), now=NOW)
        assert len(tries) > 2  # of which one is the merge
        assert stored(tmp_path, reports[::2])

    def test_merging_rows_that_were_migrated(self, tmp_path: Path) -> None:
        reports = [report(number) for number in range(3)]
        for gate_report in reports:
            write_as_before(tmp_path, gate_report)
        table = DeltaTable(f"{tmp_path}/{RUNS}")
        upkeep.optimize(str(tmp_path))
        with pytest.raises(CommitFailedError):
            self.merge(tmp_path, table)
        assert stored(tmp_path, reports)

    def test_merging_while_others_append(self, tmp_path: Path, reports: list[GateReport]) -> None:
        table = DeltaTable(f"{tmp_path}/{RUNS}")
        for number in range(20, 25):
            ResultsStore(str(tmp_path)).write(small(number))
        self.merge(tmp_path, table)
        assert files(tmp_path, RUNS) == 2 + 5
        assert stored(tmp_path, [*reports, *map(small, range(20, 25))])

    @pytest.mark.nightly
    def test_upkeep_beside_writers_of_other_processes(self, tmp_path: Path) -> None:
        root = str(tmp_path)
        for number in range(900, 903):
            write_as_before(root, sample_report(number, attempt=number))
        runs = [[*range(first, 24, 4)] for first in range(4)]
        moment = str(time.time() + 1.5)
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", WRITER, root, moment, *map(str, of_one)],
                stderr=subprocess.PIPE,
                text=True,
            )
            for of_one in runs
        ]
        while any(writer.poll() is None for writer in writers):
            upkeep.optimize(root)
            upkeep.prune(root, timedelta(days=10_000))
        for writer in writers:
            _, errors = writer.communicate(timeout=60)
            assert writer.returncode == 0, errors
        upkeep.optimize(root)
        written = [*range(24), *range(900, 903)]
        assert stored(root, [sample_report(number, attempt=number) for number in written])


class TestKilled:
    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        for number in range(4):
            write_as_before(tmp_path, report(number, days_ago=20 * number))
        return str(tmp_path)

    @pytest.mark.slow
    @pytest.mark.parametrize("commits", [3, 0, 1, 2, 4, 5])
    def test_killed_upkeep_continues_in_the_next_run(
        self, root: str, commits: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        left = iter(range(commits))

        def dies(call: Callable[..., Any]) -> Callable[..., Any]:
            def instead(*given: Any, **named: Any) -> Any:
                if next(left, None) is None:
                    raise KeyboardInterrupt
                return call(*given, **named)

            return instead

        whole = [report(number, days_ago=20 * number) for number in range(4)]
        with monkeypatch.context() as patch:
            for owner, name in (
                (DeltaTable, "create_write_transaction"),
                (upkeep, "write_deltalake"),
            ):
                patch.setattr(owner, name, dies(getattr(owner, name)))
            with pytest.raises(KeyboardInterrupt):
                upkeep.optimize(root)
        assert stored(root, whole)
        upkeep.optimize(root)
        assert stored(root, whole)

    def test_a_killed_prune_leaves_no_partial_run(
        self, root: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole = [report(number, days_ago=20 * number) for number in range(4)]
        prune_table = upkeep._prune

        def killed(files: TableFiles, *rest: Any) -> Any:
            if files.definition.name != RUNS:
                raise KeyboardInterrupt
            return prune_table(files, *rest)

        with monkeypatch.context() as patch:
            patch.setattr(upkeep, "_prune", killed)
            with pytest.raises(KeyboardInterrupt):
                upkeep.prune(root, timedelta(days=30), now=NOW)
        assert [run.run_id for run in list_runs(root)] == [
            gate_report.run_id for gate_report in whole[:2]
        ]
        assert len(rows(root, RESULTS)) == 16
        upkeep.prune(root, timedelta(days=30), now=NOW)
        assert stored(root, whole[:2])


class TestPrune:
    @pytest.mark.slow
    def test_prune_deletes_older_runs_to_the_microsecond(self, tmp_path: Path) -> None:
        root = str(tmp_path)
        reports = [report(number, days_ago=31 * (number % 3)) for number in range(9)]
        for gate_report in reports:
            ResultsStore(root).write(gate_report)
        cutoff = reports[4].finished_at
        for _ in range(2):
            done = upkeep.prune(root, NOW - cutoff, now=NOW)
            assert stored(
                root, [gate_report for gate_report in reports if gate_report.finished_at >= cutoff]
            )
        assert {effect.deleted_rows for effect in done} <= {0}
        upkeep.optimize(root)
        upkeep.prune(root, NOW - cutoff - timedelta(microseconds=1), now=NOW)
        assert stored(
            root, [gate_report for gate_report in reports if gate_report.finished_at > cutoff]
        )

    def test_the_files_of_old_months_are_not_even_read(self, tmp_path: Path) -> None:
        root = str(tmp_path)
        for number in range(4):
            ResultsStore(root).write(report(number, days_ago=40 * number))
        for file in TableFiles(
            locate(root), TABLES[RESULTS], DeltaTable(f"{root}/{RESULTS}")
        ).live():
            if file.month != "2024-03":
                (tmp_path / RESULTS / file.path).unlink()
        upkeep.prune(root, timedelta(days=30), now=NOW)
        assert stored(root, [report(0)])

    def test_a_store_of_an_older_version_is_pruned(self, tmp_path: Path) -> None:
        for number in range(3):
            write_as_before(tmp_path, report(number, days_ago=40 * number))
        upkeep.prune(str(tmp_path), timedelta(days=50), now=NOW)
        assert stored(tmp_path, [report(0), report(1, days_ago=40)])

    def test_sources_stay_while_a_run_uses_them(self, tmp_path: Path) -> None:
        root = str(tmp_path)
        texts = [SourceFile("orders.dql", f"-- {number}") for number in range(4)]
        used = [texts[:2], [texts[1]], [texts[2]], [texts[3]]]
        for number, of_run in enumerate(used):
            gate_report = report(
                number, days_ago=(100, 0, 100, 35)[number], sources=digests_of(of_run)
            )
            ResultsStore(root).write(gate_report, of_run)
        upkeep.prune(root, timedelta(days=30), now=NOW)
        # That of the last run may be gone by then; only texts of 40 days and more are looked at.
        assert {row["text"] for row in rows(root, SOURCES)} == {"-- 1", "-- 3"}

    def test_states_are_pruned(self, tmp_path: Path) -> None:
        ResultsStore(str(tmp_path)).write(small(1))
        states = StateStore(locate(str(tmp_path)))
        states.keep("orders", "r", START - timedelta(days=100), [state(1)])
        states.keep("orders", "r", START, [State(RUN_KEY.date, {"max(a)": 1}, {"max(a)": "f"})])
        upkeep.prune(str(tmp_path), timedelta(days=30), now=NOW)
        assert [row["aggregate"] for row in rows(tmp_path, STATES)] == ["max(a)"]

    def test_a_negative_or_zero_age_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(RequestError, match="positive"):
            upkeep.prune(str(tmp_path), timedelta(0))


class TestVacuum:
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Path]:
        for number in range(3):
            ResultsStore(str(tmp_path)).write(small(number))
        yield tmp_path
        assert stored(tmp_path, [small(number) for number in range(3)])

    def test_replaced_files_stay_for_a_week(self, store: Path) -> None:
        upkeep.optimize(str(store))
        for file in (store / RUNS).rglob("*.parquet"):
            os.utime(file, (time.time() - 30 * 86400,) * 2)  # written long ago, replaced now
        assert sum(effect.deleted_files for effect in upkeep.vacuum(str(store))) == 0
        assert len([*(store / RUNS).glob("month=*/*.parquet")]) == 4

    def test_old_files_of_killed_gates_are_deleted(self, store: Path) -> None:
        (young, old) = (store / RUNS / "month=2024-03" / f"{age}.parquet" for age in "ab")
        for file in (young, old):
            file.write_bytes(b"PAR1")
        os.utime(old, (time.time() - 8 * 86400,) * 2)
        assert upkeep.vacuum(str(store), dry_run=True)[0].deleted_files == 1
        assert old.exists()
        assert upkeep.vacuum(str(store))[0].deleted_files == 1
        assert (young.exists(), old.exists()) == (True, False)

    def test_less_than_a_day_is_refused(self, store: Path) -> None:
        with pytest.raises(RequestError, match="a day"):
            upkeep.vacuum(str(store), timedelta(hours=23))


class TestReadersReadFewFiles:
    """Files that hold nothing of the answer are deleted; who opens them gets an error."""

    @pytest.mark.slow
    def test_the_newest_runs_are_read_from_the_newest_files(self, tmp_path: Path) -> None:
        root = str(tmp_path)
        reports = [small(number, days_ago=2 * number) for number in range(60)]
        reports[3] = report(3, days_ago=6)
        for gate_report in reports:
            ResultsStore(root).write(gate_report)
        upkeep.optimize(root)
        for file in TableFiles(locate(root), TABLES[RUNS], DeltaTable(f"{root}/{RUNS}")).live():
            if file.month is not None and file.month < "2023-12":
                (tmp_path / RUNS / file.path).unlink()
        newest = [gate_report.run_id for gate_report in reports[:5]]
        assert [run.run_id for run in list_runs(root, limit=5)] == newest
        assert [run.run_id for run in list_runs(root, limit=5, all_attempts=True)] == newest
        assert read_report(root, reports[3].run_key, reports[3].attempt.id) == reports[3]
        with pytest.raises(StoreError):
            list_runs(root, limit=60)

    @pytest.mark.slow
    def test_any_number_of_superseded_runs_is_skipped(self, tmp_path: Path) -> None:
        root = str(tmp_path)
        key = RUN_KEY
        attempts = [small(number, run_key=key) for number in range(60)]
        other = [small(100 + number, days_ago=1) for number in range(3)]
        for gate_report in [*attempts, *other]:
            ResultsStore(root).write(gate_report)
        expected = [attempts[-1], *reversed(other)]
        listed = [run.run_id for run in list_runs(root, limit=4)]
        assert listed == [gate_report.run_id for gate_report in expected]


def test_a_report_of_upkeep_is_json() -> None:
    from dqx_airflow.values import to_json

    assert json.loads(to_json(upkeep.Upkeep("runs", 2, 1)))["files_before"] == 2
