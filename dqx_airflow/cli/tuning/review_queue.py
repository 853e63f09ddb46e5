"""The proposals that wait for a decision, and what a decision does."""

from __future__ import annotations

from pathlib import Path

from dqx_airflow.cli.tuning.call import suite_file, suite_name
from dqx_airflow.errors import RequestError
from dqx_airflow.results.query import StoredResults
from dqx_airflow.tuning.proposals import Proposal, proposal_of_entry
from dqx_airflow.tuning.review import apply_proposal, reject_in_history, require_allowed
from dqx_airflow.tuning.stored_proposals import (
    ProposalStage,
    StoredProposal,
    decide,
    read_proposals,
)
from dqx_airflow.tuning.suite_file import pending_in


class ReviewQueue:
    """The proposals for a suite, of the results store and of the history."""

    def __init__(self, path: Path, results: StoredResults | None) -> None:
        self.file = suite_file(path)
        self.name = suite_name(path)
        self.results = results

    def all_pending(self) -> list[Proposal]:
        stored = [pending.proposal for pending in self._stored(ProposalStage.PENDING)]
        entries = (proposal_of_entry(self.name, entry) for entry in pending_in(self.file.history))
        known = {proposal.id for proposal in stored}
        return [
            *stored,
            *(proposal for proposal in entries if proposal and proposal.id not in known),
        ]

    def pending(self, proposal_id: str) -> Proposal:
        """:raises RequestError: no proposal with that id is pending."""
        waiting = self.all_pending()
        proposals = [proposal for proposal in waiting if proposal.id.startswith(proposal_id)]
        if len(proposals) == 1:
            return proposals[0]
        problem = "several pending proposals have" if proposals else "no pending proposal has"
        listed = ", ".join(proposal.id for proposal in waiting) or "none"
        raise RequestError(f"{problem} the id {proposal_id}", f"pending: {listed}")

    def approve(self, proposal: Proposal, author: str, reason: str | None) -> None:
        require_allowed(self.file, proposal)
        self._decide(proposal, ProposalStage.APPROVED, author, reason)
        apply_proposal(self.file, proposal, author, reason)
        self._decide(proposal, ProposalStage.APPLIED, author, None)

    def reject(self, proposal: Proposal, author: str, reason: str) -> None:
        self._decide(proposal, ProposalStage.REJECTED, author, reason)
        reject_in_history(self.file, proposal, author, reason)

    def apply_approved(self) -> list[Proposal]:
        """Applies the approved proposals, one after the other; returns them."""
        if self.results is None:
            raise RequestError(
                "which results?",
                "add --results PATH, or set the variable DQX_RESULTS_ROOT: it contains the "
                "proposals that were approved elsewhere",
            )
        applied = []
        for stored in self._stored(ProposalStage.APPROVED):
            apply_proposal(self.file, stored.proposal, stored.agent, stored.reason)
            self._decide(stored.proposal, ProposalStage.APPLIED, stored.agent, None)
            applied.append(stored.proposal)
        return applied

    def _stored(self, stage: ProposalStage) -> list[StoredProposal]:
        if self.results is None:
            return []
        return [*read_proposals(self.results, self.name, stage=stage)]

    def _decide(
        self, proposal: Proposal, stage: ProposalStage, author: str, reason: str | None
    ) -> None:
        """Records a decision on a proposal in the store; the history records its own."""
        if self.results is None:
            return
        known = {stored.proposal.id for stored in read_proposals(self.results)}
        if proposal.id in known:
            decide(self.results, proposal, stage, author, reason)
