"""What tests of several houses share: the one Spark session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A classic local session, started once, with the settings of a gate in local mode."""
    from dqx_airflow.engine.java import java_environment
    from dqx_airflow.engine.session import create_session

    before = dict(os.environ)
    os.environ.update(java_environment())
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_SUBMIT_ARGS"] = (
        "--master local[2] --conf spark.log.level=ERROR pyspark-shell"
    )
    session = create_session("tests")
    yield session
    session.stop()
    os.environ.clear()
    os.environ.update(before)
