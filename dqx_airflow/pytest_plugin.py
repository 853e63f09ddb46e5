"""Suites in tests: the fixture `dql_suite` runs one over the rows of a test.

pytest loads this module in every run of an environment that has the package, so that it imports
nothing else before the fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from datetime import date

    from dqx_airflow.api.results import Results


@pytest.fixture
def dql_suite(request: pytest.FixtureRequest) -> Callable[..., Results]:
    """Runs a suite: `dql_suite("orders.dql", date(2024, 5, 17), orders=rows)`.

    The path is relative to the file of the test, else to the root of the run. The datasets are rows
    as mappings, or frames of pandas, Arrow or Polars. `date_columns` are their date columns by
    name. Returns the `Results`; `.raise_for_failures()` fails the test with the report of a gate.
    """
    home, root = request.path.parent, request.config.rootpath

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
        place = next((one for one in places if one.is_file()), places[0])
        return Suite.load(place).run(MemoryDatabase(datasets, date_columns=date_columns or {}), on)

    return run
