"""Row conditions of expectations as Spark SQL, in the syntax of Great Expectations and of pandas.

In pandas, a comparison with a missing value is false, `!=` and `not in` are true, and `not` negates
them; in SQL all of them are NULL.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Mapping
from typing import Any

from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.metrics.sql import quote_literal, quote_name

_COLUMN_OF_GX = re.compile(r"""\bcol\((["'])(?P<name>[^"'`]+)\1\)""")
_NULL_OF_GX = re.compile(r"\.(?P<word>is|not)_?null\(\)", re.IGNORECASE)
_LINKS_OF_GX = {" & ": " AND ", " | ": " OR "}


def row_condition(condition: Any, parser: Any) -> str | None:
    """The condition on the rows of an expectation, as Spark SQL; None if all rows count.

    :raises NoCounterpartError: the condition has no counterpart, or the parser is unknown.
    """
    if condition is None:
        return None
    if isinstance(condition, Mapping):
        return structured_condition(condition)
    if not isinstance(condition, str):
        raise NoCounterpartError("its row_condition is not a string")
    match parser:
        case "spark":
            return condition
        case "great_expectations" | "great_expectations__experimental__":
            sql = _COLUMN_OF_GX.sub(lambda match: f"`{match['name']}`", condition)
            for link, word in _LINKS_OF_GX.items():
                sql = sql.replace(link, word)
            words = {"is": " IS NULL", "not": " IS NOT NULL"}
            return _NULL_OF_GX.sub(lambda match: words[match["word"].lower()], sql)
        case "pandas":
            return pandas_condition(condition)
        case _:
            parsers = "'pandas', 'spark' or 'great_expectations'"
            raise NoCounterpartError(f"its row_condition needs the condition_parser {parsers}")


_QUOTED = re.compile(r"`([^`]+)`|\"[^\"]*\"|'[^']*'")
_WORDS = {"&": "and", "|": "or"}
_OPS: dict[type[ast.cmpop], str] = {
    ast.Eq: "=",
    ast.NotEq: "<>",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "IN",
    ast.NotIn: "NOT IN",
}
_OPPOSITES = {"=": "<>", "<": ">=", "<=": ">", "IN": "NOT IN"}
_OPPOSITES |= {opposite: op for op, opposite in _OPPOSITES.items()}
_TRUE_FOR_MISSING = ("<>", "NOT IN")
_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
}
_NULL_TESTS = {
    "isnull": "IS NULL",
    "isna": "IS NULL",
    "notnull": "IS NOT NULL",
    "notna": "IS NOT NULL",
}


def pandas_condition(written: str) -> str:
    """The SQL of a condition: true for the rows that pandas selects.

    :raises NoCounterpartError: it has variables, functions, or is no such condition.
    """
    columns: list[str] = []

    def placeholder(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        columns.append(match[1])
        return f"_quoted_column_{len(columns) - 1}_"

    try:
        tree = ast.parse(_with_words(_QUOTED.sub(placeholder, written.strip())), mode="eval")
    except (SyntaxError, ValueError, tokenize.TokenError, RecursionError):
        raise _not_read(written) from None
    return _PandasCondition(written, columns).true_for(tree.body, is_negated=False)


def _with_words(written: str) -> str:
    """`&` and `|` as words: in pandas they bind as loosely."""
    tokens = tokenize.generate_tokens(io.StringIO(written).readline)
    kept = (
        (tokenize.NAME, _WORDS[token.string]) if token.string in _WORDS else token[:2]
        for token in tokens
    )
    return tokenize.untokenize(kept).strip()


def _not_read(written: str) -> NoCounterpartError:
    reason = f"its row_condition for pandas cannot be expressed in SQL: {written}"
    return NoCounterpartError(f"{reason}; write it for condition_parser 'spark'")


class _PandasCondition:
    """Translates a condition of pandas; `columns` are the columns that it has in backticks."""

    def __init__(self, written: str, columns: list[str]) -> None:
        self._written = written
        self._columns = columns

    def true_for(self, node: ast.expr, *, is_negated: bool) -> str:
        """The SQL that is true where the node is true, or false if it is negated."""
        match node:
            case ast.BoolOp(op=op, values=values):
                link = " AND " if isinstance(op, ast.And) != is_negated else " OR "
                parts = (self.true_for(value, is_negated=is_negated) for value in values)
                return f"({link.join(parts)})"
            case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
                return self.true_for(operand, is_negated=not is_negated)
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                sides = [left, *comparators]
                pairs = zip(sides, ops, sides[1:], strict=False)
                parts = (self._compared(*pair, is_negated=is_negated) for pair in pairs)
                return f"({(' OR ' if is_negated else ' AND ').join(parts)})"
            case ast.Call(func=ast.Attribute(value=value, attr=name), args=[], keywords=[]):
                if name in _NULL_TESTS:
                    text = f"{self._value(value)} {_NULL_TESTS[name]}"
                    return f"NOT ({text})" if is_negated else text
            case ast.Name():
                column = self._value(node)
                return f"(NOT {column} OR {column} IS NULL)" if is_negated else column
        raise _not_read(self._written)

    def _compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr, *, is_negated: bool) -> str:
        sign = _OPS.get(type(op))
        if sign is None:
            raise _not_read(self._written)
        if isinstance(right, ast.List | ast.Tuple | ast.Set):
            sign = {"=": "IN", "<>": "NOT IN"}.get(sign, sign)
        if ("IN" in sign) != isinstance(right, ast.List | ast.Tuple | ast.Set):
            raise _not_read(self._written)
        is_true_for_missing = (sign in _TRUE_FOR_MISSING) != is_negated
        shown = _OPPOSITES[sign] if is_negated else sign
        text = f"{self._value(left)} {shown} {self._value(right)}"
        if not is_true_for_missing:
            return text
        missing = (
            f"{self._value(side)} IS NULL"
            for side in (left, right)
            if isinstance(side, ast.Name | ast.Attribute | ast.BinOp)
        )
        return f"({' OR '.join((text, *missing))})"

    def _value(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value=bool() | str() as value):
                return quote_literal(value)
            case ast.Constant(value=int() | float() as value):
                return str(value)
            case ast.Name(id=name):
                quoted = re.fullmatch(r"_quoted_column_(\d+)_", name)
                return quote_name(self._columns[int(quoted[1])] if quoted else name)
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                return quote_name(owner, name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"-({self._value(operand)})"
            case ast.BinOp(left, ast.Mod(), ast.Constant(int() | float() as divisor)) if (
                divisor > 0
            ):
                # As in Python, and unlike `%` in SQL, its remainders are never negative.
                return f"pmod({self._value(left)}, {divisor})"
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                return f"({self._value(left)} {_ARITHMETIC[type(op)]} {self._value(right)})"
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items) if items:
                return f"({', '.join(self._value(item) for item in items)})"
        raise _not_read(self._written)


def structured_condition(condition: Any) -> str:
    """A condition of Great Expectations 1.x, written as a mapping, as Spark SQL.

    :raises NoCounterpartError: it is of an unknown type.
    """
    match condition:
        case {"type": "and" | "or" as link, "conditions": [*parts]} if parts:
            return f"({f' {link.upper()} '.join(map(structured_condition, parts))})"
        case {"type": "nullity", "column": {"name": str(name)}, "is_null": bool(is_null)}:
            return f"{quote_name(name)} IS {'' if is_null else 'NOT '}NULL"
        case {
            "type": "comparison",
            "column": {"name": str(name)},
            "operator": str(op),
            "parameter": value,
        }:
            return f"{quote_name(name)} {_comparison(op, value)}"
        case {"type": "pass_through", "pass_through_filter": str(written)}:
            return pandas_condition(written)
    raise NoCounterpartError(f"its row_condition is of an unknown type: {condition}")


def _comparison(op: str, value: Any) -> str:
    sign = {"==": "=", "!=": "<>", "IN": "IN", "NOT_IN": "NOT IN"}.get(op, op)
    match value:
        case [*items] if items and sign in ("IN", "NOT IN"):
            return f"{sign} ({', '.join(map(quote_literal, items))})"
        case bool() | int() | float() | str() if sign in ("=", "<>", "<", "<=", ">", ">="):
            return f"{sign} {quote_literal(value)}"
    raise NoCounterpartError(f"its row_condition compares with {value!r}")
