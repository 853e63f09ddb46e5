"""Expressions with expanded ranges match exactly what the original ones match."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dqx_airflow.dql import nodes
from dqx_airflow.metrics.patterns.bounds import bounded, ended
from dqx_airflow.metrics.patterns.quick_patterns import Sized, quick_pattern, quicker, sized_pattern
from dqx_airflow.metrics.patterns.syntax import PatternError
from dqx_airflow.metrics.sql import quote_literal
from dqx_airflow.metrics.text_formats import TEXT_FORMATS, whole
from dqx_airflow.plan.in_memory.predicates import UntranslatablePatternError, compile_java
from dqx_airflow.plan.predicates import predicate_sql
from dqx_airflow.values import Span

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


SIZED = [
    ("^[abc]{64}$", Sized(r"(?-i)^[abc]+\z", 64, 64)),
    (r"^M\d{4}$", Sized(r"(?-i)^M\d+\z", 5, 5)),
    (r"^\w{2}-\w{12}$", Sized(r"(?-i)^\w{2}-\w+\z", 15, 15)),
    (r"^(\+[12]{6,14})$(?!\n)", Sized(r"(?-i)^\+[12]+\z", 7, 15)),
    ("^a{9}b{2,}$", Sized(r"(?-i)^a{9}b+\z", 11, None)),
    ("^[-a.]{4}$", Sized(r"(?-i)^[-a.]+\z", 4, 4)),
]
NOT_SIZED = [
    "[abc]{64}",
    "^[abc]{64}",
    "[abc]{64}$",
    "^[abc]{3}$",
    "^[abc]{0,64}$",
    "^[abc]+$",
    "^[^abc]{64}$",
    "^.{64}$",
    "^é{64}$",
    "^[é]{64}$",
    r"^\s{64}$",
    r"^\p{L}{64}$",
    "^(ab){64}$",
    "^(ab){64}$(?!\n)",
    "^(a{8}|b{8})$",
    "^(a{64}$",
    "^a{8}?$",
    "^a{8}+$",
    "^a{2,3}b{8,9}$",
    "^[a&&b]{64}$",
    "^[[a]b]{64}$",
    "^(?i)[abc]{64}$",
    "^$",
]
LITERAL = [
    "^(a|b-|M1234)$",
    "^b$",
    "^(abc-123)$(?!\\n)",
    "^ab",
    "c$",
    "b",
    r"\|b",
    r"^(a\]|b\\|c)$",
]
LITERAL += ["^ab|b$", "^(a|b)", "(a|-)$", "k"]
# Texts as long as those that the expressions above find, and of as many octets.
LONG = [letter * count for letter in "aAMk1\u212a" for count in (2, 3, 4, 5, 9, 11, 63, 64, 65)]
LONG += [f"{text}{end}" for text in LONG for end in ("\n", "\r\n", "\u2028", "é", "-")]
LONG += ["M1234", "M123", "M123\n", "ab-123456789abc", "ab-123456789abé", "+1212121", "+121212\n"]
LONG += ["a" * 9 + "b" * count for count in (1, 2, 3, 40)]


@pytest.mark.parametrize(("pattern", "due"), WRITTEN_OUT)
def test_ranges_of_letters_and_digits_are_written_out(pattern: str, due: str) -> None:
    assert quick_pattern(pattern) == due


@pytest.mark.parametrize("pattern", LEFT_ALONE)
def test_ambiguous_patterns_are_not_rewritten(pattern: str) -> None:
    assert quick_pattern(pattern) == pattern


def test_random_expressions_find_the_same_written_out() -> None:
    changed = [pattern for pattern in _random_patterns(2_000) if _finds(pattern)]
    assert len(changed) > 200
    assert [p for p in changed if _finds(quick_pattern(p)) != _finds(p)] == []


@pytest.mark.parametrize(("pattern", "due"), SIZED)
def test_a_length_check_may_replace_a_repetition(pattern: str, due: Sized) -> None:
    assert sized_pattern(pattern) == due


@pytest.mark.parametrize("pattern", NOT_SIZED)
def test_a_pattern_that_a_length_cannot_decide_is_not_sized(pattern: str) -> None:
    assert sized_pattern(pattern) is None


def test_the_quick_check_matches_nothing_else() -> None:
    patterns = [pattern for pattern, _ in SIZED] + _random_whole_patterns(2_000)
    found = 0
    for pattern in patterns:
        sized, expression = sized_pattern(pattern), compile_java(pattern)
        assert sized is not None
        first = re.compile(sized.pattern.replace("(?-i)", "").replace(r"\z", r"\Z"), re.ASCII)
        for text in [*LONG, *TEXTS]:
            size = len(text.encode())
            if sized.least <= size <= (sized.most or size) and first.search(text):
                assert expression.search(text), (pattern, text)
                found += 1
    assert found > 500


@pytest.mark.spark
@pytest.mark.compiled
@pytest.mark.parametrize(
    "collation", ["UTF8_BINARY", pytest.param("UTF8_LCASE", marks=pytest.mark.nightly)]
)
@pytest.mark.slow
def test_spark_matches_the_same_strings_with_the_quick_check(spark: Any, collation: str) -> None:
    patterns = [pattern for pattern, _ in SIZED] + _random_whole_patterns(200)
    patterns += ["^[a-z]{9}$", "^k{9}$", *(whole(one.pattern) for one in TEXT_FORMATS.values())]
    patterns += LITERAL
    patterns = [quick_pattern(pattern) for pattern in patterns]
    patterns = [pattern for pattern in patterns if _decides_any_length(pattern)]
    rows = [(text,) for text in [None, *LONG, *TEXTS]]
    texts = spark.createDataFrame(rows, f"t string COLLATE {collation}")
    at = Span("", 1, 1, 1, 1)
    column = nodes.Name("t", span=at)
    matches = [nodes.Matches(column, nodes.Text(pattern, span=at), span=at) for pattern in patterns]
    found = texts.selectExpr(
        *(
            f"count_if(NOT ({predicate_sql(node)} <=> (t RLIKE {quote_literal(ended(pattern))})))"
            for node, pattern in zip(matches, patterns, strict=True)
        ),
        *(f"count_if(t RLIKE {quote_literal(ended(pattern))})" for pattern in patterns),
    ).collect()[0]
    assert [p for p, count in zip(patterns, found, strict=False) if count] == []
    assert sum(found[len(patterns) :]) > 100


def _decides_any_length(pattern: str) -> bool:
    try:
        return bounded(pattern).longest is None
    except PatternError:
        return False


@pytest.mark.more
@pytest.mark.spark
@pytest.mark.compiled
def test_padding_of_char_columns_is_not_matched(spark: Any, tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE padded (t char(5)) USING parquet LOCATION '{tmp_path / 'padded'}'")
    try:
        spark.sql("INSERT INTO padded VALUES ('ab'), ('abcde')")
        for pattern in ("^(ab|cd)$", "^[a-e]{5}$", "^ab"):
            asked = (
                f"count_if({quicker('t', quick_pattern(pattern))}), count_if(t RLIKE '{pattern}')"
            )
            first, all_of_them = spark.sql(f"SELECT {asked} FROM padded").collect()[0]
            assert first == all_of_them, pattern
    finally:
        spark.sql("DROP TABLE padded")


@pytest.mark.more
@pytest.mark.spark
@pytest.mark.compiled
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


def _random_whole_patterns(count: int) -> list[str]:
    """Expressions for whole texts of which the length tells something."""
    random = Random(7)
    atoms = ["a", "b", "[ab]", "[aA1]", "M", r"\d", r"\w", "-", r"\+", "[-1]"]
    repeated = ["", "", "{1}", "{2}", "{4}", "{9}", "{63}"]
    loose = ["{4}", "{5}", "{64}", "{2,5}", "{4,}", "{1,64}"]
    made = []
    for _ in range(count):
        pieces = [f"{random.choice(atoms)}{random.choice(repeated)}" for _ in range(3)]
        pieces = pieces[: random.randint(0, 3)]
        at = random.randint(0, len(pieces))
        pieces.insert(at, f"{random.choice(atoms)}{random.choice(loose)}")
        made.append(f"^{''.join(pieces)}$")
    return made


def _finds(pattern: str) -> list[tuple[int, int] | None] | None:
    """Where the expression finds something in each text; None where it is none."""
    try:
        expression = compile_java(pattern)
    except UntranslatablePatternError:
        return None
    found = (expression.search(text) for text in TEXTS)
    return [match.span() if match else None for match in found]
