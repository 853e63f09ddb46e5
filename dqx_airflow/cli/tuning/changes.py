"""`dql history`, `rollback`, `promote` and `review`: what was changed of a suite, by whom and why,
what algorithms propose, and decisions on it."""

from __future__ import annotations

import getpass
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dqx_airflow.cli.command_group import SheetFormat, TableFormatOption, TableOrJson
from dqx_airflow.cli.tuning import call
from dqx_airflow.diagnostics.renderers import json_text
from dqx_airflow.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dqx_airflow.dql.nodes import Unit
    from dqx_airflow.tuning.proposals import Proposal
    from dqx_airflow.tuning.suite_file import ParamChange
    from dqx_airflow.tuning.suite_history import Entry


_FIRST = ("ts", "action", "param", "old", "new", "agent", "reason", "id")


def history(
    suite: call.SuiteArgument,
    *,
    param: Annotated[
        str | None, typer.Option("--param", help="Only changes of this tunable.")
    ] = None,
    output: Annotated[
        SheetFormat, typer.Option("--format", help="Output format: table, json or csv.")
    ] = SheetFormat.TABLE,
) -> None:
    """Show the changes of a suite, oldest first."""
    entries = _entries(suite, param)
    match output:
        case SheetFormat.JSON:
            listed = [{"entry": number, **entry} for number, entry in entries]
            typer.echo(json_text(listed))
        case SheetFormat.CSV:
            typer.echo(_history_csv(entries), nl=False)
        case SheetFormat.TABLE if entries:
            _print_history(entries, call.units_in(suite))
        case SheetFormat.TABLE:
            typer.echo("no changes" if param is None else f"no changes of {param}")


def _entries(suite: Path, param: str | None) -> list[tuple[int, Entry]]:
    """The entries with their numbers; reports damaged lines on stderr.

    :raises RequestError: there is neither a suite nor a history.
    """
    from dqx_airflow.cli.reports import printable
    from dqx_airflow.diagnostics.renderers import draw
    from dqx_airflow.tuning.suite_history import History

    log = History.of(suite)
    if not suite.is_file() and not log.path.is_file():
        raise RequestError(f"suite {suite} not found", "give the path of a .dql file")
    entries, damaged = log.read()
    if damaged:
        typer.echo(printable(draw(damaged, {}), keep="\n"), err=True)
    return [(number, entry) for number, entry in entries if param in (None, entry.get("param"))]


def _history_csv(entries: list[tuple[int, Entry]]) -> str:
    others = dict.fromkeys(key for _, entry in entries for key in entry if key not in _FIRST)
    columns = (*_FIRST, *others)
    rows = (
        (number, *(_cell(entry.get(column)) for column in columns)) for number, entry in entries
    )
    return call.csv_text(("entry", *columns), rows)


def _print_history(entries: list[tuple[int, Entry]], units: Mapping[str, Unit]) -> None:
    """:param units: how the suite writes the values of its constants, by name."""
    from dqx_airflow.cli.reports import print_table
    from dqx_airflow.tuning.tunables import number_text
    from dqx_airflow.values.exact import is_finite_number

    columns = [
        key
        for key in _FIRST
        if any(key in entry or (key == "param" and "profile" in entry) for _, entry in entries)
    ]
    rows = []
    for number, entry in entries:
        unit = units.get(str(entry.get("param")))
        shown = {**entry, "param": entry.get("param") or _profile_name(entry)}
        for column in ("old", "new"):
            if unit is not None and is_finite_number(value := entry.get(column)):
                shown[column] = number_text(value, unit)
        rows.append((str(number), *(_cell(shown.get(column)) for column in columns)))
    print_table(("entry", *columns), rows)


def _profile_name(entry: Entry) -> str | None:
    """The name of the profile that an entry adds, as in DQL."""
    match = re.search(r'profile "[^"]*"', str(entry.get("profile", "")))
    return match[0] if match else None


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def rollback(
    suite: call.SuiteArgument,
    *,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="DATE|TIME|ENTRY",
            help="The end of a day (UTC), a time, or the number of an entry of `dql history`.",
        ),
    ],
    reason: Annotated[
        str | None, typer.Option("--reason", help="The reason, stored in the history.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would change.")
    ] = False,
) -> None:
    """Restore earlier values of the tunables.

    The history records the rollback as a new entry and keeps the earlier ones.
    """
    from dqx_airflow.tuning.tunables import number_text

    changes, before, removed = _rolled_back(suite, to, reason)
    units = call.units_in(suite)
    if changes and not dry_run:
        call.suite_file(suite).save(changes)
    for name in removed:
        typer.echo(f"warning: {name} is no longer a tunable of the suite", err=True)
    for change in changes:
        unit = units[change.param]
        old, new = number_text(before[change.param], unit), number_text(change.value, unit)
        typer.echo(f"{change.param}: {old} -> {new}")
    if not changes:
        typer.echo("nothing to change")


def _rolled_back(
    suite: Path, to: str, reason: str | None
) -> tuple[list[ParamChange], dict[str, float], list[str]]:
    """The values to set, the current ones, and the names that are no longer tunables."""
    from dqx_airflow.tuning.suite_file import ParamChange
    from dqx_airflow.tuning.suite_history import History, cut_of, new_id, values_at
    from dqx_airflow.tuning.tunables import tunables_of

    log = History.of(suite)
    checked = call.suite_file(suite).read()
    current_values = {tunable.name: tunable.value for tunable in tunables_of(checked.valid_suite)}
    earlier_values = values_at(log.changes(), cut_of(to, log))
    facts = (("to", to), ("id", new_id()))
    changes = [
        ParamChange(name, value, reason=reason, action="rollback", facts=facts)
        for name, value in earlier_values.items()
        if name in current_values and current_values[name] != value
    ]
    return changes, current_values, [name for name in earlier_values if name not in current_values]


def promote(
    suite: call.SuiteArgument,
    *,
    assertion: Annotated[str, typer.Option("--assertion", help="The name of the assertion.")],
    check: call.CheckOption = None,
    shadow: Annotated[
        Path | None,
        typer.Option(
            "--shadow",
            metavar="SUITE",
            help="Set its tunables to the values in this suite instead.",
        ),
    ] = None,
    author: Annotated[
        str | None,
        typer.Option("--author", help="The person who promotes it; default: the current user."),
    ] = None,
) -> None:
    """Drop @experimental from an assertion, so that it can block.

    With --shadow, set its tunables to the values of that suite instead. The history records the
    change.
    """
    from dqx_airflow.tuning.review import promote as drop_experimental
    from dqx_airflow.tuning.review import promote_values

    file, who = call.suite_file(suite), author or getpass.getuser()
    if shadow is None:
        owner, name = drop_experimental(file, assertion, who, check=check)
        lines = [f"promoted: '{name}' of check '{owner}' can block from now on"]
    else:
        taken = promote_values(file, call.suite_file(shadow), assertion, who, check=check)
        lines = [f"promoted: {value}" for value in taken.values]
        if taken.also:
            lines.append(f"this also changes: {', '.join(taken.also)}")
    for line in lines:
        typer.echo(line)


def review(
    suite: call.SuiteArgument,
    *,
    pending: Annotated[
        bool, typer.Option("--pending", help="List the pending proposals (the default).")
    ] = False,
    approve: Annotated[
        str | None, typer.Option("--approve", metavar="ID", help="Approve and apply this proposal.")
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
    reason: call.ReasonOption = None,
    author: Annotated[
        str | None,
        typer.Option("--author", help="The person who decides; default: the current user."),
    ] = None,
    results: call.ResultsOption = None,
    output: TableFormatOption = TableOrJson.TABLE,
) -> None:
    """List, approve and reject the changes that algorithms propose.

    Proposals are in the results store or, if an algorithm saved the suite without one, in the
    history of the suite.
    """

    from dqx_airflow.tuning.review import ReviewQueue

    root = results or call.known_results_root(suite)
    stored = call.results_of(suite, root) if root else None
    queue = ReviewQueue(call.suite_file(suite), call.suite_name(suite), stored)
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


def _print_proposals(waiting: list[Proposal], output: TableOrJson) -> None:
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
        rows.append((proposal.id, at, proposal.agent, _changes_of(proposal), proposal.reason or ""))
    print_table(("id", "proposed", "agent", "change", "why"), rows)
    for proposal in waiting:
        text = proposal.profile or (proposal.form.text if proposal.form is not None else "")
        if text:
            typer.echo(printable(f"\n{proposal.id}:\n{text.rstrip()}", keep="\n"))
