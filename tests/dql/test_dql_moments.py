"""Days that do not exist are found wherever the grammar has a date, and no other text is taken for
one of them. What is drawn: diagnostics/days_and_times.md."""

from __future__ import annotations

from datetime import date
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.syntax.grammar import grammar
from dqx_airflow.dql.syntax.parser import parse
from dqx_airflow.values import SourceFile
from tests.dql.programs import program

_EXISTING, _MISSING = "2024-02-29", "2023-02-29"
AMOUNTS = [pytest.param(60, id="some"), pytest.param(5_000, id="many", marks=pytest.mark.nightly)]


def _places() -> set[str]:
    """The rules of the grammar in which a date may stand."""
    return {
        str(rule.origin.name)
        for rule in grammar().rules
        if any(symbol.name == "DATE" for symbol in rule.expansion)
    }


def test_the_grammar_has_dates_in_expressions_and_in_groups_alone() -> None:
    # Both are the same terminal, and the parser judges that.
    assert _places() == {"atom", "group_day"}


@pytest.mark.parametrize("amount", AMOUNTS)
def test_a_day_that_does_not_exist_is_reported_wherever_the_grammar_has_a_date(amount: int) -> None:
    found = 0

    @settings(
        max_examples=amount,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, 2**64))
    def holds(seed: int) -> None:
        nonlocal found
        text = program(Random(seed), 120)
        parsed = parse(SourceFile("suite.dql", text))
        if parsed.diagnostics or _EXISTING not in text:
            return
        found += 1
        wrong = parse(SourceFile("suite.dql", text.replace(_EXISTING, _MISSING)))
        starts = [(item.span.line, item.span.column) for item in wrong.diagnostics]
        assert {item.code for item in wrong.diagnostics} == {"E301"}
        assert starts == _starts(text, _EXISTING)

    holds()
    assert found > amount // 20


def _starts(text: str, word: str) -> list[tuple[int, int]]:
    starts = []
    position = text.find(word)
    while position >= 0:
        before = text[:position]
        starts.append((before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1))
        position = text.find(word, position + 1)
    return starts


@given(st.integers(0, 9999), st.integers(0, 99), st.integers(0, 99))
def test_a_literal_is_accepted_if_and_only_if_the_calendar_has_its_day(
    year: int, month: int, day: int
) -> None:
    text = f"{year:04}-{month:02}-{day:02}"
    suite = f'suite "S" {{ check "C" on t {{ assert each row: d > {text} name "c.d" }} }}'
    errors = check_source(SourceFile("suite.dql", suite)).errors
    try:
        date.fromisoformat(text)
    except ValueError:
        assert [error.code for error in errors] == ["E301"]
        assert errors[0].help
    else:
        assert not errors


@pytest.mark.parametrize("text", ["9" * 5000 + "-01-01", "2024-" + "0" * 5000 + "1-01"])
def test_a_literal_of_any_length_is_reported(text: str) -> None:
    suite = f'suite "S" {{ check "C" on t {{ assert each row: d > {text} name "c.d" }} }}'
    errors = check_source(SourceFile("suite.dql", suite)).errors
    assert [error.code for error in errors] == ["E301"]
