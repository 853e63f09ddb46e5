"""An assertion that fails shows the values that are wrong."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
_ALL_OR_ANY = re.compile(r"\b(?:all|any)\(")


def silent_assertions(source: str) -> Iterator[str]:
    """The assertions without a message that fail with `all(<generator object ...>)`."""
    if "assert" not in source or not _ALL_OR_ANY.search(source):
        return  # to parse all files takes seconds
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assert) and node.msg is None and hides_its_values(node.test):
            yield f"{node.lineno}: {ast.unparse(node)}"


def hides_its_values(condition: ast.expr) -> bool:
    """Whether a condition, or one of its operands, is `all` or `any` of values made on the way."""
    match condition:
        case ast.BoolOp(values=operands):
            return any(hides_its_values(operand) for operand in operands)
        case ast.UnaryOp(operand=operand):
            return hides_its_values(operand)
        case ast.Call(func=ast.Name(id="all" | "any"), args=[ast.GeneratorExp()]):
            return True
        case ast.Call(func=ast.Name(id="all" | "any"), args=[ast.Call(func=ast.Name(id="map"))]):
            return True
    return False


def test_no_assertion_hides_the_values_that_are_wrong() -> None:
    """`assert [x for x in found if not ok(x)] == []` shows them, and so does a message."""
    silent = [
        f"{file.relative_to(TESTS.parent)}:{assertion}"
        for file in sorted(TESTS.rglob("*.py"))
        for assertion in silent_assertions(file.read_text(encoding="utf-8"))
    ]
    assert silent == []


@pytest.mark.parametrize(
    ("assertion", "is_silent"),
    [
        ("assert all(x > 0 for x in found)", True),
        ("assert found and not any(x > 0 for x in found)", True),
        ("assert all(map(is_sound, found))", True),
        ("assert all(x > 0 for x in found), found", False),
        ("assert [x for x in found if x <= 0] == []", False),
        ("assert [x for x in found if any(y > x for y in found)] == []", False),
        ("assert all(found.values())", False),  # pytest shows the values of a mapping
    ],
)
def test_an_assertion_is_silent_if_it_shows_a_generator(assertion: str, is_silent: bool) -> None:
    assert bool(list(silent_assertions(assertion))) is is_silent
