"""The help of `dql`: its panels, the first line of each command, short options, and what the shell
completes."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from dqx_airflow.cli.main import PANELS, STARTED_BY_PROGRAMS, app
from tests.command_line import dql, dql_prints
from tests.processes import output_of

# fmt: off
VERBS = (
    "accept", "approve", "check", "compare", "draft", "drop", "close", "delete", "end",
    "explain", "find", "format", "inspect", "label", "let", "list", "merge", "plant", "print",
    "promote", "propose", "publish", "reject", "restore", "run", "send", "serve", "show", "test",
    "translate", "verify", "write",
)
# fmt: on
"""The words with which the help of a command begins."""


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if words:
        yield words, command
    if hasattr(command, "list_commands"):
        for name in command.list_commands(None):
            yield from commands(command.get_command(None, name), (*words, name))


ALL = dict(commands(typer.main.get_command(app)))


def test_the_panels_are_in_the_order_of_their_use() -> None:
    panels = re.findall(r"╭─ (.+?) ─", dql_prints("--help"))
    assert panels == ["Options", *PANELS]
    assert list(PANELS) == [
        "Start",
        "Write suites",
        "Run",
        "Contracts",
        "Night call",
        "Tune",
        "Tables and tools",
    ]


def test_what_only_programs_start_is_not_listed() -> None:
    listed = re.findall(r"^│ ([a-z]+) ", dql_prints("--help"), re.M)
    names = [name for panel in PANELS.values() for name in panel]
    assert listed == [name for name in names if name not in STARTED_BY_PROGRAMS]
    assert len(listed) == 21
    assert "Model Context Protocol" in dql_prints("mcp", "--help")


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_the_first_line_of_a_help_is_an_order_of_at_most_70_characters(
    words: tuple[str, ...],
) -> None:
    first, *rest = ALL[words].help.split("\n")
    assert len(first) <= 70
    assert first.count(".") == 1 or first.endswith("dqx.toml.")
    assert first.endswith(".")
    assert re.split(r"[ ,]", first.lower())[0] in VERBS
    assert not rest or rest[0] == ""


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_command_has_a_short_option_for_its_help_and_a_plain_usage(
    words: tuple[str, ...],
) -> None:
    shown = dql_prints(*words, "-h")
    usage = re.search(r"Usage: (.*?)\n *\n", shown, re.S)
    assert usage is not None
    assert usage[1].startswith(" ".join(("dql", *words)))
    assert not re.search("[{}]", usage[1])


def test_the_version_has_a_short_option() -> None:
    assert dql_prints("-V") == dql_prints("--version")


@pytest.mark.parametrize("call", ["", "contract", "contract registry", "tune", "tables", "results"])
def test_a_group_alone_prints_its_help_and_is_a_wrong_call(call: str) -> None:
    done = dql(*call.split())
    assert done.returncode == 2
    assert done.stderr == ""
    assert done.stdout.strip() == dql_prints(*call.split(), "--help").strip()


def completed(line: str, **variables: str) -> list[str]:
    """The words that a shell offers for the last word of a line."""
    words = line.split(" ")
    code = "from dqx_airflow.cli.main import app; app(prog_name='dql')"
    asked = {
        "_DQL_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    env = {**os.environ, **asked, **variables}
    return output_of([sys.executable, "-c", code], env=env).split()


def test_the_shell_completes_commands_and_options() -> None:
    assert completed("dql ta") == ["tables"]
    assert completed("dql contract re") == ["registry"]
    assert completed("dql tune ap") == ["approve", "apply"]
    assert completed("dql tune approve --re") == ["--reason", "--results-root"]


def test_a_name_is_completed_without_its_command_or_spark() -> None:
    code = (
        "import sys\n"
        "from dqx_airflow.cli.main import app\n"
        "try: app(prog_name='dql')\n"
        "except SystemExit: pass\n"
        "loaded = sys.modules.keys() & {'pyspark', 'pyarrow', 'lark', 'dqx_airflow.cli.run'}\n"
        "print('loaded', *loaded)\n"
    )
    asked = {"_DQL_COMPLETE": "complete_bash", "COMP_WORDS": "dql ", "COMP_CWORD": "1"}
    run = [sys.executable, "-c", code]
    *names, last = output_of(run, env={**os.environ, **asked}).splitlines()
    assert names[:3] == ["init", "demo", "suggest"]
    assert "lsp" not in names
    assert last == "loaded"
