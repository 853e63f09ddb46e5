"""Date and time arithmetic in SQL of other servers, with its meaning in Spark.

sqlglot translates most of it. Arithmetic that would lose the time of day, or count days instead of
hours, is written with intervals, which keep the type of the other operand. Operands that could be
numbers as well as times are rejected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from dqx_airflow.contracts.compile.terms import UnenforceableError

if TYPE_CHECKING:
    from sqlglot import Expr

_DAY_S = 86_400
_MONTHS = {"QUARTER": 3}
_UNITS = ("SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR")
_SYNONYMS = {
    **dict.fromkeys(("D", "DD", "DAYS", "DY"), "DAY"),
    **dict.fromkeys(("H", "HH", "HOURS", "HR"), "HOUR"),
    **dict.fromkeys(("MI", "N", "MINUTES", "MIN"), "MINUTE"),
    **dict.fromkeys(("S", "SS", "SECONDS", "SEC"), "SECOND"),
    **dict.fromkeys(("W", "WK", "WW", "WEEKS"), "WEEK"),
    **dict.fromkeys(("M", "MM", "MON", "MONTHS"), "MONTH"),
    **dict.fromkeys(("Y", "YY", "YYYY", "YEARS"), "YEAR"),
    **dict.fromkeys(("Q", "QQ", "QTR", "QUARTERS"), "QUARTER"),
}


def with_intervals(tree: Expr, sql_dialect: str | None) -> Expr:
    """The tree with date arithmetic that means the same in Spark as in the dialect.

    :raises UnenforceableError: it is unknown whether an operand is a time.
    """
    truncates_time = any(
        _is_now(call.this) for call in tree.find_all(exp.Trunc, exp.DateTrunc, exp.TimestampTrunc)
    )

    def rewritten(node: Expr) -> Expr:
        match node:
            case exp.DateAdd() | exp.TsOrDsAdd() | exp.TimestampAdd() | exp.DatetimeAdd():
                return _shifted(node, exp.Add)
            case exp.DateSub() | exp.TimestampSub() | exp.DatetimeSub():
                return _shifted(node, exp.Sub)
            case exp.Systimestamp():
                return exp.CurrentTimestamp()
            case exp.Sub() | exp.Add() if sql_dialect in ("oracle", "redshift"):
                return _of_days(node)
            case exp.Trunc() if node.args.get("decimals") is None:
                return _start_of_day(node, node.this, is_time=truncates_time)
            case exp.Anonymous() if node.name.upper() == "TRUNC" and len(node.expressions) == 1:
                return _start_of_day(node, node.expressions[0], is_time=truncates_time)
            case exp.DateTrunc() if sql_dialect == "oracle" and str(node.unit) in ("'DD'", "DD"):
                return exp.cast(node.this, "date")
        return node

    root = tree.copy()
    # Inner expressions first: an operand may be the result of a rewrite.
    for node in reversed(list(root.walk(bfs=False))):
        new = rewritten(node)
        if new is not node and node is root:
            root = new
        elif new is not node:
            node.replace(new)
    return root


def _shifted(node: Expr, operation: type[Expr]) -> Expr:
    """`x + INTERVAL n UNIT` for a function that adds n units."""
    amount = node.expression
    unit = str(node.args.get("unit") or "DAY").strip("'\"").upper()
    if isinstance(amount, exp.Interval):
        unit = str(amount.args.get("unit") or unit).upper()
        amount = amount.this
    unit = _SYNONYMS.get(unit, unit)
    months = _MONTHS.get(unit)
    if unit not in _UNITS and months is None:
        raise UnenforceableError(f"the length of a {unit.lower()} is unknown")
    factor = exp.Literal.string(str(months or 1))
    interval = exp.Interval(this=factor, unit=exp.var("MONTH" if months else unit))
    if not months and isinstance(amount, exp.Literal):
        interval = exp.Interval(this=exp.Literal.string(amount.name), unit=exp.var(unit))
        return exp.paren(operation(this=node.this, expression=interval))
    number: Expr = exp.paren(amount.copy())
    if isinstance(amount, exp.Literal):
        number = exp.Literal.number(amount.name)
    return exp.paren(
        operation(this=node.this, expression=exp.Mul(this=number, expression=interval))
    )


def _of_days(node: Expr) -> Expr:
    """The sum of a time and a number, which is a number of days in Oracle."""
    left, right = node.this, node.expression
    if _is_now(left) and _is_number(right):
        day = exp.Interval(this=exp.Literal.string("1"), unit=exp.var("DAY"))
        length = exp.Mul(this=exp.paren(right.copy()), expression=day)
        return type(node)(this=left, expression=length)
    is_difference = isinstance(node, exp.Sub) and (_is_now(left) or _is_now(right))
    if is_difference and not isinstance(right, exp.Interval):
        seconds = exp.Sub(this=epoch_seconds(left), expression=epoch_seconds(right))
        return exp.paren(exp.Div(this=exp.paren(seconds), expression=exp.Literal.number(_DAY_S)))
    return node


def epoch_seconds(value: Expr) -> Expr:
    """The seconds of a timestamp since 1970, with their fraction."""
    micros = exp.Anonymous(this="unix_micros", expressions=[exp.cast(value.copy(), "timestamp")])
    return exp.paren(exp.Div(this=micros, expression=exp.Literal.number(1_000_000)))


def _start_of_day(node: Expr, value: Expr, *, is_time: bool) -> Expr:
    if _is_number(value):
        return node
    if not is_time:
        raise UnenforceableError(
            "TRUNC is ambiguous between numbers and times: write CAST(... AS DATE) or FLOOR"
        )
    return exp.cast(value, "date")


def _is_now(value: Expr | None) -> bool:
    """True for the current time, and for the current date."""
    if isinstance(value, exp.Cast) and value.is_type("date"):
        value = value.this
    return isinstance(value, exp.CurrentTimestamp | exp.Systimestamp | exp.CurrentDatetime)


def _is_number(value: Expr) -> bool:
    """True for a literal number, `1` or `1/24`."""
    parts = (exp.Literal, exp.Neg, exp.Paren, exp.Binary)
    return all(isinstance(part, parts) for part in value.walk()) and all(
        not literal.is_string for literal in value.find_all(exp.Literal)
    )
