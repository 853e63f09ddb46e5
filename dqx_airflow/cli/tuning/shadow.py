"""`dql shadow`: the alarms of a gate beside those of its shadow."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli.formats import TableFormatOption, TableOrJson
from dqx_airflow.cli.results_root import storage_options
from dqx_airflow.cli.tuning.call import (
    GateOption,
    ResultsOption,
    SinceOption,
    SuiteArgument,
    UntilOption,
    first_and_last,
    results_root,
    suite_name,
)
from dqx_airflow.diagnostics.listing import listed
from dqx_airflow.errors import RequestError
from dqx_airflow.values import day_of_instance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dqx_airflow.results.shadow_days import ShadowDay
    from dqx_airflow.tuning.comparison import Alarms, ShadowedAssertion

_MOST_NAMED = 5


def shadow(
    suite: SuiteArgument,
    *,
    since: SinceOption = None,
    until: UntilOption = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="The shadow, if there were several; default: the last one."),
    ] = None,
    gate: GateOption = None,
    results: ResultsOption = None,
    output: TableFormatOption = TableOrJson.TABLE,
) -> None:
    """Compare the alarms of a suite with those of the shadow that ran beside it.

    By default, the last 30 days.
    """
    from dqx_airflow.results.shadow_days import shadow_days
    from dqx_airflow.tuning.comparison import compare_alarms

    first, last = first_and_last(since, until, default=30)
    observed = shadow_days(
        results_root(suite, results),
        suite_name(suite),
        first,
        last,
        gate=gate,
        storage_options=storage_options(),
    )
    names = list(dict.fromkeys(day.shadow for day in observed))
    if not names:
        raise RequestError(
            f"no shadow ran beside the suite from {first} to {last}",
            "run `dql run SUITE --shadow PROPOSED --results PATH`, or give the operator "
            "shadow=PROPOSED",
        )
    chosen = name or observed[-1].shadow
    if chosen not in names:
        raise RequestError(f"no shadow '{chosen}' ran", f"shadows were: {', '.join(names)}")
    days = [day for day in observed if day.shadow == chosen]
    judged = [day for day in days if day.problem is None]
    compared = compare_alarms(judged)
    if output is TableOrJson.JSON:
        typer.echo(json.dumps(_plain(chosen, days, compared), ensure_ascii=False, indent=1))
        return
    _print(chosen, days, compared)
    if len(names) > 1:
        typer.echo(
            f"other shadows: {', '.join(other for other in names if other != chosen)} (--name)"
        )


def _plain(
    name: str, days: Sequence[ShadowDay], compared: Sequence[ShadowedAssertion]
) -> dict[str, object]:
    return {
        "shadow": name,
        "days": [_shown(day) for day in days if day.problem is None],
        "not_judged": {_shown(day): day.problem for day in days if day.problem},
        "assertions": [asdict(assertion) for assertion in compared],
    }


def _shown(day: ShadowDay) -> str:
    return day_of_instance(day.date, day.map_index)


def _print(name: str, days: Sequence[ShadowDay], compared: Sequence[ShadowedAssertion]) -> None:
    from dqx_airflow.cli.reports import print_table, printable

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
    lines = [f"gate -> shadow {name}: {len(judged)} days judged by both"]
    if judged:
        lines[0] += f", from {judged[0]} to {judged[-1]}"
    for day in days:
        if day.problem is not None:
            lines.append(f"{_shown(day)}: the shadow was not judged: {day.problem}")
    lines.append(f"alarms: {_total(compared, 'alarms')}")
    lines.append(f"labelled false: {_total(compared, 'false')}")
    lines.append(f"missed issues, by label: {_total(compared, 'missed')}")
    typer.echo(printable("\n".join(lines), keep="\n"))


def _both(assertion: ShadowedAssertion, field: str) -> str:
    own, other = _number(assertion.own, field), _number(assertion.shadow, field)
    return str(own) if own == other else f"{own} -> {other}"


def _total(compared: Sequence[ShadowedAssertion], field: str) -> str:
    own = sum(_number(assertion.own, field) for assertion in compared)
    other = sum(_number(assertion.shadow, field) for assertion in compared)
    return f"{own} -> {other}"


def _number(alarms: Alarms, field: str) -> int:
    return int(getattr(alarms, field))
