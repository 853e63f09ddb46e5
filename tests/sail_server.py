"""Sail in the process of the tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

_OF_SAIL = "SPARK_CONNECT_MODE_ENABLED"
"""By this PySpark knows which of its two kinds of functions are meant."""


def skip_beside_sail() -> None:
    """Skips a test of classic Spark while the process has a session on Sail."""
    if _OF_SAIL in os.environ:
        pytest.skip("this process has a session on Sail: run this file in a process of its own")


def sail_session() -> Iterator[Any]:
    """A session on a Sail server in this process, unless it has one of classic Spark: PySpark has
    the functions of one kind in a process."""
    pytest.importorskip("pysail")
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:
        pytest.skip("this process has a classic Spark: run this file in a process of its own")
    from dqx_airflow.datasets.spark_address import SAIL
    from dqx_airflow.engine.session.connection import open_session

    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(_OF_SAIL, "1")
        session = open_session(SAIL, "tests", {})
        yield session
        session.stop()
