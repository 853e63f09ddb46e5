"""`dql history`: what was changed of a suite, by whom and why."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dqx_airflow.cli.formats import SheetFormat
from dqx_airflow.cli.tuning.call import SuiteArgument, units_in
from dqx_airflow.diagnostics.machine_formats import json_text
from dqx_airflow.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dqx_airflow.dql.nodes import Unit
    from dqx_airflow.tuning.history import Entry

_FIRST = ("ts", "action", "param", "old", "new", "agent", "reason", "id")


def history(
    suite: SuiteArgument,
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
            typer.echo(_as_csv(entries), nl=False)
        case SheetFormat.TABLE if entries:
            _print_table(entries, units_in(suite))
        case SheetFormat.TABLE:
            typer.echo("no changes" if param is None else f"no changes of {param}")


def _entries(suite: Path, param: str | None) -> list[tuple[int, Entry]]:
    """The entries with their numbers; reports damaged lines on stderr.

    :raises RequestError: there is neither a suite nor a history.
    """
    from dqx_airflow.cli.reports import printable
    from dqx_airflow.diagnostics.text import draw
    from dqx_airflow.tuning.history import History

    log = History.of(suite)
    if not suite.is_file() and not log.path.is_file():
        raise RequestError(f"suite {suite} not found", "give the path of a .dql file")
    entries, damaged = log.read()
    if damaged:
        typer.echo(printable(draw(damaged, {}), keep="\n"), err=True)
    return [(number, entry) for number, entry in entries if param in (None, entry.get("param"))]


def _as_csv(entries: list[tuple[int, Entry]]) -> str:
    others = dict.fromkeys(key for _, entry in entries for key in entry if key not in _FIRST)
    columns = (*_FIRST, *others)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("entry", *columns))
    for number, entry in entries:
        writer.writerow((number, *(_text(entry.get(column)) for column in columns)))
    return out.getvalue()


def _print_table(entries: list[tuple[int, Entry]], units: Mapping[str, Unit]) -> None:
    """:param units: how the suite writes the values of its constants, by name."""
    from dqx_airflow.cli.reports import print_table
    from dqx_airflow.exact import is_finite_number
    from dqx_airflow.tuning.tunables import number_text

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
        rows.append((str(number), *(_text(shown.get(column)) for column in columns)))
    print_table(("entry", *columns), rows)


def _profile_name(entry: Entry) -> str | None:
    """The name of the profile that an entry adds, as in DQL."""
    match = re.search(r'profile "[^"]*"', str(entry.get("profile", "")))
    return match[0] if match else None


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
