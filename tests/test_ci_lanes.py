"""The lanes of CI: each check of a pull request is a lane or a part of one, and the parts of a lane
are all of it."""

from __future__ import annotations

import re
import subprocess
from itertools import chain, combinations
from pathlib import Path

import pytest
import yaml
from _pytest.mark.expression import Expression

ROOT = Path(__file__).parent.parent
SCRIPT = (ROOT / ".ci" / "run").read_text()
NIGHTLY = (ROOT / ".ci" / "nightly").read_text()
IN_PARTS = r"\[(\w+)\]='([^']+)'"
PARTS = dict(re.findall(IN_PARTS, SCRIPT))
PARTS_BY_NIGHT = re.findall(IN_PARTS, NIGHTLY)
MARKS = ("e2e", "matrix", "compiled", "more", "slow", "nightly")


def named(variable: str, script: str = SCRIPT) -> str:
    found = re.search(rf"^{variable}='([^']+)'$", script, re.MULTILINE)
    assert found is not None
    return found[1]


def is_chosen(expression: str, marks: tuple[str, ...]) -> bool:
    return Expression.compile(expression).evaluate(lambda name, **_: name in marks)


ALL_MARKS = list(chain.from_iterable(combinations(MARKS, size) for size in range(len(MARKS) + 1)))


@pytest.mark.parametrize("marks", ALL_MARKS, ids=" ".join)
def test_a_test_of_the_second_lane_is_in_one_of_its_parts(marks: tuple[str, ...]) -> None:
    parts = [name for name, expression in PARTS.items() if is_chosen(expression, marks)]
    assert len(parts) == is_chosen(named("whole_second"), marks), parts


def test_a_commit_tries_the_quick_tests() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    assert f'pytest -q -m "{named("quick")}"' in hooks


@pytest.mark.parametrize("marks", ALL_MARKS, ids=" ".join)
def test_a_test_is_in_one_lane_and_in_two_if_both_modes_of_spark_are_tried(
    marks: tuple[str, ...],
) -> None:
    options = (ROOT / "pyproject.toml").read_text()
    default = re.search(r"-m '([^']+)'\"", options)
    nightly = named("nightly", NIGHTLY)
    assert default is not None
    assert is_chosen(nightly, ("slow",)), "the nightly run has the lane slow"
    lanes = {
        "default": default[1],
        "second": named("whole_second"),
        "slow": named("slow"),
        "nightly": "nightly or timing",
    }
    found = [lane for lane, tests in lanes.items() if is_chosen(tests, marks)]
    if marks == ("compiled",):
        assert found == ["default", "second"]
    else:
        assert len(found) == 1, f"{found} run {marks}"
    assert is_chosen(nightly, marks) == (found[0] in ("slow", "nightly"))


def test_each_check_of_a_pull_request_is_a_lane() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    lanes = jobs["lane"]["strategy"]["matrix"]["lane"]
    assert {"quick", "default", "lint", "types", "slow"} <= set(lanes)
    assert {lane.split()[1] for lane in lanes if lane.startswith("second ")} == set(PARTS)
    cases = set(re.findall(r"^  (\w+)\)", SCRIPT, re.MULTILINE))
    assert {lane.split()[0] for lane in lanes} | {"versions"} <= cases


def test_each_part_of_the_nightly_lane_is_a_job_and_has_a_place_for_its_result() -> None:
    found = re.search(r"^all=\((.+)\)$", NIGHTLY, re.MULTILINE)
    assert found is not None
    parts = found[1].split()
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "nightly.yml").read_text())["jobs"]
    assert jobs["part"]["strategy"]["matrix"]["part"] == parts
    table = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("### The nightly lane")[2]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == parts


def test_each_test_of_the_nightly_lane_is_in_one_of_its_parts() -> None:
    own = [ROOT / path for _, paths in PARTS_BY_NIGHT for path in paths.split()]
    assert [path for path in own if not path.exists()] == []
    assert not [path for path in own if set(path.parents) & set(own)]
    assert "printf -- '--ignore=%s ' ${files[*]}" in NIGHTLY, "`rest` are all others"


@pytest.mark.parametrize(
    ("script", "call"),
    [("run", ["sceond"]), ("run", ["second", "fast"]), ("nightly", ["engine", "sial"])],
)
def test_a_lane_that_does_not_exist_is_an_error(script: str, call: list[str]) -> None:
    command = [ROOT / ".ci" / script, *call]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, call[-1] in ended.stderr) == (2, True)


def test_no_lane_depends_on_the_speed_of_the_machine() -> None:
    conditions = re.findall(r"\bif \[.*SECONDS.*", SCRIPT)
    assert not conditions
