"""What users read is plain English: none of the words and phrases that do not read as such.

codespell holds the pages to `tests/prose/words.txt` and to its own dictionary. Here those words,
and phrases that a list of words cannot catch, are looked for in the pages and in the strings of the
package: messages, hints, pages of the UI, templates, and docstrings that are help or pages.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import dqx_airflow

PACKAGE = Path(dqx_airflow.__file__).parent
CHECKOUT = PACKAGE.parent
WORDS = dict(
    line.split("->")
    for line in (CHECKOUT / "tests/prose/words.txt").read_text(encoding="utf-8").splitlines()
)
PHRASES = {
    r"((this|that|it|which|value|its \w+|') |^)(is|are) no (?!longer|more|less|match)[a-z`']\w*": (
        "is not a ..."
    ),
    r"there is no such": "... not found",
    r"stands? (for|in|at|on|behind|before|beside|after|between|alone)": "is short for, is in",
    r"so (many|few|long)(?! as)": "N, the number of, at most",
    r"nothing of": "nothing from, no part of",
    r"tells? (of|what|why|which|whom|how|apart|readers|us)": "shows, lists, identifies",
    r"makes? no (difference|sense)": "does not matter, is invalid",
    r"means? nothing": "has no effect, is unknown",
    r"is passed over|pass(es)? over": "is skipped, ignores",
    r"(as|by|of|with) texts?": "strings, sources",
    r"a (blank|sign)": "a space, a character",
}
ALLOWED = {
    "Passes over": "how often a dataset is read",
    "passes over": "how often a dataset is read",
    "pass over": "how often a dataset is read, and what must not happen",
}
PAGES = sorted(
    [CHECKOUT / "README.md", *(PACKAGE / "docs").rglob("*.md"), *PACKAGE.rglob("pages/*.html")]
)
MODULES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_a_page_is_plain_english(path: Path) -> None:
    assert list(offences(path.read_text(encoding="utf-8"))) == []


def test_what_the_package_says_is_plain_english() -> None:
    found = [
        f"{path.relative_to(CHECKOUT)}:{line}: {offence}"
        for path in MODULES
        for line, text in shown(ast.parse(path.read_text(encoding="utf-8")), path)
        for offence in offences(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("nobody can tell", "'nobody': write no one"),
        ("this is no YAML", "'this is no YAML': write is not a ..."),
        ("It stands\nfor the name", "'stands for': write is short for, is in"),
        ("at most so many runs", "'so many': write N, the number of, at most"),
        ("there is no longer a reason to wait, and it is no longer than 5 s", None),
    ],
)
def test_a_phrase_is_found_with_what_to_write(text: str, instead: str | None) -> None:
    assert next(offences(text), None) == instead


def offences(text: str) -> Iterator[str]:
    """What is wrong with a text, and what to write."""
    prose = " ".join(text.split())
    for allowed in ALLOWED:
        prose = prose.replace(allowed, "")
    for found, instead in (WORDS | PHRASES).items():
        if match := re.search(rf"(?<![\w_`.])({found})(?![\w_=])", prose, re.I):
            yield f"{match[0]!r}: write {instead}"


def shown(tree: ast.Module, path: Path) -> Iterator[tuple[int, str]]:
    """The strings of a module that may be shown, with their lines; of f-strings the constant parts.

    Docstrings are for developers, but those of commands are their help, and those of operators
    make their pages.
    """
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    is_help = path.parent.name == "operators" or "cli" in path.parts
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in bare and " " in node.value:
                yield node.lineno, node.value
        elif is_help and isinstance(node, ast.FunctionDef | ast.ClassDef) and is_public(node):
            yield node.lineno, ast.get_docstring(node) or ""


def is_public(node: ast.FunctionDef | ast.ClassDef) -> bool:
    """True for operators, and for commands, whose options are annotated."""
    if isinstance(node, ast.ClassDef):
        return node.name.endswith("Operator")
    return "Annotated[" in ast.unparse(node.args)
