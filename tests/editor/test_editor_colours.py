"""The TextMate grammar colours what the parser reads, so that they cannot diverge."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import dqx_airflow.editor
from dqx_airflow.dql.callables import IN_DATES, IN_ROWS, MEASURES
from dqx_airflow.dql.syntax.grammar import grammar
from dqx_airflow.dql.syntax.parser import tokens
from dqx_airflow.editor.vocabulary import PARAMETERS, PROFILE_TYPES, keywords
from dqx_airflow.metrics.builtin import CALLABLE
from dqx_airflow.metrics.calls import AGES, DISTRIBUTION, MOST_COMMON, TIMELINESS, USUAL_LIMITS
from dqx_airflow.metrics.drift import DRIFT
from dqx_airflow.values import Severity, SourceFile
from tests.editor.textmate import Grammar
from tests.markdown_cases import REWRITE

EXTENSION = Path(dqx_airflow.editor.__file__).parent / "vscode"
GRAMMAR = EXTENSION / "dql.tmLanguage.json"
TESTS = Path(__file__).parents[1]
SUITES = sorted([*TESTS.glob("dql/seed/**/*.dql"), *TESTS.parent.glob("dags_examples/**/*.dql")])

DUE = {
    "STRING": "string.",
    "NUMBER": "constant.numeric.",
    "PERCENT": "constant.numeric.",
    "DATE": "constant.numeric.date.",
    "TIME": "constant.numeric.time.",
    "FACTOR": "constant.numeric.factor.",
    "UNIT": "keyword.other.unit.",
    "TAG": "entity.name.tag.",
    "BACKTICKED": "variable.other.quoted.",
    "COMPARATOR": "keyword.operator.comparison.",
    "PLUS": "keyword.operator.arithmetic.",
    "MINUS": "keyword.operator.arithmetic.",
    "STAR": "keyword.operator.arithmetic.",
    "SLASH": "keyword.operator.arithmetic.",
}
"""The scopes of the tokens that are no words."""

WORD = re.compile(r"keyword\.|constant\.language\.")
NAME = re.compile(r"variable\.|entity\.name\.|support\.|constant\.language\.(severity|profile)")


def grammar_text(text: str) -> str:
    """The text of a TextMate grammar with the calls of the table."""
    names = "|".join(
        (*CALLABLE, *USUAL_LIMITS, *AGES, *DRIFT, TIMELINESS, DISTRIBUTION, MOST_COMMON, "values")
    )
    return re.sub(r"(?:\w+\|)*num_rows(?:\|\w+)*", names, text)


if REWRITE:  # before anything reads it
    GRAMMAR.write_text(grammar_text(GRAMMAR.read_text(encoding="utf-8")), encoding="utf-8")
COLOURS = Grammar(GRAMMAR)


def scope_of(text: str, word: str) -> str:
    return COLOURS.colours(text)[text.index(word)]


def test_the_calls_that_are_coloured_are_those_of_the_table() -> None:
    """With DQX_REWRITE_GOLDEN=1 they are written anew."""
    text = GRAMMAR.read_text(encoding="utf-8")
    assert text == grammar_text(text)


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
def test_every_token_of_a_suite_has_the_colour_of_its_kind(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    scopes = COLOURS.colours(text)
    assert len(scopes) == len(text)
    words = {item.name for item in grammar().terminals if item.pattern.value in keywords()}
    seen = 0
    for token in tokens(SourceFile(path.name, text)):
        scope = scopes[token.start_pos or 0]
        shown = f"{token} in line {token.line} is {token.type} and has the scope {scope!r}"
        if token.type in DUE:
            assert scope.startswith(DUE[token.type]), shown
        elif token.type in words:
            assert WORD.match(scope), shown
        elif token.type == "IDENT":
            assert NAME.match(scope), shown
        seen += 1
    assert seen


def test_every_keyword_has_a_colour() -> None:
    for word in keywords():
        assert WORD.match(scope_of(f"{word} ", word)), word


@pytest.mark.parametrize(
    ("calls", "scope"),
    [(MEASURES, "support.function."), (IN_ROWS, "support.function"), (IN_DATES, "support.")],
)
def test_everything_that_can_be_called_has_a_colour(calls: dict[str, object], scope: str) -> None:
    for name in calls:
        assert scope_of(f"assert {name}(x) > 0", name).startswith(scope), name


def test_an_unknown_function_has_another_colour() -> None:
    assert scope_of("assert averag(x) > 0", "averag") == "entity.name.function.dql"


def test_parameters_severities_and_types_of_profiles_have_a_colour() -> None:
    for name in PARAMETERS:
        scope = scope_of(f"assert average(price, {name} other)", f"{name} ")
        # `where` begins a predicate, whatever it stands in.
        is_where = name == "where"
        due = "keyword.operator.word.dql" if is_where else "variable.parameter.named.dql"
        assert scope == due, name
    for severity in Severity:
        assert scope_of(f"severity {severity.value}", "P").startswith("constant.language."), (
            severity
        )
    for kind in PROFILE_TYPES:
        assert scope_of(f"type {kind}", kind) == "constant.language.profile.dql"


def test_columns_with_the_names_of_keywords_look_like_columns() -> None:
    text = "assert average(type) + sum(name) > 0"
    assert scope_of(text, "type") == scope_of(text, "name)") == "variable.other.dql"


def test_an_unclosed_string_ends_with_its_line() -> None:
    text = 'name "open\nassert average(x) > 0\n'
    assert scope_of(text, "assert").startswith("keyword.")


def test_the_patterns_are_plain_enough_for_every_editor() -> None:
    for pattern in COLOURS.patterns():
        re.compile(pattern)
        assert not re.search(r"\(\?P|\(\?>|\\[GKhH]", pattern), pattern


def test_the_files_of_the_extension_exist() -> None:
    described = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))
    (language,) = described["contributes"]["languages"]
    (colours,) = described["contributes"]["grammars"]
    assert colours["scopeName"] == COLOURS.rules["scopeName"]
    assert language["id"] == colours["language"]
    assert (EXTENSION / colours["path"]).samefile(COLOURS.path)
    json.loads((EXTENSION / language["configuration"]).read_text(encoding="utf-8"))
