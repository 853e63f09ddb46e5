"""What is compared between two datasets, and what their schemas say about it.

Rows match by their keys: NULL matches NULL, NaN matches NaN, and -0.0 equals 0.0. If a key occurs
several times, as many rows match as both sides have; the remaining ones are missing or extra.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dqx_airflow.diagnostics.diagnostic import listed
from dqx_airflow.metrics.metric import Arguments, Scan
from dqx_airflow.metrics.spark_values import FLOATING
from dqx_airflow.metrics.types import (
    LONGEST_DECIMAL,
    ColumnPath,
    Family,
    decimal_size,
    family_of,
    spelled_like,
)
from dqx_airflow.plan.model import MetricRequest, Scanned
from dqx_airflow.plan.row_types import TypeObjection, objection_to_comparison
from dqx_airflow.plan.schema_check import Schema
from dqx_airflow.values.exact import Number

MOST_NEAR = 1_000
"""The maximum number of rows of one key on each side that are compared with a tolerance."""


@dataclass(frozen=True, slots=True)
class Match:
    """The rows of a dataset beside those of a reference. `compared` is None for all columns."""

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
    """The number of rows that differ, and of those in the dataset."""

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

    :raises Objection: a column does not exist, or cannot have values in common with its
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

    :raises Objection: one of the two lacks a column of the other.
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
    left_type, right_type = left.type_of(name), right.type_of(name)
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
