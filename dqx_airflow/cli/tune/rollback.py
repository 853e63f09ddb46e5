"""`dql tune rollback`: a suite without the changes after an entry of its history."""

from __future__ import annotations

from typing import Annotated

import typer

from dqx_airflow.cli import arguments


def rollback(
    suite: arguments.SuiteArgument,
    *,
    to_entry: Annotated[str, typer.Option(metavar="DATE|TIME|ENTRY")],
    reason: str | None = None,
    dry_run: bool = False,
) -> None:
    """Restore earlier limits, and undo later forms and profiles.

    The history records the rollback as new entries and keeps the earlier ones. What cannot be
    undone, since the suite was edited there, is named, with what to write by hand.

    :param to_entry: The end of a day (UTC), a time, or the number of an entry of `dql tune
        history`; 0 is before everything.
    :param reason: The reason, stored in the history.
    :param dry_run: Only show what would change.
    """
    from dqx_airflow.tuning.review import undo, undone
    from dqx_airflow.tuning.suite_file import ParamChange
    from dqx_airflow.tuning.suite_history import cut_of, new_id, values_at
    from dqx_airflow.tuning.tunables import number_text, tunables_of, units_of

    file = arguments.suite_file(suite)
    file.read()  # a file that is not a suite has no history
    log = file.history
    cut = cut_of(to_entry, file.history)
    taken = undone(file, cut)
    current_values = {tunable.name: tunable.value for tunable in tunables_of(taken.suite)}
    units = units_of(taken.suite)
    facts = {"to": to_entry, "id": new_id()}
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
