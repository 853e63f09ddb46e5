"""The packaged parse tables are used if they match the grammar, and only then."""

from __future__ import annotations

from importlib.resources import files

import lark
import pytest

from dqx_airflow.dql.syntax.grammar import open_tables, parser_of, seal_tables

GRAMMAR = files("dqx_airflow.dql.syntax").joinpath("grammar.lark").read_text(encoding="utf-8")
SUITE = 'suite "S" { check "C" on a { assert null_count(b) / num_rows() > 5% name "n" } }'


@pytest.fixture(scope="module")
def sealed() -> bytes:
    return seal_tables(GRAMMAR)


def test_sealed_tables_parse_like_the_grammar(sealed: bytes) -> None:
    parser = open_tables(sealed, GRAMMAR)
    assert parser is not None
    assert parser.parse(SUITE) == parser_of(GRAMMAR).parse(SUITE)


def test_tables_of_another_grammar_do_not_count(sealed: bytes) -> None:
    assert open_tables(sealed, GRAMMAR + "\n// a comment") is None


def test_tables_of_another_lark_do_not_count(
    sealed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lark, "__version__", "0.0.1")
    assert open_tables(sealed, GRAMMAR) is None


@pytest.mark.parametrize("damaged", [b"", b"x" * 10])
def test_damaged_tables_do_not_count(damaged: bytes) -> None:
    assert open_tables(damaged, GRAMMAR) is None


def test_tables_that_are_cut_off_do_not_count(sealed: bytes) -> None:
    assert open_tables(sealed[:-1], GRAMMAR) is None
