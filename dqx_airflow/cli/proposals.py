"""`dql tune`, `review`, `promote`, `history` and `rollback`: from values and profiles that would
have cost less on past days to changes of the suite, and back.
"""

from __future__ import annotations

import getpass
import json
import re
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dqx_airflow.cli import arguments, command
from dqx_airflow.cli.json_objects import tuned_object
from dqx_airflow.cli.suites import count_text
from dqx_airflow.diagnostics.diagnostic import listed
from dqx_airflow.diagnostics.renderers import draw, json_text
from dqx_airflow.diagnostics.templates import filled
from dqx_airflow.errors import RequestError
from dqx_airflow.limits import MOST_LISTED
from dqx_airflow.values.exact import is_finite_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dqx_airflow.dql.nodes import Unit
    from dqx_airflow.results.past_days import PastDay
    from dqx_airflow.results.query import StoredResults
    from dqx_airflow.tuning.proposals import Proposal
    from dqx_airflow.tuning.suite_file import SuiteFile
    from dqx_airflow.tuning.suite_history import Entry
    from dqx_airflow.tuning.tuner import Rules, Tuned


_MOST_NAMED = 5


def tune(
    suite: arguments.SuiteArgument,
    *,
    since: arguments.SinceOption = None,
    until: arguments.UntilOption = None,
    profile_days: Literal["exclude", "include"] = "exclude",
    max_move: Annotated[float, typer.Option(min=0.01, max=1, callback=command.finite)] = 0.25,
    min_labels: Annotated[int, typer.Option(min=4, max=MOST_LISTED)] = 4,
    holidays: Annotated[str | None, typer.Option(metavar="COUNTRY")] = None,
    propose: bool = False,
    output_dir: Path | None = None,
    gate: arguments.GateOption = None,
    results: arguments.ResultsOption = None,
    output: command.TableFormatOption = "table",
) -> None:
    """Propose thresholds that would have cost less on labelled days, with the evidence.

    By default, from the last 180 days. The suite is not changed: --propose queues the proposals
    for `dql review`, and only writes the values of assertions that are marked @auto_approve.

    :param profile_days: Include or exclude days on which a profile is active.
    :param max_move: The largest change of a value, as a share of its range.
    :param min_labels: The minimum number of labels for a proposal.
    :param holidays: Consider the public holidays of this country or region: US, DE-BY.
    :param propose: Put the proposals into the review queue; values of assertions with @auto_approve
        are written at once.
    :param output_dir: Write each proposal and its charts to this folder.
    """
    from dqx_airflow.tuning.tuner import ProfileDays, Rules

    first, last = arguments.first_and_last(since, until, default=180)
    stored, file = arguments.results_of(suite, results), arguments.suite_file(suite)
    rules = Rules(max_move, min_labels, ProfileDays(profile_days))
    days, tuned, contradicted = _tuned(file, stored, first, last, rules, holidays, gate)
    proposals = [result.proposal for result in tuned if result.proposal is not None]
    applied = _propose(stored, file, proposals) if propose else []
    if output_dir is not None:
        _write(output_dir, proposals)
    if output == "json":
        typer.echo(json_text([_fields_of(result, applied) for result in tuned]))
        return
    _print(suite, tuned, days)
    if contradicted:
        typer.echo(contradicted)
    for proposal in applied:
        typer.echo(f"applied, because of @auto_approve: {', '.join(map(str, proposal.changes))}")
    if propose:
        waiting = len(proposals) - len(applied)
        verb = "waits" if waiting == 1 else "wait"
        where = f": dql review {suite}" if waiting else ""
        typer.echo(f"{count_text(waiting, 'proposal')} {verb} for review{where}")


def _tuned(
    file: SuiteFile,
    stored: StoredResults,
    first: date,
    last: date,
    rules: Rules,
    country: str | None,
    gate: str | None,
) -> tuple[Sequence[PastDay], Sequence[Tuned], str]:
    """The past days of a suite, the results of the tuner for them, and whose labels contradict."""
    from dqx_airflow.cli.labels import contradictions_text
    from dqx_airflow.results import past_days as past
    from dqx_airflow.tuning.forms import tune as tune_suite

    checked = file.read()
    name = checked.valid_suite.name.value
    days = past.past_days(stored, name, first, last, gate=gate)
    wanted = past.runs_of_suite(name, first, last, gate)
    arguments.require_days(days, stored, wanted)
    runs = past.past_runs(stored, wanted, ())
    its_gate = past.one_gate(runs)
    tuned = tune_suite(file.text(checked), days, rules, holidays=country, gate=its_gate)
    opposite = past.contradictions(stored, [its_gate or ""], since=first, until=last)
    return days, tuned, contradictions_text(opposite)


def _propose(
    results: StoredResults, file: SuiteFile, proposals: Sequence[Proposal]
) -> list[Proposal]:
    """Queues the proposals, except for those that are already pending.

    Returns those that did not have to wait, since all their assertions are marked `@auto_approve`.
    """
    from dqx_airflow.tuning.proposals import ProposalStage, decide, read_proposals
    from dqx_airflow.tuning.proposals import propose as put
    from dqx_airflow.tuning.review import apply_unless_reviewed

    name = file.read().valid_suite.name.value
    stored = read_proposals(results, name, stage=ProposalStage.PENDING)
    waiting = {_change_of(pending.proposal): pending.proposal for pending in stored}
    applied = []
    for proposal in proposals:
        if _change_of(proposal) not in waiting:
            put(results, proposal)
        queued = waiting.get(_change_of(proposal), proposal)
        try:
            is_applied = apply_unless_reviewed(file, queued)
        except RequestError as error:  # such as a folder that a worker cannot write
            typer.echo(f"not applied in spite of @auto_approve: {error.in_one_line}", err=True)
            continue
        if is_applied:
            decide(results, queued, ProposalStage.APPLIED, queued.agent, "@auto_approve")
            applied.append(queued)
    return applied


def _change_of(proposal: Proposal) -> tuple[object, ...]:
    return proposal.changes, proposal.profile, proposal.form


def _write(folder: Path, proposals: Sequence[Proposal]) -> None:
    from dqx_airflow.tuning.drawings import cost_svg

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for proposal in proposals:
            name = "-".join(change.param for change in proposal.changes) or _file_name(proposal)
            text = json.dumps(json.loads(proposal.to_json()), ensure_ascii=False, indent=1) + "\n"
            (folder / f"{name}.json").write_text(text, encoding="utf-8")
            for curve in proposal.evidence.get("curves", ()):
                file = folder / f"{curve['param']}.svg"
                file.write_text(cost_svg(curve), encoding="utf-8")
    except OSError as error:
        raise RequestError(f"cannot write to {folder}: {error.strerror}") from error


def _file_name(proposal: Proposal) -> str:
    match = re.search(r'profile "([^"]*)"', proposal.profile or "")
    name = match[1] if match else "profile"
    if proposal.form is not None:
        name = f"form of {proposal.form.assertion}"
    return re.sub(r"[^\w.]+", "-", name).strip("-")


def _fields_of(tuned: Tuned, applied: Sequence[Proposal]) -> dict[str, object]:
    proposal = tuned.proposal
    return {
        **tuned_object(tuned),
        "proposal": json.loads(proposal.to_json()) if proposal else None,
        "applied": proposal is not None and _change_of(proposal) in map(_change_of, applied),
    }


def _print(suite: Path, tuned: Sequence[Tuned], days: Sequence[PastDay]) -> None:
    from dqx_airflow.cli.reports import printable

    waiting = [result for result in tuned if result.proposal is None]
    reported = [result for result in waiting if result.alarms or not result.lacking]
    text = filled(
        __package__,
        "tuned.txt",
        suite=suite,
        tuned=tuned,
        days=days,
        dates=len({day.date for day in days}),
        labels=sum(len(day.labels) for day in days),
        instances=len({day.map_index for day in days} - {-1}),
        waiting=waiting,
        reported=reported,
        named=reported[:_MOST_NAMED] or waiting[:1],
        shown=_days,
    )
    typer.echo(printable(text, keep="\n"), nl=False)


def _days(changes: Sequence[Mapping[str, Any]]) -> str:
    words = {None: "no label", True: "real issue", False: "false alarm"}
    shown = [f"{_day(change)} ({words[change['label']]})" for change in changes]
    return listed(shown, most=_MOST_NAMED)


def _day(change: Mapping[str, Any]) -> str:
    instance = f"[{change['map_index']}]" if "map_index" in change else ""
    return f"{change['date']}{instance}"


_ALSO = {"add_profile": ("param",), "set_form": ("param", "old", "new"), "undo": ("param",)}
_FIRST = ("ts", "action", "param", "old", "new", "agent", "reason", "id")


def history(
    suite: arguments.SuiteArgument,
    *,
    param: str | None = None,
    output: Annotated[command.SheetFormat, typer.Option("--format")] = "table",
) -> None:
    """Show the changes of a suite, oldest first.

    :param param: Only changes of this tunable.
    :param output: Output format: table, json or csv.
    """
    entries = _entries(suite, param)
    text = None
    if output == "json":
        text = json_text([{"entry": number, **entry} for number, entry in entries])
    elif output == "csv":
        text = _history_csv(entries)
    nothing = "no changes" if param is None else f"no changes of {param}"
    command.print_list(text, *_history_table(entries, arguments.units_in(suite)), nothing)


def _entries(suite: Path, param: str | None) -> list[tuple[int, Entry]]:
    """The entries with their numbers; reports damaged lines on stderr.

    :raises RequestError: there is neither a suite nor a history.
    """
    from dqx_airflow.cli.reports import printable
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
    return arguments.csv_text(("entry", *columns), rows)


def _history_table(
    entries: list[tuple[int, Entry]], units: Mapping[str, Unit]
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """:param units: how the suite writes the values of its constants, by name."""
    from dqx_airflow.tuning.tunables import number_text

    columns = [
        key
        for key in _FIRST
        if any(
            key in entry or key in _ALSO.get(str(entry.get("action")), ()) for _, entry in entries
        )
    ]
    rows = []
    for number, entry in entries:
        unit = units.get(str(entry.get("param")))
        name = entry.get("param") or entry.get("name") or _profile_name(entry)
        shown = {**entry, "param": name}
        if entry.get("action") == "set_form":
            claims = {"old": entry.get("before"), "new": entry.get("claim")}
            shown |= {"param": entry.get("assertion"), **claims}
        for column in ("old", "new"):
            if unit is not None and is_finite_number(value := entry.get(column)):
                shown[column] = number_text(value, unit)
        rows.append((str(number), *(_cell(shown.get(column)) for column in columns)))
    return ("entry", *columns), rows


def _profile_name(entry: Entry) -> str | None:
    """The name of the profile that an entry adds, as in DQL."""
    match = re.search(r'profile "[^"]*"', str(entry.get("profile", "")))
    return match[0] if match else None


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def rollback(
    suite: arguments.SuiteArgument,
    *,
    to: Annotated[str, typer.Option(metavar="DATE|TIME|ENTRY")],
    reason: str | None = None,
    dry_run: bool = False,
) -> None:
    """Restore earlier values of the tunables, and undo later forms and profiles.

    The history records the rollback as new entries and keeps the earlier ones. What cannot be
    undone, since the suite was edited there, is named, with what to write by hand.

    :param to: The end of a day (UTC), a time, or the number of an entry of `dql history`; 0 is
        before everything.
    :param reason: The reason, stored in the history.
    :param dry_run: Only show what would change.
    """
    from dqx_airflow.tuning.review import undo, undone
    from dqx_airflow.tuning.suite_file import ParamChange
    from dqx_airflow.tuning.suite_history import cut_of, new_id, values_at
    from dqx_airflow.tuning.tunables import number_text, tunables_of, units_of

    file = arguments.suite_file(suite)
    file.read()  # a file that is not a suite has no history
    log, cut = file.history, cut_of(to, file.history)
    taken = undone(file, cut)
    current_values = {tunable.name: tunable.value for tunable in tunables_of(taken.suite)}
    units, facts = units_of(taken.suite), {"to": to, "id": new_id()}
    earlier_values = values_at(log.changes(), cut)
    changes = [
        ParamChange(name, value, reason=reason, action="rollback", facts=tuple(facts.items()))
        for name, value in earlier_values.items()
        if name in current_values and current_values[name] != value
    ]
    if taken.steps and not dry_run:
        undo(file, cut, **facts, **({} if reason is None else {"reason": reason}))
    if changes and not dry_run:
        file.save(changes)
    for name in earlier_values:
        if name not in current_values:
            typer.echo(f"warning: {name} is no longer a tunable of the suite", err=True)
    for number, (name, _) in taken.steps.items():
        typer.echo(f"undone: {name} (entry {number})")
    for change in changes:
        unit = units[change.param]
        old, new = (
            number_text(value, unit) for value in (current_values[change.param], change.value)
        )
        typer.echo(f"{change.param}: {old} -> {new}")
    if not changes and not taken.steps:
        typer.echo("nothing to change")
    for problem in taken.problems:
        typer.echo(f"warning: {problem}", err=True)


def promote(
    suite: arguments.SuiteArgument,
    *,
    assertion: str,
    check: arguments.CheckOption = None,
    shadow: Annotated[Path | None, typer.Option(metavar="SUITE")] = None,
    author: str | None = None,
) -> None:
    """Drop @experimental from an assertion, so that it can block.

    With --shadow, set its tunables to the values of that suite instead. The history records the
    change.

    :param assertion: The name of the assertion.
    :param shadow: Set its tunables to the values in this suite instead.
    :param author: The person who promotes it; default: the current user.
    """
    from dqx_airflow.tuning.review import promote as drop_experimental
    from dqx_airflow.tuning.review import promote_values

    file, who = arguments.suite_file(suite), author or getpass.getuser()
    if shadow is None:
        owner, name = drop_experimental(file, assertion, who, check=check)
        lines = [f"promoted: '{name}' of check '{owner}' can block from now on"]
    else:
        taken = promote_values(file, arguments.suite_file(shadow), assertion, who, check=check)
        lines = [f"promoted: {value}" for value in taken.values]
        if taken.also:
            lines.append(f"this also changes: {', '.join(taken.also)}")
    for line in lines:
        typer.echo(line)


def review(
    suite: arguments.SuiteArgument,
    *,
    pending: bool = False,
    approve: Annotated[list[str] | None, typer.Option(metavar="ID")] = None,
    reject: Annotated[list[str] | None, typer.Option(metavar="ID")] = None,
    apply: bool = False,
    reason: arguments.ReasonOption = None,
    author: str | None = None,
    results: arguments.ResultsOption = None,
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

    root = results or arguments.known_results_root(suite)
    stored = arguments.results_of(suite, root) if root else None
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
    is_json, plain = output == "json", [json.loads(proposal.to_json()) for proposal in waiting]
    head = ("id", "proposed", "agent", "change", "why")
    command.print_list(json_text(plain) if is_json else None, head, rows, "no pending proposals")
    for proposal in () if is_json else waiting:
        text = proposal.profile or (proposal.form.text if proposal.form is not None else "")
        if text:
            typer.echo(printable(f"\n{proposal.id}:\n{text.rstrip()}", keep="\n"))
