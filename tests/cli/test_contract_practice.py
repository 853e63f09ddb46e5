"""The example workflow and pre-commit hooks call commands that exist and do what is documented."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from dqx_airflow.values.files import shipped
from tests.command_line import dql
from tests.processes import ended

ROOT = Path(__file__).parents[2]
WORKFLOW: dict[str, Any] = yaml.safe_load(
    shipped("dags_examples/contracts/github_workflow.yml").read_text()
)
STEPS = [step["run"] for step in WORKFLOW["jobs"]["contracts"]["steps"] if "run" in step]
HOOKS: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
SOUND = shipped("dags_examples/contracts/slot_telemetry.contract.yaml").read_text()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose main branch holds a contract with its suite; a change can be made."""
    (tmp_path / "contracts").mkdir()
    (tmp_path / "suites").mkdir()
    (tmp_path / "contracts" / "slots.yaml").write_text(SOUND)
    suite = dql("contract", "to-suite", str(tmp_path / "contracts" / "slots.yaml"))
    (tmp_path / "suites" / "slots.dql").write_text(suite.output)
    identity = ["-c", "user.name=me", "-c", "user.email=me@example.com"]
    for call in (
        ["init", "-q", "-b", "main"],
        ["add", "."],
        [*identity, "commit", "-qm", "one"],
        ["update-ref", "refs/remotes/origin/main", "HEAD"],
    ):
        subprocess.run(["git", *call], cwd=tmp_path, check=True, capture_output=True)
    return tmp_path


def run_steps(repository: Path) -> dict[str, int]:
    """The exit codes of the steps that call `dql`, as GitHub runs them."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    codes = {}
    for step in STEPS:
        if "dql" in step and "pip install" not in step:
            (verb,) = set(re.findall(r"dql contract ([a-z-]+)", step))
            done = ended(
                ["bash", "-e", "-c", step], cwd=repository, env={**os.environ, "PATH": path}
            )
            codes[verb] = done.returncode
    return codes


@pytest.mark.slow
def test_a_contract_that_did_not_change_passes_all_steps(repository: Path) -> None:
    assert run_steps(repository) == {"lint": 0, "clauses": 0, "diff": 0, "to-suite": 0}


@pytest.mark.more
def test_a_breaking_change_fails_the_diff_and_the_suite_check(repository: Path) -> None:
    (repository / "contracts" / "slots.yaml").write_text(SOUND.replace("min: 0.01", "min: 1"))
    assert run_steps(repository) == {"lint": 0, "clauses": 0, "diff": 1, "to-suite": 1}


@pytest.mark.parametrize("hook", HOOKS, ids=[hook["id"] for hook in HOOKS])
def test_a_hook_runs_on_its_own_files_only(hook: dict[str, Any], tmp_path: Path) -> None:
    is_suite = hook["files"].startswith(r"\.dql")
    name = "a.dql" if is_suite else "contracts/a.yaml"
    assert re.search(hook["files"], name)
    assert not re.search(hook["files"], "docker-compose.yaml")
    file = tmp_path / Path(name).name
    file.write_text('suite "S" {\n}\n' if is_suite else SOUND)
    call = shlex.split(hook["entry"])
    done = dql(*call[1:], file)
    assert done.returncode == 0, done.output
