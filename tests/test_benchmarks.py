"""The page of the benchmarks tells what was measured. Nothing is measured here.

With DQX_REWRITE_GOLDEN=1 the page and its plot are written anew.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from markdown_cases import REWRITE

from dqx_airflow.dql.check import check_source
from dqx_airflow.values import SourceFile

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def program(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of the benchmarks, which are programs and no package."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module(name)


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> Any:
    return program("report", monkeypatch)


def test_the_page_and_the_plot_tell_what_is_stored(report: Any) -> None:
    if REWRITE:
        report.main()
    text = report.PAGE.read_text(encoding="utf-8")
    assert report.page(text) == text
    assert report.plot(report.stored("peers")) == report.PLOT.read_text(encoding="utf-8")


def test_a_figure_that_was_changed_by_hand_does_not_stay(report: Any) -> None:
    text = report.PAGE.read_text(encoding="utf-8")
    changed = text.replace("| **dqx_airflow", "| **the fastest of all", 1)
    assert changed != text
    assert report.page(changed) == text


def test_a_ratio_is_taken_within_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = program("figures", monkeypatch)
    own = [{"wall_s": seconds} for seconds in (1.0, 30.0, 4.0)]
    base = [{"wall_s": seconds} for seconds in (2.0, 10.0, 1.0)]
    assert figures.ratio(own, base, "wall_s") == "3.00"


def test_a_round_in_which_one_did_not_run_has_no_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = program("figures", monkeypatch)
    own = [{"wall_s": 1.0}, None, {"wall_s": 1.0}]
    base = [{"wall_s": 2.0}, {"wall_s": 2.0}, None]
    assert figures.ratio(own, base, "wall_s") == "0.50"
    assert figures.ratio(own[1:], base[1:], "wall_s") == ""


def test_a_wrong_verdict_is_told(report: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    workload = program("workload", monkeypatch)
    sound = dict.fromkeys(workload.CHECKS, True)
    right = {check: check not in workload.CAUGHT for check in workload.CHECKS}
    del sound["machines"], right["machines"]
    found = {
        "engines": {"peer": {"title": "Peer", "version": "1.0"}},
        "verdicts": {"peer": {"sound": sound | {"rows": False}, "faulty": right | {"key": True}}},
    }
    *_, line = report.verdict_table(found)
    assert line == (
        "| Peer 1.0 | 19 of 20 | 9 of 11 | rows: fails on sound data; key: holds on faulty data "
        "| machines |"
    )


def test_a_check_that_fails_in_one_of_several_runs_is_told_as_failing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, verdicts = program("peers.run", monkeypatch), {}
    for holds in (True, False, True):
        run.note(verdicts, {"sound": {"key": holds, "rows": True}})
    assert verdicts == {"sound": {"key": False, "rows": True}}


def test_every_engine_has_a_module_and_pinned_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    environments = program("peers.environments", monkeypatch)
    for engine in environments.ENGINES.values():
        assert (BENCHMARKS / "peers" / "engines" / f"{engine.module}.py").is_file()
        assert engine.environment in {None, *environments.ENVIRONMENTS}
    for environment in environments.ENVIRONMENTS.values():
        assert all("==" in pin for pin in environment.requirements)
        assert any(pin.startswith("pyspark==") for pin in environment.requirements)


def test_the_suite_that_is_measured_is_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = check_source(SourceFile("suite.dql", program("workload", monkeypatch).SUITE))
    assert not checked.diagnostics
