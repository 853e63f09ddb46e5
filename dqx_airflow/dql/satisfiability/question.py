"""The question that an assertion over metrics asks, as one value."""

from __future__ import annotations

from dataclasses import dataclass

from dqx_airflow.dql import nodes
from dqx_airflow.dql.satisfiability.metric_ranges import (
    RequestedValue,
    Surroundings,
    range_of,
    requests_in,
)
from dqx_airflow.exact import Number


@dataclass(frozen=True, slots=True)
class Question:
    """Can an expression fail its condition, and can it pass?"""

    expression: nodes.Expression
    condition: nodes.Comparison | nodes.Between | nodes.Is
    tolerance: Number
    surroundings: Surroundings

    @property
    def bounds(self) -> tuple[nodes.Expression, ...]:
        return nodes.bounds_of(self.condition)

    def requests(self) -> list[RequestedValue]:
        """The metric requests of all sides, each as often as it occurs."""
        sides = (self.expression, *self.bounds)
        return [request for side in sides for request in requests_in(side, self.surroundings)]

    def repeats_a_count(self) -> bool:
        """True if a request with an integer value occurs more than once."""
        counts = [
            request
            for request in self.requests()
            if range_of(request.call, self.surroundings).is_whole
        ]
        return len(set(counts)) < len(counts)
