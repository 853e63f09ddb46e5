"""The examples in docstrings are correct, and public functions say what they raise."""

import ast
import doctest
import importlib
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[1]
_WITH_EXAMPLES = sorted(
    ".".join(path.relative_to(_ROOT).with_suffix("").parts)
    for path in (_ROOT / "dqx_airflow").rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)
_PUBLIC = ("api", "operators", "results", "tuning")


def test_docstrings_have_examples() -> None:
    assert "dqx_airflow.values.exact" in _WITH_EXAMPLES


@pytest.mark.parametrize("name", _WITH_EXAMPLES)
def test_examples_give_what_they_show(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name.removesuffix(".__init__")))
    assert results.attempted > 0
    assert results.failed == 0


def test_public_functions_document_their_exceptions() -> None:
    silent = [
        f"{path.relative_to(_ROOT)}:{node.lineno}: {node.name}"
        for package in _PUBLIC
        for path in sorted((_ROOT / "dqx_airflow" / package).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
        if any(isinstance(part, ast.Raise) and part.exc is not None for part in ast.walk(node))
        if "raises" not in (ast.get_docstring(node) or "")
    ]
    assert silent == []


def test_the_python_api_is_documented() -> None:
    bare = [
        f"{path.relative_to(_ROOT)}:{node.lineno}: {node.name}"
        for path in sorted((_ROOT / "dqx_airflow/api").rglob("*.py"))
        for node in _offered(ast.parse(path.read_text(encoding="utf-8")))
        if ast.get_docstring(node) is None
    ]
    assert bare == []


def test_public_functions_say_first_what_they_do() -> None:
    """`Returns the suite ...`, `Reads ...`; the metrics in Python are described as values."""
    names = {
        name: getattr(import_module(module), name)
        for module in ("dqx_airflow.operators", "dqx_airflow.dql", "dqx_airflow.api")
        for name in import_module(module).__all__
    }
    del names["MetricProvider"]
    functions = {name: thing for name, thing in names.items() if inspect.isfunction(thing)}
    for name, thing in names.items():
        if inspect.isclass(thing):
            methods = (
                (key, getattr(value, "__func__", value)) for key, value in vars(thing).items()
            )
            functions |= {f"{name}.{key}": method for key, method in methods if _is_public(method)}
    first = {name: (function.__doc__ or "").split()[:1] for name, function in functions.items()}
    assert len(first) > 60
    assert {
        name for name, word in first.items() if word and not re.match(r"[A-Z]\w+s$|`", word[0])
    } == set()


def _is_public(method: object) -> bool:
    return inspect.isfunction(method) and not method.__name__.startswith("_")


def _offered(tree: ast.Module | ast.ClassDef) -> Iterator[ast.ClassDef | ast.FunctionDef]:
    """The public classes, functions and methods of a module; not what is inside of functions."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from _offered(node)


def test_names_and_paths_in_backticks_exist() -> None:
    """`metrics.metric.Metric` in a docstring, `cli/main.py` in the guide for contributors."""
    package = _ROOT / "dqx_airflow"
    dead = [
        f"{path.relative_to(_ROOT)}: {name}"
        for path in sorted(package.rglob("*.py"))
        for name in re.findall(r"`((?:dqx_airflow\.)?[a-z_]+(?:\.\w+)+)`", path.read_text("utf-8"))
        if not _exists(name.removeprefix("dqx_airflow.").split("."))
    ]
    guide = (_ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    homes = (_ROOT, package, package / "engine")
    dead += [
        path
        for path in re.findall(r"`((?:[\w.-]+/)+[\w.-]*)`", guide)
        if not any((home / path).exists() for home in homes)
    ]
    assert dead == []


def _exists(parts: list[str]) -> bool:
    """Whether a dotted name that begins with one of our packages is a module, or a name in one."""
    at = _ROOT / "dqx_airflow"
    if not (at / parts[0] / "__init__.py").is_file():
        return True  # not one of ours
    while parts and ((at / parts[0]).is_dir() or (at / f"{parts[0]}.py").is_file()):
        at, parts = at / parts[0], parts[1:]
    module = at / "__init__.py" if at.is_dir() else at.with_suffix(".py")
    defined = rf"^\s*(?:def|class) {parts[0]}\b|^{parts[0]}\b" if parts else ""
    return re.search(defined, module.read_text(encoding="utf-8"), re.MULTILINE) is not None
