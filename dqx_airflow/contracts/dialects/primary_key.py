"""The primary key of a model, from the marks of its fields, at any depth, in the two standards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dqx_airflow.contracts.demands import Unique
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.document import Node
from dqx_airflow.contracts.model import Field, Rule

_REPEATED = "a key within the items of an array or a map is not checked: these are not rows"
_AMBIGUOUS = (
    "ambiguous: a table has one primary key, and other fields are marked elsewhere: remove a mark, "
    "or write a rule with the metric duplicateValues"
)


@dataclass(frozen=True, slots=True)
class KeyMark:
    """A field that is marked as a part of the primary key.

    `parent` is the path of the struct that it is in; empty for a column. `is_repeated`: it is
    within an array or a map. `position` is its place in the key, if the contract has one.
    """

    path: str
    parent: str
    nodes: tuple[Node, ...]
    position: float | None = None
    is_repeated: bool = False


def primary_key(reading: ClauseReader, marks: Iterable[KeyMark]) -> tuple[KeyMark, ...]:
    """The marks that form the primary key, in its order. Other marks become unsupported.

    Fields of several structs form a key only if each has a position of its own: otherwise one of
    the structs may describe another entity, whose key may repeat here.
    """
    candidates = []
    for mark in marks:
        if mark.is_repeated:
            _refuse(reading, mark, _REPEATED)
        else:
            candidates.append(mark)
    positions = {mark.position for mark in candidates}
    has_order = None not in positions and len(positions) == len(candidates)
    if not has_order and len({mark.parent for mark in candidates}) > 1:
        for mark in candidates:
            if mark.parent:
                _refuse(reading, mark, _AMBIGUOUS)
        candidates = [mark for mark in candidates if not mark.parent]

    def place_of(mark: KeyMark) -> float:
        """Its position; fields without one come last, in document order."""
        return float("inf") if mark.position is None else mark.position

    return tuple(sorted(candidates, key=place_of))


def key_rules(
    reading: ClauseReader, key: Iterable[KeyMark], fields: Iterable[Field]
) -> Iterator[Rule]:
    """The rule for the primary key of a model, if it has one. A nested field that could not be
    read, such as a property of a text, is no part of it."""
    known = {inner.path for item in fields for inner in item.walk()}
    marks = [mark for mark in key if not mark.parent or mark.path in known]
    if marks:
        nodes = [node for mark in marks for node in mark.nodes]
        yield reading.rule("primary_key", Unique(tuple(mark.path for mark in marks)), *nodes)


def _refuse(reading: ClauseReader, mark: KeyMark, reason: str) -> None:
    for node in mark.nodes:
        reading.unsupported(node, reason)
