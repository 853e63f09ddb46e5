"""`dql review`: the proposals of algorithms, and decisions on them."""

from __future__ import annotations

import getpass
import json
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli.formats import TableFormatOption, TableOrJson
from dqx_airflow.cli.tuning.call import (
    ReasonOption,
    ResultsOption,
    SuiteArgument,
    known_results_root,
)
from dqx_airflow.diagnostics.machine_formats import json_text
from dqx_airflow.errors import RequestError

if TYPE_CHECKING:
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
    from dqx_airflow.cli.tuning.review_queue import ReviewQueue

    queue = ReviewQueue(suite, results or known_results_root(suite))
    actions = [bool(approve), bool(reject), apply]
    if sum(actions) > 1 or (pending and any(actions)):
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
        for proposal in applied:
            typer.echo(f"applied: {_described(proposal)}")
        if not applied:
            typer.echo("no approved proposals to apply")
    else:
        _show(queue.all_pending(), output)


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
        listed = [json.loads(proposal.to_json()) for proposal in waiting]
        typer.echo(json_text(listed))
        return
    if not waiting:
        typer.echo("no pending proposals")
        return
    from dqx_airflow.cli.reports import print_table, printable

    rows = []
    for proposal in waiting:
        at = f"{proposal.at:%Y-%m-%d %H:%M}Z"
        rows.append((proposal.id, at, proposal.agent, _changes(proposal), proposal.reason or ""))
    print_table(("id", "proposed", "agent", "change", "why"), rows)
    for proposal in waiting:
        text = proposal.profile or (proposal.form.text if proposal.form is not None else "")
        if text:
            typer.echo(printable(f"\n{proposal.id}:\n{text.rstrip()}", keep="\n"))
