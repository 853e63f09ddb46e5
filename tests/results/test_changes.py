"""What changed between the last good and the first bad run of a slice, in words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.results.incidents import stored_incidents
from dqx_airflow.results.query import RunsWanted, StoredResults
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.results.what_changed import changes_before, is_good_before, what_changed
from dqx_airflow.values import (
    DatasetField,
    DatasetSnapshot,
    FailingRow,
    GateReport,
    MetricResult,
    Outcome,
    SourceDigest,
    Status,
    Verdict,
)
from dqx_airflow.values.report import Arrival
from tests.results.samples import FAILED, PASSED, RUN_KEY, SNAPSHOT, sample_report

AT = datetime(2024, 2, 29, 5, tzinfo=timezone.utc)
BROUGHT, SEGMENTS = "What brought the rows", "Where the failing rows are"
CONTENT, SINCE = "First bad and last good content", "What else changed since 2024-02-28"
BARE = replace(FAILED, failing_rows=(), profiles=())


def bad_report(**changes: Any) -> GateReport:
    return replace(sample_report(verdicts=(PASSED, BARE), spark_version="4.1.0"), **changes)


def good_report(**changes: Any) -> GateReport:
    """The run of the day before, in which everything passed."""
    verdicts = (PASSED, replace(BARE, status=Status.PASSED, value=2.0, scaled_value=2.0))
    report = bad_report(
        run_key=replace(RUN_KEY, date=date(2024, 2, 28), scheduler_run="day before"),
        run_id="0000000g-0000-4000-8000-000000000000",
        outcome=Outcome.PASSED,
        verdicts=verdicts,
        datasets=(replace(SNAPSHOT, version=11),),
    )
    return replace(report, **changes)


def lines(topic: str, bad: GateReport, good: GateReport | None) -> list[str]:
    return [*what_changed([bad], good).get(topic, ())]


def with_arrivals(*arrivals: Arrival, version: int | None = 12) -> GateReport:
    return bad_report(datasets=(replace(SNAPSHOT, version=version, arrivals=arrivals),))


BY_ETL = Arrival("12", AT, "MERGE, userName etl, jobId 7", files=2, rows=40, removed=1)
EARLIER = Arrival("9", AT, "WRITE", files=1)
OTHER = Arrival("10", AT, "WRITE")


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (
            with_arrivals(BY_ETL, OTHER),
            [
                "orders version 12, 2024-02-29 05:00:00 UTC: added 2 files of this date with 40 "
                "rows, removed 1; MERGE, userName etl, jobId 7"
            ],
        ),
        (
            with_arrivals(replace(BY_ETL, files=0, rows=None, at=None)),
            [
                "orders version 12, at an unknown time: added no files of this date, removed 1; "
                "MERGE, userName etl, jobId 7"
            ],
        ),
        (
            with_arrivals(EARLIER),
            [
                "orders version 9, 2024-02-29 05:00:00 UTC: added 1 file of this date; WRITE; "
                "already in the last good version 11"
            ],
        ),
        (
            with_arrivals(Arrival("/o/ds=2024-02-29/a.csv", AT, size=12345), version=None),
            ["orders: /o/ds=2024-02-29/a.csv, 2024-02-29 05:00:00 UTC, 12,345 bytes"],
        ),
        (with_arrivals(), []),
    ],
)
def test_commits_and_files_that_brought_the_rows_are_named(
    report: GateReport, expected: list[str]
) -> None:
    assert lines(BROUGHT, report, good_report()) == expected


def test_commits_that_brought_nothing_are_only_counted() -> None:
    silent = [Arrival(str(number), AT, "WRITE") for number in (22, 21, 20)]
    removing = Arrival("19", AT, "DELETE", removed=3)
    last = replace(BY_ETL, name="18")
    report = with_arrivals(*silent, removing, last, version=22)
    found = [line.partition(",")[0] for line in lines(BROUGHT, report, good_report())]
    assert found == ["orders version 18", "orders version 19", "orders: 3 commits"]
    assert lines(BROUGHT, report, good_report())[-1] == (
        "orders: 3 commits, versions 20 to 22, added no files of this date"
    )


def test_no_commit_was_in_a_good_version_that_is_newer_than_the_bad_one() -> None:
    """As of a table that was written anew, or a good run that came later."""
    good = good_report(datasets=(replace(SNAPSHOT, version=20),))
    (line,) = lines(BROUGHT, with_arrivals(EARLIER), good)
    assert line.endswith("added 1 file of this date; WRITE")


def test_what_all_rows_of_a_slice_share_is_no_segment() -> None:
    report = bad_report(
        verdicts=(sample(rows_with(3, store="basel", till=7)),),
        slice='{"rows": {"store": "basel"}}',
    )
    (line,) = lines(SEGMENTS, report, None)
    assert line.endswith("3 have till = 7")


def test_without_a_good_run_all_known_commits_are_named() -> None:
    found = what_changed([with_arrivals(BY_ETL, OTHER, EARLIER)], None)
    assert [line.partition(",")[0] for line in found[BROUGHT]] == [
        "orders version 12",
        "orders version 9",
        "orders: version 10",
    ]
    assert found[CONTENT] == [
        "orders: first bad version 12, 5 rows of 2024-02-29, last good unknown; s3://lake/orders"
    ]
    assert {*found} == {BROUGHT, CONTENT}


@pytest.mark.parametrize(
    ("fingerprints", "said"),
    [
        (["0123456789", None], ""),
        (["0123456789", "0123456789", "0123456789"], "; 3 bad runs read the same rows"),
        (["0123456789", "abc", "abc"], "; 3 bad runs read 2 different contents"),
    ],
)
def test_contents_are_identified_by_their_fingerprint(
    fingerprints: list[str | None], said: str
) -> None:
    judged = [
        bad_report(datasets=(replace(SNAPSHOT, fingerprint=fingerprint),))
        for fingerprint in fingerprints
    ]
    assert what_changed(judged, good_report())[CONTENT] == [
        "orders: first bad version 12, content 01234567, 5 rows of 2024-02-29, last good "
        f"version 11, 5 rows of 2024-02-28{said}; s3://lake/orders"
    ]


def sample(rows: Sequence[object], reason: str = "amount < 0", **changes: Any) -> Verdict:
    failing = tuple(FailingRow("orders", reason, json.dumps(row)) for row in rows)
    return replace(BARE, failing_rows=failing, **changes)


def rows_with(count: int, **cells: Any) -> list[dict[str, Any]]:
    return [{"id": number, **cells} for number in range(count)]


BY_COUNTRY = {
    "groups": {
        '["orders","num_rows",[],0,["country"]]': [[["XX"], 60], [["CH"], 940]],
        '["orders","num_rows",[],7,["store"]]': [[["basel"], 1]],
    }
}


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (
            [sample([*rows_with(48, country="XX"), *rows_with(2, country="CH")])],
            ['of the 50 stored failing rows 48 have country = "XX"'],
        ),
        (
            [
                sample([*rows_with(48, country="XX"), *rows_with(2, country="CH")]),
                replace(PASSED, measured=json.dumps(BY_COUNTRY)),
            ],
            ['of the 50 stored failing rows 48 have country = "XX", as 60 of all 1,000 rows'],
        ),
        (
            [
                sample([*rows_with(9, country="CH"), *rows_with(1, country="XX")]),
                replace(PASSED, measured=json.dumps(BY_COUNTRY)),
            ],
            [],  # 90% of the failing rows, and 94% of all
        ),
        ([sample([*rows_with(4, country="XX"), *rows_with(5, country="CH")])], ["CH"]),
        ([sample(rows_with(1, country="XX"))], []),
        (
            [sample(rows_with(3, country=None))],
            ["of the 3 stored failing rows 3 have country = NULL"],
        ),
        ([sample(rows_with(3, amount=None), reason="amount is NULL")], []),
        ([sample(rows_with(3, amount=-7))], ["3 have amount = -7"]),
        ([sample(rows_with(3, day="2024-02-29"))], []),  # the date of the slice
        ([sample(rows_with(3, email="***"))], []),
        ([sample([*rows_with(5, home={"city": "***"})])], []),
        ([sample([*rows_with(3, note="CANARY"), {"id": 9, "note": "***"}])], []),
        ([sample(rows_with(3, channel="web"), reason="12 rows")], []),
        ([sample(rows_with(3, channel="web"), groups=4, failed_groups=3)], []),
        ([sample(["no object", 3])], []),
        ([sample(rows_with(3, channel="web"), status=Status.PASSED)], []),
        (
            [sample(rows_with(3, **{f"c{number}": "x" for number in range(30)}))],
            [f"3 have c{number} = " for number in range(5)],
        ),
    ],
)
def test_segments_with_most_of_the_stored_failing_rows_are_said(
    verdicts: list[Verdict], expected: list[str]
) -> None:
    found = lines(SEGMENTS, bad_report(verdicts=tuple(verdicts)), None)
    assert len(found) == len(expected)
    for line, part in zip(found, expected, strict=True):
        assert line.startswith("no_negative_amounts: of the ")
        assert part in line


SHARE = "null_count(amount) / num_rows()"
NULLS = (MetricResult("null_count", "amount", 2), MetricResult("average", "amount", 5.0))


def read(**changes: Any) -> dict[str, Any]:
    return {"datasets": (replace(SNAPSHOT, **changes),)}


def share(value: float) -> dict[str, Any]:
    """An assertion about the share of NULL, which is not said again."""
    judged = replace(PASSED, expression=SHARE, column="amount", scaled_value=value)
    return {"verdicts": (judged, BARE)}


def passed_with(scaled: Any, **changes: Any) -> dict[str, Any]:
    return {"verdicts": (replace(PASSED, scaled_value=scaled, **changes), BARE)}


NO_NULLS = (replace(NULLS[0], value=0),)
PERCENT: dict[str, Any] = {"expected": "< 40%", "threshold": 0.4}
WITH_NEW = (DatasetField("amount", "string"), DatasetField("new", "int"))
WITH_OLD = (*SNAPSHOT.fields, DatasetField("old", "int"))
MORE_SOURCES = (SourceDigest("orders.dql", "abcdef0123"), SourceDigest("lib.dql", "1"))
NOTHING = ["nothing that the reports show"]


@pytest.mark.parametrize(
    ("bad", "good", "expected"),
    [
        ({}, {}, NOTHING),
        (read(rows=3846), read(rows=None), ["rows of orders: 3,846, was unknown"]),
        (read(rows=12480), read(rows=12205), ["rows of orders: 12,480, was 12,205 (+2.3%)"]),
        (read(metrics=NULLS), read(metrics=NO_NULLS), ["NULL share of orders.amount: 40%, was 0%"]),
        (
            read(metrics=NULLS) | share(0.4),
            read(metrics=NO_NULLS) | share(0.0),
            ["NULL share of orders.amount: 40%, was 0%"],
        ),
        (
            read(fields=WITH_NEW),
            read(fields=WITH_OLD),
            [
                "column amount of orders: string, was decimal(18,2)",
                "column new of orders: int, was none",
                "column old of orders: none, was int",
            ],
        ),
        (read(fields=()), {}, NOTHING),
        (
            {"sources": MORE_SOURCES},
            {"sources": (SourceDigest("orders.dql", "0123456789"),)},
            [
                "source orders.dql: content abcdef01, was content 01234567",
                "source lib.dql: content 1, was none",
            ],
        ),
        (
            {"contract": replace(sample_report().contract, version="2.0.0")},
            {},
            ["contract urn:orders: 2.0.0, was 1.2.0"],
        ),
        ({"spark_version": "4.2.0"}, {}, ["Spark: 4.2.0, was 4.1.0"]),
        (
            {"verdicts": (PASSED, replace(BARE, profiles=("sale",)))},
            {"verdicts": (PASSED, replace(BARE, waived_by="waived until 2024-02-28"))},
            [
                "profile sale: active, was none",
                "waiver of no_negative_amounts: none, was waived until 2024-02-28",
            ],
        ),
        (passed_with(90, value=90), {}, ["orders.not_empty: 90, was 5"]),
        (
            passed_with(0.31, **PERCENT),
            passed_with(0.02, **PERCENT),
            ["orders.not_empty: 31%, was 2%"],
        ),
        (passed_with("***"), passed_with("2024-01-01"), NOTHING),
        (passed_with(101), passed_with(100), NOTHING),
    ],
)
def test_what_else_is_not_as_on_the_last_good_day(
    bad: dict[str, Any], good: dict[str, Any], expected: list[str]
) -> None:
    assert lines(SINCE, bad_report(**bad), good_report(**good)) == expected


def test_values_that_moved_most_come_first_and_few_are_listed() -> None:
    named = [replace(PASSED, name=f"v{number}", scaled_value=100 + number) for number in range(20)]
    before = [replace(one, scaled_value=100) for one in named]
    found = lines(SINCE, bad_report(verdicts=tuple(named)), good_report(verdicts=tuple(before)))
    assert found == [f"v{number}: {100 + number}, was 100" for number in range(19, 13, -1)]


@pytest.mark.parametrize(
    ("changes", "is_good"),
    [
        ({}, True),
        ({"outcome": Outcome.WARNED}, True),
        ({"outcome": Outcome.BLOCKED}, False),
        ({"outcome": Outcome.ACCEPTED}, False),
        ({"slice": '{"rows": {"store": "basel"}}'}, False),
        ({"run_key": RUN_KEY}, False),  # the same date, later
        ({"run_key": RUN_KEY, "started_at": AT}, True),
        ({"run_key": replace(RUN_KEY, date=date(2024, 3, 1))}, False),
    ],
)
def test_a_good_run_counts_only_before_and_of_the_same_rows(
    changes: dict[str, Any], is_good: bool
) -> None:
    report = replace(good_report(started_at=bad_report().started_at), **changes)
    assert is_good_before(report, bad_report()) is is_good


def test_the_first_bad_run_is_compared_with_the_last_good_one_of_the_store(tmp_path: Path) -> None:
    store = ResultsStore(str(tmp_path / "store"))
    snapshot = DatasetSnapshot("orders", "/o", "delta", rows=7)
    days = (("p", 26, 1), ("p", 27, 2), ("b", 28, 3), ("b", 29, 5), ("b", 29, 6))
    for number, (letter, day, version) in enumerate(days, start=1):
        is_bad = letter == "b"
        store.write(
            sample_report(
                number,
                attempt=number,
                minutes=number,
                run_key=replace(RUN_KEY, date=date(2024, 2, day), scheduler_run=f"day {day}"),
                datasets=(
                    replace(
                        snapshot, version=version, fingerprint=f"f{version}" if is_bad else None
                    ),
                ),
                outcome=Outcome.BLOCKED if is_bad else Outcome.PASSED,
                verdicts=(PASSED, BARE) if is_bad else (PASSED,),
            )
        )
    results = StoredResults(str(tmp_path / "store"))
    newest, _ = stored_incidents(results, RunsWanted())
    ((gate, found),) = changes_before(results, newest)
    assert gate == "orders_to_silver"
    assert found[CONTENT] == [
        "orders: first bad version 5, content f5, 7 rows of 2024-02-29, last good version 2, "
        "7 rows of 2024-02-27; 2 bad runs read 2 different contents; /o"
    ]
