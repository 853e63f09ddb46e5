"""The mistakes that people make in suites, and how each is drawn: see the Markdown files."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from markdown_cases import Block, Case, cases

from dqx_airflow.diagnostics import CODES, draw
from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.claims import datasets_of
from dqx_airflow.plan.resolve import check_datasets
from dqx_airflow.values import DatasetRef, SourceFile

HERE = Path(__file__).parent
PACKAGE = Path(check_source.__code__.co_filename).parents[1]
CASES = list(cases(*HERE.glob("diagnostics/*.md"), HERE / "seed" / "not_yet.md"))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_mistake_is_drawn_as_the_case_shows(case: Case) -> None:
    case.expect(drawing(case))


def test_titles_are_unique() -> None:
    titles = [str(case) for case in CASES]
    assert len(titles) == len(set(titles))


def test_every_code_of_the_table_has_a_case() -> None:
    shown = set(re.findall(r"(?:error|warning)\[(\w+)\]", "".join(map(_expected, CASES))))
    assert shown == set(CODES)


def test_every_code_that_is_used_stands_in_the_table_and_the_other_way_round() -> None:
    used = set()
    for path in PACKAGE.rglob("*.py"):
        if path.name != "codes.py":
            used |= set(re.findall(r"\"([EW]\d{3})\"", path.read_text(encoding="utf-8")))
    assert used == set(CODES)


def test_findings_are_in_source_order() -> None:
    for case in CASES:
        places = [(int(a), int(b)) for a, b in re.findall(r"--> .*:(\d+):(\d+)", _expected(case))]
        assert places == sorted(places), case.title


def test_colours_change_nothing_but_the_colours() -> None:
    for case in CASES:
        source = SourceFile("suite.dql", program(case.block("dql")))
        found, sources = check_source(source).diagnostics, {source.name: source.text}
        painted = draw(found, sources, colour=True)
        assert re.sub(r"\033\[\d+m", "", painted) == draw(found, sources)


MANY = 5000


@pytest.mark.parametrize(
    ("line", "errors"),
    [
        ('assert average(price) > {i} name "a{i}"', 0),
        ('assert avg(price) > {i} name "a{i}"', MANY),
        ('assert average(price >> {i} name "a{i}"', MANY),
        ('assert average(price) > "{i}', MANY),
    ],
    ids=["sound", "unknown metric", "syntax error", "open string"],
)
def test_thousands_of_assertions_are_checked_and_drawn_within_seconds(
    line: str, errors: int
) -> None:
    lines = "\n".join(line.replace("{i}", str(i)) for i in range(MANY))
    text = f'suite "S" {{\ncheck "C" on orders {{\n{lines}\n}}\n}}\n'
    started = time.perf_counter()
    checked = check_source(SourceFile("suite.dql", text))
    draw(checked.diagnostics, {"suite.dql": text})
    assert len(checked.errors) == errors
    assert time.perf_counter() - started < 8


def _long(name: str) -> str:
    return {
        "brackets": f"assert {'(' * 50_000}1{')' * 50_000} > 0",
        "unclosed brackets": f"assert {'(' * 50_000}",
        "lists": f"assert duplicate_count({'[' * 50_000}",
        "minus signs": f"assert {'-' * 50_000}1 > 0",
        "sums": f"assert num_rows(){' + 1' * 50_000} > 0",
        "keywords as names": f"assert a{' + assert + check + profile' * 20_000} > 0",
        "negations": f"assert each row: {'not ' * 50_000}a > 0",
        "braces": "{" * 50_000,
        "closing braces": "}" * 50_000,
        "groups of a pattern": f'assert each row: a matches "{"(" * 50_000}{")" * 50_000}"',
        "digits": f"assert num_rows() > {'9' * 50_000}",
        "a name": f"assert {'a' * 500_000}() > 0",
        "a text": f'assert maximum(a) > "{"a" * 500_000}" tolerance 1',
        "windows": f"assert {'mean(' * 20}num_rows(){', n 3000)' * 20} > 0",
        "changes": f"assert {'day_over_day(' * 60}num_rows(){')' * 60} > 0",
    }[name]


@pytest.mark.parametrize(
    "name",
    [
        "brackets",
        "unclosed brackets",
        "lists",
        "minus signs",
        "sums",
        "keywords as names",
        "negations",
        "braces",
        "closing braces",
        "groups of a pattern",
        "digits",
        "a name",
        "a text",
        "windows",
        "changes",
    ],
)
def test_the_absurdly_large_is_an_error_at_once_and_what_follows_is_still_checked(
    name: str,
) -> None:
    text = f'suite "S" {{\ncheck "C" on orders {{\n{_long(name)}\nassert avg(a) > 0\n}}\n}}\n'
    started = time.perf_counter()
    checked = check_source(SourceFile("suite.dql", text))
    assert 0 < len(checked.errors) <= 3
    if "braces" not in name:
        assert "unknown metric 'avg'" in [found.message for found in checked.errors]
    assert len(draw(checked.diagnostics, {"suite.dql": text})) < 4000
    assert time.perf_counter() - started < 2


def test_constants_that_build_on_each_other_are_computed_once() -> None:
    doubled = "\n".join(f"const A{i + 1} = A{i} * A{i}" for i in range(3000))
    text = f'suite "S" {{\nconst A0 = 1.0\n{doubled}\n}}\n'
    started = time.perf_counter()
    found = check_source(SourceFile("suite.dql", text)).diagnostics
    assert [item.code for item in found] == ["W004"]
    assert time.perf_counter() - started < 2


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
    if block.has("bom"):
        text = "\ufeff" + text
    return text


def drawing(case: Case) -> str:
    """All that is found. `names` keeps W001, `undated` gives the datasets no dates.

    Blocks with the option `file=NAME` are files that may be imported.
    """
    block = next(item for item in case.blocks if item.kind == "dql" and not item.option("file"))
    files = {item.option("file"): item.text for item in case.blocks if item.option("file")}

    def read(importer: str, path: str) -> SourceFile | str:
        return SourceFile(path, files[path]) if path in files else "there is no such file"

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
    return draw(found, checked.sources) or "nothing"


def _expected(case: Case) -> str:
    return case.blocks[-1].text
