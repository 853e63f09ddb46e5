"""`dql incidents`: lists the slices that are still blocked and how the others ended, closes them,
and accepts their data, once.
"""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar

import typer

from dqx_airflow.cli.command import TextFormatOption, json_if, print_list
from dqx_airflow.cli.days import day
from dqx_airflow.cli.decisions import AuthorOption, author_of
from dqx_airflow.cli.documented import Commands
from dqx_airflow.cli.json_objects import changes_object, incident_object, missing_report_object
from dqx_airflow.cli.stores import ResultsRootOption, existing_results
from dqx_airflow.errors import RequestError
from dqx_airflow.values import NO_REPORT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dqx_airflow.results.incidents import Incident, JudgedRows
    from dqx_airflow.results.missing_reports import MissingReport
    from dqx_airflow.results.query import StoredResults
    from dqx_airflow.results.what_changed import Changes


app = Commands(
    default="list", help="List, show, close and accept dates that are still blocked or broken."
)

_Gate: TypeAlias = Annotated[
    str | None, typer.Option("--gate", help="Only of this gate, or of a map index: GATE[3].")
]
_Id: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="ID", help="The first characters of its id, as `dql incidents` has it."),
]


@app.command("list")
def list_(
    *,
    results_root: ResultsRootOption = None,
    gate: _Gate = None,
    ended: Annotated[bool, typer.Option("--all")] = False,
    format: TextFormatOption = "text",
) -> None:
    """List the dates of data that are still bad, or have no report.

    An incident ends when its slice (date, map index, promote_slice) passes, is accepted, or
    someone closes it; a date without a report, when a run of it has one. The page "Open dates" in
    Airflow clears the tasks of all of them in order, and also knows tasks that were killed.

    :param ended: Include those that were repaired, accepted or closed.
    """
    from dqx_airflow.cli.suites import count_text
    from dqx_airflow.results.shared_causes import count_causes, first_of_dates

    results = existing_results(results_root)
    incidents = _incidents_of(results, gate)
    shown = [one for one in reversed(incidents) if ended or one.is_open]
    judged = _judged_rows(results, shown)
    first = first_of_dates(results, shown)
    listed = []
    for one in shown:
        rows = judged.get(one.id, ())
        earlier = first.get(one.id)
        listed.append((one.date, incident_object(one, rows, earlier), _row(one, rows, earlier)))
    listed += [
        (one.date, missing_report_object(one), _missing_row(one))
        for one in _missing_reports_of(results, gate, incidents)
    ]
    listed.sort(key=lambda line: line[0])
    nothing = "no incident" if ended else "no open date"
    facts = [fact for _, fact, _ in listed]
    print_list(json_if(format, facts), _HEAD, [row for _, _, row in listed], nothing)
    causes = count_causes(shown, first)
    if format == "text" and causes < len(shown):
        typer.echo(f"\n{len(shown)} incidents have {count_text(causes, 'cause')}")


@app.command("show")
def show(
    incident: _Id,
    *,
    results_root: ResultsRootOption = None,
    gate: _Gate = None,
    format: TextFormatOption = "text",
) -> None:
    """Show one incident, with what changed before it.

    That is: commits or files, contents, where its failing rows are, and what else has changed
    since the last good date.
    """
    from dqx_airflow.results.shared_causes import first_of_dates
    from dqx_airflow.results.what_changed import changes_before

    results = existing_results(results_root)
    one = incident_called(_incidents_of(results, gate), incident)
    changes = changes_before(results, one)
    judged = _judged_rows(results, [one]).get(one.id, ())
    earlier = first_of_dates(results, [one]).get(one.id)
    fact = incident_object(one, judged, earlier)
    fact["changes"] = changes_object(changes)
    print_list(json_if(format, fact), _HEAD, [_row(one, judged, earlier)], "")
    if format == "text":
        _print_changes(changes)


def _judged_rows(
    results: StoredResults, shown: Sequence[Incident]
) -> Mapping[str, Sequence[JudgedRows]]:
    from dqx_airflow.results.incidents import judged_rows

    return judged_rows(results, shown)


def _incidents_of(
    results: StoredResults, gate: str | None, on: date | None = None
) -> list[Incident]:
    """The incidents of a gate, of all its suites, or of an instance of it.

    :raises RequestError: the store does not know the gate.
    """
    from dqx_airflow.results.decisions import gates_called
    from dqx_airflow.results.incidents import stored_incidents
    from dqx_airflow.results.missing_reports import missing_reports
    from dqx_airflow.results.query import RunsWanted

    found = stored_incidents(results, RunsWanted(since=on, until=on))
    if gate is None:
        return [*found]
    name, index = _name_and_index(gate)
    try:
        own = {*gates_called(results, name)}
    except RequestError:
        if missing_reports(results, [name]):
            return []  # none of its runs has left a report
        raise
    return [
        one
        for one in found
        if index in (None, one.map_index) and own & {run.run_key.gate for run in one.runs}
    ]


def _name_and_index(gate: str) -> tuple[str, int | None]:
    """The name of a gate and the map index in `GATE[3]`; None without one."""
    match = re.fullmatch(r"(.*?)(?:\[(\d+)\])?", gate, re.DOTALL)
    assert match is not None
    return match[1], None if match[2] is None else int(match[2])


def _missing_reports_of(
    results: StoredResults, gate: str | None, incidents: Sequence[Incident]
) -> list[MissingReport]:
    """The dates of a gate, or of an instance of it, whose last run left no report.

    :param incidents: the incidents of the gate, whose open dates are not repeated.
    """
    from dqx_airflow.results.missing_reports import missing_without_incident

    name, index = _name_and_index(gate or "")
    found = missing_without_incident(incidents, results, None if gate is None else [name])
    return [one for one in found if index in (None, one.map_index)]


_Listed = TypeVar("_Listed", bound="Incident | MissingReport")


def incident_called(found: Sequence[_Listed], given: str) -> _Listed:
    """The incident, or the date without a report, whose id starts with a text.

    :raises RequestError: there is none, or there are several.
    """
    matching = [one for one in found if given and one.id.startswith(given)]
    if len(matching) != 1:
        many = "several incidents have" if matching else "no incident has"
        raise RequestError(f"{many} an id that starts with '{given}'", "`dql incidents` lists them")
    return matching[0]


@app.command("close")
def close(
    incident: _Id,
    *,
    reason: Annotated[str, typer.Option()],
    gate: _Gate = None,
    author: AuthorOption = None,
    results_root: ResultsRootOption = None,
) -> None:
    """Close an open incident, or a date without a report.

    :param reason: Why it is closed.
    """
    from dqx_airflow.results.incidents import CLOSED, IncidentNote, write_notes
    from dqx_airflow.results.missing_reports import MissingReport

    results = existing_results(results_root)
    incidents = _incidents_of(results, gate)
    missing = _missing_reports_of(results, gate, incidents)
    listed: list[Incident | MissingReport] = [*incidents, *missing]
    one = incident_called(listed, incident)
    if isinstance(one, MissingReport):
        write_notes(results, [one.note(CLOSED, author_of(author), reason.strip())])
        typer.echo(f"closed: gate {one.gate_instance}, data of {one.date}")
        return
    key = one.last.run_key
    if not one.is_open:
        raise RequestError(f"incident {one.id[:8]} of {key.date} has ended: {one.status}")
    who = author_of(author)
    note = IncidentNote(
        key.gate, key.date, CLOSED, who, reason.strip(), one.map_index, one.last.slice
    )
    write_notes(results, [note])
    typer.echo(f"closed: gate {key.gate_instance}, data of {key.date}")


_HEAD = ("id", "gate", "date", "status", "rows", "worst", "acknowledged by")


def _row(one: Incident, judged: Sequence[JudgedRows], first: Incident | None) -> tuple[str, ...]:
    gate = f"{one.last.run_key.gate_instance} {one.rows}".strip()
    where = ", ".join(_whereabouts(rows) for rows in judged)
    by = one.acknowledgement.author if one.acknowledgement else ""
    worst = one.last.worst or ""
    day = one.date.isoformat()
    same = "" if first is None else f", same cause as {first.id[:8]}"
    return one.id[:8], gate, day, _status(one) + same, where, worst, by


def _missing_row(one: MissingReport) -> tuple[str, ...]:
    gate = f"{one.gate_instance} {one.rows}".strip()
    by = one.acknowledgement.author if one.acknowledgement else ""
    return one.id[:8], gate, one.date.isoformat(), NO_REPORT, "", one.error, by


def _whereabouts(judged: JudgedRows) -> str:
    """The rows of a dataset, and where they are: `orders: 258 held back`."""
    done = judged.promoted
    if done is not None:
        return (
            f"{judged.dataset}: {done.rows} promoted, version {done.version} "
            f"by attempt {done.attempt} at {done.at:%Y-%m-%d %H:%M}"
        )
    rows = "?" if judged.rows is None else judged.rows
    return f"{judged.dataset}: {rows} {'held back' if judged.target else 'checked'}"


def _status(one: Incident) -> str:
    """The status; of a gate that waits for an answer, until when, and what happens then."""
    question = one.question
    if question is None or question.until is None:
        return one.status
    return f"{one.status} until {question.until:%Y-%m-%d %H:%M}, then {question.text}"


def _print_changes(found: Iterable[tuple[str, Changes]]) -> None:
    from dqx_airflow.cli.reports import printable

    for gate, changes in found:
        for topic, lines in changes.items():
            typer.echo(f"\n{topic} ({printable(gate)})")
            typer.echo("\n".join(f"  {printable(line)}" for line in lines))


@app.command("accept")
def accept(
    gate: Annotated[str, typer.Argument(metavar="GATE")],
    on: Annotated[date, typer.Argument(metavar="DATE", parser=day)],
    *,
    reason: Annotated[str, typer.Option()],
    incident: Annotated[str | None, typer.Option(metavar="ID")] = None,
    author: AuthorOption = None,
    results_root: ResultsRootOption = None,
) -> None:
    """Accept the data of a date that a gate has blocked.

    It is accepted exactly as it was checked. Run the gate again (clear its task): it promotes these
    rows and updates the assets. If the data has changed since, the acceptance no longer
    applies. P0 and @required need accept_required=True on the gate.

    :param gate: The name of the gate, or of an instance of it: GATE[3].
    :param on: The date of the data.
    :param reason: Why the data may go on.
    :param incident: Only this one of several slices of the date.
    """
    from dqx_airflow.results.decisions import acceptances
    from dqx_airflow.results.incidents import write_notes

    results = existing_results(results_root)
    found = _incidents_of(results, gate, on)
    about = [one for one in found if one.is_open and one.id.startswith(incident or "")]
    if len(about) != 1:
        listed = ", ".join(
            f"{one.id[:8]} {one.last.run_key.gate_instance} {one.rows}".strip() for one in about
        )
        raise RequestError(
            f"gate '{gate}' has {len(about) or 'no'} open slices on {on}"
            + (f": {listed}" if about else ""),
            "add --incident ID" if about else "`dql incidents` lists what is open",
        )
    write_notes(results, acceptances(results, about[0], author_of(author), reason))
    typer.echo(
        f"accepted: gate {about[0].last.run_key.gate_instance}, data of {on}\n"
        "Clear the task of the gate, or run it again: it promotes exactly these rows."
    )
