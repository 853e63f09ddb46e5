"""Names of rules, spelled alike by the readers of all dialects."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import replace

from dqx_airflow.contracts.model import Rule

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
    """The name, with a number if it is taken already; it is added to those."""
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    taken.add(name)
    return name
