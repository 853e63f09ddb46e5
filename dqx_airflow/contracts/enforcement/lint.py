"""Finds mistakes of a contract before any data is read: contradictions, dates, clauses, examples.

Errors are mistakes that change the meaning of a contract: a broken reference, an example that
violates it. Warnings follow the practice of seed 003: a contract without an owner, or a column
without a meaning, is incomplete.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import combinations, islice, product
from typing import Any, TypeAlias

from dqx_airflow.contracts import demands
from dqx_airflow.contracts import model as elements
from dqx_airflow.contracts.compile.ecma_regex import BrokenPatternError, java_pattern
from dqx_airflow.contracts.compile.rule_context import RuleContext
from dqx_airflow.contracts.compile.suite import compile_contract
from dqx_airflow.contracts.dialects import reader_of
from dqx_airflow.contracts.dialects.personal_data import looks_personal
from dqx_airflow.contracts.field_types import spark_type
from dqx_airflow.contracts.mistakes import mistake
from dqx_airflow.diagnostics.diagnostic import Diagnostic, Related, did_you_mean, nearest, slip_of
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.metrics.spark_values import COMPARATORS, order_key
from dqx_airflow.metrics.types import Family, canonical_type, family_of, fields_of, parts_of
from dqx_airflow.plan.evaluate import evaluate
from dqx_airflow.plan.in_memory.measure import measure
from dqx_airflow.plan.in_memory.table import Table, value_of
from dqx_airflow.plan.resolve import QUIET, resolve
from dqx_airflow.values import DatasetField as Column
from dqx_airflow.values import DatasetRef, SourceFile, Span, Status
from dqx_airflow.values.files import table_rows


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
    family, types = family_of(spark_type), parts_of(spark_type)
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


_Place: TypeAlias = "tuple[str, str]"
"""A file, and a path in it."""

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
    """Nested fields are checked against their rules like columns."""
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
        columns = [name.lower() for name in self.example.columns]
        cells = self.example.rows
        yield from self._unknown_columns()
        nested = _NESTED if self.example.is_text else ()
        known = {item.name: item for item in self.model.fields if item.type not in nested}
        fields = [
            item for name, item in known.items() if name.lower() in columns or not item.is_nullable
        ]
        if not fields or not cells:
            return
        rows: list[list[Any]] = [[None] * len(fields) for _ in cells]
        for position, item in enumerate(fields):
            place = [*columns, item.name.lower()].index(item.name.lower())
            for number, row in enumerate(cells):
                cell = row[place] if place < len(row) else None
                try:
                    rows[number][position] = held(cell, _type_of(item))
                except NoValueError as error:
                    message = f"{_shown(error.text)} in {item.path} is not of type {_type_of(item)}"
                    yield self._in_row(number, message)
        named = {item.path for item in fields}
        rules = tuple(rule for rule in self.model.rules if set(rule.demand.key) <= named)
        kept = replace(self.model, fields=tuple(fields), rules=rules)
        for rule in _broken_rules(self.contract, kept, fields, rows, _OF_ROWS):
            yield from self._rows_of(rule, fields, rows)

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


def _dates(contract: elements.Contract) -> Iterator[Diagnostic]:
    """The contradictions in the lifecycle of a contract."""
    life = contract.lifecycle
    named = (
        ("effective date", life.effective_date),
        ("deprecation", life.deprecation_date),
        ("sunset", life.sunset_date),
    )
    days: dict[str, date] = {}
    for name, text in named:
        if (day := elements.day_of(text)) is not None:
            days[name] = day
        elif text is not None:
            yield mistake("no_date", _span_of(contract, text), name=name, written=text)
    for earlier, later in combinations(days, 2):
        if days[earlier] > days[later]:
            span = _span_of(contract, days[later].isoformat())
            parts = {"later": later, "on": days[later], "earlier": earlier}
            yield mistake("dates_in_disorder", span, before=days[earlier], **parts)
    deprecated, sunset = days.get("deprecation"), days.get("sunset")
    if deprecated is None or sunset is None or sunset < deprecated:
        return
    between = (sunset - deprecated).days
    periods = ((life.notice_days, "notice"), (life.dual_write_days, "dual writes"))
    for promised, period in periods:
        if promised is not None and promised > between:
            span = _span_of(contract, sunset.isoformat())
            parts = {"between": between, "promised": promised, "period": period}
            yield mistake("short_notice", span, **parts)


def _span_of(contract: elements.Contract, text: str) -> Span:
    """The position of a value of the lifecycle."""
    spans = (note.clause.span for note in contract.notes if note.clause.text.startswith(text))
    return next(spans, contract.span)


_UPPER, _LOWER = ("<", "<="), (">", ">=")
_ANY_CONDITION = demands.Condition("!=", 0)


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Rules that exclude each other, or a rule that excludes every value; `what` describes them."""

    rules: tuple[elements.Rule, ...]
    what: str


_ValueLimit: TypeAlias = "tuple[elements.Rule, str, demands.Literal]"
"""A bound of the values, or of their lengths: its rule, its comparison and its limit."""


def contradictions(contract: elements.Contract) -> Iterator[Contradiction]:
    """All contradictions of a contract, in its order."""
    for model in contract.models:
        for item in model.walk():
            yield from _among(item.rules)
        yield from _among(model.rules)


def _among(rules: Sequence[elements.Rule]) -> Iterator[Contradiction]:
    # A share of the rows leaves room for others.
    strict = [rule for rule in rules if rule.share >= 1]
    limits = [(rule, rule.demand) for rule in strict]
    bounds = [(rule, it.op, it.value) for rule, it in limits if isinstance(it, demands.Bound)]
    lengths = [(rule, it.op, it.count) for rule, it in limits if isinstance(it, demands.Length)]
    yield from _crossed(bounds, "minimum", "maximum")
    yield from _crossed(lengths, "least length", "greatest length")
    yield from _no_value_left(strict, [rule for rule, *_ in (*bounds, *lengths)])
    yield from _conditions(rules)
    for rule in rules:
        match rule.demand:
            case demands.Digits(precision=precision, scale=scale) if scale > precision:
                message = f"the scale {scale} is larger than the precision {precision}"
                yield Contradiction((rule,), message)
            case demands.Volume(low=low, high=high) if _is_above(low, high):
                yield Contradiction((rule,), f"the band starts at {low}, above its end at {high}")
            case demands.HourlyVolume(low=low, high=high) if _is_above(low, high):
                yield Contradiction((rule,), f"at least {low} rows per hour, but at most {high}")


def _crossed(limits: Sequence[_ValueLimit], least: str, most: str) -> Iterator[Contradiction]:
    for (rule, op, low), (other_rule, other_op, high) in product(limits, repeat=2):
        is_strict = "=" not in op or "=" not in other_op
        is_band = op in _LOWER and other_op in _UPPER
        if is_band and _is_above(low, high, or_equal=is_strict):
            message = f"the {least} {low} is above the {most} {high}"
            if low == high:
                message = f"no value is between {low} and {high}, which are excluded"
            yield Contradiction((rule, other_rule), message)


def _is_above(low: demands.Literal, high: demands.Literal, *, or_equal: bool = False) -> bool:
    """False for values that cannot be compared; dates are compared as ISO strings."""
    if isinstance(low, str) and isinstance(high, str):
        length = min(len(low), len(high))
        return low > high and low[:length] > high[:length]
    if isinstance(low, bool) or isinstance(high, bool):
        return False
    if isinstance(low, int | float) and isinstance(high, int | float):
        return low > high or (or_equal and low == high)
    return False


def _no_value_left(
    rules: Sequence[elements.Rule], limits: Sequence[elements.Rule]
) -> Iterator[Contradiction]:
    """The lists of values of which none satisfies the bounds next to it."""
    for rule in rules:
        if isinstance(rule.demand, demands.OneOf) and rule.demand.values:
            for limit in limits:
                kept = (_keeps(value, limit.demand) for value in rule.demand.values)
                if not any(kept):
                    yield Contradiction((rule, limit), "none of the values is within the limit")


def _keeps(value: demands.Literal, limit: object) -> bool:
    match limit:
        case demands.Length(op=op, count=count) if isinstance(value, str):
            return COMPARATORS[op](len(value), count)
        case demands.Bound(op=op, value=bound) if (
            isinstance(value, int | float)
            and isinstance(bound, int | float)
            and not isinstance(value, bool)
        ):
            return COMPARATORS[op](value, bound)
    return True


# Conditions on one number -------------------------------------------------------------------------


def _conditions(rules: Sequence[elements.Rule]) -> Iterator[Contradiction]:
    """Conditions on the same number that exclude each other, or that no number satisfies."""
    numbers: dict[object, list[tuple[elements.Rule, demands.Interval]]] = {}
    for rule in rules:
        match rule.demand:
            case demands.MetricRule() as demand:
                key: object = replace(demand, condition=_ANY_CONDITION)
            case demands.QueryGives(query=query):
                key = query
            case _:
                continue
        if len(accepted := rule.demand.condition.accepted) == 1:  # one that excludes no value alone
            numbers.setdefault(key, []).append((rule, accepted[0]))
    for group in numbers.values():
        for position, (rule, interval) in enumerate(group):
            if interval[0] > interval[1]:
                yield Contradiction((rule,), "no number is between these bounds")
                continue
            for other_rule, other in group[:position]:
                is_apart = max(other[0], interval[0]) >= min(other[1], interval[1])
                if other[0] <= other[1] and is_apart:
                    yield Contradiction((other_rule, rule), "no number satisfies both thresholds")


_SEMVER = re.compile(r"v?\d+\.\d+\.\d+([-+][\w.+-]+)?", re.ASCII)
_FORMAT = re.compile(r"^\s*v?\d+\s*$", re.ASCII)


@dataclass(frozen=True, slots=True)
class LintRule:
    """A lint rule: the name by which it is ignored, its code, its purpose, and the texts of its
    findings, if all of them have the same texts."""

    name: str
    code: str
    doc: str
    message: str = ""
    help: str = ""

    def find(self, contract: elements.Contract) -> Iterator[Diagnostic]:
        return _FINDERS[self.name](contract) if self.name in _FINDERS else self.mistakes(contract)

    def mistakes(self, contract: elements.Contract) -> Iterator[Diagnostic]:
        """The mistakes that the reader of the dialect found: one finding for each cause."""
        for note in _causes(note for note in contract.notes if note.code == self.code):
            named = f"{_parent(note)}: " if note.treatment is elements.Treatment.UNSUPPORTED else ""
            yield Diagnostic(f"{named}{note.reason}", note.clause.span, self.code, help=note.help)


RULES = tuple(LintRule(*row) for row in table_rows(__package__, "lint.txt", "rules"))
"""All rules, in the order of their findings."""
_BY_NAME = {rule.name: rule for rule in RULES}


def _finding(name: str, span: Span, *related: Related, **named: Any) -> Diagnostic:
    """A finding of a rule, with the values that its texts name."""
    rule = _BY_NAME[name]
    message, help_line = rule.message.format(**named), rule.help.format(**named)
    return Diagnostic(message, span, rule.code, related=related, help=help_line)


def lint(contract: elements.Contract, *, ignored: Collection[str] = ()) -> tuple[Diagnostic, ...]:
    """All findings of the rules, in the order of the document.

    :param ignored: names or codes of rules to ignore.
    """
    cannot_say = reader_of(contract.dialect).cannot_say
    diagnostics = [
        diagnostic
        for rule in RULES
        if rule.name not in {*ignored, *cannot_say} and rule.code not in ignored
        for diagnostic in rule.find(contract)
    ]
    diagnostics.sort(key=lambda item: (item.span.file, item.span.line, item.span.column))
    return tuple(dict.fromkeys(diagnostics))


def unknown_rules(names: Collection[str]) -> Iterator[tuple[str, str | None]]:
    """Unknown names of rules, each with the probably intended name."""
    known = [word for rule in RULES for word in (rule.name, rule.code)]
    for name in names:
        if name not in known:
            yield name, did_you_mean(name, [rule.name for rule in RULES])


def _causes(notes: Iterable[elements.Note]) -> Iterator[elements.Note]:
    """The first of the notes with the same text about the leaves of one rule."""
    seen: set[tuple[str, str, str]] = set()
    for note in notes:
        path = _parent(note)
        above = (path[:end] for end in range(len(path) + 1) if path[end : end + 1] in ("", "."))
        if not any((note.clause.span.file, part, note.reason) in seen for part in above):
            seen.add((note.clause.span.file, path, note.reason))
            yield note


def _parent(note: elements.Note) -> str:
    return note.clause.path.rpartition(".")[0]


def _spelling(contract: elements.Contract) -> Iterator[Diagnostic]:
    unread = _unread_places(contract)
    for key in contract.unknown_keys:
        if not key.is_check or (key.span.file, key.path) not in unread:
            hint = "remove it, or let the name of your own key begin with x-"
            hint = f"did you mean '{key.meant}'?" if key.meant else hint
            yield _finding("spelling", key.span, key=key.key, hint=hint)


def _constraints(contract: elements.Contract) -> Iterator[Diagnostic]:
    unread = _unread_places(contract)
    for key in contract.unknown_keys:
        is_accepted = contract.acceptance_of("", key.path) is not None
        if key.is_check and (key.span.file, key.path) in unread and not is_accepted:
            meant = f"write '{key.meant}'" if key.meant else "no key of the dialect states it here"
            yield _finding("constraints", key.span, key=key.key, meant=meant)


def _unread_places(contract: elements.Contract) -> Collection[_Place]:
    """The positions of unsupported clauses, and of the mappings and lists that enclose them. An
    unknown key at any other position is a spelling that the reader of the dialect accepts."""
    return {
        place
        for note in contract.notes
        if note.treatment is elements.Treatment.UNSUPPORTED
        for place in _places_above(note.clause)
    }


def _places_above(clause: elements.Clause) -> Iterator[_Place]:
    """The position of a clause, and the positions of the mappings and lists that enclose it."""
    path = clause.path
    yield clause.span.file, path
    for end, letter in enumerate(path):
        if letter in ".[":
            yield clause.span.file, path[:end]


def _enforceable(contract: elements.Contract) -> Iterator[Diagnostic]:
    """The clauses that state a check and are not enforced, except for those with another
    finding."""
    reported = {note.clause for note in contract.notes if note.code is not None}
    reported |= {clause for rule, _ in _broken_patterns(contract) for clause in rule.clauses}
    compiled = compile_contract(contract)
    for unenforced in compiled.unenforced:
        if unenforced.acceptance is not None:
            reported.update(unenforced.clauses)
    unknown = {(key.span.file, key.path) for key in contract.unknown_keys}
    notes = (
        note
        for note in (*contract.notes, *compiled.notes)
        if note.treatment is elements.Treatment.UNSUPPORTED
        and note.clause not in reported
        and unknown.isdisjoint(_places_above(note.clause))
    )
    for note in _causes(notes):
        message = f"{note.clause.path} is not checked: {note.reason}"
        yield Diagnostic(message, note.clause.span, "W020")


def _references(contract: elements.Contract) -> Iterator[Diagnostic]:
    yield from _BY_NAME["references"].mistakes(contract)
    models = {model.name: model for model in contract.models}
    paths = {name: _paths(model) for name, model in models.items()}
    stated = (
        (model, item, replace(rule, demand=demand))
        for model, item, rule in contract.rules()
        for demand in _stated_in(rule.demand)
    )
    for model, item, rule in stated:
        demand = rule.demand
        span = rule.clauses[0].span if rule.clauses else model.span
        if isinstance(demand, demands.Refers):
            target = models.get(demand.dataset)
            if target is None:
                near = nearest(demand.dataset, models)
                if near is not None and "." not in demand.dataset:
                    hint = f"did you mean '{near}'?"
                    yield mistake("unknown_model", span, model=demand.dataset, hint=hint)
            else:
                for column in demand.other_columns:
                    yield from _no_field(target, paths[target.name], column, span)
        if isinstance(demand, demands.QueryGives | demands.RowsSatisfy):
            # sqlglot is imported for contracts with SQL.
            from dqx_airflow.contracts.enforcement.sql_columns import missing_columns

            way = (item,) if item is not None else ()
            columns = missing_columns(RuleContext(contract, model, way, rule))
            named: Iterable[str] = dict.fromkeys(columns)
        else:
            named = demand.named_columns
        for column in named:
            for diagnostic in _no_field(model, paths[model.name], column, span):
                # A query may read columns of the table that are not in the contract.
                is_sure = not isinstance(demand, demands.QueryGives) or model.is_closed
                is_sure = is_sure or slip_of(column, paths[model.name]) is not None
                yield diagnostic if is_sure else replace(diagnostic, is_mild=True)


def _stated_in(demand: demands.Demand) -> tuple[demands.Demand, ...]:
    """The demand; for a demand on some of the rows, also the predicate that selects the rows."""
    if isinstance(demand, demands.AmongRows):
        return demands.RowsSatisfy(demand.where, demand.sql_dialect), demand.demand
    return (demand,)


def _paths(model: elements.Model) -> dict[str, None]:
    """The paths of all fields of a model, in order."""
    return dict.fromkeys(item.path for item in model.walk())


def _no_field(
    model: elements.Model, paths: Collection[str], column: str, span: Span
) -> Iterator[Diagnostic]:
    """Reports a column that is not a field of the model.

    :param paths: the paths of all fields of the model."""
    if paths and column not in paths and column not in model.partition_by:
        hint = did_you_mean(column, paths)
        yield mistake("unknown_field", span, model=model.name, field=column, hint=hint)


def _examples(contract: elements.Contract) -> Iterator[Diagnostic]:
    for broken in broken_examples(contract):
        clauses = broken.rule.clauses[:1] if broken.rule is not None else ()
        related = tuple(Related(clause.span, "rejected by this clause") for clause in clauses)
        help_line = f"correct the {broken.kind}, or the clause"
        yield Diagnostic(broken.what, broken.place, "E421", related=related, help=help_line)


def _semantics(contract: elements.Contract) -> Iterator[Diagnostic]:
    word = reader_of(contract.dialect).meaning_key
    for model in contract.models:
        for item in model.fields:
            if not (item.semantic or "").strip():
                yield _finding("semantics", item.span, item=item, model=model, word=word)


def _owner(contract: elements.Contract) -> Iterator[Diagnostic]:
    if not contract.owner and not contract.contacts:
        yield _finding("owner", contract.span, contract=contract)


def _version(contract: elements.Contract) -> Iterator[Diagnostic]:
    if not contract.version:
        yield _finding("version", contract.span, contract=contract)
    elif not _SEMVER.fullmatch(contract.version):
        message = f"the version {contract.version} is not of the form MAJOR.MINOR.PATCH"
        hint = f"{contract.version.strip()}.0.0" if _FORMAT.match(contract.version) else "1.0.0"
        yield Diagnostic(message, contract.span, "W032", help=f"write {hint}")


def _keys(contract: elements.Contract) -> Iterator[Diagnostic]:
    for model in contract.models:
        rules = [*model.rules, *(rule for item in model.walk() for rule in item.rules)]
        kinds = demands.Unique | demands.Distinct
        if model.fields and not any(isinstance(rule.demand, kinds) for rule in rules):
            yield _finding("keys", model.span, model=model)


def _quality(contract: elements.Contract) -> Iterator[Diagnostic]:
    if contract.models and not any(rule.demand.is_quality for _, _, rule in contract.rules()):
        yield _finding("quality", contract.span, contract=contract)


def _sensitive(contract: elements.Contract) -> Iterator[Diagnostic]:
    for model in contract.models:
        for item in model.walk():
            if looks_personal(item.name) and not item.is_sensitive:
                yield _finding("sensitive", item.span, item=item, model=model)


def _bounds(contract: elements.Contract) -> Iterator[Diagnostic]:
    for contradiction in contradictions(contract):
        first, *rest = [clause for rule in contradiction.rules for clause in rule.clauses[:1]]
        related = (Related(clause.span, "and this") for clause in rest)
        which = "one of them" if rest else "it"
        yield _finding("bounds", first.span, *related, what=contradiction.what, which=which)


def _patterns(contract: elements.Contract) -> Iterator[Diagnostic]:
    for rule, problem in _broken_patterns(contract):
        yield _finding("patterns", rule.clauses[0].span, problem=problem)


def _broken_patterns(contract: elements.Contract) -> Iterator[tuple[elements.Rule, str]]:
    for _, _, rule in contract.rules():
        pattern = getattr(rule.demand, "pattern", None)
        expression = getattr(rule.demand, "expression", None) or pattern
        if isinstance(expression, str) and rule.clauses:
            try:
                java_pattern(expression)
            except BrokenPatternError as error:
                yield rule, str(error)
            except NoCounterpartError:
                pass  # a pattern that Spark cannot match: coverage reports it


_KEY_OF_MODELS = {elements.Dialect.ODCS: "schema", elements.Dialect.DCS: "models"}


def _models(contract: elements.Contract) -> Iterator[Diagnostic]:
    if not contract.models:
        message = f"the contract {contract.id} has no models, so nothing can be checked"
        help_line = "add its tables with their fields"
        if (key := _KEY_OF_MODELS.get(contract.dialect)) is not None:
            help_line += f", below `{key}:`"
        yield Diagnostic(message, contract.span, "W036", help=help_line)
    for model in contract.models:
        if not model.fields:
            yield _finding("models", model.span, model=model)


def _elements(contract: elements.Contract) -> Iterator[Diagnostic]:
    missing = [name for name in reader_of(contract.dialect).elements if name not in contract.parts]
    if missing:
        yield _finding("elements", contract.span, contract=contract, missing=", ".join(missing))


_FINDERS: dict[str, Callable[[elements.Contract], Iterator[Diagnostic]]] = {
    function.__name__.removeprefix("_"): function
    for function in (
        *(_references, _examples, _bounds, _patterns, _dates, _constraints, _enforceable),
        *(_spelling, _semantics, _owner, _version, _keys, _quality, _sensitive, _models, _elements),
    )
}
"""The functions that find violations of lint rules, by the name of the rule. Violations of other
rules are found by the reader of the dialect."""
