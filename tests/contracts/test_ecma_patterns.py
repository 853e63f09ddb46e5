"""Patterns of contracts in Java: what they match, and which ones are refused.

A line is a pattern, a text, and whether ECMA finds the one in the other. The reference engine reads
the translation as Java does, and so does Spark.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dqx_airflow.contracts.compile.ecma_regex import java_pattern
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.plan.in_memory.predicates import UntranslatablePatternError as NotInPythonError
from dqx_airflow.plan.in_memory.predicates import compile_java

FINDS = [
    ("^M[0-9]{4}$", "M1234", True),
    ("^M[0-9]{4}$", "M1234\n", False),
    (r"\s", "\u00a0", True),
    (r"^\S+$", "a\u00a0b", False),
    (r"[\s]", "\ufeff", True),
    (r"^[^\s@]+@[^\s@]+\.[^\s@]+$", "a@b.c", True),
    ("[^]", "\n", True),
    ("[]", "a", False),
    ("a[]|b", "b", True),
    (r"^[\s\S]+$", "a\nb", True),
    (r"^[^\s\S]$", "a", False),
    (r"^[\d\D]$", "x", True),
    (r"\bcat\b", "a cat!", True),
    (r"\bcat\b", "écaté", True),
    (r"\Bcat", "écat", False),
    (r"\u{1F600}", "😀", True),
    (r"\uD83D\uDE00", "😀", True),
    (r"\u00e9", "é", True),
    (r"a\/b", "a/b", True),
    ("[a[b]+$", "a[b", True),
    ("[a&&b]+$", "a&b", True),
    ("^[a&b]$", "&", True),
    (r"(?<year>\d{4})-\k<year>", "2020-2020", True),
    (r"(?<my_year>\d{4})-\k<my_year>0", "2020-20200", True),
    (r"^(a)\1$", "aa", True),
    ("a{", "a{", True),
    ("a{,3}$", "a{,3}", True),
    ("^a{2}b{1,}$", "aabb", True),
    (r"^[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}$", "x@y.com", True),
    (r"^[\Sx]$", "\u00a0", False),
    (r"^[\Sx ]+$", "ab c", True),
    (r"^[^\Sx ]$", "\t", True),
    (r"^[^\S ]$", " ", False),
    (r"^[^\S]$", " ", True),
    (r"[\b]", "\x08", True),
    (r"\cJ", "\n", True),
    (r"\v", "\x0b", True),
    (r"\v", "\n", False),
    (r"\p{Lu}", "É", True),
    (r"\P{Lu}", "É", False),
    (r"\p{Script=Greek}", "\u03b1", True),
    (r"\p{Letter}+", "é", True),
    (r"(?<=a{1,3})b", "aab", True),
    (r"(?<!a)b", "ab", False),
    (r"^[\w-.]+$", "a-b.c", True),
    (r"\x41", "A", True),
    (r"\0", "\x00", True),
    ("[^^]", "^", False),
    (r"[\^a]", "^", True),
    ("]}", "]}", True),
    ("(?i)^abc$", "ABC", True),
    (r"^(\+\d{1,2}\s)?\(?\d{3}\)?[\s.-]\d{3}[\s.-]\d{4}$", "(123) 456-7890", True),
    (r"^\d{3}\-\d$", "123-4", True),
    ("^$", "", True),
    (".", "\u2028", False),
    ("^(?:a|b)+?$", "ab", True),
]
REFUSED = {
    r"\A": r"\A means the letter A in ECMA-262: write ^",
    r"a\Z": r"\Z means the letter Z in ECMA-262: write $",
    "(?>a)": "ECMA-262 has no group that begins with (?>a",
    "(?P<x>a)": "ECMA-262 has no group that begins with (?P<",
    "(?m)a": "ECMA-262 has no group that begins with (?m)",
    "(?<=a+)b": "the look-behind is unbounded: give the repetition a maximum",
    "a)": "unbalanced parenthesis",
    "(a": "missing ), unterminated subpattern",
    "[a": "unclosed bracket",
    r"\2(a)": r"\2 refers to a group that does not precede it",
    r"\k<b>(?<b>a)": "no earlier group is named b",
    "(?<x>a)(?<x>b)": "two groups are named x",
    r"\y": r"\y is undefined in ECMA-262",
    "\\": "trailing backslash",
    "[a\\": "unclosed bracket",
    r"\p{Foo}": r"Java has no class p{Foo} of characters",
    "a{99999999999}": "an unescaped brace",
    r"\ud800": "half of a surrogate pair, or a character that does not exist",
}


@pytest.mark.parametrize(("pattern", "text", "due"), FINDS)
def test_the_translation_finds_what_ecma_finds(pattern: str, text: str, due: bool) -> None:
    try:
        compiled = compile_java(java_pattern(pattern))
    except NotInPythonError:
        pytest.skip("Python has nothing for it: only Spark is asked")
    assert (compiled.search(text) is not None) is due


@pytest.mark.spark
def test_spark_finds_what_ecma_finds(spark: Any) -> None:
    lines = [(java_pattern(pattern), text) for pattern, text, _ in FINDS]
    frame = spark.createDataFrame(lines, "pattern string, text string")
    found = [row[0] for row in frame.selectExpr("text RLIKE pattern").collect()]
    assert found == [due for _, _, due in FINDS]


@pytest.mark.parametrize(("pattern", "reason"), REFUSED.items())
def test_a_pattern_without_a_java_counterpart_is_refused(pattern: str, reason: str) -> None:
    with pytest.raises(NoCounterpartError) as caught:
        java_pattern(pattern)
    assert str(caught.value) == reason


@given(st.text(alphabet=r"ab0^$.*+?()[]{}|\dDwWsSbB-&,:=!<>kpu", max_size=16))
def test_every_pattern_is_translated_or_refused_with_a_reason(pattern: str) -> None:
    try:
        translated = java_pattern(pattern)
    except NoCounterpartError as error:
        outcome = str(error)
    else:
        outcome = translated
    assert outcome or not pattern


@given(
    st.text(alphabet="ab[]{}&-^$\n \u00a0\\", max_size=8),
    st.text(alphabet="ab[]{}&-^$\n \u00a0\\", max_size=8),
)
def test_an_escaped_string_matches_itself_only(wanted: str, around: str) -> None:
    pattern = "".join(f"\\x{ord(sign):02x}" for sign in wanted)
    assert compile_java(java_pattern(f"^{pattern}$")).search(wanted)
    assert not compile_java(java_pattern(f"^{pattern}$")).search(f"{wanted}{around}!")
