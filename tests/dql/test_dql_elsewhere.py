"""The hints for the words of SQL and other tools can be typed as they are."""

from __future__ import annotations

import pytest

from dqx_airflow.dql.check import check_source
from dqx_airflow.metrics import aliases
from dqx_airflow.metrics.builtin import CALLABLE
from dqx_airflow.metrics.calls import SHORTCUTS
from dqx_airflow.metrics.row_functions import QUANTIFIERS, ROW_FUNCTIONS
from dqx_airflow.values import SourceFile


def mistakes(assertion: str) -> list[str]:
    on = "orders, customers" if "dataset customers" in assertion else "orders"
    text = f'suite "S" {{ check "C" on {on} {{ assert {assertion} name "a" }} }}'
    return [found.message for found in check_source(SourceFile("s", text)).diagnostics]


@pytest.mark.parametrize("written", aliases.MEASURES)
def test_a_measure_can_be_typed(written: str) -> None:
    assert mistakes(f"{written.format('price')} > 0.5") == []


@pytest.mark.parametrize("written", aliases.ASSERTIONS)
def test_an_assertion_can_be_typed(written: str) -> None:
    assert mistakes(written.format("price")) == []


@pytest.mark.parametrize("written", aliases.FUNCTIONS)
def test_a_function_of_a_row_can_be_typed(written: str) -> None:
    expression = written.format("price")
    is_predicate = expression.startswith(("every", "some", "price"))
    assert (
        mistakes(f"each row: {expression if is_predicate else f'{expression} is not null'}") == []
    )


def test_foreign_names_are_unique_and_not_ours() -> None:
    for tables, ours in (
        ((aliases.MEASURES, aliases.ASSERTIONS), {*CALLABLE, *SHORTCUTS}),
        ((aliases.FUNCTIONS,), {*ROW_FUNCTIONS, *QUANTIFIERS}),
    ):
        names = [name for table in tables for text in table.values() for name in text.split()]
        keys = [name.replace("_", "") for name in names]
        assert len(keys) == len(set(keys))
        assert not set(names) & ours


@pytest.mark.parametrize(
    "name", ["row_count", "rowCount", "ROW_COUNT", "RowCount", "hasSize", "has_size"]
)
def test_a_name_is_found_in_any_spelling(name: str) -> None:
    assert aliases.measure_elsewhere(name) == "num_rows()"


def test_the_suggestion_keeps_the_column() -> None:
    assert aliases.measure_elsewhere("count_missing", "`my price`") == "null_count(`my price`)"
    assert aliases.function_elsewhere("isNull", "price") == "price is null"
