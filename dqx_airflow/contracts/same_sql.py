"""Whether two texts of SQL are equivalent, or compare the same expression with a number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as sql
from sqlglot import parse_one
from sqlglot.errors import SqlglotError

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_OPS = {sql.GT: ">", sql.GTE: ">=", sql.LT: "<", sql.LTE: "<=", sql.EQ: "==", sql.NEQ: "!="}


def is_same_sql(old: str, old_dialect: str | None, new: str, new_dialect: str | None) -> bool:
    """True if two SQL texts are equivalent."""
    if old.strip() == new.strip() and old_dialect == new_dialect:
        return True
    before, after = _parsed(old, old_dialect), _parsed(new, new_dialect)
    return before is not None and before == after


def comparison(predicate: str, dialect: str | None) -> tuple[Expr, tuple[str, float]] | None:
    """The expression of a predicate, and what it is compared with: `>=` and 1; None for others."""
    tree = _parsed(predicate, dialect)
    op = next((op for kind, op in _OPS.items() if isinstance(tree, kind)), None)
    if not isinstance(tree, sql.Binary) or op is None:
        return None
    number, sign = tree.expression, 1
    if isinstance(number, sql.Neg):
        number, sign = number.this, -1
    if not isinstance(number, sql.Literal) or number.is_string:
        return None
    return tree.this, (op, sign * float(number.this))


def _parsed(text: str, dialect: str | None) -> Expr | None:
    """The SQL as a tree; None if it cannot be parsed."""
    # Placeholders such as {model} are words to the parser.
    plain = text.replace("{", "__").replace("}", "__")
    try:
        return parse_one(plain, read=dialect or "spark")
    except (SqlglotError, ValueError, RecursionError):
        return None
