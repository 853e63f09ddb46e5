"""A gate in a DAG of a real Git bundle, cleared on its page: on the version of its run, or on the
newest one. Needs Airflow's Git provider, which the environments of `pytest --airflow` have."""

from __future__ import annotations

import json
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.operators.airflow_services import Airflow, airflow_services
from tests.operators.gate_stubs import install_stub
from tests.ui.ui_scene import Html

pytestmark = [pytest.mark.airflow, pytest.mark.slow]

DAG_FILE = """
from airflow.sdk import DAG

from dqx_airflow.operators import DqlGateOperator

with DAG("lake", schedule=None, tags=["VERSION"]):
    DqlGateOperator(
        task_id="gate",
        suite="orders.dql",
        datasets={"orders": "/lake/orders"},
        spark_binary="HOME/bin/spark-submit",
        results_root="HOME/results",
        date="2024-03-20",
    )
"""
SUITE = """suite "VERSION" {
    check "Completeness" on orders {
        assert null_count(id) == 0 name "orders.id" severity P1
    }
}
"""


def commit(repository: Path, home: Path, version: str) -> str:
    """Writes a version of the DAG and its suite; returns the id of the commit."""
    dag = DAG_FILE.replace("HOME", str(home)).replace("VERSION", version)
    (repository / "lake.py").write_text(dag)
    (repository / "orders.dql").write_text(SUITE.replace("VERSION", version))
    person = ["-c", "user.name=ada", "-c", "user.email=ada@example.com"]
    for arguments in (
        ["add", "."],
        [*person, "commit", "-q", "-m", version],
        ["rev-parse", "HEAD"],
    ):
        done = subprocess.run(
            ["git", "-C", str(repository), *arguments], check=True, capture_output=True, text=True
        )
    return done.stdout.strip()


def page(airflow: Airflow, path: str, form: dict[str, str] | None = None) -> str:
    """One of our pages, or the response to a form."""
    request = urllib.request.Request(
        f"{airflow.address}/dqx/{path}",
        headers={"Authorization": f"Bearer {airflow.token}", "Sec-Fetch-Site": "same-origin"},
        data=None if form is None else urllib.parse.urlencode(form).encode(),
    )
    with urllib.request.urlopen(request, timeout=90) as answer:
        text: str = answer.read().decode()
    return text


HERE = "incident?dag_id=lake&task_id=gate"


def test_a_cleared_gate_runs_on_the_version_that_is_chosen(tmp_path: Path) -> None:
    pytest.importorskip("airflow.providers.git.bundles.git")
    home, repository = tmp_path / "home", tmp_path / "repository"
    (home / "dags").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "-b", "main", str(repository)], check=True)
    spark = install_stub(home / "bin" / "spark-submit", home / "spark", home / "results")
    spark.will("blocked", "blocked", "passed")
    old = commit(repository, home, "old")
    bundle = {
        "name": "lake",
        "classpath": "airflow.providers.git.bundles.git.GitDagBundle",
        "kwargs": {"repo_url": str(repository), "tracking_ref": "main", "refresh_interval": 2},
    }
    settings = {
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps([bundle]),
        "AIRFLOW__DAG_PROCESSOR__BUNDLE_REFRESH_CHECK_INTERVAL": "1",
        # By default it is one folder of the machine, which keeps the clones of earlier runs.
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH": str(home / "bundles"),
        "AIRFLOW__DQX__RESULTS_ROOT": str(home / "results"),
        "AIRFLOW__OPENLINEAGE__DISABLED": "True",
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
    }
    with airflow_services(home, settings) as airflow:
        run_id = airflow.run("lake")
        assert airflow.wait_for_end("lake", run_id) == "failed"
        new = commit(repository, home, "new")
        airflow.wait_until(lambda: airflow.ask("GET", "dags/lake")["bundle_version"] == new)
        (clearing,) = json.loads(page(airflow, f"api/v1/{HERE}"))["clearings"]
        assert (clearing["run_version"], clearing["latest_version"]) == (old, new)
        assert (clearing["version"], clearing["outdated"]) == (old, True)
        assert clear(airflow, run_id, "", tries=2) == "failed"
        assert clear(airflow, run_id, "latest", tries=3) == "success"
        run = airflow.ask("GET", f"dags/lake/dagRuns/{run_id}")
        assert run["bundle_version"] == new
    suites = [request.suite.text.splitlines()[0] for request in spark.requests]
    assert suites == ['suite "old" {', 'suite "old" {', 'suite "new" {']


def clear(airflow: Airflow, run_id: str, version: str, tries: int) -> str:
    """Clears the gate by the form on its incident; returns the state of the run at its end."""
    forms = Html(page(airflow, HERE)).forms
    form: dict[str, Any] = next(form for form in forms if form.get("kind") == "clear")
    page(airflow, "incident", {**form, "version": version})
    airflow.wait_until(lambda: airflow.tasks("lake", run_id, "gate")[0].tries == tries)
    return airflow.wait_for_end("lake", run_id)
