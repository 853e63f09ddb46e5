"""Row predicates as Spark SQL: quoted names, quoted literals, nothing that raises; and the rows
selected by the filter of a request.

A row is selected if its filter is true, and excluded if it is false, or NULL because of a NULL in
the row. If it is neither, because a value was lost (overflow, division by zero) or is NaN, it is
unknown where the row belongs: with a single such row, a request has no value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dqx_airflow.dql import nodes
from dqx_airflow.dql.checks.assertions import members_in
from dqx_airflow.dql.printer import show
from dqx_airflow.dql.walk import ITEM, rewritten
from dqx_airflow.metrics import spark_values, sql
from dqx_airflow.metrics.builtin.counts import listed_values, nan_count
from dqx_airflow.metrics.builtin.values import rows_where
from dqx_airflow.metrics.metric import Aggregate, Argument, ArgumentKind, Arguments, RowCondition
from dqx_airflow.metrics.patterns.bounds import bounded, bounded_like, ended
from dqx_airflow.metrics.patterns.quick_patterns import quick_pattern, quicker
from dqx_airflow.metrics.text_formats import SHORT, TEXT_FORMATS, whole
from dqx_airflow.metrics.types import parts_of
from dqx_airflow.plan import model, row_comparisons, row_types, row_values
from dqx_airflow.plan.range_predicates import range_of

UNTYPED = row_types.RowTypes(lambda _: row_values.UNKNOWN)
"""Unknown types, for a plan whose datasets have not been opened yet."""

_ITEM = sql.quote_name(ITEM)


def settled(node: nodes.Expression, constants: nodes.Constants) -> model.RowPredicate:
    """The predicate with literals instead of its constants, which are evaluated."""

    def fill(part: object) -> object:
        match part:
            case nodes.Name(text=name) if name in constants:
                return _literal(constants[name].value)
            case nodes.Number():
                return _literal(part)
            case nodes.Call(name=nodes.Name(text="values")):
                return part  # its names are a column and a dataset
            case _:
                return None

    return model.RowPredicate(rewritten(node, fill))


def _literal(node: nodes.Expression) -> nodes.Expression:
    """A number as a Spark literal: a decimal if it has a point, and not too many digits."""
    match node:
        case nodes.Number(value=Fraction() as value):
            return replace(node, value=spark_values.spark_number(value))  # type: ignore[arg-type]
        case _:
            return node


def lookups_of(*requests: model.MetricRequest) -> tuple[model.Lookup, ...]:
    """The lookups that the predicates of requests need, each once."""
    lookups = (
        lookup_of(request.dataset, member)
        for request in requests
        for predicate in request.predicates
        for member in members_in(predicate.node)
        if isinstance(member.choices, nodes.Call)
    )
    return tuple(dict.fromkeys(lookups))


def aggregates_of(
    request: model.MetricRequest, types: row_types.RowTypes = UNTYPED
) -> tuple[Aggregate, ...]:
    """The aggregates that a request needs, over its rows; those for NaN last, in the order of
    `voids_of`."""
    unfiltered = request.definition.aggregates(
        arguments_of(request, lambda node: _condition(node, types), types)
    )
    voids = voids_of(request, types).values()
    aggregates = (*(sql.typed(aggregate, types.of_column) for aggregate in unfiltered), *voids)
    if request.where is None:
        return aggregates
    where = predicate_sql(request.where.node, types)
    return tuple(sql.filtered(aggregate, where) for aggregate in aggregates)


def voids_of(request: model.MetricRequest, types: row_types.RowTypes) -> dict[str, Aggregate]:
    """The columns because of which a request has no value if they contain NaN, each with the number
    of NaN."""
    if not request.definition.is_void_with_nan:
        return {}
    return {
        column: nan_count(column)
        for argument, column in request.given
        if argument.kind is ArgumentKind.COLUMN
        and column is not None
        and types.of_column(column) in spark_values.FLOATING
    }


def arguments_of(
    request: model.MetricRequest,
    show: Callable[[nodes.Expression], object],
    types: row_types.RowTypes = UNTYPED,
) -> Arguments:
    """The arguments of a request, predicates as `show` returns them, and literals as values of the
    type of its column."""

    def filled(argument: Argument, given: Any) -> Any:
        if isinstance(given, model.RowPredicate):
            return show(given.node)
        if argument.kind is ArgumentKind.LITERALS and kind is not None:
            values = [spark_values.literal_of_type(value, kind) for value in listed_values(given)]
            return tuple(values) if isinstance(given, tuple) else values[0]
        if argument.kind is ArgumentKind.SHARES and kind is not None:
            return tuple(
                (spark_values.literal_of_type(value, kind), share) for value, share in given
            )
        return given

    (column, *_) = (*request.columns, None)
    kind = None if column is None else types.of_column(column)
    return tuple(filled(argument, given) for argument, given in request.given)


def _condition(node: nodes.Expression, types: row_types.RowTypes) -> RowCondition:
    shortcut = range_of(node)
    column = None if shortcut is None else shortcut.column
    return RowCondition(predicate_sql(node, types), shortcut, column)


def predicate_sql(
    node: nodes.Expression, types: row_types.RowTypes = UNTYPED, *, is_opposite: bool = False
) -> str:
    """The predicate, or its negation, as Spark SQL; a lookup is the column of its alias.

    Both are false if a tested value is NaN, or has no result although its operands have values.

    :param types: with them, comparisons are exact and all causes are considered.
    """
    return _PredicateWriter(types).write(node, is_opposite=is_opposite)


def causes_of(node: nodes.Expression, types: row_types.RowTypes) -> tuple[row_values.Cause, ...]:
    """Reasons for a predicate to be false for a row, other than its tests."""
    noted: dict[row_values.Cause, None] = {}
    _PredicateWriter(types, lambda causes: noted.update(dict.fromkeys(causes))).write(node)
    return tuple(noted)


@dataclass(frozen=True, slots=True)
class _PredicateWriter:
    """Writes predicates; passes the causes of each test to `note`."""

    types: row_types.RowTypes
    note: Callable[[Sequence[row_values.Cause]], object] = lambda _: None

    def write(self, node: nodes.Expression, *, is_opposite: bool = False) -> str:
        """The predicate, or its negation, which is pushed down to its tests: a test that fails for
        a cause fails either way."""
        match node:
            case nodes.Junction(op=op, left=left, right=right):
                word = {"and": "OR", "or": "AND"}[op] if is_opposite else op.upper()
                sides = (self.write(side, is_opposite=is_opposite) for side in (left, right))
                return f"({f' {word} '.join(sides)})"
            case nodes.Not(operand=operand):
                return self.write(operand, is_opposite=not is_opposite)
            case nodes.Quantified(name=name, array=array, predicate=predicate):
                items = self._value(array)
                of_item = self._among(items).write(predicate, is_opposite=is_opposite)
                test = f"forall({items.sql}, {_ITEM} -> {of_item})"
                if (name.text == "every") is is_opposite:
                    # `exists` has no third truth value if a legacy option of Spark is set so.
                    test = f"(NOT forall({items.sql}, {_ITEM} -> (NOT {of_item})))"
                return self._sound(test, items.causes)
            case _:
                test, causes = self._test(node)
                return self._sound(f"(NOT {test})" if is_opposite else test, causes)

    def _among(self, items: row_values.RowValue) -> _PredicateWriter:
        """The writer for a predicate over the items of an array."""

        def note(causes: Sequence[row_values.Cause]) -> None:
            self.note(
                [
                    row_values.Cause(
                        cause.words, f"coalesce(exists({items.sql}, {_ITEM} -> {cause.sql}), false)"
                    )
                    for cause in causes
                ]
            )

        inner = next(iter(parts_of(items.type)), row_values.UNKNOWN)
        return _PredicateWriter(replace(self.types, of_item=inner), note)

    def _sound(self, test: str, causes: Sequence[row_values.Cause]) -> str:
        if not causes:
            return test
        self.note(causes)
        conditions = tuple(dict.fromkeys(cause.sql for cause in causes))
        several = f"({' OR '.join(conditions)})"
        return f"({test} AND NOT {several if len(conditions) > 1 else conditions[0]})"

    def _value(self, node: nodes.Expression) -> row_values.RowValue:
        return row_values.value_of(node, self.types)

    def _test(self, node: nodes.Expression) -> tuple[str, Sequence[row_values.Cause]]:
        """A test as Spark SQL, and the causes for which it may have no answer."""
        parts = nodes.operands_of(node)
        values = [*map(self._value, parts)]
        value = values[0]
        text = values[0].sql
        match node:
            case nodes.Compare(op=op):
                return row_comparisons.comparison_sql(op, *values), _causes(parts, values)
            case nodes.Within():
                return row_comparisons.within(*values), _causes(parts, values)
            case nodes.Member(choices=nodes.Listing()):
                return row_comparisons.among(value, values[1:]), _causes(parts, values)
            case nodes.Member():
                # NULL if the column is NULL: such a row is not evaluated.
                alias = sql.quote_name(lookup_of("", node).alias)
                test = f"(CASE WHEN {text} IS NOT NULL THEN {alias} IS NOT NULL END)"
                return test, _causes(parts, values)
            case nodes.IsNan():
                return f"(CASE WHEN {text} IS NOT NULL THEN isnan({text}) END)", value.causes
            case nodes.Matches(operand=operand, pattern=pattern):
                pattern_ = bounded(pattern.value)
                matching = _matches(operand, text, pattern_.text)
                return _decided(text, matching, pattern_.longest), value.causes
            case nodes.Like(pattern=pattern):
                matching = f"({text} LIKE {sql.quote_literal(pattern.value)})"
                return _decided(text, matching, bounded_like(pattern.value)), value.causes
            case nodes.HasFormat(operand=operand, format=name):
                form = TEXT_FORMATS[name.text]
                pattern_of_form = form.pattern.removeprefix(SHORT)
                matching = _matches(operand, text, ended(whole(pattern_of_form)))
                if pattern_of_form != form.pattern:  # not every engine looks ahead
                    matching = f"(length({text}) <= 254 AND {matching})"
                return form.sql(text, matching), value.causes
            case _:  # `is null`
                return f"({text} IS NULL)", value.causes


def _causes(
    parts: Sequence[nodes.Expression], values: Sequence[row_values.RowValue]
) -> list[row_values.Cause]:
    """The causes for which compared values are missing or NaN."""
    causes = [cause for value in values for cause in value.causes]
    is_number = any(value.is_number for value in values)
    for part, value in zip(parts, values, strict=True):
        # A value compared with a number is a number.
        typed_value = (
            replace(value, type="double")
            if value.type == row_values.UNKNOWN and is_number
            else value
        )
        condition = row_values.nan_in(typed_value)
        if condition is not None:
            causes.append(row_values.Cause(f"NaN in {show(part)}", condition))
    return causes


def _matches(operand: nodes.Expression, text: str, pattern: str) -> str:
    """The SQL of a match: faster tests come first, the pattern itself only if they are negative."""
    quick = quick_pattern(pattern)
    plain = f"{text} RLIKE {sql.quote_literal(quick)}"
    first = quicker(text, quick) if isinstance(operand, nodes.Name) else None
    return f"({plain})" if first is None else f"({first} OR {plain})"


def _decided(text: str, condition: str, longest: int | None) -> str:
    """The condition, which fails its assertion if a string is too long to be decided."""
    if longest is None:
        return condition
    is_longer = f"octet_length({text}) > {longest} AND length({text}) > {longest}"
    message = (
        f"concat('a string of ', length({text}), ' characters is too long for its pattern, which "
        f"handles at most {longest}')"
    )
    return f"(CASE WHEN {is_longer} THEN raise_error({message}) ELSE {condition} END)"


def lookup_of(dataset: str, member: nodes.Member) -> model.Lookup:
    """The lookup behind `column in values(other_column, dataset other)`."""
    assert isinstance(member.operand, nodes.Name)
    assert isinstance(member.choices, nodes.Call)
    column = member.choices.arguments[0]
    reference = member.choices.parameters[0].value
    assert isinstance(column, nodes.Name)
    assert isinstance(reference, nodes.Name)
    return model.Lookup(dataset, member.operand.text, reference.text, column.text)


def undecided_rows(where: model.RowPredicate, types: row_types.RowTypes) -> Aggregate | None:
    """The number of rows that a filter cannot decide; None if it can decide all."""
    if not causes_of(where.node, types):
        return None
    chosen, left_out = (
        predicate_sql(where.node, types, is_opposite=is_opposite) for is_opposite in (False, True)
    )
    return rows_where(f"NOT {left_out} AND NOT coalesce({chosen}, false)")


def fail_undecided(
    request: model.MetricRequest, count: int, types: row_types.RowTypes, scanned: model.Scanned
) -> None:
    """Records that a request has no value, because its filter cannot decide this many rows."""
    assert request.where is not None
    causes = dict.fromkeys(cause.words for cause in causes_of(request.where.node, types))
    rows = "1 row" if count == 1 else f"{count} rows"
    scanned.failures[request] = (
        f"the filter `{show(request.where.node)}` cannot be decided for {rows}: "
        f"{' or '.join(causes)}"
    )
