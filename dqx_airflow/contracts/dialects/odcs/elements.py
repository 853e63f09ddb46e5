"""The properties of an ODCS document, to which relationships, rules and service levels refer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import TypeAlias

from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.document import Mapping
from dqx_airflow.contracts.model import column_path, dotted_path
from dqx_airflow.diagnostics.diagnostic import nearest
from dqx_airflow.errors import NoCounterpartError


@dataclass(slots=True)
class OdcsReading(ClauseReader):
    """The reading of a document of the standard, whose rules name its elements.

    `key` are the paths of the properties in the primary key of the object being read. `is_text`: a
    server has its data in text files.
    """

    elements: Elements = field(default_factory=lambda: Elements({}, {}, ()))
    key: frozenset[str] = frozenset()
    is_text: bool = False

    @property
    def version(self) -> str:
        return (self.root.text("apiVersion") or "").removeprefix("v")


_OUTSIDE = re.compile(r"(?P<file>[^#]+\.ya?ml)#(?P<inside>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Element:
    """A property of an object: its model, and its column in the data as DQL writes it.

    `path` leads to it through the enclosing structs. `is_time`: it holds dates or timestamps.
    """

    model: str
    path: str
    is_time: bool = False


@dataclass(frozen=True, slots=True)
class Elements:
    """All properties of a contract. Names are `object.property`, ids `schema/id/properties/id`."""

    by_name: dict[str, Element]
    by_id: dict[str, Element]
    objects: tuple[str, ...]

    def named(self, name: str) -> Element:
        """The element of `object.property`. With a single object its name may be left out.

        :raises NoCounterpartError: there is none.
        """
        element = self.by_name.get(name)
        if element is None and len(self.objects) == 1:
            element = self.by_name.get(f"{self.objects[0]}.{name}")
        if element is not None:
            return element
        near = nearest(name, self.by_name)
        hint = f": did you mean '{near}'?" if near else ""
        raise NoCounterpartError(f"unknown property '{name}'{hint}")

    def referred(self, reference: str) -> Element:
        """The element in the `to` of a relationship, in this or another contract.

        :raises NoCounterpartError: there is none.
        """
        outside = _OUTSIDE.fullmatch(reference.strip())
        inside = (outside["inside"] if outside else reference).strip().removeprefix("/")
        if "/" in inside and outside:
            wanted = "write `file.yaml#object.property`"
            raise NoCounterpartError(f"ids in another contract cannot be resolved: {wanted}")
        if "/" in inside:
            if inside not in self.by_id:
                raise NoCounterpartError(f"no element with the ids '{inside}'")
            return self.by_id[inside]
        if outside is None and inside in self.by_name:
            return self.by_name[inside]
        model, _, path = inside.partition(".")
        if not model or not path:
            raise NoCounterpartError(
                "it does not name an object and a property: write `object.property`"
            )
        if outside is None and model in self.objects:
            return self.named(inside)
        return Element(model, dotted_path(path))


def elements_of(reading: ClauseReader) -> Elements:
    by_name: dict[str, Element] = {}
    by_id: dict[str, Element] = {}
    objects = []
    for item in reading.mappings(reading.root, "schema"):
        model = item.text("name") or ""
        table = item.text("physicalName")
        objects.append(model)
        for way in _below(reading, item, ()):
            names, columns, inner_ids, times = zip(*way, strict=True)
            path = ".".join(map(column_path, columns))
            element = Element(model, path, is_time=times[-1])
            by_name[".".join((model, *names))] = element
            for owner, inner in product((model, table), (names, columns)):
                if owner is not None:
                    by_name.setdefault(".".join((owner, *inner)), element)
            ids = (item.text("id"), *inner_ids)
            if None not in ids:
                by_id["schema/" + "/properties/".join(map(str, ids))] = element
    return Elements(by_name, by_id, tuple(objects))


def physical_name(item: Mapping) -> str:
    """The name of a column in the data."""
    return item.text("physicalName") or item.text("name") or ""


_Way: TypeAlias = "tuple[tuple[str, str, str | None, bool], ...]"
"""The name, the column and the id of each property on a path, and whether it holds times."""


def _below(reading: ClauseReader, owner: Mapping, way: _Way) -> Iterator[_Way]:
    for item in reading.mappings(owner, "properties"):
        name = item.text("name") or ""
        below = (*way, (name, physical_name(item), item.text("id"), _holds_times(item)))
        yield below
        yield from _below(reading, item, below)


def _holds_times(item: Mapping) -> bool:
    types = (item.text("logicalType") or "", item.text("physicalType") or "")
    return any(written.strip().lower().startswith(("date", "timestamp")) for written in types)
