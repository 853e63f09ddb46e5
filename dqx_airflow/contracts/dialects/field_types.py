"""The type of a field from a Spark type, with everything nested in it, and compatible values."""

from __future__ import annotations

import re
from dataclasses import replace

from dqx_airflow.contracts.column_paths import column_path
from dqx_airflow.contracts.demands import Bound, Literal
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.model import Field, Rule
from dqx_airflow.contracts.source.yaml_document import Mapping, Scalar
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.diagnostics.nearest import did_you_mean
from dqx_airflow.metrics.types import (
    LONGEST_DECIMAL,
    TYPE_NAMES,
    Family,
    TypeTextError,
    canonical_type,
    family_of,
    fields_of,
    parts_of,
)

NUMBER_WORDS = ("number", "whole_number")
_ISO_TIME = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d(:?\d\d(:?\d\d(\.\d+)?)?)?\s*(Z|[+-]\d\d:?\d\d)?)?"
)


def spark_type_of(text: str) -> str | None:
    """A Spark type as spelled in schemas: `bigint` for `LONG`; None if Spark has no such type."""
    try:
        return canonical_type(text)
    except TypeTextError:
        return None


def with_type(item: Field, spark_type: str) -> Field:
    """The field with a Spark type; the parts of a nested type become fields."""
    parts = parts_of(spark_type)
    match spark_type.partition("<")[0]:
        case "array":
            return replace(item, type="array", items=_part(item, "[]", parts[0]))
        case "map":
            keys, values = _part(item, "{key}", parts[0]), _part(item, "{value}", parts[1])
            return replace(item, type="map", keys=keys, values=values)
        case "struct":
            fields = tuple(
                _inner(item, name, name_type) for name, name_type in fields_of(spark_type).items()
            )
            return replace(item, type="struct", fields=fields)
    return replace(item, type=spark_type)


def report_unknown_type(reading: ClauseReader, column: Mapping, key: str) -> None:
    """Reports a type that Spark does not have."""
    node = column.get(key)
    if isinstance(node, Scalar):
        name = re.split(r"[<(]", node.text, maxsplit=1)[0].strip().lower()
        message = f"'{node.text}' is not a Spark type"
        hint = did_you_mean(name, TYPE_NAMES)
        reading.report(Diagnostic(message, node.span, "E405", help=hint))


def bound_rule(
    reading: ClauseReader, owner: Mapping, key: str, name: str, op: str, field_type: str | None
) -> Rule | None:
    """The rule for a bound of a field: a number for numeric fields, a string for dates.

    A bound that is not a value of the field's type is reported.
    """
    node = owner.get(key)
    if not isinstance(node, Scalar) or node.value is None:
        return None
    family = family_of(field_type) if field_type is not None else None
    number = reading.number(owner, key)
    bound: Literal = node.text
    if family is Family.TIME:
        if not _ISO_TIME.fullmatch(node.text.strip()):
            hint = "write it as `2024-01-31` or `2024-01-31T06:00:00`"
            _report_bound(reading, node, f"not a date, but the field has type {field_type}", hint)
            return None
    elif number is not None and family is not Family.TEXT:
        bound = number
    elif family is Family.NUMBER or field_type in NUMBER_WORDS:
        _report_bound(reading, node, f"not a number, but the field has type {field_type}", None)
        return None
    return reading.rule(name, Bound(op, bound), node)


def _report_bound(reading: ClauseReader, node: Scalar, problem: str, help_line: str | None) -> None:
    message = f"the bound {node.text} is {problem}"
    reading.report(Diagnostic(message, node.span, "E405", help=help_line))


def most_digits(spark_type: str | None) -> int:
    """The maximum number of digits of a decimal; of the longest decimal for every other type."""
    if spark_type is not None and spark_type.startswith("decimal"):
        return int(parts_of(spark_type)[0])
    return LONGEST_DECIMAL


def _part(item: Field, mark: str, spark_type: str) -> Field:
    part = Field(mark, item.path + mark, None, item.span, spark_type)
    return with_type(part, spark_type)


def _inner(item: Field, name: str, spark_type: str) -> Field:
    inner = Field(name, f"{item.path}.{column_path(name)}", None, item.span, spark_type)
    return with_type(inner, spark_type)
