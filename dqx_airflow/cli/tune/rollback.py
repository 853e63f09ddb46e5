"""`dql tune rollback`: a suite without the changes after an entry of its history."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli import arguments
from dqx_airflow.cli.decisions import (
    AuthorOption,
    DryRunOption,
    ReasonOption,
    YesOption,
    author_of,
    may_go_on,
)
from dqx_airflow.values.typed_values import typed_day

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dqx_airflow.dql.nodes import Unit
    from dqx_airflow.tuning.suite_file import ParamChange


def rollback(
    suite: arguments.SuiteArgument,
    *,
    to_entry: Annotated[str, typer.Option(metavar="DATE|TIME|ENTRY")],
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    reason: ReasonOption = None,
    author: AuthorOption = None,
) -> None:
    """Restore earlier limits, and undo later forms and profiles.

    The history records the rollback as new entries and keeps the earlier ones. What cannot be
    undone, since the suite was edited there, is named, with what to write by hand.

    :param to_entry: The end of a day (UTC), such as yesterday, a time, or the number of an entry
        of `dql tune history`; 0 is before everything.
    """
    from dqx_airflow.tuning.review import undo, undone
    from dqx_airflow.tuning.suite_file import ParamChange
    from dqx_airflow.tuning.suite_history import cut_of, new_id, values_at
    from dqx_airflow.tuning.tunables import tunables_of, units_of

    file = arguments.suite_file(suite)
    file.read()  # a file that is not a suite has no history
    log = file.history
    day = typed_day(to_entry, datetime.now(timezone.utc).date())
    kept = to_entry if day is None else day.isoformat()
    cut = cut_of(kept, file.history)
    taken = undone(file, cut)
    current_values = {tunable.name: tunable.value for tunable in tunables_of(taken.suite)}
    units = units_of(taken.suite)
    facts = {"to": kept, "id": new_id(), "author": author_of(author)}
    earlier_values = values_at(log.changes(), cut)
    changes = [
        ParamChange(name, value, reason=reason, action="rollback", facts=tuple(facts.items()))
        for name, value in earlier_values.items()
        if name in current_values and current_values[name] != value
    ]
    steps = [f"undo {name} (entry {number})" for number, (name, _) in taken.steps.items()]
    values = (_in_words(change, current_values, units) for change in changes)
    effect = f"write {suite}: {'; '.join([*steps, *values])}"
    if changes or steps:
        may_go_on(effect, dry_run=dry_run, yes=yes)
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
        typer.echo(_in_words(change, current_values, units))
    if not changes and not taken.steps:
        typer.echo("nothing to change")
    for problem in taken.problems:
        typer.echo(f"warning: {problem}", err=True)


def _in_words(
    change: ParamChange, current_values: Mapping[str, float], units: Mapping[str, Unit]
) -> str:
    """The old and the new value of a tunable."""
    from dqx_airflow.tuning.tunables import number_text

    unit = units[change.param]
    old, new = (number_text(value, unit) for value in (current_values[change.param], change.value))
    return f"{change.param}: {old} -> {new}"
