"""The metrics reference matches the table of metrics, and its examples are accepted.

With DQX_REWRITE_GOLDEN=1 the page is written anew.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import fill

import pytest
from metrics_page import metrics_page

import dqx_airflow
from dqx_airflow.diagnostics import draw
from dqx_airflow.dql.check import check_source
from dqx_airflow.metrics.builtin import CALLABLE, METRICS
from dqx_airflow.values import SourceFile
from tests.markdown_cases import REWRITE

PAGE = Path(dqx_airflow.__file__).parent / "docs" / "metrics.md"
_LIST_BEGINS, _LIST_ENDS = "- **Metrics** ([reference](metrics.md)):", "with `lag` and `dataset`"


def test_the_reference_page_is_up_to_date() -> None:
    if REWRITE:
        PAGE.write_text(metrics_page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == metrics_page()


def test_the_page_of_the_language_lists_the_metrics() -> None:
    page = PAGE.parent / "language.md"
    text = page.read_text(encoding="utf-8")
    start = text.index(_LIST_BEGINS)
    end = text.index(_LIST_ENDS, start)
    names = ", ".join(f"`{name}`" for name in CALLABLE)
    listed = fill(f"{_LIST_BEGINS} {names};", 102, subsequent_indent="  ", break_on_hyphens=False)
    if REWRITE:
        page.write_text(f"{text[:start]}{listed}\n  {text[end:]}", encoding="utf-8")
    else:
        assert text[start:end].split() == listed.split()


@pytest.mark.parametrize("name", METRICS)
def test_the_example_of_a_metric_is_accepted(name: str) -> None:
    example = METRICS[name].example
    datasets = "orders, returns" if "returns" in example else "orders"
    text = f'suite "S" {{ check "C" on {datasets} {{ {example} name "n" }} }}'
    checked = check_source(SourceFile("suite.dql", text))
    assert not checked.diagnostics, draw(checked.diagnostics, checked.sources)
