"""Contracts as YAML: how a source is read, and the errors in invalid ones."""

from __future__ import annotations

import json

import pytest
from contract_parts import CASES, EXAMPLES, read_text
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_cases import Case, cases

from dqx_airflow.contracts.source.yaml_document import (
    DEEPEST,
    MOST_NODES,
    Document,
    find,
    plain,
    read_document,
)
from dqx_airflow.diagnostics import draw
from dqx_airflow.values import SourceFile

ORDERS = (EXAMPLES / "orders_latest.yaml").read_text("utf-8")


def document(text: str) -> Document:
    return read_document(SourceFile("contract.yaml", text))


def drawn(text: str) -> str:
    found = document(text)
    return draw(found.diagnostics, {"contract.yaml": text})


@pytest.mark.parametrize("case", list(cases(CASES / "documents.md")), ids=str)
def test_a_text_means_this_or_is_refused_so(case: Case) -> None:
    text = case.block("yaml").text
    found = document(text)
    meaning = plain(found.root)
    entries = meaning.items() if isinstance(meaning, dict) else [("the document", meaning)]
    shown = "\n".join(f"{key}: {json.dumps(value)}" for key, value in entries)
    case.expect(drawn(text) or shown)


def test_a_tab_is_named_in_the_message() -> None:
    assert "tab in the indentation" in drawn("a:\n\tb: 1")


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing", "---", "null"])
def test_an_empty_file_is_not_a_contract(text: str) -> None:
    assert read_text(text).errors


@pytest.mark.parametrize("text", ["\x00\x01\x02", "\x7fELF\x02\x01", "PK\x03\x04", "\ufffe", "%"])
def test_binary_content_is_refused_with_its_location(text: str) -> None:
    (found,) = document(text).diagnostics
    assert (found.code, found.span.line) == ("E401", 1)


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_deep_nesting_is_refused_before_it_fills_the_stack(opening: str) -> None:
    (found,) = document(opening * 5_000).diagnostics
    assert found.code == "E409"
    assert str(DEEPEST) in (found.help or "")


def test_nesting_up_to_the_limit_is_accepted() -> None:
    text = "[" * DEEPEST + "]" * DEEPEST
    assert document(text).diagnostics == ()


def test_exploding_aliases_are_refused_before_expansion() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    (found,) = document("\n".join(lines)).diagnostics
    assert (found.code, found.span.line) == ("E409", 6)


def test_a_document_of_too_many_nodes_is_refused() -> None:
    found = read_text(f"{ORDERS}x: [{'1, ' * MOST_NODES}]\n")
    assert [(error.code, error.help) for error in found.errors] == [
        ("E409", "split it into several contracts")
    ]


def test_a_number_of_thousands_of_digits_stays_a_string() -> None:
    assert plain(document("9" * 5_000).root) == "9" * 5_000


def test_every_node_has_its_span() -> None:
    root = document("models:\n  orders:\n    tags: [a, 'b c']\n").root
    assert root is not None
    node = find(root, ("models", "orders", "tags", 1))
    assert node is not None
    assert (node.span.line, node.span.column, node.span.end_column) == (3, 15, 20)


@given(st.text())
@settings(max_examples=200, deadline=None)
def test_any_input_is_a_document_or_has_an_error(text: str) -> None:
    found = read_text(text)
    assert found.contract is not None or found.errors


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_contract_that_was_cut_and_mixed_is_read_or_refused(data: st.DataObject) -> None:
    lines = ORDERS.splitlines()
    start = data.draw(st.integers(0, len(lines)))
    length = data.draw(st.integers(0, 12))
    target = data.draw(st.integers(0, len(lines)))
    cut, rest = lines[start : start + length], lines[:start] + lines[start + length :]
    found = read_text("\n".join((*rest[:target], *cut, *rest[target:])))
    assert found.contract is not None or found.errors
