"""Readers see complete runs only, and the last attempt of each run key."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from dqx_airflow.errors import RequestError, StoreError
from dqx_airflow.results import upkeep
from dqx_airflow.results.past_runs import past_runs
from dqx_airflow.results.query import RunsWanted, StoredResults
from dqx_airflow.results.report_rows import run_row
from dqx_airflow.results.runs import find_report, list_runs, read_report
from dqx_airflow.results.schema import RESULTS, RUNS, RUNS_SCHEMA
from dqx_airflow.results.store import ResultsStore, arrow_table
from dqx_airflow.values import Attempt, GateReport, RunKey
from tests.processes import output_of
from tests.results.samples import RUN_KEY, sample_report


def store(root: Path, *reports: GateReport) -> str:
    for report in reports:
        ResultsStore(str(root)).write(report)
    return str(root)


def listed(root: str, **filters: object) -> list[str]:
    return [run.run_id[:8] for run in list_runs(root, **filters)]  # type: ignore[arg-type]


def test_only_the_report_of_exactly_that_attempt_is_read(tmp_path: Path) -> None:
    other_day = replace(RUN_KEY, date=date(2024, 3, 1))
    reports = [
        sample_report(1),
        sample_report(2, attempt=2),
        sample_report(3, run_key=other_day),
        sample_report(4, run_key=replace(RUN_KEY, gate="other")),
        sample_report(5, run_key=replace(RUN_KEY, scheduler_run="manual")),
    ]
    root = store(tmp_path, *reports)
    for report in reports:
        assert read_report(root, report.run_key, report.attempt.id) == report
    assert read_report(root, RUN_KEY, "attempt-3") is None
    assert read_report(root, replace(RUN_KEY, gate="nobody"), "attempt-1") is None


@pytest.mark.few(1)
@pytest.mark.parametrize("version", ["0.1.0", "0.2.0"])
def test_a_store_of_an_earlier_version_is_read_written_and_migrated(
    tmp_path: Path, version: str
) -> None:
    """That version wrote the archive, which has the sample report."""
    shutil.unpack_archive(Path(__file__).parent / "stores" / f"{version}.zip", tmp_path)
    root, due = str(tmp_path), sample_report()
    read = read_report(root, RUN_KEY, "attempt-1")
    assert read is not None
    assert (read.outcome, read.datasets[0].name) == (due.outcome, due.datasets[0].name)
    assert [(one.name, one.status, one.value, one.reason) for one in read.verdicts] == [
        (one.name, one.status, one.value, one.reason) for one in due.verdicts
    ]
    store(tmp_path, later := sample_report(2, attempt=2, minutes=5))
    upkeep.optimize(root)
    assert read_report(root, RUN_KEY, "attempt-2") == later
    assert listed(root, all_attempts=True) == ["00000002", "00000001"]


def test_of_two_reports_for_one_attempt_the_first_to_finish_is_read(tmp_path: Path) -> None:
    late, early = sample_report(1, minutes=5), sample_report(2, minutes=1)
    root = store(tmp_path, late, early)
    assert read_report(root, RUN_KEY, "attempt-1") == early
    assert listed(root) == ["00000002"]
    assert listed(root, all_attempts=True) == ["00000001", "00000002"]


def test_a_later_attempt_supersedes_an_earlier_one_that_finished_after_it(tmp_path: Path) -> None:
    early, late = sample_report(1, minutes=1), sample_report(2, attempt=2, minutes=5)
    early = replace(early, finished_at=late.finished_at + timedelta(minutes=4))
    root = store(tmp_path, early, late)
    assert listed(root) == ["00000002"]
    assert listed(root, all_attempts=True) == ["00000001", "00000002"]


def test_an_attempt_after_a_clear_supersedes_despite_its_lower_number(tmp_path: Path) -> None:
    cleared = replace(sample_report(3, minutes=60), attempt=Attempt(1, "after-clearing"))
    root = store(tmp_path, sample_report(1), sample_report(2, attempt=2, minutes=5), cleared)
    assert listed(root) == ["00000003"]


def test_runs_are_listed_newest_first_and_limited(tmp_path: Path) -> None:
    runs = [(1, 30), (2, 10), (3, 20)]
    root = store(
        tmp_path,
        *(
            sample_report(n, minutes=m, run_key=replace(RUN_KEY, scheduler_run=str(n)))
            for n, m in runs
        ),
    )
    assert listed(root) == ["00000001", "00000003", "00000002"]
    assert listed(root, limit=2) == ["00000001", "00000003"]


def test_runs_are_filtered_by_gate_and_date(tmp_path: Path) -> None:
    nasty = "o'brien\"; DROP TABLE stored -- {rows}"
    other_day = date(2024, 3, 1)
    root = store(
        tmp_path,
        sample_report(1),
        sample_report(2, run_key=RunKey(nasty, RUN_KEY.date, "x")),
        sample_report(3, run_key=RunKey(nasty, other_day, "x")),
    )
    assert listed(root, gate=nasty, dataset_date=other_day) == ["00000003"]
    assert sorted(listed(root, gate=nasty)) == ["00000002", "00000003"]
    assert sorted(listed(root, dataset_date=RUN_KEY.date)) == ["00000001", "00000002"]
    assert listed(root, gate="' OR '1'='1") == []


def test_many_names_match_the_same_runs_as_each_alone(tmp_path: Path) -> None:
    gates = ["it's", 'say "so"', "back\\slash", "{braces}, commas", "other"]
    keys = [replace(RUN_KEY, gate=gate) for gate in gates]
    root = store(tmp_path, *(sample_report(at, run_key=key) for at, key in enumerate(keys)))
    results = StoredResults(root)
    few = gates[:4]
    many = [*few, *(f"gate {number}" for number in range(300))]
    rows = [results.run_rows(RunsWanted(names), ["gate"]) for names in (few, many)]
    assert [sorted(row["gate"] for row in found) for found in rows] == [sorted(few)] * 2
    assert results.run_rows(RunsWanted(many, failing=True), ["gate"]) != []


def test_past_runs_of_few_gates_have_no_rows_of_superseded_runs(tmp_path: Path) -> None:
    days = [RUN_KEY.date - timedelta(days=ago) for ago in range(3)]
    reports = [
        sample_report(10 * at + attempt, attempt=attempt, run_key=replace(RUN_KEY, date=on))
        for at, on in enumerate(days)
        for attempt in (1, 2)
    ]
    other = sample_report(77, run_key=replace(RUN_KEY, gate="other"))
    root = store(tmp_path, *reports, other)
    wanted = RunsWanted([RUN_KEY.gate])
    by_gate = past_runs(root, wanted, ["name"])
    by_run = [past_runs(root, replace(wanted, since=on, until=on), ["name"]) for on in days]
    assert [(run,) for run in by_gate] == by_run[::-1]
    assert {len(run.rows) for run in by_gate} == {len(reports[0].verdicts)}


def test_a_listed_run_matches_its_report(tmp_path: Path) -> None:
    report = sample_report()
    (run,) = list_runs(store(tmp_path, report))
    assert (run.run_id, run.run_key, run.attempt) == (report.run_id, report.run_key, report.attempt)
    assert (run.assertions, run.passed, run.failed, run.skipped, run.errors) == (4, 1, 1, 1, 1)
    assert (run.outcome, run.started_at, run.finished_at) == (
        report.outcome,
        report.started_at,
        report.finished_at,
    )


def test_a_report_is_found_by_the_first_characters_of_its_run_id(tmp_path: Path) -> None:
    root = store(tmp_path, sample_report(0xA1), sample_report(0xB2))
    assert find_report(root, "000000a") == sample_report(0xA1)
    assert find_report(root, sample_report(0xB2).run_id) == sample_report(0xB2)
    for nobody in ("000000c", "%", "_", "000000a1-0000-4000-8000-000000000000-"):
        assert find_report(root, nobody) is None


def test_an_ambiguous_run_id_is_refused_with_the_candidates(tmp_path: Path) -> None:
    root = store(tmp_path, sample_report(0xA1), sample_report(0xA2))
    with pytest.raises(RequestError, match="2 runs") as caught:
        find_report(root, "000000a")
    assert sample_report(0xA1).run_id in caught.value.hint
    with pytest.raises(RequestError, match="empty"):
        find_report(root, "")


def test_reading_a_run_opens_no_file_of_another_run(tmp_path: Path) -> None:
    reports = [
        sample_report(n, run_key=replace(RUN_KEY, gate=f"gate-{n}"), attempt=n) for n in (1, 2, 3)
    ]
    root = store(tmp_path, *reports)
    for name in (RESULTS, RUNS):
        adds = DeltaTable(f"{root}/{name}").get_add_actions(flatten=True)
        for row in zip(adds["path"].to_pylist(), adds["min.gate"].to_pylist(), strict=True):
            if row[1] != "gate-2":
                (tmp_path / name / row[0]).unlink()
    wanted = reports[1]
    assert read_report(root, wanted.run_key, wanted.attempt.id) == wanted
    assert find_report(root, wanted.run_id[:8]) == wanted
    assert listed(root, gate="gate-2") == [wanted.run_id[:8]]
    with pytest.raises(StoreError, match="cannot read"):
        list_runs(root)


def test_compacted_tables_read_the_same(tmp_path: Path) -> None:
    reports = [sample_report(n, attempt=n) for n in (1, 2, 3)]
    root = store(tmp_path, *reports)
    for name in (RESULTS, RUNS):
        DeltaTable(f"{root}/{name}").optimize.compact()
    for report in reports:
        assert find_report(root, report.run_id) == report


def test_without_a_store_there_is_no_report_and_listing_is_an_error(tmp_path: Path) -> None:
    root = str(tmp_path / "none")
    assert read_report(root, RUN_KEY, "attempt-1") is None
    for call in (lambda: list_runs(root), lambda: find_report(root, "1")):
        with pytest.raises(StoreError, match=f"no results under {root}") as caught:
            call()
        assert caught.value.hint
    assert not (tmp_path / "none").exists()


def test_a_run_with_missing_rows_is_an_error_and_not_a_smaller_report(tmp_path: Path) -> None:
    root = store(tmp_path, sample_report())
    (tmp_path / RESULTS).rename(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="0 of its 4 result rows"):
        read_report(root, RUN_KEY, "attempt-1")


def test_a_table_without_a_required_column_is_an_error(tmp_path: Path) -> None:
    runs = arrow_table([run_row(sample_report())], RUNS_SCHEMA).drop_columns(["assertions"])
    write_deltalake(f"{tmp_path}/{RUNS}", runs)
    for call in (lambda: list_runs(str(tmp_path)), lambda: find_report(str(tmp_path), "0")):
        with pytest.raises(StoreError, match="assertions"):
            call()


def test_a_damaged_store_is_an_error_and_not_an_absent_report(tmp_path: Path) -> None:
    root = store(tmp_path, sample_report())
    for path in (tmp_path / RUNS).glob("month=*/*.parquet"):
        path.write_bytes(b"not parquet")
    with pytest.raises(StoreError, match="cannot read the results store"):
        read_report(root, RUN_KEY, "attempt-1")


def test_reading_needs_neither_spark_nor_airflow_nor_pyarrow(tmp_path: Path) -> None:
    root = store(tmp_path, sample_report())
    code = (
        "import sys; from dqx_airflow.results.runs import list_runs, find_report\n"
        f"find_report({root!r}, list_runs({root!r})[0].run_id)\n"
        "print({'pyspark', 'airflow', 'pandas', 'numpy', 'pyarrow'} & set(sys.modules))"
    )
    printed = output_of([sys.executable, "-c", code])
    assert printed == "set()\n"
