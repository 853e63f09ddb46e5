"""Calls of before the first release: each is an error that contains the new call, which exists."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import dqx_airflow
from dqx_airflow.cli.moved import moved_calls
from tests.command_line import dql

DOCS = Path(dqx_airflow.__file__).parent / "docs"


@pytest.mark.parametrize(("old", "new"), moved_calls().items())
def test_an_old_call_is_an_error_that_names_the_new_one(old: str, new: str) -> None:
    option = re.search(r" --\w+$", old)
    words = shlex.split(old)[1:] + (["x"] if option else [])
    done = dql(*words)
    assert done.returncode == 2
    assert done.output.endswith(f"help: write `{new}`\n"), done.output


@pytest.mark.parametrize("new", dict.fromkeys(moved_calls().values()))
def test_a_new_call_is_one_that_exists(new: str) -> None:
    command = re.split(r" [A-Z-]{2,}", new)[0]
    shown = dql(*command.split()[1:], "--help")
    assert shown.returncode == 0
    assert f"Usage: {command} [OPTIONS]" in shown.output
    for option in re.findall(r"--\w+", new):
        assert option in shown.output


def test_the_page_about_new_versions_lists_every_new_name() -> None:
    page = (DOCS / "upgrading.md").read_text(encoding="utf-8")
    unlisted = {new for new in moved_calls().values() if f"`{new}` |" not in page}
    assert unlisted == set()


@pytest.mark.parametrize(
    ("call", "usage"),
    [
        ("incidents", "no results"),
        ("incidents --gate g", "no results"),
        ("waivers --all", "no results"),
        ("tune nowhere.dql", "no results"),
        ("tune nowhere", "no such command 'nowhere'"),
        ("incidents nowhere", "no such command 'nowhere'"),
        ("incidents lits", "Did you mean 'list'?"),
    ],
)
def test_a_group_is_called_without_the_name_of_its_first_command(
    call: str, usage: str, tmp_path: Path
) -> None:
    done = dql(*call.split(), cwd=tmp_path)
    assert done.returncode == 2
    assert usage in " ".join(done.output.split())


def test_a_suite_without_a_suffix_is_tuned(tmp_path: Path) -> None:
    (tmp_path / "orders").write_text("suite")
    assert "no results" in dql("tune", "orders", cwd=tmp_path).output
