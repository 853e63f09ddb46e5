"""The table of expressions that are translated exactly, from `sql_table.txt`.

A row has placeholders such as `_text` for operands of a kind, and `_count` for literals.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from dqx_airflow.contracts.compile.value_kinds import Kind
from dqx_airflow.values.files import table_rows

if TYPE_CHECKING:
    from sqlglot import Expr

DIALECTS = (
    "postgres",
    "redshift",
    "duckdb",
    "snowflake",
    "bigquery",
    "trino",
    "tsql",
    "mysql",
    "oracle",
    "sqlite",
)
_rows = partial(table_rows, __package__, "sql_table.txt")
_UNITS = {name: unit for unit, names in _rows("units") for name in names.split()}
_TEXTS: dict[str, str] = dict(_rows("texts"))
_NUMBERS: dict[str, str] = dict(_rows("numbers"))
_GROUPS = {hole: kinds.split() for hole, kinds in _rows("kinds")}


def sqlglot_dialect(sql_dialect: str | None) -> str | None:
    """The dialect in which sqlglot reads SQL; None for what all databases have in common."""
    return None if sql_dialect in ("ansi", "any") else sql_dialect or "spark"


class Row(NamedTuple):
    """A row of the table. `result` is the kind of the value, or the name of the function that
    derives it from the kinds of the operands."""

    written: str
    pattern: Expr
    result: str
    template: Expr


@cache
def table(sql_dialect: str) -> Mapping[type[Expr], list[Row]]:
    """The expressions of a dialect that are translated, by their class."""
    found: dict[type[Expr], list[Row]] = {}
    is_meant = False
    text = files(__package__).joinpath("sql_table.txt").read_text("utf-8")
    for line in text.splitlines():
        if line.endswith(":") and not line.startswith(("#", " ")):
            names, _, others = line[:-1].partition(" but ")
            groups = {"all": DIALECTS, "every": (sql_dialect,)}
            is_meant = sql_dialect in groups.get(names, names.split())
            is_meant = is_meant and sql_dialect not in others.split()
        elif is_meant and line.startswith(" "):
            written, result, *spark = (part.strip() for part in line.split(" | "))
            try:
                pattern = parse_one(written, dialect=sqlglot_dialect(sql_dialect))
                template = parse_one(spark[0] if spark else written, dialect="spark")
            except SqlglotError:
                continue  # This version of sqlglot cannot read it: it stays refused.
            for call in template.find_all(exp.PercentileDisc):  # sqlglot would approximate it
                call.replace(exp.Anonymous(this="percentile_disc", expressions=[call.this]))
            found.setdefault(type(pattern), []).append(Row(written, pattern, result, template))
    return found


def _hole(node: object) -> str | None:
    """The name of a placeholder in a row, such as `_text2`; None for any other node."""
    is_hole = isinstance(node, exp.Column) and node.name.startswith("_") and not node.table
    return node.name.lower() if is_hole and isinstance(node, exp.Column) else None


def matched(pattern: object, node: object, found: dict[str, Expr]) -> bool:
    """Whether an expression matches the pattern of a row. Collects the expressions for its
    placeholders in `found`."""
    name = _hole(pattern)
    if name is not None and isinstance(node, exp.Expression):
        return found.setdefault(name, node) == node
    if isinstance(pattern, list) and isinstance(node, list):
        pairs = zip(pattern, node, strict=False)
        return len(pattern) == len(node) and all(matched(a, b, found) for a, b in pairs)
    if not isinstance(pattern, exp.Expression) or not isinstance(node, exp.Expression):
        same = str(pattern or "").upper() == str(node or "").upper()
        return same and bool(pattern) == bool(node)
    if isinstance(pattern, exp.Var | exp.Literal) and isinstance(node, exp.Var | exp.Literal):
        return unit_of(pattern) == unit_of(node)
    keys = pattern.args.keys() | node.args.keys()
    return type(pattern) is type(node) and all(
        matched(pattern.args.get(key), node.args.get(key), found) for key in keys
    )


def is_of(kind: Kind | None, hole: str) -> bool:
    """Whether the placeholder `_hole` in a row accepts values of a kind."""
    if hole == "value":
        return kind is None or kind.name != "other"
    if kind is None or hole == "unknown":
        return kind is None and hole == "unknown"
    return kind.name == "null" or kind.name in _GROUPS.get(hole, (hole,))


def is_of_literals(hole: str) -> bool:
    """Whether a placeholder accepts only literals, such as `_count` or `_pattern`."""
    return hole in _TEXTS or hole in _NUMBERS


def fits(node: object, hole: str) -> bool:
    """Whether a placeholder for literals, such as `_count` or `_pattern`, accepts a literal."""
    if not isinstance(node, exp.Literal):
        return False
    pattern = _TEXTS.get(hole) if node.is_string else _NUMBERS.get(hole)
    return pattern is not None and re.fullmatch(pattern, node.name) is not None


def filled_template(template: Expr, values: Mapping[str, Expr]) -> Expr:
    def fill(node: Expr) -> Expr:
        name = _hole(node)
        if name is None:
            return node
        # Java's `$` also matches before a final line break.
        value = values[name].copy()
        if name == "_regex" and value.name.endswith("$"):
            value = exp.Literal.string(f"{value.name[:-1]}\\z")
        return wrapped(value) if isinstance(node.parent, exp.Binary | exp.Unary) else value

    return template.copy().transform(fill)


def wrapped(node: Expr) -> Expr:
    is_open = isinstance(node, exp.Binary | exp.Connector | exp.Between | exp.In | exp.Not)
    return exp.paren(node, copy=False) if is_open else node


def unit_of(node: object) -> str:
    name = (node.name if isinstance(node, exp.Expression) else str(node)).strip("'\"").upper()
    return _UNITS.get(name, name)
