"""The Airflow services of `docker-compose.yaml`, started by their commands on this machine."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.compose.stack import ROOT, services
from tests.postgres_server import Postgres, postgres
from tests.processes import environment, free_port, output_of, running, succeeds, wait_until

SERVICES = ("api-server", "scheduler", "dag-processor", "triggerer")


@dataclass(frozen=True)
class Airflow:
    """Airflow's services on this machine, once each of their healthchecks has passed."""

    port: str

    def ask(self, path: str) -> Any:
        token = self._answer("/auth/token")["access_token"]
        return self._answer(f"/api/v2/{path}", token)

    def _answer(self, path: str, token: str = "") -> Any:
        url = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)


@contextmanager
def database_of(name: str) -> Iterator[Postgres]:
    """The database of a service on a PostgreSQL of this machine, healthy as the file asks it."""
    service = services()[name]
    user, password, database = (
        service["environment"][f"POSTGRES_{key}"] for key in ("USER", "PASSWORD", "DB")
    )
    with postgres() as server:
        server.run(f"CREATE ROLE {user} SUPERUSER LOGIN PASSWORD '{password}'")
        server.run(f"CREATE DATABASE {database} OWNER {user}")
        _, check, *flags = service["healthcheck"]["test"]
        assert succeeds([server.program(check), *flags, "-p", str(server.port)], environment())
        yield server


def url_on(server: Postgres) -> str:
    """The URL with which Airflow finds its database there."""
    url: str = services()["airflow-scheduler"]["environment"]["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]
    return url.replace("@airflow-db/", f"@127.0.0.1:{server.port}/")


@contextmanager
def airflow_services(database: str, home: Path) -> Iterator[Airflow]:
    """`airflow-init`, and after it the services that stay up.

    :param database: the URL of an empty database.
    :param home: an empty folder.
    """
    dags = home / "dags"
    dags.mkdir()
    for volume in services()["airflow-scheduler"]["volumes"]:
        source, target, *_ = volume.split(":")
        if target.startswith("/opt/dqx/dags/"):
            (dags / Path(target).name).symlink_to(ROOT / source)
    port, health = str(free_port()), str(free_port())
    ports = {"8080": port, "8974": health}

    def here(text: str) -> str:
        text = re.sub(r"\b(8080|8974)\b", lambda found: ports[found[0]], text)
        return text.replace("airflow-api-server", "127.0.0.1")

    def env_of(service: dict[str, Any]) -> dict[str, str]:
        given = {key: here(str(value)) for key, value in service["environment"].items()}
        changed = {
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database,
            "AIRFLOW__OPENLINEAGE__DISABLED": "True",
            "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_SERVER_PORT": health,
        }
        return environment(**given | changed)

    init = services()["airflow-init"]
    output_of(init["command"], env=env_of(init))
    with ExitStack() as opened:
        started = []
        for name in SERVICES:
            service = services()[f"airflow-{name}"]
            log = home / f"{name}.log"
            command = [*map(here, service["command"])]
            opened.enter_context(running(command, env_of(service), log))
            started.append((service, log))
        for service, log in started:
            check, env = [*map(here, service["healthcheck"]["test"][1:])], env_of(service)
            wait_until(lambda check=check, env=env: succeeds(check, env), log)
        yield Airflow(port)
