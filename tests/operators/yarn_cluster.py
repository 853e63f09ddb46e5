"""A YARN on one machine: the ResourceManager and a NodeManager of PySpark's Hadoop."""

from __future__ import annotations

import json
import shutil
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark

from tests.maven_jars import with_all_they_need
from tests.operators.clusters import Bundle
from tests.processes import environment, free_port, running, wait_until

_JARS = Path(pyspark.__file__).parent / "jars"
_PACKAGE = "org.apache.hadoop.yarn.server"
_FATES = ("RUNNING", "SUCCEEDED", "FAILED", "KILLED")
_PORTS = ("", ".scheduler", ".resource-tracker", ".admin")


@dataclass(frozen=True)
class Yarn:
    """Where a running YARN is reached; `settings` is the folder for HADOOP_CONF_DIR."""

    web: str
    settings: Path
    staging: Path

    refused = {"yarn_queue": "nowhere"}, "unknown queue: nowhere"

    @property
    def connection(self) -> dict[str, Any]:
        extra = {"yarn_resourcemanager_webapp_address": self.web}
        return {"conn_type": "spark", "host": "yarn", "extra": extra}

    @property
    def variables(self) -> dict[str, str]:
        return {"HADOOP_CONF_DIR": str(self.settings)}

    @property
    def conf(self) -> dict[str, str]:
        return {"spark.yarn.jars": f"local:{_JARS}/*", "spark.yarn.stagingDir": str(self.staging)}

    def in_cluster(self, bundle: Bundle) -> dict[str, Any]:
        return {
            "py_files": str(bundle.code),
            "archives": f"{bundle.native}#native",
            "conf": {
                "spark.yarn.appMasterEnv.PYTHONPATH": "native",
                "spark.yarn.appMasterEnv.PYSPARK_PYTHON": str(bundle.python),
            },
        }

    def drivers(self) -> list[str]:
        found = (self._ask("apps")["apps"] or {"app": []})["app"]
        newest_first = sorted(
            found, key=lambda application: int(application["startedTime"]), reverse=True
        )
        return [str(application["id"]) for application in newest_first]

    def fate(self, driver: str) -> str:
        found = self._ask(f"apps/{driver}")["app"]
        state = str(found["finalStatus" if found["state"] == "FINISHED" else "state"])
        return state if state in _FATES else "WAITING"

    def kill(self, driver: str) -> str:
        self._ask(f"apps/{driver}/state", {"state": "KILLED"})
        return f"the application {driver} ended as KILLED: .* killed by user"

    def is_ready(self) -> bool:
        try:
            nodes = self._ask("nodes")["nodes"] or {"node": []}
        except OSError:
            return False
        return any(node["state"] == "RUNNING" for node in nodes["node"])

    def _ask(self, path: str, body: object = None) -> Any:
        request = urllib.request.Request(
            f"{self.web}/ws/v1/cluster/{path}",
            method="GET" if body is None else "PUT",
            headers={"Content-Type": "application/json"},
            data=None if body is None else json.dumps(body).encode(),
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)


@contextmanager
def yarn_cluster(folder: Path) -> Iterator[Yarn]:
    """Starts it, and waits until it takes applications; skips the test where it cannot be had."""
    (jar,) = _JARS.glob("hadoop-client-api-*.jar")
    hadoop = jar.stem.rpartition("-")[2]
    services = ("resourcemanager", "nodemanager", "timelineservice")
    lib = with_all_they_need(
        *(f"org.apache.hadoop:hadoop-yarn-server-{name}:{hadoop}" for name in services),
        f"org.apache.hadoop:hadoop-yarn-client:{hadoop}",
        f"org.apache.hadoop:hadoop-hdfs-client:{hadoop}",
    )
    settings = folder / "settings"
    settings.mkdir()
    web = f"127.0.0.1:{free_port()}"
    addresses = {
        f"yarn.resourcemanager{part}.address": f"127.0.0.1:{free_port()}" for part in _PORTS
    }
    _write(
        settings / "yarn-site.xml",
        {
            **addresses,
            "yarn.resourcemanager.hostname": "127.0.0.1",
            "yarn.resourcemanager.webapp.address": web,
            "yarn.nodemanager.hostname": "127.0.0.1",
            "yarn.nodemanager.address": "127.0.0.1:0",
            "yarn.nodemanager.localizer.address": "127.0.0.1:0",
            "yarn.nodemanager.webapp.address": "127.0.0.1:0",
            "yarn.nodemanager.local-dirs": folder / "local",
            "yarn.nodemanager.log-dirs": folder / "logs",
            # A full disk of this machine is no matter of these tests.
            "yarn.nodemanager.disk-health-checker.enable": "false",
            "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": 100,
            "yarn.nodemanager.resource.memory-mb": "4096",
            "yarn.nodemanager.resource.cpu-vcores": "4",
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yarn.scheduler.minimum-allocation-mb": "256",
        },
    )
    _write(
        settings / "core-site.xml", {"fs.defaultFS": "file:///", "hadoop.tmp.dir": folder / "tmp"}
    )
    _write(
        settings / "capacity-scheduler.xml",
        {
            "yarn.scheduler.capacity.root.queues": "default",
            "yarn.scheduler.capacity.root.default.capacity": "100",
            "yarn.scheduler.capacity.maximum-am-resource-percent": "1",
        },
    )
    (settings / "log4j.properties").write_text(
        "log4j.rootLogger=INFO,out\n"
        "log4j.appender.out=org.apache.log4j.ConsoleAppender\n"
        "log4j.appender.out.layout=org.apache.log4j.SimpleLayout\n"
    )
    env = environment(HADOOP_CONF_DIR=str(settings))
    java = shutil.which("java", path=f"{env.get('JAVA_HOME', '')}/bin:{env['PATH']}")
    start = [str(java), "-Xmx256m", "-XX:+UseSerialGC", "-cp", f"{settings}:{lib}/*"]
    manager = [*start, f"{_PACKAGE}.resourcemanager.ResourceManager"]
    node = [*start, f"{_PACKAGE}.nodemanager.NodeManager"]
    log = folder / "yarn.log"
    with running(manager, env, log), running(node, env, log):
        yarn = Yarn(f"http://{web}", settings, folder / "staging")
        wait_until(yarn.is_ready, log)
        yield yarn


def _write(path: Path, settings: dict[str, Any]) -> None:
    properties = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>\n"
        for name, value in settings.items()
    )
    path.write_text(f"<configuration>\n{properties}</configuration>\n")
