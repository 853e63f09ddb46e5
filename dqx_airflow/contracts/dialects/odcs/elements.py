"""The elements of a contract, by the names and ids in its references."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from dqx_airflow.contracts.column_paths import column_path, dotted_path
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.source.yaml_document import Mapping
from dqx_airflow.diagnostics.nearest import nearest

_OUTSIDE = re.compile(r"(?P<file>[^#]+\.ya?ml)#(?P<inside>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Element:
    """A property of an object: its model, and its column as DQL writes it.

    `name` is its name in the data, `path` leads to it through the enclosing structs.
    """

    model: str
    path: str
    name: str


@dataclass(frozen=True, slots=True)
class Elements:
    """All properties of a contract. Names are `object.property`, ids `schema/id/properties/id`."""

    by_name: dict[str, Element]
    by_id: dict[str, Element]
    objects: tuple[str, ...]

    def named(self, name: str) -> Element | str:
        """The element of `object.property`, or why there is none.

        With a single object its name may be left out.
        """
        element = self.by_name.get(name)
        if element is None and len(self.objects) == 1:
            element = self.by_name.get(f"{self.objects[0]}.{name}")
        if element is not None:
            return element
        near = nearest(name, self.by_name)
        return f"unknown property '{name}'" + (f": did you mean '{near}'?" if near else "")

    def referred(self, reference: str) -> Element | str:
        """The element in the `to` of a relationship, in this or another contract."""
        outside = _OUTSIDE.fullmatch(reference.strip())
        inside = (outside["inside"] if outside else reference).strip().removeprefix("/")
        if "/" in inside:
            if outside:
                return (
                    "ids in another contract cannot be resolved: write `file.yaml#object.property`"
                )
            element = self.by_id.get(inside)
            return element or f"no element with the ids '{inside}'"
        if outside is None and inside in self.by_name:
            return self.by_name[inside]
        model, _, path = inside.partition(".")
        if not model or not path:
            return "it does not name an object and a property: write `object.property`"
        if outside is None and model in self.objects:
            return self.named(inside)
        return Element(model, dotted_path(path), path)

    def name_in_data(self, model: str, name: str) -> str:
        """The name of the column of a property in the data."""
        element = self.by_name.get(f"{model}.{name}")
        return element.name if element is not None else name


def elements_of(reading: ClauseReader) -> Elements:
    by_name: dict[str, Element] = {}
    by_id: dict[str, Element] = {}
    objects = []
    for item in reading.mappings(reading.root, "schema"):
        model, table = reading.text(item, "name") or "", reading.text(item, "physicalName")
        objects.append(model)
        for way in _below(reading, item, _Way()):
            element = Element(model, ".".join(map(column_path, way.columns)), way.columns[-1])
            by_name[".".join((model, *way.names))] = element
            for owner, names in product((model, table), (way.names, way.columns)):
                if owner is not None:
                    by_name.setdefault(".".join((owner, *names)), element)
            ids = (reading.text(item, "id"), *way.ids)
            if None not in ids:
                by_id["schema/" + "/properties/".join(map(str, ids))] = element
    return Elements(by_name, by_id, tuple(objects))


def physical_name(reading: ClauseReader, item: Mapping) -> str:
    """The name of a column in the data."""
    return reading.text(item, "physicalName") or reading.text(item, "name") or ""


@dataclass(frozen=True, slots=True)
class _Way:
    """The names, the ids and the columns on the path to a property."""

    names: tuple[str, ...] = ()
    ids: tuple[str | None, ...] = ()
    columns: tuple[str, ...] = ()


def _below(reading: ClauseReader, owner: Mapping, way: _Way) -> Iterator[_Way]:
    for item in reading.mappings(owner, "properties"):
        below = _Way(
            (*way.names, reading.text(item, "name") or ""),
            (*way.ids, reading.text(item, "id")),
            (*way.columns, physical_name(reading, item)),
        )
        yield below
        yield from _below(reading, item, below)
