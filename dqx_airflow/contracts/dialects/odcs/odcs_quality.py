"""Rules of `quality` in an ODCS document, in the form of version 3.2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dqx_airflow.contracts.dialects.foreign import is_threshold
from dqx_airflow.contracts.dialects.odcs.elements import OdcsReading
from dqx_airflow.contracts.dialects.quality import read_quality
from dqx_airflow.contracts.dialects.rule_names import PlacedRule
from dqx_airflow.contracts.document import Entry, Mapping, Node, Scalar, Sequence, show_path
from dqx_airflow.contracts.mistakes import mistake
from dqx_airflow.contracts.model import plain_name


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


def _as_metric(reading: OdcsReading, rule: Mapping) -> Mapping:
    """The rule in the form of 3.2, with columns instead of properties, and 1 for the boolean result
    of a query."""
    entries = dict(rule.entries)
    for item in reading.mappings(rule, "customProperties"):
        # Rules of the standard have no key for it.
        if item.text("property") == "dialect" and "value" in item.entries:
            entries.setdefault("dialect", item.entries["value"])
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
                        # A comment reaches to the end of its line.
                        end = "\n" if "--" in bare else ""
                        number = "".join(("SELECT CAST((", bare, end, ") AS INT)"))
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
    """The column of a property in the data; of a nested one `address.city`, its path."""
    if not isinstance(item, Scalar):
        return item
    element = reading.elements.by_name.get(f"{reading.model}.{item.text}")
    return replace(item, value=item.text if element is None else plain_name(element.path))
