"""Every command of the pages on installing and deploying, as it is printed, in an environment of
its own, on each Python that the page names: the operators are imported, or a suite runs."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree, which

import pytest

from tests.e2e.fresh_environment import run

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "dqx_airflow" / "docs"
PAGES = (DOCS / "install.md", DOCS / "deploy.md", *sorted((DOCS / "deploy").glob("*.md")))
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")

OURS = re.compile(r"(?:\$DQX_WHEEL|/tmp/dqx_airflow-[\d.]+-py3-none-any\.whl)(\[[\w,]+\])?$")
MANY = re.compile(r"`(pip install \"[^`]*)`, or ((?:`[\w-]+`(?:, | or )?)+)")
ROW = re.compile(r"^\|[^|]+\| (3\.\d+) to (3\.\d+) \| (.*)$", re.M)
"""A row of a table whose second column are the Pythons of the commands in the third."""

SUITE = 'suite "S" { check "C" on o { assert num_rows() == 2 name "two" } }'
IN_MEMORY = f"""
import deltalake, numpy, pyarrow
from datetime import date
from dqx_airflow import MemoryDatabase, Suite
suite = Suite.from_string({SUITE!r})
run = suite.run(MemoryDatabase({{"o": [{{"a": 1}}, {{"a": 2}}]}}), date(2024, 1, 1))
assert run.report.outcome == "passed", run.report
"""
OPERATORS = """
from datetime import datetime
from airflow.sdk import DAG
from dqx_airflow.operators import ContractGateOperator, DqlGateOperator
from dqx_airflow.operators import submitters
"""


@dataclass(frozen=True)
class Recipe:
    """A command of a page; `wanted` are the packages that it names, `pythons` the Pythons on which
    the page says that it works."""

    command: str
    wanted: tuple[str, ...]
    pythons: tuple[str, ...] = PYTHONS

    @property
    def extras(self) -> frozenset[str]:
        found = [match[1] for word in self.wanted if (match := OURS.match(word)) and match[1]]
        return frozenset(extra for text in found for extra in text.strip("[]").split(","))


def recipes() -> Iterator[Recipe]:
    """The commands that install our package, each extra that a page names after `or` as well."""
    seen = set()
    for page in PAGES:
        text = page.read_text("utf-8")
        rows = [(_between(first, last), row) for first, last, row in ROW.findall(text)]
        extras = re.findall(r"Install the extra `(\w+)`", text)
        others = [*(f'pip install "$DQX_WHEEL[{extra}]"\n' for extra in extras), ROW.sub("", text)]
        for pythons, part in [*rows, *((PYTHONS, other) for other in others)]:
            for command in _commands(part):
                given = (word for word in _words(command) if not word.startswith("-"))
                words = tuple(OURS.sub(r"$DQX_WHEEL\1", word) for word in given)
                if any(map(OURS.match, words)) and words not in seen:
                    seen.add(words)
                    yield Recipe(command.strip(), words, pythons)


def _commands(text: str) -> list[str]:
    commands = re.findall(r"pip install [^`\n|&]+", text)
    for command, others in MANY.findall(text):
        names = re.findall(r"`([\w-]+)`", others)
        commands += [re.sub(r"\[\w+\]", f"[{name}]", command) for name in names]
    return commands


def _between(first: str, last: str) -> tuple[str, ...]:
    return PYTHONS[PYTHONS.index(first) : PYTHONS.index(last) + 1]


def _words(command: str) -> list[str]:
    return shlex.split(command.partition("pip install ")[2].partition(" #")[0].rstrip(").,"))


RECIPES = list(recipes())


def test_the_pages_have_a_recipe_for_each_kind_of_installation() -> None:
    extras = [recipe.extras for recipe in RECIPES]
    for extra in ("airflow", "local", "spark", "sail", "livy", "amazon", "google", "kubernetes"):
        assert any(extra in named for named in extras), extra
    assert [recipe for recipe in RECIPES if "databricks-connect" in recipe.wanted] != []
    pythons = {recipe.pythons[-1] for recipe in RECIPES if "numpy<2" in recipe.wanted}
    assert pythons == {"3.12"}, "this package needs a newer numpy from Python 3.13 on"


def test_no_page_depends_on_an_index_that_has_no_release() -> None:
    """What needs one is said to be the second way, below the wheel."""
    for page in (*PAGES, DOCS / "first-gate.md", DOCS / "index.md", ROOT / "README.md"):
        commands = re.findall(r"pip install [^`\n|&]+", page.read_text("utf-8"))
        assert [one for one in commands if re.search(r"(?<![/\w])dqx-airflow(?!/)", one)] == [], (
            page
        )


CASES = [(recipe, python) for recipe in RECIPES for python in recipe.pythons]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """The folder of an environment, which is removed: each of the 71 has half a gigabyte."""
    yield tmp_path / "environment"
    rmtree(tmp_path / "environment", ignore_errors=True)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("recipe", "python"), CASES, ids=lambda value: getattr(value, "wanted", (value,))[-1]
)
def test_a_recipe_installs_what_its_page_promises(
    recipe: Recipe, python: str, archives: list[Path], tmp_path: Path, home: Path
) -> None:
    """With the wheel of this checkout, since no index has one."""
    (wheel,) = (path for path in archives if path.suffix == ".whl")
    uv = which("uv", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    assert uv
    run([uv, "venv", "-q", "--python", python, home], tmp_path)
    wanted = [OURS.sub(lambda match: f"{wheel}{match[1] or ''}", word) for word in recipe.wanted]
    # Without what uv keeps: it builds PySpark anew for each environment.
    run([uv, "pip", "install", "-q", "--no-cache", "-p", home, *wanted], tmp_path)
    program = home / "bin" / "python"
    run([program, "-c", IN_MEMORY], tmp_path)
    if with_airflow(recipe):
        run([program, "-c", OPERATORS], tmp_path, AIRFLOW_HOME=str(tmp_path / "airflow"))
    if "sail" in recipe.extras:
        (tmp_path / "s.dql").write_text(SUITE)
        (tmp_path / "o.csv").write_text("a\n1\n2\n")
        sail = ["run", "s.dql", "--dataset", "o=o.csv?schema=a int", "--engine", "sail"]
        run([home / "bin" / "dql", *sail], tmp_path)


def with_airflow(recipe: Recipe) -> bool:
    return bool(recipe.extras - {"spark", "sail", "delta", "iceberg", "tuning", "lsp", "mcp"})
