"""Drawings as SVG: the verdicts of past days by assertion, and the cost of each value of a tunable.

In the calendar of verdicts, a cell is split if the current and the proposed one differ: current
above, proposed below. A dot is a label. Each instance of a mapped gate has a row of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any

from dqx_airflow.diagnostics.templates import filled
from dqx_airflow.diagnostics.verdicts import format_value
from dqx_airflow.dql.nodes import Unit
from dqx_airflow.tuning.comparison import BacktestComparison
from dqx_airflow.tuning.tunables import number_text

_LONGEST_NAME = 60
_drawn = partial(filled, __package__)


def calendar_svg(comparison: BacktestComparison) -> str:
    """The calendar of verdicts, as an SVG document."""
    of_instance = attrgetter("map_index")
    rows = [
        (f"{assertion.name}[{index}]" if index >= 0 else assertion.name, [*days])
        for assertion in comparison.assertions
        for index, days in groupby(sorted(assertion.days, key=of_instance), of_instance)
    ]
    return _drawn(
        "calendar.svg",
        comparison=comparison,
        dates=comparison.dates,
        rows=rows,
        longest=max((len(_shortened(name)) for name, _ in rows), default=0),
        shortened=_shortened,
        value_text=format_value,
    )


def calendar_html(comparison: BacktestComparison) -> str:
    """The calendar of verdicts on an HTML page, with the numbers above it. It loads nothing."""
    values = [
        (name, *(number_text(value, unit) for value in (old, new)))
        for name, old in comparison.values_before.items()
        if (new := comparison.values_after.get(name, old)) != old
        for unit in [comparison.units.get(name, Unit.PLAIN)]
    ]
    after = asdict(comparison.after)
    tallies = [
        (name.replace("_", " "), before, after[name])
        for name, before in asdict(comparison.before).items()
    ]
    return _drawn(
        "calendar.html",
        comparison=comparison,
        tables={"tunable": values, "verdicts": tallies},
        picture=calendar_svg(comparison),
    )


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."


def cost_svg(curve: Mapping[str, Any]) -> str:
    """The chart of one curve of a proposal's evidence: a line of costs, and the two values."""
    points = [(float(value), float(cost)) for value, cost in curve["points"]]
    most = max(cost for _, cost in points) or 1.0
    curve = {"type": None, **curve, "points": points}
    return _drawn("cost.svg", curve=curve, low=points[0][0], high=points[-1][0], most=most)
