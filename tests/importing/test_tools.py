"""The tools of `dql import`: one list for the command, its help and the page, and files that more
than one tool could claim."""

from __future__ import annotations

from pathlib import Path

import pytest

from dqx_airflow.importing.tools import TOOLS, read_rules
from dqx_airflow.values import SourceFile
from tests.command_line import dql

DOCS = Path(__file__).parents[2] / "dqx_airflow" / "docs"
TITLES = [tool.title for tool in TOOLS.values()]


def test_the_help_and_the_message_name_all_tools_in_order() -> None:
    help_text = " ".join(dql("import", "--help").stdout.replace("│", " ").split())
    listed = help_text.partition("--tool")[2].partition("; default")[0]
    *first, last = TOOLS
    assert f"{', '.join(first)} or {last}" in listed
    message = dql("import", "a.yml", "--tool", "griffin").stderr
    assert ", ".join(TOOLS) in " ".join(message.replace("│", " ").split())


def test_the_page_has_a_row_for_each_tool_in_order() -> None:
    page = (DOCS / "coming-from.md").read_text(encoding="utf-8")
    _, _, after = page.partition("| tool | files |\n|---|---|\n")
    rows = after.partition("\n\n")[0].splitlines()
    assert [row.split("|")[1].split(",")[0].strip() for row in rows] == TITLES


_CUALLEE = "check = Check(CheckLevel.ERROR, 'e')\ncheck.is_complete('id')\n"
_DEEQU = "check = Check(spark, CheckLevel.Error, 'e')\ncheck.isComplete('id')\n"


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        (f"from cuallee import Check, CheckLevel\n{_CUALLEE}", "cuallee"),
        (f"import cuallee\nimport pydeequ\n{_CUALLEE}", "cuallee"),
        (f"import os, cuallee as c\n{_CUALLEE}", "cuallee"),
        (f"def f():\n    from cuallee.dagster import make\n{_CUALLEE}", "cuallee"),
        (f"# once in cuallee\nfrom pydeequ.checks import *\n{_DEEQU}", "deequ"),
        (f"import pydeequ  # not cuallee\n{_DEEQU}", "deequ"),
        ("checks for orders:\n# cuallee: Check(...)\n- row_count > 0\n", "soda"),
    ],
)
def test_a_file_of_checks_belongs_to_the_tool_that_it_imports(text: str, tool: str) -> None:
    assert read_rules(SourceFile("rules", text))[0] == tool
