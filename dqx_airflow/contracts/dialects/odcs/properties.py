"""Properties of an ODCS schema, with their types and the options of these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from dqx_airflow.contracts import demands
from dqx_airflow.contracts.database_types import PhysicalType, has_zone, why_unread
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader, with_examples
from dqx_airflow.contracts.dialects.odcs.elements import OdcsReading, physical_name
from dqx_airflow.contracts.dialects.odcs.odcs_quality import read_rules
from dqx_airflow.contracts.dialects.odcs.options import option_rules
from dqx_airflow.contracts.dialects.odcs.physical_types import (
    SPARK_TYPE,
    TIMES,
    agrees,
    logical_type,
    may_hold_documents,
    meant_physical_type,
    names_nested,
    narrower,
    read_physical_type,
)
from dqx_airflow.contracts.dialects.rule_names import with_unique_names
from dqx_airflow.contracts.document import (
    NOTHING,
    Mapping,
    Node,
    Scalar,
    Sequence,
    plain_value,
    show_path,
)
from dqx_airflow.contracts.field_types import is_spark_type, spark_type_of, with_type
from dqx_airflow.contracts.formats_in_files import readable_format
from dqx_airflow.contracts.mistakes import mistake
from dqx_airflow.contracts.mistyped_types import meant_type, with_hint
from dqx_airflow.contracts.model import Field, Rule, column_path
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.values.blank import is_blank

_IN_TEXT = ("date", "timestamp", "time", "integer", "number")
"""The logical types whose values strings may represent; the format of these has the same name."""
_IMPLIED = {"properties": "object", "items": "array", "map": "map"}
"""The type of a property that only describes its contents."""
_DOCUMENTS = ("object", "array")
"""Logical types whose values columns may also hold as JSON."""
_VECTOR_ITEMS = {"float32": "float", "float64": "double", "int8": "tinyint", "uint8": "smallint"}


def read_property(reading: OdcsReading, node: Mapping, path: str | None = None) -> Field:
    """Reads a property with everything nested in it. `path` is the path of its parent."""
    name = physical_name(node)
    step = column_path(name)
    return _read(reading, node, name, step if path is None else f"{path}.{step}")


def is_column(node: Mapping) -> bool:
    """False for a measure, and for a computed dimension: data has no such column."""
    semantic = node.text("semanticType")
    return semantic != "measure" and not (
        semantic == "dimension" and "transformLogic" in node.entries
    )


def mark_computed(reading: OdcsReading, node: Mapping) -> None:
    """Marks a property that is not a column of the data."""
    for key, entry in node.entries.items():
        if key in ("quality", "relationships", "required", "unique", "enum", "logicalTypeOptions"):
            reading.unsupported(entry.node, "computed on request: there is no column to check")
        else:
            reading.documented(entry.node, "computed on request: not a column of the data")


def _read(reading: OdcsReading, node: Mapping, name: str, path: str) -> Field:
    item = Field(
        name=name,
        path=path,
        type=None,
        span=node.span,
        written_type=reading.text(node, "physicalType", "logicalType"),
        semantic=node.text("description"),
        title=node.text("businessName"),
        is_key=path in reading.key,
        classification=node.text("classification"),
        tags=reading.texts(node, "tags"),
        id=node.text("id"),
    )
    item = with_examples(item, node.scalars("examples"))
    item = _with_facts(reading, node, item)
    reading.remarks(node, "ODCS: property")
    item, rules = _typed(reading, node, item)
    logical = node.text("logicalType")
    if logical in TIMES:
        written = reading.mapping(node, "logicalTypeOptions").text("format")
        item = replace(item, text_format=readable_format(written, item.type))
    rules += _key_rules(reading, node, item)
    rules += option_rules(reading, node, item, logical)
    for relation in reading.mappings(node, "relationships"):
        reading.remarks(relation, "ODCS: relationship")
        try:
            if len(relation.texts("to")) != 1:
                raise NoCounterpartError("one property can refer to only one other")
            target = reading.elements.referred(*relation.texts("to"))
        except NoCounterpartError as error:
            reading.unsupported(relation.get("to"), str(error))
            continue
        demand = demands.Refers((path,), target.model, (target.path,))
        rules.append(reading.rule("references", demand, relation.get("to")))
    rules += (rule for _, rule in read_rules(reading, node, path))
    if "name" in node.entries and not path.endswith(("]", "}")):
        mark = node.get("physicalName") or node.get("name")
        rules.insert(0, reading.rule("exists", demands.Presence(), mark))
    return replace(item, rules=with_unique_names(rules))


def _with_facts(reading: OdcsReading, node: Mapping, item: Field) -> Field:
    """The field with its unit and its default value, which exports write as custom properties."""
    for custom in reading.mappings(node, "customProperties"):
        if custom.text("property") == "unit":
            item = replace(item, unit=custom.text("value"))
        elif custom.text("property") == "default" and "value" in custom.entries:
            item = replace(item, default=custom.literal("value"), has_default=True)
    return item


# Types -------------------------------------------------------------------------------------------


_Declared: TypeAlias = "tuple[str | None, list[Node | None], list[Rule]]"
"""The declared type of a property, if any, the nodes that declare it, and the rules for it."""


def _typed(reading: OdcsReading, node: Mapping, item: Field) -> tuple[Field, list[Rule]]:
    """The field with its type, and the rules for its logical and physical type."""
    logical = node.text("logicalType")
    written = node.text("physicalType")
    physical = None
    if is_blank(written):
        blank = node.get("physicalType")
        assert blank is not None
        reading.report(mistake("blank_type", blank.span, where=show_path(blank.path)))
    elif written is not None:
        physical = read_physical_type(
            written, logical, reading.sql_dialect, is_spark=reading.is_spark
        )
    in_spark_node = _spark_type_node(reading, node)
    in_spark = _type_in_spark(reading, in_spark_node)
    if in_spark is not None:
        physical = replace(physical or PhysicalType(""), spark_type=in_spark)
    if physical is None:
        spark_type, marks, rules = _by_logical(reading, node, logical)
    else:
        spark_type, marks, rules = _by_physical(reading, node, logical, physical.spark_type)
        if in_spark is not None:
            marks.append(in_spark_node)
    if spark_type is None:
        return item, rules
    if written is not None:
        # Without a server, names mean what the standard of SQL says.
        is_spark = reading.is_spark and bool(reading.root.items("servers"))
        zone = has_zone(written, reading.sql_dialect, is_spark=is_spark)
        item = replace(item, has_zone=zone)
    item = _with_parts(reading, node, item, spark_type)
    if physical is not None and logical is not None and agrees(logical, spark_type):
        item = replace(item, logical_type=logical)
    if any(mark is not None for mark in marks):
        rules.insert(0, reading.rule("type", demands.OfType(), *marks))
    if physical is not None and physical.most_characters is not None:
        has_length = "maxLength" in reading.mapping(node, "logicalTypeOptions").entries
        name = "physical_length" if has_length else "max_length"
        length = demands.Length("<=", physical.most_characters)
        rules.append(reading.rule(name, length, node.get("physicalType")))
    return item, rules


def _type_in_spark(reading: OdcsReading, written: Node | None) -> str | None:
    """The Spark type that a property states besides the type of its database, if it does."""
    if not isinstance(written, Scalar):
        return None
    spark_type = spark_type_of(written.text)
    if spark_type is None:
        meant = meant_type(written.text, is_spark_type)
        reading.unsupported(written, with_hint("not a Spark type", meant))
    return spark_type


def _spark_type_node(reading: OdcsReading, node: Mapping) -> Node | None:
    """The value of the custom property of a property that names its type in Spark."""
    for custom in reading.mappings(node, "customProperties"):
        if custom.text("property") == SPARK_TYPE:
            return custom.get("value")
    return None


def _by_logical(reading: OdcsReading, node: Mapping, logical: str | None) -> _Declared:
    """The type by its logical type, if there is no physical type of Spark."""
    written = node.text("physicalType")
    physical_node = node.get("physicalType")
    marks = [node.get("logicalType")]
    if logical is None:
        logical = _implied_type(node)
    if logical is not None and written and names_nested(logical, written):
        marks.append(physical_node)
    elif written:
        meant = meant_physical_type(
            written, logical, reading.sql_dialect, is_spark=reading.is_spark
        )
        if logical is None or meant is not None:
            reading.unsupported(physical_node, with_hint(why_unread(written), meant))
        else:
            reading.not_understood(physical_node, why_unread(written))
    if logical == "date" and reading.version.startswith("3.0") and _has_hours(reading, node):
        # 3.0 has a single type for dates with and without a time.
        return "timestamp", marks, []
    spark_type = logical_type(logical)
    if spark_type is None:
        reading.unsupported(marks[0], "Spark has no type for it that all versions can read")
    elif (
        logical is not None
        and logical in _DOCUMENTS
        and not _has_parts(node)
        and may_hold_documents(logical, written or "")
    ):
        spark_type = "any"
    return spark_type, marks, []


def _implied_type(node: Mapping) -> str | None:
    """The logical type of a property that only describes its contents."""
    for key, logical in _IMPLIED.items():
        if key in node.entries:
            return logical
    return None


def _has_hours(reading: OdcsReading, node: Mapping) -> bool:
    """True if the format of a date has hours."""
    return "H" in (reading.mapping(node, "logicalTypeOptions").text("format") or "")


def _by_physical(
    reading: OdcsReading, node: Mapping, logical: str | None, spark_type: str
) -> _Declared:
    """The type by its physical type, which is closer to the data.

    A string must have the format of its logical type.
    """
    logical_node = node.get("logicalType")
    marks = [node.get("physicalType")]
    if logical is None:
        return spark_type, marks, []
    if agrees(logical, spark_type):
        return narrower(logical, spark_type), [*marks, logical_node], []
    options = reading.mapping(node, "logicalTypeOptions")
    if spark_type == "string" and logical in TIMES and options.text("format"):
        reading.documented(logical_node, "its format is checked")
    elif spark_type == "string" and logical in _IN_TEXT:
        rule = reading.rule("format", demands.OfFormat(logical), logical_node)
        return spark_type, marks, [rule]
    elif spark_type == "string" and logical in _DOCUMENTS and not _has_parts(node):
        reading.documented(logical_node, "JSON in a string: its content is not described")
    else:
        reading.not_understood(logical_node, f"the physical type says otherwise: {spark_type}")
    return spark_type, marks, []


def _has_parts(node: Mapping) -> bool:
    """True if the document describes the nested properties or items of a property."""
    parts = (node.get(key) for key in _IMPLIED)
    return any(part is not None and bool(plain_value(part)) for part in parts)


def _with_parts(reading: OdcsReading, node: Mapping, item: Field, spark_type: str) -> Field:
    """The field with a type, and with the nested fields that the document describes."""
    item = with_type(item, spark_type) if "<" in spark_type else replace(item, type=spark_type)
    _mark_empty_parts(reading, node)
    properties = tuple(reading.mappings(node, "properties"))
    if properties and item.type == "struct":
        fields = tuple(read_property(reading, inner, item.path) for inner in properties)
        names = tuple(inner.text("name") or "" for inner in properties)
        return replace(item, fields=_demanded(reading, node, names, fields))
    for inner in properties:
        reading.unsupported(inner, f"a value of type {spark_type} has no properties")
    _demanded(reading, node)  # none of the properties that it requires is described
    items = reading.mapping(node, "items")
    if items is not NOTHING and item.type == "array":
        return replace(item, items=_read(reading, items, "[]", f"{item.path}[]"))
    if items is not NOTHING:
        reading.unsupported(items, f"a value of type {spark_type} has no items")
    entries = reading.mapping(node, "map")
    if entries is not NOTHING and item.type == "map":
        return replace(
            item,
            keys=_part_of_map(reading, entries, "key", item),
            values=_part_of_map(reading, entries, "value", item),
        )
    if node.text("logicalType") == "vector":
        return _vector(reading, node, item)
    return item


def _mark_empty_parts(reading: OdcsReading, node: Mapping) -> None:
    """Marks empty `properties` and `items` as documented."""
    for key in ("properties", "items"):
        part = node.get(key)
        if isinstance(part, Mapping | Sequence) and not plain_value(part):
            reading.documented(part, "its content is not described")


def _part_of_map(reading: OdcsReading, entries: Mapping, key: str, item: Field) -> Field | None:
    """The keys or the values of a map; None if they are not described."""
    part = reading.mapping(entries, key)
    if part is NOTHING:
        return None
    name = f"{{{key}}}"
    return _read(reading, part, name, item.path + name)


def _demanded(
    reading: ClauseReader, node: Mapping, names: Iterable[str] = (), fields: Iterable[Field] = ()
) -> tuple[Field, ...]:
    """The fields of an object; fields that its options require are never NULL.

    :param names: the names of the properties, which may differ from their names in the data.
    """
    options = reading.mapping(node, "logicalTypeOptions")
    demanded = list(fields)
    places = {item.name: place for place, item in enumerate(demanded)}
    places |= {name: place for place, name in enumerate(names)}
    for text, mark in {item.text: item for item in options.scalars("required")}.items():
        place = places.get(text)
        if place is None:
            reading.unsupported(mark, f"the object has no property '{text}'")
            continue
        item = demanded[place]
        rule = reading.rule("required", demands.Required(), mark)
        demanded[place] = replace(item, rules=with_unique_names((*item.rules, rule)))
    return tuple(demanded)


def _vector(reading: OdcsReading, node: Mapping, item: Field) -> Field:
    options = reading.mapping(node, "logicalTypeOptions")
    written = options.text("elementType") or "float32"
    element = options.get("elementType")
    part = Field("[]", f"{item.path}[]", _VECTOR_ITEMS.get(written), node.span, written)
    if part.type is None:
        reading.unsupported(element, "Spark has no type for it")
    elif element is not None:
        part = replace(part, rules=(reading.rule("type", demands.OfType(), element),))
    return replace(item, items=part)


# Keys and references -----------------------------------------------------------------------------


def _key_rules(reading: OdcsReading, node: Mapping, item: Field) -> Iterator[Rule]:
    if node.truth("required"):
        yield reading.rule("required", demands.Required(), node.get("required"))
    elif item.is_key:
        yield reading.rule("required", demands.Required(), node.get("primaryKey"))
    if node.truth("unique"):
        yield reading.rule("unique", demands.Unique((item.path,)), node.get("unique"))
    if (encrypted := node.text("encryptedName")) is not None:
        mark = node.get("encryptedName")
        if any(other.path == column_path(encrypted) for other in reading.elements.by_name.values()):
            reading.documented(mark, "this column is listed as a separate property")
        else:
            reading.unsupported(mark, "list it as a separate property, which is checked")
