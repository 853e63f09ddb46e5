"""Examples in a contract that break the contract itself: found in memory, without Spark."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

from dqx_airflow.contracts.compile import compile_contract
from dqx_airflow.contracts.model import (
    VALUE_DEMANDS,
    Contract,
    Demand,
    Field,
    Literal,
    Model,
    Required,
    RowsSatisfy,
    Rule,
    Unique,
)
from dqx_airflow.contracts.places import spark_type
from dqx_airflow.dql.check import check_source
from dqx_airflow.plan.evaluate import evaluate
from dqx_airflow.plan.resolve import resolve
from dqx_airflow.reference.measure import measure
from dqx_airflow.reference.table import Table
from dqx_airflow.reference.texts import value_of
from dqx_airflow.values import DatasetRef, SourceFile, Span, Status

_ANY_DAY = date(2000, 1, 1)
_OF_ROWS = (*VALUE_DEMANDS, Required, RowsSatisfy, Unique)
_NESTED = ("array", "map", "struct")
_LONGEST_VALUE = 60


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
        for item in model.fields:
            yield from _of_field(contract, model, item)
        yield from _of_model(contract, model)


def _of_field(contract: Contract, model: Model, item: Field) -> Iterator[BrokenExample]:
    path = f"{model.name}.{item.path}"
    texts = [_text(value) for value in item.examples if value is not None]
    if item.type in _NESTED or not texts:
        return
    sound = []
    for text in texts:
        if value_of(text, spark_type(item)) is None:
            yield BrokenExample(path, _shown(text), item.span)
        else:
            sound.append(text)
    alone = replace(model, fields=(item,), rules=())
    for text in sound:
        rows = [[text]]
        for rule in _broken_rules(contract, alone, (item,), rows, VALUE_DEMANDS):
            yield BrokenExample(path, _shown(text), item.span, rule)


def _of_model(contract: Contract, model: Model) -> Iterator[BrokenExample]:
    for example in model.examples:
        columns, rows = _table_of(example)
        known = {item.name: item for item in model.fields if item.type not in _NESTED}
        fields = tuple(known[name] for name in columns if name in known)
        if not fields or not rows:
            continue
        places = [position for position, name in enumerate(columns) if name in known]
        cells = [[row[place] if place < len(row) else None for place in places] for row in rows]
        for position, item in enumerate(fields):
            for row in cells:
                text = row[position]
                if text is not None and value_of(text, spark_type(item)) is None:
                    yield BrokenExample(f"{model.name}.{item.path}", _shown(text), model.span)
        named = {item.path for item in fields}
        kept = replace(
            model,
            fields=fields,
            rules=tuple(rule for rule in model.rules if _columns_of(rule.demand) <= named),
        )
        for rule in _broken_rules(contract, kept, fields, cells, _OF_ROWS):
            yield BrokenExample(model.name, None, model.span, rule)


def _broken_rules(
    contract: Contract,
    model: Model,
    fields: Sequence[Field],
    rows: Sequence[Sequence[str | None]],
    demands: tuple[type[Demand], ...],
) -> Iterator[Rule]:
    """The rules with one of these demands that rows of texts break."""

    def kept(rules: Sequence[Rule]) -> tuple[Rule, ...]:
        return tuple(rule for rule in rules if isinstance(rule.demand, demands))

    narrowed = replace(
        model,
        fields=tuple(replace(item, rules=kept(item.rules)) for item in model.fields),
        rules=kept(model.rules),
    )
    compiled = compile_contract(replace(contract, models=(narrowed,), notes=()))
    rules = dict(compiled.enforced)
    source = SourceFile("examples.dql", compiled.text)
    suite = check_source(source).suite
    if not rules or suite is None:
        return
    table = Table.cast({item.name: spark_type(item) for item in fields}, rows)
    typed = Table(table.fields, tuple(row[: len(fields)] for row in table.rows))
    refs = (DatasetRef(model.name, table=model.name),)
    plan = resolve(suite, source, refs, _ANY_DAY, allow_empty=True)
    # What only Spark can answer is an error here, and says nothing about the examples.
    for verdict in evaluate(plan, measure(plan, refs, {model.name: typed})):
        if verdict.status is Status.FAILED and verdict.name in rules:
            yield rules[verdict.name]


def _table_of(example: object) -> tuple[list[str], list[list[str | None]]]:
    """The columns and rows of an example: a text of CSV, or a mapping for each row."""
    if isinstance(example, str):
        lines = [line for line in csv.reader(io.StringIO(example.strip())) if line]
        names = [name.strip() for name in lines[0]] if lines else []
        return names, [[cell if cell else None for cell in line] for line in lines[1:]]
    rows = example if isinstance(example, list) else [example]
    mappings = [row for row in rows if isinstance(row, dict)]
    names = list(dict.fromkeys(str(name) for row in mappings for name in row))
    return names, [[_cell(row.get(name)) for name in names] for row in mappings]


def _cell(value: object) -> str | None:
    return None if value is None else _text(value)


def _columns_of(demand: Demand) -> set[str]:
    return set(demand.columns) if isinstance(demand, Unique) else set()


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _shown(text: Literal) -> str:
    written = str(text)
    return written if len(written) <= _LONGEST_VALUE else written[: _LONGEST_VALUE - 3] + "..."
