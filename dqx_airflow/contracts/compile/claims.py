"""Claims of assertions in DQL, which enforce the rules of a contract."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from dqx_airflow.contracts.compile import terms
from dqx_airflow.contracts.compile.nested_values import ITEM, nested
from dqx_airflow.contracts.demand import NONE, Condition
from dqx_airflow.contracts.model import Field
from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show, show_number, show_text
from dqx_airflow.metrics.sql import quote_name


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


def rows_with(way: tuple[Field, ...], test: str) -> str:
    """The DQL for the number of rows with a value at the end of a path that satisfies a test.

    :param test: the Spark SQL about the value, which is named as `ITEM`.
    """
    return sql(f"count_if(exists({nested(way)}, {quote_name(ITEM.text)} -> {test}))")
