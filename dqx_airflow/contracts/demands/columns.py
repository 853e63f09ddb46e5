"""Demands on columns and keys: that they exist, their types, NULL, and repetitions."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from dqx_airflow.contracts.compile import claims, expectations, nested_values, rule_context, terms
from dqx_airflow.contracts.compile.terms import sql_name
from dqx_airflow.contracts.demand import NO_EXPECTATION, NONE, Demand, admitting, falling, rising
from dqx_airflow.contracts.field_types import names_in, narrower_types
from dqx_airflow.contracts.model import Field, column_path, plain_name
from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show, show_number, show_text
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.metrics.sql import quote_name


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
        column, item = nested_values.column_of(context), context.item
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
        if not nested_values.is_sayable(context.way):
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


class Unique(
    Demand,
    words="unique by {columns}",
    dimension="uniqueness",
    subject_fields=("columns",),
    # Two rows that differ in one of these columns differ in any superset of them too.
    stricter={"columns": admitting},
):
    """No two rows have the same values in these columns, except for rows with a NULL in them.

    A key that must not be NULL also has `Required`.
    """

    columns: tuple[str, ...]

    @property
    def key(self) -> tuple[str, ...]:
        return self.columns

    def claim(self, context: rule_context.RuleContext) -> claims.CompiledClaim:
        return claims.no_rows(repeated(self.columns))

    def expectation(self, place: expectations.ExportedRule) -> expectations.Expectation:
        return _of_keys(self.columns, {"ignore_row_if": "any_value_is_missing"})


class Refers(
    Demand,
    words="found in {dataset} {other_columns}",
    dimension="consistency",
    subject_fields=("columns",),
):
    """The combinations of values exist in the columns of another dataset.

    `dataset` is the name of a model of this contract, or of another table or contract.
    """

    columns: tuple[str, ...]
    dataset: str
    other_columns: tuple[str, ...]

    def claim(self, context: rule_context.RuleContext) -> claims.CompiledClaim:
        other = context.dataset(self.dataset)
        if len(self.columns) != len(self.other_columns) or not self.columns:
            raise NoCounterpartError("both sides of a reference need the same number of columns")
        if context.item is not None and not context.is_reachable:
            return _refers_from_within(context, other, self.other_columns[0])
        if len(self.columns) == 1:
            values = terms.values_of(terms.column(self.other_columns[0]).text, other)
            column = terms.column(self.columns[0])
            return claims.each_row(nodes.Member(column, values))
        pairs = list(zip(self.columns, self.other_columns, strict=True))
        present = " AND ".join(f"own.{terms.quoted(column)} IS NOT NULL" for column, _ in pairs)
        equal = " AND ".join(
            f"other.{terms.quoted(other_column)} = own.{terms.quoted(column)}"
            for column, other_column in pairs
        )
        return _unfound(context, f"{quote_name(context.model.name)} AS own", other, present, equal)

    def expectation(self, place: expectations.ExportedRule) -> expectations.Expectation:
        if "." not in self.dataset:
            message = "Great Expectations reads one table: the location of the other one is unknown"
            raise NoCounterpartError(message)
        return expectations.unexpected_rows(self.missing_rows("{batch}"))

    def missing_rows(self, table: str) -> str:
        """A query for the rows of a table whose values are missing in the other table."""
        columns, other_columns = (
            tuple(map(sql_name, names)) for names in (self.columns, self.other_columns)
        )
        present = " AND ".join(f"here.{name} IS NOT NULL" for name in columns)
        pairs = zip(columns, other_columns, strict=True)
        same = " AND ".join(f"there.{other} = here.{name}" for name, other in pairs)
        other = sql_name(self.dataset)
        partner = f"SELECT 1 FROM {other} AS there WHERE {same}"  # noqa: S608
        return f"SELECT * FROM {table} AS here WHERE {present} AND NOT EXISTS ({partner})"  # noqa: S608


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


class Distinct(
    Demand,
    words="at most {duplicates} repeat {columns}",
    dimension="uniqueness",
    is_quality=True,
    subject_fields=("columns",),
    stricter={"columns": admitting, "duplicates": falling},
):
    """At most this share of the rows repeats another row in these columns."""

    columns: tuple[str, ...]
    duplicates: float

    def claim(self, context: rule_context.RuleContext) -> claims.CompiledClaim:
        if self.duplicates <= 0:
            return claims.no_rows(repeated(self.columns))
        most = show_number(terms.share(self.duplicates))
        return claims.CompiledClaim(f"{repeated(self.columns)} / num_rows() <= {most}")

    def expectation(self, place: expectations.ExportedRule) -> expectations.Expectation:
        if self.duplicates > 0:
            raise NoCounterpartError("Great Expectations permits no share of duplicates")
        return _of_keys(self.columns, {})


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


def repeated(columns: tuple[str, ...]) -> str:
    """The number of rows that repeat another row, as DQL; rows with NULL in a column are exempt."""
    listed = ", ".join(show(terms.column(column)) for column in columns)
    return f"repeated_count({listed if len(columns) == 1 else f'[{listed}]'})"


def _refers_from_within(
    context: rule_context.RuleContext, other: str, column: str
) -> claims.CompiledClaim:
    """A reference of the items of an array."""
    model, items = quote_name(context.model.name), nested_values.nested(context.way)
    inner = f"SELECT explode({items}) AS item FROM {model}"  # noqa: S608
    equal = f"other.{terms.quoted(column)} = own.item"
    return _unfound(context, f"({inner}) AS own", other, "own.item IS NOT NULL", equal)


def _unfound(
    context: rule_context.RuleContext, source: str, other: str, present: str, equal: str
) -> claims.CompiledClaim:
    """No values are missing in another dataset."""
    partner = f"SELECT 1 FROM {quote_name(other)} AS other WHERE {equal}"  # noqa: S608
    text = f"SELECT count(*) FROM {source} WHERE {present} AND NOT EXISTS ({partner})"  # noqa: S608
    return claims.compared(claims.query(text), NONE, others=(other,))


def _of_keys(columns: tuple[str, ...], of_several: dict[str, str]) -> expectations.Expectation:
    names = [plain_name(column) for column in columns]
    if len(names) == 1:
        return expectations.Expectation("expect_column_values_to_be_unique", {"column": names[0]})
    kwargs = {"column_list": names, **of_several}
    return expectations.Expectation("expect_compound_columns_to_be_unique", kwargs)
