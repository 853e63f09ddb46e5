"""Examples and defaults of a contract that the contract itself rejects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import islice
from typing import Any

from dqx_airflow.contracts import demands
from dqx_airflow.contracts import model as elements
from dqx_airflow.contracts.compile.suite import compile_contract
from dqx_airflow.contracts.field_types import spark_type
from dqx_airflow.diagnostics.diagnostic import slip_of
from dqx_airflow.metrics.spark_values import order_key
from dqx_airflow.metrics.types import Family, canonical_type, family_of, fields_of, parts_of
from dqx_airflow.plan.evaluate import evaluate
from dqx_airflow.plan.in_memory.measure import measure
from dqx_airflow.plan.in_memory.table import Table, value_of
from dqx_airflow.plan.resolve import QUIET, resolve
from dqx_airflow.values import DatasetField as Column
from dqx_airflow.values import DatasetRef, SourceFile, Span, Status


class NoValueError(ValueError):
    """The text is not a value of a type."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def held(value: object, spark_type: str) -> Any:
    """A value of a document, converted to a Spark type.

    :raises NoValueError: it is not a value of the type, or contains a value that is not.
    """
    if value is None:
        return None
    family = family_of(spark_type)
    types = parts_of(spark_type)
    match value:
        case list() if family is Family.ARRAY:
            return tuple(held(item, types[0]) for item in value)
        case dict() if family is Family.MAP:
            pairs = [(held(key, types[0]), held(item, types[1])) for key, item in value.items()]
            return tuple(sorted(pairs, key=lambda pair: order_key(pair[0])))
        case dict() if fields := fields_of(spark_type):
            return {name: held(value.get(name), inner) for name, inner in fields.items()}
    is_nested = family in (Family.ARRAY, Family.MAP) or bool(fields_of(spark_type))
    converted = None if is_nested else value_of(demands.literal_text(value), spark_type)
    if converted is None:
        raise NoValueError(demands.literal_text(value))
    return converted


_ANY_DAY = date(2000, 1, 1)
_OF_ROWS = (demands.ValueDemand, demands.Required, demands.RowsSatisfy, demands.Unique)
_NESTED = ("array", "map", "struct")
_LONGEST_VALUE = 60
_MOST_ROWS = 50
"""At most this many rows that break a rule are counted."""
_COLUMN = "value"


@dataclass(frozen=True, slots=True)
class BrokenExample:
    """An example, or a default, that is not a value of its field, or violates a rule.

    `what` describes it, with row, column and value; `kind` is "example" or "default".
    """

    what: str
    place: Span
    rule: elements.Rule | None = None
    kind: str = "example"


def broken_examples(contract: elements.Contract) -> Iterator[BrokenExample]:
    """The examples of fields and models, and the defaults, that the contract itself rejects."""
    for model in contract.models:
        for item in model.walk():
            yield from _of_field(contract, model, item)
        for example in model.examples:
            yield from _Rows(contract, model, example).broken()


def _of_field(
    contract: elements.Contract, model: elements.Model, item: elements.Field
) -> Iterator[BrokenExample]:
    """The examples and the default of a field that its type or its rules reject. A nested field is
    checked like a column."""
    if item.type in _NESTED:
        return
    path = f"{model.name}.{item.path}"
    spans = (*item.example_spans, *[item.span] * len(item.examples))
    examples = [("example", *pair) for pair in zip(item.examples, spans, strict=False)]
    if item.has_default and item.default is not None:
        examples.append(("default", item.default, item.span))
    for kind, example, span in examples:
        shown = _shown(demands.literal_text(example))
        try:
            value = held(example, _type_of(item))
        except NoValueError as error:
            message = f"the {kind} {_shown(error.text)} of {path} is not of type {_type_of(item)}"
            yield BrokenExample(message, span, None, kind)
            continue
        if value is not None:
            column = replace(item, name=_COLUMN, path=_COLUMN)
            alone = replace(model, fields=(column,), rules=())
            for rule in _broken_rules(
                contract, alone, (column,), [[value]], (demands.ValueDemand,)
            ):
                yield BrokenExample(f"the {kind} {shown} of {path} is rejected", span, rule, kind)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Example rows of a model, checked against its rules."""

    contract: elements.Contract
    model: elements.Model
    example: elements.ExampleRows

    def broken(self) -> Iterator[BrokenExample]:
        """The columns that the model does not have, the cells that are not values of their type,
        and the rows that violate a rule."""
        yield from self._unknown_columns()
        fields = self._fields()
        if not fields or not self.example.rows:
            return
        rows: list[list[Any]] = [[] for _ in self.example.rows]
        for item in fields:
            for number, cell in enumerate(self._cells(item)):
                try:
                    rows[number].append(held(cell, _type_of(item)))
                except NoValueError as error:
                    rows[number].append(None)
                    message = f"{_shown(error.text)} in {item.path} is not of type {_type_of(item)}"
                    yield self._in_row(number, message)
        named = {item.path for item in fields}
        rules = tuple(rule for rule in self.model.rules if set(rule.demand.key) <= named)
        kept = replace(self.model, fields=tuple(fields), rules=rules)
        for rule in _broken_rules(self.contract, kept, fields, rows, _OF_ROWS):
            yield from self._rows_of(rule, fields, rows)

    def _fields(self) -> list[elements.Field]:
        """The fields with a column in the examples, and those that must not be NULL."""
        columns = {name.lower() for name in self.example.columns}
        nested = _NESTED if self.example.is_text else ()
        known = {item.name: item for item in self.model.fields if item.type not in nested}
        return [
            item for name, item in known.items() if name.lower() in columns or not item.is_nullable
        ]

    def _cells(self, item: elements.Field) -> list[object]:
        """The cells of a field, by row; None where a row has none."""
        columns = [name.lower() for name in self.example.columns]
        if item.name.lower() not in columns:
            return [None for _ in self.example.rows]
        place = columns.index(item.name.lower())
        return [row[place] if place < len(row) else None for row in self.example.rows]

    def _unknown_columns(self) -> Iterator[BrokenExample]:
        names = [item.name for item in self.model.fields]
        for column in self.example.columns if names else ():
            meant = slip_of(column, names)
            is_there = column.lower() in [name.lower() for name in names]
            if not is_there and (meant is not None or self.model.is_closed):
                hint = f": did you mean '{meant}'?" if meant else ""
                message = (
                    f"the examples of {self.model.name} have a column '{column}', but the model"
                )
                yield BrokenExample(f"{message} has none{hint}", self.example.span)

    def _rows_of(
        self, rule: elements.Rule, fields: Sequence[elements.Field], rows: Sequence[Sequence[Any]]
    ) -> Iterator[BrokenExample]:
        """The rows that violate a rule; one result for all rows if the rule compares several."""
        owner = next(
            (item for item in fields for nested in item.walk() if rule in nested.rules), None
        )
        if isinstance(rule.demand, demands.Unique):
            yield from self._repeated(rule, fields, rows)
            return
        kept = tuple(fields) if owner is None else (owner,)
        model = replace(self.model, fields=kept, rules=() if owner else (rule,))
        places = [fields.index(item) for item in kept]

        def broken_rows(first: int, end: int) -> Iterator[int]:
            cells = [[row[place] for place in places] for row in rows[first:end]]
            middle = (first + end) // 2
            if rule not in _broken_rules(self.contract, model, kept, cells, _OF_ROWS):
                return
            if middle == first:
                yield first
                return
            yield from broken_rows(first, middle)
            yield from broken_rows(middle, end)

        broken = [*islice(broken_rows(0, len(rows)), _MOST_ROWS)]
        if broken:
            message = "it is rejected"
            if owner is not None:
                cell = _cell(rows[broken[0]][places[0]])
                message = f"{owner.path} is {'rejected' if owner.type in _NESTED else cell}"
            more = f", and {len(broken) - 1} more of this kind" if len(broken) > 1 else ""
            yield self._in_row(broken[0], message + more, rule)

    def _repeated(
        self, rule: elements.Rule, fields: Sequence[elements.Field], rows: Sequence[Sequence[Any]]
    ) -> Iterator[BrokenExample]:
        assert isinstance(rule.demand, demands.Unique)
        paths = [item.path for item in fields]
        places = [paths.index(column) for column in rule.demand.columns]
        seen: dict[tuple[Any, ...], int] = {}
        for number, row in enumerate(rows):
            key = tuple(row[place] for place in places)
            first = seen.setdefault(key, number)
            if first != number and None not in key:
                shown = ", ".join(map(_cell, key))
                columns = ", ".join(rule.demand.columns)
                message = f"{columns} is {shown}, the same as in row {first + 1}"
                yield self._in_row(number, message, rule)

    def _in_row(
        self, number: int, message: str, rule: elements.Rule | None = None
    ) -> BrokenExample:
        spans = self.example.row_spans
        place = spans[number] if number < len(spans) else self.example.span
        where = f"row {number + 1} of the examples of {self.model.name}"
        return BrokenExample(f"{where}: {message}", place, rule)


def _cell(value: object) -> str:
    return "missing" if value is None else _shown(demands.literal_text(value))


def _broken_rules(
    contract: elements.Contract,
    model: elements.Model,
    fields: Sequence[elements.Field],
    rows: Sequence[Sequence[Any]],
    demands: tuple[type[demands.Demand], ...],
) -> Iterator[elements.Rule]:
    """The rules that rows violate."""
    narrowed = model.narrowed(lambda demand: isinstance(demand, demands))
    compiled = compile_contract(replace(contract, models=(narrowed,), notes=()))
    rules = dict(compiled.enforced)
    if not rules:
        return
    columns = tuple(Column(item.name, _type_of(item)) for item in fields)
    table = Table(columns, tuple(map(tuple, rows)))
    refs = (DatasetRef(model.name, table=model.name),)
    source = SourceFile("suite.dql", compiled.text)
    plan = resolve(compiled.checked.valid_suite, source, refs, _ANY_DAY, QUIET)
    # What only Spark can evaluate is an error here, and proves nothing about the examples.
    for verdict in evaluate(plan, measure(plan, refs, {model.name: table})):
        if verdict.status is Status.FAILED and verdict.name in rules:
            yield rules[verdict.name]


def _type_of(item: elements.Field) -> str:
    return canonical_type(spark_type(item))


def _shown(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 3] + "..."
