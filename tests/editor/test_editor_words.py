"""The editor's knowledge of the language is complete."""

from __future__ import annotations

from dqx_airflow.dql.annotations import ANNOTATED
from dqx_airflow.dql.callables import IN_DATES, MEASURES
from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.dates import check_date
from dqx_airflow.dql.syntax.parser import parse
from dqx_airflow.editor import vocabulary
from dqx_airflow.editor.vocabulary import keywords
from dqx_airflow.metrics.builtin import CALLABLE
from dqx_airflow.values import SourceFile


def test_every_keyword_of_the_grammar_is_explained() -> None:
    assert set(vocabulary.KEYWORDS) == keywords()


def test_every_annotation_is_explained() -> None:
    assert set(vocabulary.ANNOTATIONS) == {name for known in ANNOTATED.values() for name in known}


def test_every_parameter_is_explained() -> None:
    named = {name for called in MEASURES.values() for name in called.parameters}
    assert named == set(vocabulary.PARAMETERS)


def test_every_metric_can_be_completed() -> None:
    assert set(CALLABLE) <= set(MEASURES)


def test_every_type_of_a_profile_is_accepted() -> None:
    for kind in vocabulary.PROFILE_TYPES:
        text = f'suite "S" {{ profile "P" {{ type {kind} from january(1) to january(2) }} }}'
        found = check_source(SourceFile("s", text)).diagnostics
        assert not [item for item in found if item.code == "E303"]


def test_every_completed_date_is_valid() -> None:
    examples = {
        "weekday": "sunday",
        "nth_weekday": "november, thursday, 4",
        "last_day_of_month": "",
    }
    for name in IN_DATES:
        text = f'suite "S" {{ profile "P" {{ from {name}({examples.get(name, "1")}) }} }}'
        suite = parse(SourceFile("s", text)).suite
        assert suite is not None
        assert suite.profiles[0].start is not None
        assert not list(check_date(suite.profiles[0].start))
