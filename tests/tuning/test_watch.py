"""`watch orders`: what it claims, without history, in a backtest, and after a promotion."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow import MemoryDatabase, StoredDatabase, Suite
from dqx_airflow.dql.watches import claims_on
from dqx_airflow.results.past_days import past_days
from dqx_airflow.results.query import StoredResults
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.tuning.review import enforce
from dqx_airflow.tuning.suite_file import SuiteFile
from dqx_airflow.values import Outcome, Status, Verdict
from tests.sound_suites import sound_suite
from tests.tuning.stored_days import stored

SUITE = 'suite "Orders" {\n    check "All" on orders {\n        watch orders\n    }\n}\n'
FIRST, DAYS = date(2024, 3, 1), 16


def orders(**last: Any) -> MemoryDatabase:
    """Days of orders; the last one has other values, or other settings: rows, hour."""
    chance, rows = random.Random(7), []
    for number in range(DAYS):
        on, is_last = FIRST + timedelta(days=number), number == DAYS - 1
        settings = last if is_last else {}
        for row in range(settings.get("rows", 20 + number % 3)):
            own = {
                "id": 1000 * number + row,
                "year": 2024,
                "email": None if row % 10 == 0 else f"{row}@x.org",
                "net price": chance.uniform(9, 11),
                "loaded_at": datetime(
                    on.year, on.month, on.day, settings.get("hour", 20), row % 60
                ).replace(tzinfo=timezone.utc),
                "ds": on,
            }
            rows.append(own | {name: it for name, it in settings.items() if name in own})
    return MemoryDatabase({"orders": rows}, date_columns={"orders": "ds"})


def verdicts(database: Any, number: int = DAYS - 1, text: str = SUITE) -> dict[str, Verdict]:
    return {verdict.name: verdict for verdict in report(database, number, text).verdicts}


def report(database: Any, number: int = DAYS - 1, text: str = SUITE) -> Any:
    on, now = FIRST + timedelta(days=number), time_of_gate(number)
    return Suite.from_string(text).run(database, on, now=now).report


def time_of_gate(number: int) -> datetime:
    """On the day after, later on every day."""
    on = FIRST + timedelta(days=number)
    return datetime(on.year, on.month, on.day, 3, tzinfo=timezone.utc) + timedelta(
        days=1, minutes=2 * number
    )


def test_it_claims_all_columns_by_their_types_and_finds_what_is_unusual() -> None:
    usual = verdicts(orders())
    assert {name.removeprefix("orders.watch.") for name in usual} == {
        "orders.not_empty",
        *("rows", "fresh.loaded_at"),
        *(f"nulls.{name}" for name in ("id", "year", "email", "net price", "loaded_at")),
        *("distinct.id", "distinct.email", "mean.net price"),
    }
    assert {verdict.status for verdict in usual.values()} == {Status.PASSED}
    assert {one.is_experimental for one in usual.values() if one.check == "All"} == {True}
    for changed, found in (
        ({"rows": 7}, {"rows", "distinct.email"}),
        ({"hour": 6}, {"fresh.loaded_at"}),
        ({"email": None}, {"nulls.email", "distinct.email"}),
        ({"net price": 14.0}, {"mean.net price"}),
        ({"id": 1}, {"distinct.id"}),
    ):
        unusual = report(orders(**changed))
        failed = {one.name for one in unusual.with_status(Status.FAILED)}
        assert {name.removeprefix("orders.watch.") for name in failed} == found
        assert unusual.outcome is Outcome.WARNED, "an experimental claim never blocks"


def test_without_history_it_neither_blocks_nor_claims_anything() -> None:
    first = report(orders(), 3)
    assert first.outcome is Outcome.WARNED
    skipped = [one for one in first.verdicts if one.check == "All"]
    assert {one.status for one in skipped} == {Status.SKIPPED}
    assert "3 of the 126 days before have a value, at least 14" in (skipped[0].reason or "")


@pytest.mark.more
def test_stored_days_are_judged_again_as_a_gate_did(tmp_path: Path) -> None:
    store, database = ResultsStore(str(tmp_path)), orders(email=None, hour=6)
    for number in range(DAYS):
        on_time = {"started_at": time_of_gate(number), "finished_at": time_of_gate(number)}
        store.write(stored(report(database, number), "orders_gate", **on_time))
    known = verdicts(database)
    again = verdicts(StoredDatabase(str(tmp_path)))
    assert {name: one.status for name, one in again.items()} == {
        name: one.status for name, one in known.items()
    }
    days = past_days(
        StoredResults(str(tmp_path)), "Orders", FIRST, FIRST + timedelta(days=DAYS - 1)
    )
    suite = sound_suite(SUITE)
    backtest = Backtest(suite, days)
    judged = zip(backtest.assertions, backtest.judge().statuses, strict=True)
    last = {assertion.name: statuses[-1] for assertion, statuses in judged}
    assert last == {name: one.status for name, one in known.items() if one.check == "All"}
    assert last["orders.watch.nulls.email"] is Status.FAILED
    assert last["orders.watch.fresh.loaded_at"] is Status.FAILED


@pytest.mark.more
def test_an_enforced_claim_is_written_into_the_check_and_blocks(tmp_path: Path) -> None:
    path = tmp_path / "orders.dql"
    path.write_text(SUITE.replace("watch orders", 'watch orders holidays "US"'))
    file = SuiteFile(path, "orders.dql")
    for name in ("orders.watch.rows", "orders.watch.mean.net price"):
        assert enforce(file, name, "ada") == ("All", name)
    text = path.read_text()
    assert '        assert num_rows() within usual(num_rows(), holidays "US")\n' in text
    assert "        assert average(`net price`) within usual(average(`net price`)" in text
    assert '        watch orders holidays "US"\n' in text
    assert report(orders(rows=7), text=text).outcome is Outcome.BLOCKED
    assert len(verdicts(orders(), text=text)) == len(verdicts(orders()))
    with pytest.raises(Exception, match=r"'orders\.watch\.rows' is not @experimental"):
        enforce(file, "orders.watch.rows", "ada")


DRIFT = SUITE.replace("watch orders", "watch orders drift")


def with_categories(days: int, share: float, rows: int = 300) -> MemoryDatabase:
    """Days of rows with a country, whose share changes on the last day, a batch that is new every
    day, a unique text, and a flag."""
    chance, found = random.Random(7), []
    for number in range(days):
        on = FIRST + timedelta(days=number)
        of_swiss = share if number == days - 1 else 0.6
        found += [
            {
                "country": "CH"
                if chance.random() < of_swiss
                else chance.choice(("DE", "FR", None)),
                "batch": f"{on} {row % 2}",
                "remark": f"{number} {row}",
                "paid": chance.random() < 0.9,
                "ds": on,
            }
            for row in range(rows)
        ]
    settings = {"date_columns": {"orders": "ds"}}
    return MemoryDatabase({"orders": found}, **settings)


def drift_in(database: Any, number: int, text: str = DRIFT) -> dict[str, Verdict]:
    """The verdicts about drift, by column."""
    found = verdicts(database, number, text).items()
    mark = "orders.watch.drift."
    return {name.removeprefix(mark): one for name, one in found if name.startswith(mark)}


@pytest.mark.more
def test_drift_is_claimed_on_request_where_it_is_more_than_chance_and_than_usual() -> None:
    days = 45
    for share, rows, failed in ((0.6, 100, set()), (0.1, 100, {"country"}), (0.1, 8, set())):
        found = drift_in(with_categories(days, share, rows), days - 1)
        assert found.keys() == {"country", "batch", "remark", "paid"}
        assert {one.status for one in found.values()} <= {Status.PASSED, Status.FAILED}
        is_failed = {name for name, one in found.items() if one.status is Status.FAILED}
        assert is_failed == failed, "few rows differ by chance, and new values may be usual"
    few = with_categories(1, 0.6, 2)
    assert drift_in(few, 0, SUITE) == {}
    (orders,) = few.datasets
    columns = {"Country": "string", "paid": "boolean", "order_id": "string", "amount": "double"}
    claims = claims_on(columns, replace(orders, masked=("country",)))
    assert [column for kind, column in claims if kind == "drift"] == ["paid"]


@pytest.mark.nightly
def test_stored_days_tell_the_drift_that_a_gate_saw(tmp_path: Path) -> None:
    store, database, days = ResultsStore(str(tmp_path)), with_categories(45, 0.1, 60), 45
    for number in range(days):
        store.write(stored(report(database, number, DRIFT), "orders_gate"))
    known, again = drift_in(database, days - 1), drift_in(StoredDatabase(str(tmp_path)), days - 1)
    assert {name: (one.status, one.value) for name, one in again.items()} == {
        name: (one.status, one.value) for name, one in known.items()
    }
    assert known["country"].status is Status.FAILED


def test_the_drift_of_a_watch_is_enforced_as_it_is_claimed(tmp_path: Path) -> None:
    path = tmp_path / "orders.dql"
    path.write_text(DRIFT.replace("drift", 'drift holidays "US"'))
    enforce(SuiteFile(path, "orders.dql"), "orders.watch.drift.country", "ada")
    assert (
        "assert psi(country, usual n 28) <= max(0.25, 20 * unique_count(country) / num_rows(), "
        'highest_usual(psi(country, usual n 28), holidays "US"))\n'
    ) in path.read_text()
    assert '        watch orders drift holidays "US"\n' in path.read_text()
