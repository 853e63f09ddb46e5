"""An ODCS document beside its properties: servers, service levels, quality, custom properties.

What ODCS has no key for is a custom property:

    customProperties:
      - {property: deprecationNoticeDays, value: 30}
      - {property: breakingChangeCadence, value: quarterly_max}
      - {property: consumers, value: [{team: bi, useCase: Reports, pin: "2"}]}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import TypeAlias

from dqx_airflow.contracts.demands import Arrives, Demand, Fresh, Retained
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.dialects.durations import seconds_of
from dqx_airflow.contracts.dialects.foreign import is_threshold
from dqx_airflow.contracts.dialects.frequencies import Frequency, frequency_of
from dqx_airflow.contracts.dialects.rule_names import PlacedRule, RuleOfModel
from dqx_airflow.contracts.dialects.standards import DATABASES, read_quality, read_server
from dqx_airflow.contracts.document import Entry, Mapping, Node, Scalar, Sequence, show_path
from dqx_airflow.contracts.mistakes import mistake
from dqx_airflow.contracts.model import Consumer, Promise, Server, column_path, dotted_path
from dqx_airflow.diagnostics.diagnostic import nearest, slip_of
from dqx_airflow.errors import NoCounterpartError


@dataclass(slots=True)
class OdcsReading(ClauseReader):
    """The reading of a document of the standard, whose rules name its elements."""

    elements: Elements = field(default_factory=lambda: Elements({}, {}, ()))

    @property
    def version(self) -> str:
        return (self.root.text("apiVersion") or "").removeprefix("v")


def read_consumers(reading: ClauseReader) -> Iterator[Consumer]:
    """Reads the consumers in custom properties; a consumer without a team is left out."""
    for name, item in custom_properties(reading):
        if name != "consumers":
            continue
        for consumer in reading.mappings(item, "value"):
            team = consumer.text("team")
            if team is not None:
                yield Consumer(team, use_case=consumer.text("useCase"), pin=consumer.text("pin"))


def custom_properties(reading: ClauseReader) -> Iterator[tuple[str, Mapping]]:
    """The custom properties of the document, each with its name."""
    for item in reading.mappings(reading.root, "customProperties"):
        yield item.text("property") or "", item


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
        return Element(model, dotted_path(path), path)


def elements_of(reading: ClauseReader) -> Elements:
    by_name: dict[str, Element] = {}
    by_id: dict[str, Element] = {}
    objects = []
    for item in reading.mappings(reading.root, "schema"):
        model, table = item.text("name") or "", item.text("physicalName")
        objects.append(model)
        for way in _below(reading, item, ()):
            names, columns, inner_ids = zip(*way, strict=True)
            element = Element(model, ".".join(map(column_path, columns)), columns[-1])
            by_name[".".join((model, *names))] = element
            for owner, path in product((model, table), (names, columns)):
                if owner is not None:
                    by_name.setdefault(".".join((owner, *path)), element)
            ids = (item.text("id"), *inner_ids)
            if None not in ids:
                by_id["schema/" + "/properties/".join(map(str, ids))] = element
    return Elements(by_name, by_id, tuple(objects))


def physical_name(item: Mapping) -> str:
    """The name of a column in the data."""
    return item.text("physicalName") or item.text("name") or ""


_Way: TypeAlias = "tuple[tuple[str, str, str | None], ...]"
"""The name, the column and the id of each property on a path."""


def _below(reading: ClauseReader, owner: Mapping, way: _Way) -> Iterator[_Way]:
    for item in reading.mappings(owner, "properties"):
        below = (*way, (item.text("name") or "", physical_name(item), item.text("id")))
        yield below
        yield from _below(reading, item, below)


FILES = ("local", "s3", "azure", "sftp", "custom")
"""The types of servers with files that Spark reads itself, so that physical types are Spark types.
"""

SPARK = ("databricks", "hive", "iceberg", "glue")

# Several databases, or one that sqlglot does not read.
_LOCATED = (*DATABASES, *FILES[:-1], "cloudsql", "db2", "denodo", "informix", "vertica", "zen")
_PLACES = ("location", "path")
_TABLE_PARTS = ("project", "catalog", "database", "namespace", "dataset", "schema")


def read_servers(reading: ClauseReader) -> Iterator[Server]:
    """Reads `servers`. They are never checked against data."""
    for server in reading.mappings(reading.root, "servers"):
        named = server.text("server")
        read = read_server(reading, server, named, server.span, _location, _options)
        yield replace(read, format="iceberg") if read.type == "iceberg" else read


def _location(server: Mapping, kind: str) -> str | None:
    for key in _PLACES:
        if (place := server.text(key)) is not None:
            return place
    if kind not in (*_LOCATED, "iceberg"):
        return None
    parts = [server.text(key) for key in _TABLE_PARTS]
    return ".".join([*filter(None, parts), "{model}"])


def _options(server: Mapping) -> Iterator[tuple[str, str]]:
    """Reader options for the files: JSON in a single array spans several lines."""
    delimiter, file_format = (server.text(key) for key in ("delimiter", "format"))
    if file_format == "json" and delimiter == "array":
        yield "multiLine", "true"
    elif file_format == "csv" and delimiter is not None:
        yield "sep", delimiter
    if file_format in ("csv", "json") and (encoding := server.text("encoding")):
        yield "encoding", encoding


_SYNONYMS = {
    "av": "availability",
    "th": "throughput",
    "er": "errorrate",
    "ga": "generalavailability",
    "es": "endofsupport",
    "el": "endoflife",
    "re": "retention",
    "fy": "frequency",
    "ly": "latency",
    "td": "timetodetect",
    "tn": "timetonotify",
    "tr": "timetorepair",
}
"""The short names of the properties of service levels."""
_CHECKED = ("freshness", "latency", "retention", "frequency")
_OF_THE_SERVICE = (
    "availability",
    "throughput",
    "errorrate",
    "timetodetect",
    "timetonotify",
    "timetorepair",
    "timeofavailability",
)
_LIFECYCLE_DATES = ("generalavailability", "endofsupport", "endoflife")
_DIMENSIONS = (
    "accuracy",
    "completeness",
    "conformity",
    "consistency",
    "coverage",
    "timeliness",
    "uniqueness",
    "validity",
    "volume",
)
"""Properties that a rule of `quality` can state; a service level does not name a rule."""
_SAYING = ("value", "valueExt", "unit", "element")
_NO_PERIOD = "not a duration: write a number and a unit, such as `value: 24`, `unit: h`"
_NO_INTERVAL = (
    "not an interval: write daily, hourly, a cron expression, or a number and a unit, such as "
    "`value: 24`, `unit: h`"
)


def read_service(reading: OdcsReading) -> Iterator[RuleOfModel]:
    """The rules of the service levels."""
    for level in reading.mappings(reading.root, "slaProperties"):
        reading.remarks(level, "ODCS: service level")
        kind = kind_of(level)
        if kind in _CHECKED:
            yield from _timed(reading, level, kind)
        elif kind in _OF_THE_SERVICE:
            reason = "concerns the service: the data does not show it"
            reading.documented_keys(level, *_SAYING, reason=reason)
        elif kind in _LIFECYCLE_DATES:
            reading.documented_keys(level, *_SAYING, reason="a lifecycle date of the contract")
        elif meant := slip_of(kind, [*_SYNONYMS.values(), "freshness"]):
            reason, hint = f"unknown property '{kind}'", f"did you mean '{meant}'?"
            reading.not_understood(level.get("property"), reason, "E422", hint)
            _refuse(reading, level, f"{reason}: {hint}")
        elif kind in _DIMENSIONS:
            reason = f"a service level '{kind}' does not name a rule: write it as `quality`"
            _refuse(reading, level, reason)
        else:
            reason = (
                f"'{kind}' is not a property of the standard: {', '.join(_CHECKED)} are checked"
            )
            for key in ("property", *_SAYING):
                reading.not_understood(level.get(key), reason)


def kind_of(level: Mapping) -> str:
    """The property of a service level by its long name, in lower case."""
    written = (level.text("property") or "").strip().lower()
    return _SYNONYMS.get(written, written)


def _refuse(reading: OdcsReading, level: Mapping, reason: str, code: str | None = None) -> None:
    path = show_path(level.path)
    dimension = "conformity" if kind_of(level) == "retention" else "timeliness"
    promise = Promise(path, path, dimension=dimension)
    for key in _SAYING:
        reading.unsupported(level.get(key), reason, code, promise=promise)


def _timed(reading: OdcsReading, level: Mapping, kind: str) -> Iterator[RuleOfModel]:
    objects, places = reading.elements.objects, list[tuple[str, str | None]]()
    demand_of = _demand_of(level, kind)
    written = level.text("element") or reading.root.text("slaDefaultElement")
    if written is None and len(objects) == 1:
        written = objects[0]
    reason = None
    if demand_of is None:
        reason = _NO_INTERVAL if kind == "frequency" else _NO_PERIOD
    elif written is None:
        reason = "the property is ambiguous: add `element: object.property`"
    elif kind == "frequency" and level.literal("valueExt") not in (None, 1):
        reason = "the standard does not define its valueExt"
    if reason is not None or demand_of is None or written is None:
        _refuse(reading, level, str(reason))
        return
    nodes = [level.get(key) for key in _SAYING]
    names = [name.strip() for name in written.split(",")]
    for name in names:
        try:
            element = None if name in objects else reading.elements.named(name)
        except NoCounterpartError as error:
            _refuse(reading, level, str(error), "E420")
            return
        places.append((name, None) if element is None else (element.model, element.path))
    for model, path in places:
        yield model, path, reading.rule(kind, demand_of(path), *nodes)


def _demand_of(level: Mapping, kind: str) -> Callable[[str | None], Demand] | None:
    """The demand of a service level on a column; None if its value is not a time."""
    seconds = _seconds(level, kind)
    if kind == "frequency":
        stated = Frequency(seconds) if seconds is not None else None
        if stated is None and level.number("value") is None:
            stated = frequency_of(level.text("value") or "")
        if stated is None:
            return None
        return partial(Arrives, interval_s=stated.interval_s, schedule=stated.schedule)
    if seconds is None:
        return None
    if kind == "retention":
        return partial(Retained, period_s=seconds)
    return partial(Fresh, age_s=seconds)


def _seconds(level: Mapping, kind: str) -> float | None:
    """The seconds of `value: 4`, `unit: d`; days without a unit. A value may also be `P1Y`.

    `m` are months for a retention, and minutes for everything else.
    """
    number, unit = level.number("value"), level.text("unit")
    if number is None:
        return seconds_of(level.text("value") or "")
    word = (unit or "d").strip().lower()
    if word == "m":
        word = "months" if kind == "retention" else "minutes"
    return seconds_of(f"{number} {word}")


def read_rules(
    reading: OdcsReading, owner: Mapping, column: str | None = None, columns: tuple[str, ...] = ()
) -> Iterator[PlacedRule]:
    """The rules of an object with these columns, or of the property with this column."""
    rules = tuple(reading.mappings(owner, "quality"))
    metrics = [_as_metric(reading, rule) for rule in rules]
    listed = Sequence(tuple(metrics), owner.path, owner.span)
    quality = {"quality": Entry("quality", listed, owner.span_of("quality"))}
    stand_in = Mapping(quality, owner.path, owner.span)
    yield from read_quality(reading, stand_in, column, columns)
    for rule in rules:
        reading.remarks(rule, "ODCS: rule")
        if "query" in rule.entries:
            reading.documented_keys(rule, "unit", reason="what the query counts")


def _as_metric(reading: OdcsReading, rule: Mapping) -> Mapping:
    """The rule in the form of 3.2, with columns instead of properties, and 1 for the boolean result
    of a query."""
    entries = dict(rule.entries)
    if "metric" not in entries and "rule" in entries:
        entries["metric"] = entries.pop("rule")
    if "validValues" in entries and "arguments" not in entries:
        values = entries.pop("validValues")
        inner = Mapping({"validValues": values}, values.node.path, values.node.span)
        entries["arguments"] = Entry("arguments", inner, values.span)
        if not any(map(is_threshold, entries)):
            none = Scalar(0, "0", values.node.path, values.span)
            entries["mustBe"] = Entry("mustBe", none, values.span)
    for key in ("mustBe", "mustNotBe"):
        match entries.get(key):
            case Entry(node=Scalar(value=str(text), written=str()) as scalar):
                # Elsewhere, the schema of the standard requires numbers.
                where = show_path(scalar.path)
                found = mistake("number_in_text", scalar.span, where=where, written=repr(text))
                reading.report(found)
            case Entry(node=Scalar(value=bool(value)) as scalar) as entry:
                entries[key] = replace(entry, node=replace(scalar, value=int(value)))
                match entries.get("query"):
                    case Entry(node=Scalar(text=text) as query) as entry:
                        bare = text.strip().rstrip(";")
                        number = "".join(("SELECT CAST((", bare, ") AS INT)"))
                        entries["query"] = replace(entry, node=replace(query, text=number))
    match entries.get("arguments"):
        case Entry(node=Mapping(entries=given) as arguments) as outer:
            match given.get("properties"):
                case Entry(node=Sequence(items=items) as listed) as entry:
                    columns = tuple(_column(reading, item) for item in items)
                    entry = replace(entry, node=replace(listed, items=columns))
                    arguments = replace(arguments, entries=given | {"properties": entry})
                    entries["arguments"] = replace(outer, node=arguments)
    return replace(rule, entries=entries)


def _column(reading: OdcsReading, item: Node) -> Node:
    """The name of the column of a property in the data."""
    if not isinstance(item, Scalar):
        return item
    element = reading.elements.by_name.get(f"{reading.model}.{item.text}")
    return replace(item, value=item.text if element is None else element.name)


VERSIONS = ("3.0.0", "3.0.1", "3.0.2", "3.1.0", "3.2.0")
