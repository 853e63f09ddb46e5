"""Names of rules, which are unique within a column or a model."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeAlias

from dqx_airflow.contracts.model import Model, Rule

_LONGEST = 60


def slug(text: str) -> str:
    """A text as the name of a rule: `null_values` for `Null values!` and for `nullValues`."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    separated = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", plain)
    return re.sub(r"[^a-z0-9]+", "_", separated.lower())[:_LONGEST].strip("_")


def with_unique_names(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The rules with unique names: the second `sql` becomes `sql_2`. Equal rules become one."""
    equal_rules: dict[Rule, list[Rule]] = {}
    for rule in rules:
        equal_rules.setdefault(rule, []).append(rule)
    taken: set[str] = set()
    renamed = []
    for rule, same in equal_rules.items():
        clauses = tuple(clause for duplicate in same for clause in duplicate.clauses)
        renamed.append(replace(rule, name=unique_name(rule.name, taken), clauses=clauses))
    return tuple(renamed)


def unique_name(wanted: str, taken: set[str]) -> str:
    """Returns `wanted`, or `wanted_2` and so on if it is taken, and adds it to `taken`."""
    name = wanted
    number = 1
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    taken.add(name)
    return name


PlacedRule: TypeAlias = "tuple[str | None, Rule]"
"""A rule with the path of its column; None for a rule about the model."""
RuleOfModel: TypeAlias = "tuple[str, str | None, Rule]"
"""A rule with its model and the path of its column; None for a rule about the model."""


def with_rules(model: Model, placed: Iterable[PlacedRule]) -> Model:
    """The model with further rules: rules about a field are added to the field; rules about the
    model, and about columns that it does not have, to the model."""
    rules_of: dict[str | None, list[Rule]] = {item.path: [*item.rules] for item in model.fields}
    rules_of[None] = [*model.rules]
    for path, rule in placed:
        rules_of.get(path, rules_of[None]).append(rule)
    unique = {path: with_unique_names(rules) for path, rules in rules_of.items()}
    fields = tuple(replace(item, rules=unique[item.path]) for item in model.fields)
    return replace(model, fields=fields, rules=unique[None])
