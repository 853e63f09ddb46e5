"""Every name of Airflow that the package and the snippets of the docs import is there, on each
Airflow: `pytest --airflow 3.1` runs these tests on another one."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.other_environments import ROOT

pytestmark = pytest.mark.airflow

PACKAGE = ROOT / "dqx_airflow"
OWN_MODULE = "operators/airflow_versions.py"
INTERNAL = ("airflow.sdk.exceptions", "airflow.sdk.execution_time", "airflow.exceptions")
OPTIONAL = ("airflow.providers.amazon", "airflow.providers.google", "airflow.providers.databricks")
OPTIONAL += ("airflow.providers.apache.livy", "airflow.providers.cncf.kubernetes")
"""Providers of services, each of which is an extra of its own."""
SINCE = {
    "3.2": {"PartitionedAssetTimetable", "StartOfMonthMapper"},
    "3.3": {"ExceptionRetryPolicy", "MonthWindow", "RetryAction", "RetryRule", "RollupMapper"},
}
"""Names in snippets of what the page says that it begins with a later Airflow."""
_SNIPPET = re.compile(r"^```python\n(.*?)^```", re.M | re.S)


def imports_in(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that a program imports from Airflow, except in `try: ... except ImportError`."""
    tried = {
        id(node)
        for attempt in ast.walk(tree)
        if isinstance(attempt, ast.Try)
        and any("ImportError" in ast.unparse(one.type or attempt) for one in attempt.handlers)
        for statement in attempt.body
        for node in ast.walk(statement)
    }
    for node in ast.walk(tree):
        is_own = isinstance(node, ast.ImportFrom) and (node.module or "").startswith("airflow")
        if is_own and id(node) not in tried:
            yield from ((str(node.module), name.name) for name in node.names)


@cache
def imports_of_the_package() -> frozenset[tuple[Path, str, str]]:
    """The file, the module and the name of each import from Airflow in the package."""
    sources = [(path, path.read_text("utf-8")) for path in PACKAGE.rglob("*.py")]
    return frozenset(
        (path, module, name)
        for path, source in sources
        if "from airflow" in source  # to parse all of them takes seconds
        for module, name in imports_in(ast.parse(source))
    )


def missing(names: set[tuple[str, str]]) -> list[str]:
    """The names that this Airflow does not have."""
    found = []
    for module, name in sorted(names):
        if module.startswith(OPTIONAL):
            continue
        try:
            found_there = importlib.import_module(module)
            is_set_by_a_task = name in getattr(found_there, "__annotations__", {})
            if not is_set_by_a_task and not hasattr(found_there, name):
                importlib.import_module(f"{module}.{name}")
        except ImportError as error:
            found.append(f"{module}.{name}: {error}")
    return found


def test_every_name_that_the_package_imports_is_there(airflow_settings: dict[str, str]) -> None:
    names = {(module, name) for _, module, name in imports_of_the_package()}
    assert len(names) > 30
    assert missing(names) == []


def test_every_name_that_the_docs_import_is_there(airflow_settings: dict[str, str]) -> None:
    import airflow.sdk

    names = set()
    for page in [ROOT / "README.md", *(PACKAGE / "docs").rglob("*.md")]:
        for snippet in _SNIPPET.findall(page.read_text("utf-8")):
            try:
                names |= set(imports_in(ast.parse(snippet)))
            except SyntaxError:  # a part of a call
                continue
    assert len(names) > 10
    here = tuple(map(int, airflow.sdk.__version__.split(".")[:2]))  # 1.2 belongs to Airflow 3.2
    later = {name for since, some in SINCE.items() if int(since[2:]) > here[1] for name in some}
    assert missing({one for one in names if one[1] not in later}) == []


def test_names_without_a_common_place_are_imported_in_one_module() -> None:
    strays = [
        f"{path.relative_to(PACKAGE)}: {module}.{name}"
        for path, module, name in sorted(imports_of_the_package())
        if path != PACKAGE / OWN_MODULE
        if module.startswith(INTERNAL)
    ]
    assert strays == []
