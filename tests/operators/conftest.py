"""A real Airflow on SQLite, and a scripted `spark-submit`.

Airflow takes seconds to import, so tests import it, and the operators, through fixtures only. Its
environment is set while a test of this folder runs, and gone after it.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import pytest

from tests.operators.dag_files import read_dags
from tests.operators.gate_stubs import (
    SUITE,
    FakeDag,
    FakeTask,
    Gates,
    Log,
    Run,
    SparkSubmit,
    install_stub,
)
from tests.quick_jvm import QUICK_JVM

collect_ignore_glob = [] if importlib.util.find_spec("airflow") else ["test_*.py"]


@pytest.fixture(scope="session")
def airflow_settings(airflow_home: Path) -> dict[str, str]:
    """The environment of Airflow, which is imported."""
    dags = airflow_home / "dags"
    dags.mkdir(exist_ok=True)
    settings = {
        "AIRFLOW_HOME": str(airflow_home),
        "AIRFLOW__API_AUTH__JWT_SECRET": "of the tests of the operators only; " * 2,
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__OPENLINEAGE__NAMESPACE": "tests",
        "AIRFLOW__OPENLINEAGE__DISABLED": "True",
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
    }
    with applied(settings):
        import airflow.sdk  # noqa: F401
    return settings


@pytest.fixture(scope="session")
def airflow_database(airflow_settings: dict[str, str]) -> None:
    """Airflow's metadata database, migrated."""
    with applied(airflow_settings):
        from airflow.utils.db import initdb

        initdb()
        _wait_for_the_start_of_its_api()


def _wait_for_the_start_of_its_api() -> None:
    """Has `dag.test()` use one API in its process that has started, as from Airflow 3.3 on. Earlier
    versions start one for each task in another thread, do not wait for it, and forget it: it may
    end before its first request."""
    from airflow.api_fastapi.auth.tokens import JWTValidator
    from airflow.sdk.execution_time import supervisor

    api_server = supervisor.in_process_api_server

    @cache
    def started_api_server() -> Any:
        api = api_server()
        assert api.transport  # it starts with its transport
        end = time.monotonic() + 30
        while JWTValidator not in getattr(api.app.state, "svcs_registry", ()):
            assert time.monotonic() < end, "the API of Airflow has not started"
            time.sleep(0.01)
        return api

    supervisor.in_process_api_server = started_api_server


@contextmanager
def applied(settings: Mapping[str, str]) -> Iterator[None]:
    """Sets the environment, and takes it back, with what Airflow does to the root logger."""
    handlers, level = list(logging.root.handlers), logging.root.level
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        yield
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


@pytest.fixture(autouse=True)
def airflow_environment(
    airflow_settings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in airflow_settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AIRFLOW__DQX__RESULTS_ROOT", str(tmp_path / "results"))
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", QUICK_JVM)
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def operators(airflow_environment: None) -> ModuleType:
    """The package `dqx_airflow.operators`."""
    import dqx_airflow.operators

    return dqx_airflow.operators


@pytest.fixture
def spark_submit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SparkSubmit:
    """A stub of `spark-submit`, first on PATH; it writes a passing report by default."""
    program = tmp_path / "bin" / "spark-submit"
    stub = install_stub(program, tmp_path / "submitted", tmp_path / "results")
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return stub


@pytest.fixture
def run_file(
    airflow_settings: dict[str, str],
    airflow_database: None,
    request: pytest.FixtureRequest,
    spark_submit: SparkSubmit,
) -> Iterator[Callable[..., Run]]:
    """Runs the DAG called DAG_ID of a text, with files beside it.

    It is a file in the DAGs folder, since Airflow serialises it.
    """
    folder = Path(airflow_settings["AIRFLOW__CORE__DAGS_FOLDER"])
    dag_id = "".join(letter if letter.isalnum() else "_" for letter in request.node.name)
    written: list[Path] = []

    def run(text: str, files: Mapping[str, str] = MappingProxyType({})) -> Run:
        texts = {f"{dag_id}.py": text.replace("DAG_ID", dag_id), **files}
        written.extend(folder / name for name in texts)
        for name, content in texts.items():
            (folder / name).write_text(content)
        ended = read_dags(folder / f"{dag_id}.py")[dag_id].test()
        tasks = {
            f"{ti.task_id}[{ti.map_index}]" if ti.map_index >= 0 else ti.task_id: ti
            for ti in ended.get_task_instances()
        }
        return Run(str(ended.state), tasks)

    yield run
    for path in written:
        path.unlink(missing_ok=True)


@pytest.fixture
def log(airflow_environment: None) -> Iterator[Log]:
    """The log of the tasks. (pytest's caplog sees only the standard library's logging.)"""
    from structlog.testing import capture_logs

    with capture_logs() as entries:
        yield Log(entries)


@pytest.fixture
def dag_folder(tmp_path: Path) -> Path:
    """The folder of the DAG's file, with a suite beside it."""
    folder = tmp_path / "dags"
    folder.mkdir()
    (folder / "orders.dql").write_text(SUITE)
    return folder


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Orders in two folders: sound ones, and damaged ones."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name, ids in {"sound": [1, 2, 3], "damaged": [1, 2, None]}.items():
        (tmp_path / "lake" / name).mkdir(parents=True)
        pq.write_table(pa.table({"id": ids}), tmp_path / "lake" / name / "0.parquet")
    return tmp_path / "lake"


@pytest.fixture
def task(dag_folder: Path) -> FakeTask:
    return FakeTask()


@pytest.fixture
def context(task: FakeTask, dag_folder: Path) -> dict[str, Any]:
    dag = FakeDag(str(dag_folder / "lake.py"))
    return {"ti": task, "dag_run": task.dag_run, "dag": dag, "ds": "2024-05-17", "layer": "silver"}


@pytest.fixture
def gate(operators: ModuleType, context: dict[str, Any]) -> Gates:
    return Gates(operators, context)
