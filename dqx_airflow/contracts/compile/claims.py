"""A rule in its context: the path to its field, its claim in DQL, its expectation, its SQL.

Only `row_meaning` and `query_meaning` import `sql_rules`, and with it sqlglot.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from itertools import pairwise
from typing import Any

from dqx_airflow.contracts.compile import terms
from dqx_airflow.contracts.demand import NONE, Condition, Demand
from dqx_airflow.contracts.model import Contract, Field, Model, Rule, plain_name
from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show, show_number, show_text
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.metrics.patterns.bounds import bounded, ended
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.metrics.text_formats import TEXT_FORMATS, whole
from dqx_airflow.plan.predicates import predicate_sql
from dqx_airflow.values import DatasetRef, Severity

_OF_ONE_DATABASE = ("postgres", "postgresql")
_FIRST_SCHEMAS = ("public", "dbo", "main")
"""The default schemas of databases."""


@dataclass(frozen=True, slots=True)
class CompiledClaim:
    """The claim of an assertion, in DQL; `others` are the datasets that it reads, if not only its
    own."""

    text: str
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EnforcedByType:
    """The assertion about the type of a field also enforces this rule."""

    column: Field


@dataclass(frozen=True, slots=True)
class RuleContext:
    """A rule in its context. `way` is the path of fields from the column to the field of the rule;
    empty without a field. `ref` is the dataset of the model and `on` the date of its data, if
    known. A rule that `is_filtered` applies to some of the rows, which SQL with a query of its own
    cannot express."""

    contract: Contract
    model: Model
    way: tuple[Field, ...]
    rule: Rule
    ref: DatasetRef | None = None
    on: date | None = None
    is_filtered: bool = False

    @property
    def item(self) -> Field | None:
        return self.way[-1] if self.way else None

    @property
    def reachable(self) -> tuple[Field, ...]:
        """The part of the path that DQL can express: up to the first array or map."""
        for number, (outer, inner) in enumerate(pairwise(self.way)):
            if all(inner is not part for part in outer.fields):
                return self.way[: number + 1]
        return self.way

    @property
    def is_reachable(self) -> bool:
        return len(self.reachable) == len(self.way)

    def dataset(self, written: str) -> str:
        """The dataset of a table: a model of the contract by its name, its location, or its name
        on a server (`public.orders`), or else the name as written.

        Without a server that has a schema, the default schemas of databases are assumed.
        """
        wanted = written.replace("`", "").lower()
        for model in self.contract.models:
            if model.name == written:
                return model.name
        for model in self.contract.models:
            table = (model.location or model.name).lower()
            if wanted in (model.name.lower(), table):
                return model.name
            for server in self.contract.servers:
                located = (server.location or "").lower().replace("{model}", table)
                if f".{located}".endswith(f".{wanted}"):
                    return model.name
                # A Postgres query cannot name another database than its own.
                if (
                    located
                    and server.type in _OF_ONE_DATABASE
                    and f".{wanted}".endswith(f".{located}")
                ):
                    return model.name
            schema, _, name = wanted.rpartition(".")
            if name == table and schema in _FIRST_SCHEMAS and not self._has_schemas:
                return model.name
        return written.replace("`", "")

    def fields_of(self, dataset: str) -> tuple[Field, ...]:
        """The fields of a dataset; none if no model describes it."""
        model = self.contract.model(dataset)
        return model.fields if model is not None else ()

    @property
    def _has_schemas(self) -> bool:
        """True if a server has a schema for its tables."""
        places = (server.location or "" for server in self.contract.servers)
        return any(place.endswith(".{model}") and "/" not in place for place in places)


def each_row(predicate: nodes.Expression, share: float = 1.0) -> CompiledClaim:
    """`each row: predicate`, or `N% of rows: predicate`."""
    if share >= 1:
        return CompiledClaim(f"each row: {show(predicate)}")
    return CompiledClaim(f"{show_number(terms.share(share))} of rows: {show(predicate)}")


def sql(text: str, function: str = "sql") -> str:
    """`sql("...")`

    :raises NoCounterpartError: a text file cannot contain it.
    """
    return f"{function}({show_text(terms.text(text).value)})"


query = partial(sql, function="query")
"""`query("...")`"""


def no_rows(expression: str, share: float = 1.0, of: str = "num_rows()") -> CompiledClaim:
    """The claim that a number of rows is 0, or at most the rest of the share of evaluated rows.

    :param expression: the number of failing rows, as DQL.
    :param of: the number of evaluated rows, as DQL."""
    if share >= 1:
        return compared(expression, NONE)
    rest = show_number(terms.share(round(1 - share, 12)))
    return CompiledClaim(f"coalesce({expression} / {of}, 0) <= {rest}")


_PLACEHOLDER = re.compile(r"(?<!\\[pPx])\$?\{\{?\s*(?P<name>[A-Za-z_]\w*)\s*\}?\}")
"""`\\p{L}` in a regular expression is none."""
_QUOTES = "\"`'."
_BACKTICKS = (None, "spark", "databricks", "hive", "mysql", "bigquery", "clickhouse")
"""Dialects in which double quotes delimit strings, and backticks names."""
_QUALIFIER = re.compile(
    r"""["`\[]?\$?\{\{?\s*(?:schema|dataset|database|catalog|project)\s*\}?\}["`\]]?\s*\.\s*""",
    re.IGNORECASE,
)
"""Qualifiers before the name of a table: they locate it on a server, but here it is a dataset."""


@dataclass(frozen=True, slots=True)
class SqlScope:
    """The scope of SQL in a contract: it judges rows of the dataset `name`. `dataset` returns the
    dataset of a table in the SQL, `fields_of` the fields of a dataset, none if unknown."""

    name: str
    dataset: Callable[[str], str] = lambda table: table
    fields_of: Callable[[str], tuple[Field, ...]] = lambda _dataset: ()


@dataclass(frozen=True, slots=True)
class RowSql:
    """A row predicate that only Spark SQL can express."""

    sql: str


@dataclass(frozen=True, slots=True)
class TableSql:
    """Spark SQL over all rows of a model, with an aggregate in it: a predicate, or the value of a
    query without its FROM."""

    sql: str


@dataclass(frozen=True, slots=True)
class Query:
    """A Spark SQL query that returns one value, and the datasets that it reads."""

    sql: str
    datasets: tuple[str, ...]


def filled_in(sql: str, names: Mapping[str, str], sql_dialect: str | None) -> str:
    """The SQL with names for its placeholders: `{model}`, `${property}`, `{{ column }}`.

    :raises NoCounterpartError: a placeholder is unknown.
    """

    def fill(match: re.Match[str]) -> str:
        key = match["name"].lower()
        if key not in names:
            known = ", ".join(f"{{{known}}}" for known in names)
            raise NoCounterpartError(f"nothing is known for {match[0]}: there is {known}")
        before = sql[match.start() - 1 : match.start()]
        is_plain = re.fullmatch(r"[A-Za-z_][\w.]*", names[key]) is not None
        if is_plain or (before and before in _QUOTES):
            return names[key]
        quote = "`" if sql_dialect in _BACKTICKS else '"'
        return quote + names[key].replace(quote, 2 * quote) + quote

    return _PLACEHOLDER.sub(fill, _QUALIFIER.sub("", sql))


def placeholders(context: RuleContext) -> dict[str, str]:
    """The values of `{model}`, `{field}` and other placeholders in the SQL of a rule."""
    tables = ("model", "table", "table_name", "object", "schema", "dataset")
    names = dict.fromkeys(tables, context.model.name)
    if context.item is not None and context.is_reachable:
        column = plain_name(context.item.path)
        names |= dict.fromkeys(("field", "column", "property", "column_name"), column)
    return names


def row_meaning(
    context: RuleContext, predicate: str, sql_dialect: str | None
) -> nodes.Expression | RowSql | TableSql | Query:
    """Translates an SQL predicate over the rows of a model.

    :raises NoCounterpartError: it is not a single read-only expression, or has other placeholders.
    """
    from dqx_airflow.contracts.compile.sql_rules import row_rule

    return row_rule(
        filled_in(predicate, placeholders(context), sql_dialect), sql_dialect, _scope(context)
    )


def query_meaning(
    context: RuleContext, written: str, sql_dialect: str | None
) -> Query | TableSql | nodes.Expression:
    """Translates a query that returns one value. A query that counts rows of the model becomes the
    predicate that is true for these rows.

    :raises NoCounterpartError: it is not a single query, or has other placeholders.
    """
    from dqx_airflow.contracts.compile.sql_rules import query_rule

    text = filled_in(written, placeholders(context), sql_dialect)
    return query_rule(text, sql_dialect, _scope(context))


def _scope(context: RuleContext) -> SqlScope:
    return SqlScope(context.model.name, context.dataset, context.fields_of)


def compared(
    expression: str, condition: Condition, unit: str = "", others: tuple[str, ...] = ()
) -> CompiledClaim:
    """The claim that an expression satisfies a condition, whose bounds are in the unit."""
    text = f"{expression} {condition.op} {_bound(condition.bound, unit)}"
    if condition.high is not None:
        text += f" and {_bound(condition.high, unit)}"
    return CompiledClaim(text, others)


def _bound(value: int | float, unit: str) -> str:
    return f"{show(terms.number(value))}{unit}"


def satisfied(predicate: str, share: float) -> CompiledClaim:
    """A claim on the share of rows for which a predicate is true, of those where it is not NULL."""
    return no_rows(sql(f"count_if(NOT ({predicate}))"), share, sql(f"count(({predicate}))"))


_SEVERITIES = dict(zip(Severity, ("critical", "critical", "warning", "info"), strict=True))


@dataclass(frozen=True, slots=True)
class Expectation:
    """An expectation: its name, and its arguments in order."""

    type: str
    kwargs: dict[str, Any]
    severity: str | None = field(default=None)

    def as_plain(self) -> dict[str, Any]:
        severity = {} if self.severity is None else {"severity": self.severity}
        return {"type": self.type, "kwargs": self.kwargs, **severity}


@dataclass(frozen=True, slots=True)
class ExportedRule:
    """The rule to export as an expectation, and its context. `item` is None for a model."""

    model: Model
    item: Field | None
    rule: Rule

    @property
    def column(self) -> str:
        return plain_name(self.item.path) if self.item is not None else ""

    @property
    def sql_column(self) -> str:
        return terms.sql_name(self.item.path if self.item is not None else "")

    @property
    def mostly(self) -> dict[str, float]:
        return {"mostly": self.rule.share} if self.rule.share < 1 else {}

    def of(self, demand: Demand) -> Expectation:
        """The expectation of another demand at the position of this rule.

        :raises NoCounterpartError: there is none.
        """
        return replace(self, rule=replace(self.rule, demand=demand)).expectation()

    def expectation(self) -> Expectation:
        """The expectation that is equivalent to a rule.

        :raises NoCounterpartError: there is none.
        """
        if self.item is not None and self.item not in self.model.fields:
            raise NoCounterpartError("Great Expectations has no names for nested columns")
        expectation = self.rule.demand.expectation(self)
        if self.rule.severity is None:
            return expectation
        return replace(expectation, severity=_SEVERITIES[self.rule.severity])


def unexpected_rows(query: str) -> Expectation:
    """The rows that a query finds must not exist: only SQL can express them."""
    return Expectation("unexpected_rows_expectation", {"unexpected_rows_query": query})


def rows_where(wrong: str, share: float = 1.0) -> Expectation:
    """The rows for which a predicate is true must not exist.

    :raises NoCounterpartError: a share of them may exist.
    """
    if share < 1:
        message = "Great Expectations permits no share of rows that a query finds"
        raise NoCounterpartError(message)
    return unexpected_rows(f"SELECT * FROM {{batch}} WHERE {wrong}")  # noqa: S608


def spark_text(node: nodes.Expression) -> str:
    """A predicate as Spark SQL.

    :raises NoCounterpartError: a pattern in it cannot decide strings of every length.
    """
    match node:
        case nodes.Junction(op=op, left=left, right=right):
            return f"({spark_text(left)} {op.upper()} {spark_text(right)})"
        case nodes.Not(operand=operand):
            return f"(NOT {spark_text(operand)})"
        case nodes.Matches(operand=nodes.Name(text=name), pattern=pattern):
            decided = bounded(pattern.value)
            if decided.longest is not None:
                raise NoCounterpartError(
                    f"Spark SQL has no bound for the pattern, which can decide strings of "
                    f"{decided.longest:,} characters"
                )
            return f"({quote_name(name)} RLIKE {quote_literal(decided.text)})"
        case nodes.HasFormat(operand=nodes.Name(text=name), format=kind):
            form, text = TEXT_FORMATS[kind.text], quote_name(name)
            return form.sql(text, f"({text} RLIKE {quote_literal(ended(whole(form.pattern)))})")
        case _:
            return predicate_sql(node)


def like_pattern(value: str, pattern: str) -> str:
    """A value, given as Spark SQL, matches a regular expression.

    A string that is too long to be decided does not match: count the rows that do not match.
    """
    decided = bounded(pattern)
    short = "" if decided.longest is None else f"length({value}) <= {decided.longest} AND "
    return f"({short}{value} RLIKE {quote_literal(decided.text)})"


ITEM = nodes.Name("item")
"""A value within a lambda function."""


@dataclass(frozen=True, slots=True)
class NestedField:
    """A field on the path to a nested one, and the DQL name of its value there.

    `array` is the array of which it is an item; None for a column and for a field of a struct.
    """

    field: Field
    operand: nodes.Name | nodes.Item
    array: nodes.Expression | None = None


def steps(way: tuple[Field, ...]) -> tuple[NestedField, ...]:
    """The steps of a path: `lines`, then `item` of `lines`, then `item.sku`.

    :raises NoCounterpartError: DQL has no name for one of the fields.
    """
    column, *rest = way
    to_value = [NestedField(column, terms.column_named(column.name))]
    for inner in rest:
        outer, operand = to_value[-1].field, to_value[-1].operand
        if any(inner is part for part in outer.fields):
            to_value.append(NestedField(inner, terms.field_of(operand, inner.name)))
        elif inner is outer.items:
            to_value.append(NestedField(inner, nodes.Item(()), operand))
        else:
            part = "key" if inner is outer.keys else "value"
            to_value.append(NestedField(inner, nodes.Item((part,)), terms.call("entries", operand)))
    return tuple(to_value)


def of_every(way: Sequence[NestedField], predicate: nodes.Expression) -> nodes.Expression:
    """The predicate over the operand of the last step, for all values at the end of the path."""
    for step in reversed(way):
        if step.array is not None:
            predicate = nodes.Quantified(nodes.Name("every"), step.array, predicate)
    return predicate


def innermost(way: Sequence[NestedField]) -> Sequence[NestedField]:
    """The steps within the innermost scope: after the last array, or all."""
    last = max((number for number, step in enumerate(way) if step.array is not None), default=0)
    return way[last:]


def is_sayable(way: tuple[Field, ...]) -> bool:
    """False if a field of an item has a dot in its name, which would end the name in DQL."""
    is_within = False
    for outer, inner in pairwise(way):
        is_field = any(inner is part for part in outer.fields)
        if is_within and is_field and "." in inner.name:
            return False
        is_within = is_within or not is_field
    return True


def rows_with(way: tuple[Field, ...], test: str) -> str:
    """The number of rows with a value at the end of a path for which a test of `ITEM` is true."""
    return sql(f"count_if(exists({nested(way)}, {quote_name(ITEM.text)} -> {test}))")


def nested(way: tuple[Field, ...]) -> str:
    """The values at the end of a path in a row, as Spark SQL; if there are arrays on the path, all
    of them in one array."""
    sql, is_array = quote_name(way[0].name), False
    for outer, inner in pairwise(way):
        if any(inner is part for part in outer.fields):
            # Spark takes a field of each struct in an array in the same way.
            sql = f"{sql}.{quote_name(inner.name)}"
            continue
        step = "map_keys" if inner is outer.keys else ""
        step = "map_values" if inner is outer.values else step
        if not is_array:
            sql = f"{step}({sql})" if step else sql
        else:
            part = f"transform({sql}, part -> {step}(part))" if step else sql
            # NULL among the arrays would make the whole result NULL.
            sql = f"flatten(filter({part}, part -> part IS NOT NULL))"
        is_array = True
    return sql


def column_of(context: RuleContext) -> nodes.Name:
    if context.item is None:
        raise NoCounterpartError(_AT_NO_COLUMN)
    return terms.column(context.item.path)


def steps_of(context: RuleContext) -> tuple[NestedField, ...]:
    if context.item is None:
        raise NoCounterpartError(_AT_NO_COLUMN)
    return steps(context.way)


_AT_NO_COLUMN = "it applies to a column, but is not set on one"
