"""Demands on keys: unique columns, a share of repetitions, and references to other datasets."""

from __future__ import annotations

from dqx_airflow.contracts.compile import claims, expectations, nested_values, rule_context, terms
from dqx_airflow.contracts.compile.terms import ValueKind, kind_of, sql_name
from dqx_airflow.contracts.demand import NONE, Demand, admitting, falling
from dqx_airflow.contracts.model import Field, plain_name
from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show, show_number
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.metrics.sql import quote_name


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
            _equal(
                f"own.{terms.quoted(column)}",
                context.model.field_at(column),
                f"other.{terms.quoted(other_column)}",
                _field_of(context, other, other_column),
            )
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


def repeated(columns: tuple[str, ...]) -> str:
    """The number of rows that repeat another row, as DQL; rows with NULL in a column are exempt."""
    listed = ", ".join(show(terms.column(column)) for column in columns)
    return f"repeated_count({listed if len(columns) == 1 else f'[{listed}]'})"


def _refers_from_within(
    context: rule_context.RuleContext, other: str, column: str
) -> claims.CompiledClaim:
    """The claim of a reference from the items of an array."""
    model = quote_name(context.model.name)
    items = nested_values.nested(context.way)
    inner = f"SELECT explode({items}) AS item FROM {model}"  # noqa: S608
    other_field = _field_of(context, other, column)
    equal = _equal("own.item", context.item, f"other.{terms.quoted(column)}", other_field)
    return _unfound(context, f"({inner}) AS own", other, "own.item IS NOT NULL", equal)


_EXACT = {"tinyint", "smallint", "int", "bigint", "whole_number", "decimal"}
_INEXACT = {"float", "double"}


def _field_of(context: rule_context.RuleContext, dataset: str, path: str) -> Field | None:
    """The field of another dataset; None if the contract does not describe it."""
    model = context.contract.model(dataset)
    return model.field_at(path) if model is not None else None


def _equal(own: str, field: Field | None, other: str, other_field: Field | None) -> str:
    """The Spark SQL that two values are equal; the fields are None if they are not described.

    Spark casts what it compares: `'01'` would equal 1, and 2^53 + 1 the double 2^53.

    :raises NoCounterpartError: values of the two types are never equal.
    """
    equal = f"{other} = {own}"
    if field is None or kind_of(field) is ValueKind.UNKNOWN:
        return equal
    if other_field is None:
        # Its type is known only in Spark: a string is equal to nothing but strings.
        op = "=" if kind_of(field) is ValueKind.TEXT else "<>"
        equal = f"typeof({other}) {op} 'string' AND {equal}"
        return _exactly(equal, own, other) if kind_of(field) is ValueKind.NUMBER else equal
    kinds = {kind_of(field), kind_of(other_field)}
    is_comparable = len(kinds) == 1 or kinds <= {ValueKind.DATE, ValueKind.TIMESTAMP}
    if not is_comparable and ValueKind.UNKNOWN not in kinds:
        raise NoCounterpartError(
            f"'{field.path}' is of type {field.type} and '{other_field.path}' of type "
            f"{other_field.type}: they cannot have values in common"
        )
    numbers = {(item.type or "").partition("(")[0] for item in (field, other_field)}
    if kinds != {ValueKind.NUMBER} or numbers <= _EXACT or numbers <= _INEXACT:
        return equal
    return _exactly(equal, own, other)


def _exactly(equal: str, own: str, other: str) -> str:
    """The condition that two numbers are equal, also as decimals."""
    sides = (f"try_cast({value} AS DECIMAL(38, 9))" for value in (other, own))
    return f"{equal} AND coalesce({' = '.join(sides)}, true)"


def _unfound(
    context: rule_context.RuleContext, source: str, other: str, present: str, equal: str
) -> claims.CompiledClaim:
    """The claim that no values of a source are missing in another dataset."""
    partner = f"SELECT 1 FROM {quote_name(other)} AS other WHERE {equal}"  # noqa: S608
    text = f"SELECT count(*) FROM {source} WHERE {present} AND NOT EXISTS ({partner})"  # noqa: S608
    return claims.compared(claims.query(text), NONE, others=(other,))


def _of_keys(columns: tuple[str, ...], of_several: dict[str, str]) -> expectations.Expectation:
    names = [plain_name(column) for column in columns]
    if len(names) == 1:
        return expectations.Expectation("expect_column_values_to_be_unique", {"column": names[0]})
    kwargs = {"column_list": names, **of_several}
    return expectations.Expectation("expect_compound_columns_to_be_unique", kwargs)
