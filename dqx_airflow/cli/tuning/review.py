"""`dql review`: the proposals of algorithms, and decisions on them."""

from __future__ import annotations

import getpass
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli.formats import TableFormatOption, TableOrJson
from dqx_airflow.cli.results_root import storage_options
from dqx_airflow.cli.tuning.call import (
    ReasonOption,
    ResultsOption,
    SuiteArgument,
    known_results_root,
    suite_file,
    suite_name,
)
from dqx_airflow.diagnostics.json_text import json_text
from dqx_airflow.errors import RequestError

if TYPE_CHECKING:
    from dqx_airflow.results.proposals import StoredProposal
    from dqx_airflow.tuning.proposals import Proposal


def review(
    suite: SuiteArgument,
    *,
    pending: Annotated[
        bool, typer.Option("--pending", help="List the pending proposals (the default).")
    ] = False,
    approve: Annotated[
        str | None,
        typer.Option("--approve", metavar="ID", help="Approve and apply this proposal."),
    ] = None,
    reject: Annotated[
        str | None,
        typer.Option("--reject", metavar="ID", help="Reject this proposal; needs --reason."),
    ] = None,
    apply: Annotated[
        bool,
        typer.Option(
            "--apply",
            help="Apply proposals that were approved elsewhere, such as in the Airflow UI.",
        ),
    ] = False,
    reason: ReasonOption = None,
    author: Annotated[
        str | None,
        typer.Option("--author", help="The person who decides; default: the current user."),
    ] = None,
    results: ResultsOption = None,
    output: TableFormatOption = TableOrJson.TABLE,
) -> None:
    """List, approve and reject the changes that algorithms propose.

    Proposals are in the results store or, if an algorithm saved the suite without one, in the
    history of the suite.
    """
    queue = _Queue(suite, results or known_results_root(suite))
    wanted = [bool(approve), bool(reject), apply]
    if sum(wanted) > 1 or (pending and any(wanted)):
        raise RequestError(
            "more than one action", "choose one of --pending, --approve, --reject and --apply"
        )
    who = author or getpass.getuser()
    if approve is not None:
        proposal = queue.pending(approve)
        queue.approve(proposal, who, reason)
        typer.echo(f"approved and applied: {_described(proposal)}")
    elif reject is not None:
        if reason is None:
            raise RequestError("a rejection needs a reason", "add --reason TEXT")
        proposal = queue.pending(reject)
        queue.reject(proposal, who, reason)
        typer.echo(f"rejected: {_described(proposal)}")
    elif apply:
        applied = queue.apply_approved()
        for one in applied:
            typer.echo(f"applied: {_described(one)}")
        if not applied:
            typer.echo("no approved proposals to apply")
    else:
        _show(queue.all_pending(), output)


class _Queue:
    """The proposals for a suite, of the results store and of the history."""

    def __init__(self, path: Path, root: str | None) -> None:
        self.file = suite_file(path)
        self.name = suite_name(path)
        self.root = root

    def all_pending(self) -> list[Proposal]:
        from dqx_airflow.results.proposals import ProposalStage
        from dqx_airflow.tuning.proposals import proposal_of_entry
        from dqx_airflow.tuning.suite_file import pending_in

        stored = [one.proposal for one in self._stored(ProposalStage.PENDING)]
        entries = (proposal_of_entry(self.name, one) for one in pending_in(self.file.history))
        known = {one.id for one in stored}
        return [*stored, *(one for one in entries if one and one.id not in known)]

    def pending(self, proposal_id: str) -> Proposal:
        """:raises RequestError: no proposal with that id is pending."""
        waiting = self.all_pending()
        proposals = [one for one in waiting if one.id.startswith(proposal_id)]
        if len(proposals) == 1:
            return proposals[0]
        what = "several pending proposals have" if proposals else "no pending proposal has"
        listed = ", ".join(one.id for one in waiting) or "none"
        raise RequestError(f"{what} the id {proposal_id}", f"pending: {listed}")

    def approve(self, proposal: Proposal, author: str, reason: str | None) -> None:
        from dqx_airflow.results.proposals import ProposalStage
        from dqx_airflow.tuning.review import apply_proposal, require_allowed

        require_allowed(self.file, proposal)
        self._decide(proposal, ProposalStage.APPROVED, author, reason)
        apply_proposal(self.file, proposal, author, reason)
        self._decide(proposal, ProposalStage.APPLIED, author, None)

    def reject(self, proposal: Proposal, author: str, reason: str) -> None:
        from dqx_airflow.results.proposals import ProposalStage
        from dqx_airflow.tuning.review import reject_in_history

        self._decide(proposal, ProposalStage.REJECTED, author, reason)
        reject_in_history(self.file, proposal, author, reason)

    def apply_approved(self) -> list[Proposal]:
        """Applies the approved proposals, one after the other; returns them."""
        from dqx_airflow.results.proposals import ProposalStage
        from dqx_airflow.tuning.review import apply_proposal

        if self.root is None:
            raise RequestError(
                "which results?",
                "add --results PATH, or set the variable DQX_RESULTS_ROOT: it contains the "
                "proposals that were approved elsewhere",
            )
        applied = []
        for one in self._stored(ProposalStage.APPROVED):
            apply_proposal(self.file, one.proposal, one.agent, one.reason)
            self._decide(one.proposal, ProposalStage.APPLIED, one.agent, None)
            applied.append(one.proposal)
        return applied

    def _stored(self, stage: object) -> list[StoredProposal]:
        from dqx_airflow.results.proposals import read_proposals

        if self.root is None:
            return []
        stored = read_proposals(self.root, self.name, storage_options=storage_options())
        return [one for one in stored if one.stage is stage]

    def _decide(self, proposal: Proposal, stage: object, author: str, reason: str | None) -> None:
        """Records a decision on a proposal in the store; the history records its own."""
        from dqx_airflow.results.proposals import ProposalStage, decide, read_proposals

        assert isinstance(stage, ProposalStage)
        if self.root is None:
            return
        options = storage_options()
        known = {one.proposal.id for one in read_proposals(self.root, storage_options=options)}
        if proposal.id in known:
            decide(self.root, proposal, stage, author, reason, storage_options=options)


def _changes(proposal: Proposal) -> str:
    changes = [*map(str, proposal.changes)]
    if proposal.profile is not None:
        changes.append("a profile")
    if proposal.form is not None:
        changes.append(f"another form of {proposal.form.assertion}")
    return ", ".join(changes)


def _described(proposal: Proposal) -> str:
    return f"{_changes(proposal)} ({proposal.id} by {proposal.agent})"


def _show(waiting: list[Proposal], output: TableOrJson) -> None:
    if output is TableOrJson.JSON:
        listed = [json.loads(one.to_json()) for one in waiting]
        typer.echo(json_text(listed))
        return
    if not waiting:
        typer.echo("no pending proposals")
        return
    from dqx_airflow.cli.reports import print_table, printable

    rows = []
    for one in waiting:
        at = f"{one.at:%Y-%m-%d %H:%M}Z"
        rows.append((one.id, at, one.agent, _changes(one), one.reason or ""))
    print_table(("id", "proposed", "agent", "change", "why"), rows)
    for one in waiting:
        text = one.profile or (one.form.text if one.form is not None else "")
        if text:
            typer.echo(printable(f"\n{one.id}:\n{text.rstrip()}", keep="\n"))
