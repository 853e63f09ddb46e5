"""The syntax of DQDL: the contents of a rule, from its tree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from lark import Lark, Token, Tree

from dqx_airflow.exact import finite_number
from dqx_airflow.migration.dql_text import column_text, number
from dqx_airflow.migration.foreign_rule import UntranslatableError

_OPS = {"=": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


@cache
def parser() -> Lark:
    """The parser of files: a tree of sections with entries."""
    grammar = files("dqx_airflow.migration").joinpath("dqdl.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="earley", propagate_positions=True, maybe_placeholders=False)


@dataclass(frozen=True, slots=True)
class DqdlCondition:
    """A condition: `op` is a comparison, `between`, `in` or `matches`."""

    op: str
    operands: tuple[Any, ...]
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class DqdlKeyword:
    """NULL, EMPTY or WHITESPACES_ONLY."""

    text: str


@dataclass(frozen=True, slots=True)
class Duration:
    """`24 hours`, as DQL writes it."""

    text: str


@dataclass(frozen=True, slots=True)
class Timestamp:
    """`now()`, or a time before or after it, as Spark SQL."""

    sql: str


@dataclass(frozen=True, slots=True)
class DqdlRule:
    """A rule by its parts."""

    name: str
    dataset: str
    parameters: tuple[str, ...]
    condition: DqdlCondition | None
    threshold: DqdlCondition | None

    @property
    def column(self) -> str:
        """:raises UntranslatableError: the rule is not about a single column."""
        if len(self.parameters) != 1:
            raise UntranslatableError(f"{self.name} takes one column")
        return column_text(self.parameters[0])


def rule_of(tree: Tree[Token], dataset: str) -> tuple[DqdlRule, str | None]:
    """The rule in an entry, and the filter after it, if there is one.

    :raises UntranslatableError: an operand has no counterpart.
    """
    name, parameters = "", []
    condition = threshold = where = None
    for child in tree.children:
        match child:
            case Token(type="NAME"):
                name = str(child)
            case Token(type="BARE"):
                parameters.append(str(child))
            case Token(type="STRING"):
                parameters.append(_string(child))
            case Tree(data="threshold"):
                threshold = _condition(child.children[0])
            case Tree(data="filter"):
                where = _string(child.children[0])
            case Tree(data="labels"):
                pass
            case _:
                condition = _condition(child)
    return DqdlRule(name, column_text(dataset), tuple(parameters), condition, threshold), where


def _string(token: object) -> str:
    return str(token)[1:-1].replace('\\"', '"').replace("\\\\", "\\")


def _condition(tree: Any) -> DqdlCondition:
    children = list(tree.children)
    is_negated = bool(children) and isinstance(children[0], Token) and children[0].type == "NOT"
    rest = children[is_negated:]
    if tree.data == "comparison":
        op, operand = rest
        return DqdlCondition(_OPS[str(op)], (_operand(operand),), is_negated)
    if tree.data == "matching":
        return DqdlCondition("matches", (_string(rest[0]),), is_negated)
    op = {"between": "between", "listed": "in"}[tree.data]
    return DqdlCondition(op, tuple(_operand(operand) for operand in rest), is_negated)


def _operand(tree: Any) -> Any:
    match tree.data:
        case "number":
            return number(finite_number(str(tree.children[0])))
        case "string":
            return _string(tree.children[0])
        case "keyword":
            return DqdlKeyword(str(tree.children[0]).upper())
        case "duration":
            count, unit = map(str, tree.children)
            return Duration(f"{count} {unit}")
        case "grouped_operand":
            return _operand(tree.children[0])
        case "call" if str(tree.children[0]) == "now":
            return Timestamp("current_timestamp()")
        case "computed":
            left, sign, right = tree.children
            start, length = _operand(left), _operand(right)
            if isinstance(start, Timestamp) and isinstance(length, Duration) and sign in "+-":
                count, unit = length.text.split()
                step = f"{unit.upper().removesuffix('S')}, {sign}{count}"
                return Timestamp(f"timestampadd({step}, {start.sql})")
    raise UntranslatableError(
        "a computed operand has no counterpart: write its value, or `within 3 stddev of 30 days`"
    )
