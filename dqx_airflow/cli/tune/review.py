"""`dql tune review`, `approve`, `reject`, `apply`: the proposed changes of a suite that wait for a
decision."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from dqx_airflow.cli import arguments, command
from dqx_airflow.cli.decisions import (
    AuthorOption,
    DryRunOption,
    ReasonOption,
    RequiredReasonOption,
    YesOption,
    author_of,
    may_go_on,
)
from dqx_airflow.cli.stores import ResultsRootOption, known_root, results_of
from dqx_airflow.cli.tune.propose import changed_days
from dqx_airflow.diagnostics.machine_formats import json_text

if TYPE_CHECKING:
    from dqx_airflow.tuning.proposals import Proposal
    from dqx_airflow.tuning.review import ReviewQueue


_Ids: TypeAlias = Annotated[
    list[str], typer.Argument(metavar="ID...", help="The first characters of the ids of proposals.")
]


def review(
    suite: arguments.SuiteArgument,
    *,
    results_root: ResultsRootOption = None,
    format: command.TextFormatOption = "text",
) -> None:
    """List the proposed changes of a suite that wait for a decision.

    Proposals are in the results store or, if an algorithm saved the suite without one, in the
    history of the suite.
    """
    _print_proposals(_queue_of(suite, results_root).all_pending(), format)


def approve(
    suite: arguments.SuiteArgument,
    proposals: _Ids,
    *,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    reason: ReasonOption = None,
    author: AuthorOption = None,
    results_root: ResultsRootOption = None,
) -> None:
    """Approve proposed changes, and write them into the suite.

    More than one is approved only after a question, or with --yes.
    """
    queue = _queue_of(suite, results_root)
    waiting = queue.chosen(proposals)
    shown = "; ".join(map(_described, waiting))
    if dry_run or len(waiting) > 1:
        effect = f"write {len(waiting)} proposals into {suite}: {shown}"
        if not may_go_on(effect, dry_run=dry_run, yes=yes):
            return
    queue.approve(waiting, author_of(author), reason)
    for proposal in waiting:
        typer.echo(f"approved and applied: {_described(proposal)}")


def reject(
    suite: arguments.SuiteArgument,
    proposals: _Ids,
    *,
    reason: RequiredReasonOption,
    author: AuthorOption = None,
    results_root: ResultsRootOption = None,
) -> None:
    """Reject proposed changes, so that they are not proposed again."""
    queue = _queue_of(suite, results_root)
    for proposal in queue.chosen(proposals):
        queue.reject(proposal, author_of(author), reason)
        typer.echo(f"rejected: {_described(proposal)}")


def apply(suite: arguments.SuiteArgument, *, results_root: ResultsRootOption = None) -> None:
    """Write approved changes into the suite, such as approvals in Airflow."""
    applied = _queue_of(suite, results_root).apply_approved()
    for proposal in applied:
        typer.echo(f"applied: {_described(proposal)}")
    if not applied:
        typer.echo("no approved proposals to apply")


def _queue_of(suite: Path, results_root: str | None) -> ReviewQueue:
    from dqx_airflow.tuning.review import ReviewQueue

    root = known_root(results_root, suite.parent)
    stored = results_of(root) if root else None
    return ReviewQueue(arguments.suite_file(suite), arguments.suite_name(suite), stored)


def _changes_of(proposal: Proposal) -> str:
    changes = [*map(str, proposal.changes)]
    if proposal.profile is not None:
        changes.append("a profile")
    if proposal.form is not None:
        changes.append(f"proposed rewrite of {proposal.form.assertion}")
    return ", ".join(changes)


def _described(proposal: Proposal) -> str:
    return f"{_changes_of(proposal)} ({proposal.id} by {proposal.agent})"


_SHORT = 44
"""The most characters of a reason in the table, so that a row fits a screen."""


def _why(proposal: Proposal) -> str:
    """The false alarms and misses of a proposal, before and after; or the begin of its reason."""
    held_out = proposal.evidence.get("held_out")
    if isinstance(held_out, dict) and {"before", "after"} <= held_out.keys():
        before, after = held_out["before"], held_out["after"]
        false = f"false alarms {before['false_alarms']} -> {after['false_alarms']}"
        return f"{false}, missed {before['missed']} -> {after['missed']}"
    reason = proposal.reason or ""
    return reason if len(reason) <= _SHORT else f"{reason[: _SHORT - 3]}..."


def _details_of(proposal: Proposal) -> list[str]:
    """The lines of a proposal below the table: its reason, the changed days, the new text."""
    lines = []
    if proposal.reason and proposal.reason != _why(proposal):
        lines.append(f"  {proposal.reason}")
    if days := changed_days(proposal.evidence.get("changes", ())):
        lines.append(f"  changed verdicts: {days}")
    text = proposal.profile or (proposal.form.text if proposal.form is not None else "")
    return [*lines, *text.rstrip().splitlines()]


def _print_proposals(waiting: list[Proposal], format: command.TextOrJson) -> None:
    from dqx_airflow.cli.reports import printable

    rows = []
    for proposal in waiting:
        at = f"{proposal.at:%Y-%m-%d %H:%M}Z"
        rows.append((proposal.id, at, proposal.agent, _changes_of(proposal), _why(proposal)))
    is_json = format == "json"
    plain = [json.loads(proposal.to_json()) for proposal in waiting]
    head = ("id", "at", "author", "change", "why")
    command.print_list(json_text(plain) if is_json else None, head, rows, "no pending proposals")
    for proposal in () if is_json else waiting:
        if lines := _details_of(proposal):
            text = "\n".join([f"\n{proposal.id}:", *lines])
            typer.echo(printable(text, keep="\n"))
