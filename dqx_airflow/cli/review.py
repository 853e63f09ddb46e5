"""`dql review`: the proposed changes of a suite that wait for a decision."""

from __future__ import annotations

import getpass
import json
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli import arguments, command
from dqx_airflow.cli.stores import ResultsRootOption, known_root, results_of
from dqx_airflow.diagnostics.machine_formats import json_text
from dqx_airflow.errors import RequestError

if TYPE_CHECKING:
    from dqx_airflow.tuning.proposals import Proposal


def review(
    suite: arguments.SuiteArgument,
    *,
    pending: bool = False,
    approve: Annotated[list[str] | None, typer.Option(metavar="ID")] = None,
    reject: Annotated[list[str] | None, typer.Option(metavar="ID")] = None,
    apply: bool = False,
    reason: arguments.ReasonOption = None,
    author: str | None = None,
    results_root: ResultsRootOption = None,
    output: command.TableFormatOption = "table",
) -> None:
    """List, approve and reject the changes that algorithms propose.

    Proposals are in the results store or, if an algorithm saved the suite without one, in the
    history of the suite.

    :param pending: List the pending proposals (the default).
    :param approve: Approve and apply this proposal; may be repeated.
    :param reject: Reject this proposal; needs --reason; may be repeated.
    :param apply: Apply proposals that were approved elsewhere, such as in the Airflow UI.
    :param author: The person who decides; default: the current user.
    """

    from dqx_airflow.tuning.review import ReviewQueue

    root = known_root(results_root, suite.parent)
    stored = results_of(root) if root else None
    queue = ReviewQueue(arguments.suite_file(suite), arguments.suite_name(suite), stored)
    actions = [bool(approve), bool(reject), apply]
    if sum(actions) > 1 or (pending and any(actions)):
        raise RequestError(
            "more than one action", "choose one of --pending, --approve, --reject and --apply"
        )
    who = author or getpass.getuser()
    if approve:
        for proposal in [queue.pending(proposal_id) for proposal_id in approve]:
            queue.approve(proposal, who, reason)
            typer.echo(f"approved and applied: {_described(proposal)}")
    elif reject:
        if reason is None:
            raise RequestError("a rejection needs a reason", "add --reason TEXT")
        for proposal in [queue.pending(proposal_id) for proposal_id in reject]:
            queue.reject(proposal, who, reason)
            typer.echo(f"rejected: {_described(proposal)}")
    elif apply:
        applied = queue.apply_approved()
        for proposal in applied:
            typer.echo(f"applied: {_described(proposal)}")
        if not applied:
            typer.echo("no approved proposals to apply")
    else:
        _print_proposals(queue.all_pending(), output)


def _changes_of(proposal: Proposal) -> str:
    changes = [*map(str, proposal.changes)]
    if proposal.profile is not None:
        changes.append("a profile")
    if proposal.form is not None:
        changes.append(f"another form of {proposal.form.assertion}")
    return ", ".join(changes)


def _described(proposal: Proposal) -> str:
    return f"{_changes_of(proposal)} ({proposal.id} by {proposal.agent})"


def _print_proposals(waiting: list[Proposal], output: command.TableOrJson) -> None:
    from dqx_airflow.cli.reports import printable

    rows = []
    for proposal in waiting:
        at = f"{proposal.at:%Y-%m-%d %H:%M}Z"
        rows.append((proposal.id, at, proposal.agent, _changes_of(proposal), proposal.reason or ""))
    is_json = output == "json"
    plain = [json.loads(proposal.to_json()) for proposal in waiting]
    head = ("id", "proposed", "agent", "change", "why")
    command.print_list(json_text(plain) if is_json else None, head, rows, "no pending proposals")
    for proposal in () if is_json else waiting:
        text = proposal.profile or (proposal.form.text if proposal.form is not None else "")
        if text:
            typer.echo(printable(f"\n{proposal.id}:\n{text.rstrip()}", keep="\n"))
