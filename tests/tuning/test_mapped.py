"""Mapped gates: alerts, labels, backtests and the tuner distinguish the instances of a day."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from typer.testing import CliRunner

from dqx_airflow import MemoryDatabase, StoredDatabase, Suite
from dqx_airflow.cli.main import app
from dqx_airflow.errors import RequestError
from dqx_airflow.plan.measurements import Measurements
from dqx_airflow.results.past_days import PastDay
from dqx_airflow.results.query import StoredResults
from dqx_airflow.results.schema import LABELS_SCHEMA
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.results.stored_labels import Label, read_labels, write_labels
from dqx_airflow.values import Attempt, GateReport, RunKey, ShadowReport
from tests.markdown_cases import Block, Case, cases
from tests.tuning.stored_days import stored

GATE = "lake.gate"
SUITE = """\
suite "Orders" {
    const LEAST = 10 tunable [1, 100]

    check "Volume" on orders {
        assert num_rows() >= LEAST
            name "rows"
    }
}
"""
LOOSER = SUITE.replace("LEAST = 10 ", "LEAST = 5 ")
RELATIVE = SUITE.replace(">= LEAST", ">= LEAST * 0.05 * num_rows(lag 1)")
"""At least half of the rows of the day before."""
CASES = [*cases(Path(__file__).parent / "mapped.md")]


@dataclass(frozen=True)
class Run:
    """A run of a gate: `index` is empty if it was not mapped."""

    on: date
    dag_run: str
    index: str
    place: str
    rows: int

    @property
    def scheduler_run(self) -> str:
        return f"{self.dag_run}__{self.on}" + (f"[{self.index}]" if self.index else "")


def runs_of(block: Block) -> list[Run]:
    lines = (line.split() for line in block.text.splitlines())
    return [
        Run(date.fromisoformat(on), dag_run, index.strip("-"), place, int(rows))
        for on, dag_run, index, place, rows in lines
    ]


def store_runs(root: str, runs: list[Run], *, shadow: str = "") -> None:
    """Runs the suite for each of them, as gates that read other places would have."""
    databases = {
        place: MemoryDatabase(
            {
                "orders": [
                    {"ds": run.on} for run in runs if run.place == place for _ in range(run.rows)
                ]
            },
            date_columns={"orders": "ds"},
        )
        for place in {run.place for run in runs}
    }
    suite = Suite.from_string(SUITE)
    for number, run in enumerate(runs):
        report = suite.run(databases[run.place], run.on).report
        if shadow:
            other = Suite.from_string(shadow).run(databases[run.place], run.on).report
            report = replace(
                report, shadow=ShadowReport("next.dql", other.suite, other.outcome, other.verdicts)
            )
        report = stored(reading(report, run.place), GATE)
        started = datetime(2024, 12, 31, tzinfo=timezone.utc) + timedelta(minutes=number)
        ResultsStore(root).write(
            replace(
                report,
                run_key=RunKey(GATE, run.on, run.scheduler_run),
                attempt=Attempt(1, f"attempt {number}"),
                started_at=started,
                finished_at=started,
            )
        )


def reading(report: GateReport, place: str) -> GateReport:
    """The report of a gate that read a place."""

    def of_place(measured: str | None) -> str | None:
        fields = json.loads(measured or "{}")
        return json.dumps({**fields, "reads": {"orders": place}}) if fields else measured

    verdicts = tuple(replace(one, measured=of_place(one.measured)) for one in report.verdicts)
    return replace(report, verdicts=verdicts)


@pytest.fixture
def here(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("DQX_RESULTS_ROOT", "results")
    monkeypatch.setenv("COLUMNS", "200")
    Path("suite.dql").write_text(SUITE)
    Path("relative.dql").write_text(RELATIVE)
    return here


def dql(line: str) -> str:
    done = CliRunner().invoke(app, shlex.split(line)[1:])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.output


@pytest.mark.few(1)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_commands_know_each_instance(case: Case, here: Path) -> None:
    block = case.block("runs")
    store_runs("results", runs_of(block), shadow=LOOSER if block.has("shadow") else "")
    Path("labels.csv").write_text(case.block("csv").text)
    transcript = []
    for line in case.block("sh").text.splitlines():
        transcript.append(f"$ {line}\n{dql(line)}")
    case.expect("".join(transcript))


def test_an_instance_is_the_data_that_it_reads_whatever_its_index() -> None:
    def of(place: str, map_index: int) -> PastDay:
        return PastDay(
            date(2024, 12, 1), Measurements(reads={"orders": place}), map_index=map_index
        )

    assert of("lake/eu", 0).instance == of("lake/eu", 1).instance != of("lake/us", 0).instance
    assert of("lake/eu", -1).instance is None, "the gate is not mapped"


def test_labels_without_a_map_index_are_about_the_instance_that_was_labelled(here: Path) -> None:
    """An older version has no such column, and may go on writing beside this one."""
    on = date(2024, 12, 1)
    runs = [Run(on, "scheduled", "0", "ch", 4), Run(on, "scheduled", "1", "de", 5)]
    store_runs("results", [*runs, replace(runs[1], dag_run="manual")])
    known = StoredResults("results").select("runs", ["run_id", "scheduler_run"], [])
    stored = {row["scheduler_run"]: row["run_id"] for row in known}
    first, second = (stored[run.scheduler_run] for run in runs)
    (superseded,) = {*stored.values()} - {first, second}
    old = Label(GATE, on, "Volume", "rows", False, "ada", run_id=first)
    as_older_version([old, replace(old, run_id=superseded, ground_truth=True, id="other")])
    assert truths() == {0: False, 1: True}
    again = replace(old, id="new", map_index=0)
    assert write_labels("results", [again]) == (), "it is the same label"
    changed = replace(old, id="new", map_index=0, ground_truth=True)
    assert write_labels("results", [changed]) == (changed,)
    late = datetime.now(timezone.utc)
    as_older_version([replace(old, id="late", run_id=second, at=late)])
    assert truths() == {0: True, 1: False}


def truths() -> dict[int, bool]:
    return {label.map_index: label.ground_truth for label in read_labels("results")}


def as_older_version(labels: list[Label]) -> None:
    fields = [field for field in pa.schema(LABELS_SCHEMA) if field.name != "map_index"]
    rows = [
        {
            "run_id": label.run_id,
            "label_id": label.id,
            "gate": label.gate,
            "dataset_date": label.date,
            "check": label.check,
            "name": label.name,
            "ground_truth": label.ground_truth,
            "author": label.author,
            "labelled_at": label.at,
        }
        for label in labels
    ]
    table = pa.Table.from_pylist(rows, pa.schema(fields))
    write_deltalake("results/labels", table, mode="append", schema_mode="merge")


def test_a_stored_database_is_of_one_instance(here: Path) -> None:
    on = date(2024, 12, 1)
    store_runs("results", [Run(on, "a", "0", "ch", 4), Run(on, "a", "1", "de", 20)])
    suite = Suite.from_string(SUITE)
    with pytest.raises(
        RequestError, match=r"several instances of the gate ran on 2024-12-01: 0, 1"
    ):
        suite.run(db=StoredDatabase("results"), date=on)
    outcomes = [suite.run(db=StoredDatabase("results", map_index=n), date=on) for n in (0, 1)]
    passed = [{one.name: one.passed for one in outcome.assertions}["rows"] for outcome in outcomes]
    assert passed == [False, True]
    of_rows = "SELECT map_index, passed FROM dql_results WHERE assertion_name = 'rows' ORDER BY 1"
    rows = StoredDatabase("results").query(of_rows)
    assert rows == [{"map_index": 0, "passed": False}, {"map_index": 1, "passed": True}]


@pytest.mark.parametrize(
    ("issue", "proposed"), [(3, True), (8, False)], ids=["both agree", "one would miss an issue"]
)
@pytest.mark.nightly
def test_one_limit_for_all_instances_has_the_costs_of_all(
    here: Path, issue: int, *, proposed: bool
) -> None:
    """Switzerland has fine days of 6 rows, and Germany once an issue."""
    days = [date(2024, 12, 1) + timedelta(days=number) for number in range(20)]
    germany = dict.fromkeys(days, 20) | {days[7]: issue}
    runs = [
        Run(on, "scheduled", index, place, rows)
        for number, on in enumerate(days)
        for index, place, rows in (("0", "ch", 6 if number % 3 else 30), ("1", "de", germany[on]))
    ]
    store_runs("results", runs)
    fine = [
        Label(GATE, run.on, "Volume", "rows", False, "ada", map_index=0)
        for run in runs
        if run.rows == 6
    ]
    real = Label(GATE, days[7], "Volume", "rows", True, "ada", map_index=1)
    write_labels("results", [*fine[:7], real])
    period = f"--from {days[0]} --to {days[-1]} --max-move 100%"
    results = json.loads(dql(f"dql tune suite.dql {period} --format json"))
    (found,) = [one for one in results if one["about"] == ["LEAST"]]
    assert (found["proposal"] is not None) == proposed, found["reason"]
    if proposed:
        evidence = found["proposal"]["evidence"]
        assert (evidence["days"], evidence["instances"], evidence["labels"]) == (20, 2, 8)
        assert {one["map_index"] for one in evidence["changes"]} == {0}
        assert "of 2 instances" in found["reason"]
        assert "20 days with results" in dql(f"dql tune suite.dql {period}")
        assert f"{days[1]}[0] (false alarm)" in dql(f"dql tune suite.dql {period}")
