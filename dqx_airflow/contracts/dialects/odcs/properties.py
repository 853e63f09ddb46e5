"""Properties of an ODCS schema, with their types and the options of these."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, time
from typing import TypeAlias

from dqx_airflow.contracts import demands
from dqx_airflow.contracts.compile.terms import sql_name
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader, with_examples
from dqx_airflow.contracts.dialects.odcs.elements import OdcsReading, physical_name
from dqx_airflow.contracts.dialects.odcs.odcs_quality import read_rules
from dqx_airflow.contracts.dialects.rule_names import with_unique_names
from dqx_airflow.contracts.document import NOTHING, Mapping, Node, Scalar, Sequence, plain_value
from dqx_airflow.contracts.field_types import spark_type_of, types_named, with_type
from dqx_airflow.contracts.model import Field, Rule, column_path
from dqx_airflow.contracts.time_texts import TimeFormat
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.metrics.text_formats import TEXT_FORMATS
from dqx_airflow.metrics.types import LONGEST_DECIMAL, Family, family_of, parts_of

_SPOKEN = (None, "postgres", "bigquery", "snowflake")
"""The dialects whose types are tried if Spark has no such name, in this order."""

_DOCUMENT_WORDS = ("json", "jsonb", "variant", "super")
_NESTED_WORDS = {
    "array": ("array", "list", "repeated", *_DOCUMENT_WORDS),
    "map": ("map", "object", *_DOCUMENT_WORDS),
    "object": ("struct", "object", "record", "row", "map", *_DOCUMENT_WORDS),
    "vector": ("vector", "array"),
    "string": _DOCUMENT_WORDS,
}
"""Physical types that state no more than a logical type does, by the logical type."""
_STRUCTS = {"struct", "record", "row"}
_FAMILY = {
    "string": Family.TEXT,
    "date": Family.TIME,
    "timestamp": Family.TIME,
    "number": Family.NUMBER,
    "integer": Family.NUMBER,
    "boolean": Family.BOOLEAN,
}
_UNLIMITED = 2**31 - 1
_BARE_NUMBER = re.compile(r"(?:decimal|dec|numeric|number|bignumeric|bigdecimal)", re.IGNORECASE)
_LENGTH_IN_BRACKETS = re.compile(r"(\w*char\w*)\s*\[(\d+)\]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PhysicalType:
    """A database type in Spark: its type there, and the maximum length of a string."""

    spark_type: str
    most_characters: int | None = None


def logical_type(word: str | None) -> str | None:
    """The Spark type for a logical type, or a word for several; None if Spark has none."""
    return types_named("ODCS").get(word) if word is not None else None


def physical_type(written: str, sql_dialect: str | None, *, is_spark: bool) -> PhysicalType | None:
    """The Spark type for a physical type; None if there is none."""
    text = written.strip()
    if match := _LENGTH_IN_BRACKETS.fullmatch(text):
        text = f"{match[1]}({match[2]})"
    if _BARE_NUMBER.fullmatch(text):
        return PhysicalType("number")
    spark_type = spark_type_of(text)
    if is_spark and spark_type is not None:
        if family_of(spark_type) is not Family.TEXT:
            return PhysicalType(spark_type)
        parts = parts_of(spark_type)
        return PhysicalType("string", int(parts[0]) if parts else None)
    dialects = _SPOKEN if is_spark else (sql_dialect,)
    understood = (_transpiled(text, dialect) for dialect in dialects)
    return next((physical for physical in understood if physical is not None), None)


def agrees(logical: str, spark_type: str) -> bool:
    """Whether values of a Spark type are values of a logical type."""
    name = re.split(r"[<(]", spark_type, maxsplit=1)[0]
    if name == "binary":  # without a logical type
        return logical == "string"
    if logical in _FAMILY:
        family = Family.NUMBER if name == "number" else family_of(spark_type)
        return family is _FAMILY[logical]
    return name == types_named("ODCS").get(logical) or (logical == "object" and name == "map")


def names_nested(logical: str, written: str) -> bool:
    """True for a physical type that only means nested values, such as `RECORD`."""
    return _word(written) in _NESTED_WORDS.get(logical, ())


def narrower(logical: str, spark_type: str) -> str:
    """The narrower of a logical and a physical type, if both are known: a `NUMBER` that is an
    integer."""
    return "whole_number" if (logical, spark_type) == ("integer", "number") else spark_type


def _word(written: str) -> str:
    return re.split(r"[\s<(\[]", written.strip().lower(), maxsplit=1)[0]


def _transpiled(text: str, sql_dialect: str | None) -> PhysicalType | None:
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    try:
        data_type = exp.DataType.build(text, dialect=sql_dialect if sql_dialect != "ansi" else None)
    except (SqlglotError, ValueError, RecursionError):
        return None
    kind = data_type.this.name if isinstance(data_type.this, exp.DataType.Type) else ""
    sizes = [part.name for part in data_type.expressions]
    numbers = [int(size) for size in sizes if size.isdigit()]
    if kind in ("DECIMAL", "BIGDECIMAL"):
        if not numbers or numbers[0] > LONGEST_DECIMAL:
            return PhysicalType("number")
        return PhysicalType(f"decimal({numbers[0]},{numbers[1] if len(numbers) > 1 else 0})")
    if kind == "DATE" and sql_dialect == "oracle":
        return PhysicalType("timestamp")  # with a time of day
    if (named := types_named("sqlglot").get(kind)) is not None:
        is_text = named == "string" and bool(numbers) and numbers[0] < _UNLIMITED
        return PhysicalType(named, numbers[0] if is_text else None)
    if data_type.args.get("nested") and data_type.expressions:
        nested = spark_type_of(data_type.sql(dialect="spark"))
        return PhysicalType(nested) if nested is not None else None
    return None


_BASE64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_FORMATS = {name: name for name in TEXT_FORMATS} | {"date-time": "timestamp", "url": "url"}
_BITS = {f"{sign}{bits}": bits for sign in "iu" for bits in (8, 16, 32, 64, 128)}
_MOST_BITS = 64
_ROUNDED = 0.01
"""The square of the length of a vector of halves is 1 with a smaller error, whatever its size."""
_ISO_DATE = "yyyy-MM-dd"
_NUMBERS = ("integer", "number")
_LENGTHS = (
    ("minLength", "min_length", ">="),
    ("maxLength", "max_length", "<="),
    ("minItems", "min_items", ">="),
    ("maxItems", "max_items", "<="),
)


def option_rules(
    reading: ClauseReader, owner: Mapping, item: Field, logical: str | None
) -> Iterator[Rule]:
    """The rules for the options of a property, whose logical type may be unknown."""
    options = reading.mapping(owner, "logicalTypeOptions")
    reading.remarks(options, "ODCS: options")
    yield from _bounds(reading, options, item, logical)
    if (divisor := options.number("multipleOf")) is not None:
        yield reading.rule("multiple_of", demands.MultipleOf(divisor), options.get("multipleOf"))
    yield from _lengths(reading, options, item)
    if (expression := options.text("pattern")) is not None:
        yield reading.rule("pattern", demands.Pattern(expression), options.get("pattern"))
    yield from _format(reading, options, item, logical)
    if not options.truth("normalized"):
        reading.documented_keys(options, "normalized")
    for key in ("minProperties", "maxProperties"):
        reading.unsupported(options.get(key), "a struct always has all of its fields")
    values = [entry.get("value") for entry in reading.mappings(owner, "enum")]
    accepted = tuple(value.value for value in values if isinstance(value, Scalar))
    if accepted:
        yield reading.rule("enum", demands.OneOf(accepted), *values)


def _bounds(
    reading: ClauseReader, options: Mapping, item: Field, logical: str | None
) -> Iterator[Rule]:
    written = options.text("format")
    meant = _number_in(item, logical)

    def bound(key: str, name: str, op: str) -> Rule | None:
        limit, node = options.text(key), options.get(key)
        if logical in _NUMBERS and options.number(key) is None:
            return None  # it does not fit the schema, which was reported
        if logical in _TIMES and _is_text(item, logical):
            if not isinstance(node, Scalar) or node.value is None:
                return None
            if (problem := _broken_format(written)) is not None:
                reading.unsupported(node, problem)
                return None
            is_time = logical == "time"
            moment = reading.bound_moment(node, written, is_time=is_time)
            if moment is None:
                return None
            if written == _ISO_DATE or (written is None and logical == "date"):
                return reading.rule(name, _bound_of_days(op, moment), node)
            shown, is_alone = moment.isoformat(), item.type is None
            in_text = demands.TimeBound(op, shown, written, is_time=is_time, is_alone=is_alone)
            return reading.rule(name, in_text, node)
        if meant is not None and limit is not None:
            return reading.rule(name, demands.RowsSatisfy(f"{meant} {op} {limit}", "spark"), node)
        pattern = written if logical in ("date", "timestamp") else None
        return reading.bound_rule(options, key, name, op, item.type, pattern)

    for key, exclusive, inclusive, strict in (
        ("minimum", "exclusiveMinimum", ">=", ">"),
        ("maximum", "exclusiveMaximum", "<=", "<"),
    ):
        # In 3.0 it is a boolean, and makes `minimum` exclusive.
        if (is_strict := options.truth(exclusive)) is not None:
            name = f"exclusive_{key}" if is_strict else key
            op = strict if is_strict else inclusive
            if (rule := bound(key, name, op)) is not None:
                mark = reading.clause(options.get(exclusive) or options)
                yield Rule(rule.name, rule.demand, (*rule.clauses, mark))
            reading.documented_keys(options, exclusive, reason=f"there is no {key}")
            continue
        for bounding in (bound(key, key, inclusive), bound(exclusive, f"exclusive_{key}", strict)):
            if bounding is not None:
                yield bounding


def _lengths(reading: ClauseReader, options: Mapping, item: Field) -> Iterator[Rule]:
    yield from reading.length_rules(options, _LENGTHS)
    if options.truth("uniqueItems"):
        yield reading.rule("unique_items", demands.UniqueItems(), options.get("uniqueItems"))
    if (dimensions := options.number("dimensions")) is not None:
        node = options.get("dimensions")
        yield reading.rule("min_items", demands.Length(">=", int(dimensions)), node)
        yield reading.rule("max_items", demands.Length("<=", int(dimensions)), node)
    if options.truth("normalized"):
        square = f"aggregate({sql_name(item.path)}, 0D, (sum, part) -> sum + power(part, 2))"
        unit = demands.RowsSatisfy(f"abs({square} - 1) <= {_ROUNDED}", "spark")
        yield reading.rule("normalized", unit, options.get("normalized"))


# Formats -----------------------------------------------------------------------------------------


def _format(
    reading: ClauseReader, options: Mapping, item: Field, logical: str | None
) -> Iterator[Rule]:
    written, node = options.text("format"), options.get("format")
    if written is None or node is None:
        return
    match logical, written.strip().lower():
        case "integer", _ if written in _BITS:
            yield from _bits(reading, written, node)
        case "integer", _:
            reading.unsupported(node, f"unknown format '{written}': there is {', '.join(_BITS)}")
        case "number", _ if {"f32": "float", "f64": "double"}.get(written) == item.type:
            reading.documented(node, "the type is checked")
        case "number", _:
            reason = "the precision of a number is part of its type: write a physicalType"
            reading.unsupported(node, reason)
        case "date" | "timestamp" | "time", _ if item.type != "string":
            reading.documented(node, "a column of dates has no format")
        case "date" | "timestamp" | "time", _ if written == _ISO_DATE:
            yield reading.rule("date_format", demands.OfFormat("date"), node)
        case "date" | "timestamp" | "time", _:  # of a date that is stored as a string
            problem = _broken_format(written)
            if problem is not None:
                reading.unsupported(node, problem, "E422")
            else:
                yield reading.rule(
                    "date_format", demands.TimeText(written, logical == "time"), node
                )
        case _, name if name in _FORMATS:
            yield reading.rule("format", demands.OfFormat(_FORMATS[name]), node)
        case _, "byte":
            yield reading.rule("format", demands.Pattern(_BASE64), node)
        case _, "password" | "binary":
            reading.documented(node, "every string is valid")
        case _:
            reading.unsupported(node, f"unknown format '{written}': write a pattern")


def _bits(reading: ClauseReader, written: str, node: Node) -> Iterator[Rule]:
    """The bits of an integer: `i32` is signed, `u8` is not."""
    bits, is_signed = _BITS[written], written.startswith("i")
    if not is_signed:
        yield reading.rule("format_minimum", demands.Bound(">=", 0), node)
    elif bits < _MOST_BITS:
        yield reading.rule("format_minimum", demands.Bound(">=", -(2 ** (bits - 1))), node)
    if bits < _MOST_BITS:
        yield reading.rule("format_maximum", demands.Bound("<=", 2 ** (bits - is_signed) - 1), node)
    reading.documented(node, "every Spark integer is valid")


def _number_in(item: Field, logical: str | None) -> str | None:
    """The number in a string, as SQL; None for other fields."""
    if item.type == "string" and logical in _NUMBERS:
        return f"try_cast({sql_name(item.path)} AS DOUBLE)"
    return None


def _bound_of_days(op: str, moment: datetime) -> demands.Bound:
    """The bound of days in ISO form, which are in the right order as strings."""
    day = moment.date().isoformat()
    if moment.time() == time():
        return demands.Bound(op, day)
    # Within a day: what is before it is this day, at the latest.
    return demands.Bound("<=" if op[0] == "<" else ">", day)


def _is_text(item: Field, logical: str | None) -> bool:
    """Whether the values of a date, a timestamp or a time are strings. Spark has no type for times
    that all versions can read."""
    return item.type == "string" or (logical == "time" and item.type is None)


def _broken_format(written: str | None) -> str | None:
    """Why Spark cannot read a format; None if it can, or if there is none."""
    return None if written is None else TimeFormat(written).problem


_IN_TEXT = ("date", "timestamp", "time", "integer", "number")
"""The logical types whose values strings may represent; the format of these has the same name."""

_IMPLIED = {"properties": "object", "items": "array", "map": "map"}
"""The type of a property that only describes its contents."""

_DOCUMENTS = ("object", "array")
"""Logical types whose values columns may also hold as JSON."""

_TIMES = ("date", "timestamp", "time")

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
        is_key=node.truth("primaryKey") is True,
        classification=node.text("classification"),
        tags=reading.texts(node, "tags"),
        id=node.text("id"),
    )
    item = with_examples(item, node.scalars("examples"))
    reading.remarks(node, "ODCS: property")
    item, rules = _typed(reading, node, item)
    logical = node.text("logicalType")
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


# Types -------------------------------------------------------------------------------------------


_Declared: TypeAlias = "tuple[str | None, list[Node | None], list[Rule]]"
"""The declared type of a property, if any, the nodes that declare it, and the rules for it."""


def _typed(reading: OdcsReading, node: Mapping, item: Field) -> tuple[Field, list[Rule]]:
    """The field with its type, and the rules for its logical and physical type."""
    logical, written = (node.text(key) for key in ("logicalType", "physicalType"))
    physical = None
    if written is not None:
        physical = physical_type(written, reading.sql_dialect, is_spark=reading.is_spark)
    if physical is None:
        spark_type, marks, rules = _by_logical(reading, node, logical)
    else:
        spark_type, marks, rules = _by_physical(reading, node, logical, physical.spark_type)
    if spark_type is None:
        return item, rules
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


def _by_logical(reading: OdcsReading, node: Mapping, logical: str | None) -> _Declared:
    """The type by its logical type, if there is no physical type of Spark."""
    written, physical_node = node.text("physicalType"), node.get("physicalType")
    marks = [node.get("logicalType")]
    if logical is None:
        logical = next((_IMPLIED[key] for key in _IMPLIED if key in node.entries), None)
    if logical is not None and written and names_nested(logical, written):
        marks.append(physical_node)
    elif logical is None:
        reading.unsupported(physical_node, "Spark has no type of this name")
    else:
        reading.not_understood(physical_node, "Spark has no type of this name")
    options = reading.mapping(node, "logicalTypeOptions")
    has_hours = "H" in (options.text("format") or "")
    if logical == "date" and has_hours and reading.version.startswith("3.0"):
        # 3.0 has a single type for dates with and without a time.
        return "timestamp", marks, []
    spark_type = logical_type(logical)
    if spark_type is None:
        reading.unsupported(marks[0], "Spark has no type for it that all versions can read")
    elif not _has_parts(node) and logical in _DOCUMENTS:
        # A column may hold it as a struct, a map or an array, or as JSON in a string or a variant.
        word = _word(written or "")
        is_open = word not in _STRUCTS if logical == "object" else word in _DOCUMENT_WORDS
        spark_type = "any" if is_open else spark_type
    return spark_type, marks, []


def _by_physical(
    reading: OdcsReading, node: Mapping, logical: str | None, spark_type: str
) -> _Declared:
    """The type by its physical type, which is closer to the data.

    A string must have the format of its logical type.
    """
    logical_node, marks = node.get("logicalType"), [node.get("physicalType")]
    if logical is None:
        return spark_type, marks, []
    if agrees(logical, spark_type):
        return narrower(logical, spark_type), [*marks, logical_node], []
    options = reading.mapping(node, "logicalTypeOptions")
    if spark_type == "string" and logical in _TIMES and options.text("format"):
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
    for key in ("properties", "items"):
        match node.get(key):
            case Sequence(items=()) | Mapping(entries={}) as empty if not plain_value(empty):
                reading.documented(empty, "its content is not described")
    if properties := tuple(reading.mappings(node, "properties")):
        if item.type == "struct":
            fields = (read_property(reading, inner, item.path) for inner in properties)
            return replace(item, fields=_demanded(reading, node, fields))
        for inner in properties:
            reading.unsupported(inner, f"a value of type {spark_type} has no properties")
    _demanded(reading, node)  # none of the properties that it requires is described
    if (items := reading.mapping(node, "items")) is not NOTHING:
        if item.type == "array":
            return replace(item, items=_read(reading, items, "[]", f"{item.path}[]"))
        reading.unsupported(items, f"a value of type {spark_type} has no items")
    if (entries := reading.mapping(node, "map")) is not NOTHING and item.type == "map":
        keys, values = (
            None if part is NOTHING else _read(reading, part, name, item.path + name)
            for part, name in (
                (reading.mapping(entries, name), f"{{{name}}}") for name in ("key", "value")
            )
        )
        return replace(item, keys=keys, values=values)
    if node.text("logicalType") == "vector":
        return _vector(reading, node, item)
    return item


def _demanded(
    reading: ClauseReader, node: Mapping, fields: Iterable[Field] = ()
) -> tuple[Field, ...]:
    """The fields of an object; fields that its options require are never NULL."""
    options = reading.mapping(node, "logicalTypeOptions")
    marks = {item.text: item for item in options.scalars("required")}
    demanded = []
    for item in fields:
        mark = marks.pop(item.name, None)
        required = () if mark is None else (reading.rule("required", demands.Required(), mark),)
        demanded.append(replace(item, rules=with_unique_names((*item.rules, *required))))
    for mark in marks.values():
        reading.unsupported(mark, f"the object has no property '{mark.text}'")
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
            reading.unsupported(mark, "not checked: list it as a separate property")
