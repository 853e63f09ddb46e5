"""The examples in docstrings are correct."""

import doctest
import importlib
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[1]
_WITH_EXAMPLES = sorted(
    ".".join(path.relative_to(_ROOT).with_suffix("").parts)
    for path in (_ROOT / "dqx_airflow").rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


def test_there_are_examples() -> None:
    assert "dqx_airflow.exact" in _WITH_EXAMPLES


@pytest.mark.parametrize("name", _WITH_EXAMPLES)
def test_examples_give_what_they_show(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name.removesuffix(".__init__")))
    assert results.attempted > 0
    assert results.failed == 0
