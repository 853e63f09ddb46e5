"""User-visible text is plain English: it avoids the words and phrases listed here.

codespell checks the pages against `tests/prose/words.txt` and its own dictionary. These tests also
look for the words, and for phrases that a word list cannot express, in three kinds of text:

- pages: the README, the docs, the changelog, the pages of the UI, the examples
- strings of the package: messages, hints, help, templates, and docstrings that are shown
- docstrings and comments for developers, in which fewer words are excluded

Sentences of the docs and cells of their tables have a limit of words, too.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import dqx_airflow

pytestmark = pytest.mark.slow

PACKAGE = Path(dqx_airflow.__file__).parent
CHECKOUT = PACKAGE.parent
WORDS = dict(
    line.split("->")
    for line in (CHECKOUT / "tests/prose/words.txt").read_text(encoding="utf-8").splitlines()
)
FOR_ALL = {
    r"there is no such": "... does not exist",
    r"nothing of": "nothing from, no part of",
    r"so (many|few)(?! as)": "N, the number of, at most",
    r"tells? of": "shows, lists, identifies",
    r"makes? no (difference|sense)": "does not matter, is invalid",
    r"means? nothing": "has no effect, is unknown",
    r"is passed over|pass(es)? over": "is skipped, ignores",
    r"((this|that|it|which) |^)(is|are) no (?!longer|more|less|match|outlier)[a-z`']\w*": (
        "is not a ..."
    ),
    r"in the nature of|for the sake of": "because",
    r"held against": "checked against, compared with",
    r"takes? along|taken along": "include, add",
    r"to the (eye|letter)": "exactly",
    r"(says?|said|asked) of": "about, from",
    r"has not\.|have not\.": "does not have",
}
"""Phrases that no text has."""

FOR_USERS = {
    r"((this|that|it|which|value|its \w+|') |^)(is|are) no (?!longer|more|less|match)[a-z`']\w*": (
        "is not a ..."
    ),
    r"stands? (for|in|at|on|behind|before|beside|after|between|alone)": "is short for, is in",
    r"so (many|few|long)(?! as)": "N, the number of, at most",
    r"tells? (of|what|why|which|whom|how|apart|readers|us)": "shows, lists, identifies",
    r"(as|by|of|with) texts?": "strings, sources",
    r"a (blank|sign)": "a space, a character",
    r"what (becomes|became) of": "the state of, the effect on",
    r"what (is|was) told": "what is reported",
    r"goes on where": "resumes, continues",
    r"is of no (use|avail)": "does not help",
    r"for want of|for lack of (?!data|history)": "because ... is missing",
    r"has not got|have not got": "does not have",
    r"it is a matter of": "it depends on",
    r"quick and": "fast",
    r"[\d.,]+ of the (time|cpu|processor)": "N% less (more) time than the baseline",
    r"times (faster|slower|quicker|cheaper)": "N times as long as the baseline",
    r"[\d.,]+% (faster|slower|quicker|(less|more) ((cpu |processor )?time|memory))(?! than)": (
        "... than the baseline"
    ),
}
"""Phrases that user-visible text does not have either."""

FOR_READERS = {
    r"also (if|with(?!in)|where|when|while|behind|after|without|under|over)": "even ...",
    r"(that|those) of": "the noun again",
    r"beside": "next to, alongside, with",
    r"nevertheless|nonetheless|all the same(?!,)": "anyway, still",
    r"from (then|now|here|this position|\w+ days?|\d+\w*|the \d+\w*) on(?! the)": (
        "since, starting with, with at least"
    ),
    r"(?<!there )(is|are|was|were) no (?!longer|more|less|match|outlier|one\b)[a-z`']\w*": (
        "is not a ..."
    ),
    r"(default|to|and|is|with): the one of|(to|is) the one of": "the noun again",
    r"days? (that|which) (a change )?turns?": "days whose verdict changes",
    r"alarms? (once|twice|on (one|two|none))|and alarms?": "failure: no verb",
    r"good rows|bad rows go|goes? on without": "valid rows, failing rows",
    r"scheduler runs?": "DAG run",
    r"fine days?": "good day",
    r"(?<!about )a person('s)?": "someone",
    r"judg(es?|ed|ing)(?!\")": "a gate checks, an assertion is evaluated",
    r"(an?|the|each|every|this|that|which|first|second|next|last|earlier|later|one|other) "
    r"tr(y|ies)": "attempt",
    r"the next tasks": "downstream tasks",
    r"recognis\w+|labell(?!ed_at)\w+|behaviour|colours?|analys(ed?|ing)|"
    r"summaris\w+|optimis\w+|normalis\w+": "US spelling",
    r"odd": "unusual",
    r"silent(?! --)|silenc(es?|ed|ing)": "without a report",
    r"is void": "no longer applies",
    r"notices?(?= (of|about|for) (a gate|gates|incidents|an incident))": "notification",
    r"gate_notice|GateNotice": "gate_notification",
    r"notices(?! (a|an|the|it|that|them|when|what|nothing|how|faults?))": "notifications",
    r"(?<!-)claim(s|ed|ing)?(?!-)": "assertion, to assert",
    r"(?<!by )(?<!/)mistakes?": "error, warning",
    r"in the place of": "instead of",
}
"""Phrases that pages, help and the docs of operators do not have either: one word for one thing,
and English word order."""

NOT_FOR_DEVELOPERS = frozenset({"texts", "told", "blanks"})
"""Words that only user-visible text avoids."""

_WORDS_OF_DEVELOPERS = {
    word: instead for word, instead in WORDS.items() if word not in NOT_FOR_DEVELOPERS
}

ALLOWED = {
    "Passes over": "how often a dataset is read",
    "passes over": "how often a dataset is read",
    "pass over": "how often a dataset is read, and what must not happen",
}
PAGES = sorted(
    [
        *CHECKOUT.glob("*.md"),
        *(PACKAGE / "docs").rglob("*.md"),
        PACKAGE / "editor/words.md",
        PACKAGE / "contracts/blockers.txt",
        PACKAGE / "contracts/diagnostics.txt",
        PACKAGE / "contracts/diff/messages.txt",
        PACKAGE / "contracts/enforcement/lint.txt",
        *PACKAGE.rglob("pages/*.html"),
        CHECKOUT / "benchmarks/README.md",
        CHECKOUT / "docker-compose.yaml",
        CHECKOUT / ".env.example",
        *(
            path
            for path in (CHECKOUT / "dags_examples").rglob("*")
            if path.suffix in {".md", ".dql", ".yaml", ".yml", ".sql", ".conf"}
        ),
    ]
)
TEMPLATES = sorted(
    path
    for path in (
        *(
            path
            for room in ("api", "cli", "operators", "tuning")
            for kind in ("txt", "md", "html")
            for path in (PACKAGE / room).rglob(f"*.{kind}")
        ),
        PACKAGE / "contracts/rfc.md",
        PACKAGE / "contracts/evolution.txt",
        PACKAGE / "contracts/export/page.html",
    )
)
"""What commands print, the messages of gates, and files that are written for users."""
DOCS = [
    *(CHECKOUT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((PACKAGE / "docs").rglob("*.md")),
]
MOST_WORDS = 35
"""The words of a sentence. Aim at 25: one idea a sentence."""

MOST_WORDS_OF_A_CELL = 30
"""The words of a cell of a table. Aim at 20: one sentence, without a list of options."""

MODULES = sorted(PACKAGE.rglob("*.py"))
EXAMPLES = sorted(
    path
    for folder in ("benchmarks", "dags_examples", "spark_jobs", "tools")
    for path in (CHECKOUT / folder).rglob("*.py")
)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_a_page_is_plain_english(path: Path) -> None:
    assert list(offences(path.read_text(encoding="utf-8"), for_readers=True)) == []


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_template_is_plain_english(path: Path) -> None:
    assert list(offences(words_of_template(path.read_text("utf-8")), for_readers=True)) == []


def words_of_template(text: str) -> str:
    """A template without its code; of an expression or a statement the strings."""
    shown_code = re.sub(r"\{#.*?#\}", "", text, flags=re.S)
    return re.sub(
        r"\{[{%].*?[%}]\}",
        lambda code: " ".join(re.findall(r"\"([^\"]*)\"", code[0])),
        shown_code,
        flags=re.S,
    )


@pytest.mark.parametrize(
    "path",
    [path for path in PAGES if path.suffix == ".md"],
    ids=lambda path: str(path.relative_to(CHECKOUT)),
)
def test_no_sentence_begins_in_a_block_of_code(path: Path) -> None:
    """Agents and indexes quote the first sentence after a block without the block."""
    blocks = path.read_text(encoding="utf-8").split("\n```\n\n")[1:]
    assert [after[:60] for after in blocks if after[:1].islower()] == []


@pytest.mark.parametrize("path", DOCS, ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_a_sentence_is_short(path: Path) -> None:
    text = prose_of(path.read_text(encoding="utf-8"))
    written = [*sentences(text), *(part for cell in cells(text) for part in sentences(cell))]
    assert [sentence for sentence in written if words_in(sentence) > MOST_WORDS] == []


@pytest.mark.parametrize(
    "path",
    [path for path in DOCS if path != PACKAGE / "docs/operators.md"],
    ids=lambda path: str(path.relative_to(CHECKOUT)),
)
def test_a_cell_of_a_table_is_short(path: Path) -> None:
    """Except those of `operators.md`, which are the docstrings of arguments."""
    written = cells(prose_of(path.read_text(encoding="utf-8")))
    assert [cell for cell in written if words_in(cell) > MOST_WORDS_OF_A_CELL] == []


def test_no_sentence_is_on_two_pages() -> None:
    """Pages that are read alone repeat others: the codes, the skill, and the README."""
    alone = {"README.md", "SKILL.md", "codes.md"}
    pages = [path for path in DOCS if path.name not in alone and path.parent.name != "codes"]
    written = [
        (sentence, path.name)
        for path in pages
        for sentence in {*sentences(prose_of(path.read_text(encoding="utf-8")))}
        if words_in(sentence) > 12
    ]
    times = Counter(sentence for sentence, _ in written)
    assert [(sentence, page) for sentence, page in written if times[sentence] > 1] == []


def prose_of(page: str) -> str:
    """A page without blocks of code; an inline code, or several in a row, is one word.

    The addresses of links and the front matter are left out.
    """
    without_blocks = re.sub(r"\A---\n.*?\n---\n|^ *```.*?^ *```$", "\n", page, flags=re.S | re.M)
    without_addresses = re.sub(r"\]\([^)]*\)", "]", without_blocks)
    marked = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "CODE", without_addresses, flags=re.S)
    return re.sub(r"CODE(,?\s+(and |or )?CODE)+", "CODE", marked)


def sentences(prose: str) -> Iterator[str]:
    """The sentences of paragraphs and items of lists, also of those that end with a colon."""
    lines = (
        "" if line.lstrip().startswith(("|", "#", ":::", "<!--")) else line
        for line in prose.split("\n")
    )
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", "\n".join(lines)):
        text = " ".join(paragraph.split())
        yield from re.split(r"(?<=[.!?:])(?:\*\*|[*)\"])?\s+(?=[A-Z0-9*\[\"(])", text)


def cells(prose: str) -> list[str]:
    rows = (line.strip() for line in prose.split("\n") if line.lstrip().startswith("|"))
    return [cell.strip() for row in rows for cell in re.split(r"(?<!\\)\|", row)]


def words_in(text: str) -> int:
    return len(re.findall(r"[A-Za-z0-9][^\s]*", text))


@pytest.mark.parametrize(
    ("page", "counts"),
    [
        ("One two. Three\nfour five: Six.", [2, 3, 1]),
        ("- One [two](three four).\n- Five `six seven`, `eight` and `nine` ten.", [2, 3]),
        ("**One two.** Three.\n\n```sh\nfour five\n```\n\nSix (seven).", [2, 1, 2]),
    ],
)
def test_the_words_of_a_sentence_are_counted(page: str, counts: list[int]) -> None:
    written = [words_in(sentence) for sentence in sentences(prose_of(page))]
    assert [count for count in written if count] == counts


def test_a_row_has_its_cells() -> None:
    assert [*filter(None, cells("| a b | `c \\| d` |\n|---|---|"))] == [
        "a b",
        "`c \\| d`",
        "---",
        "---",
    ]


def test_messages_of_the_package_are_plain_english() -> None:
    found = [
        f"{path.relative_to(CHECKOUT)}:{line}: {offence}"
        for path in MODULES
        for line, text in shown(tree_of(path.read_text(encoding="utf-8")), path)
        for offence in offences(text, for_readers="proof" not in path.parts)
    ]
    assert found == []


def test_comments_and_docstrings_are_plain_english() -> None:
    found = [
        f"{path.relative_to(CHECKOUT)}:{line}: {offence}"
        for path in (*MODULES, *EXAMPLES)
        for line, text in remarks(path.read_text(encoding="utf-8"))
        for offence in offences(text, for_users=False)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("nobody can tell", "'nobody': write no one"),
        ("this is no YAML", "'this is no YAML': write is not a ..."),
        ("It stands\nfor the name", "'stands for': write is short for, is in"),
        ("at most so many runs", "'so many': write N, the number of, at most"),
        ("blocks held against a manifest", "'held against': write checked against, compared with"),
        (
            "It takes 0.8 of the time",
            "'0.8 of the time': write N% less (more) time than the baseline",
        ),
        ("It takes 20% less time than a plan written by hand", None),
        ("there is no longer a reason to wait, and it is no longer than 5 s", None),
    ],
)
def test_a_phrase_is_found_with_what_to_write(text: str, instead: str | None) -> None:
    assert next(offences(text), None) == instead


def test_comments_and_docstrings_are_read_as_paragraphs() -> None:
    source = '"""A module."""\n# nobody\n# knows\nx = 1  # why\n"""What x is."""\n'
    assert sorted(remarks(source)) == [
        (1, "A module."),
        (2, "nobody knows"),
        (4, "why"),
        (5, "What x is."),
    ]


def is_read(path: Path) -> bool:
    """True if docstrings of a module are help, or on the pages about operators and Python."""
    return path.parent.name in {"operators", "api"} or "cli" in path.parts


def offences(text: str, *, for_users: bool = True, for_readers: bool = False) -> Iterator[str]:
    """The excluded words in a text, each with its replacement.

    :param for_users: the text is visible to users, and not only to developers.
    :param for_readers: the text is a page, help, or the docs of an operator.
    """
    prose = " ".join(text.split())
    for allowed in ALLOWED:
        prose = prose.replace(allowed, "")
    excluded = WORDS | FOR_ALL | FOR_USERS if for_users else _WORDS_OF_DEVELOPERS | FOR_ALL
    if for_readers:
        excluded = excluded | FOR_READERS
    if any_of(tuple(excluded)).search(prose):
        for found, instead in excluded.items():
            if match := any_of((found,)).search(prose):
                yield f"{match[0]!r}: write {instead}"


@cache
def any_of(excluded: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w_`.])(?:{'|'.join(excluded)})(?![\w_=])", re.I)


def shown(tree: ast.Module, path: Path) -> Iterator[tuple[int, str]]:
    """The strings of a module that may be shown, with their lines; of f-strings the constant parts.

    Docstrings are for developers, but the ones of commands are their help, and the ones of
    operators and of `api` are on pages.
    """
    bare = {id(node.value) for node in statements(tree) if isinstance(node, ast.Expr)}
    is_help = is_read(path)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in bare and " " in node.value:
                yield node.lineno, node.value
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and is_help:
            yield node.lineno, shown_docstring(node, path)


def shown_docstring(node: ast.FunctionDef | ast.ClassDef, path: Path) -> str:
    """The docstring if it is help or on a page, else an empty string."""
    is_shown = is_public(node) or path.parent.name == "api"
    return ast.get_docstring(node) or "" if is_shown else ""


def remarks(source: str) -> Iterator[tuple[int, str]]:
    """The docstrings and comments of a module, with their lines; consecutive comments as one."""
    for node in statements(tree_of(source)):
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
            continue
        if isinstance(node.value.value, str):
            yield node.lineno, node.value.value
    comments: list[tuple[int, int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, text = token.start[0], token.string.lstrip("# ")
        if comments and comments[-1][1] == line - 1 and token.line.lstrip().startswith("#"):
            first, _, before = comments.pop()
            comments.append((first, line, f"{before} {text}"))
        else:
            comments.append((line, line, text))
    yield from ((first, text) for first, _, text in comments)


@cache
def tree_of(source: str) -> ast.Module:
    return ast.parse(source)


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All of them, without the expressions in them, of which there are ten times as many."""
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        for node in getattr(tree, name, ()):
            yield node
            yield from statements(node)


def is_public(node: ast.FunctionDef | ast.ClassDef) -> bool:
    """True for operators, and for commands, whose options are annotated."""
    if isinstance(node, ast.ClassDef):
        return node.name.endswith("Operator")
    return "Annotated[" in ast.unparse(node.args)
