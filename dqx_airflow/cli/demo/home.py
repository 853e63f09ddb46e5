"""The folder of the demo, and the environment of its Airflow."""

from __future__ import annotations

import json
import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from dqx_airflow.resources import shipped


@dataclass(frozen=True, slots=True)
class DemoHome:
    """Everything that the demo writes is below `root`, which is absolute."""

    root: Path

    @property
    def lake(self) -> Path:
        return self.root / "lake"

    @property
    def results(self) -> Path:
        return self.root / "results"

    @property
    def lineage(self) -> Path:
        return self.root / "lineage" / "events.jsonl"

    @property
    def airflow(self) -> Path:
        return self.root / "airflow"

    @property
    def database(self) -> Path:
        return self.airflow / "airflow.db"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def task_logs(self) -> Path:
        return self.airflow / "logs" / "dag_id=flights_medallion"

    @property
    def environment_file(self) -> Path:
        return self.root / "environment.sh"

    def prepare(self) -> None:
        for folder in (self.lake, self.results, self.lineage.parent, self.airflow, self.logs):
            folder.mkdir(parents=True, exist_ok=True)
        lines = [f"export {key}={shlex.quote(text)}" for key, text in self._settings().items()]
        path = f"export PATH={shlex.quote(str(_programs()))}:$PATH"
        self.environment_file.write_text("\n".join([*lines, path, ""]), encoding="utf-8")

    def environment(self) -> dict[str, str]:
        """The environment variables of the demo's processes."""
        path = os.pathsep.join([str(_programs()), os.environ.get("PATH", "")])
        return {**os.environ, **self._settings(), "PATH": path}

    def _settings(self) -> dict[str, str]:
        from dqx_airflow.engine.session.java import java_environment

        transport = {"type": "file", "log_file_path": str(self.lineage), "append": True}
        return {
            "AIRFLOW_HOME": str(self.airflow),
            "AIRFLOW__CORE__DAGS_FOLDER": str(shipped("dags_examples")),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            # Tasks that take seconds should not wait for as long again.
            "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.5",
            # 32 idle worker processes are no use on a laptop.
            "AIRFLOW__CORE__PARALLELISM": "2",
            # There is no login, so the server only listens on this machine.
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__DQX__RESULTS_ROOT": str(self.results),
            "AIRFLOW__OPENLINEAGE__NAMESPACE": "demo",
            "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
            "DQX_RESULTS_ROOT": str(self.results),
            "FLIGHTS_LAKE": str(self.lake),
            "OPENLINEAGE_NAMESPACE": "demo",
            "OPENLINEAGE__TRANSPORT": json.dumps(transport),
            "PYSPARK_PYTHON": sys.executable,
            # A host name without a useful address costs Spark seconds and warnings.
            "SPARK_LOCAL_IP": "127.0.0.1",
            **java_environment(),
        }


def _programs() -> Path:
    """The folder with `airflow` and `spark-submit` of this environment."""
    return Path(sys.executable).parent
