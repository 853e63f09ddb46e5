"""One call has one plan, whoever asks for it: each option that changes a plan reaches the job, its
shadow, `dql explain`, a backtest, and Python."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.api.database import Database
from dqx_airflow.api.run import RunSettings
from dqx_airflow.api.run import plan_of as plan_in_python
from dqx_airflow.cli.arguments import Options
from dqx_airflow.cli.tune.backtest import _opened
from dqx_airflow.dql.check import check_source
from dqx_airflow.engine.job_parts import plan_gate
from dqx_airflow.errors import SourceError
from dqx_airflow.plan.model import Plan
from dqx_airflow.plan.selection import shadow_plan
from dqx_airflow.values import (
    Attempt,
    DatasetRef,
    GateRequest,
    RunKey,
    RunOptions,
    Selection,
    Severity,
    ShadowSuite,
    SourceFile,
)
from tests.command_line import dql

pytestmark = pytest.mark.spark

DAY = date(2024, 3, 2)
SUITE = """suite "S" {
    check "C" on t { assert average(a) > 0 severity P2 name "a" tags [slow] }
    check "D" on u { @required assert freshness(at) < 1 day severity P2 name "b" }
}"""
MUTED = SUITE.replace(
    'name "b" }',
    'name "b" }\nprofile "P" { from 2024-03-02 to 2024-03-02 '
    'downgrade assertion "b" in "D" to P3 }',
)
OTHERS: dict[str, Any] = {
    "fail_on": Severity.P3,
    "allow_empty": True,
    "require_history": True,
    "skip_dates": (DAY,),
    "ansi": False,
    "max_clock_skew_hours": 48.0,
}
OF_PLANS = {"allow_empty", "ansi", "max_clock_skew_hours"}
"""The others decide what becomes of the verdicts; `fail_on` also whether a profile is an error."""
DATASETS = (DatasetRef("t", "t.parquet"), DatasetRef("u", "u.parquet", date_column="d"))


def request(**changed: Any) -> GateRequest:
    key, attempt = RunKey("S", DAY, "run"), Attempt(1, "1")
    gate = GateRequest(key, attempt, SourceFile("s.dql", SUITE), DATASETS, "results")
    return replace(gate, **changed)


def explained(folder: Path, *flags: str) -> Any:
    (folder / "s.dql").write_text(SUITE)
    data = [f"--dataset={ref.name}={ref.path}" for ref in DATASETS]
    data[1] += "?date_column=d"
    call = dql("explain", folder / "s.dql", *data, "--date", DAY, *flags, "--format", "json")
    assert call.returncode == 0, call.stderr
    plan = json.loads(call.stdout)
    del plan["datasets"]  # the passes, which `metrics/test_explained_is_run.py` compares
    return plan


def plain(plan: Plan) -> Any:
    return json.loads(json.dumps(asdict(plan), default=str))


class _Names(Database):
    """A database of which only the datasets are asked for."""

    datasets = DATASETS

    def measure(self, plan: Plan) -> Any:
        raise NotImplementedError


def flag(name: str, value: Any) -> str:
    word = name.replace("_", "-").removesuffix("s" if name == "skip_dates" else "")
    if isinstance(value, bool):
        return f"--{word}" if value else f"--no-{word}"
    return f"--{word}={value[0] if isinstance(value, tuple) else getattr(value, 'value', value)}"


def test_every_option_that_changes_a_plan_reaches_all_who_plan(tmp_path: Path) -> None:
    assert {field.name for field in fields(RunOptions)} == OTHERS.keys()
    usual = plan_gate(request())
    checked = check_source(SourceFile("s.dql", SUITE))
    for name, value in OTHERS.items():
        gate = request(**{name: value})
        plan = plan_gate(gate)
        assert (plan != usual) == (name in OF_PLANS), name
        settings = RunSettings(RunOptions(**{name: value}))
        assert plan_in_python(checked, _Names(), DAY, settings) == plan, name
        shadow = replace(gate, shadow=ShadowSuite("shadow", gate.suite))
        assert shadow_plan(shadow) == (plan, None), name
        if name in OF_PLANS:
            typed = explained(tmp_path, flag(name, value))
            for key in ("ansi", "max_clock_skew_hours", "requests"):
                assert typed[key] == plain(plan)[key], name
            assert len(typed["assertions"]) == len(plan.assertions), name


def test_a_backtest_plans_with_the_settings_of_a_run(tmp_path: Path) -> None:
    path = tmp_path / "s.dql"
    path.write_text(SUITE)
    (tmp_path / "dqx.toml").write_text(
        "[defaults]\nansi = false\nmax_clock_skew_hours = 48.0\n"
        "[datasets]\nt = {path = 't.parquet'}\nu = {path = 'u.parquet', date_column = 'd'}\n"
    )
    _, plans, _ = _opened(Options((path,)), [DAY])
    wanted = plan_gate(request(allow_empty=True, ansi=False, max_clock_skew_hours=48.0))
    assert [(plan.ansi, plan.max_clock_skew_hours, plan.requests) for plan in plans] == [
        (wanted.ansi, wanted.max_clock_skew_hours, wanted.requests)
    ]


def test_a_selection_and_a_muting_profile_reach_all_who_plan(tmp_path: Path) -> None:
    gate = request(selection=Selection(tags=("slow",)))
    plan = plan_gate(gate)
    assert set(plan.reads) == {"t"}
    checked = check_source(gate.suite)
    assert plan_in_python(checked, _Names(), DAY, RunSettings(selection=gate.selection)) == plan
    assert set(explained(tmp_path, "--tag", "slow")["reads"]) == {"t"}
    both, problem = shadow_plan(replace(gate, shadow=ShadowSuite("shadow", gate.suite)))
    assert problem is None
    assert both is not None
    assert [one.name for one in both.assertions] == ["t.not_empty", "u.not_empty", "a"]
    # With `fail_on` P2, the profile keeps a required assertion from blocking.
    muting = request(suite=SourceFile("s.dql", MUTED), fail_on=Severity.P2)
    muted = check_source(muting.suite)
    assert not muted.errors
    with pytest.raises(SourceError, match="E304"):
        plan_gate(muting)
    with pytest.raises(SourceError, match="E304"):
        plan_in_python(muted, _Names(), DAY, RunSettings(RunOptions(fail_on=Severity.P2)))
    shadow = ShadowSuite("x", muting.suite)
    problem = shadow_plan(replace(request(fail_on=Severity.P2), shadow=shadow))[1]
    assert "an error in s.dql:4" in (problem or "")
    path = tmp_path / "muted.dql"
    path.write_text(MUTED)
    call = dql("explain", path, "--dataset=t=t", "--dataset=u=u?date_column=d", "--fail-on=P2")
    assert (call.returncode, "E304" in call.stderr) == (2, True)
