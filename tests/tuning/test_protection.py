"""What algorithms may change, and every known way around the limits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dqx_airflow.diagnostics import draw
from dqx_airflow.dql import History, Suite
from dqx_airflow.dql.check import check_source
from dqx_airflow.errors import ChangeRefusedError
from dqx_airflow.tuning.protection import judge_change, judge_values
from dqx_airflow.values import SourceFile
from tests.markdown_cases import Case, cases
from tests.sound_suites import sound_suite

CASES = [*cases(Path(__file__).parent / "protection.md")]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_change_is_judged(case: Case) -> None:
    text, wanted = case.block("dql").text, json.loads(case.block("json").text)
    checked = check_source(SourceFile("suite.dql", text))
    assert checked.suite is not None
    assert not checked.errors
    judged = judge_values(checked.suite, wanted["set"], wanted["agent"])
    shown = draw(judged.refusals, checked.sources)
    if not judged.refusals:
        route = "waits for a person" if judged.needs_review else "is made"
        risk = ", at low risk" if judged.is_auto_approved else ""
        shown = f"{route}{risk}; touches {', '.join(judged.touched)}"
    case.expect(shown)


SUITE = """\
suite "S" {
    const LEAST = 100 tunable [1, 1000]
    check "C" on orders {
        assert num_rows() >= LEAST name "rows" severity P0 tags [volume]
        @human_review
        assert null_count(x) < LEAST name "nulls"
        assert sum(x) > 1 name "sum"
    }
    profile "P" { from 2024-01-01 to 2024-01-02 scale assertion "sum" in "C" by 2.0x }
}
"""


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("severity P0", "severity P1", "E602"),
        ("severity P0", "", "E602"),
        ('        assert num_rows() >= LEAST name "rows" severity P0 tags [volume]\n', "", "E602"),
        ("assert num_rows()", "@experimental assert num_rows()", "E602"),
        ("num_rows() >= LEAST", "coalesce(num_rows(), 5_000) >= LEAST", "E602"),
        ('name "rows"', 'name "other"', "E602"),
        ("[1, 1000]", "[1, 2000]", "E603"),
        ("sum(x) > 1", "sum(x) > 0", "E603"),
        ('        assert sum(x) > 1 name "sum"\n', "", "E603"),
        ("        @human_review\n", "", "E603"),
        ("by 2.0x", "by 3.0x", "E603"),
        ('suite "S" {', 'suite "S" { availability_threshold 10%', "E603"),
        ("by 2.0x }", 'by 2.0x downgrade tag "volume" to P3 }', "E602"),
        (
            "by 2.0x }",
            'by 2.0x } profile "Q" { from january(1) to december(31) scale tag "volume" by 9.0x }',
            "E602",
        ),
        (
            "by 2.0x }",
            'by 2.0x } @allow_required profile "Q" { from may(1) to may(2) disable check "C" }',
            "E602",
        ),
    ],
)  # fmt: skip
def test_an_algorithm_changes_nothing_else(old: str, new: str, code: str) -> None:
    assert old in SUITE
    # Of what an algorithm must not change, some is an error in a suite of a person.
    after = check_source(SourceFile("suite.dql", SUITE.replace(old, new, 1))).valid_suite
    refusals = judge_change(sound_suite(SUITE), after, "autotuner").refusals
    assert [item.code for item in refusals] == [code]
    assert not judge_change(sound_suite(SUITE), after, "human").refusals


def test_a_profile_that_an_algorithm_adds_waits_for_a_person() -> None:
    more = '} profile "Q" { from january(1) to january(2) disable assertion "sum" in "C" }'
    after = sound_suite(SUITE.replace("by 2.0x }", f"by 2.0x {more}"))
    judged = judge_change(sound_suite(SUITE), after, "autotuner")
    assert (judged.refusals, judged.needs_review, judged.touched) == ((), True, ("sum",))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "s.dql"
    path.write_text(SUITE)
    return path


def in_two_steps(suite: Suite) -> None:
    suite.set_param("LEAST", 150, agent="autotuner")
    suite.set_param("LEAST", 99, agent="autotuner")


def as_nobody(suite: Suite) -> None:
    suite.set_param("LEAST", 99)


def beside_a_person(suite: Suite) -> None:
    suite.set_param("LEAST", 120, agent="human")
    suite.set_param("LEAST", 110, agent="autotuner")


@pytest.mark.parametrize("weaken", [in_two_steps, as_nobody, beside_a_person])
def test_a_suite_in_python_keeps_required_assertions(
    path: Path, weaken: Callable[[Suite], None]
) -> None:
    suite = Suite.load(path)
    with pytest.raises(ChangeRefusedError, match="E602") as refused:
        weaken(suite)
    assert refused.value.diagnostics[0].span.line == 4


def test_a_concurrent_change_by_a_person_wins(path: Path) -> None:
    suite = Suite.load(path)
    suite.set_param("LEAST", 150, agent="autotuner")
    path.write_text(SUITE.replace("= 100 ", "= 200 "))
    with pytest.raises(ChangeRefusedError, match=r"(?s)E602.*150.*is weaker than.*200"):
        suite.save()
    assert "= 200 " in path.read_text()


def test_changes_for_review_wait_in_the_history(path: Path) -> None:
    suite = Suite.load(path)
    suite.set_param("LEAST", 150, agent="autotuner", reason="labels")
    assert suite.save().proposed == ("LEAST",)
    assert suite.save().proposed == ("LEAST",)
    assert path.read_text() == SUITE
    assert suite.get_param("LEAST") == 150, "it counts in the runs of this process"
    (entry,) = History(f"{path}.history").entries
    assert (entry["action"], entry["param"], entry["old"], entry["new"]) == (
        "propose",
        "LEAST",
        100,
        150,
    )
    assert len(entry["id"]) == 12
    assert suite.get_param_history("LEAST")[-1].new_value == 150
    suite.set_param("LEAST", 90, agent="human")
    assert suite.save().written == ("LEAST",)
    assert "= 90 " in path.read_text()
