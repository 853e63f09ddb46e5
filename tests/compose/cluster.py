"""The Spark cluster of `docker-compose.yaml`, started by its commands on this machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.compose.stack import services
from tests.processes import environment, free_port, running, succeeds, wait_until


@dataclass(frozen=True)
class Cluster:
    """Where a running cluster is reached."""

    master: str
    connect: str


@contextmanager
def spark_cluster(folder: Path) -> Iterator[Cluster]:
    """A master, a worker, and a Connect server that keeps one of the cores."""
    ports = {name: str(free_port()) for name in ("7077", "8081", "8082", "15002")}
    work = folder / "work"
    env = environment(SPARK_CONF_DIR=str(folder))

    def here(text: str) -> str:
        text = text.replace("/opt/spark/work", str(work)).replace("spark-master", "127.0.0.1")
        return re.sub("|".join(ports), lambda found: ports[found[0]], text)

    with ExitStack() as opened:
        for name in ("spark-master", "spark-worker", "spark-connect"):
            service = services()[name]
            log = folder / f"{name}.log"
            opened.enter_context(running([*map(here, service["command"])], env, log))
            check = [*map(here, service["healthcheck"]["test"][1:])]
            wait_until(lambda check=check: succeeds(check, env), log)
        yield Cluster(f"spark://127.0.0.1:{ports['7077']}", f"sc://127.0.0.1:{ports['15002']}")
