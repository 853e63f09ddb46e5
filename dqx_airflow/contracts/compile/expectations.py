"""Rules as expectations of Great Expectations."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from dqx_airflow.contracts.compile import terms
from dqx_airflow.contracts.demand import Demand
from dqx_airflow.contracts.model import Field, Model, Rule, plain_name
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.values import Severity

_SEVERITIES = {
    Severity.P0: "critical",
    Severity.P1: "critical",
    Severity.P2: "warning",
    Severity.P3: "info",
}


@dataclass(frozen=True, slots=True)
class Expectation:
    """An expectation: its name, and its arguments in order."""

    type: str
    kwargs: dict[str, Any]
    severity: str | None = field(default=None)

    def as_plain(self) -> dict[str, Any]:
        severity = {} if self.severity is None else {"severity": self.severity}
        return {"type": self.type, "kwargs": self.kwargs, **severity}


@dataclass(frozen=True, slots=True)
class ExportedRule:
    """The rule to export as an expectation, and its context. `item` is None for a model."""

    model: Model
    item: Field | None
    rule: Rule

    @property
    def column(self) -> str:
        return plain_name(self.item.path) if self.item is not None else ""

    @property
    def sql_column(self) -> str:
        return terms.sql_name(self.item.path if self.item is not None else "")

    @property
    def mostly(self) -> dict[str, float]:
        return {"mostly": self.rule.share} if self.rule.share < 1 else {}

    def of(self, demand: Demand) -> Expectation:
        """The expectation of another demand at the position of this rule.

        :raises NoCounterpartError: there is none.
        """
        return replace(self, rule=replace(self.rule, demand=demand)).expectation()

    def expectation(self) -> Expectation:
        """The expectation that is equivalent to a rule.

        :raises NoCounterpartError: there is none.
        """
        if self.item is not None and self.item not in self.model.fields:
            raise NoCounterpartError("Great Expectations has no names for nested columns")
        expectation = self.rule.demand.expectation(self)
        if self.rule.severity is None:
            return expectation
        return replace(expectation, severity=_SEVERITIES[self.rule.severity])


def unexpected_rows(query: str) -> Expectation:
    """The expectation that a query finds no rows, for demands that only SQL can express."""
    return Expectation("unexpected_rows_expectation", {"unexpected_rows_query": query})


def rows_where(wrong: str, share: float = 1.0) -> Expectation:
    """The expectation that a predicate is true for no row.

    :raises NoCounterpartError: a share of them may exist.
    """
    if share < 1:
        message = "Great Expectations permits no share of rows that a query finds"
        raise NoCounterpartError(message)
    return unexpected_rows(f"SELECT * FROM {{batch}} WHERE {wrong}")  # noqa: S608
