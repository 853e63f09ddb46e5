"""`dql rollback`: sets the tunables of a suite back to what they were."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli.tuning.call import SuiteArgument, suite_file, units_in

if TYPE_CHECKING:
    from dqx_airflow.tuning.suite_file import ParamChange


def rollback(
    suite: SuiteArgument,
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

    changes, before, removed = _changes(suite, to, reason)
    units = units_in(suite)
    if changes and not dry_run:
        suite_file(suite).save(changes)
    for name in removed:
        typer.echo(f"warning: {name} is no longer a tunable of the suite", err=True)
    for change in changes:
        unit = units[change.param]
        old, new = number_text(before[change.param], unit), number_text(change.value, unit)
        typer.echo(f"{change.param}: {old} -> {new}")
    if not changes:
        typer.echo("nothing to change")


def _changes(
    suite: Path, to: str, reason: str | None
) -> tuple[list[ParamChange], dict[str, float], list[str]]:
    """The values to set, the current ones, and the names that are no longer tunables."""
    from dqx_airflow.tuning.history import History, cut_of, new_id, values_at
    from dqx_airflow.tuning.suite_file import ParamChange
    from dqx_airflow.tuning.tunables import tunables_of

    log = History.of(suite)
    checked = suite_file(suite).read()
    current_values = {tunable.name: tunable.value for tunable in tunables_of(checked.valid_suite)}
    earlier_values = values_at(log.changes(), cut_of(to, log))
    facts = (("to", to), ("id", new_id()))
    changes = [
        ParamChange(name, value, reason=reason, action="rollback", facts=facts)
        for name, value in earlier_values.items()
        if name in current_values and current_values[name] != value
    ]
    return changes, current_values, [name for name in earlier_values if name not in current_values]
