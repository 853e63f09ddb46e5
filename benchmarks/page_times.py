"""Measures the pages in the Airflow UI after many runs of many gates.

    python -m benchmarks.page_times [--gates 200] [--runs 10000] [--rounds 5]

Airflow's API server, called within the process, on SQLite. Every tenth gate is mapped over 20
instances. The store holds all runs, Airflow those of the newest 14 days. The figures of a page are
its size and the median wall and processor time of the rounds, without the first round, in which the
server imports modules and opens the store.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

_INSTANCES = 20
_DAYS_IN_AIRFLOW = 14


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--gates", type=int, default=200)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    root = Path(mkdtemp(prefix="dqx_pages_"))
    ask = _server(root)
    _fill(root, given.gates, given.runs)
    day = "run_id=scheduled__2024-03-20"
    pages = {
        "gate": f"gate?dag_id=dag_001&{day}&task_id=gate&map_index={{MAP_INDEX}}",
        "mapped gate": f"gate?dag_id=dag_000&{day}&task_id=gate&map_index={{MAP_INDEX}}",
        "all runs of a gate": "runs?dag_id=dag_001&task_id=gate",
        "incident": "incident?dag_id=dag_001&task_id=gate",
        "board": "board",
        "datasets": "datasets",
        "dataset of one gate": "dataset?location=s3://lake/table_001",
        "dataset of every gate": "dataset?location=s3://lake/calendar",
        "contract of every gate": "contract?id=orders",
        "alerts": "alerts",
    }
    print(f"{given.gates} gates, {given.runs:,} runs in the store\n")
    print("| page | wall ms | CPU ms | kB |\n|---|---|---|---|")
    for name, page in pages.items():
        times: list[tuple[float, float]] = []
        for _ in range(given.rounds + 1):
            started, used = time.perf_counter(), time.process_time()
            answer = ask(page)
            times.append((time.perf_counter() - started, time.process_time() - used))
            assert answer.status_code == 200, (page, answer.text[:500])
        wall, cpu = (statistics.median(column) * 1000 for column in zip(*times[1:], strict=True))
        print(f"| {name} | {wall:.0f} | {cpu:.0f} | {len(answer.content) / 1000:.0f} |", flush=True)


def _server(root: Path) -> Any:
    """A client of the API server, for a user with all permissions."""
    os.environ |= {
        "AIRFLOW_HOME": str(root / "airflow"),
        "AIRFLOW__API_AUTH__JWT_SECRET": "of this benchmark only; " * 4,
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__DQX__RESULTS_ROOT": str(root / "results"),
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
        "AIRFLOW__OPENLINEAGE__DISABLED": "True",
    }
    from airflow.utils.db import initdb

    initdb()
    from airflow.api_fastapi.app import create_app, get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from fastapi.testclient import TestClient

    client = TestClient(create_app(apps="core"))
    user = SimpleAuthManagerUser(username="ada", role="admin", teams=[])
    token = get_auth_manager().generate_jwt(user)
    headers = {"Authorization": f"Bearer {token}"}
    return lambda page: client.get(f"/dqx/{page}", headers=headers)


def _fill(root: Path, gates: int, runs: int) -> None:
    """Fills the store with gates that read their own table and a shared calendar, one run a day."""
    from dqx_airflow.values import DatasetSnapshot, EnforcedContract, Outcome
    from tests.ui.test_ui_scale import fill
    from tests.ui.ui_scene import BAD_NULLS, DAY, NULLS, Scene, report_of

    names = [f"dag_{number:03}" for number in range(gates)]
    fill(root / "results", [f"{name}.gate" for name in names], runs)
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.session import create_session

    with create_session() as session:
        session.add(DagBundleModel(name="red-dags"))
        session.flush()
        session.add_all(
            DagModel(dag_id=name, bundle_name="red-dags", owners="ada") for name in names
        )
        session.commit()
        scene = Scene(root / "results", session)
        for number, name in enumerate(names):
            tables = tuple(
                DatasetSnapshot(alias, f"s3://lake/{table}", "delta", version=7, rows=5000)
                for alias, table in (("orders", f"table_{number:03}"), ("days", "calendar"))
            )
            for days_ago in range(_DAYS_IN_AIRFLOW):
                is_bad = number % 5 == 1 and days_ago < 3
                report = report_of(
                    1 + number * 100 + days_ago,
                    dag_id=name,
                    on=DAY - timedelta(days=days_ago),
                    verdicts=(BAD_NULLS if is_bad else NULLS,),
                    outcome=Outcome.BLOCKED if is_bad else Outcome.PASSED,
                    datasets=tables,
                    contract=EnforcedContract("orders", "2.3.0", "odcs"),
                )
                indexes = range(_INSTANCES) if number % 10 == 0 else (-1,)
                for index in indexes:
                    place = f"[{index}]" if index >= 0 else ""
                    key = replace(
                        report.run_key, scheduler_run=report.run_key.scheduler_run + place
                    )
                    scene.ran(
                        replace(report, run_key=key),
                        dag_id=name,
                        number=1 + number,
                        map_index=index,
                        stored=days_ago == 0 and index < 1,
                    )


if __name__ == "__main__":
    main()
