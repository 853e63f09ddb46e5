"""Rules that a document writes apart from the fields that they are about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from dqx_airflow.contracts.dialects.naming import with_unique_names
from dqx_airflow.contracts.model import Field, Rule

PlacedRule: TypeAlias = "tuple[str | None, Rule]"
"""A rule with the path of its column; None for a rule about the model."""
RuleOfModel: TypeAlias = "tuple[str, str | None, Rule]"
"""A rule with its model and the path of its column; None for a rule about the model."""


def with_rules(fields: Iterable[Field], placed: Iterable[PlacedRule]) -> tuple[Field, ...]:
    """The fields with the rules about them."""
    rules_of: dict[str | None, list[Rule]] = {}
    for path, rule in placed:
        rules_of.setdefault(path, []).append(rule)
    return tuple(
        replace(item, rules=with_unique_names((*item.rules, *rules_of.get(item.path, ()))))
        for item in fields
    )


def rules_of_no_field(fields: Iterable[Field], placed: Iterable[PlacedRule]) -> Iterator[Rule]:
    """The rules about the model, and those for columns that it does not have."""
    paths = {item.path for item in fields}
    return (rule for path, rule in placed if path not in paths)
