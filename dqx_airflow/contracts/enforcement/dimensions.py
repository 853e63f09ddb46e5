"""The quality dimension of a rule, in the terms of ODCS: its own, or that of its demand."""

from __future__ import annotations

from dqx_airflow.contracts.model import Promise, Rule


def dimension_of(rule: Rule | Promise) -> str | None:
    """The dimension in lower case; None if neither the rule nor its demand has one.

    >>> from dqx_airflow.contracts.demands import Required
    >>> dimension_of(Rule("required", Required(), ()))
    'completeness'
    """
    if rule.dimension:
        return rule.dimension.lower()
    return rule.demand.dimension if isinstance(rule, Rule) else None
