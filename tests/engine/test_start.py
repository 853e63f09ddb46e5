"""How a driver starts: its imports, and its message if Spark does not start."""

from __future__ import annotations

import sys
import threading
from datetime import date
from pathlib import Path

import pytest

from dqx_airflow.engine.session.launch import prefer_bytecode, start_spark
from dqx_airflow.engine.session.spark_session import create_session
from dqx_airflow.values import Attempt, GateRequest, RunKey, SourceFile
from dqx_airflow.values.json_form import to_arguments
from tests.processes import environment, output_of


def laid_out(home: Path, *files: str) -> None:
    for file in files:
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        (home / file).touch()


def test_pyspark_of_pip_is_taken_from_its_files(tmp_path: Path) -> None:
    laid_out(tmp_path, "pyspark/__init__.py", "pyspark/python/lib/pyspark.zip")
    archives = [f"{tmp_path}/pyspark/{name}" for name in ("python/lib/pyspark.zip", "jars/a.jar")]
    path = ["/job", *archives, str(tmp_path), "/more"]
    prefer_bytecode(path)
    assert path == ["/job", str(tmp_path), "/more", *archives]


def test_a_zip_without_unpacked_files_stays_on_the_path(tmp_path: Path) -> None:
    laid_out(tmp_path, "spark/python/lib/pyspark.zip", "spark/python/pyspark/__init__.py")
    path = ["/job", f"{tmp_path}/spark/python/lib/pyspark.zip", str(tmp_path)]
    kept = list(path)
    prefer_bytecode(path)
    assert path == kept
    laid_out(tmp_path, "spark/__init__.py")
    elsewhere = path[:-1]
    prefer_bytecode(elsewhere)
    assert elsewhere == kept[:-1]


def arguments() -> list[str]:
    return to_arguments(
        GateRequest(
            run_key=RunKey("started", date(2024, 1, 1), "by a test"),
            attempt=Attempt(1, "a"),
            suite=SourceFile("s.dql", ""),
            datasets=(),
            results_root="results",
        )
    )


def test_an_error_of_starting_spark_is_raised_by_the_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(name: str) -> None:
        raise ConnectionError(f"no master for {name}")

    monkeypatch.setattr("dqx_airflow.engine.session.spark_session.start_context", fail)
    session = start_spark(arguments())
    with pytest.raises(ConnectionError, match="no master for started"):
        session("started")


@pytest.mark.parametrize("case", ["no request", "a server"])
def test_no_spark_is_started_for_a_server_or_a_missing_request(
    monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.setattr("dqx_airflow.engine.session.spark_session.start_context", pytest.fail)
    if case == "a server":
        monkeypatch.setenv("SPARK_REMOTE", "sc://there")
    before = threading.active_count()
    assert start_spark(arguments() if case == "a server" else []) is create_session
    assert threading.active_count() == before


IMPORTS = """
import sys, threading
imported = {}
def note(event, details):
    if event == "import":
        imported.setdefault(threading.current_thread(), []).append(details[0])
sys.addaudithook(note)
from dqx_airflow.engine.session.launch import start_spark
session = start_spark(sys.argv[1:])
started = set(sys.modules)
import dqx_airflow.engine.job
at_once = set(sys.modules) - started
spark = session("started")
assert spark.sparkContext.appName == "started"
assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
spark.stop()
main = threading.main_thread()
elsewhere = [name for thread, names in imported.items() if thread is not main for name in names]
assert not elsewhere, elsewhere
both = [name for name in at_once if name.startswith(("pyspark", "py4j", "pandas", "numpy"))]
assert not both, both
"""


@pytest.mark.e2e
@pytest.mark.spark
def test_no_package_is_imported_by_two_threads_at_once() -> None:
    output_of([sys.executable, "-c", IMPORTS, *arguments()], env=environment(), timeout=120)
