"""The hook by which a `conftest.py` provides the datasets of suites."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dqx_airflow.api.database import Database


@pytest.hookspec(firstresult=True)
def pytest_dql_database(
    path: Path, on: date, config: pytest.Config
) -> Database | Mapping[str, Any] | None:
    """What a suite of `pytest --dql` runs on: a `MemoryDatabase`, a `SparkDatabase`, or datasets by
    name as a `MemoryDatabase` takes them. None for the datasets of `dqx.toml`.

    :param path: the file of the suite.
    :param on: the date of the data.
    """
