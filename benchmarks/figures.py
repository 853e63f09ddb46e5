"""Figures from stored runs: the cost of several runs, and the ratio of two engines."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

OURS, NAIVE = "ours", "naive"
Json = Mapping[str, Any]
Costs = Sequence["Json | None"]
"""What each round took. None is a round in which the engine did not run; those that it has fewer
of than another one are the last."""


def title(found: Json, name: str) -> str:
    """The name of the engine with its version."""
    engine = found["engines"][name]
    return f"{engine['title']} {engine['version']}".strip()


def costs_of(runs: Sequence[Json], kind: str) -> Costs:
    """The costs of an engine, one per round: the median if a round has several warm runs."""
    return [None if "error" in run else middle(run[kind]) for run in runs]


def middle(cost: Json | Sequence[Json]) -> Json:
    """The median of several runs of one round."""
    if isinstance(cost, Mapping):
        return cost
    by_wall = sorted(cost, key=lambda one: one["wall_s"])
    return by_wall[len(by_wall) // 2]


def median(costs: Costs, what: str) -> float:
    found = [cost[what] for cost in costs if cost is not None]
    return float(statistics.median(found)) if found else float("inf")


def ratio(own: Costs, base: Costs, what: str) -> str:
    """The median of the ratios within a round."""
    pairs = [
        one[what] / other[what]
        for one, other in zip(own, base, strict=False)
        if one is not None and other is not None and other[what]
    ]
    return f"{statistics.median(pairs):.2f}" if pairs else ""
