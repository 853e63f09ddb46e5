"""`dql shrink`: from the rows of a failed run to a test of the fewest that still fail."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from dqx_airflow import MemoryDatabase, Suite
from dqx_airflow.results.store import ResultsStore
from tests.command_line import dql
from tests.processes import ended

ON = date(2024, 5, 10)
SETTINGS = """
[defaults]
results_root = "results"
[datasets.orders]
path = "orders"
date_column = "ds"
masked = ["mail", "born"]
[datasets.customers]
path = "customers"
"""
CUSTOMERS = [{"name": name} for name in ("ann", "bob", "cy")]


def orders() -> list[dict[str, Any]]:
    chance = random.Random(7)
    rows = [
        {
            "id": f"M{number:03}",
            "customer": chance.choice(["ann", "bob", "cy"]),
            "mail": f"tiger{number}@Shop.org",
            "born": date(1980, 1, 1) + timedelta(days=number),
            "amount": chance.randint(10, 90),
            "ds": ON - timedelta(days=number % 2),
        }
        for number in range(80)
    ]
    rows[20] |= {"customer": "eve", "amount": 4711}
    rows[32] |= {"id": "M060", "amount": None}
    rows[44] |= {"mail": "tiger46@Shop.org"}
    return rows


@pytest.fixture
def lake(here: Path) -> Path:
    Path("dqx.toml").write_text(SETTINGS)
    write_deltalake("orders", pa.Table.from_pylist(orders()))
    write_deltalake("customers", pa.Table.from_pylist(CUSTOMERS))
    fine = [row for row in orders() if row["amount"] and row["amount"] < 100]
    write_deltalake("orders", pa.Table.from_pylist(fine), mode="overwrite")
    return here


def shrink(
    *claims: str,
    code: int = 0,
    arguments: tuple[str, ...] = (),
    version: int | None = 0,
    tables: dict[str, Any] | None = None,
) -> str:
    """The output of the command for a stored run over the first version of the orders."""
    asserted = "\n".join(f'assert {claim} name "claim {n}"' for n, claim in enumerate(claims))
    text = f'suite "Orders" {{ check "All" on orders {{\n{asserted}\n}} }}'
    Path("orders.dql").write_text(text)
    tables = tables or {"orders": orders(), "customers": CUSTOMERS}
    db = MemoryDatabase(tables, date_columns={"orders": "ds"})
    report = Suite.load("orders.dql").run(db, ON).report
    read = tuple(
        replace(one, location=str(Path(one.name).absolute()), version=version)
        for one in report.datasets
    )
    ResultsStore("results").write(replace(report, datasets=read))
    done = dql("shrink", "latest", "--results-root", "results", *arguments)
    assert done.returncode == code, done.output
    return done.output


def rows_in(text: str) -> dict[str, str]:
    """The rows of the tables in a test, by dataset, as they are written."""
    return {
        name: ", ".join(re.findall(r"^ {16}(\S.*),$", table, re.MULTILINE))
        for name, table in re.findall(r'"(\w+)": Table.typed\((.*?)\n {8}\),', text, re.DOTALL)
    }


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("claim", "rows"),
    [
        ("maximum(amount) <= 100", "(4711, datetime.date(2024, 5, 10))"),
        ("null_count(amount) == 0", "(None, datetime.date(2024, 5, 10))"),
        ("unique(id)", '*[("M060", datetime.date(2024, 5, 10))] * 2'),
        (
            "each row: customer in values(name, dataset customers)",
            '("eve", datetime.date(2024, 5, 10))',
        ),
        ("unique(mail)", '*[("aaaaa11@Aaaa.aaa", datetime.date(2024, 5, 10))] * 2'),
        ("num_rows() between 2 and 3", "*[(datetime.date(2024, 5, 10),)] * 40"),
    ],
)
def test_the_test_has_only_the_rows_and_columns_at_fault(lake: Path, claim: str, rows: str) -> None:
    text = shrink(claim)
    assert rows_in(text)["orders"] == rows
    assert "tiger" not in text


FRANCE = [*["CH"] * 9, *["DE"] * 8, *["FR"] * 2]
INCIDENTS: dict[str, tuple[str, list[Any], dict[str, str]]] = {
    "too few rows of a group": (
        'num_rows() >= 5 for each x in ["CH", "DE", "FR"]',
        FRANCE,
        {
            'num_rows() >= 5 for each x in ["CH", "DE"]': "passed",
            'num_rows() >= 2 for each x in ["CH", "DE", "FR"]': "passed",
            "num_rows() >= 5 for 60% of groups by x": "passed",
            'num_rows() >= 3 for each x in ["CH", "DE", "FR"]': "failed",
            'num_rows() >= 5 for each x in ["DE", "FR"]': "failed",
            "num_rows() >= 5 for each x": "failed",
        },
    ),
    "an average that one value moves": (
        "average(x) between 10 and 40",
        [40.37 + 0.01 * number for number in range(53)] + [4711.5],
        {
            "average(x) between 10 and 100": "failed",
            "average(x) between 10 and 127": "failed",
            "average(x) between 10 and 130": "passed",
        },
    ),
    "a percentile": (
        "percentile(x, 0.9) <= 100",
        [*range(160), *range(900, 960)],
        {"percentile(x, 0.9) <= 920": "failed", "percentile(x, 0.9) <= 960": "passed"},
    ),
    "a sum": (
        "sum(x) <= 1000",
        [*range(30), 5000],
        {"sum(x) <= 5400": "failed", "sum(x) <= 5500": "passed"},
    ),
    "a share of NULL": (
        "null_count(x) / num_rows() < 5%",
        [*range(180), *[None] * 20],
        {
            "null_count(x) / num_rows() < 9.9%": "failed",
            "null_count(x) / num_rows() < 11%": "passed",
        },
    ),
    "rows that violate": (
        "each row: x <= 100",
        [*range(90), 150, 200, 4000],
        {"each row: x <= 3000": "failed", "each row: x <= 4000": "passed"},
    ),
    "too many rows": (
        "num_rows() <= 30",
        list(range(60)),
        {"num_rows() <= 59": "failed", "num_rows() <= 60": "passed"},
    ),
    "a ratio of two metrics": (
        "maximum(x) / average(x) <= 10",
        [*[20] * 60, 4000],
        {"maximum(x) / average(x) <= 40": "failed", "maximum(x) / average(x) <= 50": "passed"},
    ),
    "a value that repeats": (
        "uniqueness(x) >= 95%",
        [*range(80), *[500] * 20],
        {"uniqueness(x) >= 81%": "failed", "uniqueness(x) >= 79%": "passed"},
    ),
    "a spread": (
        "sqrt(variance(x)) < 20",
        [*range(40), 900, -700],
        {"sqrt(variance(x)) < 150": "failed", "sqrt(variance(x)) < 200": "passed"},
    ),
    "a share of the groups": (
        "num_rows() >= 5 for 90% of groups by x",
        FRANCE,
        {
            "num_rows() >= 5 for 70% of groups by x": "failed",
            "num_rows() >= 5 for 60% of groups by x": "passed",
        },
    ),
}


@pytest.mark.few(4)
@pytest.mark.parametrize("incident", INCIDENTS)
def test_other_rules_judge_the_test_as_the_day(here: Path, incident: str) -> None:
    """A rule that lets the incident pass makes the test fail, and no other one does."""
    claim, values, others = INCIDENTS[incident]
    rows = [{"id": number, "x": value, "ds": ON} for number, value in enumerate(values)]
    random.Random(3).shuffle(rows)
    write_deltalake("orders", pa.Table.from_pylist(rows))
    Path("dqx.toml").write_text(SETTINGS.partition("masked")[0])
    text = shrink(claim, tables={"orders": rows})
    given: dict[str, Any] = {}

    def dql_suite(path: str, on: date, *, date_columns: Any, **tables: Any) -> list[Any]:
        given.update(tables)
        return []

    code: dict[str, Any] = {}
    exec(text, code)
    (test,) = (one for name, one in code.items() if name.startswith("test_"))
    with pytest.raises(KeyError):
        test(dql_suite)
    assert [field.name for field in given["orders"].fields if field.name == "id"] == []
    for tables in ({"orders": rows}, given):
        db = MemoryDatabase(tables, date_columns={"orders": "ds"})
        assert {other: status(db, other) for other in (claim, *others)} == {
            claim: "failed",
            **others,
        }


def status(db: MemoryDatabase, claim: str) -> str:
    text = f'suite "S" {{ check "C" on orders {{ assert {claim} name "it" }} }}'
    (result,) = (one for one in Suite.from_string(text).run(db, ON) if one.name == "it")
    return result.status.value


def test_of_many_rows_some_stand_for_others(here: Path) -> None:
    rows = [{"x": number, "ds": ON} for number in range(700)]
    write_deltalake("orders", pa.Table.from_pylist(rows))
    Path("dqx.toml").write_text(SETTINGS.partition("masked")[0])
    text = shrink("each row: x < 100", tables={"orders": rows})
    assert "Some rows are copies instead of others" in text
    assert sum(map(int, re.findall(r"\] \* (\d+)", rows_in(text)["orders"]))) == 600


def test_the_same_run_gives_the_same_test(lake: Path) -> None:
    text = shrink("unique(mail)")
    again = dql("shrink", "latest", "--results-root", "results")
    assert again.output == text


def test_a_dataset_that_the_assertion_does_not_read_has_one_empty_row(lake: Path) -> None:
    text = shrink("maximum(amount) <= 100", "each row: customer in values(name, dataset customers)")
    assert "            [()],  # a row that the assertion does not read" in text


def test_the_worst_failure_is_chosen_unless_one_is_named(lake: Path) -> None:
    claims = "unique(id) severity P2", "null_count(amount) == 0 severity P0"
    assert "claim 1 of run" in shrink(*claims)
    assert "claim 0 of run" in shrink(*claims, arguments=("--assertion", "claim 0"))


@pytest.mark.slow
def test_pytest_runs_what_was_written_and_finds_a_weaker_rule(lake: Path) -> None:
    output = lake / "tests" / "test_incident.py"
    shrink("maximum(amount) <= 100", arguments=("--output", str(output)))
    text = output.read_text()
    assert "maximum(amount) is 4711, expected <= 100" in text
    ruff = [sys.executable, "-m", "ruff", "format", "--isolated", "--diff", str(output)]
    assert ended(ruff).stdout == ""

    def run() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
        return ended(command, cwd=lake)

    assert "1 passed" in run().stdout
    Path("orders.dql").write_text(Path("orders.dql").read_text().replace("100", "9999"))
    assert "1 failed" in run().stdout
    output.write_text(text.replace(') == "failed"', "").replace('== "failed"', '== "passed"'))
    assert "1 passed" in run().stdout


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("claims", "arguments", "problem"),
    [
        (["num_rows() > 100 * num_rows(lag 1)"], [], "compares 2024-05-10 with other days"),
        (["num_rows() > 1"], [], "has no failed assertion of a suite"),
        (["maximum(amount) < 9"], ["--assertion", "other"], "no failed assertion other"),
        (["each row: born > 2020-01-01"], [], "cannot be replaced"),
        (['each row: mail != "tiger6@Shop.org"'], [], "depends on masked values"),
        (["freshness(ds) < 2 days"], [], "depends on the time"),
        (["maximum(amount) < 9"], ["--suite", "other.dql"], "no .dql file found"),
    ],
)
def test_what_cannot_be_a_test_is_an_error_with_a_hint(
    lake: Path, claims: list[str], arguments: list[str], problem: str
) -> None:
    output = shrink(*claims, code=2, arguments=tuple(arguments))
    assert problem in output
    assert "help: " in output


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("location", "problem"),
    [
        ("orders?date_column=ds", "cannot be read in version 7"),
        ("large.parquet?format=parquet&date_column=ds", "has 100,001 rows on 2024-05-10"),
        ("empty.parquet?format=parquet&date_column=ds", "has 0 rows on 2024-05-10"),
        ("table:lake.orders", "only be read with Spark"),
    ],
)
def test_rows_that_cannot_be_read_in_memory_are_an_error_with_a_hint(
    lake: Path, location: str, problem: str
) -> None:
    (row, *_) = orders()
    for name, rows in (("large", [row] * 100_001), ("empty", [row | {"ds": date(2020, 1, 1)}])):
        pq.write_table(pa.Table.from_pylist(rows), f"{name}.parquet")
    arguments = ("--dataset", f"orders={location}")
    output = shrink("maximum(amount) < 9", code=2, arguments=arguments, version=7)
    assert problem in output
    assert "help: " in output
