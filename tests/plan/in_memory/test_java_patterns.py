"""Java's regular expressions in Python: what they match, and which ones are left to Spark.

The conformance cases hold both languages to the same answers; here are the expressions that need
no table.
"""

from __future__ import annotations

from typing import Any

import pytest

from dqx_airflow.metrics.patterns.bounds import ended
from dqx_airflow.metrics.sql import quote_literal
from dqx_airflow.plan.in_memory.predicates import (
    UntranslatablePatternError,
    compile_java,
    compile_like,
)

FOUND = [
    ("a.c", "a\u0085c", None),
    ("a$", "a\r\n", None),
    ("a$", "a\n\n", None),
    ("(?m)^b", "a\rb", "b"),
    ("(?m)^$", "", None),
    (r"\x{1F986}|\t", "🦆", "🦆"),
    (r"\0101\x42\u0043", "ABC", "ABC"),
    (r"\cA", "\x01", "\x01"),
    (r"\QA.B\E+", "A.BB", "A.BB"),
    (r"[\Q^]\E]+", "]^", "]^"),
    ("[]a]+", "]a", "]a"),
    ("[a-]+", "-a", "-a"),
    (r"[\p{Lu}\d]+", "É7", "É7"),
    (r"[^\p{L}]", "é1", "1"),
    (r"\pN+", "٤2", "٤2"),
    (r"\p{Punct}+", "[~!", "[~!"),
    (r"\H+", " a", "a"),
    ("(?<x>a)\\k<x>", "aa", "aa"),
    ("a(?i)b|c", "C", "C"),
    ("(a(?i)b)c", "aBc", "aBc"),
    ("(a(?i)b)c", "aBC", None),
    ("(?i:a)b", "Ab", "Ab"),
    ("(?is)a.b", "A\nB", "A\nB"),
    ("(?x)a b # c", "ab", "ab"),
    ("(?i)ä", "Ä", None),
    ("[a-d&&[^b]]+", "bacb", "ac"),
    ("[a[b]]+", "cab", "ab"),
]
LIKE = [
    ("a%", "a\nb", True),
    ("_", "🦆", True),
    ("_", "ab", False),
    (r"\%\_\\", r"%_\\", False),
    (r"\%\_\\", "%_\\", True),
    ("a.b", "axb", False),
]


@pytest.mark.parametrize(("pattern", "text", "found"), FOUND)
def test_python_finds_what_java_finds(pattern: str, text: str, found: str | None) -> None:
    match = compile_java(pattern).search(text)
    assert (match[0] if match else None) == found


@pytest.mark.parametrize(
    "pattern", [r"\G", r"\X", r"\p{IsGreek}", "(?iu)a", "(?<=a+)b", r"\y", "a)"]
)
def test_patterns_unsupported_in_python_are_refused(pattern: str) -> None:
    with pytest.raises(UntranslatablePatternError) as raised:
        compile_java(pattern)
    assert pattern in str(raised.value)


@pytest.mark.parametrize(("pattern", "text", "matches"), LIKE)
def test_like_matches_the_whole_string(pattern: str, text: str, matches: bool) -> None:
    assert bool(compile_like(pattern).fullmatch(text)) is matches


@pytest.mark.spark
def test_java_finds_the_same(spark: Any) -> None:
    finds = []
    for pattern, text, _ in FOUND:
        subject, java = quote_literal(text), quote_literal(ended(pattern))
        finds.append(f"IF({subject} RLIKE {java}, regexp_extract({subject}, {java}, 0), NULL)")
    likes = [f"{quote_literal(text)} LIKE {quote_literal(pattern)}" for pattern, text, _ in LIKE]
    row = tuple(spark.sql(f"SELECT {', '.join([*finds, *likes])}").collect()[0])
    assert row[: len(FOUND)] == tuple(found for _, _, found in FOUND)
    assert row[len(FOUND) :] == tuple(matches for _, _, matches in LIKE)
