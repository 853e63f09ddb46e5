"""The names that the package exports, for users, editors and type checkers."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from types import ModuleType

import pytest

import dqx_airflow
import dqx_airflow.dql
from dqx_airflow import MetricProvider
from dqx_airflow.metrics.builtin import CALLABLE
from dqx_airflow.metrics.calls import AGES, ARITY, CHANGES, MOST_COMMON, SHORTCUTS, WINDOWS
from dqx_airflow.metrics.drift import DRIFT


@pytest.mark.parametrize("module", [dqx_airflow, dqx_airflow.dql], ids=["package", "dql"])
def test_public_names_are_those_that_type_checkers_see(module: ModuleType) -> None:
    tree = ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8"))
    seen = {
        alias.name
        for block in tree.body
        if isinstance(block, ast.If)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    assert seen == set(module.__all__) - {"__version__"}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Suites'"):
        _ = dqx_airflow.dql.Suites


def test_editors_see_every_call_of_the_language_with_its_arguments() -> None:
    names = {*CALLABLE, *CHANGES, *WINDOWS, *AGES, *DRIFT, *ARITY, *SHORTCUTS, MOST_COMMON}
    assert names <= set(dir(MetricProvider()))
    assert _signature("average") == "(column, /, *, lag=None, dataset=None, where=None)"
    assert (
        _signature("first") == "(column, /, *, order_by=None, lag=None, dataset=None, where=None)"
    )
    assert (
        _signature("correlation")
        == "(column_1, column_2, /, *, lag=None, dataset=None, where=None)"
    )
    assert _signature("stddev") == "(metric, /, *, n, lag=None)"
    assert _signature("psi") == (
        "(column, /, *, lag=None, usual_n=None, step=None, dataset=None, where=None)"
    )
    assert _signature("coalesce") == "(*metric)"
    assert _signature("query") == "(select, /)"
    assert inspect.getdoc(MetricProvider().average) == (
        "The mean of the column, NULL ignored; exact for whole numbers and decimals. For "
        "booleans, the share of true values.\n\n"
        "Unit: the unit of the column. In DQL: `assert average(price) > 0`"
    )


def _signature(name: str) -> str:
    signature = inspect.signature(getattr(MetricProvider(), name))
    return str(signature.replace(return_annotation=inspect.Signature.empty))
