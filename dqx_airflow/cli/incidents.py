"""Decisions of people about blocked data: `dql incidents` lists the slices that are still blocked
and how the others ended, `dql accept` accepts the data of a blocked gate, once, `dql waive` and
`dql waivers` are about assertions that may fail until a date."""

from __future__ import annotations

import getpass
import re
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli.command import TextFormatOption, json_if, print_list
from dqx_airflow.cli.json_objects import incident_object
from dqx_airflow.cli.stores import ResultsRootOption, existing_results
from dqx_airflow.errors import RequestError
from dqx_airflow.limits import MOST_DAYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dqx_airflow.results.incidents import Incident, LackingRows
    from dqx_airflow.results.query import StoredResults
    from dqx_airflow.results.what_changed import Changes
    from dqx_airflow.values.report import Waiver


def incidents(
    *,
    results_root: ResultsRootOption = None,
    gate: str | None = None,
    ended: Annotated[bool, typer.Option("--all")] = False,
    show: Annotated[str | None, typer.Option(metavar="ID")] = None,
    close: Annotated[str | None, typer.Option(metavar="ID")] = None,
    reason: str | None = None,
    author: str | None = None,
    output: TextFormatOption = "text",
) -> None:
    """List the dates of data that are still blocked or broken, oldest first.

    An incident ends when its slice (date, map index, promote_slice) passes, is accepted, or a
    person closes it. The page "Open slices" in Airflow clears the tasks of all of them in order.

    :param gate: Only those of this gate, or of an instance of it: GATE[3].
    :param ended: Include those that were repaired, accepted or closed.
    :param show: Only this one, with what changed before it: commits or files, contents, where its
        failing rows are, and what else has changed since the last good date.
    :param close: Close an open one; needs --reason.
    :param reason: Why it is closed.
    :param author: Who decides; default: the current user.
    """
    from dqx_airflow.results.incidents import lacking_rows
    from dqx_airflow.results.what_changed import changes_before

    results = existing_results(results_root)
    found = _incidents_of(results, gate)
    if close is not None:
        _close(results, found, close, reason, author or getpass.getuser())
        return
    if reason is not None:
        raise RequestError("--reason without --close", "add --close ID")
    shown = [one for one in reversed(found) if ended or one.is_open]
    if show is not None:
        shown = [incident_called(found, show)]
    changes = changes_before(results, shown[0]) if show is not None else ()
    lacking = lacking_rows(results, shown)
    facts = [incident_object(one, lacking.get(one.id, ())) for one in shown]
    if changes:
        facts[0]["changes"] = dict(changes)
    rows = [_row(one, lacking.get(one.id, ())) for one in shown]
    nothing = "no incident" if ended else "no open slice"
    print_list(json_if(output, facts), _HEAD, rows, nothing)
    if output == "text":
        _print_changes(changes)


def _incidents_of(
    results: StoredResults, gate: str | None, on: date | None = None
) -> list[Incident]:
    """The incidents of a gate, of all its suites, or of an instance of it.

    :raises RequestError: the store does not know the gate.
    """
    from dqx_airflow.results.decisions import gates_called
    from dqx_airflow.results.incidents import stored_incidents
    from dqx_airflow.results.query import RunsWanted

    found = stored_incidents(results, RunsWanted(since=on, until=on))
    match = re.fullmatch(r"(.*?)(?:\[(\d+)\])?", gate or "", re.DOTALL)
    if gate is None or match is None:
        return [*found]
    own = {*gates_called(results, match[1])}
    index = match[2]
    return [
        one
        for one in found
        if index in (None, str(one.map_index)) and own & {run.run_key.gate for run in one.runs}
    ]


def incident_called(found: Sequence[Incident], given: str) -> Incident:
    """The incident whose id starts with a text.

    :raises RequestError: there is none, or there are several.
    """
    matching = [one for one in found if given and one.id.startswith(given)]
    if len(matching) != 1:
        many = "several incidents have" if matching else "no incident has"
        raise RequestError(f"{many} an id that starts with '{given}'", "`dql incidents` lists them")
    return matching[0]


def _close(
    results: StoredResults, found: Sequence[Incident], given: str, reason: str | None, who: str
) -> None:
    from dqx_airflow.results.incidents import CLOSED, IncidentNote, write_notes

    if not (reason or "").strip():
        raise RequestError("closing an incident needs a reason", 'add --reason "..."')
    one = incident_called(found, given)
    key = one.last.run_key
    if not one.is_open:
        raise RequestError(f"incident {one.id[:8]} of {key.date} has ended: {one.status}")
    note = IncidentNote(
        key.gate, key.date, CLOSED, who, str(reason).strip(), one.map_index, one.last.slice
    )
    write_notes(results, [note])
    typer.echo(f"closed: gate {key.gate_instance}, data of {key.date}")


_HEAD = ("id", "gate", "date", "status", "rows held back", "worst", "acknowledged by")


def _row(one: Incident, lacking: Sequence[LackingRows]) -> tuple[str, ...]:
    gate = f"{one.last.run_key.gate_instance} {one.rows}".strip()
    held = (f"{rows.dataset}: {'?' if rows.rows is None else rows.rows}" for rows in lacking)
    by = one.acknowledgement.author if one.acknowledgement else ""
    worst = one.last.worst or ""
    day = one.date.isoformat()
    return one.id[:8], gate, day, one.status, ", ".join(held), worst, by


def _print_changes(found: Iterable[tuple[str, Changes]]) -> None:
    from dqx_airflow.cli.reports import printable

    for gate, changes in found:
        for topic, lines in changes.items():
            typer.echo(f"\n{topic} ({printable(gate)})")
            typer.echo("\n".join(f"  {printable(line)}" for line in lines))


def accept(
    gate: Annotated[str, typer.Argument(metavar="GATE")],
    on: Annotated[datetime, typer.Argument(metavar="DATE", formats=["%Y-%m-%d"])],
    *,
    reason: Annotated[str, typer.Option()],
    incident: Annotated[str | None, typer.Option(metavar="ID")] = None,
    author: str | None = None,
    results_root: ResultsRootOption = None,
) -> None:
    """Accept the data of a date that a gate has blocked, exactly as it was judged.

    Run the gate again (clear its task): it promotes these rows and updates the assets. If the data
    has changed since, the answer is void. P0 and @required need accept_required=True on the gate.

    :param gate: The name of the gate, or of an instance of it: GATE[3].
    :param on: The date of the data.
    :param reason: Why the data may go on.
    :param incident: Of several slices of the date, this one.
    :param author: Who decides; default: the current user.
    """
    from dqx_airflow.results.decisions import acceptances
    from dqx_airflow.results.incidents import write_notes

    results = existing_results(results_root)
    day = on.date()
    found = _incidents_of(results, gate, day)
    about = [one for one in found if one.is_open and one.id.startswith(incident or "")]
    if len(about) != 1:
        listed = ", ".join(
            f"{one.id[:8]} {one.last.run_key.gate_instance} {one.rows}".strip() for one in about
        )
        raise RequestError(
            f"gate '{gate}' has {len(about) or 'no'} open slices on {day}"
            + (f": {listed}" if about else ""),
            "add --incident ID" if about else "`dql incidents` lists what is open",
        )
    write_notes(results, acceptances(results, about[0], author or getpass.getuser(), reason))
    typer.echo(
        f"accepted: gate {about[0].last.run_key.gate_instance}, data of {day}\n"
        "Clear the task of the gate, or run it again: it promotes exactly these rows."
    )


def waive(
    gate: Annotated[str, typer.Argument(metavar="GATE")],
    assertion: Annotated[str, typer.Argument(metavar="ASSERTION")],
    *,
    until: Annotated[datetime, typer.Option(formats=["%Y-%m-%d"])],
    reason: Annotated[str, typer.Option()],
    owner: Annotated[str, typer.Option()],
    below: Annotated[str | None, typer.Option(metavar="LIMIT")] = None,
    above: Annotated[str | None, typer.Option(metavar="LIMIT")] = None,
    longest: Annotated[int, typer.Option(metavar="DAYS", min=1, max=MOST_DAYS)] = 30,
    author: str | None = None,
    results_root: ResultsRootOption = None,
) -> None:
    """Let an assertion of a gate fail until a day, for a reason.

    Its failure is then a warning, counted as waived in every report. A waiver never applies to
    P0 and @required, and ends by itself.

    :param gate: The name of the gate.
    :param assertion: The name of the assertion, CHECK::NAME, or the path of a contract clause.
    :param until: The last day, in UTC.
    :param reason: Why it may fail.
    :param owner: Who takes care of the cause.
    :param below: Only while the value is below it, such as 10%.
    :param above: Only while the value is above it.
    :param longest: The longest time in days.
    :param author: Who decides; default: the current user.
    """
    from dqx_airflow.results.decisions import new_waiver, write_waivers

    results = existing_results(results_root)
    waiver = new_waiver(
        results,
        gate,
        assertion,
        until=until.date(),
        reason=reason,
        owner=owner,
        author=author or getpass.getuser(),
        below=below,
        above=above,
        longest=timedelta(days=longest),
    )
    write_waivers(results, [waiver])
    typer.echo(f"{waiver.name} of {waiver.gate}: {waiver}")


def waivers(
    *,
    results_root: ResultsRootOption = None,
    gate: str | None = None,
    ended: Annotated[bool, typer.Option("--all")] = False,
    end: Annotated[str | None, typer.Option(metavar="ID")] = None,
    author: str | None = None,
    output: TextFormatOption = "text",
) -> None:
    """List the waivers, those that end first at the top; or end one early.

    :param gate: Only those of this gate.
    :param ended: Include those that have ended.
    :param end: End a waiver now.
    :param author: Who decides; default: the current user.
    """
    from dqx_airflow.results.decisions import gates_called, waivers_of, write_waivers

    results = existing_results(results_root)
    now = datetime.now(timezone.utc)
    found = waivers_of(results, None if gate is None else gates_called(results, gate))
    if end is not None:
        own = [one for one in found if end and one.id.startswith(end) and one.is_active(now)]
        if len(own) != 1:
            many = "several active waivers have" if own else "no active waiver has"
            raise RequestError(f"{many} an id that starts with '{end}'", "`dql waivers` lists them")
        write_waivers(results, [replace(own[0], ended_by=author or getpass.getuser(), at=now)])
        typer.echo(f"ended: {own[0].name} of {own[0].gate}")
        return
    shown = sorted((one for one in found if ended or one.is_active(now)), key=lambda o: o.until)
    head = ("id", "gate", "assertion", "until", "limit", "owner", "reason", "state")
    rows = [_waiver_row(one, now) for one in shown]
    print_list(json_if(output, [*shown]), head, rows, "no waiver")


def _waiver_row(one: Waiver, now: datetime) -> tuple[str, ...]:
    ended = f"ended by {one.ended_by}" if one.ended_by else "ended"
    state = "active" if one.is_active(now) else ended
    limit = re.sub(r"^[^,]*(, )?", "", one.terms)
    until = one.until.isoformat()
    return one.id[:8], one.gate, one.name, until, limit, one.owner, one.reason, state
