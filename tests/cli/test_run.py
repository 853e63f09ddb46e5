"""`dql run`, as users, scripts and CI systems call it."""

from __future__ import annotations

import json
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from dqx_airflow.results.runs import find_report, list_runs
from dqx_airflow.values import GateReport, Origin, Outcome, Status
from tests.command_line import Called, dql
from tests.json_heads import require_same_head
from tests.markdown_cases import Case, cases
from tests.processes import ended, output_of

CASES = list(cases(*Path(__file__).parent.glob("run/*.md")))
DQL = str(Path(sys.executable).parent / "dql")
TODAY, YESTERDAY = date(2024, 3, 2), date(2024, 3, 1)
SUITE = """suite "Orders" {
    check "Volume" on orders {
        assert num_rows() > 0 name "rows"
    }
}
"""
LIBRARY = "export const A = 1\n"


@pytest.fixture
def home(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("DQX_CONNECTION", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    (here / "libraries").mkdir()
    (here / "libraries" / "lib.dql").write_text(LIBRARY)
    (here / "library.dql").write_text(LIBRARY)
    (here / "orders.dql").write_text(SUITE)
    return here


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_wrong_call_reports_all_its_errors(case: Case, home: Path) -> None:
    for kind, file in (("dql", "orders.dql"), ("toml", "dqx.toml")):
        if text := case.block(kind).text:
            (home / file).write_text(text)
    result = dql(*shlex.split(case.block("sh").text)[1:])
    assert result.returncode == 2
    assert result.stdout == ""
    case.expect(result.stderr)
    assert "abcdef" not in result.output


def test_suites_of_projects_with_different_settings_are_not_mixed(home: Path) -> None:
    for name in ("a", "b"):
        (home / name).mkdir()
        (home / name / "dqx.toml").write_text("[datasets]\norders = 'lake'\n")
        (home / name / "orders.dql").write_text(SUITE)
    for command in (["run"], ["lineage", "coverage"]):
        result = dql(*command, "a", "b")
        assert result.returncode == 2
        assert "these suites have different dqx.toml files" in result.stderr
        assert "--config" in result.stderr
        assert result.stderr.count("error") == 1, "no dataset is missing because of it"


@pytest.mark.few(1)
@pytest.mark.parametrize("arguments", [["run", "--help"], ["run", "orders.dql"]])
def test_no_spark_is_loaded_for_help_and_for_errors(home: Path, arguments: list[str]) -> None:
    code = (
        "import sys\nfrom dqx_airflow.cli.main import app\n"
        f"try: app({arguments})\nexcept SystemExit: pass\n"
        "assert not {'pyspark', 'py4j', 'deltalake', 'pyarrow'} & set(sys.modules)\n"
    )
    call = [sys.executable, "-c", code]
    output_of(call)


@pytest.mark.parametrize(
    ("connection", "message"),
    [
        ("sc://127.0.0.1:{port}/;token=abcdef", "sc://127.0.0.1:{port} does not respond"),
        ("spark://127.0.0.1:{port}", "Connection refused"),
        ("databricks://adb.example.com/warehouse", "pip install dqx-airflow databricks-connect"),
    ],
)
@pytest.mark.slow
def test_an_unreachable_server_ends_with_4_at_once(
    home: Path, connection: str, message: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    call = ["orders.dql", "--dataset", "orders=x", "--connection", connection.format(port=port)]
    result = run(home, *call)
    assert result.returncode == 4, result.stderr
    assert message.format(port=port) in result.stderr
    assert result.stdout == ""
    assert "abcdef" not in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.slow
def test_a_results_store_that_cannot_be_written_ends_with_4_before_spark_starts(home: Path) -> None:
    (home / "file").write_text("")
    result = run(home, "orders.dql", "--dataset", "orders=x", "--results-root", "file/store")
    assert result.returncode == 4, result.stderr
    assert "file/store" in result.stderr


@pytest.mark.slow
def test_an_output_file_that_cannot_be_written_ends_with_2_before_spark_starts(home: Path) -> None:
    result = run(home, "orders.dql", "--dataset", "orders=x", "--output", "no/report.json")
    assert result.returncode == 2, result.stderr
    assert "no/report.json cannot be written" in result.stderr


# What follows starts Spark.

ORDERS = """
import "nulls.dql"
suite "Orders" {
    check "Volume" on orders {
        assert num_rows() >= 3 name "rows" severity P0
        assert day_over_day(num_rows()) < 10 name "stable"
        use filled(price)
        assert average(price) > 100 name "dear <&>" severity P2
        assert average(prize) > 0 name "typo" severity P3
    }
    profile "Spring" { from 2024-03-01 to 2024-03-03 disable assertion "stable" in "Volume" }
}
"""
NULLS = (
    'export macro filled(column) { assert null_count({column}) == 0 name "{column} is filled" }\n'
)
SETTINGS = """
[connection]
url = "local[2]"
[defaults]
date = 2024-03-02
results_root = "store"
[datasets.orders]
path = "lake/orders"
date_column = "ds"
keys = ["id"]
[datasets.unused]
path = "nowhere"
"""


@pytest.fixture
def lake(home: Path) -> Path:
    table = pa.table(
        {
            "id": pa.array([1, 2, 3, 4], pa.int64()),
            "price": [10.0, None, 20.0, 5.0],
            "ds": pa.array([TODAY] * 3 + [YESTERDAY], pa.date32()),
        }
    )
    (home / "lake").mkdir()
    write_deltalake(home / "lake" / "orders", table)
    (home / "orders.dql").write_text(ORDERS)
    (home / "nulls.dql").write_text(NULLS)
    (home / "dqx.toml").write_text(SETTINGS)
    return home


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Calls `dql run` as a user does: it starts a Spark of its own."""
    return ended([DQL, "run", *arguments], cwd=home)


class Kept:
    """The session of the tests, which a call does not stop."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def stop(self) -> None:
        pass


@pytest.fixture
def run_here(lake: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Called]:
    """Calls `dql run` on the lake in this process, with the session that is there."""
    opened = "dqx_airflow.cli.spark.open_session"
    monkeypatch.setattr(opened, lambda *_: Kept(spark))
    return lambda *arguments: dql("run", *arguments, cwd=lake)


def stored(home: Path, line: str, root: str = "store") -> GateReport:
    """The report in the results store whose run a line of JSON is about."""
    report = find_report(str(home / root), json.loads(line)["run_id"])
    assert report is not None
    return report


@pytest.mark.spark
@pytest.mark.slow
def test_several_suites_share_a_session_and_the_worst_outcome_is_the_exit_code(lake: Path) -> None:
    (lake / "sound.dql").write_text(SUITE.replace('"Orders"', '"Sound"'))
    result = run(lake, ".", "--format", "json")
    assert result.returncode == 1, result.stderr
    for line in result.stdout.splitlines():
        require_same_head(json.loads(line))
    reports = [stored(lake, line) for line in result.stdout.splitlines()]
    assert [(report.suite, report.outcome) for report in reports] == [
        ("Orders", Outcome.BLOCKED),
        ("Sound", Outcome.PASSED),
    ]
    statuses = {verdict.name: verdict.status for verdict in reports[0].verdicts}
    assert statuses == {
        "orders.not_empty": Status.PASSED,
        "rows": Status.PASSED,
        "stable": Status.SKIPPED,
        "price is filled": Status.FAILED,
        "dear <&>": Status.FAILED,
        "typo": Status.ERROR,
    }
    assert [row.row for verdict in reports[0].verdicts for row in verdict.failing_rows]
    # With a results root a run leaves what a gate leaves: its report, and states for the next.
    assert {row.run_id for row in list_runs(str(lake / "store"))} == {
        report.run_id for report in reports
    }


@pytest.mark.spark
def test_a_second_run_takes_the_stored_states(lake: Path, run_here: Callable[..., Called]) -> None:
    assert run_here("orders.dql", "--format", "json").returncode == 1
    again = run_here("orders.dql", "--format", "json", "--output", "again.json")
    assert again.stdout == ""
    assert "blocked: gate Orders" in again.stderr
    report = stored(lake, (lake / "again.json").read_text())
    assert next(item for item in report.verdicts if item.name == "dear <&>").origin is Origin.STATE


@pytest.mark.spark
@pytest.mark.slow
def test_options_of_a_format_reach_spark_and_a_change_leaves_stored_states_aside(
    lake: Path, run_here: Callable[..., Called]
) -> None:
    (lake / "prices.csv").write_text("id;price\n1;2,5\n2;-\n")
    (lake / "prices.dql").write_text(
        'suite "Prices" { check "C" on prices { assert null_count(price) == 0 name "known" } }'
    )
    places = '[defaults]\nresults_root = "store"\n[datasets]\nprices = "prices.csv"\n'

    def run_with(options: str) -> tuple[Status, Origin]:
        (lake / "dqx.toml").write_text(f"{places}[reader.csv]\n{options}")
        called = run_here("prices.dql", "--format", "json")
        report = stored(lake, called.stdout)
        (verdict,) = (item for item in report.verdicts if item.name == "known")
        return verdict.status, verdict.origin

    assert run_with('sep = ";"') == (Status.PASSED, Origin.SCAN)
    assert run_with('sep = ";"') == (Status.PASSED, Origin.STATE)
    assert run_with('sep = ";"\nnullValue = "-"') == (Status.FAILED, Origin.SCAN)


@pytest.mark.spark
def test_the_table_shows_each_assertion_and_draws_the_failures(
    lake: Path, run_here: Callable[..., Called]
) -> None:
    settings = (lake / "dqx.toml").read_text().replace('results_root = "store"\n', "")
    (lake / "dqx.toml").write_text(settings)
    result = run_here("orders.dql")
    assert result.returncode == 1, result.stderr
    assert result.stderr == 'date 2024-03-02, from date = "2024-03-02" in dqx.toml\n'
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == ["status", "severity", "check", "assertion", "value", "expected"]
    assert ["failed", "P1", "Volume", "price", "is", "filled", "1", "==", "0"] in lines
    assert "error: assertion failed: price is filled\n --> orders.dql:7:9" in result.stdout
    assert "7 |         use filled(price)" in result.stdout
    assert "warning: assertion could not be evaluated: typo" in result.stdout
    assert "did you mean 'price'" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("blocked: gate Orders, dataset orders")
    assert not (lake / "store").exists()


@pytest.mark.spark
def test_a_shadow_is_shown_and_does_not_affect_the_outcome(
    lake: Path, run_here: Callable[..., Called]
) -> None:
    sound = SUITE.replace('"Orders"', '"Sound"')
    (lake / "sound.dql").write_text(sound)
    (lake / "next.dql").write_text(sound.replace("> 0 ", "> 100 "))
    done = run_here("sound.dql", "--shadow", "next.dql")
    assert done.returncode == 0, done.stderr
    assert "shadow next.dql: would be blocked, the gate is passed" in done.stdout
    assert (
        "rows: passed -> failed; num_rows() is 3, expected > 0, in the shadow > 100" in done.stdout
    )
    (lake / "next.dql").write_text("suite {")
    done = run_here("sound.dql", "--shadow", "next.dql", "--format", "summary")
    assert done.returncode == 0, done.stderr
    assert "the shadow cannot be evaluated: " in done.stderr
    assert "shadow next.dql was not evaluated; the gate is not affected: " in done.stdout


@pytest.mark.spark
def test_a_range_of_dates_ends_with_a_calendar_and_the_worst_exit_code(
    lake: Path, run_here: Callable[..., Called]
) -> None:
    sound = SUITE.replace('"Orders"', '"Sound"').replace("> 0 ", "> 2 ")
    (lake / "sound.dql").write_text(sound)
    (lake / "other.dql").write_text(SUITE.replace('"Orders"', '"Other"'))
    done = run_here("sound.dql", "other.dql", "--date", "2024-02-29..2024-03-02")
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("3 dates from 2024-02-29 to 2024-03-02, from --date")
    lines = done.stdout.splitlines()
    calendar = lines[lines.index(next(line for line in lines if line.startswith("Sound "))) :]
    assert calendar[1].split() == ["2024-02", "B"]
    assert calendar[2].split() == ["2024-03", "B", "."]
    assert calendar[3] == "3 dates: . 1 passed, B 2 blocked"
    assert calendar[4] == "blocked: 2024-02-29, 2024-03-01"
    assert calendar[6].startswith("Other ")
    assert {(run.suite, run.run_key.date.day) for run in list_runs(str(lake / "store"))} == {
        (suite, day) for suite in ("Sound", "Other") for day in (29, 1, 2)
    }


def test_two_suites_with_one_name_are_refused(home: Path) -> None:
    (home / "again.dql").write_text(SUITE)
    call = ["run", "orders.dql", "again.dql", "--dataset", "orders=x", "--results-root", "store"]
    result = dql(*call)
    assert result.returncode == 2
    assert "two suites are named 'Orders': orders.dql and again.dql" in result.stderr


@pytest.mark.spark
def test_junit_counts_match_the_outcome(lake: Path, run_here: Callable[..., Called]) -> None:
    result = run_here("orders.dql", "--format", "junit", "--output", "report.xml")
    assert result.returncode == 1, result.stderr
    root = ET.parse(lake / "report.xml").getroot()
    counts = {"tests": "6", "failures": "1", "errors": "0", "skipped": "1"}
    assert counts.items() <= root.attrib.items()
    assert [suite.get("name") for suite in root] == ["Orders / implicit", "Orders / Volume"]
    found = {case.get("name"): case for case in root.iter("testcase")}
    failure = found["price is filled"].find("failure")
    assert failure is not None
    assert failure.get("message") == "null_count(price) is 1, expected == 0"
    assert "use filled(price)" in (failure.text or "")
    skipped = found["stable"].find("skipped")
    assert skipped is not None
    assert "Spring" in skipped.get("message", "")
    assert found["rows"].find("*") is None
    for mild in ("dear <&>", "typo"):
        assert [child.tag for child in found[mild]] == ["system-out"]


@pytest.mark.spark
def test_a_suite_that_cannot_be_evaluated_ends_with_3(run_here: Callable[..., Called]) -> None:
    result = run_here("orders.dql", "--format", "summary", "--date", "2024-03-02",
                      "--dataset", "orders=lake/nowhere?date_column=ds")  # fmt: skip
    assert result.returncode == 3, result.stderr
    assert result.stdout == (
        "broken Orders, 2024-03-02: 0 passed, 0 failed, 1 skipped, 5 could not be evaluated\n"
    )


@pytest.mark.spark
def test_a_missing_path_is_one_error_and_one_line(run_here: Callable[..., Called]) -> None:
    result = run_here(
        "orders.dql", "--date", "2024-03-05", "--dataset", "orders=lake/nowhere?date_column=ds"
    )
    error, line = result.stdout.strip().split("\n\n")
    assert error.count("error: ") == 1
    assert "no Delta table at" in error
    assert "= also: orders.not_empty, stable, price is filled, dear <&>, typo" in error
    assert line.startswith("broken: gate Orders")
    assert "\n" not in line


@pytest.mark.e2e
@pytest.mark.spark
def test_watch_reruns_on_changes_and_survives_errors(lake: Path) -> None:
    (lake / "orders.dql").write_text(SUITE)
    with watching(lake, "orders.dql", "--format", "summary") as (process, stderr):
        assert wait_for(stderr, "waiting for a change") == 1
        (lake / "orders.dql").write_text(SUITE.replace("num_rows", "num_row"))
        assert wait_for(stderr, "waiting for a change") == 2
        assert "did you mean 'num_rows'?" in stderr.read_text()
        (lake / "orders.dql").write_text(SUITE.replace("> 0", "> 3"))
        assert wait_for(stderr, "waiting for a change") == 3
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert [line.split()[0] for line in out.splitlines()] == ["passed", "blocked"]
    assert stderr.read_text().count("changed: orders.dql") == 2


@contextmanager
def watching(home: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    path = home / "stderr"
    with path.open("w") as file:
        process = subprocess.Popen(
            [DQL, "run", *arguments, "--watch"],
            cwd=home,
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
        )
        try:
            yield process, path
        finally:
            process.kill()
            process.wait()


def wait_for(file: Path, text: str) -> int:
    """How often a text stands in a file, as soon as it stands there once more than before."""
    before = int(file.with_suffix(".seen").read_text()) if file.with_suffix(".seen").exists() else 0
    for _ in range(600):
        count = file.read_text().count(text)
        if count > before:
            file.with_suffix(".seen").write_text(str(count))
            return count
        time.sleep(0.2)
    raise AssertionError(file.read_text())


@pytest.mark.spark
@pytest.mark.slow
def test_spark_connect_gives_the_same_report(
    lake: Path, connect_address: str, run_here: Callable[..., Called]
) -> None:
    here = stored(lake, run_here("orders.dql", "--format", "json").stdout)
    call = ["orders.dql", "--format", "json", "--recompute", "--connection", connect_address]
    result = run(lake, *call)
    assert result.returncode == 1, result.stderr
    assert stored(lake, result.stdout).verdicts == here.verdicts


@pytest.mark.spark
@pytest.mark.slow
def test_concurrent_gates_on_one_server_are_isolated(tmp_path: Path, connect_address: str) -> None:
    """All of them call their dataset `orders`, and write to one store. One reads what is not there;
    two are run twice, so that one has states."""
    root = str(tmp_path / "results")
    sizes = {"one": 3, "two": 5, "three": 7}
    for name, size in sizes.items():
        ids = pa.array(range(size), pa.int64())
        write_deltalake(str(tmp_path / name), pa.table({"id": ids}))
    write_deltalake(str(tmp_path / "four"), pa.table({"key": ["a"]}))

    def start(name: str) -> subprocess.Popen[str]:
        suite = tmp_path / f"{name}.dql"
        suite.write_text(
            f"""suite "Gate {name}" {{ check "C" on orders {{
                assert maximum(id) == {sizes.get(name, 1) - 1} name "most"
                assert query("SELECT count(*) FROM orders") == {sizes.get(name, 1)} name "seen"
            }} }}"""
        )
        given = ["--dataset", f"orders={tmp_path / name}", "--date", "2024-03-02"]
        call = [DQL, "run", str(suite), *given, "--format", "json", "--results-root", root]
        return subprocess.Popen(
            [*call, "--connection", connect_address],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )

    for names in (("one", "two", "three", "four"), ("one", "four")):
        running = {name: start(name) for name in names}
        reports = {}
        for name, process in running.items():
            report, complaint = process.communicate(timeout=300)
            assert process.returncode == (0 if name in sizes else 3), complaint
            reports[name] = stored(tmp_path, report, "results")
        for name in names[:-1]:
            size = sizes[name]
            values = {verdict.name: verdict.value for verdict in reports[name].verdicts}
            assert (values["most"], values["seen"]) == (size - 1, size)
            assert reports[name].outcome is Outcome.PASSED
        broken = {verdict.name: verdict for verdict in reports["four"].verdicts}
        assert broken["most"].status is Status.ERROR
        assert broken["seen"].value == 1
    rows = list_runs(root)
    assert len(rows) == 6
    for row in rows:
        expected = Outcome.BROKEN if row.run_key.gate.endswith("four") else Outcome.PASSED
        assert row.outcome is expected
