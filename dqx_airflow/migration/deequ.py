"""Deequ and PyDeequ: suggested constraints as JSON, and chains of `Check` in Python and Scala.

`.isComplete("id").hasMin("price", lambda x: x >= 0)` is parsed, never run; Scala (`_ >= 0.9`,
`Array("a")`) is read as its Python equivalent.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dqx_airflow.migration.deequ_constraints import CONSTRAINTS, DeequCondition, difference_of
from dqx_airflow.migration.dql_text import number
from dqx_airflow.migration.foreign_rule import ForeignRule, Meaning, UntranslatableError
from dqx_airflow.migration.request import ImportRequest
from dqx_airflow.values import Severity

_SCALA = (
    (re.compile(r"\b(Array|Seq|List|Set)\("), "list_of("),
    (re.compile(r"\bSome\("), "some("),
    (re.compile(r"(?<![\w\"])_ ?(?=[<>=!])"), "lambda x: x "),
    (re.compile(r"\(?\b(\w+)(?:\s*:\s*\w+\))?\s*=>"), r"lambda \1:"),
    (re.compile(r"&&"), " and "),
    (re.compile(r"\|\|"), " or "),
    (re.compile(r"\b(\d+(?:\.\d+)?)[dDfFL]\b"), r"\1"),
    (re.compile(r"\btrue\b"), "True"),
    (re.compile(r"\bfalse\b"), "False"),
)
"""The differences between Scala and Python syntax, outside of strings."""
_STRINGS = re.compile(r'("""(?:.|\n)*?"""|"(?:\\.|[^"\\\n])*")(\.r\b)?')
_COMMENTS = re.compile(_STRINGS.pattern + r"|//[^\n]*|/\*(?:.|\n)*?\*/")
_OPS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_ENDS = ("includeLowerBound", "includeUpperBound")


def recognises(document: Any) -> bool:
    return isinstance(document, Mapping) and isinstance(
        document.get("constraint_suggestions"), list
    )


def recognises_code(text: str) -> bool:
    return "Check(" in text and any(word in text for word in ("deequ", "addCheck", "CheckLevel"))


def rules_of(document: Mapping[str, Any], request: ImportRequest) -> Iterator[ForeignRule]:
    """The suggested constraints, each as a rule."""
    dataset = request.dataset or "data"
    for index, suggestion in enumerate(document["constraint_suggestions"]):
        place = f"{request.file}: constraint_suggestions[{index}]"
        code = str(suggestion.get("code_for_constraint") or "")
        yield from _of_chain("check" + code, code, dataset, place, None)


def rules_of_code(text: str, request: ImportRequest) -> Iterator[ForeignRule]:
    """The constraints of all checks in a file of Python or Scala.

    :raises UntranslatableError: it is neither, or has no chain of constraints on a `Check`.
    """
    dataset = request.dataset or "data"
    try:
        rules = list(_of_python(ast.parse(text), dataset, request.file))
    except SyntaxError as error:
        if _SCALA_CHECK.search(text) is None and not request.file.endswith((".scala", ".sc")):
            raise UntranslatableError(f"line {error.lineno}: invalid Python") from None
        rules = list(_of_scala(text, dataset, request.file))
    if not rules:
        raise UntranslatableError("it contains no chain of constraints on a Check(...)")
    yield from rules


def _of_python(tree: ast.Module, dataset: str, file: str) -> Iterator[ForeignRule]:
    inner = {
        id(node.func.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    checks: dict[str, ast.Call] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            _, start = _links(node.value)
            if isinstance(start, ast.Call) and _name(start.func) == "Check":
                checks[node.targets[0].id] = start
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and id(node) not in inner:
            links, start = _links(node)
            call = checks.get(start.id) if isinstance(start, ast.Name) else start
            if links and isinstance(call, ast.Call) and _name(call.func) == "Check":
                is_warning = any("Warning" in ast.unparse(argument) for argument in call.args)
                severity = Severity.P3 if is_warning else None
                yield from _of_links(links, dataset, file, severity)


_SCALA_CHECK = re.compile(r"\bCheck\(\s*(?:level\s*=\s*)?CheckLevel\s*\.\s*(?P<level>\w+)")
_LINK = re.compile(r"\s*\.\s*\w+\s*(?=\()")


def _of_scala(text: str, dataset: str, file: str) -> Iterator[ForeignRule]:
    """The chains that start from `Check(CheckLevel.Error, ...)`."""
    text = _COMMENTS.sub(_without_comment, text)
    for match in _SCALA_CHECK.finditer(text):
        end = start = _end_of_call(text, text.index("(", match.start()))
        while (link := _LINK.match(text, end)) is not None:
            end = _end_of_call(text, link.end())
        if end > start:
            place = f"{file}: line {text.count(chr(10), 0, match.start()) + 1}"
            severity = Severity.P3 if match["level"] == "Warning" else None
            code = text[start:end]
            yield from _of_chain(f"check{code}", " ".join(code.split()), dataset, place, severity)


def _without_comment(match: re.Match[str]) -> str:
    """A string as it is; of a comment the ends of its lines."""
    return match[0] if match[0].startswith('"') else "\n" * match[0].count("\n") or " "


def _end_of_call(text: str, opening: int) -> int:
    """The position after the parenthesis that closes the one at `opening`; the end if there is
    none."""
    depth, offset = 0, opening
    while offset < len(text):
        if (string := _STRINGS.match(text, offset)) is not None:
            offset = string.end()
            continue
        depth += {"(": 1, ")": -1}.get(text[offset], 0)
        offset += 1
        if depth == 0:
            return offset
    return len(text)


def _as_python(code: str) -> str:
    """A chain of Scala in the syntax of Python; strings stay as they are."""
    written = []
    for index, part in enumerate(_STRINGS.split(code)):
        if index % 3 == 2:  # `.r` after a string makes it a pattern, and no other string
            continue
        if index % 3 == 1:
            written.append(f"r{part}" if part.startswith('"""') else part)
            continue
        plain = part
        for pattern, python in _SCALA:
            plain = pattern.sub(python, plain)
        written.append(" ".join(plain.split("\n")))
    return "".join(written)


def _of_chain(
    code: str, shown: str, dataset: str, place: str, severity: Severity | None
) -> Iterator[ForeignRule]:
    try:
        links, _ = _links(ast.parse(_as_python(code), mode="eval").body)
    except SyntaxError:
        links = []
    if not links:
        yield ForeignRule(dataset, place, shown, "this is not a constraint")
        return
    for rule in _of_links(links, dataset, place, severity):
        yield replace(rule, shown=shown) if len(links) == 1 else rule


def _links(node: ast.expr) -> tuple[list[ast.Call], ast.expr]:
    """The calls of a chain from the first one on, and its start."""
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
        arguments = ", ".join(ast.unparse(argument) for argument in link.args)
        shown = f"{name}({arguments})"
        at = place if ":" in place else f"{place}: line {link.lineno}"
        try:
            if following is not None and _name(following.func) == "where":
                where = str(_value(following.args[0]))
            if name not in CONSTRAINTS:
                raise UntranslatableError(f"{name} has no counterpart")
            given = [_value(argument) for argument in link.args]
            ends = {keyword.arg: keyword.value for keyword in link.keywords if keyword.arg in _ENDS}
            given += [_value(ends[end]) if end in ends else True for end in _ENDS if ends]
            given += [
                _value(keyword.value)
                for keyword in link.keywords
                if keyword.arg not in ("hint", "analyzerOptions", *_ENDS)
                and keyword.arg is not None
            ]
            meaning: Meaning = CONSTRAINTS[name](given)
        except UntranslatableError as error:
            meaning = str(error)
        except (IndexError, TypeError):
            meaning = f"{name} has unsupported arguments"
        difference = difference_of(name, is_filtered=where is not None)
        yield ForeignRule(
            dataset, at, shown, meaning, severity=severity, where=where, difference=difference
        )


def _name(node: ast.expr) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _value(node: ast.expr) -> Any:
    """A literal, a list, or a condition.

    :raises UntranslatableError: it is something else, which cannot be evaluated without running it.
    """
    match node:
        case ast.Constant(value=value):
            return value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_value(item) for item in items]
        case ast.Call(func=ast.Name(id="list_of"), args=items):
            return [_value(item) for item in items]
        case ast.Call(func=ast.Name(id="some"), args=[option]):
            return _value(option)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -number(_value(operand))
        case ast.BinOp(op=ast.Div(), left=left, right=right) if number(_value(right)):
            # Scala divides whole numbers without a rest.
            above, below = number(_value(left)), number(_value(right))
            if isinstance(above, int) and isinstance(below, int):
                raise UntranslatableError(f"`{ast.unparse(node)}` is another number in Scala")
            return above / below
        case ast.Attribute(value=ast.Constant(value=value), attr="r"):
            return value
        case ast.Attribute(attr=name):
            return name
        case ast.Lambda(body=body):
            return DeequCondition(_comparisons(body))
    raise UntranslatableError(f"`{ast.unparse(node)}` cannot be evaluated without running it")


def _comparisons(body: ast.expr) -> Iterator[tuple[str, float]]:
    match body:
        case ast.BoolOp(op=ast.And(), values=values):
            for value in values:
                yield from _comparisons(value)
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
