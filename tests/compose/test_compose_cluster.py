"""The Spark services of `docker-compose.yaml` start, and gates run on them; also from a bundle."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from dqx_airflow.cli.job_bundle import write_bundle
from dqx_airflow.results.runs import read_report
from dqx_airflow.values import Attempt, DatasetRef, GateRequest, Outcome, RunKey, SourceFile
from dqx_airflow.values.files import shipped
from dqx_airflow.values.json_form import to_arguments
from tests.compose.bare_python import make_python
from tests.compose.cluster import Cluster, spark_cluster
from tests.processes import PROGRAMS, ended, environment, output_of

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.nightly]

SUITE = """
suite "Orders" {
    check "Ids" on orders {
        assert num_rows() == 3 name "orders.rows" severity P0
        assert duplicate_count(id) == 0 name "orders.unique"
    }
}
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    (folder / "orders.dql").write_text(SUITE)
    days = pa.array([date(2024, 5, 17)] * 3)
    write_deltalake(str(folder / "orders"), pa.table({"id": [1, 2, 3], "ds": days}))
    return folder


def run(lake: Path, connection: str) -> dict[str, Any]:
    dataset = f"orders={lake}/orders?date_column=ds"
    options = ["--dataset", dataset, "--date", "2024-05-17", "--format", "json"]
    printed = output_of(
        [str(PROGRAMS / "dql"), "run", "orders.dql", "--connection", connection, *options],
        cwd=lake,
        env=environment(),
    )
    report: dict[str, Any] = json.loads(printed)
    return report


@pytest.mark.parametrize("way", ["master", "connect"])
def test_a_suite_runs_on_the_cluster(way: str, cluster: Cluster, lake: Path) -> None:
    report = run(lake, getattr(cluster, way))
    statuses = {verdict["assertion"]: verdict["status"] for verdict in report["verdicts"]}
    assert statuses == dict.fromkeys(("orders.not_empty", "orders.rows", "orders.unique"), "passed")


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_python(tmp_path_factory.mktemp("bare") / "python")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bundle(tmp_path_factory.mktemp("bundle") / "job.zip").path


def request_of(lake: Path) -> GateRequest:
    return GateRequest(
        run_key=RunKey("orders", date(2024, 5, 17), "manual"),
        attempt=Attempt(1, str(uuid.uuid4())),
        suite=SourceFile("orders.dql", SUITE),
        datasets=(DatasetRef("orders", str(lake / "orders"), date_column="ds"),),
        results_root=str(lake / "results"),
    )


def submit(request: GateRequest, python: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """spark-submit, its driver in a Python of our choice."""
    return ended(
        [
            str(PROGRAMS / "spark-submit"),
            *options,
            str(shipped("spark_jobs/gate_job.py")),
            *to_arguments(request),
        ],
        env=environment(PYSPARK_PYTHON=str(python)),
    )


def test_without_the_bundle_the_driver_has_nothing_of_ours(bare_python: Path, lake: Path) -> None:
    done = submit(request_of(lake), bare_python, "--master", "local[2]")
    assert done.returncode == 4
    assert f"({bare_python}) has no module 'dqx_airflow'" in done.stdout
    assert "`dql package`" in done.stdout


def test_a_gate_runs_from_the_bundle_in_local_mode(
    bare_python: Path, bundle: Path, lake: Path
) -> None:
    request = request_of(lake)
    options = ["--master", "local[2]", "--py-files", str(bundle)]
    done = submit(request, bare_python, *options)
    assert done.returncode == 0, done.stderr
    report = read_report(request.results_root, request.run_key, request.attempt.id)
    assert report is not None
    assert report.outcome is Outcome.PASSED


def test_a_gate_runs_from_the_bundle_on_the_cluster(
    bare_python: Path, bundle: Path, lake: Path, cluster: Cluster
) -> None:
    request = request_of(lake)
    options = ["--master", cluster.master, "--py-files", str(bundle)]
    done = submit(request, bare_python, *options)
    assert done.returncode == 0, done.stderr
    report = read_report(request.results_root, request.run_key, request.attempt.id)
    assert report is not None
    assert report.outcome is Outcome.PASSED
