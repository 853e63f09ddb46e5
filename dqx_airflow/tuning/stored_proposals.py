"""Proposed changes of suites in the results store, and the decisions on them.

Append-only. The last decision counts; an applied proposal is final.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum

from dqx_airflow.errors import RequestError
from dqx_airflow.results.query import RunsWanted, StoredResults, opened
from dqx_airflow.results.schema import PROPOSALS, PROPOSALS_SCHEMA, Row, as_utc
from dqx_airflow.tuning.proposals import Proposal, proposal_from_json

_MOST_ATTEMPTS = 1000


class ProposalStage(str, Enum):
    """The stage of a proposal. `APPROVED` waits to be applied to the file of the suite."""

    PENDING = "proposed"
    APPROVED = "approved"
    REJECTED = "rejected"
    APPLIED = "applied"

    __str__ = str.__str__  # prints as its value, on every Python


@dataclass(frozen=True, slots=True)
class StoredProposal:
    """A proposal, and its stage: who decided last, when and why."""

    proposal: Proposal
    stage: ProposalStage
    agent: str
    at: datetime
    reason: str | None = None


def propose(results: StoredResults | str, proposal: Proposal) -> None:
    """Puts a proposal into the review queue.

    `tuning.protection` decides whether it is allowed, and checks again when it is applied.

    :raises StoreError: the store cannot be written.
    """
    row = _event(proposal, ProposalStage.PENDING, proposal.agent, proposal.reason, proposal.at)
    _append(results, {**row, "proposal": proposal.to_json()})


def decide(
    results: StoredResults | str,
    proposal: Proposal,
    stage: ProposalStage,
    author: str,
    reason: str | None = None,
) -> None:
    """Records a decision on a proposal.

    :raises StoreError: the store cannot be written.
    """
    _append(results, _event(proposal, stage, author, reason, datetime.now(timezone.utc)))


def read_proposals(
    results: StoredResults | str, suite: str | None = None, *, stage: ProposalStage | None = None
) -> tuple[StoredProposal, ...]:
    """The proposals for a suite, or for all, oldest first.

    :param suite: the name of the suite, as in its file.
    :raises StoreError: the store exists and cannot be read.
    """
    where, order = RunsWanted(suite=suite).conditions, 'ORDER BY "event_at", "event_id"'
    rows = opened(results).select(PROPOSALS, PROPOSALS_SCHEMA.names, where, order)
    made: dict[str, Proposal] = {}
    last: dict[str, Row] = {}
    for row in rows:
        proposal_id = row["proposal_id"]
        if row.get("proposal"):
            try:
                made.setdefault(proposal_id, proposal_from_json(row["proposal"]))
            except RequestError:
                continue  # of a newer version
        if row["event"] in list(ProposalStage) and _counts(last.get(proposal_id), row):
            last[proposal_id] = row
    stored = (_stored(made[key], row) for key, row in last.items() if key in made)
    return tuple(proposal for proposal in stored if stage in (None, proposal.stage))


def attempts_behind(
    results: StoredResults, proposals: Iterable[StoredProposal]
) -> Mapping[str, Sequence[frozenset[str]]]:
    """For each proposal, by its id, the newest attempts of its gate, or of all gates that run the
    suite.

    :raises StoreError: the store exists and cannot be read.
    """
    attempts: dict[str, Sequence[frozenset[str]]] = {}
    for proposal in (stored.proposal for stored in proposals):
        wanted = RunsWanted(suite=proposal.suite)
        if proposal.gate is not None:
            wanted = RunsWanted([proposal.gate])
        order = f'ORDER BY "finished_at" DESC, "run_id" LIMIT {_MOST_ATTEMPTS}'
        by_gate: dict[str, set[str]] = {}
        for row in results.run_rows(wanted, ("gate", "attempt_id"), order):
            by_gate.setdefault(row["gate"], set()).add(row["attempt_id"])
        attempts[proposal.id] = tuple(map(frozenset, by_gate.values()))
    return attempts


def _counts(before: Row | None, row: Row) -> bool:
    """An applied proposal stays applied, and an open one is decided by the next decision."""
    return before is None or (
        before["event"] != ProposalStage.APPLIED and row["event"] != ProposalStage.PENDING
    )


def _stored(proposal: Proposal, row: Row) -> StoredProposal:
    stage, at = ProposalStage(row["event"]), as_utc(row["event_at"])
    return StoredProposal(proposal, stage, row["agent"], at, row.get("reason"))


def _event(
    proposal: Proposal, stage: ProposalStage, agent: str, reason: str | None, at: datetime
) -> dict[str, object]:
    return {
        "event_id": str(uuid.uuid4()),
        "proposal_id": proposal.id,
        "event": stage.value,
        "gate": proposal.gate,
        "suite": proposal.suite,
        "agent": agent,
        "reason": reason,
        "proposal": None,
        "event_at": at,
    }


def _append(results: StoredResults | str, row: Mapping[str, object]) -> None:
    from dqx_airflow.results.store import ResultsStore  # pyarrow, which readers do not need

    results = opened(results)
    store = ResultsStore(results.root, results.storage_options)
    store.append_rows({PROPOSALS: {str(row["event_id"]): [row]}})
