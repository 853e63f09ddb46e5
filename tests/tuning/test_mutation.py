"""`dql mutate`: which planted faults a suite notices, and what it says of those that it misses."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from dqx_airflow import MemoryDatabase, Suite
from dqx_airflow.plan.selection import checked_suite
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.tuning import day_rows, mutation, planted_faults
from dqx_airflow.values import Attempt, DatasetRef, GateRequest, RunKey, SourceFile
from tests.command_line import dql

FIRST, DAYS = date(2024, 5, 1), 10
LAST = FIRST + timedelta(days=DAYS - 1)
LAST_MOMENT = datetime(2024, 5, 10, 23, 59, 59, 999_999, tzinfo=timezone.utc)


def orders(days: int = DAYS) -> list[dict[str, Any]]:
    chance = random.Random(5)
    return [
        {
            "id": f"M{number:03}-{place}",
            "customer": chance.choice(["ann", "bob", "cy"]),
            "status": chance.choice(["open", "paid"]),
            "amount": round(chance.uniform(10, 90), 2),
            "price": Decimal(chance.randint(101, 999)) / 100,
            "secret": f"s{chance.random()}",
            "paid_on": FIRST + timedelta(days=number),
            "updated_at": datetime(2024, 5, 1 + number, 8, place, tzinfo=timezone.utc),
            "ds": FIRST + timedelta(days=number),
        }
        for number in range(days)
        for place in range(30 + chance.randint(0, 2))
    ]


KNOWN_CUSTOMERS = "each row: customer in values(customer, dataset customers)"
CUSTOMERS = [{"customer": name} for name in ("ann", "bob", "cy")]


@pytest.fixture
def lake(here: Path) -> Path:
    Path("dqx.toml").touch()
    pq.write_table(pa.Table.from_pylist(orders()), "orders.parquet")
    pq.write_table(pa.Table.from_pylist(CUSTOMERS), "customers.parquet")
    return here


def suite(*claims: str) -> str:
    asserted = "\n".join(f'assert {claim} name "claim {n}"' for n, claim in enumerate(claims))
    return f'suite "Orders" {{ check "All" on orders {{\n{asserted}\n}} }}'


def mutate(text: str, *arguments: str, code: int = 0) -> str:
    Path("orders.dql").write_text(text)
    data = ["orders=orders.parquet?format=parquet&date_column=ds&keys=id&masked=secret"]
    data += ["customers=customers.parquet?format=parquet"] if "customers" in text else []
    datasets = [part for one in data for part in ("--dataset", one)]
    done = dql("mutate", "orders.dql", *datasets, "--date", LAST.isoformat(), *arguments)
    assert done.returncode == code, done.output
    return done.output


def faults(text: str, *arguments: str) -> dict[str, dict[str, Any]]:
    listed = json.loads(mutate(text, "--format", "json", *arguments))["faults"]
    return {fault["text"]: fault for fault in listed}


NOTICED = [
    ("num_rows() >= 28", {"30% of the rows are lost"}),
    ("num_rows() <= 32", {"10% of the rows are there twice"}),
    ('num_rows() > 0 for each status in ["open", "paid"]', {"the rows with status paid are lost"}),
    ("sum(amount) != sum(amount, lag 1)", {"the rows are the rows of the day before"}),
    ("unique(id)", {"10% of the rows have the id of the row before"}),
    (KNOWN_CUSTOMERS, {"10% of customer are not in customers.customer"}),
    ("maximum(amount) < 100", {"amount is multiplied by 100"}),
    ("minimum(amount) > 5", {"amount is divided by 1000"}),
    ('each row: status in ["open", "paid"]', {"customer and status are swapped"}),
    ('each row: status in ["open", "paid"]', {"10% of status become a new value"}),
    ("column amount type double", {"amount becomes a string"}),
    ("each row: paid_on == ds", {"paid_on is a day earlier"}),
    ("num_rows() >= 30", {"the last 10% of the rows by updated_at are not there yet"}),
    ("null_count(amount) == 0", {"10% of amount become NULL"}),
    ('each row: trim(id) != ""', {"10% of id become blank"}),
    ("column price exists", {"the column price is lost"}),
    ("column_count() == 9", {"a column is added"}),
    ("each row: amount > 0", {"amount has the other sign"}),
    ("maximum(amount) <= 90", {"amount is multiplied by 1.1"}),
    ("min_length(id) >= 6", {"id is cut off after 4 characters"}),
    ('each row: customer in ["ann", "bob", "cy"]', {"customer is in upper case"}),
    ("each row: trim(id) == id", {"id ends with a space"}),
    ("unique_count(status) == 2", {"status has one value in all rows"}),
    ("each row: hour(updated_at) == 8", {"updated_at is 2 hours later"}),
]


def test_an_assertion_notices_the_faults_that_it_is_about(lake: Path) -> None:
    done = faults(suite(*(claim for claim, _ in NOTICED)))
    missed = [
        (claim, text)
        for number, (claim, texts) in enumerate(NOTICED)
        for text in texts
        if f"claim {number}" not in done[text]["noticed_by"]
    ]
    assert missed == []
    (renamed,) = (text for text in done if " is called " in text)
    assert re.fullmatch(r"the column (\w+) is called \1_new", renamed)


@pytest.mark.more
def test_each_suggested_line_holds_on_the_past_days_and_notices_its_fault(lake: Path) -> None:
    missed = {
        text: one for text, one in faults(suite(KNOWN_CUSTOMERS)).items() if not one["noticed_by"]
    }
    lines = {text: one["line"] for text, one in missed.items() if one["line"]}
    assert len(lines) > 20, missed
    assert lines["price becomes a string"] == "assert column price type decimal(3,2)"
    claims = list(dict.fromkeys(line.removeprefix("assert ") for line in lines.values()))
    db = MemoryDatabase({"orders": orders(), "customers": CUSTOMERS}, date_columns={"orders": "ds"})
    results = Suite.from_string(suite(*claims)).run_dates(db, f"{FIRST}..{LAST}")
    failed = [one.name for of in results.values() for one in of if one.status == "failed"]
    assert failed == []
    after = faults(suite(KNOWN_CUSTOMERS, *claims))
    assert [text for text in lines if not after[text]["noticed_by"]] == []


@pytest.mark.more
def test_the_same_seed_hits_the_same_rows(lake: Path) -> None:
    text = suite("num_rows() > 0")
    first = mutate(text, "--format", "json")
    assert mutate(text, "--format", "json") == first
    assert mutate(text, "--format", "json", "--seed", "1") != first


@pytest.mark.more
def test_what_only_warns_is_said_and_does_not_count(lake: Path) -> None:
    fault = faults(suite("num_rows() >= 28 severity P3"))["30% of the rows are lost"]
    assert (fault["noticed_by"], fault["warned_by"]) == ([], ["claim 0"])
    assert "    only warns: claim 0" in mutate(suite("num_rows() >= 28 severity P3"))


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        ('sql("sum(amount)") > 0', "`sql` needs Spark"),
        ("num_rows() > 1000", "it fails without a fault"),
        ("num_rows(lag 60) > 0", "no data of orders"),
    ],
)
def test_what_cannot_be_judged_is_said_and_notices_nothing(
    lake: Path, claim: str, reason: str
) -> None:
    done = json.loads(mutate(suite(claim, "num_rows() > 0"), "--format", "json"))
    assert reason in done["not_judged"]["claim 0"]
    assert [fault for fault in done["faults"] if "claim 0" in fault["noticed_by"]] == []


@pytest.mark.more
def test_a_score_below_the_least_one_ends_with_1(lake: Path) -> None:
    text = suite("num_rows() between 28 and 32")
    score = 100 * json.loads(mutate(text, "--format", "json"))["score"]
    mutate(text, "--min", f"{score - 1:.2f}%")
    assert "faults block (" in mutate(
        text, "--min", f"{score + 1:.2f}%", "--format", "summary", code=1
    )


@pytest.mark.more
def test_quiet_is_the_score_and_verbose_lists_what_blocks(lake: Path) -> None:
    text = suite("num_rows() >= 28")
    usual, quiet, verbose = mutate(text), mutate(text, "-q"), mutate(text, "-v")
    assert [quiet] == [
        line for line in usual.splitlines(keepends=True) if " faults block (" in line
    ]
    added = "\nblocked: orders: 30% of the rows are lost (lost rows)\n    by claim 0\n"
    assert added not in usual
    assert added in verbose


@pytest.mark.more
def test_junit_has_a_failure_for_each_missed_fault(lake: Path) -> None:
    text = suite("num_rows() >= 28")
    root = ET.fromstring(mutate(text, "--format", "junit"))
    missed = {name for name, fault in faults(text).items() if not fault["noticed_by"]}
    failed = {
        case.get("name") for case in root.iter("testcase") if case.find("failure") is not None
    }
    assert failed == {f"orders: {name}" for name in missed}
    assert root.get("failures") == str(len(missed))


def test_no_value_of_a_masked_column_is_shown(lake: Path) -> None:
    rows = [{**row, "secret": "tiger" if row["amount"] > 50 else "lion"} for row in orders()]
    pq.write_table(pa.Table.from_pylist(rows), "orders.parquet")
    output = mutate(suite("num_rows() > 0"))
    assert "the rows with secret *** are lost" in output
    assert not re.search("tiger|lion", output)


def test_a_large_day_is_a_sample(lake: Path) -> None:
    assert f"orders on {LAST}: 20 of 3" in mutate(suite("null_count(id) == 0"), "--rows", "20")


@pytest.mark.more
def test_what_a_sample_says_is_said_to_be_of_a_sample_and_limits_no_number_of_rows(
    lake: Path,
) -> None:
    text = suite("null_count(id) == 0", "num_rows() >= 28")
    output = mutate(text, "--rows", "20")
    assert "claim 1: it fails without a fault, on a sample: --rows reads more" in output
    assert (
        'assert each row: status in ["open", "paid"]  # holds on the sample of the good day'
        in output
    )
    assert not re.search(r"assert (num_rows|unique_count|sum)\(.*[<>]=", output)
    assert "sample" not in mutate(text)


def test_of_a_sample_without_dates_no_line_needs_another_day(lake: Path) -> None:
    Path("orders.dql").write_text(suite("null_count(id) == 0"))
    undated = ["--dataset", "orders=orders.parquet?format=parquet", "--date", LAST.isoformat()]
    done = dql("mutate", "orders.dql", *undated, "--rows", "20")
    assert "missed: orders: 30% of the rows are lost" in done.output
    assert done.returncode == 0, done.output
    assert "lag" not in done.output


@pytest.mark.more
def test_the_fine_day_is_the_last_one_that_passed_in_the_version_of_then(lake: Path) -> None:
    text = suite("num_rows() >= 28", "null_count(amount) == 0")
    Path("orders.dql").write_text(text)
    Path("dqx.toml").write_text(
        '[defaults]\nresults_root = "results"\n'
        '[datasets.orders]\npath = "orders"\ndate_column = "ds"\n'
    )
    schema = pa.Table.from_pylist(orders()).schema
    for version, rows in enumerate((orders(), [{**row, "amount": None} for row in orders()])):
        table = pa.Table.from_pylist(rows, schema=schema)
        write_deltalake("orders", table, mode="overwrite")
        db = MemoryDatabase({"orders": table}, date_columns={"orders": "ds"})
        on = LAST - timedelta(days=1 - version)
        report = Suite.from_string(text).run(db, on).report
        assert report.outcome == ("blocked" if version else "passed")
        read = replace(report.datasets[0], location=str(lake / "orders"), version=version)
        ResultsStore("results").write(replace(report, datasets=(read,)))
    done = dql("mutate", "orders.dql", "--format", "json")
    assert done.returncode == 0, done.output
    found = json.loads(done.output)
    assert found["date"] == (LAST - timedelta(days=1)).isoformat()
    noticed = {fault["text"] for fault in found["faults"] if fault["noticed_by"]}
    assert "10% of amount become NULL" in noticed


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "no run of Orders that passed"),
        (
            ["--date", LAST.isoformat(), "--dataset", "orders=table:lake.orders"],
            "only be read with Spark: it is not a path",
        ),
        (
            [
                "--date",
                LAST.isoformat(),
                "--dataset",
                "orders=o.orc?format=orc&filter=id%20>%20'M'",
            ],
            "only be read with Spark: it has a filter, and its format is orc",
        ),
        (["--date", f"{FIRST}..{LAST}"], "is not a day"),
        (["--date", "2025-05-09"], "no assertion of Orders passes"),
    ],
)
def test_what_cannot_be_mutated_is_an_error_with_a_hint(
    lake: Path, arguments: list[str], problem: str
) -> None:
    Path("orders.dql").write_text(suite("num_rows() > 0"))
    Path("dqx.toml").write_text(
        '[datasets.orders]\npath = "orders.parquet"\nformat = "parquet"\ndate_column = "ds"\n'
    )
    done = dql("mutate", "orders.dql", *arguments)
    assert done.returncode == 2
    assert problem in done.output
    assert "help: " in done.output


def test_a_value_that_dql_cannot_write_is_in_no_line(lake: Path) -> None:
    marks = ["\0", "a"] * 50
    table = pa.table({"id": range(100), "mark": marks, "ds": [LAST] * 100})
    pq.write_table(table, "orders.parquet")
    output = mutate(suite("num_rows() > 0"))
    assert "missed: orders: 10% of mark become a new value" in output
    assert "\0" not in output


@pytest.mark.slow
@pytest.mark.spark
def test_spark_judges_all_rows_as_memory_does_and_what_only_spark_can(
    lake: Path, spark: Any
) -> None:
    """SQL, a dataset with a filter, which leaves the day as it is, and all rows of a day of which
    only a sample is in memory."""
    from dqx_airflow.engine.faults import SparkJudge, read_days

    columns = ["id", "customer", "amount", "updated_at", "ds"]
    pq.write_table(pa.Table.from_pylist(orders()).select(columns), "orders.parquet")
    claims = [
        "num_rows() >= 30",
        "unique(id)",
        KNOWN_CUSTOMERS,
        "minimum(amount) > 5",
        "column amount type double",
        'num_rows() > 0 for each customer in ["ann", "bob", "cy"]',
        "sum(amount) != sum(amount, lag 1)",
    ]
    in_memory = faults(suite(*claims))
    of_spark = ('sql("max(amount)") < 100', 'query("select count(*) from orders") >= 28')
    source = SourceFile("orders.dql", suite(*claims, *of_spark))
    refs = (
        DatasetRef(
            "orders",
            path=str(lake / "orders.parquet"),
            format="parquet",
            date_column="ds",
            keys=("id",),
            filter="amount > 0",
        ),
        DatasetRef("customers", path=str(lake / "customers.parquet"), format="parquet"),
    )
    request = GateRequest(RunKey("Orders", LAST, "test"), Attempt(1, ""), source, refs, "")
    data = {ref.name: read_days(spark, ref, LAST, days=DAYS, most=20, seed=0) for ref in refs}
    now = datetime(2024, 5, 11, tzinfo=timezone.utc)
    done = mutation.mutate(SparkJudge(request, data, now, spark), checked_suite(request))
    assert done.not_judged == {}
    assert done.rows["orders"] == "20 of 31 rows, all of which are evaluated"
    assert {fault.text for fault in done.faults} == {*in_memory}
    for fault in done.faults:
        known = [name for name in fault.noticed_by if name not in ("claim 7", "claim 8")]
        assert (fault.text, known) == (fault.text, in_memory[fault.text]["noticed_by"])
        assert "claim 7" in fault.noticed_by or fault.text != "amount is multiplied by 100"
        assert "claim 8" in fault.noticed_by or fault.kind != "lost rows"


SUITES = {
    "volumes and keys": ["num_rows() >= 28", "unique(id)", "sum(amount) != sum(amount, lag 1)"],
    "values": [
        "each row: amount > 0",
        "maximum(price) < 10",
        "average(units) between 1 and 90000",
        'each row: status in ["open", "paid"]',
        "each row: trim(id) == id",
        "each row: hour(updated_at) == 8 severity P3",
    ],
    "columns and moments": [
        "column price type decimal(5,2)",
        "column_count() == 10",
        "null_count(units) / num_rows() < 30%",
        "each row: date(updated_at) <= ds",
        "maximum(paid_at) < minimum(updated_at)",
        "stddev(ratio) < 0.4",
    ],
    "groups, shares and other days": [
        "num_rows() >= 60 for each status",
        "percentile(amount, 0.9) < 88",
        "entropy(status) > 0.6",
        "psi(amount, lag 1) < 0.3",
        "day_over_day(sum(amount)) < 20%",
        "95% of rows: ratio >= 0",
        "uniqueness([id, status]) == 100%",
    ],
}


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.parametrize("name", SUITES)
def test_memory_and_spark_have_the_same_score(lake: Path, spark: Any, name: str) -> None:
    """Rows of the same time, values that overflow, rounded decimals, NULL, and 190 rows a day."""
    from dqx_airflow.engine.faults import SparkJudge
    from dqx_airflow.engine.faults import read_days as read_with_spark

    chance = random.Random(11)
    rows = [
        {
            "id": f"M{number:03}-{place}",
            "status": chance.choice(["open", "paid"]),
            "amount": round(chance.uniform(10, 90), 2),
            "price": Decimal(chance.randint(101, 999)) / 100,
            "units": chance.choice([None, chance.randint(1, 10**5), 2**31 - 1, 2**62]),
            "ratio": chance.choice([None, -0.0, 1 / 3, chance.random()]),
            "is_new": chance.choice([True, False, None]),
            "paid_at": datetime(2024, 4, 30, 8, place % 60),
            "updated_at": datetime(2024, 5, 1 + number, 8, place % 7, tzinfo=timezone.utc),
            "ds": FIRST + timedelta(days=number),
        }
        for number in range(3)
        for place in range(190)
    ]
    pq.write_table(pa.Table.from_pylist(rows), "orders.parquet")
    last = FIRST + timedelta(days=2)
    source = SourceFile("orders.dql", suite(*SUITES[name]))
    ref = DatasetRef(
        "orders",
        path=str(lake / "orders.parquet"),
        format="parquet",
        date_column="ds",
        keys=("id",),
    )
    request = GateRequest(RunKey("Orders", last, "test"), Attempt(1, ""), source, (ref,), "")
    now = datetime(2024, 5, 11, tzinfo=timezone.utc)
    checked = checked_suite(request)
    of_memory = {"orders": day_rows.read_days(ref, last, days=2, most=1000)}
    of_spark = {"orders": read_with_spark(spark, ref, last, days=2, most=1000, seed=0)}
    in_memory = mutation.mutate(mutation.MemoryJudge(request, of_memory, now), checked)
    in_spark = mutation.mutate(SparkJudge(request, of_spark, now, spark), checked)
    assert len(in_memory.faults) > 50
    assert dict.fromkeys(in_memory.not_judged) == dict.fromkeys(in_spark.not_judged)
    assert [_noticed(one) for one in in_memory.faults] == [_noticed(one) for one in in_spark.faults]
    assert in_memory.score == in_spark.score


def _noticed(fault: planted_faults.Fault) -> tuple[Any, ...]:
    return fault.text, fault.rows, fault.noticed_by, fault.warned_by


def test_memory_and_spark_hit_the_same_rows(spark: Any) -> None:
    """Rows are chosen by their values, so that a score does not depend on the engine."""
    moment = datetime(2024, 5, 1, 8, 30, 15, 250_000)
    chance = random.Random(7)
    columns = {
        "id bigint": [None, 0, -5, 2**63 - 1, 42],
        "small tinyint": [1, None, -128, 127, 0],
        "name string": ["a|b", "", None, "zürich", "x'y"],
        "day date": [date(1, 1, 1), date(9999, 12, 31), None, date(1969, 12, 31), FIRST],
        "is_paid boolean": [True, False, None, True, False],
        "amount double": [0.1, -0.5, float("nan"), 1e300, None],
        "ratio float": [0.1, None, 3.3, -7.25, float("inf")],
        "price decimal(12,2)": [Decimal("9.99"), Decimal("-0.05"), None, Decimal(0), Decimal(3)],
        "at timestamp": [moment.replace(tzinfo=timezone.utc), None, *[LAST_MOMENT] * 3],
        "local timestamp_ntz": [moment, None, moment.replace(year=1960), moment, moment],
    }
    types = {text.split()[0]: text.split()[1] for text in columns}
    rows = [tuple(values[n] for values in columns.values()) for n in range(5)]
    rows += [tuple(chance.choice(values) for values in columns.values()) for _ in range(40)]
    frame = spark.createDataFrame(rows, ", ".join(columns))
    hashes = planted_faults.hash_sql("0 it's", types)
    in_spark = [row[0] for row in frame.selectExpr(hashes).collect()]
    marks = [planted_faults.marks_of(row, types.values()) for row in rows]
    assert [planted_faults.hash_of("0 it's", mark) for mark in marks] == in_spark
    assert len({*in_spark}) > 40


@pytest.mark.more
def test_rows_of_one_time_are_late_together(lake: Path) -> None:
    """The last tenth by time ends between two times, as `updated_at >= ...` does in Spark."""
    made = orders()
    for row in made:
        row["updated_at"] = row["updated_at"].replace(minute=row["updated_at"].minute // 10)
    pq.write_table(pa.Table.from_pylist(made), "orders.parquet")
    newest = [row for row in made if row["ds"] == LAST and row["updated_at"].minute >= 2]
    rows = len([row for row in made if row["ds"] == LAST])
    assert len(newest) > round(0.1 * rows)
    left = rows - len(newest)
    noticed = faults(suite(f"num_rows() == {rows}", f"num_rows() >= {left}"))
    late = "the last 10% of the rows by updated_at are not there yet"
    assert noticed[late]["noticed_by"] == ["claim 0"]
    assert faults(suite(f"num_rows() > {left}"))[late]["noticed_by"] == ["claim 0"]
