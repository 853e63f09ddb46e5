"""Many dates in one scan: each is judged as if it were run alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dqx_airflow.engine.job import run_gates, try_gates
from dqx_airflow.errors import RequestError
from dqx_airflow.results.runs import list_runs, read_report
from dqx_airflow.values import (
    DatasetRef,
    GateOrigin,
    GatePart,
    GateReport,
    GateRequest,
    Outcome,
    RunKey,
    SourceFile,
    Status,
)
from tests.engine.lake import Run, delta, request
from tests.job_count import jobs_so_far

pytestmark = pytest.mark.spark

FIRST = date(2024, 3, 1)
DATES = tuple(FIRST + timedelta(days=number) for number in range(5))
NOON = datetime(2024, 3, 6, 12, tzinfo=timezone.utc)

EVERY_FORM = """\
suite "Forms" {
    availability_threshold 0.6
    const LEAST = 3
    check "Flat" on orders {
        assert num_rows() >= LEAST name "rows" severity P0
        assert average(price) between 2 and 7 name "price"
        assert null_count(status) == 0 name "status"
        assert unique(id) name "ids"
        assert duplicate_count([id, status]) == 0 name "keys"
        assert minimum(price) > 0 name "least"
        assert percentile(price, 50%) < 6 name "middle"
        assert sql("count(1) FILTER (WHERE 10 / weight > 2)") < 9 name "divided"
        assert sum(weight) > 5 name "weight" where status == "new"
        assert count(price) > 1 name "none" where status == "nowhere"
        assert freshness(ds) < 4 days name "fresh"
        assert column price exists name "column"
        assert average(absent) > 1 name "absent"
    }
    check "Past" on orders {
        assert day_over_day(num_rows()) < 50% name "change"
        assert num_rows() within 2 stddev of 3 days name "band"
        assert num_rows(lag 2) > 0 name "before"
        assert mean(average(price), n 3) > 3 name "mean"
        assert coalesce(sum(weight, lag 1), 0) >= 0 name "or"
    }
    check "Rows" on orders {
        assert each row: price > 0.5 name "positive"
        assert 70% of rows: status in ["new", "paid"] name "known"
        assert each row: id in values(id, dataset customers) name "of the day"
        assert each row: country in values(code, dataset countries) name "country"
        assert any {
            assert num_rows() > 5
            assert average(price) > 5
        } name "either"
        assert if null_count(price) > 0 then num_rows() > 4 name "then"
    }
    check "Groups" on orders {
        assert num_rows() > 1 for each status name "groups"
        assert day_over_day(num_rows()) < 90% for 50% of groups by status name "group change"
        assert num_rows() > 0 for each country in ["CH", "DE"] name "listed"
    }
    check "Across" on orders, customers {
        assert rows of orders match customers on (id) name "matched"
        assert query("SELECT count(*) FROM orders JOIN customers USING (id)") > 2 name "joined"
    }
    check "Always" on countries, orders {
        assert num_rows(dataset countries) == 3 name "whole"
        assert query("SELECT count(*) FROM orders") > 3 name "seen from countries"
    }
    profile "Third" {
        from 2024-03-03
        to 2024-03-03
        scale assertion "rows" in "Flat" by 2.0x
        disable assertion "ids" in "Flat"
    }
}
"""


def tables(folder: Path, seed: int) -> list[Any]:
    """Orders and customers with dates, of which the fourth has no orders, and countries without.

    On the last date the rows divide by zero.
    """
    random = Random(seed)
    rows = []
    for on in (FIRST - timedelta(days=1), *DATES):
        for _ in range(0 if on == DATES[3] else random.randrange(2, 9)):
            rows.append(
                {
                    "id": random.randrange(12),
                    "price": random.choice([None, 0.25, 1.5, 4.0, 8.0]),
                    "weight": 0 if on == DATES[4] else random.randrange(1, 6),
                    "status": random.choice([None, "new", "paid", "odd"]),
                    "country": random.choice(["CH", "DE", "XX", None]),
                    "ds": on,
                }
            )
    customers = [
        {"id": random.randrange(12), "ds": on} for on in DATES for _ in range(random.randrange(9))
    ]
    countries = {"code": ["CH", "DE", "FR"]}
    return [
        replace(delta(folder, "orders", pa.Table.from_pylist(rows)), date_column="ds"),
        replace(delta(folder, "customers", pa.Table.from_pylist(customers)), date_column="ds"),
        delta(folder, "countries", pa.table(countries)),
    ]


def on_dates(gate: GateRequest, dates: Sequence[date]) -> list[GateRequest]:
    return [replace(gate, run_key=replace(gate.run_key, date=on)) for on in dates]


def without_run_details(report: GateReport) -> GateReport:
    """All of a report but the run it is of, and in which way values were found."""
    verdicts = tuple(replace(one, origin=None) for one in report.verdicts)
    return replace(report, run_id="", verdicts=verdicts, started_at=NOON, finished_at=NOON)


@pytest.mark.parametrize(
    ("seed", "looked_at"),
    [(1, (DATES[2], DATES[4])), (2, DATES[::2]), *((seed, DATES) for seed in range(2, 6))],
)
@pytest.mark.nightly
def test_every_form_has_the_same_verdict_in_a_range_as_alone(
    spark: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    looked_at: Sequence[date],
) -> None:
    monkeypatch.setattr("dqx_airflow.engine.job._now", lambda: NOON)
    gate = request(tmp_path, EVERY_FORM, tables(tmp_path, seed))
    requests = on_dates(gate, [on for on in DATES if on >= looked_at[0]])
    together = try_gates(requests, lambda _: spark)
    for one, found in zip(requests, together, strict=True):
        if one.run_key.date not in looked_at:
            continue
        alone = try_gates([one], lambda _: spark)[0]
        for verdict, other in zip(
            without_run_details(alone).verdicts, without_run_details(found).verdicts, strict=True
        ):
            assert other == verdict
        assert without_run_details(found) == without_run_details(alone)
    statuses = {verdict.status for report in together for verdict in report.verdicts}
    assert statuses == set(Status)


FILLED = """\
assert average(price) > 0 name "price"
assert day_over_day(sum(weight)) < 500% name "change" severity P2
"""
POSITIVE = """\
suite "Positive" {
    check "All" on orders {
        assert each row: price > 1 name "positive"
    }
}
"""


@pytest.mark.slow
def test_a_range_is_read_once_and_stored_as_one_run_per_date(spark: Any, tmp_path: Path) -> None:
    gate = request(tmp_path, FILLED, tables(tmp_path, 1)[:1])
    more = tuple(GatePart(replace(gate.run_key, date=on)) for on in DATES[1:])
    whole = replace(gate, run_key=replace(gate.run_key, date=DATES[0]), more=more)
    before = jobs_so_far(spark)
    reports = run_gates(whole.parts, lambda _: spark)
    assert jobs_so_far(spark) - before <= 2
    root = gate.results_root
    assert {run.run_id for run in list_runs(root)} == {report.run_id for report in reports}
    for part, report in zip(whole.parts, reports, strict=True):
        assert read_report(root, part.run_key, gate.attempt.id) == report
    # The states of the range are those of each of its dates.
    before = jobs_so_far(spark)
    again = run_gates([on_dates(gate, DATES)[2]], lambda _: spark)[0]
    assert jobs_so_far(spark) == before
    assert without_run_details(again) == without_run_details(reports[2])


def test_suites_over_one_dataset_share_a_scan_and_promote_together(
    spark: Any, run: Run, tmp_path: Path
) -> None:
    orders = tables(tmp_path, 1)[0]
    target = str(tmp_path / "silver")
    gate = request(tmp_path, FILLED, [orders], DATES[0], promote_to=(("orders", target),))
    positive = RunKey("test.gate/Positive", DATES[0], "manual")
    part = GatePart(positive, SourceFile("positive.dql", POSITIVE))
    gate = replace(gate, origin=GateOrigin(job="test.gate"))
    alone = [run(replace(one, promote_to=())) for one in
             replace(gate, more=(part,), recompute=True).parts]  # fmt: skip
    both = replace(gate, more=(part,), recompute=True)
    before = jobs_so_far(spark)
    reports = run_gates(both.parts, lambda _: spark)
    scans = jobs_so_far(spark) - before
    assert scans <= 3  # one pass, and one more for the rows that fail
    assert [report.outcome for report in reports] == [Outcome.PASSED, Outcome.BLOCKED]
    assert [report.job for report in reports] == ["test.gate", "test.gate"]
    assert [verdicts(report) for report in reports] == [verdicts(report) for report in alone]
    assert not Path(target).exists()
    sound = replace(part, suite=SourceFile("positive.dql", POSITIVE.replace("> 1", "> 0")))
    passed = run_gates(replace(gate, more=(sound,)).parts, lambda _: spark)
    promotions = {report.datasets[0].promotion for report in passed}
    assert len(promotions) == 1
    assert None not in promotions


def verdicts(report: GateReport) -> list[Any]:
    return [replace(one, origin=None) for one in report.verdicts]


@pytest.mark.since_spark("4.0", "names the file that cannot be read")
def test_a_file_that_cannot_be_read_fails_its_own_date_alone(spark: Any, tmp_path: Path) -> None:
    rows = [{"price": 2.0, "weight": 3, "note": str(on), "ds": on} for on in DATES[:3]]
    path = tmp_path / "orders"
    for on, row in zip(DATES, rows, strict=False):
        folder = path / f"ds={on}"
        folder.mkdir(parents=True)
        # The second date has a file with another column: what it lacks is reported for it alone.
        named = {key: [row[key]] for key in ("price", "weight", "note")}
        if on == DATES[1]:
            named["remark"] = named.pop("note")
        pq.write_table(pa.table(named), folder / "part.parquet")
    broken = path / f"ds={DATES[2]}" / "part.parquet"
    broken.write_bytes(broken.read_bytes()[:-40] + b"x" * 40)
    orders = DatasetRef("orders", path=str(path), format="parquet", date_column="ds")
    suite = 'assert average(price) > 0 name "price"\nassert column note exists name "note"'
    requests = on_dates(request(tmp_path, suite, [orders]), DATES[:3])
    together = try_gates(requests, lambda _: spark)
    statuses = [{one.name: one.status.value for one in found.verdicts} for found in together]
    assert [found["price"] for found in statuses] == ["passed", "passed", "error"]
    assert [found["note"] for found in statuses[:2]] == ["passed", "failed"]
    alone = [try_gates([one], lambda _: spark)[0] for one in requests]
    assert [verdicts(one) for one in together] == [verdicts(one) for one in alone]


def test_two_datasets_with_one_name_are_an_error(tmp_path: Path) -> None:
    first = request(
        tmp_path, FILLED, [DatasetRef("orders", path="/lake/one", date_column="ds")], DATES[0]
    )
    second = replace(first, datasets=(replace(first.datasets[0], path="/lake/two"),))
    wanted = "named 'orders': one with path '/lake/one', one with path '/lake/two'"
    with pytest.raises(RequestError, match=wanted):
        try_gates([first, second], lambda _: pytest.fail("the session is not needed"))
