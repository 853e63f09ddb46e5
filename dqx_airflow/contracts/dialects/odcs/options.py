"""`logicalTypeOptions` and `enum` of a property, as rules about its values."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dqx_airflow.contracts.demands import (
    Bound,
    Length,
    MultipleOf,
    OfFormat,
    OneOf,
    Pattern,
    RowsSatisfy,
    UniqueItems,
)
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.dialects.field_types import bound_rule
from dqx_airflow.contracts.dialects.foreign.values import sql_name
from dqx_airflow.contracts.model import Field, Rule
from dqx_airflow.contracts.source.yaml_document import Mapping, Node, Scalar
from dqx_airflow.metrics.sql import quote_literal
from dqx_airflow.metrics.text_formats import TEXT_FORMATS

_BASE64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_FORMATS = {name: name for name in TEXT_FORMATS} | {"date-time": "timestamp", "url": "url"}
_BITS = {f"{sign}{bits}": bits for sign in "iu" for bits in (8, 16, 32, 64, 128)}
_MOST_BITS = 64
_ISO_DATE = "yyyy-MM-dd"
_TIMES = ("date", "timestamp", "time")
_NUMBERS = ("integer", "number")


def option_rules(
    reading: ClauseReader, owner: Mapping, item: Field, logical: str | None
) -> Iterator[Rule]:
    """The rules for the options of a property, whose logical type may be unknown."""
    options = reading.mapping(owner, "logicalTypeOptions")
    if options is not None:
        yield from _bounds(reading, options, item, logical)
        if (divisor := reading.number(options, "multipleOf")) is not None:
            yield reading.rule("multiple_of", MultipleOf(divisor), options.get("multipleOf"))
        yield from _lengths(reading, options)
        if (expression := reading.text(options, "pattern")) is not None:
            yield reading.rule("pattern", Pattern(expression), options.get("pattern"))
        yield from _format(reading, options, item, logical)
        _mark_others(reading, options)
    yield from _enum(reading, owner)


def _enum(reading: ClauseReader, owner: Mapping) -> Iterator[Rule]:
    entries = tuple(reading.mappings(owner, "enum"))
    reading.documented_keys(owner, "enum", reason="the meaning of a value")
    values = [entry.get("value") for entry in entries]
    accepted = tuple(value.value for value in values if isinstance(value, Scalar))
    if accepted:
        yield reading.rule("enum", OneOf(accepted), *values)


def _bounds(
    reading: ClauseReader, options: Mapping, item: Field, logical: str | None
) -> Iterator[Rule]:
    written = reading.text(options, "format")
    meant = _meant(item, logical, written)

    def bound(key: str, name: str, op: str) -> Rule | None:
        limit = reading.text(options, key)
        if logical in _NUMBERS and reading.number(options, key) is None:
            return None  # it does not fit the schema, which was reported
        if meant is not None and limit is not None:
            shown = limit if logical in _NUMBERS else f"CAST({quote_literal(limit)} AS TIMESTAMP)"
            demand = RowsSatisfy(f"{meant} {op} {shown}", "spark")
            return reading.rule(name, demand, options.get(key))
        return bound_rule(reading, options, key, name, op, item.type)

    for key, exclusive, inclusive, strict in (
        ("minimum", "exclusiveMinimum", ">=", ">"),
        ("maximum", "exclusiveMaximum", "<=", "<"),
    ):
        # In 3.0 it is a boolean, and makes `minimum` exclusive.
        if (is_strict := reading.truth(options, exclusive)) is not None:
            name = f"exclusive_{key}" if is_strict else key
            op = strict if is_strict else inclusive
            if (rule := bound(key, name, op)) is not None:
                mark = reading.clause(options.get(exclusive) or options)
                yield Rule(rule.name, rule.demand, (*rule.clauses, mark))
            reading.documented_keys(options, exclusive, reason=f"there is no {key}")
            continue
        for bounding in (
            bound(key, key, inclusive),
            bound(exclusive, f"exclusive_{key}", strict),
        ):
            if bounding is not None:
                yield bounding


def _lengths(reading: ClauseReader, options: Mapping) -> Iterator[Rule]:
    for key, name, op in (
        ("minLength", "min_length", ">="),
        ("maxLength", "max_length", "<="),
        ("minItems", "min_items", ">="),
        ("maxItems", "max_items", "<="),
    ):
        if (count := reading.number(options, key)) is not None:
            yield reading.rule(name, Length(op, int(count)), options.get(key))
    if reading.truth(options, "uniqueItems"):
        yield reading.rule("unique_items", UniqueItems(), options.get("uniqueItems"))
    reading.documented_keys(options, "uniqueItems", reason="duplicate items are allowed")
    if (dimensions := reading.number(options, "dimensions")) is not None:
        node = options.get("dimensions")
        yield reading.rule("min_items", Length(">=", int(dimensions)), node)
        yield reading.rule("max_items", Length("<=", int(dimensions)), node)


def _mark_others(reading: ClauseReader, options: Mapping) -> None:
    zone = "the notation of the time zone: Spark stores only the timestamp"
    reading.documented_keys(options, "timezone", "defaultTimezone", reason=zone)
    advice = "how vectors are computed and compared"
    reading.documented_keys(
        options, "distanceMetric", "embeddingModel", "embeddingModelVersion", reason=advice
    )
    if reading.truth(options, "normalized"):
        reading.unsupported(options.get("normalized"), "no rule computes the length of a vector")
    reading.documented_keys(options, "normalized")
    for key in ("minProperties", "maxProperties"):
        reading.unsupported(options.get(key), "a struct always has all of its fields")


# Formats -----------------------------------------------------------------------------------------


def _format(
    reading: ClauseReader, options: Mapping, item: Field, logical: str | None
) -> Iterator[Rule]:
    written, node = reading.text(options, "format"), options.get("format")
    if written is None or node is None:
        return
    readers: dict[str, Callable[[ClauseReader, str, Node, Field], Iterator[Rule]]] = {
        "integer": _whole_format,
        "number": _number_format,
        **dict.fromkeys(_TIMES, _time_format),
    }
    yield from readers.get(logical or "string", _text_format)(reading, written, node, item)


def _text_format(reading: ClauseReader, written: str, node: Node, _item: Field) -> Iterator[Rule]:
    name = written.strip().lower()
    if name in _FORMATS:
        yield reading.rule("format", OfFormat(_FORMATS[name]), node)
    elif name == "byte":
        yield reading.rule("format", Pattern(_BASE64), node)
    elif name in ("password", "binary"):
        reading.documented(node, "every string is valid")
    else:
        reading.unsupported(node, f"unknown format '{written}': write a pattern")


def _whole_format(reading: ClauseReader, written: str, node: Node, _item: Field) -> Iterator[Rule]:
    """The bits of an integer: `i32` is signed, `u8` is not."""
    bits = _BITS.get(written)
    if bits is None:
        reading.unsupported(node, f"unknown format '{written}': there is {', '.join(_BITS)}")
        return
    is_signed = written.startswith("i")
    if not is_signed:
        yield reading.rule("format_minimum", Bound(">=", 0), node)
    elif bits < _MOST_BITS:
        yield reading.rule("format_minimum", Bound(">=", -(2 ** (bits - 1))), node)
    if bits < _MOST_BITS:
        yield reading.rule("format_maximum", Bound("<=", 2 ** (bits - is_signed) - 1), node)
    reading.documented(node, "every Spark integer is valid")


def _number_format(reading: ClauseReader, written: str, node: Node, item: Field) -> Iterator[Rule]:
    if {"f32": "float", "f64": "double"}.get(written) == item.type:
        reading.documented(node, "the type is checked")
    else:
        reading.unsupported(
            node, "the precision of a number is part of its type: write a physicalType"
        )
    return iter(())


def _time_format(reading: ClauseReader, written: str, node: Node, item: Field) -> Iterator[Rule]:
    """The format of a date matters if it is stored as a string."""
    if item.type != "string":
        reading.documented(node, "a column of dates has no format")
    elif written == _ISO_DATE:
        yield reading.rule("date_format", OfFormat("date"), node)
    else:
        can_be_read = f"{_meant(item, 'timestamp', written)} IS NOT NULL"
        demand = RowsSatisfy(f"{sql_name(item.path)} IS NULL OR {can_be_read}", "spark")
        yield reading.rule("date_format", demand, node)


def _meant(item: Field, logical: str | None, written: str | None) -> str | None:
    """The number or timestamp in a string, as SQL; None if strings are in the right order
    themselves, like ISO dates."""
    if item.type != "string":
        return None
    if logical in _NUMBERS:
        return f"try_cast({sql_name(item.path)} AS DOUBLE)"
    if logical in _TIMES and written not in (None, _ISO_DATE):
        return f"try_to_timestamp({sql_name(item.path)}, {quote_literal(str(written))})"
    return None
