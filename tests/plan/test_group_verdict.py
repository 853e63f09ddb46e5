"""The verdict on groups has the value, the name and the note of its own worst group."""

from __future__ import annotations

from datetime import date

import pytest

from dqx_airflow.dql.check import check_source
from dqx_airflow.plan.condition import EvaluatedCondition
from dqx_airflow.plan.group_verdict import GroupsJudgement, GroupsVerdict
from dqx_airflow.plan.resolve import resolve
from dqx_airflow.values import DatasetRef, SourceFile, Status

PASSED = EvaluatedCondition(Status.PASSED, value=5, scaled=5, bounds=(4,), note="passed by a note")
FAILED = EvaluatedCondition(
    Status.FAILED, value=1, scaled=1, bounds=(4,), note="failed with a note"
)
SKIPPED = EvaluatedCondition(Status.SKIPPED, "too few days", note="skipped with a note")
QUIETLY_SKIPPED = SKIPPED._replace(note=None)
BROKEN = EvaluatedCondition(Status.ERROR, "division by zero")


def verdict_on(share: str, *judgements: EvaluatedCondition) -> GroupsVerdict:
    """The verdict on groups `a`, `b` and so on, of which a share has to pass."""
    claim = f"sum(c) >= 4 for {share} of groups by g"
    source = SourceFile("s.dql", f'suite "S" {{ check "C" on t {{ assert {claim} }} }}')
    suite = check_source(source).suite
    assert suite is not None
    plan = resolve(suite, source, [DatasetRef("t", "/t", format="parquet")], date(2026, 11, 23))
    (assertion,) = (one for one in plan.assertions if one.groups is not None)
    assert assertion.groups is not None
    judged = {(name,): judgement for name, judgement in zip("abcdef", judgements, strict=False)}
    return GroupsJudgement(assertion, plan, assertion.groups, judged).verdict(most_rows=5)


@pytest.mark.parametrize("skipped", [SKIPPED, QUIETLY_SKIPPED])
@pytest.mark.parametrize("others", [[FAILED], [FAILED, PASSED], [PASSED, FAILED]])
def test_a_skipped_verdict_takes_no_note_of_another_group(
    skipped: EvaluatedCondition, others: list[EvaluatedCondition]
) -> None:
    share = "50%" if len(others) == 1 else "60%"
    verdict = verdict_on(share, *others, skipped)
    assert (verdict.status, verdict.reason) == (Status.SKIPPED, skipped.reason)
    assert (verdict.worst, verdict.note) == (skipped, skipped.note)


def test_a_failed_verdict_takes_the_note_of_the_worst_failed_group() -> None:
    near = FAILED._replace(value=3, scaled=3, note="another note")
    verdict = verdict_on("100%", near, SKIPPED, FAILED, PASSED)
    assert (verdict.status, verdict.note, verdict.worst) == (Status.FAILED, FAILED.note, FAILED)
    assert verdict.worst_group == '"c"'


def test_a_passed_verdict_takes_the_note_of_its_nearest_group_without_failures() -> None:
    far = PASSED._replace(value=50, scaled=50, note="another note")
    assert verdict_on("50%", far, PASSED, QUIETLY_SKIPPED).note == PASSED.note


def test_one_group_that_cannot_be_evaluated_is_the_verdict() -> None:
    verdict = verdict_on("50%", PASSED, FAILED, BROKEN)
    assert (verdict.status, verdict.reason) == (Status.ERROR, '"c": division by zero')
    assert (verdict.groups, verdict.failed_groups, verdict.note) == (3, 1, None)
