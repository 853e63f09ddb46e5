"""Deep nesting: each form that the grammar permits inside itself is read, or refused in place."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

import pytest

from dqx_airflow.contracts.enforcement.lint import lint
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.formatter import format_source
from dqx_airflow.dql.syntax.grammar import grammar
from dqx_airflow.dql.syntax.source_file import Unreadable, read_source
from dqx_airflow.errors import SourceError
from dqx_airflow.plan.resolve import QUIET, resolve
from dqx_airflow.values import DatasetRef, SourceFile

FORMS = {
    "any_of part": ("any { assert ", "num_rows() > 1", " assert num_rows() > 2 }"),
    "all_of": ("all { assert ", "num_rows() > 1", " assert num_rows() > 2 }"),
    "if_then clause _claim": ("if num_rows() > 0 then ", "num_rows() > 1", ""),
    "call _arguments argument": ("abs(", "num_rows()", ")"),
    "atom test": ("each row: (", "a > 1", ")"),
    "negation": ("each row: not ", "a > 1", ""),
    "predicate": ("each row: a > 1 or ", "a > 2", ""),
    "conjunction": ("each row: a > 1 and ", "a > 2", ""),
    "sum": ("num_rows() > 1 + ", "2", ""),
    "product": ("num_rows() > 1 * ", "2", ""),
    "factor": ("num_rows() > -", "2", ""),
    "where parameter": ("count(a, where ", "a > 1", ") > 1"),
    "listing": ("each row: a in [(", "1", ")]"),
    "loop _macro_item": ("for x in xs { ", 'assert num_rows() > 1 name "a"', " }"),
}
"""What opens a form, its core, and what closes it, by the rules of the grammar in it.
A head such as `each row:` stands once."""
HEADS = ("each row: ", "num_rows() > ")


def _suite(kind: str, depth: int) -> SourceFile:
    opened, core, closed = FORMS[kind]
    head = next((head for head in HEADS if opened.startswith(head)), "")
    inner = opened.removeprefix(head)
    start, end = ("a in [", "]") if kind == "listing" else ("", "")
    if kind == "listing":
        inner, closed = "(", ")"
    nested = f"{head}{start}{inner * depth}{core}{closed * depth}{end}"
    if kind == "call _arguments argument":
        nested += " > 1"
    text = f'suite "S" {{ check "C" on t {{ assert {nested} }} }}'
    if kind == "loop _macro_item":
        text = f'suite "S" {{ macro m(xs...) {{ {nested} }} check "C" on t {{ use m(1) }} }}'
    return SourceFile("s.dql", text)


def test_every_recursive_rule_of_the_grammar_has_a_form() -> None:
    inner: dict[str, set[str]] = {}
    for rule in grammar().rules:
        names = {part.name for part in rule.expansion if not part.is_term}
        inner.setdefault(rule.origin.name, set()).update(names)

    def reached(name: str) -> set[str]:
        seen: set[str] = set()
        waiting = [*inner[name]]
        while waiting:
            other = waiting.pop()
            if other not in seen:
                seen.add(other)
                waiting += inner.get(other, ())
        return seen

    # Those that lark makes of a repetition: they do not nest.
    recursive = {str(name) for name in inner if "_star_" not in name and "_plus_" not in name}
    recursive = {name for name in recursive if name in reached(name)}
    assert recursive == {name for kind in FORMS for name in kind.split()}


@pytest.mark.few(16, apart=True)
@pytest.mark.parametrize("depth", [50, 500, 20_000])
@pytest.mark.parametrize("kind", FORMS)
def test_a_nested_form_is_read_or_refused(kind: str, depth: int) -> None:
    source = _suite(kind, depth)
    checked = check_source(source)
    codes = {str(error.code) for error in checked.errors}
    if depth > 100:
        assert "E014" in codes
    try:
        format_source(source)
    except SourceError:
        assert codes
    if not checked.errors:
        ref = DatasetRef("t", table="t")
        resolve(checked.valid_suite, source, (ref,), date(2024, 1, 1), QUIET)


@pytest.mark.few(4, apart=True)
@pytest.mark.parametrize("depth", [50, 500, 3000])
@pytest.mark.parametrize(
    ("before", "after"),
    [("(", ")"), ("case when 1=1 then ", " end"), ("not ", ""), ("1 + ", ""), ("1=1 or ", "")],
)
def test_nested_sql_is_translated_or_refused(before: str, after: str, depth: int) -> None:
    sql = f"{before * depth}1{after * depth}"
    suite = f'suite "S" {{ check "C" on t {{ assert sql("max({sql})") > 1 }} }}'
    assert {error.code for error in check_source(SourceFile("s.dql", suite)).errors} <= {"E115"}
    contract = (
        "dataContractSpecification: 1.2.1\nid: o\ninfo: {title: o, version: 1.0.0}\n"
        "models: {o: {fields: {id: {type: long}},"
        f" quality: [{{type: sql, query: 'select {sql}', mustBe: 1}}]}}}}\n"
    )
    found = read_contract(SourceFile("c.yaml", contract))
    assert found.contract is not None
    lint(found.contract)


def test_a_pipe_and_a_device_are_no_sources(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    for name in ("pipe", "endless"):
        refused = read_source(tmp_path / name, name)
        assert isinstance(refused, Unreadable)
        assert refused.reason == "cannot read this file: not a regular file"
