"""The Airflow services of `docker-compose.yaml` start, find the example DAG, and are healthy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.compose.airflow_stack import Airflow, airflow_services, database_of, url_on

pytestmark = [pytest.mark.e2e, pytest.mark.airflow, pytest.mark.nightly]


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def database(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The URL of an empty database: the one that the file names, where its drivers are installed,
    and one of SQLite, which needs none."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path_factory.mktemp('sqlite')}/airflow.db"
        return
    pytest.importorskip("psycopg2")
    pytest.importorskip("asyncpg")
    with database_of("airflow-db") as server:
        yield url_on(server)


@pytest.fixture(scope="module")
def airflow(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    with airflow_services(database, tmp_path_factory.mktemp("airflow")) as started:
        yield started


def test_all_services_are_healthy(airflow: Airflow) -> None:
    health = airflow.ask("monitor/health")
    assert {name: item["status"] for name, item in health.items()} == dict.fromkeys(
        ("metadatabase", "scheduler", "triggerer", "dag_processor"), "healthy"
    )


def test_the_example_dags_are_found(airflow: Airflow) -> None:
    assert airflow.ask("importErrors")["import_errors"] == []
    found = {dag["dag_id"] for dag in airflow.ask("dags")["dags"]}
    assert found == {"flights_medallion", "results_upkeep"}
