"""Sail in the process of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


def sail_session() -> Iterator[Any]:
    """A session on a Sail server in this process."""
    pytest.importorskip("pysail")
    from dqx_airflow.datasets.spark_address import SAIL
    from dqx_airflow.engine.session.connection import open_session

    with pytest.MonkeyPatch.context() as patched:
        # By this PySpark knows which of its two kinds of functions are meant.
        patched.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
        session = open_session(SAIL, "tests", {})
        yield session
        session.stop()
