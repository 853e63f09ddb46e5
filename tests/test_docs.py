"""The docs are correct: generated pages are up to date, and examples run.

With DQX_REWRITE_GOLDEN=1 the generated pages are written anew.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from codes_page import codes_page
from public_names import public_names
from results_page import results_page
from skill_page import llms_text, skill_page

import dqx_airflow
from dqx_airflow.contracts.compile.suite import compile_contract
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.datasets.dqx_toml import read_settings
from dqx_airflow.diagnostics import draw
from dqx_airflow.diagnostics.diagnostic import codes
from dqx_airflow.dql.check import check_source
from dqx_airflow.metrics.builtin import CALLABLE, METRICS
from dqx_airflow.values import SourceFile
from tests.markdown_cases import REWRITE
from tests.processes import output_of
from tests.test_readme import REPOSITORY

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCS = Path(dqx_airflow.__file__).parent / "docs"
# The examples of codes and of metrics have tests of their own.
ELSEWHERE = {"metrics.md", *(f"codes/{code}.md" for code in codes())}
PAGES = sorted(
    path for path in DOCS.rglob("*.md") if path.relative_to(DOCS).as_posix() not in ELSEWHERE
)


def examples(kind: str) -> list[tuple[str, str]]:
    """The code blocks of a kind with the places that they stand in, on all pages."""
    found = []
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        for block in re.finditer(rf"^```{kind}\n(.*?)^```$", text, re.M | re.S):
            line = text.count("\n", 0, block.start()) + 2
            found.append((f"{path.relative_to(DOCS)}:{line}", block[1]))
    return found


def assert_up_to_date(page: str, text: str) -> None:
    if REWRITE:
        (DOCS / page).write_text(text, encoding="utf-8")
    assert (DOCS / page).read_text(encoding="utf-8") == text


def test_the_page_of_the_results_tables_is_up_to_date() -> None:
    assert_up_to_date("results.md", results_page())


def test_the_page_of_the_codes_is_up_to_date() -> None:
    assert_up_to_date("codes.md", codes_page())


def test_the_page_on_python_lists_every_public_name() -> None:
    page = (DOCS / "python.md").read_text(encoding="utf-8")
    by_hand = page[: page.index("\n## Public names\n")]
    assert_up_to_date("python.md", f"{by_hand}\n{public_names()}")
    assert "::: dqx_airflow.operators.dql_gate.DqlGateOperator" in public_names()


def test_the_skill_and_the_list_of_pages_for_agents_are_up_to_date() -> None:
    assert_up_to_date("skill/SKILL.md", skill_page())
    assert_up_to_date("llms.txt", llms_text())
    listed = re.findall(r"\]\(([^)]+)\)", llms_text())
    skill = skill_page()
    assert {page for page in listed if not (DOCS / page).is_file()} == set()
    assert {name for name in CALLABLE if f"`{METRICS[name].signature}`" not in skill} == set()
    assert {code for code in codes() if f"- {code}, " not in skill} == set()


def test_the_site_begins_as_the_readme_does() -> None:
    opening = README[: README.index("\n## Demo\n")]
    opening = re.sub(rf"\({REPOSITORY}/(?:blob|raw)/main/dqx_airflow/docs/", "(", opening)
    opening = opening.replace("(#demo)", "(first-gate.md#demo)").replace(
        "(index.md)", "(#where-to-go-from-here)"
    )
    page = (DOCS / "index.md").read_text(encoding="utf-8")
    assert_up_to_date("index.md", opening + page[page.index("\n## Where to go from here\n") :])


def test_the_table_of_outcomes_is_that_of_the_readme() -> None:
    table = README[README.index("| report | task |") :].split("\n\n")[0]
    page = (DOCS / "outcomes.md").read_text(encoding="utf-8")
    assert [row for row in table.splitlines() if row not in page.splitlines()] == []


def test_every_promise_has_tests_that_exist() -> None:
    """The page has the promises, `tests/promises.md` the tests of each."""
    page = (DOCS / "promises.md").read_text(encoding="utf-8")
    section = page.split("\n## The promises\n")[1].split("\n## ")[0]
    promised = [
        " ".join(bold.split()) for bold in re.findall(r"^- \*\*(.+?)\*\*", section, re.M | re.S)
    ]
    promised = [bold.rstrip(".") for bold in promised]
    table = Path(__file__).with_name("promises.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+) \| (`.+`) \|$", table, re.M)
    assert [bold for bold, _ in rows] == promised, "a promise has a row of tests/promises.md"
    assert len(rows) > 10
    for bold, tests in rows:
        for path, test in re.findall(r"`([\w/]+\.py)(?:::(\w+))?`", tests):
            source = (Path(__file__).parent / path).read_text(encoding="utf-8")
            assert f"def {test or 'test_'}" in source, f"{bold}: {path} has no {test}"


def test_every_example_has_a_tested_language() -> None:
    kinds = {
        kind
        for path in PAGES
        for kind in re.findall(r"^```(\w+)\n.*?^```$", path.read_text(), re.M | re.S)
    }
    assert kinds == {"dql", "json", "lua", "mermaid", "python", "sh", "text", "toml", "yaml", "yml"}


@pytest.mark.parametrize(("place", "text"), examples("dql"), ids=lambda value: value[:40])
def test_suites_are_sound(place: str, text: str) -> None:
    checked = check_source(SourceFile(place, text), needs_suite=True)
    assert not checked.diagnostics, draw(checked.diagnostics, checked.sources)


def test_the_rules_for_users_of_other_tools_are_sound() -> None:
    pages = (DOCS / "coming-from.md", DOCS / "write-rules.md")
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    claims = re.findall(r"\| `(assert [^`]+)` \|", text)
    assert len(claims) > 40
    for claim in claims:
        datasets = "orders, customers" if "dataset" in claim else "orders"
        text = f'suite "S" {{ check "C" on {datasets} {{ {claim} name "n" }} }}'.replace(
            "...", "total > 0"
        )
        checked = check_source(SourceFile("coming-from.md", text))
        assert not checked.errors, draw(checked.diagnostics, checked.sources)


@pytest.mark.parametrize(("place", "text"), examples("toml"), ids=lambda value: value[:40])
def test_settings_are_taken(place: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "dqx.toml").write_text(text)
    settings = read_settings(tmp_path / "dqx.toml", place)
    assert not settings.problems, draw(settings.problems, {place: text})
    assert settings.refs or settings.variables


@pytest.mark.parametrize(("place", "text"), examples("yaml"), ids=lambda value: value[:40])
def test_contracts_are_sound_and_can_be_compiled(place: str, text: str) -> None:
    document = read_contract(SourceFile(place, text))
    assert not document.errors, draw(document.diagnostics, document.sources)
    assert document.contract is not None
    compiled = SourceFile(place, compile_contract(document.contract).text)
    assert not check_source(compiled).errors


def test_commands_and_their_options_exist() -> None:
    from click import Context
    from typer.main import get_command

    from dqx_airflow.cli.main import app

    def known_verbs(command: Any) -> set[str]:
        return set(getattr(command, "commands", ()))

    texts = [path.read_text(encoding="utf-8") for path in PAGES]
    calls = {call for text in texts for call in re.findall(r"(?:^|`)dql( [^`\n]+)", text, re.M)}
    assert calls
    for call in calls:
        rest = call.split()
        command: Any = get_command(app)
        while rest and rest[0] in known_verbs(command):
            command = command.get_command(Context(command), rest[0])
            rest = rest[1:]
        if known_verbs(command) and getattr(command, "default", None) is not None:
            command = command.get_command(Context(command), command.default)
        if known_verbs(command):
            assert not rest or rest[0].startswith(("-", "...")), call
        options = {word for word in rest if word.startswith("--")} - {"--help"}
        assert options <= {name for one in command.params for name in one.opts}, call


def test_links_are_not_broken() -> None:
    for path in (*PAGES, *DOCS.rglob("codes/*.md")):
        text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
            if "://" not in target:
                assert (path.parent / target).resolve().is_file(), f"{path.name}: {target}"


def test_an_address_that_moved_still_leads_somewhere() -> None:
    """Pages that moved are redirected, and what moved within them has an anchor there.

    A page or a section that moves gets a line in old_addresses.txt.
    """
    config = (DOCS / "site" / "mkdocs.yml").read_text(encoding="utf-8")
    redirects = dict(re.findall(r"^        ([\w/.-]+\.md): ([\w/.-]+\.md)$", config, re.M))
    assert {page for page in redirects if (DOCS / page).exists()} == set()
    for address in Path(__file__).with_name("old_addresses.txt").read_text("utf-8").split():
        page, _, anchor = address.partition("#")
        page = redirects.get(page, page)
        assert (DOCS / page).is_file(), address
        assert not anchor or anchor in anchors(page), f"{address}: {page} has no such anchor"


def test_links_to_sections_are_not_broken() -> None:
    for path in (*PAGES, *DOCS.rglob("codes/*.md")):
        text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
        for target, anchor in re.findall(r"\]\(([^)#\s:]*)#([\w-]+)\)", text):
            page = (path.parent / target).resolve() if target else path
            assert anchor in anchors(page), f"{path.name}: {target}#{anchor}"


@cache
def anchors(page: str | Path) -> set[str]:
    """The anchors of a page: its headings, as the site and GitHub name them, and its `<a id>`."""
    text = (DOCS / page).read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    titles = re.findall(r"^#+ (.+)$", prose, re.M)
    return {*map(anchor_of, titles), *re.findall(r'<a id="([\w-]+)">', text)}


def anchor_of(title: str) -> str:
    """The anchor of a heading."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower())


def test_every_page_is_one_click_from_the_index() -> None:
    config = (DOCS / "site" / "mkdocs.yml").read_text(encoding="utf-8")
    pages = re.findall(r"^ +- ([\w/.-]+\.md)$", config.split("\nnav:\n")[1], re.M)
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    linked = {"index.md", *re.findall(r"\]\(([\w/.-]+\.md)", index)}
    assert [page for page in pages if page not in linked] == []
    assert len(pages) <= 40


QUESTIONS = re.findall(
    r"^\| (.+\?) \| `([\w/.-]+)` \| `(.+)` \| .+ \| [01], (\d+) \|$",
    Path(__file__).with_name("questions.md").read_text(encoding="utf-8"),
    re.M,
)


@pytest.mark.parametrize(
    ("question", "page", "answer", "measured"), QUESTIONS, ids=lambda value: value[:40]
)
def test_a_question_is_answered_one_click_from_the_index(
    question: str, page: str, answer: str, measured: str
) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    at = text.find(answer)
    assert at >= 0, f"{page} does not answer: {question}"
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    links = re.findall(rf"\]\({re.escape(page)}(?:#([\w-]+))?\)", index)
    assert links or page == "index.md"
    starts = [start for link in links or [""] if (start := place_of(link, text)) <= at]
    words = text[max(starts) : at].split()
    assert len(words) <= min(700, int(measured) + 50), f"{len(words)} words are above the answer"


def place_of(anchor: str, text: str) -> int:
    """The place in a page that a link with this anchor leads to."""
    if not anchor:
        return 0
    headings = re.finditer(r"^#+ (.+)$", text, re.M)
    return next(found.start() for found in headings if anchor_of(found[1]) == anchor)


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("material"), reason="needs mkdocs-material")
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    config = str(DOCS / "site" / "mkdocs.yml")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", config, "-d", str(tmp_path)]
    output_of(build)
    for page in ("index.html", "operators/index.html", "codes/E001/index.html"):
        assert (tmp_path / page).is_file()
    python = (tmp_path / "python" / "index.html").read_text(encoding="utf-8")
    assert "Runs a suite" in python or 'id="dqx_airflow.api.suite.Interpreter"' in python
    assert not (tmp_path / "site").exists()


def test_the_newest_version_of_the_changelog_is_that_of_the_package_and_of_the_pages() -> None:
    newest = re.search(r"^## ([\d.]+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == dqx_airflow.__version__
    named = {
        version
        for page in DOCS.rglob("*.md")
        for version in re.findall(r"dqx[-_]airflow(?:==|-)(\d+\.\d+\.\d+)", page.read_text("utf-8"))
    }
    assert named == {dqx_airflow.__version__}


def test_a_version_has_two_screens_in_the_changelog() -> None:
    versions = (ROOT / "CHANGELOG.md").read_text("utf-8").split("\n## ")[1:]
    assert [version.split("\n")[0] for version in versions if version.count("\n") > 100] == []
