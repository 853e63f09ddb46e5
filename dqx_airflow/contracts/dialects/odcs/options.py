"""The `logicalTypeOptions` of an ODCS property as rules: bounds, lengths, formats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, time

from dqx_airflow.contracts import demands
from dqx_airflow.contracts.compile.terms import sql_name
from dqx_airflow.contracts.dialects.odcs.elements import OdcsReading
from dqx_airflow.contracts.dialects.odcs.physical_types import TIMES
from dqx_airflow.contracts.document import Mapping, Node, Scalar
from dqx_airflow.contracts.formats_in_files import format_problem
from dqx_airflow.contracts.model import Field, Rule
from dqx_airflow.contracts.time_texts import TimeFormat
from dqx_airflow.metrics.sql import OPTIONS
from dqx_airflow.metrics.text_formats import TEXT_FORMATS

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


@dataclass(frozen=True, slots=True)
class _Options:
    """The options of a property that is being read; `logical` is its logical type, if known."""

    reading: OdcsReading
    node: Mapping
    item: Field
    logical: str | None

    @property
    def format(self) -> str | None:
        return self.node.text("format")

    @property
    def is_time_in_text(self) -> bool:
        """True for dates, timestamps and times whose values are strings. Spark has no type for
        times that all versions can read."""
        if self.logical not in TIMES:
            return False
        return self.item.type == "string" or (self.logical == "time" and self.item.type is None)

    @property
    def is_number_in_text(self) -> bool:
        return self.item.type == "string" and self.logical in _NUMBERS


def option_rules(
    reading: OdcsReading, owner: Mapping, item: Field, logical: str | None
) -> Iterator[Rule]:
    """The rules for the options of a property, whose logical type may be unknown."""
    node = reading.mapping(owner, "logicalTypeOptions")
    reading.remarks(node, "ODCS: options")
    if node.truth("timezone"):
        reading.unsupported(node.get("timezone"), "a timestamp without a time zone fits, too")
    else:
        reading.documented_keys(node, "timezone", reason="the notation of the time zone")
    options = _Options(reading, node, item, logical)
    yield from _bounds(options, "minimum", ">=", "exclusiveMinimum", ">")
    yield from _bounds(options, "maximum", "<=", "exclusiveMaximum", "<")
    if (divisor := node.number("multipleOf")) is not None:
        yield reading.rule("multiple_of", demands.MultipleOf(divisor), node.get("multipleOf"))
    yield from _lengths(reading, node, item)
    if (expression := node.text("pattern")) is not None:
        yield reading.rule("pattern", demands.Pattern(expression), node.get("pattern"))
    yield from _format(reading, node, item, logical)
    if not node.truth("normalized"):
        reading.documented_keys(node, "normalized")
    for key in ("minProperties", "maxProperties"):
        reading.unsupported(node.get(key), "a struct always has all of its fields")
    values = [entry.get("value") for entry in reading.mappings(owner, "enum")]
    accepted = tuple(value.value for value in values if isinstance(value, Scalar))
    if accepted:
        yield reading.rule("enum", demands.OneOf(accepted), *values)


def _bounds(
    options: _Options, key: str, inclusive: str, exclusive_key: str, strict: str
) -> Iterator[Rule]:
    """The rules for the inclusive and the exclusive bound on one side, each with its comparison."""
    node = options.node
    is_strict = node.truth(exclusive_key)
    if is_strict is None:
        for bound in (
            _bound(options, key, key, inclusive),
            _bound(options, exclusive_key, f"exclusive_{key}", strict),
        ):
            if bound is not None:
                yield bound
        return
    # In 3.0 it is a boolean, and makes `minimum` exclusive.
    if is_strict:
        rule = _bound(options, key, f"exclusive_{key}", strict)
    else:
        rule = _bound(options, key, key, inclusive)
    if rule is not None:
        mark = options.reading.clause(node.get(exclusive_key) or node)
        yield Rule(rule.name, rule.demand, (*rule.clauses, mark))
    options.reading.documented_keys(node, exclusive_key, reason=f"there is no {key}")


def _bound(options: _Options, key: str, name: str, op: str) -> Rule | None:
    """The rule for the bound at a key; None without one, and for one that is reported."""
    reading = options.reading
    node = options.node
    if options.logical in _NUMBERS and node.number(key) is None:
        return None  # it does not fit the schema, which was reported
    if options.is_time_in_text:
        return _time_bound(options, key, name, op)
    limit = node.text(key)
    if options.is_number_in_text and limit is not None:
        number = _number_in(sql_name(options.item.path), is_whole=options.logical == "integer")
        demand = demands.RowsSatisfy(f"{number} {op} {limit}", "spark")
        return reading.rule(name, demand, node.get(key))
    pattern = options.format if options.logical in ("date", "timestamp") else None
    return reading.bound_rule(node, key, name, op, options.item.type, pattern)


def _number_in(text: str, *, is_whole: bool) -> str:
    """The number in a string, as Spark SQL; NULL for another string."""
    number = f"try_cast({text} AS DOUBLE)"
    if not is_whole:
        return number
    # A double has the first 16 digits of an integer, a decimal has 38, which end with this one.
    largest = "CAST('1e37' AS DECIMAL(38, 0))"
    beyond = f"try_cast(sign({number}) AS DECIMAL(1, 0)) * {largest}"
    return f"coalesce(try_cast({text} AS DECIMAL(38, 0)), {beyond})"


def _time_bound(options: _Options, key: str, name: str, op: str) -> Rule | None:
    """The rule for the bound of times that are strings."""
    reading = options.reading
    pattern = options.format
    limit = options.node.get(key)
    if not isinstance(limit, Scalar) or limit.value is None:
        return None
    problem = _format_problem(pattern)
    if problem is not None:
        reading.unsupported(limit, problem)
        return None
    is_time = options.logical == "time"
    moment = reading.bound_moment(limit, pattern, is_time=is_time)
    if moment is None:
        return None
    if pattern == _ISO_DATE or (pattern is None and options.logical == "date"):
        return reading.rule(name, _bound_of_days(op, moment), limit)
    is_alone = options.item.type is None
    demand = demands.TimeBound(op, moment.isoformat(), pattern, is_time=is_time, is_alone=is_alone)
    return reading.rule(name, demand, limit)


def _lengths(reading: OdcsReading, options: Mapping, item: Field) -> Iterator[Rule]:
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


def _format(
    reading: OdcsReading, options: Mapping, item: Field, logical: str | None
) -> Iterator[Rule]:
    written = options.text("format")
    node = options.get("format")
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
        case "date" | "timestamp", _ if reading.is_text and item.type in OPTIONS:
            problem = format_problem(written, item.type)
            if problem is not None:
                reading.unsupported(node, problem, "E422")
            else:
                yield reading.rule("date_format", demands.WrittenAs(written), node)
        case "date" | "timestamp" | "time", _ if item.type != "string":
            reading.documented(node, "a column of dates has no format")
        case "date" | "timestamp" | "time", _ if written == _ISO_DATE:
            yield reading.rule("date_format", demands.OfFormat("date"), node)
        case "date" | "timestamp" | "time", _:  # of a date that is stored as a string
            problem = _format_problem(written)
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


def _bits(reading: OdcsReading, written: str, node: Node) -> Iterator[Rule]:
    """The rules for the range of an integer: `i32` is signed, `u8` is not."""
    bits = _BITS[written]
    is_signed = written.startswith("i")
    if not is_signed:
        yield reading.rule("format_minimum", demands.Bound(">=", 0), node)
    elif bits < _MOST_BITS:
        yield reading.rule("format_minimum", demands.Bound(">=", -(2 ** (bits - 1))), node)
    if bits < _MOST_BITS:
        yield reading.rule("format_maximum", demands.Bound("<=", 2 ** (bits - is_signed) - 1), node)
    reading.documented(node, "every Spark integer is valid")


def _bound_of_days(op: str, moment: datetime) -> demands.Bound:
    """The bound of days in ISO form, which are in the right order as strings."""
    day = moment.date().isoformat()
    if moment.time() == time():
        return demands.Bound(op, day)
    # Within a day: what is before it is this day, at the latest.
    return demands.Bound("<=" if op[0] == "<" else ">", day)


def _format_problem(pattern: str | None) -> str | None:
    """The reason why Spark cannot read a format; None if it can, or if there is none."""
    return None if pattern is None else TimeFormat(pattern).problem
