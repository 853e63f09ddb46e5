"""Compares the SQL of two versions of a contract, whether or not it can be translated to Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from dqx_airflow.contracts.compile.sql_trees import COMPARATORS
from dqx_airflow.dql.sql_parser import InvalidSqlError, parse_sql

if TYPE_CHECKING:
    from sqlglot import Expr


def is_same_sql(old: str, old_dialect: str | None, new: str, new_dialect: str | None) -> bool:
    """True if two SQL texts are equivalent."""
    if old.strip() == new.strip() and old_dialect == new_dialect:
        return True
    before = _tree(old, old_dialect)
    return before is not None and before == _tree(new, new_dialect)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A predicate that compares an expression with a number, such as `amount >= 1`."""

    left: Expr
    op: str
    number: float


def comparison_in(predicate: str, dialect: str | None) -> Comparison | None:
    """The predicate as a comparison; None for any other predicate."""
    tree = _tree(predicate, dialect)
    if not isinstance(tree, exp.Binary) or type(tree) not in COMPARATORS:
        return None
    number = tree.expression
    sign = 1
    if isinstance(number, exp.Neg):
        number = number.this
        sign = -1
    if not isinstance(number, exp.Literal) or number.is_string:
        return None
    try:
        return Comparison(tree.this, COMPARATORS[type(tree)], sign * float(number.this))
    except ValueError:  # such as `1e`
        return None


def _tree(text: str, dialect: str | None) -> Expr | None:
    """The SQL as a tree; None if it cannot be parsed."""
    # Placeholders such as {model} are words to the parser.
    plain = text.replace("{", "__").replace("}", "__")
    try:
        statements = parse_sql(plain, dialect or "spark")
    except InvalidSqlError:
        return None
    return statements[0] if len(statements) == 1 else None
