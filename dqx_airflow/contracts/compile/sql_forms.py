"""Forms of the SQL of a rule in Spark: a row predicate, an aggregate, or a query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dqx_airflow.contracts.model import Field


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
