"""Expressions with their ranges written out find what the plain ones find, and nothing else."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from dqx_airflow.metrics.quick_patterns import quick_pattern
from dqx_airflow.metrics.sql import quote_literal
from dqx_airflow.metrics.text_formats import TEXT_FORMATS, whole
from dqx_airflow.reference.java_patterns import UntranslatableError, compile_java

WRITTEN_OUT = [
    ("^M[0-9]{4}$", "^M[0123456789]{4}$"),
    ("[^a-c_]x[A-C.]", "[^abc_]x[ABC.]"),
    ("[-a-c]", "[-abc]"),
    ("[a-c-]", "[abc-]"),
    (r"[\]a-c\\]", r"[\]abc\\]"),
    ("(?i)[a-c]", "(?i)[abc]"),
    ("(?<n>[a-c])(?=[0-2])", "(?<n>[abc])(?=[012])"),
    ("[0-9]+[^\n]", "[0123456789]+[^\n]"),
]
LEFT_ALONE = [
    "M[0123]{4}",
    r"\[a-c]",
    r"\d[\d-9]",
    "[a-c-e]",
    "[+-a-c]",
    r"[\--a]",
    "[]a-c]",
    "[^]a-c]",
    "[a[b-d]]",
    "[a-d&&b-c]",
    "[c-a]",
    "[a-Z]",
    "[A-z]",
    "[é-ü]",
    r"[\x41-Z]",
    r"[\p{L}a-c]",
    r"\Q[a-c]\E",
    r"\c[a-c]",
    "(?x)[a-c] # [",
    "(?iu)[a-c]",
    "(?U:[a-c])",
    "[a-c",
    "[a-c\\",
    "[",
]
# What may stand next to each other so that it means something else.
INSIDE = [
    "^",
    "-",
    "a-c",
    "0-9",
    "A-F",
    "a",
    "c",
    "Z",
    "9",
    "\\]",
    "\\-",
    "\\\\",
    ".",
    "+",
    "&",
    "#",
]
OUTSIDE = ["", "", "^", "$", "a", "{2}", "+", "(?i)", "(?x)", "\\", "\\d", "\\Q", "[", "]", "[^b]"]
TEXTS = ["", "a", "b", "B", "c", "d", "-", "^", "]", "[", "5", "f", "F", "Z", "&", "\\", "#", "é"]
TEXTS += ["ab", "b\n", "b\r\n", "abc-123", "M1234", "a]", "\u0131", "\u017f", "\u212a", "🦆"]


@pytest.mark.parametrize(("pattern", "due"), WRITTEN_OUT)
def test_ranges_of_letters_and_digits_are_written_out(pattern: str, due: str) -> None:
    assert quick_pattern(pattern) == due


@pytest.mark.parametrize("pattern", LEFT_ALONE)
def test_what_may_mean_something_else_is_left_alone(pattern: str) -> None:
    assert quick_pattern(pattern) == pattern


def test_random_expressions_find_the_same_written_out() -> None:
    changed = [pattern for pattern in _random_patterns(2_000) if _finds(pattern)]
    assert len(changed) > 200
    assert [p for p in changed if _finds(quick_pattern(p)) != _finds(p)] == []


@pytest.mark.spark
def test_spark_finds_the_same_with_expressions_written_out(spark: Any) -> None:
    patterns = [pattern for pattern in _random_patterns(500) if _finds(pattern)]
    patterns += [pattern for pattern, _ in WRITTEN_OUT]
    patterns += [whole(entry.pattern) for entry in TEXT_FORMATS.values()]
    texts = spark.createDataFrame([(text,) for text in TEXTS], "t string")
    differences = [
        f"count_if((t RLIKE {quote_literal(p)}) <> (t RLIKE {quote_literal(quick_pattern(p))}))"
        for p in patterns
        if quick_pattern(p) != p
    ]
    assert len(differences) > 20
    found = texts.selectExpr(*differences).collect()[0]
    assert set(found) == {0}


def _random_patterns(count: int) -> list[str]:
    """Expressions of random pieces that are changed when they are written out."""
    random = Random(7)
    made = (
        f"{random.choice(OUTSIDE)}[{''.join(random.choices(INSIDE, k=random.randint(1, 5)))}]"
        f"{''.join(random.choices(OUTSIDE, k=2))}"
        for _ in range(count)
    )
    return [pattern for pattern in made if quick_pattern(pattern) != pattern]


def _finds(pattern: str) -> list[tuple[int, int] | None] | None:
    """Where the expression finds something in each text; None where it is none."""
    try:
        expression = compile_java(pattern)
    except UntranslatableError:
        return None
    found = (expression.search(text) for text in TEXTS)
    return [match.span() if match else None for match in found]
