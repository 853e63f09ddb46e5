"""Examples in a contract that break the contract itself: found in memory, without Spark."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from dqx_airflow.contracts.compile import compile_contract
from dqx_airflow.contracts.example_values import NoValueError, held, text_of
from dqx_airflow.contracts.model import (
    VALUE_DEMANDS,
    Contract,
    Demand,
    Field,
    Model,
    Required,
    RowsSatisfy,
    Rule,
    Unique,
)
from dqx_airflow.contracts.places import spark_type
from dqx_airflow.dql.check import check_source
from dqx_airflow.metrics.types import canonical_type
from dqx_airflow.plan.evaluate import evaluate
from dqx_airflow.plan.resolve import resolve
from dqx_airflow.reference.measure import measure
from dqx_airflow.reference.table import Table
from dqx_airflow.values import DatasetRef, SourceFile, Span, Status
from dqx_airflow.values import Field as Column

_ANY_DAY = date(2000, 1, 1)
_OF_ROWS = (*VALUE_DEMANDS, Required, RowsSatisfy, Unique)
_NESTED = ("array", "map", "struct")
_LONGEST_VALUE = 60
_COLUMN = "value"


@dataclass(frozen=True, slots=True)
class BrokenExample:
    """An example that is no value of its field, or that breaks a rule: None for the first.

    `value` is None for rows that break a rule together. `place` is where the example stands, as far
    as it is known: its field or its model.
    """

    path: str
    value: str | None
    place: Span
    rule: Rule | None = None


def broken_examples(contract: Contract) -> Iterator[BrokenExample]:
    """The examples of fields and models that the contract itself would turn down."""
    for model in contract.models:
        for item in model.walk():
            yield from _of_field(contract, model, item)
        yield from _of_model(contract, model)


def _of_field(contract: Contract, model: Model, item: Field) -> Iterator[BrokenExample]:
    """What is nested is held against its rules as if it were a column."""
    if item.type in _NESTED:
        return
    path = f"{model.name}.{item.path}"
    column = replace(item, name=_COLUMN, path=_COLUMN)
    alone = replace(model, fields=(column,), rules=())
    for example in item.examples:
        try:
            value = held(example, _type_of(item))
        except NoValueError as error:
            yield BrokenExample(path, _shown(error.text), item.span)
            continue
        if value is not None:
            for rule in _broken_rules(contract, alone, (column,), [[value]], VALUE_DEMANDS):
                yield BrokenExample(path, _shown(text_of(example)), item.span, rule)


def _of_model(contract: Contract, model: Model) -> Iterator[BrokenExample]:
    for example in model.examples:
        columns, cells = _table_of(example)
        nested = _NESTED if isinstance(example, str) else ()
        known = {item.name: item for item in model.fields if item.type not in nested}
        fields = tuple(known[name] for name in columns if name in known)
        if not fields or not cells:
            continue
        rows: list[list[Any]] = [[None] * len(fields) for _ in cells]
        for position, item in enumerate(fields):
            place = columns.index(item.name)
            for number, row in enumerate(cells):
                try:
                    cell = row[place] if place < len(row) else None
                    rows[number][position] = held(cell, _type_of(item))
                except NoValueError as error:
                    path = f"{model.name}.{item.path}"
                    yield BrokenExample(path, _shown(error.text), model.span)
        named = {item.path for item in fields}
        kept = replace(
            model,
            fields=fields,
            rules=tuple(rule for rule in model.rules if _columns_of(rule.demand) <= named),
        )
        for rule in _broken_rules(contract, kept, fields, rows, _OF_ROWS):
            yield BrokenExample(model.name, None, model.span, rule)


def _broken_rules(
    contract: Contract,
    model: Model,
    fields: Sequence[Field],
    rows: Sequence[Sequence[Any]],
    demands: tuple[type[Demand], ...],
) -> Iterator[Rule]:
    """The rules with one of these demands that rows break."""

    def kept(rules: Sequence[Rule]) -> tuple[Rule, ...]:
        return tuple(rule for rule in rules if isinstance(rule.demand, demands))

    def narrowed(item: Field) -> Field:
        return replace(
            item,
            rules=kept(item.rules),
            fields=tuple(map(narrowed, item.fields)),
            items=item.items and narrowed(item.items),
            keys=item.keys and narrowed(item.keys),
            values=item.values and narrowed(item.values),
        )

    asked = replace(model, fields=tuple(map(narrowed, model.fields)), rules=kept(model.rules))
    compiled = compile_contract(replace(contract, models=(asked,), notes=()))
    rules = dict(compiled.enforced)
    source = SourceFile("examples.dql", compiled.text)
    suite = check_source(source).suite
    if not rules or suite is None:
        return
    columns = tuple(Column(item.name, _type_of(item)) for item in fields)
    table = Table(columns, tuple(map(tuple, rows)))
    refs = (DatasetRef(model.name, table=model.name),)
    plan = resolve(suite, source, refs, _ANY_DAY, allow_empty=True)
    # What only Spark can answer is an error here, and says nothing about the examples.
    for verdict in evaluate(plan, measure(plan, refs, {model.name: table})):
        if verdict.status is Status.FAILED and verdict.name in rules:
            yield rules[verdict.name]


def _table_of(example: object) -> tuple[list[str], list[list[object]]]:
    """The columns and rows of an example: a text of CSV, or a mapping for each row."""
    if isinstance(example, str):
        lines = [line for line in csv.reader(io.StringIO(example.strip())) if line]
        names = [name.strip() for name in lines[0]] if lines else []
        return names, [[cell if cell else None for cell in line] for line in lines[1:]]
    rows = example if isinstance(example, list) else [example]
    mappings = [row for row in rows if isinstance(row, dict)]
    names = list(dict.fromkeys(str(name) for row in mappings for name in row))
    return names, [[row.get(name) for name in names] for row in mappings]


def _columns_of(demand: Demand) -> set[str]:
    return set(demand.columns) if isinstance(demand, Unique) else set()


def _type_of(item: Field) -> str:
    return canonical_type(spark_type(item))


def _shown(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 3] + "..."
