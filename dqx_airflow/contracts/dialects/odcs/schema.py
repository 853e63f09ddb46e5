"""Objects of an ODCS schema and their quality rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dqx_airflow.contracts.dialects.dcs.quality import read_quality
from dqx_airflow.contracts.dialects.extensions import PlacedRule
from dqx_airflow.contracts.dialects.foreign.thresholds import is_threshold
from dqx_airflow.contracts.dialects.odcs.service import OdcsContext
from dqx_airflow.contracts.source.yaml_document import Entry, Mapping, Node, Scalar, Sequence

_OF_PEOPLE = ("businessImpact", "method", "schedule", "scheduler")


def read_rules(
    context: OdcsContext, owner: Mapping, column: str | None = None, columns: tuple[str, ...] = ()
) -> Iterator[PlacedRule]:
    """The rules of an object with these columns, or of the property with this column."""
    rules = tuple(context.reading.mappings(owner, "quality"))
    metrics = [_as_metric(context, rule) for rule in rules]
    listed = Sequence(tuple(metrics), owner.path, owner.span)
    quality = {"quality": Entry("quality", listed, owner.span_of("quality"))}
    stand_in = Mapping(quality, owner.path, owner.span)
    yield from read_quality(context.reading, stand_in, column, context.sql_dialect, columns)
    for rule in rules:
        context.document_remarks(rule, *_OF_PEOPLE)
        if "query" in rule.entries:
            context.reading.documented_keys(rule, "unit", reason="what the query counts")


def _as_metric(context: OdcsContext, rule: Mapping) -> Mapping:
    """The rule in the form of 3.2, with columns instead of properties, and 1 for the boolean result
    of a query."""
    entries = dict(rule.entries)
    if "metric" not in entries and "rule" in entries:
        entries["metric"] = entries.pop("rule")
    if "type" not in entries and "metric" in entries:
        metric = entries["metric"]
        library = Scalar("library", "library", metric.node.path, metric.span)
        entries = {"type": Entry("type", library, metric.span), **entries}
    if "validValues" in entries and "arguments" not in entries:
        values = entries.pop("validValues")
        inner = Mapping({"validValues": values}, values.node.path, values.node.span)
        entries["arguments"] = Entry("arguments", inner, values.span)
        if not any(map(is_threshold, entries)):
            none = Scalar(0, "0", values.node.path, values.span)
            entries["mustBe"] = Entry("mustBe", none, values.span)
    for key in ("mustBe", "mustNotBe"):
        match entries.get(key):
            case Entry(node=Scalar(value=bool(value)) as scalar) as entry:
                entries[key] = replace(entry, node=replace(scalar, value=int(value)))
                _make_number(entries)
    match entries.get("arguments"):
        case Entry(node=Mapping() as arguments) as entry:
            entries["arguments"] = replace(entry, node=_with_columns(context, arguments))
    return replace(rule, entries=entries)


def _make_number(entries: dict[str, Entry]) -> None:
    """Turns the boolean result of a query into 1 or 0."""
    match entries.get("query"):
        case Entry(node=Scalar(text=text) as scalar) as entry:
            query = text.strip().rstrip(";")
            number = "".join(("SELECT CAST((", query, ") AS INT)"))
            entries["query"] = replace(entry, node=replace(scalar, text=number))


def _with_columns(context: OdcsContext, arguments: Mapping) -> Mapping:
    match arguments.entries.get("properties"):
        case Entry(node=Sequence(items=items) as listed) as entry:
            columns = tuple(_column(context, item) for item in items)
            entry = replace(entry, node=replace(listed, items=columns))
            return replace(arguments, entries=arguments.entries | {"properties": entry})
    return arguments


def _column(context: OdcsContext, item: Node) -> Node:
    if not isinstance(item, Scalar):
        return item
    return replace(item, value=context.elements.name_in_data(context.model, item.text))


VERSIONS = ("3.0.0", "3.0.1", "3.0.2", "3.1.0", "3.2.0")
