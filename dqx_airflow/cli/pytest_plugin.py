"""Suites in tests: the fixture `dql_suite`, and `pytest --dql suites/`.

pytest loads this module in every run in an environment with the package, so it imports nothing else
before it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from datetime import date

    from dqx_airflow.api.database import Database
    from dqx_airflow.api.run import Results


@pytest.fixture
def dql_suite(request: pytest.FixtureRequest) -> Callable[..., Results]:
    """Runs a suite: `dql_suite("orders.dql", date(2024, 5, 17), orders=rows)`.

    The path is relative to the file of the test, else to the root of the run. The datasets are rows
    as mappings, or frames of pandas, Arrow or Polars. `date_columns` are their date columns by
    name. Returns the `Results`; `.raise_for_failures()` fails the test with the report of a gate.
    """
    home = request.path.parent
    root = request.config.rootpath

    def run(
        path: str | Path,
        on: date,
        *,
        date_columns: Mapping[str, str] | None = None,
        **datasets: Any,
    ) -> Results:
        from dqx_airflow.api.database import MemoryDatabase
        from dqx_airflow.api.suite import Suite

        places = (home / path, root / path)
        place = next((candidate for candidate in places if candidate.is_file()), places[0])
        return Suite.load(place).run(MemoryDatabase(datasets, date_columns=date_columns or {}), on)

    return run


class Hooks:
    """By these a `conftest.py` provides the datasets of suites."""

    @pytest.hookspec(firstresult=True)
    def pytest_dql_database(
        self, path: Path, on: date, config: pytest.Config
    ) -> Database | Mapping[str, Any] | None:
        """What a suite of `pytest --dql` runs on: a `MemoryDatabase`, a `SparkDatabase`, or
        datasets by name as a `MemoryDatabase` takes them. None for the datasets of `dqx.toml`.

        :param path: the file of the suite.
        :param on: the date of the data.
        """


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("dql", "dqx_airflow suites")
    group.addoption(
        "--dql",
        action="append",
        default=[],
        metavar="PATH",
        help="Run the suites in a file or folder, one test per assertion.",
    )
    group.addoption(
        "--dql-date",
        default="today",
        metavar="DATE",
        help="The date of the data: 2024-12-25, today, yesterday or -3d.",
    )


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(Hooks)


def pytest_configure(config: pytest.Config) -> None:
    """Without other paths, only the suites run; otherwise they are added to the tests there."""
    paths = config.getoption("dql")
    if not paths:
        return
    from dqx_airflow.api.pytest_suites import date_of_run

    date_of_run(config)
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args = []
    config.args += paths


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """The assertions of a suite selected by `--dql`."""
    config = parent.config
    base = config.invocation_params.dir
    selected = [(base / path).resolve() for path in config.getoption("dql")]
    place = file_path.resolve()
    if file_path.suffix != ".dql" or not any(place.is_relative_to(path) for path in selected):
        return None
    from dqx_airflow.api.pytest_suites import SuiteOfTests

    collector: pytest.Collector = SuiteOfTests.from_parent(parent, path=file_path)
    return collector


def pytest_unconfigure(config: pytest.Config) -> None:
    if config.getoption("dql", []):
        from dqx_airflow.api.pytest_suites import close_session

        close_session(config)
