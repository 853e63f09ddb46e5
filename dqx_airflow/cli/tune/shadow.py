"""`dql tune shadow` and `dql tune enforce`: the alarms of a suite next to the alarms of its shadow,
and taking over its values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from dqx_airflow.cli import arguments
from dqx_airflow.cli.command import TextFormatOption
from dqx_airflow.cli.days import DaysOption, FromOption, ToOption, first_and_last
from dqx_airflow.cli.decisions import AuthorOption, ReasonOption, author_of
from dqx_airflow.cli.reports import print_table, printable
from dqx_airflow.cli.stores import ResultsRootOption, existing_results
from dqx_airflow.diagnostics import machine_formats
from dqx_airflow.diagnostics.diagnostic import listed
from dqx_airflow.diagnostics.templates import filled
from dqx_airflow.errors import RequestError
from dqx_airflow.results.past_days import ShadowDay, shadow_days
from dqx_airflow.results.past_runs import runs_of_suite
from dqx_airflow.tuning.shadow_alarms import ShadowedAssertion, compare_alarms
from dqx_airflow.values import day_of_instance
from dqx_airflow.values.output_form import output_form

_MOST_NAMED = 5


def shadow(
    suite: arguments.SuiteArgument,
    *,
    since: FromOption = None,
    until: ToOption = None,
    last_days: DaysOption = None,
    name: str | None = None,
    gate: arguments.GateOption = None,
    results_root: ResultsRootOption = None,
    format: TextFormatOption = "text",
) -> None:
    """Compare the failures of a suite with the failures of its shadow.

    By default, the last 30 days.

    :param name: The shadow, if there were several; default: the last one.
    """
    first, last = first_and_last(since, until, last_days, default=30)
    wanted = runs_of_suite(arguments.suite_name(suite), first, last, gate)
    observed = shadow_days(existing_results(results_root, suite.parent), wanted)
    names = list(dict.fromkeys(day.shadow for day in observed))
    if not names:
        raise RequestError(
            f"no shadow ran alongside the suite from {first} to {last}",
            "run `dql run SUITE --shadow PROPOSED --results-root ROOT`, or give the operator "
            "shadow=PROPOSED",
        )
    chosen = name or observed[-1].shadow
    if chosen not in names:
        raise RequestError(f"no shadow '{chosen}' ran", f"shadows were: {', '.join(names)}")
    days = [day for day in observed if day.shadow == chosen]
    compared = compare_alarms([day for day in days if day.problem is None])
    if format == "json":
        typer.echo(machine_formats.json_text(_shadow_fields(chosen, days, compared)))
        return
    _print_shadow(chosen, days, compared)
    if len(names) > 1:
        typer.echo(
            f"other shadows: {', '.join(other for other in names if other != chosen)} (--name)"
        )


def _shadow_fields(
    name: str, days: Sequence[ShadowDay], compared: Sequence[ShadowedAssertion]
) -> dict[str, object]:
    return {
        "shadow": name,
        "days": [_instance_of_day(day) for day in days if day.problem is None],
        "not_judged": {_instance_of_day(day): day.problem for day in days if day.problem},
        "assertions": output_form(compared),
    }


def _instance_of_day(day: ShadowDay) -> str:
    return day_of_instance(day.date, day.map_index)


def _print_shadow(
    name: str, days: Sequence[ShadowDay], compared: Sequence[ShadowedAssertion]
) -> None:
    rows = []
    for assertion in compared:
        only_one = [f"gate {on}" for on in assertion.only_own] + [
            f"shadow {on}" for on in assertion.only_shadow
        ]
        numbers = (_both(assertion, field) for field in ("days", "alarms", "false", "missed"))
        rows.append((assertion.name, *numbers, listed(only_one, most=_MOST_NAMED)))
    if compared:
        columns = ("assertion", "days", "alarms", "false", "missed", "alarms of one alone")
        print_table(columns, rows)
    judged = list(dict.fromkeys(day.date for day in days if day.problem is None))
    fields = {"name": name, "days": days, "judged": judged, "compared": compared}
    text = filled(__package__, "shadow.txt", **fields, instance=_instance_of_day)
    typer.echo(printable(text, keep="\n"), nl=False)


def _both(assertion: ShadowedAssertion, field: str) -> str:
    own, other = (getattr(side, field) for side in (assertion.own, assertion.shadow))
    return str(own) if own == other else f"{own} -> {other}"


def enforce(
    suite: arguments.SuiteArgument,
    *,
    assertion: str,
    check: arguments.CheckOption = None,
    shadow: Annotated[Path | None, typer.Option(metavar="SUITE")] = None,
    reason: ReasonOption = None,
    author: AuthorOption = None,
) -> None:
    """Drop @experimental from an assertion, so that it can block.

    With --shadow, set its tunables to the values of that suite instead. The history records the
    change.

    :param assertion: The name of the assertion.
    :param shadow: Set its tunables to the values in this suite instead.
    """
    from dqx_airflow.tuning.review import enforce as drop_experimental
    from dqx_airflow.tuning.review import enforce_values

    file = arguments.suite_file(suite)
    who = author_of(author)
    if shadow is None:
        owner, name = drop_experimental(file, assertion, who, check=check, reason=reason)
        lines = [f"enforced: '{name}' of check '{owner}' can then block"]
    else:
        taken = enforce_values(
            file, arguments.suite_file(shadow), assertion, who, check=check, reason=reason
        )
        lines = [f"enforced: {value}" for value in taken.values]
        if taken.also:
            lines.append(f"this also changes: {', '.join(taken.also)}")
    for line in lines:
        typer.echo(line)
