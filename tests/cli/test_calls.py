"""No call of the docs is lost: each has a form of today, which the command line takes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

import dqx_airflow
from dqx_airflow.cli.main import app
from tests.command_line import dql, dql_prints
from tests.vocabulary.test_operators_and_json import FORMER

PACKAGE = Path(dqx_airflow.__file__).parent
ROWS = [
    line.split(" | ")
    for line in Path(__file__).with_name("calls.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]
BEFORE = [
    f"{group}{verb}"
    for group, verbs in {
        "": "init check diff fmt run import demo package explain mutate shrink doctor lsp mcp "
        "incidents accept waive waivers alerts label backtest suggest tune review promote shadow "
        "history rollback adopt verify publish coverage",
        "contract ": "lint to-suite coverage test publish impact diff consumers evolve export init "
        "codeowners rfc",
        "contract registry ": "publish list show consumers",
        "results ": "list show export optimize prune vacuum",
        "quarantine ": "list show release discard",
        "lineage ": "flush",
    }.items()
    for verb in verbs.split()
]
"""All commands before they were grouped."""


def command_of(call: str) -> str:
    """The command that a call reaches, by its name.

    :raises Exception: the command line does not take the call.
    """
    command: Any = typer.main.get_command(app)
    context = command.make_context("dql", shlex.split(call)[1:])
    while hasattr(command, "resolve_command"):
        args = [*context._protected_args, *context.args]
        name, command, args = command.resolve_command(context, args)
        context = command.make_context(name, args, parent=context)
    return str(context.command_path)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("dags").mkdir()
    Path("dags/orders.py").touch()


@pytest.mark.parametrize("new", [new for _, new, *_ in ROWS])
def test_the_command_line_takes_the_new_form_of_a_call(new: str) -> None:
    if new.endswith(" --help"):
        assert "Usage: " in dql_prints(*shlex.split(new)[1:])
    else:
        assert {*command_of(new).split()} <= {*new.split(), "list", "propose"}


@pytest.mark.parametrize(("old", "new"), [row[:2] for row in ROWS if row[0] != row[1]])
def test_the_old_form_is_an_error_that_names_the_new_one(old: str, new: str) -> None:
    done = dql(*shlex.split(old)[1:])
    assert done.returncode == 2
    named = {*new.split()} - {*old.split()} | {"it is now"}
    assert any(word in done.output for word in named), done.output


TASKS = re.findall(
    r"^\| (.+) \| `(dql .+)` \| `(dql .+)` \| (\d+) \| (\d+) \|$",
    (Path(__file__).parents[1] / "questions.md").read_text("utf-8"),
    re.M,
)


@pytest.mark.parametrize(("task", "old", "new", "before", "now"), TASKS)
def test_a_task_needs_no_more_words_than_before(
    task: str, old: str, new: str, before: str, now: str
) -> None:
    assert command_of(new)
    assert (len(old.split()), len(new.split())) == (int(before), int(now))
    assert int(now) <= int(before), task


def test_every_command_of_before_has_a_call() -> None:
    calls = [f"{old} " for old, *_ in ROWS]
    lost = {
        command
        for command in BEFORE
        if not any(call.startswith(f"dql {command} ") for call in calls)
    }
    assert lost == set()


def test_the_tables_of_upgrading_have_every_former_name() -> None:
    page = (PACKAGE / "docs" / "upgrading.md").read_text("utf-8")
    _, renamed = page.split("### Renamed from 0.2.0")
    rows = "\n".join(line for line in renamed.splitlines() if line.startswith("| "))
    options = [
        line.split()
        for line in (PACKAGE / "cli" / "renamed.txt").read_text("utf-8").splitlines()
        if not line.startswith("#")
    ]
    moved = [
        line.partition(" | ")[0].removeprefix("dql ").split()
        for line in (PACKAGE / "cli" / "moved.txt").read_text("utf-8").splitlines()
    ]
    former = {name for name, *_ in options} | {words[-1] for words in moved}
    lacking = {
        name for name in {*former, *FORMER} if not re.search(rf"[` ]{re.escape(name)}\b", rows)
    }
    assert lacking == set(), "add a row to upgrading.md"
