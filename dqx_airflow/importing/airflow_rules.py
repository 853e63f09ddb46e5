"""Rule sets of Airflow's own data quality provider (`common.dataquality`), as YAML or JSON.

A rule compares an observed value with bounds, which a `tolerance` widens by a share of themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from dqx_airflow.contracts.demands import Condition, QueryGives
from dqx_airflow.contracts.dialects.foreign import Translation, severity_of
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.importing import foreign_rule
from dqx_airflow.importing.foreign_rule import ForeignRule

_LOWER = {"greater_than": ">", "geq_to": ">="}
_UPPER = {"less_than": "<", "leq_to": "<="}
_MEASURES = {"name", "check", "condition", "column", "sql", "severity", "partition_clause"}
_KEYS = _MEASURES | {"previous_name", "id", "description", "dimension"}
_NO_ROWS = "if no row meets the clause, the rule fails in Airflow but passes here"


def recognises(document: Any) -> bool:
    rules = document.get("rules") if isinstance(document, Mapping) else None
    return isinstance(rules, list) and any(
        isinstance(rule, Mapping) and {"check", "condition"} <= {*rule} for rule in rules
    )


def rules_of(
    document: Mapping[str, Any], request: foreign_rule.ImportRequest
) -> Iterator[ForeignRule]:
    """The rules of a set, which name no table: its name is the dataset by default."""
    dataset = request.dataset or str(document.get("name") or "data")
    for number, rule in enumerate(document["rules"]):
        place = f"{request.file}: rules[{number}]"
        if not isinstance(rule, Mapping):
            yield ForeignRule(dataset, place, foreign_rule.yaml_line(rule), "this is not a rule")
            continue
        # SQL is judged as it stands: the clause is added to built-in checks only.
        is_query = rule.get("check") == "custom_sql"
        where = None if is_query else str(rule.get("partition_clause") or "") or None
        meaning = foreign_rule.meaning_or_reason(partial(_meaning, rule))
        named, shown = foreign_rule.name_in(rule), foreign_rule.yaml_line(rule)
        severity = severity_of(rule.get("severity", "error"))
        difference = _NO_ROWS if where and rule.get("check") == "null_count" else None
        of_rule = ForeignRule(dataset, place, shown, meaning, named, severity, where)
        yield replace(of_rule, difference=difference)


def _meaning(rule: Mapping[str, Any]) -> foreign_rule.Meaning:
    """:raises NoCounterpartError: the provider would refuse the rule, or DQL has nothing for it."""
    if unknown := sorted({*map(str, rule)} - _KEYS):
        raise NoCounterpartError(f"it has the unknown key {unknown[0]}")
    check, bounds = rule.get("check"), _bounds(rule.get("condition"))
    if check == "custom_sql":
        query = foreign_rule.sql_text(rule.get("sql")).replace("{table}", "{model}")
        demands = tuple(QueryGives(query, Condition(op, bound)) for op, bound in bounds)
        return Translation("custom_sql", demands)
    checks = foreign_rule.listed_rules("airflow: checks")
    if check not in checks:
        raise NoCounterpartError(f"there is no check {check!r}")
    (observed,) = checks[check]
    column = foreign_rule.column_text(rule.get("column")) if "{}" in observed else None
    subject = observed.format(column)
    return foreign_rule.Claims(
        check, tuple(f"{subject} {op} {foreign_rule.value_text(to)}" for op, to in bounds), column
    )


def _bounds(condition: Any) -> list[tuple[str, int | float]]:
    """The comparisons of a condition, all of which must hold.

    :raises NoCounterpartError: it has no comparison, or one that the provider does not accept.
    """
    given = {key: value for key, value in {**condition}.items() if value is not None}
    tolerance = given.pop("tolerance", None)
    if unknown := sorted({*given} - {"equal_to", *_LOWER, *_UPPER}):
        raise NoCounterpartError(f"its condition has the unknown key {unknown[0]}")
    if not given or ("equal_to" in given and len(given) > 1):
        raise NoCounterpartError("its condition needs `equal_to`, or bounds without it")
    bounds: list[tuple[str, int | float]] = []
    for key, value in given.items():
        bound = foreign_rule.finite(value)
        margin = abs(bound) * foreign_rule.finite(tolerance) if tolerance is not None else 0
        if key in _LOWER or (key == "equal_to" and margin):
            bounds.append((_LOWER.get(key, ">="), bound - margin))
        if key in _UPPER or (key == "equal_to" and margin):
            bounds.append((_UPPER.get(key, "<="), bound + margin))
        if key == "equal_to" and not margin:
            bounds.append(("==", bound))
    return bounds
