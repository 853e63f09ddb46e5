"""`dql tune history`: what changed in a suite, who changed it and why."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dqx_airflow.cli import arguments, command
from dqx_airflow.diagnostics.machine_formats import json_text
from dqx_airflow.diagnostics.renderers import draw
from dqx_airflow.errors import RequestError
from dqx_airflow.values.exact import is_finite_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dqx_airflow.dql.nodes import Unit
    from dqx_airflow.tuning.suite_history import Entry

_ALSO = {"add_profile": ("tunable",), "set_form": ("tunable", "old", "new"), "undo": ("tunable",)}

_FIRST = ("at", "action", "tunable", "old", "new", "author", "reason", "id")

_SHOWN = {"ts": "at", "param": "tunable", "claim": "after"}
"""The keys of the output by their keys in the file."""


def history(
    suite: arguments.SuiteArgument,
    *,
    tunable: str | None = None,
    format: Annotated[command.SheetFormat, command.FORMAT] = "text",
) -> None:
    """Show the changes of a suite, oldest first.

    :param tunable: Only changes of this tunable.
    :param format: Output format: text, json or csv.
    """
    entries = _entries(suite, tunable)
    text = None
    if format == "json":
        text = json_text([{"entry": number, **entry} for number, entry in entries])
    elif format == "csv":
        text = _history_csv(entries)
    nothing = "no changes" if tunable is None else f"no changes of {tunable}"
    command.print_list(text, *_history_table(entries, arguments.units_in(suite)), nothing)


def _entries(suite: Path, tunable: str | None) -> list[tuple[int, Entry]]:
    """The entries in the words of the output, with their numbers; reports damaged lines on stderr.

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
    return [
        (number, _shown(entry))
        for number, entry in entries
        if tunable in (None, entry.get("param"))
    ]


def _shown(entry: Entry) -> Entry:
    """An entry in the words of the output: `author` is who made the change, by name if the file has
    it, and else as an agent: `human` or an algorithm."""
    author = entry.get("author") or entry.get("agent")
    shown: Entry = {}
    for key, value in entry.items():
        if key not in ("agent", "author"):
            shown[_SHOWN.get(key, key)] = value
        elif "author" not in shown:
            shown["author"] = author
    return shown


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
        unit = units.get(str(entry.get("tunable")))
        name = entry.get("tunable") or entry.get("name") or _profile_name(entry)
        shown = {**entry, "tunable": name}
        if entry.get("action") == "set_form":
            claims = {"old": entry.get("before"), "new": entry.get("after")}
            shown |= {"tunable": entry.get("assertion"), **claims}
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
