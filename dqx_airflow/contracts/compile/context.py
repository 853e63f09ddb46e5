"""A rule in its context, its claim in DQL, what its SQL means, and its expectation in GE.

Only `row_meaning` and `query_meaning` import `sql_rules`, and with it sqlglot.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import pairwise
from typing import Any

from dqx_airflow.contracts.compile import terms
from dqx_airflow.contracts.demand import Condition, Demand
from dqx_airflow.contracts.model import Contract, Field, Model, Rule, plain_name
from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show, show_number, show_text
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.values import DatasetRef, Severity

_OF_ONE_DATABASE = ("postgres", "postgresql")
_FIRST_SCHEMAS = ("public", "dbo", "main")
"""The default schemas of databases."""


@dataclass(frozen=True, slots=True)
class CompiledClaim:
    """The claim of an assertion, in DQL; `others` are the datasets that it reads besides its
    own."""

    text: str
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EnforcedByType:
    """The assertion about the type of a field also enforces this rule."""

    column: Field


@dataclass(frozen=True, slots=True)
class RuleContext:
    """A rule in its context. `way` leads from the column to the field; empty without a field. `ref`
    is the dataset of the model and `on` the date of its data, if known. If it `is_filtered`, it is
    about some of the rows, which SQL with a query of its own cannot express."""

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

    def field_at(self, path: str) -> Field | None:
        """The field of the model at a path; None for a column that the contract does not have."""
        return self.model.field_at(path)

    def dataset(self, written: str) -> str:
        """The dataset of a table: a model of the contract by its name, its location, or its place
        on a server (`public.orders`), or else the name as written.

        Without a server that names a schema, the default schemas of databases are assumed.
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
        """True if a server names the schema of its tables."""
        places = (server.location or "" for server in self.contract.servers)
        return any(place.endswith(".{model}") and "/" not in place for place in places)


def each_row(predicate: nodes.Expression, share: float = 1.0) -> CompiledClaim:
    """`each row: predicate`, or `N% of rows: predicate`."""
    if share >= 1:
        return CompiledClaim(f"each row: {show(predicate)}")
    return CompiledClaim(f"{show_number(terms.share(share))} of rows: {show(predicate)}")


def sql(expression: str) -> str:
    """`sql("...")`

    :raises NoCounterpartError: a text file cannot contain it.
    """
    return f"sql({show_text(terms.text(expression).value)})"


def query(text: str) -> str:
    """`query("...")`

    :raises NoCounterpartError: a text file cannot contain it.
    """
    return f"query({show_text(terms.text(text).value)})"


def no_rows(expression: str, share: float = 1.0, of: str = "num_rows()") -> CompiledClaim:
    """A number of rows is 0, or at most what a share of the evaluated ones allows."""
    if share >= 1:
        return CompiledClaim(f"{expression} == 0")
    rest = show_number(terms.share(round(1 - share, 12)))
    return CompiledClaim(f"coalesce({expression} / {of}, 0) <= {rest}")


_PLACEHOLDER = re.compile(r"(?<!\\[pPx])\$?\{\{?\s*(?P<name>[A-Za-z_]\w*)\s*\}?\}")
"""`\\p{L}` in a regular expression is none."""
_QUOTES = "\"`'."
_BACKTICKS = (None, "spark", "databricks", "hive", "mysql", "bigquery", "clickhouse")
"""Dialects in which double quotes are those of strings."""
_QUALIFIER = re.compile(
    r"""["`\[]?\$?\{\{?\s*(?:schema|dataset|database|catalog|project)\s*\}?\}["`\]]?\s*\.\s*""",
    re.IGNORECASE,
)
"""Qualifiers before the name of a table: they locate it on a server, but here it is a dataset."""


@dataclass(frozen=True, slots=True)
class SqlScope:
    """What SQL is about: the rows of the dataset `name`; the dataset of each table in it, and the
    fields of each dataset, none if they are unknown."""

    name: str
    dataset: Callable[[str], str] = lambda table: table
    fields_of: Callable[[str], tuple[Field, ...]] = lambda _dataset: ()


@dataclass(frozen=True, slots=True)
class RowSql:
    """A row predicate that only Spark SQL can express."""

    sql: str


@dataclass(frozen=True, slots=True)
class TableSql:
    """A predicate over a whole table, with an aggregate in it."""

    sql: str


@dataclass(frozen=True, slots=True)
class Query:
    """A Spark SQL query that returns one value, and the datasets that it reads."""

    sql: str
    datasets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SqlAggregate:
    """A query that is only an aggregate over all rows of the model, without its FROM."""

    sql: str


@dataclass(frozen=True, slots=True)
class CountOfRows:
    """A query that counts the rows of the model for which a predicate is true."""

    predicate: nodes.Expression


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
    """The meaning of an SQL predicate over the rows of a model.

    :raises NoCounterpartError: it is not a single read-only expression, or has other placeholders.
    """
    from dqx_airflow.contracts.compile.sql_rules import row_rule

    return row_rule(
        filled_in(predicate, placeholders(context), sql_dialect), sql_dialect, _scope(context)
    )


def query_meaning(
    context: RuleContext, written: str, sql_dialect: str | None
) -> Query | SqlAggregate | CountOfRows:
    """The meaning of a query that returns one value.

    :raises NoCounterpartError: it is not a single query, or has other placeholders.
    """
    from dqx_airflow.contracts.compile.sql_rules import query_rule

    text = filled_in(written, placeholders(context), sql_dialect)
    return query_rule(text, sql_dialect, _scope(context))


def _scope(context: RuleContext) -> SqlScope:
    return SqlScope(context.model.name, context.dataset, context.fields_of)


def compared(expression: str, condition: Condition, unit: str = "") -> str:
    """An expression with its condition; bounds are in the unit."""
    op, low, high = condition.op, condition.bound, condition.high
    if op == "between" and high is not None:
        return f"{expression} between {_bound(low, unit)} and {_bound(high, unit)}"
    if op == "not between" and high is not None:
        # A value outside of both bounds is further from their middle than they are.
        middle, half = (low + high) / 2, (high - low) / 2
        return f"abs({expression} - {_bound(middle, unit)}) > {_bound(half, unit)}"
    return f"{expression} {op} {_bound(low, unit)}"


def _bound(value: int | float, unit: str) -> str:
    return f"{show(terms.number(value))}{unit}"


def satisfied(predicate: str, share: float) -> CompiledClaim:
    """A claim on the share of rows for which a predicate is true, of those where it is not NULL."""
    return no_rows(sql(f"count_if(NOT ({predicate}))"), share, sql(f"count(({predicate}))"))


_SEVERITIES = {
    Severity.P0: "critical",
    Severity.P1: "critical",
    Severity.P2: "warning",
    Severity.P3: "info",
}


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
        """The expectation of another demand in its place.

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
