"""SQL of two versions: whether it is the same except for spaces and case, and what it compares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as sql
from sqlglot import parse_one
from sqlglot.errors import SqlglotError

from dqx_airflow.contracts.demands import Condition

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_SPARK = "spark"


def is_same_sql(old: str, old_dialect: str | None, new: str, new_dialect: str | None) -> bool:
    """True if two SQL texts are equivalent."""
    if old.strip() == new.strip() and old_dialect == new_dialect:
        return True
    before, after = _parsed(old, old_dialect), _parsed(new, new_dialect)
    return before is not None and before == after


def compare_predicates(
    old: str, old_dialect: str | None, new: str, new_dialect: str | None
) -> tuple[Condition, Condition] | None:
    """The demands of two predicates on the same expression: `x >= 0` and `x >= 1`, else None."""
    before, after = _comparison(_parsed(old, old_dialect)), _comparison(_parsed(new, new_dialect))
    if before is None or after is None or before[0] != after[0]:
        return None
    return before[1], after[1]


def _parsed(text: str, dialect: str | None) -> Expr | None:
    """The SQL as a tree; None if it cannot be parsed."""
    # Placeholders such as {model} are words to the parser.
    plain = text.replace("{", "__").replace("}", "__")
    try:
        return parse_one(plain, read=dialect or _SPARK)
    except (SqlglotError, ValueError, RecursionError):
        return None


def _comparison(tree: Expr | None) -> tuple[Expr, Condition] | None:
    ops = {sql.GT: ">", sql.GTE: ">=", sql.LT: "<", sql.LTE: "<=", sql.EQ: "==", sql.NEQ: "!="}
    op = next((op for kind, op in ops.items() if isinstance(tree, kind)), None)
    if not isinstance(tree, sql.Binary) or op is None:
        return None
    number, sign = tree.expression, 1
    if isinstance(number, sql.Neg):
        number, sign = number.this, -1
    if not isinstance(number, sql.Literal) or number.is_string:
        return None
    return tree.this, Condition(op, sign * float(number.this))
