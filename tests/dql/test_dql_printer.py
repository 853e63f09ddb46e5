"""Printed suites read back as the same tree, for every suite in the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from dqx_airflow.dql.printer import show, show_name, show_suite
from dqx_airflow.dql.syntax.parser import parse
from dqx_airflow.values import SourceFile
from tests.markdown_cases import cases

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "dags_examples" / "suites"
SUITES = [
    *((path.name, path.read_text()) for path in sorted(HERE.glob("seed/*.dql"))),
    *((path.name, path.read_text()) for path in sorted(EXAMPLES.glob("*.dql"))),
    *(
        (str(case), f'suite "S" {{\n{case.block("dql").text}\n}}')
        for case in cases(HERE / "diagnostics" / "macros.md")
        if "typo" not in case.title and "outside" not in case.title
    ),
]


@pytest.mark.parametrize("text", [text for _, text in SUITES], ids=[name for name, _ in SUITES])
def test_a_printed_suite_is_the_same_suite(text: str) -> None:
    before = parse(SourceFile("suite.dql", text))
    assert before.suite is not None
    printed = show_suite(before.suite)
    after = parse(SourceFile("printed.dql", printed))
    assert not after.diagnostics, printed
    assert after.suite is not None
    assert after.suite == before.suite
    assert show_suite(after.suite) == printed


EXPRESSIONS = [
    "a - (b - c) - d",
    "(a + b) * c / (d * e)",
    "-(a + b) * -2",
    "a + -b",
    "coalesce(average(price), 0)",
    "num_rows(lag 1, dataset orders)",
    "`a b`",
    "`a``b` + ` `` ` + ```` + a.b.from",
    "not (a > 1 and b > 2) or c is not null",
    "(a > 1 or b > 2) and c not in [1, 2]",
    "not (not a is null)",
    'x matches "^\\\\d+\\"$" and y between 1 and 2 + 3',
    "(a + b) in [1] or a * 2 == b",
    "2 hours + 90 seconds + 1.5 days",
    "0.1% + 33.3% + 1e300 + 1_000",
    "d >= 2024-02-29",
    'every(tags, item matches "a") and not some(a.b, `item.x y` > item.from or item is null)',
    "every(entries(m), item.key == k and not (every(item.value, item > 1)))",
]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_parentheses_and_literals_survive(text: str) -> None:
    def claim(expression: str) -> object:
        source = f'suite "S" {{ check "C" on t {{ assert each row: f({expression}) > 0 }} }}'
        parsed = parse(SourceFile("s.dql", source))
        assert parsed.suite is not None, expression
        assert not parsed.diagnostics, expression
        return parsed.suite.checks[0].assertions[0].claim.predicate.left.arguments  # type: ignore[union-attr]

    (before,) = claim(text)  # type: ignore[misc]
    (after,) = claim(show(before))  # type: ignore[misc]
    assert after == before


@pytest.mark.parametrize(
    "name", ["from", "to", "null", "NULL", "with blank", "größe", "1st", "select;", "a-b"]
)
def test_an_ambiguous_name_is_quoted_with_backticks(name: str) -> None:
    assert show_name(name) == f"`{name}`"
