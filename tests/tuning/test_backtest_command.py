"""`dql tune backtest`: from a store without Spark, and with Spark for days that the store lacks."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.results.stored_labels import Label, write_labels
from dqx_airflow.tuning.proposals import Proposal, ProposedValue
from tests.command_line import dql_prints
from tests.processes import output_of
from tests.tuning.stored_days import SUITE, day, orders, store_days

COUNTS = {0: (20, 0), 1: (20, 2), 2: (9, 0), 3: (4, 0), 4: (6, 0), 5: (4, 0), 7: (20, 0)}
NULLS, ROWS, STABLE = (
    "orders.completeness.email_null",
    "orders.volume.min_rows",
    "orders.volume.stable",
)
PROFILE = 'profile "Quiet" { from 2024-12-03 to 2024-12-04 scale tag "volume" by 3.0x }'


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = str(tmp_path_factory.mktemp("results"))
    db = orders(COUNTS)
    store_days(root, db, range(6))
    store_days(root, db, range(7, 8))
    labels = [(1, "Completeness", NULLS, True), (2, "Volume", ROWS, False)]
    labels += [(4, "Volume", ROWS, True)]
    write_labels(root, [Label("orders_gate", day(n), *about, "ada") for n, *about in labels])
    return root


@pytest.fixture
def here(days: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DQX_RESULTS_ROOT", days)
    Path("suite.dql").write_text(SUITE)
    return here


PERIOD = ("--from", "2024-12-01", "--to", "2024-12-08")


dql = partial(dql_prints, "tune", "backtest", "suite.dql", *PERIOD)


def as_json(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(dql("--format", "json", *arguments))
    return found


def _in_a_process(*arguments: str) -> dict[str, Any]:
    """The same by a process of its own: it ends its Spark session, which others here share."""
    program = Path(sys.executable).with_name("dql")
    call = [program, "tune", "backtest", "suite.dql", *PERIOD, "--format", "json", *arguments]
    printed = output_of(call)
    found: dict[str, Any] = json.loads(printed)
    return found


def sides(found: dict[str, Any], name: str) -> str:
    """The days of an assertion as letters: today, and the proposed ones where they differ."""
    (one,) = [one for one in found["assertions"] if one["assertion"] == name]
    pairs = [(day["today"][0], day["proposed"][0]) for day in one["days"]]
    return " ".join(was if was == becomes else was + becomes for was, becomes in pairs)


def test_other_values_are_tried_on_the_past(here: Path) -> None:
    found = as_json("--set", "LEAST=8", "--set", "MAX_NULLS=12.5%")
    assert sides(found, ROWS) == "p p fp f p fp u p"
    assert sides(found, NULLS) == "p fp p p p p u p"
    assert sides(found, STABLE) == "s p f f f p u s"
    assert found["values"]["proposed"] == {"MAX_NULLS": 0.125, "LEAST": 8}
    assert found["summary"] == {
        "today": {"passed": 12, "failed": 7, "skipped": 2, "error": 0, "unknown": 3,
                  "false_alarms": 1, "missed": 1},
        "proposed": {"passed": 15, "failed": 4, "skipped": 2, "error": 0, "unknown": 3,
                     "false_alarms": 0, "missed": 2},
    }  # fmt: skip
    (rows,) = [one for one in found["assertions"] if one["assertion"] == ROWS]
    assert (rows["days"][4]["value"], rows["days"][4]["scaled_value"]) == (6, 12)
    assert rows["days"][4]["label"] is True
    assert rows["days"][6]["unknown"] == "no results of this day"


def test_without_other_values_the_past_is_shown(here: Path) -> None:
    found = as_json()
    assert found["summary"]["today"] == found["summary"]["proposed"]
    table = dql().splitlines()
    assert table[0].split() == ["assertion", "passed", "failed", "skipped", "error", "unknown"]
    assert "8 days, 3 assertions" in table


def test_a_table_shows_which_days_change(here: Path) -> None:
    output = dql("--set", "LEAST=8")
    (line,) = [line for line in output.splitlines() if line.startswith(ROWS)]
    assert line.split()[1:] == [
        "4",
        "->",
        "6",
        "3",
        "->",
        "1",
        "0",
        "0",
        "1",
        "blocked",
        "->",
        "passed:",
        "2024-12-03,",
        "2024-12-06",
    ]
    assert "LEAST: 10 -> 8" in output
    assert "labeled false: 1 -> 0" in output


def test_quiet_are_the_counts_and_verbose_all_days(here: Path) -> None:
    change = ("--set", "LEAST=1", "--set", "MAX_NULLS=0%")
    usual, quiet, verbose = dql(*change), dql(*change, "-q"), dql(*change, "-v")
    assert usual.endswith(quiet)
    assert quiet.startswith("8 days, 3 assertions")
    assert NULLS not in quiet
    assert ("and " in usual) >= ("more" in verbose)
    assert [n for n in (2, 3, 4, 5) if day(n).isoformat() not in verbose] == []


def test_a_suite_that_only_warns_changes_the_days_that_were_blocked(here: Path) -> None:
    Path("proposed.dql").write_text(SUITE.replace('min_rows"', 'min_rows" severity P3'))
    (line,) = [
        line for line in dql("--proposal", "proposed.dql").splitlines() if line.startswith(ROWS)
    ]
    assert "blocked -> warned: 2024-12-03, 2024-12-04, 2024-12-06" in line


def test_a_proposed_suite_and_a_proposal_are_tried(here: Path) -> None:
    Path("proposed.dql").write_text(SUITE.replace("tunable [1, 100]", "").replace("= 10 ", "= 3 "))
    assert sides(as_json("--proposal", "proposed.dql"), ROWS) == "p p fp fp p fp u p"
    proposal = Proposal(
        "Orders", "autotuner", (ProposedValue("MAX_NULLS", 0.05, 0.2),), profile=PROFILE
    )
    Path("proposal.json").write_text(proposal.to_json())
    found = as_json("--proposal", "proposal.json")
    assert sides(found, ROWS) == "p p fp fp p f u p"
    assert sides(found, NULLS) == "p fp p p p p u p"
    assert Path("suite.dql").read_text() == SUITE


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "LEAST"], "missing ="),
        (["--set", "LEAST=high"], "not a number"),
        (["--set", "LEAST=1000"], "LEAST cannot be 1000: it is outside its bounds [1, 100]"),
        (["--set", "LOWEST=10"], "the suite has no tunable 'LOWEST'"),
        (["--from", "2024-12-09"], "is after --to"),
        (["--proposal", "none.json"], "cannot read none.json"),
        (["--proposal", "suite.txt"], "not a proposal"),
    ],
)
def test_invalid_calls_are_reported(here: Path, arguments: list[str], message: str) -> None:
    Path("suite.txt").write_text("[1]")
    assert message in dql(*arguments, code=2)


def test_a_plot_shows_the_days(here: Path) -> None:
    dql("--set", "LEAST=8", "--format", "svg", "--output", "days.svg")
    root = ET.fromstring(Path("days.svg").read_text())
    titles = [one.text or "" for one in root.iter("{http://www.w3.org/2000/svg}title")]
    title = f"2024-12-03 {ROWS}: failed, proposed: passed; value 9; labelled: the data was fine"
    assert title in titles
    assert len(titles) == 1 + 3 * 8
    page = dql("--set", "LEAST=8", "--format", "html")
    assert "<td>LEAST</td><td>10</td><td>8</td>" in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", ""), "it loads nothing"


def test_names_cannot_draw(here: Path) -> None:
    Path("suite.dql").write_text(SUITE.replace(ROWS, "<script>&"))
    page = dql("--format", "html")
    assert "<script>" not in page
    assert "&lt;script&gt;&amp;" in page


@pytest.mark.more
def test_no_spark_is_started(here: Path) -> None:
    code = (
        "import sys\nfrom dqx_airflow.cli.main import app\n"
        "call = ['tune', 'backtest', 'suite.dql', '--from', '2024-12-01', '--to', '2024-12-08']\n"
        "try: app(call)\n"
        "except SystemExit as done: assert not done.code\n"
        "heavy = {'pyspark', 'pandas', 'numpy', 'airflow', 'sympy'} & sys.modules.keys()\n"
        "assert not heavy, heavy\n"
    )
    output_of([sys.executable, "-c", code])


@pytest.mark.spark
@pytest.mark.nightly
def test_days_that_the_store_lacks_are_measured_in_one_scan(here: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [
        {"email": None if row < nulls else "a@x.org", "ds": day(number)}
        for number, (count, nulls) in {**COUNTS, 6: (7, 0)}.items()
        for row in range(count)
    ]
    pq.write_table(pa.Table.from_pylist(rows), "orders.parquet")
    place = "orders=orders.parquet?format=parquet&date_column=ds"
    found = _in_a_process("--fill", "--dataset", place, "--set", "LEAST=8")
    assert sides(found, ROWS) == "p p fp f p fp f p"
    nothing = ("--results-root", str(here / "nothing"))
    alone = _in_a_process("--fill", "--dataset", place, *nothing)
    assert sides(alone, NULLS) == "p f p p p p p p"
