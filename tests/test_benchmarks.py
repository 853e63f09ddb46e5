"""The page of the benchmarks matches the stored results. Nothing is measured here.

With DQX_REWRITE_GOLDEN=1 the page and its plot are written anew.
"""

from __future__ import annotations

import ast
import importlib
import sys
from datetime import date, timedelta
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.dql.check import check_source
from dqx_airflow.values import SourceFile
from tests.markdown_cases import REWRITE

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def program(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of the benchmarks, which are programs and no package."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module(name)


def test_the_benchmarks_import_what_exists() -> None:
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in BENCHMARKS.rglob("*.py"))
    missing = []
    for node in chain.from_iterable(map(ast.walk, trees)):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("dqx_airflow"):
            module = importlib.import_module(str(node.module))
            names = [alias.name for alias in node.names if not hasattr(module, alias.name)]
            missing += [name for name in names if find_spec(f"{node.module}.{name}") is None]
    assert missing == []


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> Any:
    return program("report", monkeypatch)


def test_the_page_and_the_plot_show_the_stored_results(report: Any) -> None:
    if REWRITE:
        report.main()
    text = report.PAGE.read_text(encoding="utf-8")
    assert report.page(text) == text
    assert report.plot(report.stored("peers")) == report.PLOT.read_text(encoding="utf-8")


def test_a_figure_changed_by_hand_is_overwritten(report: Any) -> None:
    text = report.PAGE.read_text(encoding="utf-8")
    changed = text.replace("| **dqx_airflow", "| **the fastest of all", 1)
    assert changed != text
    assert report.page(changed) == text


def test_a_ratio_is_taken_within_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = program("figures", monkeypatch)
    own = [{"wall_s": seconds} for seconds in (1.0, 30.0, 4.0)]
    base = [{"wall_s": seconds} for seconds in (2.0, 10.0, 1.0)]
    assert figures.ratio(own, base, "wall_s") == "3.00"


def test_a_round_without_both_engines_has_no_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = program("figures", monkeypatch)
    own = [{"wall_s": 1.0}, None, {"wall_s": 1.0}]
    base = [{"wall_s": 2.0}, {"wall_s": 2.0}, None]
    assert figures.ratio(own, base, "wall_s") == "0.50"
    assert figures.ratio(own[1:], base[1:], "wall_s") == ""


def test_a_wrong_verdict_is_shown(report: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    workload = program("workload", monkeypatch)
    sound = dict.fromkeys(workload.CHECKS, True)
    right = {check: check not in workload.CAUGHT for check in workload.CHECKS}
    del sound["machines"], right["machines"]
    faulty = right | {"key": True}
    cost = {"wall_s": 2.0, "cpu_s": 2.0, "jobs": 1, "bytes_read": 1}
    run = {"spark": "4.2.0", "first": cost, "warm": [cost]}
    found = {
        "engines": {name: {"title": name, "version": ""} for name in ("ours", "naive", "peer")},
        "runs": {"1000": {name: [run] for name in ("ours", "naive", "peer")}},
        "verdicts": {
            "ours": {"sound": sound, "faulty": right},
            "naive": {"sound": sound, "faulty": right},
            "peer": {"sound": sound | {"rows": False}, "faulty": faulty},
        },
    }
    of = {line.split(" | ")[0]: line for line in report.peer_table(found, "1000")}
    assert of["| peer"].endswith("| 9 of 11, 1 false |")
    assert of["| **ours**"].endswith("| 10 of 11 |")


def test_a_check_that_fails_in_one_of_several_runs_is_failing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, verdicts = program("peers.run", monkeypatch), {}
    for holds in (True, False, True):
        run.note(verdicts, {"sound": {"key": holds, "rows": True}})
    assert verdicts == {"sound": {"key": False, "rows": True}}


def test_sizes_that_were_measured_before_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    run = program("peers.run", monkeypatch)

    def found(taken: str, **runs: str) -> dict[str, Any]:
        conditions = {"taken": taken, "load": [1.0]}
        return {"conditions": conditions, "engines": {}, "runs": runs, "verdicts": {}}

    merged = run.with_earlier(
        found("2026-11-30", **{"20": "new", "1": "new"}),
        found("2026-11-29", **{"20": "old", "5": "old"}),
    )
    assert list(merged["runs"].items()) == [("1", "new"), ("5", "old"), ("20", "new")]
    assert merged["conditions"] == {"taken": "2026-11-29 and 2026-11-30", "load": [1.0, 1.0]}


def test_a_sweep_asks_for_more_with_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = program("sweep_steps", monkeypatch)
    asked = {
        name: [(len(step.checks), len(step.dates)) for step in sweep.steps.values()]
        for name, sweep in steps.SWEEPS.items()
    }
    assert asked == {
        "windows": [(5, 1), (5, 8), (5, 30)],
        "assertions": [(10, 0), (100, 0), (1000, 0)],
        "columns": [(20, 0), (100, 0), (200, 0)],
        "keys": [(1, 1), (2, 1), (4, 1), (8, 1)],
    }


def test_checks_of_a_step_are_distinct(monkeypatch: pytest.MonkeyPatch) -> None:
    for sweep in program("sweep_steps", monkeypatch).SWEEPS.values():
        for step in sweep.steps.values():
            assert len({check.name for check in step.checks}) == len(step.checks)
            asked = {(check.kind, check.columns, check.least, check.most) for check in step.checks}
            assert len(asked) == len(step.checks)


def test_every_step_is_a_sound_suite_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = program("peers.engines.ours", monkeypatch)
    for sweep in program("sweep_steps", monkeypatch).SWEEPS.values():
        for step in sweep.steps.values():
            for window in {None, len(step.dates)} if len(step.dates) > 1 else {None}:
                text = ours.suite_of(step.checks, window)
                checked = check_source(SourceFile("suite.dql", text))
                assert not checked.diagnostics
                assert text.count("mean(") == (0 if window is None else len(step.checks))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("engine", ["ours", "naive", "tuned"])
def test_a_simple_check_fails_where_it_should(
    engine: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload, simple = (program(name, monkeypatch) for name in ("workload", "simple_checks"))
    verify = program(f"peers.engines.{engine}", monkeypatch).verify
    check, kind = simple.SimpleCheck, simple.Kind
    flat = {
        check("times", kind.COMPLETE, ("event_ts",)): True,
        check("machines", kind.COMPLETE, ("machine_id",)): False,
        check("least", kind.LEAST, ("amount_wagered",), least=-5): True,
        check("too much", kind.LEAST, ("amount_wagered",), least=-4): False,
        check("most", kind.MOST, ("amount_won",), most=5000): True,
        check("too little", kind.MOST, ("amount_won",), most=4999): False,
        check("casinos", kind.MOST, ("casino_id",), most=39): True,
        check("null casinos", kind.COMPLETE, ("casino_id",)): False,
    }
    of_one_day = {
        check("wide", kind.BETWEEN, ("amount_wagered",), least=-5, most=100): True,
        check("narrow", kind.BETWEEN, ("amount_wagered",), least=0, most=100): False,
        check("key", kind.UNIQUE, ("machine_id", "event_ts", "casino_id")): True,
        check("copies", kind.UNIQUE, ("machine_id", "event_ts")): False,
    }
    table, days = str(tmp_path / "events"), [workload.DAY, workload.DAY - timedelta(days=1)]
    workload.write_events(spark, table, 6000, days=2, faulty=True)

    def verified(dates: list[date], checks: dict[Any, bool]) -> dict[str, bool]:
        verdicts = verify(spark, table, dates, list(checks))
        return {one.name: verdicts[one.name] for one in checks}

    for dates, checks in ((days[:1], flat | of_one_day), (days, flat)):
        assert verified(dates, checks) == {one.name: holds for one, holds in checks.items()}


def sweep_line(name: str, *seconds: float, error: str = "", spark: str = "4.2.0") -> dict[str, Any]:
    """The results of an engine so far, for a sweep of two steps."""
    steps = [
        {"step": step, "spark": spark, "runs": [{"wall_s": took}]}
        for step, took in zip(("1", "8"), seconds, strict=False)
    ]
    return {name: {"steps": steps} | ({"error": error} if error else {})}


def test_what_grows_has_a_line_for_each_sweep_and_the_tool_that_grows_least(report: Any) -> None:
    late = sweep_line("peer", 2.0, error="not done after 300 seconds", spark="4.1.1")
    slow = late | sweep_line("slow", 2.0, 6.0)
    rounds = [
        sweep_line("ours", 1.0, 2.0) | slow | sweep_line("naive", 1.0, 1.0),
        sweep_line("ours", 1.0, 4.0) | slow | sweep_line("naive", 3.0, 3.0),
        sweep_line("ours", 2.0, 4.0) | sweep_line("peer", error="no such thing"),
    ]
    found = {
        "engines": {
            "ours": {"title": "dqx_airflow", "version": "0.1.0"},
            "peer": {"title": "Peer", "version": "1.0"},
            "naive": {"title": "by hand, naive", "version": ""},
            "slow": {"title": "Slow", "version": "1.0"},
            "absent": {"title": "Absent", "version": "1.0"},
        },
        "rows": 1000,
        "sweeps": {
            "windows": {"title": "Days", "steps": ["1", "8"], "rounds": rounds},
            "keys": {"title": "Keys", "steps": ["1", "8"], "rounds": []},
        },
    }
    growth = {
        "rows": [{"what": "files", "from": "1", "to": "9", "ours": 2.0, "command": "log_growth.py"}]
    }

    def runs(*warm: float) -> list[dict[str, Any]]:
        return [{"warm": [{"wall_s": seconds, "cpu_s": seconds}]} for seconds in warm]

    small = {"ours": runs(1.0, 2.0, 3.0), "naive": runs(2.0), "peer": runs(2.0), "slow": runs(9.0)}
    large = {"ours": runs(4.0), "naive": runs(6.0), "peer": runs(5.0), "slow": [{"error": "x"}]}
    peers = {"engines": found["engines"], "runs": {"9000": large, "1000": small}}
    assert list(report.growth_table(peers, found, growth)) == [
        "| what grows | from | to | ours | naive plan | the best other tool | command |",
        "|---|---:|---:|---:|---:|---|---|",
        "| rows of the twenty checks: CPU seconds | 1,000 | 9,000 | **2.00** | 3.00 "
        "| Peer 1.0: 2.50 | `peers/run.py` |",
        "| days | 1 | 8 | **2.00** | 1.00 | Slow 1.0: 3.00 | `sweeps.py --rows 1000` |",
        "| files | 1 | 9 | **2.0** | | | `log_growth.py` |",
    ]


def test_a_job_is_compared_with_jobs_of_the_same_archive_setting(report: Any) -> None:
    def runs(*seconds: float) -> list[dict[str, float]]:
        return [{"wall_s": took, "cpu_s": 2 * took} for took in seconds]

    jobs = {
        "gate": runs(8.0, 30.0, 9.0),
        "naive plan": runs(10.0, 20.0, 12.0),
        "gate, archive": runs(6.0, 6.0, 6.0),
        "naive plan, archive": runs(8.0, 8.0, 8.0),
    }
    assert list(report.job_table({"rows": 1000, "jobs": jobs}))[2:] == [
        "| job | seconds | to naive plan | to tuned plan "
        "| CPU seconds | to naive plan | to tuned plan |",
        "|---|---:|---:|---:|---:|---:|---:|",
        "| **gate, archive** | 6.0 | 0.75 |  | 12.0 | 0.75 |  |",
        "| naive plan, archive | 8.0 | 1.00 |  | 16.0 | 1.00 |  |",
        "| **gate** | 9.0 | 0.80 |  | 18.0 | 0.80 |  |",
        "| naive plan | 12.0 | 1.00 |  | 24.0 | 1.00 |  |",
    ]


@pytest.mark.slow
def test_an_engine_that_times_out_keeps_its_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = program("peers.processes", monkeypatch)
    python = program("peers.environments", monkeypatch).Interpreter(Path(sys.executable), {}, None)
    script = tmp_path / "slow.py"
    script.write_text("import time; print('{\"step\": 1}', flush=True); time.sleep(60)")
    lines, complaint = processes.told_by(python, script, [], {}, {}, 5)
    assert (lines, complaint) == ([{"step": 1}], "not done after 5 seconds")
    script.write_text("import sys; print('{\"step\": 1}'); sys.exit('step 2: a check fails')")
    lines, complaint = processes.told_by(python, script, [], {}, {}, 30)
    assert (lines, complaint) == ([{"step": 1}], "step 2: a check fails")


def test_every_engine_has_a_module_and_pinned_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    environments = program("peers.environments", monkeypatch)
    for engine in environments.ENGINES.values():
        assert (BENCHMARKS / "peers" / "engines" / f"{engine.module}.py").is_file()
        assert engine.environment in {None, *environments.ENVIRONMENTS}
        if engine.environment is not None:
            pins = environments.ENVIRONMENTS[engine.environment].requirements
            assert [pin for pin in pins if pin.startswith("pyspark==")], pins
    for environment in environments.ENVIRONMENTS.values():
        assert [pin for pin in environment.requirements if "==" not in pin] == []


def test_the_measured_suite_is_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = check_source(SourceFile("suite.dql", program("workload", monkeypatch).SUITE))
    assert not checked.diagnostics
