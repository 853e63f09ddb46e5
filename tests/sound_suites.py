"""Suites without errors, as their syntax trees."""

from __future__ import annotations

from dqx_airflow.diagnostics import draw
from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.import_readers import Reader, no_imports
from dqx_airflow.dql.nodes import Suite
from dqx_airflow.values import SourceFile


def sound_suite(source: SourceFile | str, read: Reader = no_imports) -> Suite:
    """The suite of a file or of a text, in which nothing is wrong."""
    file = SourceFile("suite.dql", source) if isinstance(source, str) else source
    checked = check_source(file, read, needs_suite=True)
    assert not checked.errors, draw(checked.errors, checked.sources)
    return checked.valid_suite
