"""Checks and answers requests by the schema of a dataset, before anything is scanned; and pairs the
columns that are compared between two datasets.

Rows match by their keys: NULL matches NULL, NaN matches NaN, and -0.0 equals 0.0. If a key occurs
several times, as many rows match as both sides have; the remaining ones are missing or extra.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from dqx_airflow.diagnostics.diagnostic import did_you_mean, listed
from dqx_airflow.metrics.builtin.counts import listed_values
from dqx_airflow.metrics.drift import DRIFT_SUMMARY
from dqx_airflow.metrics.metric import Argument, ArgumentKind, Arguments, Scan
from dqx_airflow.metrics.spark_values import FLOATING, literal_type, objection_to_step
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.metrics.types import (
    LONGEST_DECIMAL,
    WHOLE_SIZES,
    ColumnPath,
    Family,
    decimal_size,
    family_of,
    find_column_paths,
    has_variant,
    spelled_like,
)
from dqx_airflow.plan.model import Grouping, Lookup, MetricRequest, RowPredicate, Scanned
from dqx_airflow.plan.predicates import lookups_of
from dqx_airflow.plan.row_types import RowTypes, TypeObjection, objection_to_comparison
from dqx_airflow.values import DatasetField
from dqx_airflow.values.exact import Number

INFINITE = "its result is infinite"
"""The reason for a missing value if a floating-point result overflows, or the data contain an
infinity."""

_COLUMNS = (ArgumentKind.COLUMN, ArgumentKind.COLUMNS)
_GROUPED = frozenset(
    {*WHOLE_SIZES, "string", "varchar", "char", "decimal", "boolean", "date", "void"}
)


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a dataset with their types; `unread` are existing columns that are not read,
    each with the reason: in lower case, or as written if the session distinguishes names by
    case."""

    dataset: str
    types: Mapping[str, str]
    unread: Mapping[str, str] = field(default_factory=dict)
    _found: dict[str, tuple[ColumnPath, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Up to two places for each name that was looked up: in memory, each row asks again."""

    @classmethod
    def of(cls, dataset: str, fields: Iterable[DatasetField]) -> Schema:
        return cls(dataset, {field.name: field.type for field in fields})

    def find(self, name: str) -> ColumnPath | None:
        """The column or field that a name refers to; None if there is none."""
        return next(iter(self._places(name)), None)

    def type_of(self, name: str) -> str:
        """The type of a column or field.

        :raises TypeObjection: nothing has that name, or both a column and a field.
        """
        places = self._places(name)
        reason = None if name in self.types else self.unread.get(name)
        if reason is None and not places:
            reason = self.unread.get(name.lower())
        if reason is not None:
            message = f"column '{name}' of dataset '{self.dataset}' cannot be read: {reason}"
            raise TypeObjection(message)
        if not places:
            hint = did_you_mean(name, self.types)
            raise TypeObjection(f"dataset '{self.dataset}' has no column '{name}': {hint}")
        if len(places) > 1:
            ways = " and ".join(quote_name(*place.path) for place in places)
            raise TypeObjection(
                f"'{name}' is ambiguous: dataset '{self.dataset}' has {ways}; rename one in "
                "a query, with backticks around the names"
            )
        return places[0].type

    def _places(self, name: str) -> tuple[ColumnPath, ...]:
        if name not in self._found:
            self._found[name] = tuple(islice(find_column_paths(name, self.types), 2))
        return self._found[name]


def places_of(
    requests: Iterable[MetricRequest], lookups: Iterable[Lookup], schema: Schema
) -> dict[str, ColumnPath]:
    """The column or field for each name in valid requests and lookups that is not spelled exactly
    like a column."""
    names = [name for request in requests for name in columns_of(request, schema)]
    for lookup in lookups:
        names += [lookup.column] if lookup.dataset == schema.dataset else []
        names += [lookup.reference_column] if lookup.reference == schema.dataset else []
    return {
        name: place
        for name in names
        if name not in schema.types and (place := schema.find(name)) is not None
    }


def answer_from_schema(request: MetricRequest, schema: Schema, scanned: Scanned) -> None:
    """Adds the value of a request that the schema answers."""
    answer = request.definition.of_schema
    assert answer is not None
    scanned.values[request], details = answer(request.arguments, schema.types)
    if details:
        scanned.details[request] = details


def void(request: MetricRequest, reason: str, scanned: Scanned) -> None:
    """Records that a request has no value.

    :param reason: `INFINITE`, or `nan_detail`.
    """
    scanned.values[request] = None
    scanned.details[request] = reason


def nan_detail(counts: Mapping[str, int]) -> str:
    """The number of NaN in columns."""
    return "; ".join(
        f"column '{column}' holds {count} NaN value{'' if count == 1 else 's'}"
        for column, count in counts.items()
        if count
    )


@dataclass(frozen=True, slots=True)
class StringColumns:
    """The columns whose strings a request is about, and whether it counts malformed lines."""

    columns: tuple[str, ...]
    has_lines: bool


def texts_of(request: MetricRequest, schema: Schema, columns: Sequence[str]) -> StringColumns:
    """The strings that a request is about, given the columns that are cast from strings.

    If it is about all columns except for some, malformed lines count with them.
    """
    ((argument, given),) = request.given
    places = map(schema.find, (given,) if isinstance(given, str) else given)
    named = {place.path[0] for place in places if place is not None}
    is_besides = argument.kind is ArgumentKind.NAMES
    concerned = tuple(column for column in columns if (column in named) != is_besides)
    return StringColumns(concerned, not (is_besides and given))


def objection_to_lookup(lookup: Lookup, schema: Schema, reference: Schema | None) -> str | None:
    """The reason why a lookup is not possible; None if it is.

    :param reference: None if the dataset that it looks into could not be read.
    """
    if reference is None:
        return f"dataset '{lookup.reference}' could not be read"
    try:
        column_type = schema.type_of(lookup.column)
        reference_type = reference.type_of(lookup.reference_column)
    except TypeObjection as objection:
        return str(objection)
    if objection_to_comparison(column_type, reference_type) is None:
        return None
    return (
        f"'{lookup.column}' is of type {column_type} and '{lookup.reference_column}' of dataset "
        f"'{lookup.reference}' of type {reference_type}: they cannot have values in common"
    )


def objection_to(
    request: MetricRequest, schema: Schema, unusable: Mapping[Lookup, str]
) -> str | None:
    """The reason why a request cannot be computed; None if it can.

    :param unusable: the reasons why some lookups are not possible.
    """
    for lookup in lookups_of(request):
        if lookup in unusable:
            return unusable[lookup]
    first = next(iter(request.definition.arguments), None)
    try:
        for predicate in request.predicates:
            RowTypes(schema.type_of).check(predicate.node)
        for argument, value in request.given:
            if argument.kind in _COLUMNS and value is not None:
                for column in (value,) if isinstance(value, str) else value:
                    _check_family(request.metric, argument, column, schema)
            elif argument is first:
                continue  # literals that are not values of a column
            elif argument.kind is ArgumentKind.LITERALS:
                _check_literals(request.arguments[0], listed_values(value), schema)
            elif argument.kind is ArgumentKind.SHARES:
                _check_literals(request.arguments[0], [literal for literal, _ in value], schema)
            elif argument.kind is ArgumentKind.STEP:
                _check_step(request.arguments[0], value, schema)
        _check_variants(request, schema)
        if request.grouping is not None:
            _check_grouping(request.grouping, schema)
    except TypeObjection as objection:
        return str(objection)
    return None


def _check_family(metric: str, argument: Argument, column: str, schema: Schema) -> None:
    column_type = schema.type_of(column)
    if (
        argument.accepts
        and column_type != "void"
        and family_of(column_type) not in argument.accepts
    ):
        *most, last = sorted(family.value for family in argument.accepts)
        wanted = f"{', '.join(most)} or {last}" if most else last
        called = (
            " or ".join(name for name, summary in DRIFT_SUMMARY.items() if summary == metric)
            or metric
        )
        message = f"{called} needs a {wanted} column, and '{column}' is of type {column_type}"
        raise TypeObjection(message)
    if column_type in argument.refuses:
        raise TypeObjection(f"{metric} needs exact values, and '{column}' is of type {column_type}")


def _check_variants(request: MetricRequest, schema: Schema) -> None:
    variants = [name for name in request.columns if has_variant(schema.type_of(name))]
    if variants and any(
        aggregate.distinct or aggregate.over is not None
        for aggregate in request.definition.aggregates(request.arguments)
    ):
        name = variants[0]
        raise TypeObjection(
            f"'{name}' is of type {schema.type_of(name)}: a variant cannot be compared; use its "
            "parts in a query, such as variant_get(v, '$.id', 'string')"
        )


def _check_step(column: str, step: object, schema: Schema) -> None:
    reason = objection_to_step(step, column, schema.type_of(column))
    if reason is not None:
        raise TypeObjection(reason)


def _check_grouping(grouping: Grouping, schema: Schema) -> None:
    for column in grouping.columns:
        column_type = schema.type_of(column)
        if column_type.split("(")[0] not in _GROUPED:
            raise TypeObjection(
                f"'{column}' is of type {column_type}, which cannot form groups: use strings, "
                f"whole numbers, decimals, dates or booleans"
            )


def _check_literals(column: str, literals: Sequence[object], schema: Schema) -> None:
    column_type = schema.type_of(column)
    for value in literals:
        literal_kind = literal_type(value)
        text = value if isinstance(value, str) else None
        reason = objection_to_comparison(column_type, literal_kind, text)
        if reason:
            shown = f'"{text}"' if text is not None else str(value)
            kind = family_of(literal_kind).value
            message = f"'{column}' is of type {column_type} and {shown} is a {kind}: {reason}"
            raise TypeObjection(message)


def columns_of(request: MetricRequest, schema: Schema) -> Iterator[str]:
    """The names of columns in a valid request, as it spells them; last the ones in its filter."""
    yield from request.columns
    for predicate in request.predicates:
        yield from _columns_in(predicate, schema)
    if request.grouping is not None:
        yield from request.grouping.columns


def names_only_columns(request: MetricRequest, schema: Schema) -> bool:
    """False for a request that names a column which is not in the schema, or is invalid."""
    try:
        return all(schema.find(name) is not None for name in columns_of(request, schema))
    except TypeObjection:
        return False


def _columns_in(predicate: RowPredicate, schema: Schema) -> list[str]:
    named = []

    def type_of(name: str) -> str:
        named.append(name)
        return schema.type_of(name)

    RowTypes(type_of).check(predicate.node)
    return named


MOST_NEAR = 1_000
"""The maximum number of rows of one key on each side that are compared with a tolerance."""


@dataclass(frozen=True, slots=True)
class Match:
    """A comparison of the rows of two datasets. `compared` is None for all columns."""

    dataset: str
    reference: str
    keys: tuple[str, ...]
    compared: tuple[str, ...] | None = ()
    tolerance: Number | None = None

    @classmethod
    def of(cls, request: MetricRequest) -> Match:
        """The comparison that a request about rows needs."""
        arguments = {argument.name: value for argument, value in request.given}
        compared = arguments.get("compared", ())
        return cls(
            request.dataset,
            arguments["dataset"],
            _names(arguments["keys"]),
            None if compared is None else _names(compared),
            arguments.get("tolerance") or None,  # a tolerance of 0 is none
        )

    @property
    def keys_alone(self) -> Match:
        """The same comparison by keys only: missing and extra rows do not depend on values."""
        return replace(self, compared=(), tolerance=None)


@dataclass(frozen=True, slots=True)
class ColumnPair:
    """A column of the dataset and its counterpart in the reference, under the name in the
    assertion."""

    name: str
    left: ColumnPath
    right: ColumnPath

    @property
    def is_number(self) -> bool:
        return all(family_of(side.type) is Family.NUMBER for side in (self.left, self.right))

    @property
    def is_floating(self) -> bool:
        """True if one of the columns is floating-point: both are then compared as floats."""
        return bool({self.left.type, self.right.type} & set(FLOATING))


@dataclass(frozen=True, slots=True)
class Differences:
    """The numbers of missing, extra and changed rows, and of all rows in the dataset."""

    missing: int
    extra: int
    changed: int
    rows: int

    @property
    def counts(self) -> tuple[int, int, int, int]:
        return self.missing, self.extra, self.changed, self.rows

    @property
    def words(self) -> str:
        """`2 rows missing, 1 changed`; empty if none differs."""
        counts = ((self.missing, "missing"), (self.extra, "extra"), (self.changed, "changed"))
        return listed([f"{count} {word}" for count, word in counts if count])


@dataclass(frozen=True, slots=True)
class PairedColumns:
    """The columns of a match as in the schemas."""

    keys: tuple[ColumnPair, ...]
    compared: tuple[ColumnPair, ...]

    @property
    def both(self) -> tuple[tuple[ColumnPair, ...], tuple[ColumnPair, ...]]:
        return self.keys, self.compared


def pair_columns(match: Match, left: Schema, right: Schema) -> PairedColumns:
    """The columns to compare.

    :raises TypeObjection: a column does not exist, or cannot have values in common with its
        counterpart.
    """
    compared = _all_columns(match, left, right) if match.compared is None else match.compared
    return PairedColumns(
        tuple(_pair(name, left, right) for name in match.keys),
        tuple(_pair(name, left, right) for name in compared),
    )


def answer_match(request: MetricRequest, differences: Differences, scanned: Scanned) -> None:
    """Adds the value of a request about rows, with a description if rows differ.

    :param differences: for the same keys; a request about keys only ignores changed rows.
    """
    if Match.of(request).compared == ():
        differences = replace(differences, changed=0)
    metric = request.definition
    scanned.values[request] = metric.value(request.arguments, differences.counts)
    if differences.words and metric.is_internal:
        scanned.details[request] = differences.words


def answer_columns(request: MetricRequest, left: Schema, right: Schema, scanned: Scanned) -> None:
    """Adds the number of columns that differ, and their names."""
    differing = tuple(_differing_columns(left, right))
    scanned.values[request] = len(differing)
    if differing:
        scanned.details[request] = listed(differing, "; ")


def shared_matches(requests: Iterable[MetricRequest]) -> dict[Match, list[MetricRequest]]:
    """The comparisons for requests about rows, each with the requests that it answers.

    A request about keys only is answered by any comparison with the same keys.
    """
    matches = {request: Match.of(request) for request in requests}
    with_values = {match.keys_alone: match for match in matches.values() if match.compared != ()}
    shared: dict[Match, list[MetricRequest]] = {}
    for request, match in matches.items():
        chosen = with_values.get(match, match) if match.compared == () else match
        shared.setdefault(chosen, []).append(request)
    return shared


def is_about_rows(request: MetricRequest) -> bool:
    """True for a request that compares the rows of two datasets."""
    metric = request.definition
    return metric.scan is Scan.MATCH and any(
        argument.name == "keys" for argument in metric.arguments
    )


def _names(given: str | Arguments) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else given


def _all_columns(match: Match, left: Schema, right: Schema) -> tuple[str, ...]:
    """The columns of both that are not keys.

    :raises TypeObjection: one of the two lacks a column of the other.
    """
    keys = {key.casefold() for key in match.keys}
    for schema, other_schema in ((left, right), (right, left)):
        alone = [name for name in schema.types if spelled_like(name, other_schema.types) is None]
        if alone:
            raise TypeObjection(
                f"{listed(alone)}: only in dataset '{schema.dataset}', not in "
                f"'{other_schema.dataset}'; list the columns to compare"
            )
    return tuple(name for name in left.types if name.casefold() not in keys)


def _pair(name: str, left: Schema, right: Schema) -> ColumnPair:
    left_type = left.type_of(name)
    right_type = right.type_of(name)
    reason = objection_to_comparison(left_type, right_type)
    if reason is None and not _have_room(left_type, right_type):
        reason = "no decimal type fits both; cast one in a query"
    if reason is not None:
        raise TypeObjection(
            f"'{name}' is of type {left_type} in dataset '{left.dataset}' and of type "
            f"{right_type} in '{right.dataset}': {reason}"
        )
    places = left.find(name), right.find(name)
    assert places[0] is not None
    assert places[1] is not None
    return ColumnPair(name, places[0], places[1])


def _have_room(left_type: str, right_type: str) -> bool:
    kinds = (left_type, right_type)
    if left_type == right_type or any(
        kind in FLOATING or family_of(kind) is not Family.NUMBER for kind in kinds
    ):
        return True
    sizes = [decimal_size(kind) for kind in kinds]
    whole = max(precision - scale for precision, scale in sizes)
    return whole + max(scale for _, scale in sizes) <= LONGEST_DECIMAL


def _differing_columns(left: Schema, right: Schema) -> Sequence[str]:
    differences = []
    for name, kind in left.types.items():
        if name not in right.types:
            differences.append(f"{name} is missing in '{right.dataset}'")
        elif kind != right.types[name]:
            differences.append(f"{name} is {kind}, in '{right.dataset}' {right.types[name]}")
    differences += [
        f"{name} is missing in '{left.dataset}'" for name in right.types if name not in left.types
    ]
    return differences
