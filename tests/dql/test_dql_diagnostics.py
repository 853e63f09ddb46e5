"""Mistakes in suites, and how each is reported: see the Markdown files.

A case with `long` behind `dql` takes seconds: it is in the second lane.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dqx_airflow.diagnostics import draw
from dqx_airflow.diagnostics.diagnostic import codes
from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.checks.assertions import datasets_of
from dqx_airflow.dql.syntax.source_file import LARGEST_FILE
from dqx_airflow.plan.dataset_needs import check_datasets
from dqx_airflow.values import DatasetRef, SourceFile
from tests.markdown_cases import Block, Case, cases

HERE = Path(__file__).parent
CASES = list(cases(*HERE.glob("diagnostics/*.md")))


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=pytest.mark.more) if case.block("dql").has("long") else case
        for case in CASES
    ],
    ids=str,
)
def test_diagnostics_are_drawn_as_in_the_case(case: Case) -> None:
    case.expect(drawing(case))


def test_titles_are_unique() -> None:
    titles = [str(case) for case in CASES]
    assert len(titles) == len(set(titles))


def test_every_code_of_the_table_has_a_case() -> None:
    shown = set(re.findall(r"(?:error|warning)\[(\w+)\]", "".join(map(_expected, CASES))))
    # Those about contracts, blocks and tuning have theirs on their pages.
    assert shown == {code for code in codes() if not re.match("E[456]|W0[2345]", code)}


def test_findings_are_in_source_order() -> None:
    for case in CASES:
        places = [(int(a), int(b)) for a, b in re.findall(r"--> .*:(\d+):(\d+)", _expected(case))]
        assert places == sorted(places), case.title


def program(block: Block) -> str:
    """The suite of a case: a bare assertion is wrapped, what Markdown cannot hold is put in."""
    text = block.text
    if not block.has("whole") and not text.lstrip().startswith(("suite", "#")):
        if text.lstrip().startswith(("assert", "@")):
            indented = "".join(f"    {line}\n" if line else "\n" for line in text.splitlines())
            text = f'check "C" on orders {{\n{indented}}}\n'
        text = f'suite "S" {{\n{text}}}\n'
    if block.has("nul"):
        text = text.replace("\N{SYMBOL FOR NULL}", "\0")
    if block.has("nbsp"):
        text = text.replace("\N{SHOULDERED OPEN BOX}", "\N{NO-BREAK SPACE}")
    if block.has("crlf"):
        text = text.replace("\n", "\r\n")
    if block.has("huge"):
        text += " " * LARGEST_FILE
    if block.has("bom"):
        text = "\ufeff" + text
    return text


def drawing(case: Case) -> str:
    """All that is found. `names` keeps W001, `undated` gives the datasets no dates.

    Colours change nothing but the colours.

    Blocks with the option `file=NAME` are files that may be imported.
    """
    block = next(item for item in case.blocks if item.kind == "dql" and not item.option("file"))
    files = {item.option("file"): item.text for item in case.blocks if item.option("file")}

    def read(importer: str, path: str) -> SourceFile | str:
        return SourceFile(path, files[path]) if path in files else "file not found"

    source = SourceFile("suite.dql", program(block))
    files["suite.dql"] = source.text
    checked = check_source(source, read, needs_suite=block.has("gate"))
    found = checked.diagnostics
    if checked.suite is not None and not checked.errors and block.option("datasets"):
        column = None if block.has("undated") else "day"
        names = block.option("datasets").split(",")
        names = list(datasets_of(checked.suite.checks)) if names == ["all"] else names
        refs = [DatasetRef(name, path="there", date_column=column) for name in names]
        found += check_datasets(checked.suite, refs)
    if not block.has("names"):
        found = tuple(item for item in found if item.code != "W001")
    drawn = draw(found, checked.sources)
    assert re.sub(r"\033\[\d+m", "", draw(found, checked.sources, colour=True)) == drawn
    return drawn or "nothing"


def _expected(case: Case) -> str:
    return case.blocks[-1].text
