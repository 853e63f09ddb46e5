"""`dql incidents`: the slices of data that are still blocked, and how the others ended."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli.command import RootOption, TextFormatOption, TextOrJson, storage_options
from dqx_airflow.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dqx_airflow.results.incidents import Incident, LackingRows
    from dqx_airflow.results.query import StoredResults


def incidents(
    *,
    root: RootOption = None,
    gate: str | None = None,
    ended: Annotated[bool, typer.Option("--all")] = False,
    close: Annotated[str | None, typer.Option(metavar="ID")] = None,
    reason: str | None = None,
    author: str | None = None,
    output: TextFormatOption = TextOrJson.TEXT,
) -> None:
    """List the dates of data that are still blocked or broken, oldest first.

    An incident ends when its slice (date, map index, promote_slice) passes, is accepted, or a
    person closes it. The page "Open slices" in Airflow clears the tasks of all of them in order.

    :param gate: Only those of this gate.
    :param ended: Include those that were repaired, accepted or closed.
    :param close: Close an open one; needs --reason.
    :param reason: Why it is closed.
    :param author: Who decides; default: the current user.
    """
    from dqx_airflow.results.incidents import lacking_rows, stored_incidents
    from dqx_airflow.results.query import RunsWanted

    results = results_at(root)
    found = stored_incidents(results, RunsWanted(None if gate is None else [gate]))
    if close is not None:
        _close(results, found, close, reason, author or getpass.getuser())
        return
    if reason is not None:
        raise RequestError("--reason without --close", "add --close ID")
    shown = [one for one in reversed(found) if ended or one.is_open]
    lacking = lacking_rows(results, shown)
    if output is TextOrJson.JSON:
        from dqx_airflow.values import to_json

        typer.echo(to_json([_facts(one, lacking.get(one.id, ())) for one in shown]))
    elif shown:
        _print(shown, {one.id: lacking.get(one.id, ()) for one in shown})
    else:
        typer.echo("no open slice" if not ended else "no incident")


def results_at(root: str | None) -> StoredResults:
    """The results below a root.

    :raises RequestError: no root is given.
    :raises StoreError: there is no store.
    """
    from dqx_airflow.results.query import StoredResults

    if not root:
        raise RequestError("no results root given", "add --root PATH, or set DQX_RESULTS_ROOT")
    results = StoredResults(root, storage_options())
    results.require_some()
    return results


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


def _facts(one: Incident, lacking: Sequence[LackingRows]) -> dict[str, object]:
    key, ended = one.last.run_key, one.time_to_end
    seconds = [
        None if time is None else time.total_seconds()
        for time in (one.time_to_detect, one.time_to_acknowledge, ended)
    ]
    return {
        "id": one.id,
        "gate": key.gate,
        "date": key.date.isoformat(),
        "map_index": one.map_index,
        "rows": one.rows,
        "scheduler_run": key.scheduler_run,
        "status": one.status,
        "outcome": one.last.outcome.value,
        "worst": one.last.worst,
        "detected_at": one.detected_at.isoformat(),
        "ended_at": one.ended_at.isoformat() if one.ended_at else None,
        "seconds_to_detect": seconds[0],
        "seconds_to_acknowledge": seconds[1],
        "seconds_to_end": seconds[2],
        "acknowledged_by": one.acknowledgement.author if one.acknowledgement else None,
        "not_promoted": [
            {"dataset": rows.dataset, "target": rows.target or None, "rows": rows.rows}
            for rows in lacking
        ],
        "notes": [
            {"kind": note.kind, "author": note.author, "text": note.text, "at": note.at.isoformat()}
            for note in one.notes
        ],
    }


def _print(shown: Sequence[Incident], lacking: dict[str, Sequence[LackingRows]]) -> None:
    from dqx_airflow.cli.reports import print_table, printable

    print_table(
        ("id", "gate", "date", "status", "rows held back", "worst", "acknowledged by"),
        [
            (
                one.id[:8],
                printable(f"{one.last.run_key.gate_instance} {one.rows}".strip()),
                one.date.isoformat(),
                one.status,
                printable(
                    ", ".join(
                        f"{rows.dataset}: {'?' if rows.rows is None else rows.rows}"
                        for rows in lacking[one.id]
                    )
                ),
                printable(one.last.worst or ""),
                printable(one.acknowledgement.author if one.acknowledgement else ""),
            )
            for one in shown
        ],
    )
