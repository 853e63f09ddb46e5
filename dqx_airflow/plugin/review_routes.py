"""The route of proposed changes, and the form for decisions on them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request, Response

from dqx_airflow.plugin.addresses import address
from dqx_airflow.plugin.airflow import (
    GetUserDep,
    SessionDep,
    may_edit,
    may_read,
    record,
    tasks_of,
)
from dqx_airflow.plugin.responses import back_to, html_page, notice, store_client
from dqx_airflow.plugin.review_page import review_page
from dqx_airflow.plugin.store import Answer, StoreClient
from dqx_airflow.plugin.writes import Form, Refused, form_token
from dqx_airflow.results.proposals import (
    ProposalStage,
    StoredProposal,
    attempts_behind,
    decide,
    proposals_from,
)

router = APIRouter()

_LONGEST_REASON = 500
_STAGES = {"approve": ProposalStage.APPROVED, "reject": ProposalStage.REJECTED}
_NO_PROPOSAL = Refused(HTTPStatus.NOT_FOUND, "Proposal not found. Reload the page.")


@router.get("/review")
def review(request: Request, session: SessionDep, user: GetUserDep) -> Response:
    """The proposals for the suites of gates that the user may read."""
    client = store_client()
    answer = client.ask(lambda store: proposals_from(store.select))
    dags = _dags_of(client, session, answer.found)
    visible = [
        stored
        for stored in answer.found
        if _all(dags.get(stored.proposal.id), lambda dag_id: may_read(request, user, dag_id))
    ]
    editable = {
        stored.proposal.id
        for stored in visible
        if _all(dags[stored.proposal.id], lambda dag_id: may_edit(request, user, dag_id))
    }
    return html_page(
        "review.html",
        page=review_page(visible, frozenset(editable)),
        problem=answer.problem,
        read_only=client.read_only() if editable else None,
        token=form_token(user),
    )


@router.post("/review")
def decision(request: Request, session: SessionDep, user: GetUserDep, form: Form) -> Response:
    """Stores a decision in the table of proposals, and in Airflow's audit log."""
    stage, reason = _STAGES.get(form.get("decision", "")), form.get("reason", "").strip()
    if stage is None or len(reason) > _LONGEST_REASON:
        raise Refused(
            HTTPStatus.BAD_REQUEST,
            f"Send approve or reject, with a reason of at most {_LONGEST_REASON} characters.",
        )
    if stage is ProposalStage.REJECTED and not reason:
        raise Refused(HTTPStatus.BAD_REQUEST, "A rejection needs a reason: go back and enter one.")
    client = store_client()
    answer = client.ask(lambda store: proposals_from(store.select))
    if answer.problem is not None:
        raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, answer.problem)
    wanted = [stored for stored in answer.found if stored.proposal.id == form.get("proposal")]
    dags = _dags_of(client, session, wanted)
    if not wanted or not _all(
        dags.get(wanted[0].proposal.id), lambda dag_id: may_read(request, user, dag_id)
    ):
        raise _NO_PROPOSAL
    (stored,) = wanted
    proposal = stored.proposal
    if not _all(dags[proposal.id], lambda dag_id: may_edit(request, user, dag_id)):
        raise Refused(
            HTTPStatus.FORBIDDEN,
            "You do not have permission to edit all DAGs whose gates run this suite.",
        )
    if stored.stage is stage:
        return back_to(address("review"))
    if stored.stage is not ProposalStage.PENDING:
        raise Refused(
            HTTPStatus.CONFLICT,
            f"{stored.agent} has already decided: the proposal is {stored.stage.value}.",
        )
    facts = {
        "suite": proposal.suite,
        "proposal": proposal.id,
        "decision": stage.value,
        "reason": reason or None,
    }
    for dag_id in sorted(dags[proposal.id]):
        record(session, user, "dqx review", dag_id, facts)
    session.close()
    author = user.get_name()
    problem = client.change(
        lambda root, options: decide(
            root, proposal, stage, author, reason or None, storage_options=options
        )
    )
    if problem is not None:
        return notice(HTTPStatus.SERVICE_UNAVAILABLE, "Not stored", problem)
    return back_to(address("review"))


def _dags_of(
    client: StoreClient, session: Any, proposals: Collection[StoredProposal]
) -> Mapping[str, frozenset[str]]:
    """The DAGs of the gates of a proposal, by its id: those of all attempts on the gate, or else on
    the suite, in the store. A proposal without a DAG in Airflow is left out."""
    if not proposals:
        return {}
    answer: Answer[Any] = client.ask(
        lambda store: tuple(attempts_behind(store.select, proposals).items())
    )
    session.close()
    tasks = tasks_of(
        session, {attempt_id for _, gates in answer.found for ids in gates for attempt_id in ids}
    )
    by_key = {}
    for key, gates in answer.found:
        dags = {
            tasks[attempt_id].dag_id for ids in gates for attempt_id in ids if attempt_id in tasks
        }
        if dags:
            by_key[key] = frozenset(dags)
    return by_key


def _all(dags: Collection[str] | None, allows: Any) -> bool:
    return bool(dags) and all(allows(dag_id) for dag_id in dags or ())
