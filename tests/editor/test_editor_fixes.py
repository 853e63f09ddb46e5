"""The suggestion of a diagnostic becomes an edit if it replaces the marked text."""

from __future__ import annotations

import pytest

from dqx_airflow.dql.check import check_source
from dqx_airflow.editor.occurrences import proposed
from dqx_airflow.editor.parsed_file import Lines
from dqx_airflow.values import SourceFile

CHECK = 'check "Volume" on orders, returns {{ {} }}'


@pytest.mark.parametrize(
    ("code", "body", "text"),
    [
        ("E001", 'check "C" on t { assert avg(x) > 0 name "n" }', "average"),
        ("E001", 'check "C" on t { assert row_count() > 0 name "n" }', "num_rows"),
        ("E003", 'const MAX = 1 check "C" on t { assert num_rows() > MAXX name "n" }', "MAX"),
        ("E012", 'check "C" on t { @requird assert num_rows() > 0 name "n" }', "required"),
        ("E007", 'check "C" on t { assert num_rows() > 0 nam "n" }', "name"),
        (
            "W002",
            'check "Volume" on t { assert num_rows() > 0 name "n" }'
            ' profile "P" { from january(1) to january(2) disable assertion "n" in "Volum" }',
            '"Volume"',
        ),
    ],
)
def test_the_suggestion_replaces_the_word_at_fault(code: str, body: str, text: str) -> None:
    source = SourceFile("s.dql", f'suite "S" {{ {body} }}')
    (found,) = (item for item in check_source(source).diagnostics if item.code == code)
    edit = proposed(found, Lines(source.text))
    assert edit is not None
    assert (edit.span, edit.text) == (found.span, text)


def test_a_finding_over_several_words_has_no_fix() -> None:
    text = (
        'suite "S" { check "C" on t { assert num_rows() > 0 name "n" tags [volume] }'
        ' profile "P" { from january(1) to january(2) disable tag "volum" } }'
    )
    (found,) = check_source(SourceFile("s.dql", text)).diagnostics
    assert "did you mean 'volume'?" in (found.help or "")
    assert proposed(found, Lines(text)) is None
