"""Deequ and PyDeequ: suggested constraints as JSON, and chains of `Check` in a Python file.

`.isComplete("id").hasMin("price", lambda x: x >= 0)` is read, never run; the Scala that Deequ
suggests (`_ >= 0.9`, `Array("a")`) is read as the same in Python. What a constraint makes of NULL
is taken from Deequ: it passes `isContainedIn` and `isNonNegative`, and fails a pattern or
`satisfies`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dqx_airflow.contracts.demands import Required, Unique
from dqx_airflow.contracts.dialects.foreign import Translation
from dqx_airflow.migration.dql_text import (
    column_text,
    columns_text,
    list_text,
    number,
    percent_text,
    rows_text,
    value_text,
)
from dqx_airflow.migration.foreign_rule import Claims, ForeignRule, UntranslatableError
from dqx_airflow.migration.request import Request
from dqx_airflow.values import Severity

_SCALA = (
    (re.compile(r"\bArray\("), "list_of("),
    (re.compile(r"\bSeq\("), "list_of("),
    (re.compile(r"\bSome\("), "some("),
    (re.compile(r"(?<![\w\"])_ (?=[<>=!])"), "lambda x: x "),
)
_OPS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_TYPES = {"Integral": "bigint", "Fractional": "double", "Boolean": "boolean"}

Assertion = Sequence[tuple[str, float]]
"""What a metric is compared with: `((">=", 0.8),)`."""


def recognises(document: Any) -> bool:
    return isinstance(document, Mapping) and isinstance(
        document.get("constraint_suggestions"), list
    )


def recognises_python(text: str) -> bool:
    return "Check(" in text and ("pydeequ" in text or "addCheck" in text)


def rules_of(document: Mapping[str, Any], request: Request) -> Iterator[ForeignRule]:
    """The suggested constraints, each a rule."""
    dataset = request.dataset or "data"
    for index, suggestion in enumerate(document["constraint_suggestions"]):
        place = f"{request.file}: constraint_suggestions[{index}]"
        code = str(suggestion.get("code_for_constraint") or "")
        yield from _of_chain("check" + code, code, dataset, place, None)


def rules_of_python(text: str, request: Request) -> Iterator[ForeignRule]:
    """The constraints of all checks of a Python file.

    :raises UntranslatableError: it is no Python.
    """
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise UntranslatableError(f"line {error.lineno}: not Python") from None
    dataset = request.dataset or "data"
    inner = {
        id(node.func.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and id(node) not in inner:
            links, start = _links(node)
            if links and isinstance(start, ast.Call) and _name(start.func) == "Check":
                is_warning = any("Warning" in ast.unparse(one) for one in start.args)
                severity = Severity.P3 if is_warning else None
                yield from _of_links(links, dataset, request.file, severity)


def _of_chain(
    code: str, shown: str, dataset: str, place: str, severity: Severity | None
) -> Iterator[ForeignRule]:
    for pattern, python in _SCALA:
        code = pattern.sub(python, code)
    try:
        links, _ = _links(ast.parse(code, mode="eval").body)
    except SyntaxError:
        links = []
    if not links:
        yield ForeignRule(dataset, place, shown, "this is not a constraint")
        return
    for rule in _of_links(links, dataset, place, severity):
        yield replace(rule, shown=shown) if len(links) == 1 else rule


def _links(node: ast.expr) -> tuple[list[ast.Call], ast.expr]:
    """The calls of a chain from the first one on, and what it starts from."""
    links: list[ast.Call] = []
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        links.append(node)
        node = node.func.value
    return links[::-1], node


def _of_links(
    links: Sequence[ast.Call], dataset: str, place: str, severity: Severity | None
) -> Iterator[ForeignRule]:
    for index, link in enumerate(links):
        name = _name(link.func)
        if name == "where":
            continue
        following = links[index + 1] if index + 1 < len(links) else None
        where = None
        if following is not None and _name(following.func) == "where":
            where = str(_value(following.args[0]))
        arguments = ", ".join(ast.unparse(one) for one in link.args)
        shown = f"{name}({arguments})"
        at = place if ":" in place else f"{place}: line {link.lineno}"
        try:
            if name not in _CONSTRAINTS:
                raise UntranslatableError(f"{name} has no counterpart")
            given = [_value(one) for one in link.args]
            given += [_value(one.value) for one in link.keywords if one.arg == "assertion"]
            meaning: Claims | Translation | str = _CONSTRAINTS[name](given)
        except UntranslatableError as error:
            meaning = str(error)
        except (IndexError, TypeError):
            meaning = f"{name} has other arguments"
        yield ForeignRule(dataset, at, shown, meaning, severity=severity, where=where)


def _name(node: ast.expr) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


class _Condition(tuple[tuple[str, float], ...]):
    """An assertion on a metric: all of these comparisons hold."""

    __slots__ = ()


def _value(node: ast.expr) -> Any:
    """A literal, a list, or a condition.

    :raises UntranslatableError: it is something else, which would have to be run.
    """
    match node:
        case ast.Constant(value=value):
            return value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_value(one) for one in items]
        case ast.Call(func=ast.Name(id="list_of"), args=items):
            return [_value(one) for one in items]
        case ast.Call(func=ast.Name(id="some"), args=[one]):
            return _value(one)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -number(_value(operand))
        case ast.Attribute(value=ast.Constant(value=value), attr="r"):
            return value
        case ast.Attribute(attr=name):
            return name
        case ast.Lambda(body=body):
            return _Condition(_comparisons(body))
    raise UntranslatableError(f"`{ast.unparse(node)}` would have to be run")


def _comparisons(body: ast.expr) -> Iterator[tuple[str, float]]:
    match body:
        case ast.BoolOp(op=ast.And(), values=values):
            for one in values:
                yield from _comparisons(one)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            sides = [left, *comparators]
            for before, op, after in zip(sides, ops, sides[1:], strict=False):
                sign = _OPS.get(type(op))
                if sign is None:
                    raise UntranslatableError(f"`{ast.unparse(body)}` has no counterpart")
                if isinstance(before, ast.Name):
                    yield sign, number(_value(after))
                else:
                    yield _FLIPPED[sign], number(_value(before))
        case _:
            raise UntranslatableError(f"`{ast.unparse(body)}` has no counterpart")


# Constraints -------------------------------------------------------------------------------------


_Meaning = Claims | Translation
_ALL = _Condition((("==", 1.0),))


def _compared(subject: str, condition: Any, *, is_share: bool = False) -> tuple[str, ...]:
    if not isinstance(condition, _Condition):
        raise UntranslatableError("its assertion would have to be run")
    return tuple(
        f"{subject} {op} {percent_text(bound) if is_share else value_text(bound)}"
        for op, bound in condition
    )


def _metric(text: str, *, is_share: bool = False) -> Callable[[list[Any]], _Meaning]:
    """A constraint on a metric of a column; the braces stand for it."""

    def meaning(given: list[Any]) -> _Meaning:
        column = column_text(given[0])
        kind = text.partition("(")[0]
        return Claims(kind, _compared(text.format(column), given[1], is_share=is_share), column)

    return meaning


def _rows(kind: str, predicate: str) -> Callable[[list[Any]], _Meaning]:
    """A constraint on each value, of all rows or of a share of them."""

    def meaning(given: list[Any]) -> _Meaning:
        column = column_text(given[0])
        share = _share(given[1:])
        return Claims(kind, (rows_text(predicate.format(column), share),), column)

    return meaning


def _share(rest: list[Any]) -> float:
    """The share of rows that an assertion asks for."""
    condition = next((one for one in rest if isinstance(one, _Condition)), _ALL)
    match tuple(condition):
        case ((("==" | ">=") as op, share),) if op == ">=" or share == 1:
            return share
    raise UntranslatableError("its assertion is not a least share of the rows")


def _size(given: list[Any]) -> _Meaning:
    return Claims("size", _compared("num_rows()", given[0]))


def _complete(given: list[Any]) -> _Meaning:
    return Translation("is_complete", (Required(),), column_text(given[0]))


def _unique(given: list[Any]) -> _Meaning:
    column = column_text(given[0])
    return Translation("is_unique", (Unique((column,)),), column)


def _primary_key(given: list[Any]) -> _Meaning:
    columns = [one for one in given if isinstance(one, str)]
    return Claims("is_primary_key", (f"duplicate_count([{columns_text(columns)}]) == 0",))


def _ratio(metric: str) -> Callable[[list[Any]], _Meaning]:
    """A constraint on a ratio of one or several columns."""

    def meaning(given: list[Any]) -> _Meaning:
        columns = given[0] if isinstance(given[0], list) else [given[0]]
        listed = columns_text(columns)
        subject = f"{metric}({listed if len(columns) == 1 else f'[{listed}]'})"
        column = column_text(columns[0]) if len(columns) == 1 else None
        return Claims(metric, _compared(subject, given[1], is_share=True), column)

    return meaning


def _contained(given: list[Any]) -> _Meaning:
    column = column_text(given[0])
    if isinstance(given[1], list):
        share = _share(given[2:])
        return Claims("values", (rows_text(f"{column} in {list_text(given[1])}", share),), column)
    low, high = number(given[1]), number(given[2])
    predicate = f"{column} between {value_text(low)} and {value_text(high)}"
    return Claims("range", (rows_text(predicate),), column)


def _pair(op: str) -> Callable[[list[Any]], _Meaning]:
    def meaning(given: list[Any]) -> _Meaning:
        one, other = column_text(given[0]), column_text(given[1])
        predicate = f"{one} is not null and {other} is not null and {one} {op} {other}"
        return Claims("pair", (rows_text(predicate, _share(given[2:])),), one)

    return meaning


def _satisfies(given: list[Any]) -> _Meaning:
    share = _share(given[1:])
    name = given[1] if len(given) > 1 and isinstance(given[1], str) else "satisfies"
    if share != 1:
        subject = f"sql({value_text(f'count_if({given[0]}) / count(*)')})"
        return Claims(name, (f"{subject} >= {percent_text(share)}",))
    failing = value_text(f"count_if(NOT coalesce({given[0]}, false))")
    return Claims(name, (f"sql({failing}) == 0",))


def _pattern(given: list[Any]) -> _Meaning:
    column = column_text(given[0])
    predicate = f"{column} is not null and {column} matches {value_text(given[1])}"
    return Claims("pattern", (rows_text(predicate, _share(given[2:])),), column)


def _format(name: str) -> Callable[[list[Any]], _Meaning]:
    return _rows(name, f"{{0}} is not null and {{0}} is {name}")


def _data_type(given: list[Any]) -> _Meaning:
    column, kind = column_text(given[0]), str(given[1])
    if kind not in _TYPES:
        raise UntranslatableError(f"the data type '{kind}' has no counterpart")
    bare = column.strip("`")
    fits = f"count_if(TRY_CAST(`{bare}` AS {_TYPES[kind]}) IS NOT NULL) / count(`{bare}`)"
    subject = f"sql({value_text(fits)})"
    share = percent_text(_share(given[2:]))
    return Claims("data_type", (f"{subject} >= {share}",), column)


def _correlation(given: list[Any]) -> _Meaning:
    columns = columns_text(given[:2])
    return Claims("correlation", _compared(f"correlation({columns})", given[2]))


_CONSTRAINTS: dict[str, Callable[[list[Any]], _Meaning]] = {
    "hasSize": _size,
    "isComplete": _complete,
    "hasCompleteness": _metric("count({0}) / num_rows()", is_share=True),
    "isUnique": _unique,
    "isPrimaryKey": _primary_key,
    "hasUniqueness": _ratio("uniqueness"),
    "hasDistinctness": _ratio("distinctness"),
    "hasUniqueValueRatio": _ratio("unique_value_ratio"),
    "hasEntropy": _metric("entropy({})"),
    "hasMin": _metric("minimum({})"),
    "hasMax": _metric("maximum({})"),
    "hasMean": _metric("average({})"),
    "hasSum": _metric("sum({})"),
    "hasStandardDeviation": _metric('sql("stddev_pop({})")'),
    "hasMinLength": _metric("min_length({})"),
    "hasMaxLength": _metric("max_length({})"),
    "hasApproxCountDistinct": _metric("unique_count({})"),
    "hasNumberOfDistinctValues": _metric("unique_count({})"),
    "hasCorrelation": _correlation,
    "hasPattern": _pattern,
    "hasDataType": _data_type,
    "isNonNegative": _rows("non_negative", "{} >= 0"),
    "isPositive": _rows("positive", "{} > 0"),
    "isContainedIn": _contained,
    "isLessThan": _pair("<"),
    "isLessThanOrEqualTo": _pair("<="),
    "isGreaterThan": _pair(">"),
    "isGreaterThanOrEqualTo": _pair(">="),
    "satisfies": _satisfies,
    "containsEmail": _format("email"),
    "containsURL": _format("url"),
}
"""The constraints of `Check` by their names in Scala, which PyDeequ shares."""
