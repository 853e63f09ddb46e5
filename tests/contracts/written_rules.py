"""Contracts as bare rules, the notation of test cases.

    model orders
    column id string
    id.required = Required()
    id.pattern 99% P2 = Pattern("^A")
    .row_count = Measured("num_rows", (), Condition(">", 0))

A rule stands behind the path of its field and a dot, one of the model behind the dot alone; before
the sign may stand a share, a severity, a dimension. A nested type makes fields of its own:
`tags[]`, `lines[].price`, `prices{value}`. The line of a rule is the line of its clause.
"""

from __future__ import annotations

import re
from dataclasses import replace

from dqx_airflow.contracts import demands
from dqx_airflow.contracts.field_types import with_type
from dqx_airflow.contracts.model import Clause, Contract, Dialect, Field, Model, Rule, column_path
from dqx_airflow.values import Severity, Span

_RULE = re.compile(r"(?P<path>.*?)\.(?P<name>\w+)(?P<options>( \S+)*?) = (?P<demand>.+)")
_COLUMN = re.compile(r"column (?P<name>`[^`]+`|\S+)(?: (?P<type>.+))?")
_WORDS = ("array", "map", "struct", "number", "whole_number", "text", "any")


def written_contract(text: str) -> Contract:
    models: list[Model] = []
    for number, line in enumerate(text.splitlines(), start=1):
        span = Span("contract.txt", number, 1, number, len(line) + 1)
        if not line.strip():
            continue
        if line.startswith("model "):
            name, _, location = line.removeprefix("model ").partition(" at ")
            models.append(Model(name, span, location=location or None))
        elif found := _COLUMN.fullmatch(line):
            column = _column(found["name"].strip("`"), found["type"], span)
            models[-1] = replace(models[-1], fields=(*models[-1].fields, column))
        else:
            models[-1] = _with_rule(models[-1], line, span)
    return Contract(Dialect.DCS, "1.1.0", "test", "1.0.0", models[0].span, models=tuple(models))


def _column(name: str, written: str | None, span: Span) -> Field:
    item = Field(name, column_path(name), None, span)
    if written is None:
        return item
    return replace(item, type=written) if written in _WORDS else with_type(item, written)


def _with_rule(model: Model, line: str, span: Span) -> Model:
    found = _RULE.fullmatch(line)
    assert found, f"no rule: {line}"
    demand = eval(found["demand"], vars(demands))
    rule = Rule(found["name"], demand, (Clause(line, "", span),))
    for option in found["options"].split():
        if option.endswith("%"):
            rule = replace(rule, share=float(option[:-1]) / 100)
        elif option in list(Severity):
            rule = replace(rule, severity=Severity(option))
        else:
            rule = replace(rule, dimension=option)
    if not found["path"]:
        return replace(model, rules=(*model.rules, rule))
    assert model.field_at(found["path"]), f"no field {found['path']}"
    return replace(model, fields=tuple(_added(f, found["path"], rule) for f in model.fields))


def _added(item: Field | None, path: str, rule: Rule) -> Field | None:
    """The field with a rule more, at itself or at what is nested in it."""
    if item is None:
        return None
    if item.path == path:
        return replace(item, rules=(*item.rules, rule))
    return replace(
        item,
        fields=tuple(_added(inner, path, rule) for inner in item.fields),
        items=_added(item.items, path, rule),
        keys=_added(item.keys, path, rule),
        values=_added(item.values, path, rule),
    )
