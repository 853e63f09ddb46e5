"""Finds the operations, over the types of their operands, that the value of a request depends on.

Operations that engines compute by the same code are a family: all comparisons, all parts of dates.
A trait is a family over a type, as in `parts of dates over string`; two types that meet in one
operation, as in `decimal beside a double`; a type; the format of files, or a type read from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.builtin.counts import listed_values
from dqx_airflow.metrics.metric import ArgumentKind, Scan
from dqx_airflow.metrics.row_functions import ROW_FUNCTIONS
from dqx_airflow.metrics.spark_values import FLOATING, literal_of_type, literal_type, spark_number
from dqx_airflow.metrics.types import WHOLE_SIZES, Family, family_of, fields_of, parts_of
from dqx_airflow.plan.model import Lookup, MetricRequest
from dqx_airflow.plan.predicates import lookup_of
from dqx_airflow.plan.row_types import RowTypes, TypeObjection
from dqx_airflow.plan.schema_check import Match, Schema, is_about_rows, pair_columns

if TYPE_CHECKING:
    from dqx_airflow.engine.sources.dataset import OpenDataset

_FAMILIES = {
    "comparisons": "== != < <= > >= between in count_values share_difference",
    "lookups": "lookup",
    "matching": "missing_count extra_count changed_count mismatch_count mismatch_share",
    "arithmetic": "+ - * / abs correlation",
    "rounding": "round",
    "parts of dates": "year month day hour minute second weekday date",
    "lower and upper case": "lower upper",
    "lengths": "length min_length max_length",
    "patterns": "matches",
    "formats": "format",
    "items": "every some size distinct entries",
    "tests for NULL": "null count null_count",
    "tests for NaN": "nan nan_count",
    "sums": "sum average",
    "variances": "variance max_z_score",
    "extremes": "minimum maximum newest",
    "percentiles": "percentile median",
    "distinct values": (
        "unique_count duplicate_count repeated_count uniqueness distinctness unique_value_ratio "
        "entropy mode unlisted_common_values value_summary groups"
    ),
    "order of rows": "first decrease_count increase_count unchanged_count gap_count",
    "malformed values": "malformed_count malformed_rows",
}
"""The operations of each family. An operation that is not listed is a family of its own."""

_BUILT_ON = {
    "lookups": ("comparisons",),
    "matching": ("comparisons",),
    "formats": ("patterns",),
    "distinct values": ("comparisons",),
}
"""Families whose operations are wrong if the operations of other families are."""

_KINDS = {
    **dict.fromkeys(WHOLE_SIZES, "integer"),
    **dict.fromkeys(FLOATING, "double"),
    **dict.fromkeys(("string", "varchar", "char"), "string"),
}
"""Types that engines hold and compute alike."""

_MOMENTS = frozenset({"date", "timestamp", "timestamp_ntz"})

_OLDER_WORDS = {"is null": "null", "is NaN": "nan", "in values": "lookup", "for each": "groups"}
"""Operations by the names that proofs of version 0.3 have."""

_SHOWN = {
    "unlisted_common_values": "most_common",
    "share_difference": "distribution",
    "newest": "freshness",
    "violating_rows": "each row",
    "mismatch_count": "rows of",
    "mismatch_share": "rows of",
}
"""The words in a suite for metrics that cannot be called."""


@dataclass(frozen=True, slots=True)
class SeenDataset:
    """A dataset as an engine sees it: its schema, and the format of its files if it has files."""

    schema: Schema
    format: str | None


def measured_as(opened: Mapping[str, OpenDataset]) -> dict[str, SeenDataset]:
    """The schema and file format of opened datasets, by name."""
    return {
        name: SeenDataset(dataset.schema, dataset.ref.format if dataset.ref.path else None)
        for name, dataset in opened.items()
    }


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation, the types of its operands, and the text of the part of a suite that uses it.

    Types that meet in it are converted to a common one by the engine. An operation is `implied` if
    our SQL needs it beside those that are written.
    """

    name: str
    types: tuple[str, ...]
    text: str
    is_implied: bool = False

    @property
    def family(self) -> str:
        return _family_of(self.name)

    @property
    def own_traits(self) -> frozenset[str]:
        """The suspects if an engine computes another value for the operation: two kinds of types
        that meet, or else its family over the kinds."""
        if beside := self._kinds_that_meet:
            return frozenset(beside)
        kinds = self._kinds
        return frozenset(f"{self.family} over {kind}" for kind in kinds) or frozenset(
            (self.family,)
        )

    @property
    def traits(self) -> frozenset[str]:
        """The traits that put the operation in doubt if they are in doubt."""
        families = (self.family, *_BUILT_ON.get(self.family, ()))
        kinds = self._kinds
        if not kinds.isdisjoint(_MOMENTS):
            kinds -= {"string"}  # becomes a date before anything is computed
        return frozenset(
            chain(
                families,
                (f"{family} over {kind}" for family in families for kind in kinds),
                (f"type {kind}" for kind in kinds),
                self._kinds_that_meet,
            )
        )

    @property
    def _kinds(self) -> frozenset[str]:
        return frozenset(kind for type_ in self.types for kind in kinds_in(type_))

    @property
    def _kinds_that_meet(self) -> tuple[str, ...]:
        kinds = sorted({_kind(type_) for type_ in self.types} - {"void"})
        return tuple(
            _beside(first, second)
            for position, first in enumerate(kinds)
            for second in kinds[position + 1 :]
        )


def _beside(first: str, second: str) -> str:
    """The trait of two kinds of types that meet: `decimal beside a double`."""
    article = "an" if second[0] in "aeiou" else "a"
    return f"{first} beside {article} {second}"


@cache
def _family_of(name: str) -> str:
    for family, names in _FAMILIES.items():
        if name in names.split():
            return family
    return name


def _kind(spark_type: str) -> str:
    name = spark_type.lower().split("(", 1)[0].split("<", 1)[0].split(" ", 1)[0]
    return _KINDS.get(name, name)


def kinds_in(spark_type: str) -> Iterator[str]:
    """Yields the kind of a type, and of every type inside it; nothing for void."""
    if (kind := _kind(spark_type)) != "void":
        yield kind
    if kind == "struct":
        for inner in fields_of(spark_type).values():
            yield from kinds_in(inner)
    elif kind in ("array", "map"):
        for inner in parts_of(spark_type):
            yield from kinds_in(inner)


def widened(doubts: Iterable[str]) -> frozenset[str]:
    """Doubts as traits. In older proofs a doubt is one operation over one type, as in `hour over
    string`. Of an operation that only a newer version knows, the whole type is in doubt."""
    return frozenset(map(_as_trait, doubts))


def _as_trait(doubt: str) -> str:
    if doubt.endswith("decimal beside a double"):
        return "decimal beside a double"
    word, over, type_ = doubt.rpartition(" over ")
    if over:
        if type_ == "field":
            return "type field"
        family = _family_of(_current(word))
        return f"{family} over {_kind(type_)}" if _is_known(family) else f"type {_kind(type_)}"
    if doubt.startswith("type "):
        return f"type {_kind(doubt.removeprefix('type '))}"
    return _family_of(_current(doubt))


def _current(word: str) -> str:
    if word.startswith("is ") and word not in _OLDER_WORDS:
        return "format"
    return _OLDER_WORDS.get(word, word)


def _is_known(family: str) -> bool:
    """True for a family of operations, and for an operation that is a family of its own."""
    return family in _FAMILIES or family in METRICS or family in ROW_FUNCTIONS


def traits_of(request: MetricRequest, datasets: Mapping[str, SeenDataset]) -> frozenset[str]:
    """The traits that put a request in doubt if they are in doubt.

    :param datasets: the datasets that it reads, by name, as far as they could be opened.

    """
    operations = operations_of(request, datasets)
    used = frozenset[str]().union(*(one.traits for one in operations))
    return used | frozenset(_read_traits(request, datasets))


def suspects_of(request: MetricRequest, datasets: Mapping[str, SeenDataset]) -> frozenset[str]:
    """The traits of which one is wrong if an engine has another value for a request.

    :param datasets: as for `traits_of`.
    """
    operations = [one for one in operations_of(request, datasets) if not one.is_implied]
    own = frozenset().union(*(one.own_traits for one in operations))
    types = {
        f"type {kind}" for one in operations for type_ in one.types for kind in kinds_in(type_)
    }
    return own | types | frozenset(_read_traits(request, datasets))


def _read_traits(request: MetricRequest, datasets: Mapping[str, SeenDataset]) -> Iterator[str]:
    """The formats of files, each with the types of the columns that are read from it."""
    names = [(request.dataset, name) for name in _names_of(request)]
    for lookup in _lookups_in(request):
        names += [(lookup.dataset, lookup.column), (lookup.reference, lookup.reference_column)]
    for dataset, name in names:
        if (type_ := _type_in(datasets, dataset, name)) is not None:
            if (format := datasets[dataset].format) is not None:
                yield from (f"{kind} read from {format}" for kind in kinds_in(type_))
            found = datasets[dataset].schema.find(name)
            if found is not None and len(found.path) > 1:
                yield "type field"
    for dataset in {*request.datasets, *(dataset for dataset, _ in names)}:
        if dataset in datasets and (format := datasets[dataset].format) is not None:
            yield f"format {format}"


def _names_of(request: MetricRequest) -> Iterator[str]:
    """The columns of its own dataset that a request refers to."""
    yield from request.columns
    for predicate in request.predicates:
        for node in _nodes(predicate.node):
            if isinstance(node, nodes.Name):
                yield node.text
    if request.grouping is not None:
        yield from request.grouping.columns


def _lookups_in(request: MetricRequest) -> Iterator[Lookup]:
    for predicate in request.predicates:
        for node in _nodes(predicate.node):
            if isinstance(node, nodes.Member) and isinstance(node.choices, nodes.Call):
                yield lookup_of(request.dataset, node)


def _nodes(node: Any) -> Iterator[Any]:
    """A node and all nodes in it, except in the names of a lookup and in calls."""
    if not is_dataclass(node) or isinstance(node, type):
        return
    yield node
    match node:
        case nodes.Member(operand=operand, choices=nodes.Call()):
            yield from _nodes(operand)
        case nodes.Call(arguments=arguments):
            for argument in arguments:
                yield from _nodes(argument)
        case nodes.HasFormat(operand=operand):
            yield from _nodes(operand)
        case nodes.Quantified(array=array, predicate=predicate):
            yield from _nodes(array)
            yield from _nodes(predicate)
        case _:
            for field in fields(node):
                value = getattr(node, field.name)
                for part in value if isinstance(value, tuple) else (value,):
                    yield from _nodes(part)


def _type_in(datasets: Mapping[str, SeenDataset], dataset: str, name: str) -> str | None:
    """The type of a column; None if it is unknown, which is reported elsewhere."""
    if dataset in datasets:
        with suppress(TypeObjection):
            return datasets[dataset].schema.type_of(name)
    return None


def operations_of(
    request: MetricRequest, datasets: Mapping[str, SeenDataset]
) -> Iterator[Operation]:
    """The operations of a request: in its metric, its predicates and its groups.

    :param datasets: as for `traits_of`.
    """
    yield from _of_metric(request, datasets)
    if request.dataset not in datasets:
        return
    types = RowTypes(datasets[request.dataset].schema.type_of)
    predicates = [predicate.node for predicate in request.predicates]
    if request.grouping is not None:
        for name in request.grouping.columns:
            if (type_ := _type_in(datasets, request.dataset, name)) is not None:
                yield Operation("groups", (type_,), f"for each {name}")
        if request.grouping.only is not None:
            predicates.append(request.grouping.only.node)
    for predicate in predicates:
        yield from _of_predicate(predicate, types)
    for lookup in _lookups_in(request):
        own = _type_in(datasets, lookup.dataset, lookup.column)
        other = _type_in(datasets, lookup.reference, lookup.reference_column)
        if own is not None and other is not None:
            text = f"{lookup.column} in values({lookup.reference_column}, ...)"
            yield Operation("lookup", (own, other), text)


def _of_metric(request: MetricRequest, datasets: Mapping[str, SeenDataset]) -> Iterator[Operation]:
    """The operations of the metric itself, over its columns."""
    metric, name = request.definition, request.metric
    shown = _SHOWN.get(name, name)
    if metric.scan is Scan.MATCH:
        yield from _of_match(request, datasets, shown)
        return
    types = [
        (column, type_)
        for column in request.columns
        if (type_ := _type_in(datasets, request.dataset, column)) is not None
    ]
    if not types:
        yield Operation(name, (), shown)
        return
    text = f"{shown}({', '.join(request.columns)})"
    if name == "correlation":
        yield Operation(name, tuple(type_ for _, type_ in types), text)
    else:
        yield from (Operation(name, (type_,), text) for _, type_ in types)
    first_type = types[0][1]
    for argument, given in request.given:
        if argument.kind is ArgumentKind.LITERALS:
            literals = [*listed_values(given)]
        elif argument.kind is ArgumentKind.SHARES:
            literals = [literal for literal, _ in given]
        else:
            continue
        for literal in literals:
            written = literal_of_type(literal, first_type)
            if written is not None:
                yield Operation("==", _together(first_type, literal_type(written)), text)
    if metric.is_void_with_nan:
        for _, type_ in types:
            if type_ in FLOATING:
                yield Operation("nan", (type_,), text, is_implied=True)


def _of_match(
    request: MetricRequest, datasets: Mapping[str, SeenDataset], shown: str
) -> Iterator[Operation]:
    own, other = (datasets.get(name) for name in request.datasets)
    if own is None or other is None or not is_about_rows(request):
        yield Operation(request.metric, (), shown)
        return
    with suppress(TypeObjection):  # which is reported elsewhere
        match = Match.of(request)
        for pair in chain(*pair_columns(match, own.schema, other.schema).both):
            yield Operation(
                request.metric, (pair.left.type, pair.right.type), f"{shown} ... {pair.name}"
            )


def _together(type_: str, literal: str) -> tuple[str, ...]:
    """The types of a value and of a literal beside it: one, unless the engine has to convert."""
    both_exact = type_ not in FLOATING and Family.NUMBER is family_of(type_) is family_of(literal)
    return (type_,) if both_exact else (type_, literal)


def _of_predicate(node: nodes.Expression, types: RowTypes) -> Iterator[Operation]:
    """Yields the operations of a predicate, or of a value in it."""
    match node:
        case nodes.Junction(op=op, left=left, right=right):
            yield Operation(op, (), show(node))
            yield from _of_predicate(left, types)
            yield from _of_predicate(right, types)
            return
        case nodes.Not(operand=operand):
            yield Operation("not", (), show(node))
            yield from _of_predicate(operand, types)
            return
        case nodes.Quantified(name=name, array=array, predicate=predicate):
            with suppress(TypeObjection):
                yield Operation(name.text, (types.type_of(array),), show(node))
                yield from _of_predicate(predicate, types.among_items(node))
            yield from _of_predicate(array, types)
            return
        case nodes.Compare(op=op):
            yield from _of_test(op, node, types)
        case nodes.Within():
            yield from _of_test("between", node, types)
        case nodes.Member(choices=nodes.Listing()):
            yield from _of_test("in", node, types)
        case nodes.Matches():
            yield from _of_test("matches", node, types)
        case nodes.Like():
            yield from _of_test("like", node, types)
        case nodes.HasFormat():
            yield from _of_test("format", node, types)
        case nodes.IsNull():
            yield from _of_test("null", node, types)
        case nodes.IsNan():
            yield from _of_test("nan", node, types)
        case nodes.Negative(operand=operand):
            yield from _of_operands("-", (operand,), node, types)
        case nodes.Arithmetic(op=op, left=left, right=right):
            yield from _of_operands(op, (left, right), node, types)
        case nodes.Call():
            yield from _of_call(node, types)
    for part in _operands_in(node):
        yield from _of_predicate(part, types)


def _operands_in(node: nodes.Expression) -> tuple[nodes.Expression, ...]:
    """The values inside a test or a value."""
    match node:
        case nodes.Negative(operand=operand):
            return (operand,)
        case nodes.Arithmetic(left=left, right=right):
            return left, right
        case nodes.Call(arguments=arguments):
            return arguments
        case (
            nodes.Compare()
            | nodes.Within()
            | nodes.Member()
            | nodes.Matches()
            | nodes.Like()
            | nodes.HasFormat()
            | nodes.IsNull()
            | nodes.IsNan()
        ):
            return nodes.operands_of(node)
        case _:
            return ()


def _of_test(name: str, node: nodes.Expression, types: RowTypes) -> Iterator[Operation]:
    first, *others = nodes.operands_of(node)
    if not others:
        yield from _of_operands(name, (first,), node, types)
    for other in others:
        yield from _of_operands(name, (first, other), node, types)
    with suppress(TypeObjection):
        if others and any(types.type_of(part) in FLOATING for part in (first, *others)):
            yield Operation("nan", ("double",), show(node), is_implied=True)


def _of_operands(
    name: str, operands: tuple[nodes.Expression, ...], node: nodes.Expression, types: RowTypes
) -> Iterator[Operation]:
    """Yields an operation over operands. A literal number takes the type of the other operand."""
    with suppress(TypeObjection):
        found = [types.type_of(operand) for operand in operands]
        if len(operands) == 2:
            first, second = operands
            if _is_number(first):
                found[0] = _as_written(first, found[0], found[1])
            elif _is_number(second):
                found[1] = _as_written(second, found[1], found[0])
        yield Operation(name, tuple(found), show(node))


def _is_number(node: nodes.Expression) -> bool:
    match node:
        case nodes.Number(unit=nodes.Unit.DURATION):
            return False
        case nodes.Number():
            return True
        case nodes.Negative(operand=operand):
            return _is_number(operand)
        case _:
            return False


def _as_written(literal: nodes.Expression, own: str, other: str) -> str:
    """The type in which a number is written beside another type."""
    if other.startswith("decimal") or (other in FLOATING and own not in WHOLE_SIZES):
        return other
    if other not in FLOATING:
        return own
    value = literal
    while isinstance(value, nodes.Negative):
        value = value.operand
    assert isinstance(value, nodes.Number)
    number = spark_number(value.value)
    is_exact = not isinstance(number, int) or int(float(number)) == number
    return other if is_exact else own


def _of_call(node: nodes.Call, types: RowTypes) -> Iterator[Operation]:
    """Yields the operation of a function call."""
    name = node.name.text
    if name == "round":
        yield from _of_operands(name, node.arguments[:1], node, types)
        return
    with suppress(TypeObjection):
        found = tuple(types.type_of(argument) for argument in node.arguments)
        yield Operation(name, found, show(node))
