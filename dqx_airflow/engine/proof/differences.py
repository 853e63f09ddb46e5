"""What an engine that differs must not judge: the traits of requests that its differences blame.

A trait is a metric, a function or an operator over a type, a type, or the format of files, as in
`sum over decimal` or `format csv`. Of a line that differs, the trait is blamed that differs most
often where it occurs; of equal ones, that which explains most lines. A trait that agrees elsewhere
is blamed all the same if no other explains the difference.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from dqx_airflow.dql import nodes
from dqx_airflow.metrics.spark_values import FLOATING
from dqx_airflow.plan.model import MetricRequest
from dqx_airflow.plan.predicates import lookups_of
from dqx_airflow.plan.row_values import TypeObjection
from dqx_airflow.plan.schema_check import Schema

if TYPE_CHECKING:
    from dqx_airflow.engine.sources.dataset import OpenDataset

_TYPE = re.compile(r"[a-z_]+(?=[(<,>]|$)")
_WORDS: dict[type, str] = {
    nodes.Not: "not",
    nodes.Negative: "-",
    nodes.Within: "between",
    nodes.Matches: "matches",
    nodes.Like: "like",
    nodes.IsNull: "is null",
    nodes.IsNan: "is NaN",
}


@dataclass(frozen=True, slots=True)
class SeenDataset:
    """A dataset as an engine sees it: its schema, and the format of its files if it has files."""

    schema: Schema
    format: str | None


def measured_as(opened: Mapping[str, OpenDataset]) -> dict[str, SeenDataset]:
    """The datasets as traits need them."""
    return {
        name: SeenDataset(dataset.schema, dataset.ref.format if dataset.ref.path else None)
        for name, dataset in opened.items()
    }


def traits_of(request: MetricRequest, datasets: Mapping[str, SeenDataset]) -> frozenset[str]:
    """What the value of a request depends on.

    :param datasets: those that it reads, by name, as far as they could be opened.
    """
    words = {request.metric}
    names = {(request.dataset, name) for name in request.columns}
    for predicate in request.predicates:
        for node in _nodes(predicate.node):
            words |= set(_words(node))
            if isinstance(node, nodes.Name):
                names.add((request.dataset, node.text))
    for lookup in lookups_of(request):
        names |= {(lookup.dataset, lookup.column), (lookup.reference, lookup.reference_column)}
    if request.grouping is not None:
        words.add("for each")
        names |= {(request.dataset, name) for name in request.grouping.columns}
    read = {dataset for dataset, _ in names} | set(request.datasets)
    types: set[str] = set()
    for dataset, name in names:
        if dataset in datasets:
            types |= set(_kinds(datasets[dataset].schema, name))
    if "decimal" in types and not types.isdisjoint(FLOATING):
        types.add("decimal beside a double")
    formats = {datasets[name].format for name in read if name in datasets} - {None}
    return frozenset(
        {
            *words,
            *(f"type {type_}" for type_ in types),
            *(f"{word} over {type_}" for word in words for type_ in types),
            *(f"format {format}" for format in formats),
        }
    )


def _kinds(schema: Schema, name: str) -> Iterator[str]:
    """The words for the type of a column; none for a name that is none."""
    with suppress(TypeObjection):  # it may mean two of them, which is reported elsewhere
        if (found := schema.find(name)) is not None:
            yield from _TYPE.findall(schema.type_of(name).lower())
            if len(found.path) > 1:
                yield "field"


def _nodes(node: Any) -> Iterator[Any]:
    if not is_dataclass(node) or isinstance(node, type):
        return
    yield node
    for field in fields(node):
        value = getattr(node, field.name)
        for part in value if isinstance(value, tuple) else (value,):
            yield from _nodes(part)


def _words(node: Any) -> Iterator[str]:
    match node:
        case nodes.Arithmetic() | nodes.Compare() | nodes.Junction():
            yield node.op
        case nodes.Call() | nodes.Quantified():
            yield node.name.text
        case nodes.Member():
            yield "in values" if isinstance(node.choices, nodes.Call) else "in"
        case nodes.HasFormat():
            yield f"is {node.format.text}"
        case _:
            if (word := _WORDS.get(type(node))) is not None:
                yield word


def blamed(
    differing: Sequence[Collection[str]], agreeing: Iterable[Collection[str]]
) -> tuple[str, ...]:
    """The traits that explain differences, each of which has at least one of them.

    :param differing: the traits of each line with another value.
    :param agreeing: the traits of each line with the value that is due.
    """
    fine = Counter(trait for traits in agreeing for trait in traits)
    left = [frozenset(traits) for traits in differing if traits]
    chosen: list[str] = []
    while left:
        bad = Counter(trait for traits in left for trait in traits)
        worst = max(
            bad, key=lambda trait: (bad[trait] / (bad[trait] + fine[trait]), bad[trait], trait)
        )
        chosen.append(worst)
        left = [traits for traits in left if worst not in traits]
    return tuple(sorted(chosen))


def objection_to_engine(
    request: MetricRequest, datasets: Mapping[str, SeenDataset], doubts: Collection[str]
) -> str | None:
    """Why a request is not judged on an engine; None if nothing that it uses differs there."""
    used = sorted(traits_of(request, datasets) & frozenset(doubts))
    if not used:
        return None
    return (
        f"this engine was found to compute other values with {', '.join(used)}: "
        "`dql doctor --prove` shows them"
    )
