"""`-q` prints only outcomes, and `-v` more than usual, in every command that prints a report."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.cli.reports import write_reports
from dqx_airflow.datasets.dqx_toml import RunFormat
from dqx_airflow.diagnostics.verdicts import headline
from dqx_airflow.values import Outcome
from tests.cli.test_output import COMMANDS
from tests.command_line import dql
from tests.results.samples import PASSED, RUN_KEY, sample_report

BLOCKED = sample_report(1)
GOOD = sample_report(
    2, run_key=replace(RUN_KEY, date=date(2024, 3, 3)), outcome=Outcome.PASSED, verdicts=(PASSED,)
)


def printed(**options: bool) -> str:
    dates = [BLOCKED.run_key.date, GOOD.run_key.date]
    with StringIO() as text:
        write_reports([BLOCKED, GOOD], RunFormat.TEXT, text, "store", dates=dates, **options)
        return text.getvalue()


def test_quiet_is_one_line_of_each_report() -> None:
    assert printed(is_quiet=True).splitlines() == [headline(BLOCKED), headline(GOOD)]


def test_verbose_adds_the_assertions_of_the_dates_that_passed() -> None:
    usual, verbose = printed(), printed(is_verbose=True)
    row = " ".join((PASSED.check, PASSED.name))
    assert " ".join(usual.split()).count(row) + 1 == " ".join(verbose.split()).count(row)
    assert headline(GOOD) in verbose


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-q", "-v"], "error: --quiet and --verbose contradict each other"),
        (["-q", "-f", "json"], "error: --quiet is for the format text, and the format is json"),
        (["--verbose", "-f", "junit"], "error: --verbose is for the format text"),
    ],
)
def test_what_contradicts_is_an_error_before_spark_starts(
    tmp_path: Path, monkeypatch: Any, options: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("orders.dql").write_text(
        'suite "Orders" { check "C" on orders { assert num_rows() > 0 name "rows" } }'
    )
    Path("orders.csv").write_text("id\n1\n")
    dataset = "orders=orders.csv?format=csv"
    done = dql("run", "orders.dql", "--dataset", dataset, "--date", "2024-03-02", *options)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.parametrize("call", ["run", "contract test", "mutate", "tune backtest"])
def test_each_command_with_a_report_has_both(call: str) -> None:
    flags = {flag for each in COMMANDS[call].params for flag in each.opts}
    assert {"-q", "--quiet", "-v", "--verbose"} <= flags


@pytest.mark.parametrize("call", [("mutate",), ("tune", "backtest")], ids=" ".join)
def test_they_are_for_text(call: tuple[str, ...]) -> None:
    done = dql(*call, "orders.dql", "-q", "-f", "json")
    assert done.returncode == 2
    assert "--quiet is for the format text, and the format is json" in done.stderr
