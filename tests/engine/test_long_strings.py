"""No string crashes the JVM or hangs a gate: it matches, does not, or cannot be decided."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dqx_airflow.dql import nodes
from dqx_airflow.metrics.patterns.bounds import bounded, bounded_like
from dqx_airflow.metrics.patterns.syntax import PatternError
from dqx_airflow.metrics.sql import quote_literal
from dqx_airflow.plan.predicates import predicate_sql
from dqx_airflow.values import Span

pytestmark = pytest.mark.spark

LONG = 1_000_000
ANY_LENGTH = [
    ("^(a|b)+$", "ab"),
    ("^([a-z]|[0-9])+$", "a1"),
    (r"^(\w|\d)*$", "a1"),
    ("^(ab|cd)+$", "abcd"),
    (r"^\p{L}+( \p{L}+)*$", "äö é"),
    ("^([A-Z][a-z]+ ?)+$", "Abc "),
    ("^((a|b)(c|d))+$", "acbd"),
    ('^("[^"]*",?)+$', '"ab",'),
    ("^(.|\\n)*$", "a\n"),
    ("^(😀|a|b)*$", "😀a"),
    ("^(a(b(c(d)?)?)?)*$", "abcd"),
    ("^(AB|CD|EF){500,}?$", "ABEF"),
    ("^(?=.*[A-Z])(?=.*[0-9]).{8,}$", "aB"),
    ("^(?:a|aa)++$", "a"),
]
UP_TO = [
    ("^(ab|a)*$", "aba"),
    ("^(foo|foobar)+$", "foobarfoo"),
    ("^(((((((a|ab)))))))*$", "aba"),
    ("^(([ab]+?c|d)+?e|f)*g", "abcdef"),
    ("[0-9]+-[0-9]+", "1"),
    (r"\s+$", " x"),
    (r"\w*\w*!!", "a"),
    (r"^\w*\w*@\w*\w*!!", "a" * 349 + "@"),
    ("(?=.*x)y", "y"),
]
REFUSED = [
    "^(a|aa)+$", "^(ab?|a)+$", r"^(\w|\w\w)+$", "(a+)+b", "^(a*)*$", "^((a?)*b)*$", "(x+x+)+y",
    r"^(\d+,?)+$", "^(a?){30}a{30}$", "a?" * 30 + "a" * 30, "(a|a)" * 30 + "b", "^(a|b|ab)*c$",
    r"^(([a-z])+.)+[A-Z]([a-z])+$", r"(.*)(.*)(.*)(.*)(.*)x", r"^(a+)\1*b$", "(?=(a+)+b)c",
    "(?>(a|aa)+b)c", r"^(\p{L}|\p{Lu}x?)+$", "(?i)^(K|k\u212a?)+$", "^((ab)*(ab)*)*$",
    "^" + "a*[ab]bb*c" * 30 + "d", "^" + r"\w*\w*@" * 4,
]  # fmt: skip


@pytest.mark.parametrize("pattern", REFUSED)
def test_exploding_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        bounded(pattern)


@pytest.mark.parametrize("pattern", [pattern for pattern, _ in ANY_LENGTH])
def test_patterns_without_recursion_have_no_bound(pattern: str) -> None:
    assert bounded(pattern).longest is None


def test_choices_beside_a_loop_lower_the_bound() -> None:
    # Each multiplies the time: `[ab]{2,5}` is tried with four lengths wherever `\\w+` may end.
    assert bounded(r"^\w+[ab]+y").longest == 10_000
    assert bounded(r"^\w+[ab]{2,5}[ab]+y").longest == 5_000
    assert bounded(r"^\w+b?b?[ab]+y").longest == 5_000
    assert bounded(r"^\w+(-|!){0,3}[ab]+y").longest == 10_000


def test_ways_through_separate_parts_multiply() -> None:
    assert bounded(r"^\w*\w*!").longest == 10_000
    assert bounded(r"^\w*\w*@\w*\w*!").longest == 700
    assert bounded(r"^\w*\w*@\w*\w*#\w*\w*!").longest == 150


def test_a_look_ahead_reads_the_string_wherever_it_is_tried() -> None:
    assert bounded("^(?=.*x)(?=.*y)z").longest is None
    assert bounded("(?=.*x)z").longest == 10_000
    assert bounded("^(?:(?=.*x)z)*+$").longest == 10_000


def test_an_iteration_that_is_not_given_back_may_read_ahead_in_vain() -> None:
    assert bounded("^(?:[ab]*c|a)*+d").longest == 7_071
    assert bounded("^(?:ab|cd)*+d").longest is None


@pytest.mark.nightly
def test_the_jvm_survives_the_longest_strings(spark: SparkSession) -> None:
    texts: list[str] = []
    wanted = []
    for pattern, unit in [*ANY_LENGTH, *UP_TO]:
        longest = bounded(pattern).longest or LONG
        text = (unit * (longest // len(unit) + 1))[: longest - 1] + "!"
        wanted.append(f"x{len(texts)} RLIKE {quote_literal(bounded(pattern).text)}")
        texts.append(text)
    names = ", ".join(f"x{number} string" for number in range(len(texts)))
    found = spark.createDataFrame([tuple(texts)], names).selectExpr(*wanted).collect()[0]
    found_in = {
        pattern for (pattern, _), held in zip(ANY_LENGTH + UP_TO, found, strict=True) if held
    }
    assert found_in == {"^(.|\\n)*$"}


def test_a_string_beyond_the_bound_is_an_error(spark: SparkSession) -> None:
    nowhere = Span("", 1, 1, 1, 1)
    matches = nodes.Matches(
        nodes.Name("x", span=nowhere), nodes.Text("^(ab|a)*$", span=nowhere), span=nowhere
    )
    condition = predicate_sql(matches)
    longest = bounded("^(ab|a)*$").longest
    assert longest is not None
    frame = spark.createDataFrame([("a" * longest,), ("ä" * longest,), (None,)], "x string")
    assert [row[0] for row in frame.selectExpr(condition).collect()] == [True, False, None]
    too_long = spark.createDataFrame([("a" * (longest + 1),)], "x string")
    with pytest.raises(Exception, match=f"a string of {longest + 1} characters is too long"):
        too_long.selectExpr(f"count_if(NOT {condition})").collect()


def test_rewritten_patterns_match_the_same_strings(spark: SparkSession) -> None:
    """The patterns as they were written, and as Spark gets them, over all short strings."""
    patterns = [
        "^(a|b)+$", "^(ab|c)+$", "(ab|c)*?b", "^(ab?c)*a$", "^(a(b|c)?)*$", "^((a|b)c)+b",
        "(ab)*\\b",
        "(ab)*\\b", "^(?>(ab)*?)c", "^(?:ba*?)+c", "^(a|b|)+c", "^(ab){2,}c?$", "(?:a(?!b)|b)*c",
        "((?i)A|b)+c", "(?i:a|B)+C", "^(a|[bc])*(c|a)$", "^(?:a?b)*+c", "(ca|b)+?$",
    ]  # fmt: skip
    signs = ["a", "b", "c"]
    texts, level = [""], [""]
    for _ in range(6):
        level = [text + sign for text in level for sign in signs]
        texts += level
    frame = spark.createDataFrame([(text,) for text in texts], "x string").coalesce(1)
    pairs = [
        f"count_if((x RLIKE {quote_literal(p)}) <> (x RLIKE {quote_literal(bounded(p).text)}))"
        for p in patterns
    ]
    differ = dict(zip(patterns, frame.selectExpr(*pairs).collect()[0], strict=True))
    assert differ == dict.fromkeys(patterns, 0)


@pytest.mark.parametrize(
    ("pattern", "longest"),
    [("%a%", None), ("a%b", None), ("%a%b", 10_000), ("%a%b%", 10_000), ("%a%b%c%d", 150)],
)
def test_like_is_bounded_too(pattern: str, longest: int | None) -> None:
    assert bounded_like(pattern) == longest
