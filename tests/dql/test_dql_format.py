"""Formatting changes white space only: on readable cases and on random files."""

from __future__ import annotations

import re
import time
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, assume, given, settings

from dqx_airflow.dql.formatter import format_source
from dqx_airflow.dql.printer import show_suite
from dqx_airflow.dql.syntax.grammar import grammar
from dqx_airflow.dql.syntax.parser import concrete_tree, parse, tokens
from dqx_airflow.errors import SourceError
from dqx_airflow.values import SourceFile
from tests.dql.programs import program, programs
from tests.markdown_cases import Case, cases

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "dags_examples" / "suites"
FILES = [*sorted(HERE.glob("seed/**/*.dql")), *sorted(EXAMPLES.glob("*.dql"))]
CASES = list(cases(*HERE.glob("format/*.md")))

_TEXT_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|`[^`\n]*`|(?P<comment>#[^\n]*)')


def formatted(text: str) -> str:
    return format_source(SourceFile("suite.dql", text))


def comments(text: str) -> list[str]:
    found = (match["comment"] for match in _TEXT_OR_COMMENT.finditer(text))
    return [comment.rstrip() for comment in found if comment is not None]


def words(text: str) -> list[str]:
    """All tokens but parentheses."""
    found = (
        "for each" if token.type == "FOR_EACH" else str(token)
        for token in tokens(SourceFile("suite.dql", text))
    )
    return ["tolerance" if word in ("+/-", "±") else word for word in found if word not in "()"]


def assert_it_is_the_same_in_canonical_layout(before: str, after: str) -> None:
    then, now = (parse(SourceFile("suite.dql", text)) for text in (before, after))
    assert not now.diagnostics
    assert now.file == then.file
    assert comments(after) == comments(before)
    assert words(after) == words(before.removeprefix("\ufeff"))
    assert formatted(after) == after
    assert "\n\n\n" not in after
    assert not re.search(r"[ \t]\n", after)
    assert after.endswith("\n")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case_is_formatted_as_shown(case: Case) -> None:
    before = case.block("dql").text
    after = formatted(before)
    case.expect(after)
    assert_it_is_the_same_in_canonical_layout(before, after)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_formatting_keeps_the_meaning_of_project_files(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert_it_is_the_same_in_canonical_layout(text, formatted(text))


@pytest.mark.slow
@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(programs())
def test_formatting_keeps_the_meaning_of_any_file(text: str) -> None:
    assume(not parse(SourceFile("suite.dql", text)).diagnostics)
    assert_it_is_the_same_in_canonical_layout(text, formatted(text))


@pytest.mark.slow
def test_random_files_are_sound_and_leave_out_no_rule_of_the_grammar() -> None:
    named = (rule for rule in grammar().rules if rule.alias or not rule.options.expand1)
    names = {str(rule.alias or rule.origin.name) for rule in named}
    unseen = {name for name in names if not name.startswith("_")}
    count = unsound = 0
    while unseen and count < 5000:
        tree, _ = concrete_tree(SourceFile("suite.dql", program(Random(count), size=150)))
        unseen -= {str(part.data) for part in tree.iter_subtrees()} if tree else set()
        count += 1
        unsound += tree is None
    assert not unseen
    assert unsound < count / 30  # a few begin with half a word


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_printed_suites_are_already_formatted(path: Path) -> None:
    suite = parse(SourceFile(path.name, path.read_text(encoding="utf-8"))).suite
    if suite is None:
        pytest.skip("a library")
    printed = show_suite(suite)
    assert max(map(len, printed.split("\n"))) <= 100
    assert formatted(printed) == printed


def test_line_ends_byte_order_marks_and_spaces_are_normalised() -> None:
    text = '\ufeff# head \t\r\n\r\nsuite "S" {\r\n\tconst A = 1\t# one \r\n\r\n\r\n}\f'
    assert formatted(text) == '# head\n\nsuite "S" {\n    const A = 1  # one\n}\n'


def test_a_file_with_syntax_errors_is_not_formatted_and_reports_all_of_them() -> None:
    with pytest.raises(SourceError) as caught:
        formatted('suite "S" {\n const A =\n const B = 1\n const = 2\n}')
    assert [item.span.line for item in caught.value.diagnostics] == [3, 4]
    assert "suite.dql:4:8" in str(caught.value)


def test_unknown_names_are_formatted() -> None:
    text = 'suite "S" { check "C" on t { assert no_such_metric(x)>NO_SUCH_CONSTANT severity P9 } }'
    assert "no_such_metric(x) > NO_SUCH_CONSTANT\n            severity P9\n" in formatted(text)


@pytest.mark.parametrize(
    "predicate",
    [
        "not (-(" * 48 + "a" + "))" * 48 + " > 3",
        "not " * 198 + "a > 3",
        "a > " + "f(b, " * 95 + "a" + ")" * 95,
        "a" + " or a" * 198,
    ],
    ids=["parentheses", "negations", "calls", "operators"],
)
def test_the_deepest_expressions_that_the_language_allows_are_formatted(predicate: str) -> None:
    text = f'suite "S" {{ check "C" on t {{ assert each row: {predicate} }} }}'
    assert_it_is_the_same_in_canonical_layout(text, formatted(text))


@pytest.mark.nightly
def test_four_times_the_suite_takes_about_four_times_as_long() -> None:
    def seconds(assertions: int) -> float:
        body = "".join(
            f"assert null_count(c{n}) / num_rows() < 5% name 'n{n}'\n".replace("'", '"')
            for n in range(assertions)
        )
        text = f'suite "S" {{ check "C" on t {{ {body} }} }}'
        started = time.process_time()
        formatted(text)
        return time.process_time() - started

    small, large = (min(seconds(count) for _ in range(3)) for count in (250, 1000))
    assert large < 10 * small
