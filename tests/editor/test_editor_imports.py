"""What loading the editor code costs before the first request."""

from __future__ import annotations

import sys

import pytest

from tests.processes import output_of

HEAVY = {"deltalake", "pyarrow", "sympy", "pyspark", "airflow", "pandas"}


def loaded_by(code: str) -> set[str]:
    run = [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"]
    printed = output_of(run, timeout=60)
    return {name.split(".")[0] for name in printed.split()}


@pytest.mark.more
def test_the_answers_are_worked_out_without_a_protocol() -> None:
    loaded = loaded_by("from dqx_airflow.editor import completion, files, occurrences")
    assert not loaded & (HEAVY | {"pygls", "lsprotocol"})


@pytest.mark.slow
def test_the_server_starts_without_the_readers_of_tables() -> None:
    loaded = loaded_by("from dqx_airflow.editor.server import create_server\ncreate_server()")
    assert "pygls" in loaded
    assert not loaded & HEAVY
