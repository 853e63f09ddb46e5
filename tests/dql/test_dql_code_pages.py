"""Every code has a page with a wrong example that causes it and a right one that does not.

A page is a reader's first help at night: `dql explain E001` prints it. Its examples are whole
files. Beside the suite there may be files that it imports (`dql file=NAME`) and the datasets of
the gate that runs it (`python`); without these, the gate has all datasets, with dates. A contract
(`yaml`) may stand beside files that it refers to. A suite may stand before a change of its tunables
(`json`), and a history (`jsonl`) alone.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import dqx_airflow
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
from dqx_airflow.plan.dataset_needs import check_datasets
from dqx_airflow.tuning.protection import changed_since, judge_values
from dqx_airflow.tuning.suite_history import History
from dqx_airflow.values import DatasetRef, SourceFile
from tests.markdown_cases import Case, cases

PAGES = Path(dqx_airflow.__file__).parent / "docs" / "codes"
SECTIONS = {
    (case.path.stem, case.title): case for case in cases(*PAGES.glob("*.md"), fewest_blocks=1)
}
WRITTEN = sorted({code for code, _ in SECTIONS})
OF_PAST_DAYS = ("W051",)
"""What stored days say: tests/tuning/test_suite_diff.py has the examples of these."""


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


@pytest.mark.parametrize("code", [code for code in WRITTEN if code not in OF_PAST_DAYS])
def test_the_wrong_example_draws_what_the_page_shows(code: str) -> None:
    drawn = drawing(SECTIONS[code, "Wrong"])
    SECTIONS[code, "Wrong"].expect(drawn)
    assert f"[{code}]" in drawn


@pytest.mark.parametrize("code", WRITTEN)
def test_the_right_example_draws_nothing(code: str) -> None:
    assert not drawing(SECTIONS[code, "Right"])


def drawing(section: Case) -> str:
    """What `dql check` says about the suite, and then the gate about its datasets."""
    suite = next(block for block in section.blocks if not block.option("file"))
    if suite.kind == "jsonl":
        return drawing_of_history(suite.text)
    if suite.kind == "yaml":
        return drawing_of_contract(section, suite.text)
    text = suite.text.replace("\N{SYMBOL FOR NULL}", "\0")
    text = text.replace("\N{HORIZONTAL ELLIPSIS}", " " * LARGEST_FILE)
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
