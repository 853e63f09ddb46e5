"""The operands of a compound value: for `day_over_day(num_rows())` the rows of both days."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dqx_airflow.diagnostics.verdicts import format_value
from dqx_airflow.values import MetricValue, Verdict

if TYPE_CHECKING:
    from dqx_airflow.plan.model import GroupValues

_MOST = 40
_ROW_COUNT = "num_rows"


def operands_of(verdict: Verdict) -> tuple[tuple[str, str], ...]:
    """The metric values from which a value is computed, each with its name, those of the date
    first; for an assertion that is judged for each group those of the worst group. Empty if the
    value is that of a single metric."""
    if not verdict.measured:
        return ()
    from dqx_airflow.plan.measured import measurements_from

    measured = measurements_from(verdict.measured)
    values = dict(measured.values)
    if verdict.groups is not None:
        values = _of_group(verdict.worst_group, measured.groups)
    operands = []
    for key, value in values.items():
        try:
            dataset, metric, arguments, lag, *_ = json.loads(key)
        except (ValueError, TypeError):
            continue  # of a newer version
        if metric == _ROW_COUNT and _ROW_COUNT not in verdict.expression:
            continue  # it only shows whether there is data
        name = f"{metric}({', '.join(map(_argument, arguments))})"
        if len(verdict.datasets) > 1:
            name = f"{dataset}: {name}"
        operands.append((int(lag or 0), name, format_value(value)))
    if len(operands) < 2:
        return ()
    operands.sort(key=lambda operand: operand[:2])
    return tuple((f"{name}{_days(lag)}", value) for lag, name, value in operands[:_MOST])


def _of_group(shown: str | None, groups: Mapping[str, GroupValues]) -> dict[str, MetricValue]:
    """The measurements of the group with this displayed name."""
    from dqx_airflow.plan.groupings import show_group

    return {
        key: value
        for key, by_group in groups.items()
        for group, value in by_group.values.items()
        if show_group(group) == shown
    }


def _days(lag: int) -> str:
    return "" if lag == 0 else f", {lag} day{'' if lag == 1 else 's'} before"


def _argument(argument: Any) -> str:
    if isinstance(argument, dict):
        return (
            f"where {argument['where']}"
            if "where" in argument
            else str(argument.get("rows", argument))
        )
    return (
        f"[{', '.join(map(_argument, argument))}]" if isinstance(argument, list) else str(argument)
    )
