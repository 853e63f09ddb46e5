"""An open store sees appended runs, and survives changes of its files."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from dqx_airflow.errors import StoreError
from dqx_airflow.results.query import StoredResults
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.values import Attempt, EnforcedContract, GateReport, RunKey
from tests.results.samples import DAY, RUN_KEY, sample_report


def on(days_ago: int, run: int = 0, **changes: object) -> GateReport:
    """A report about the data of some days ago."""
    day = DAY - timedelta(days=days_ago)
    report = sample_report(run or days_ago + 1, minutes=-1440 * days_ago)
    return replace(report, run_key=replace(RUN_KEY, date=day), **changes)


def dates_of(reports: tuple[GateReport, ...]) -> list[int]:
    return [(DAY - report.run_key.date).days for report in reports]


@pytest.fixture
def store(tmp_path: Path) -> ResultsStore:
    return ResultsStore(str(tmp_path / "results"))


def test_a_missing_store_is_empty(tmp_path: Path) -> None:
    opened = StoredResults(str(tmp_path / "nothing"))
    assert opened.reports_of({"a"}) == ()
    assert opened.past_reports({"a"}, DAY) == ()
    assert opened.reports_of(()) == opened.past_reports((), DAY) == ()
    assert opened.contract_runs({"a"}, "orders", DAY) == ()


@pytest.mark.more
def test_whole_reports_are_found_by_their_attempt(store: ResultsStore) -> None:
    first, second = sample_report(1), sample_report(2, attempt=2, minutes=5)
    other = sample_report(3, attempt=3)
    for report in (first, second, other):
        store.write(report)
    opened = StoredResults(store.root)
    assert opened.reports_of({"attempt-1", "attempt-2"}) == (second, first)
    assert opened.reports_of({"it's"}) == ()


def test_reports_appended_later_are_found(store: ResultsStore) -> None:
    opened = StoredResults(store.root)
    for days_ago in (3, 2, 1):
        store.write(on(days_ago))
        assert dates_of(opened.past_reports({RUN_KEY.gate}, DAY))[0] == days_ago


@pytest.mark.slow
def test_the_past_has_the_current_reports_up_to_a_day(store: ResultsStore) -> None:
    again = replace(on(2, 20), attempt=Attempt(2, "later"))
    again = replace(again, started_at=again.started_at + timedelta(minutes=5))
    elsewhere = replace(on(1, 30), run_key=RunKey("other", DAY, "x"))
    for report in (on(0), on(1), on(2), again, on(3), elsewhere):
        store.write(report)
    past = StoredResults(store.root).past_reports({RUN_KEY.gate}, DAY - timedelta(days=1))
    assert dates_of(past) == [1, 2, 3]
    assert past[1].run_id == again.run_id
    rows = [verdict.failing_rows for report in past for verdict in report.verdicts]
    assert rows == [()] * len(rows)


@pytest.mark.more
def test_the_limit_applies_to_each_gate(store: ResultsStore) -> None:
    for days_ago in range(4):
        store.write(on(days_ago))
    store.write(replace(on(0, 40), run_key=RunKey("other", DAY, "x")))
    past = StoredResults(store.root).past_reports({RUN_KEY.gate, "other"}, DAY, 2)
    gates = [report.run_key.gate for report in past]
    assert gates.count("other") == 1
    assert gates.count(RUN_KEY.gate) == 2


@pytest.mark.more
def test_rarely_run_gates_have_a_longer_past(store: ResultsStore) -> None:
    for days_ago in (0, 90, 180, 500):
        store.write(on(days_ago))
    past = StoredResults(store.root).past_reports({RUN_KEY.gate}, DAY)
    assert dates_of(past) == [0, 90, 180]


def test_the_first_of_all_days_has_a_past(store: ResultsStore) -> None:
    assert StoredResults(store.root).past_reports({"a"}, date.min) == ()


@pytest.mark.more
def test_a_store_compacted_meanwhile_is_still_read(store: ResultsStore) -> None:
    from deltalake import DeltaTable

    opened = StoredResults(store.root)
    for days_ago in (3, 2):
        store.write(on(days_ago))
    assert dates_of(opened.past_reports({RUN_KEY.gate}, DAY)) == [2, 3]
    for name in ("runs", "results"):
        table = DeltaTable(f"{store.root}/{name}")
        table.optimize.compact()
        table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert dates_of(opened.past_reports({RUN_KEY.gate}, DAY)) == [2, 3]


@pytest.mark.more
def test_a_store_that_was_removed_and_made_again_is_opened_again(store: ResultsStore) -> None:
    opened = StoredResults(store.root)
    store.write(on(3))
    assert dates_of(opened.past_reports({RUN_KEY.gate}, DAY)) == [3]
    shutil.rmtree(store.root)
    assert opened.past_reports({RUN_KEY.gate}, DAY) == ()
    store.write(on(1))
    assert dates_of(opened.past_reports({RUN_KEY.gate}, DAY)) == [1]


def test_an_unreadable_store_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file")
    with pytest.raises(StoreError):
        StoredResults(str(tmp_path / "results")).reports_of({"a"})


def test_a_run_with_rows_missing_is_a_gap(store: ResultsStore, tmp_path: Path) -> None:
    from deltalake import DeltaTable

    store.write(on(1))
    store.write(on(2))
    kept = StoredResults(store.root)
    assert dates_of(kept.past_reports({RUN_KEY.gate}, DAY)) == [1, 2]
    table = DeltaTable(f"{store.root}/results")
    table.alter.set_table_properties({"delta.appendOnly": "false"})
    table.delete(f"dataset_date = '{DAY - timedelta(days=1)}' and position = 0")
    assert dates_of(kept.past_reports({RUN_KEY.gate}, DAY)) == [2]


def test_runs_under_a_contract_are_found_with_its_coverage(store: ResultsStore) -> None:
    orders = EnforcedContract("o'rders", "2.0.0", "odcs", checked=3)
    store.write(on(3, contract=replace(orders, version="1.0.0")))
    store.write(on(2, contract=replace(orders, id="invoices")))
    store.write(on(1))
    store.write(on(0, contract=orders))
    opened = StoredResults(store.root)
    found = opened.contract_runs({RUN_KEY.gate}, "o'rders", DAY)
    assert [(run.date, run.contract.version) for run in found] == [
        (DAY, "2.0.0"),
        (DAY - timedelta(days=3), "1.0.0"),
    ]
    assert found[0].contract == orders
    assert opened.contract_runs({"another"}, "o'rders", DAY) == ()
    assert len(opened.contract_runs({RUN_KEY.gate}, "o'rders", DAY, most=1)) == 1
