"""Decisions about proposals on the page Review: content, permissions, and records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dqx_airflow.tuning.proposals import (
    Proposal,
    ProposalStage,
    ProposedValue,
    StoredProposal,
    decide,
    propose,
    read_proposals,
)
from tests.ui.ui_scene import Get, Html, Scene, report_of

pytestmark = pytest.mark.airflow


EVIDENCE: Mapping[str, Any] = {
    "from": "2024-01-01",
    "to": "2024-03-20",
    "days": 80,
    "labels": 12,
    "held_out": {
        "days": 40,
        "before": {"false_alarms": 6, "missed": 0, "cost": 6},
        "after": {"false_alarms": 1, "missed": 0, "cost": 1},
    },
    "changes": [
        {
            "date": "2024-03-19",
            "assertion": "orders.id.null_share",
            "before": "failed",
            "after": "passed",
            "label": False,
        }
    ],
    "curves": [
        {
            "tunable": "MAX_NULLS",
            "type": "percent",
            "points": [[0.0, 9], [0.1, 6], [0.2, 1]],
            "today": 0.1,
            "proposed": 0.2,
        }
    ],
}


def proposal(**changes: Any) -> Proposal:
    given: dict[str, Any] = {
        "suite": "orders.dql",
        "agent": "autotuner",
        "changes": (ProposedValue("MAX_NULLS", 0.1, 0.2),),
        "reason": "fewer false alarms",
        "gate": "lake.gate",
        "evidence": EVIDENCE,
        **changes,
    }
    return Proposal(**given)


@pytest.fixture
def made(scene: Scene) -> Proposal:
    """A proposal for the suite of a gate of the red team."""
    scene.ran(report_of())
    found = proposal()
    propose(str(scene.root), found)
    return found


def stored(scene: Scene) -> StoredProposal:
    (found,) = read_proposals(str(scene.root))
    return found


def logged(scene: Scene) -> list[tuple[str, str, str]]:
    from airflow.models.log import Log
    from sqlalchemy import select

    wanted = select(Log.event, Log.owner, Log.dag_id).where(Log.event.like("dqx%"))
    return [tuple(row) for row in scene.session.execute(wanted)]


def test_a_proposal_is_shown_with_its_evidence(get: Get, made: Proposal) -> None:
    answer = get("review", "ada")
    page = Html(answer.text)
    assert "MAX_NULLS : 0.1 → 0.2" in page.text
    assert "false alarms 6 1" in page.text
    assert "40 held-out days, 12 labels, data from 2024-01-01 to 2024-03-20" in page.text
    assert "2024-03-19 orders.id.null_share failed passed false alarm" in page.text
    assert len(page.all("polyline")) == 1
    assert page.forms == []  # ada only looks
    assert get("review", None).status_code == 401


@pytest.mark.parametrize(
    ("decision", "reason", "stage"),
    [("approve", "", ProposalStage.APPROVED), ("reject", "too loose", ProposalStage.REJECTED)],
)
def test_a_decision_is_kept_with_author_reason_and_an_entry_in_the_audit_log(
    get: Get,
    post: Get,
    scene: Scene,
    made: Proposal,
    decision: str,
    reason: str,
    stage: ProposalStage,
) -> None:
    (form,) = Html(get("review", "eve").text).forms
    for _ in range(2):
        answer = post("review", **form, decision=decision, reason=reason)
        assert (answer.status_code, answer.headers["location"]) == (303, "review")
    found = stored(scene)
    assert (found.stage, found.agent, found.reason) == (stage, "eve", reason or None)
    assert logged(scene) == [("dqx review", "eve", "lake")]
    page = Html(get("review", "eve").text)
    assert page.forms == []
    assert f"{stage.value} by eve" in page.text


def test_a_rejection_needs_a_reason(get: Get, post: Get, scene: Scene, made: Proposal) -> None:
    (form,) = Html(get("review", "eve").text).forms
    assert post("review", **form, decision="reject", reason=" ").status_code == 400
    assert post("review", **form, decision="perhaps", reason="x").status_code == 400
    assert stored(scene).stage is ProposalStage.PENDING


def test_a_decision_is_final(get: Get, post: Get, scene: Scene, made: Proposal) -> None:
    (form,) = Html(get("review", "eve").text).forms
    decide(str(scene.root), [made], ProposalStage.REJECTED, "grace", "no")
    answer = post("review", **form, decision="approve")
    assert answer.status_code == 409
    assert "grace has already decided" in answer.text
    assert stored(scene).stage is ProposalStage.REJECTED


def test_forged_requests_change_nothing(get: Get, post: Get, scene: Scene, made: Proposal) -> None:
    (form,) = Html(get("review", "eve").text).forms
    evil = {"Origin": "https://evil.example"}
    assert post("review", **form, decision="approve", headers=evil).status_code == 403
    assert post("review", **form, decision="approve", headers={}).status_code == 403
    forged = {**form, "token": "x"}
    assert post("review", **forged, decision="approve").status_code == 403
    assert post("review", "ben", **form, decision="approve").status_code == 403
    assert stored(scene).stage is ProposalStage.PENDING
    assert logged(scene) == []


def test_proposals_of_unreadable_dags_are_hidden_and_refused(
    get: Get, post: Get, scene: Scene, made: Proposal
) -> None:
    from dqx_airflow.ui.responses import form_token

    class User:
        def __init__(self, name: str) -> None:
            self.name = name

        def get_id(self) -> str:
            return self.name

    assert "MAX_NULLS" not in get("review", "ben").text
    for user, status in (("ben", 404), ("ada", 403)):
        token = form_token(User(user))
        sent = {"token": token, "proposal": made.id, "decision": "approve"}
        assert post("review", user, **sent).status_code == status
    assert stored(scene).stage is ProposalStage.PENDING


def test_a_proposal_for_two_teams_is_hidden_from_each_alone(get: Get, scene: Scene) -> None:
    scene.dag()
    scene.dag("pond", team="blue")
    scene.ran(report_of())
    scene.ran(report_of(2, dag_id="pond"), dag_id="pond", number=2)
    propose(str(scene.root), proposal(gate=None))
    for user in ("eve", "ben"):
        assert "MAX_NULLS" not in get("review", user).text


HOSTILE: Mapping[str, Any] = {
    "held_out": {"before": {"cost": "<script>alert(1)</script>"}, "after": {"cost": [1]}},
    "changes": [{"date": 7, "assertion": "<b>", "before": None, "after": {}, "label": []}, 3, None],
    "curves": [
        {"tunable": "</title><script>alert(1)</script>", "points": [[0, 1], [1, 2]], "today": 0,
         "proposed": 1},
        {"param": "x", "points": [["a", 1], [1, 2]], "today": 0, "proposed": 1},
        {"points": [[0, 1]]},
        "curve",
    ],
    "labels": "<i>",
}  # fmt: skip


def test_invalid_evidence_is_escaped_or_left_out(get: Get, scene: Scene) -> None:
    scene.ran(report_of())
    for changes in ({"evidence": [1]}, {"profile": 7}):
        propose(str(scene.root), proposal(**changes))
    assert len(Html(get("review", "eve").text).forms) == 1
    propose(str(scene.root), proposal(evidence=HOSTILE, reason="<script>alert(1)</script>"))
    answer = get("review", "eve")
    assert answer.status_code == 200
    assert "<script>alert" not in answer.text
    page = Html(answer.text)
    assert len(page.all("polyline")) == 1
    assert len(page.forms) == 2
