"""Proposed changes of suites for review: what changes, and on what evidence; and the form for
decisions.

Evidence is whatever an agent put into the store: what is not in the tuner's format is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, NamedTuple

from fastapi import Response
from markupsafe import Markup

from dqx_airflow.tuning.drawings import cost_svg
from dqx_airflow.tuning.proposals import (
    ProposalStage,
    StoredProposal,
    attempts_behind,
    decide,
    read_proposals,
)
from dqx_airflow.ui import responses
from dqx_airflow.ui.airflow import tasks_of
from dqx_airflow.ui.airflow_users import VisitorDep
from dqx_airflow.ui.api import PageRouter
from dqx_airflow.ui.json_members import NotInJson
from dqx_airflow.ui.store import Answer, StoreClient
from dqx_airflow.ui.summary_view import list_of, mapping_of

_MOST_DAYS = 60
_MOST_CHARTS = 6
_MOST_POINTS = 500
_MOST_DECIDED = 20
_LABELS = {True: "real issue", False: "false alarm"}


@dataclass(frozen=True, slots=True)
class ProposalView:
    """A proposal: named numbers before and after, on held-out days; the days that change sides;
    drawings of cost against threshold."""

    stored: StoredProposal
    facts: list[tuple[str, str, str]]
    held_out: str
    days: list[dict[str, str]]
    more_days: int
    charts: NotInJson[list[Markup]]


def _view(stored: StoredProposal) -> ProposalView:
    evidence = mapping_of(stored.proposal.evidence)
    held_out = mapping_of(evidence.get("held_out"))
    before, after = mapping_of(held_out.get("before")), mapping_of(held_out.get("after"))
    named = (("false_alarms", "false alarms"), ("missed", "missed issues"), ("cost", "cost"))
    changes = [change for change in map(_change, list_of(evidence.get("changes"))) if change]
    charts = [_chart(curve) for curve in list_of(evidence.get("curves"))[:_MOST_CHARTS]]
    return ProposalView(
        stored=stored,
        facts=[
            (title, str(before[name]), str(after[name]))
            for name, title in named
            if name in before and name in after
        ],
        held_out=_span(evidence, held_out),
        days=changes[:_MOST_DAYS],
        more_days=max(len(changes) - _MOST_DAYS, 0),
        charts=[chart for chart in charts if chart],
    )


def _span(evidence: Mapping[str, Any], held_out: Mapping[str, Any]) -> str:
    parts = []
    if "days" in held_out:
        instances = f" of {evidence['instances']} instances" if "instances" in evidence else ""
        parts.append(f"{held_out['days']} held-out days{instances}")
    if "labels" in evidence:
        parts.append(f"{evidence['labels']} labels")
    if "from" in evidence and "to" in evidence:
        parts.append(f"data from {evidence['from']} to {evidence['to']}")
    return ", ".join(parts)


def _change(value: object) -> dict[str, str] | None:
    """A day on which an assertion would change sides; None for anything else."""
    fields = mapping_of(value)
    names = ("date", "assertion", "before", "after")
    if any(name not in fields for name in names):
        return None
    change = {name: str(fields[name]) for name in names}
    if isinstance(index := fields.get("map_index"), int):
        change["date"] += f"[{index}]"
    label = fields.get("label")
    return {**change, "label": _LABELS[label] if isinstance(label, bool) else ""}


def _chart(curve: object) -> Markup | None:
    """The drawing of a curve, which escapes its input; None for invalid input."""
    fields = mapping_of(curve)
    points = list_of(fields.get("points"))
    if not 1 < len(points) <= _MOST_POINTS:
        return None
    try:
        numbers = [[float(value), float(cost)] for value, cost in points]
        # Proposals of 0.2.0 have `param`.
        name = fields["tunable"] if "tunable" in fields else fields["param"]
        drawn = {
            "tunable": responses.without_invisible(str(name)),
            "type": fields.get("type"),
            "points": numbers,
            "today": float(fields["today"]),
            "proposed": float(fields["proposed"]),
        }
        return Markup(cost_svg(drawn))  # noqa: S704 (numbers, and an escaped name)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


router = PageRouter()

_LONGEST_REASON = 500
_STAGES = {"approve": ProposalStage.APPROVED, "reject": ProposalStage.REJECTED}
_NO_PROPOSAL = responses.Refused(HTTPStatus.NOT_FOUND, "Proposal not found. Reload the page.")


class ReviewPage(NamedTuple):
    """The proposals of all stages."""

    proposals: list[ProposalView]
    problem: str | None


@router.get("/review")
def review(visitor: VisitorDep) -> responses.Page[ReviewPage]:
    """The proposals for the suites of gates that the user may read."""
    client = responses.store_client()
    answer = client.ask(read_proposals)
    dags = _dags_of(client, visitor.session, answer.found)
    visible = [
        stored for stored in answer.found if _all(dags.get(stored.proposal.id), visitor.may_read)
    ]
    editable = {
        stored.proposal.id for stored in visible if _all(dags[stored.proposal.id], visitor.may_edit)
    }
    return responses.Page(
        "review.html",
        ReviewPage([*map(_view, visible)], answer.problem),
        most_decided=_MOST_DECIDED,
        editable=editable,
        read_only=client.read_only() if editable else None,
        token=responses.form_token(visitor.user),
    )


@router.post("/review")
def decision(visitor: VisitorDep, form: responses.Form) -> Response:
    """Stores a decision in the table of proposals, and in Airflow's audit log."""
    stage, reason = responses.chosen(form, _STAGES, "decision", _LONGEST_REASON)
    if stage is ProposalStage.REJECTED and not reason:
        raise responses.Refused(
            HTTPStatus.BAD_REQUEST, "A rejection needs a reason: go back and enter one."
        )
    with responses.one_at_a_time():
        return _decide(visitor, form, stage, reason)


def _decide(
    visitor: VisitorDep, form: Mapping[str, str], stage: ProposalStage, reason: str
) -> Response:
    client = responses.store_client()
    answer = client.ask(read_proposals)
    if answer.problem is not None:
        raise responses.Refused(HTTPStatus.SERVICE_UNAVAILABLE, answer.problem)
    wanted = [stored for stored in answer.found if stored.proposal.id == form.get("proposal")]
    by_proposal = _dags_of(client, visitor.session, wanted)
    dags = sorted(by_proposal.get(form.get("proposal", ""), ()))
    forbidden = "You do not have permission to edit all DAGs whose gates run this suite."
    responses.require_editor(visitor, dags, _NO_PROPOSAL, forbidden)
    (stored,) = wanted
    proposal = stored.proposal
    if stored.stage is stage:
        return responses.back_to(responses.address("review"))
    if stored.stage is not ProposalStage.PENDING:
        raise responses.Refused(
            HTTPStatus.CONFLICT,
            f"{stored.agent} has already decided: the proposal is {stored.stage.value}.",
        )
    why = reason or None
    facts: dict[str, Any] = {"suite": proposal.suite, "proposal": proposal.id}
    facts |= {"decision": stage.value, "reason": why}
    write = partial(decide, proposals=[proposal], stage=stage, author=visitor.name, reason=why)
    back = responses.address("review")
    return responses.recorded_change(visitor, "dqx review", dags, facts, write, back)


def _dags_of(
    client: StoreClient, session: Any, proposals: Collection[StoredProposal]
) -> Mapping[str, frozenset[str]]:
    """The DAGs of the gates of each proposal, by its id: the DAGs of all stored attempts on the
    gate, or else on the suite; empty if Airflow has none of these attempts."""
    if not proposals:
        return {}
    answer: Answer[Any] = client.ask(lambda store: tuple(attempts_behind(store, proposals).items()))
    session.close()
    tasks = tasks_of(
        session, {attempt_id for _, gates in answer.found for ids in gates for attempt_id in ids}
    )
    return {
        key: frozenset(tasks[one].dag_id for ids in gates for one in ids if one in tasks)
        for key, gates in answer.found
    }


def _all(dags: Collection[str] | None, allows: Any) -> bool:
    return bool(dags) and all(allows(dag_id) for dag_id in dags or ())
