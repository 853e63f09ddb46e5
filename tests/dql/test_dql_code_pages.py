"""Every code has a page with a wrong example that causes it and a right one that does not.

A page is a reader's first help at night: `dql explain E001` prints it. Its examples are whole
files. Beside the suite there may be files that it imports (`dql file=NAME`) and the datasets of
the gate that runs it (`python`); without these, the gate has all datasets, with dates. A contract
(`yaml`) may stand beside files that it refers to. A suite may stand before a change of its tunables
(`json`), and a history (`jsonl`) alone. After a wrong example, the page says how `dql check` or
`dql contract lint` ends, and what happens to a gate: both are run.
"""

from __future__ import annotations

import ast
import json
import re
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import dqx_airflow
from dqx_airflow.api.contract import Contract
from dqx_airflow.api.database import MemoryDatabase
from dqx_airflow.api.suite import Suite
from dqx_airflow.contracts.datalex_binding import check_blocks, manifest_findings
from dqx_airflow.contracts.dialects.datalex import read_manifest
from dqx_airflow.contracts.enforcement.lint import RULES, lint
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.contracts.references import FolderReader
from dqx_airflow.diagnostics import draw
from dqx_airflow.diagnostics.diagnostic import Diagnostic, codes, page, reason, title
from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.checks.assertions import datasets_of
from dqx_airflow.dql.syntax.source_file import LARGEST_FILE, is_block_file
from dqx_airflow.errors import SourceError
from dqx_airflow.plan.dataset_needs import check_datasets
from dqx_airflow.tuning.protection import changed_since, judge_values
from dqx_airflow.tuning.suite_history import History
from dqx_airflow.values import DatasetRef, Outcome, SourceFile
from tests.command_line import dql
from tests.markdown_cases import Block, Case, cases, rows

PAGES = Path(dqx_airflow.__file__).parent / "docs" / "codes"
SECTIONS = {
    (case.path.stem, case.title): case for case in cases(*PAGES.glob("*.md"), fewest_blocks=1)
}
WRITTEN = sorted({code for code, _ in SECTIONS})
OF_PAST_DAYS = ("W051",)
"""What stored days say: tests/tuning/test_suite_diff.py has the examples of these."""

OF_A_HISTORY = ("W050",)
"""Of a file that neither `dql check` nor a gate reads."""

LONG = ("E206",)
"""Whose example expands to as much as a suite may."""

FOUND_LATER = ("E111", "E601", "E602", "E603", "E604")
"""What a gate finds about its datasets, and what is found about a change of tunables."""

CHRISTMAS = date(2024, 12, 25)
CLAIMS = rows(Path(__file__).parent / "code_outcomes.md", "Outcomes")


def test_every_code_that_is_reported_has_a_page_and_every_page_is_of_one() -> None:
    package = Path(dqx_airflow.__file__).parent
    sources = [*package.rglob("*.py"), *package.rglob("*.txt")]
    texts = (path.read_text(encoding="utf-8") for path in sources)
    reported = {code for text in texts for code in re.findall(r'["|] ?([EW]\d{3}) ?["|]', text)}
    assert sorted(reported) == list(codes()) == WRITTEN


@pytest.mark.parametrize("code", WRITTEN)
def test_a_page_has_a_title_a_reason_and_two_sections(code: str) -> None:
    assert page(code).startswith(f"# {code}: {title(code)}\n\n")
    assert reason(code).endswith(".")
    assert [section for of, section in SECTIONS if of == code] == ["Wrong", "Right"]


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(code, marks=pytest.mark.more) if code in LONG else code
        for code in WRITTEN
        if code not in OF_PAST_DAYS
    ],
)
def test_the_wrong_example_draws_what_the_page_shows(code: str) -> None:
    drawn = drawing(SECTIONS[code, "Wrong"])
    SECTIONS[code, "Wrong"].expect(drawn)
    assert f"[{code}]" in drawn


@pytest.mark.parametrize("code", WRITTEN)
def test_the_right_example_draws_nothing(code: str) -> None:
    assert not drawing(SECTIONS[code, "Right"])


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(code, marks=pytest.mark.slow) if code in LONG else code
        for code in WRITTEN
        if code not in OF_PAST_DAYS + OF_A_HISTORY
    ],
)
def test_the_page_says_how_its_wrong_example_ends(code: str, tmp_path: Path) -> None:
    section = SECTIONS[code, "Wrong"]
    file = written(section, tmp_path)
    command = command_for(section, file)
    call = dql(*command, file.name, cwd=tmp_path)
    if code not in FOUND_LATER:
        assert f"[{code}]" in call.output
    ending = f"`dql {' '.join(command)}` exits with {call.returncode}"
    if effect := effect_of(section, file):
        ending += f", and {effect}"
    wrong = page(code).split("\n## Wrong\n")[1].split("\n## Right\n")[0]
    assert wrong.split("```\n")[-1].strip() == f"{ending}."


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim[0]}: {claim[1][:30]}")
def test_what_a_page_says_about_an_outcome_is_so(claim: tuple[str, ...], tmp_path: Path) -> None:
    code, sentence, on, count, outcome = claim
    assert sentence in " ".join(page(code).split())
    file = written(SECTIONS[code, "Wrong"], tmp_path)
    assert outcome_of(file, date.fromisoformat(on), int(count)).value == outcome


def test_every_page_that_says_broken_is_among_the_claims() -> None:
    saying = {code for code in WRITTEN if re.search("broken|would block (as|where)", reasons(code))}
    assert saying - {code for code, *_ in CLAIMS} - set(OF_PAST_DAYS) == set()


def command_for(section: Case, file: Path) -> tuple[str, ...]:
    """The arguments of the `dql` command that reads a file. It finds a compiled manifest itself."""
    if file.suffix == ".yaml":
        return "contract", "lint"
    others = (block.option("file") for block in section.blocks)
    sources = [name for name in others if name.endswith(".yaml")]
    return ("check", "--datalex", *sources) if sources else ("check",)


def reasons(code: str) -> str:
    """The text of a page above its examples."""
    return page(code).split("\n## Wrong\n")[0].split("\n", 1)[1]


def effect_of(section: Case, file: Path) -> str:
    """What an example does to a gate, or what becomes of the change that it requests."""
    if file.suffix == ".dql" and is_block_file(file.read_text()):
        return ""
    if section.block("json").text:
        return "the change is refused"
    try:
        if file.suffix == ".dql" and (given := datasets(section)):
            checked = check_source(SourceFile(file.name, file.read_text()), needs_suite=True)
            assert checked.suite is not None
            if check_datasets(checked.suite, given):
                return "a gate is misconfigured"
        outcome = outcome_of(file, CHRISTMAS, count=1)
    except SourceError:
        return "a gate is misconfigured"
    return "a gate is broken" if outcome is Outcome.BROKEN else "a gate runs"


def outcome_of(file: Path, on: date, count: int) -> Outcome:
    """The outcome for a number of equal rows of a date, without a value in any column."""
    if file.suffix == ".yaml":
        contract = Contract.load(file, on=date(2024, 12, 1))
        tables = {
            model.name: [{field.name: None for field in model.fields}] * count
            for model in contract.described
        }
        return contract.run(MemoryDatabase(tables), on).outcome
    suite = Suite.load(file)
    columns = dict.fromkeys(("country", "email", "order_id", "phone", "status", "total"))
    given = {
        name: [{"day": on, **columns}] * count for check in suite.checks for name in check.datasets
    }
    return suite.run(MemoryDatabase(given, date_columns=dict.fromkeys(given, "day")), on).outcome


def written(section: Case, folder: Path) -> Path:
    """The file of an example, in a folder with the other files of its section."""
    for block in section.blocks:
        if name := block.option("file"):
            (folder / name).write_text(block.text, encoding="utf-8")
    if main_block(section).kind == "yaml":
        file, text = folder / "contract.yaml", main_block(section).text
    else:
        file, text = folder / "suite.dql", text_of_suite(section)
    file.write_text(text, encoding="utf-8")
    return file


def main_block(section: Case) -> Block:
    return next(block for block in section.blocks if not block.option("file"))


def text_of_suite(section: Case) -> str:
    """The suite of an example, with the characters that a page cannot show."""
    text = main_block(section).text.replace("\N{SYMBOL FOR NULL}", "\0")
    return text.replace("\N{HORIZONTAL ELLIPSIS}", " " * LARGEST_FILE)


def drawing(section: Case) -> str:
    """What `dql check` says about the suite, and then the gate about its datasets."""
    suite = main_block(section)
    if suite.kind == "jsonl":
        return drawing_of_history(suite.text)
    if suite.kind == "yaml":
        return drawing_of_contract(section, suite.text)
    text = text_of_suite(section)
    files = {block.option("file"): block.text for block in section.blocks if block.option("file")}

    if is_block_file(text):
        return drawing_of_blocks(SourceFile("blocks.dql", text), files)

    def read(importer: str, path: str) -> SourceFile | str:
        return SourceFile(path, files[path]) if path in files else "file not found"

    checked = check_source(SourceFile("suite.dql", text), read)
    found = checked.diagnostics
    if checked.suite is not None and not checked.errors:
        names = datasets_of(checked.suite.checks)
        given = datasets(section) or [DatasetRef(name, date_column="day") for name in names]
        found += check_datasets(checked.suite, given)
        if change := section.block("json").text:
            wanted = json.loads(change)
            found += changed_since(checked.suite, wanted.get("from", {}))
            found += judge_values(checked.suite, wanted["set"], wanted["agent"]).refusals
    return draw(found, checked.sources)


def drawing_of_history(text: str) -> str:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "suite.dql.history"
        path.write_text(text, encoding="utf-8")
        _, damaged = History(path).read()
    return draw(damaged, {str(path): text}).replace(str(path), path.name)


def drawing_of_contract(section: Case, text: str) -> str:
    """The findings of a contract in a folder with the other files of the section."""
    with TemporaryDirectory() as folder:
        for block in section.blocks:
            if name := block.option("file"):
                (Path(folder) / name).write_text(block.text, encoding="utf-8")
        found = read_contract(SourceFile("contract.yaml", text), FolderReader(Path(folder)))
    unchecked: tuple[Diagnostic, ...] = ()
    if found.contract is not None and not found.errors:
        # A rule of lint has its page for itself: no example keeps all of them.
        others = [rule.code for rule in RULES if rule.code != section.path.stem]
        unchecked = lint(found.contract, ignored=others)
    return draw((*found.diagnostics, *unchecked), found.sources)


def drawing_of_blocks(source: SourceFile, files: dict[str, str]) -> str:
    """What `dql check` says about blocks, beside the manifest of the section if it has one."""
    manifest, found = None, ()
    for name, text in files.items():
        manifest = read_manifest(SourceFile(name, text))
    checked = check_blocks(source, manifest)
    if manifest is not None:
        found = manifest_findings(manifest, [checked])
    return draw((*checked.diagnostics, *found), {source.name: source.text, **files})


def datasets(section: Case) -> list[DatasetRef]:
    """The datasets of the gate: `datasets = {"orders": {"path": "lake/orders"}}`."""
    _, _, written = section.block("python").text.partition("=")
    given = ast.literal_eval(written.strip() or "{}")
    return [DatasetRef(name, **settings) for name, settings in given.items()]
