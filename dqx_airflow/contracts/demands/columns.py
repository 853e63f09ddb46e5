"""Demands on columns: that they exist, their types, and NULL."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from dqx_airflow.contracts.compile import claims, expectations, nested_values, rule_context, terms
from dqx_airflow.contracts.demand import NO_EXPECTATION, Demand, rising
from dqx_airflow.contracts.field_types import names_in, narrower_types
from dqx_airflow.contracts.formats_in_files import TEXT_FORMATS, objection_to_format
from dqx_airflow.contracts.model import Field, column_path, plain_name
from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show, show_number, show_text
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.metrics.types import is_covered


class Presence(Demand, words="the column exists", dimension="conformity"):
    """The column exists."""

    def claim(
        self, context: rule_context.RuleContext
    ) -> claims.CompiledClaim | claims.EnforcedByType:
        if not context.is_reachable:
            return claims.EnforcedByType(context.reachable[-1])
        return claims.CompiledClaim(f"column {show(nested_values.column_of(context))} exists")

    def expectation(self, place: expectations.ExportedRule) -> expectations.Expectation:
        return expectations.Expectation("expect_column_to_exist", {"column": place.column})


class OfType(Demand, words="values of the type", dimension="conformity"):
    """The values of the column are of the type of the field, see `Field.type`."""

    def claim(
        self, context: rule_context.RuleContext
    ) -> claims.CompiledClaim | claims.EnforcedByType:
        if not context.is_reachable:
            return claims.EnforcedByType(context.reachable[-1])
        column = nested_values.column_of(context)
        item = context.item
        assert item is not None
        if item.type == "struct":
            # A field with a rule about its own type is left to that rule.
            item = replace(item, fields=tuple(part for part in item.fields if not _is_typed(part)))
        wanted = type_text(item)
        bare = wanted.replace(",", ", ")
        written = bare if _SIMPLE_TYPE.fullmatch(bare) else show_text(wanted)
        return claims.CompiledClaim(f"column {show(column)} fits {written}")

    def expectation(self, place: expectations.ExportedRule) -> expectations.Expectation:
        kind = place.item.type if place.item is not None else None
        if (name := type_name(kind)) is not None:
            kwargs: dict[str, Any] = {"column": place.column, "type_": name}
            return expectations.Expectation("expect_column_values_to_be_of_type", kwargs)
        if names := list(filter(None, map(type_name, narrower_types(kind or "")))):
            kwargs = {"column": place.column, "type_list": names}
            return expectations.Expectation("expect_column_values_to_be_in_type_list", kwargs)
        raise NoCounterpartError(NO_EXPECTATION)


class WrittenAs(
    Demand,
    words="written as {format} in text files",
    dimension="conformity",
    odcs_types=("date", "timestamp"),
):
    """Text files hold the dates or timestamps of the column in a format, in which they are read: a
    value that does not have it is malformed, and not of the type."""

    format: str

    def keywords(self, *, is_array: bool) -> dict[str, Any]:
        return {"format": self.format}

    def claim(
        self, context: rule_context.RuleContext
    ) -> claims.CompiledClaim | claims.EnforcedByType:
        item = context.item
        assert item is not None
        is_in_text = context.ref is None or context.ref.format in TEXT_FORMATS
        objection = objection_to_format(context.model, item) if is_in_text else None
        if objection is not None:
            raise NoCounterpartError(objection)
        return claims.EnforcedByType(context.reachable[-1])


class OfOneType(Demand, words="of type {written}", dimension="conformity"):
    """The column has one of several types.

    `types` are type checks of DQL: `type bigint`, `fits text`. `written` are the names of the types
    in the document.
    """

    column: str
    types: tuple[str, ...]
    written: tuple[str, ...]

    def claim(self, context: rule_context.RuleContext) -> claims.CompiledClaim:
        checks = [f"column {self.column} {check}" for check in _without_narrower(self.types)]
        if len(checks) == 1:
            return claims.CompiledClaim(checks[0])
        parts = " ".join(f"assert {check}" for check in checks)
        return claims.CompiledClaim(f"any {{ {parts} }}")

    def expectation(self, place: expectations.ExportedRule) -> expectations.Expectation:
        kwargs: dict[str, Any] = {"column": plain_name(self.column)}
        if len(self.written) == 1:
            kwargs["type_"] = self.written[0]
            return expectations.Expectation("expect_column_values_to_be_of_type", kwargs)
        kwargs["type_list"] = list(self.written)
        return expectations.Expectation("expect_column_values_to_be_in_type_list", kwargs)


def _without_narrower(checks: tuple[str, ...]) -> list[str]:
    """The checks without those for types that a word among them covers: `fits number` covers `type
    bigint`."""
    words = [check.removeprefix("fits ") for check in checks if check.startswith("fits ")]
    kept = []
    for check in checks:
        own = check.partition(" ")[2]
        covering = [word for word in words if word != own and is_covered(own, word)]
        if not covering:
            kept.append(check)
    return kept


class OnlyColumns(Demand, words="no other columns", dimension="conformity"):
    """The model has no columns other than the fields of the contract."""

    def claim(self, context: rule_context.RuleContext) -> claims.CompiledClaim:
        names = ", ".join(show(terms.column_named(item.name)) for item in context.model.fields)
        if not names:
            raise NoCounterpartError("the contract lists no columns")
        return claims.no_rows(f"extra_column_count([{names}])")


class Required(Demand, words="not NULL", dimension="completeness", is_required=True):
    """No value is NULL."""

    def claim(self, context: rule_context.RuleContext) -> claims.CompiledClaim:
        if not nested_values.is_expressible(context.way):
            return claims.no_rows(claims.rows_with(context.way, "`item` IS NULL"))
        way = nested_values.steps_of(context)
        *outer, field = nested_values.innermost(way)
        optional = [step.operand for step in outer if step.field.is_nullable]
        if context.is_reachable and not optional:
            return claims.no_rows(f"null_count({show(field.operand)})")
        present = terms.negated(nodes.IsNull(field.operand))
        if optional:
            # A missing field cannot have missing values.
            present = nodes.Junction("or", nodes.IsNull(optional[-1]), present)
        return claims.each_row(nested_values.of_every(way, present))

    def expectation(self, place: expectations.ExportedRule) -> expectations.Expectation:
        return expectations.Expectation(
            "expect_column_values_to_not_be_null", {"column": place.column}
        )


class Complete(
    Demand,
    words="{share} of {column} are not NULL",
    dimension="completeness",
    is_quality=True,
    subject_fields=("column",),
    stricter={"share": rising},
):
    """At least this share of the values is not NULL."""

    column: str
    share: float

    def claim(self, context: rule_context.RuleContext) -> claims.CompiledClaim:
        column = show(terms.column(self.column))
        if self.share >= 1:
            return claims.no_rows(f"null_count({column})")
        return claims.CompiledClaim(
            f"count({column}) / num_rows() >= {show_number(terms.share(self.share))}"
        )

    def expectation(self, place: expectations.ExportedRule) -> expectations.Expectation:
        # Written as a percentage in contracts: 0.0007 is 0.07 / 100, and not its neighbor.
        kwargs = {"column": plain_name(self.column), "mostly": round(self.share * 100, 10) / 100}
        return expectations.Expectation("expect_column_values_to_not_be_null", kwargs)


class AllComplete(
    Demand,
    words="{share} of all values are not NULL",
    dimension="completeness",
    is_quality=True,
    stricter={"share": rising},
):
    """At least this share of the values of all columns of the model together is not NULL."""

    share: float

    def claim(self, context: rule_context.RuleContext) -> claims.CompiledClaim:
        counts = [f"null_count({show(terms.column(item.path))})" for item in context.model.fields]
        if not counts:
            raise NoCounterpartError("the contract lists no columns")
        if self.share >= 1:
            return claims.no_rows(" + ".join(counts))
        most = show_number(terms.share(round(1 - self.share, 12)))
        missing = f"({' + '.join(counts)})" if len(counts) > 1 else counts[0]
        return claims.CompiledClaim(
            f"coalesce({missing} / (num_rows() * {len(counts)}), 0) <= {most}"
        )


def type_text(item: Field) -> str:
    """The type of a field as DQL writes it, including nested fields."""
    match item.type:
        case "array":
            return f"array<{_part(item.items)}>"
        case "map":
            return f"map<{_part(item.keys)},{_part(item.values)}>"
        case "struct":
            inner = (f"{_field_name(part.name)}:{type_text(part)}" for part in item.fields)
            return f"struct<{','.join(inner)}>"
        case None:
            return "any"
        case kind:
            return kind


def _part(item: Field | None) -> str:
    return "any" if item is None else type_text(item)


def _field_name(name: str) -> str:
    """The name of a field in a DQL type.

    :raises NoCounterpartError: a type in DQL cannot contain the name."""
    if "`" in name or "\n" in name or not name:
        raise NoCounterpartError(f"a type cannot contain the name {name!r}")
    return column_path(name)


def _is_typed(item: Field) -> bool:
    return any(isinstance(rule.demand, OfType) for rule in item.rules)


_SIMPLE_TYPE = re.compile(r"\w+(\(\d+(, \d+)*\))?", re.ASCII)


def type_name(spark_type: str | None) -> str | None:
    """The class of a type in PySpark; None if several of them hold the values."""
    return names_in("written to GX").get(spark_type.partition("(")[0]) if spark_type else None
