"""The folder of a demo and the environment of its processes."""

from __future__ import annotations

import json
import os
import secrets
import shlex
import sys
from pathlib import Path

from dqx_airflow.values.files import shipped

LOCAL = "local[2]"
"""The master of a `spark-submit` for each job and gate."""


class DemoHome:
    """Everything that the demo writes is below `root`, which is absolute.

    :param spark: the address of the Spark of jobs and gates: `local[2]`, `sc://HOST:PORT` or
        `sail`.
    """

    def __init__(self, root: Path, spark: str = LOCAL) -> None:
        self.spark = spark
        self._token = secrets.token_hex()
        self.lake = root / "lake"
        self.results = root / "results"
        self.lineage = root / "lineage" / "events.jsonl"
        self.airflow = root / "airflow"
        self.database = self.airflow / "airflow.db"
        self.logs = root / "logs"
        self.task_logs = self.airflow / "logs" / "dag_id=flights_medallion"
        self.environment_file = root / "environment.sh"

    def prepare(self) -> None:
        """Makes the folders, and the file with the variables of an Airflow that is started later,
        when the server of the demo has ended."""
        for folder in (self.lake, self.results, self.lineage.parent, self.airflow, self.logs):
            folder.mkdir(parents=True, exist_ok=True)
        settings = self._settings(LOCAL if self._has_server else self.spark)
        lines = [f"export {key}={shlex.quote(text)}" for key, text in settings.items()]
        path = f"export PATH={shlex.quote(str(programs()))}:$PATH"
        self.environment_file.write_text("\n".join([*lines, path, ""]), encoding="utf-8")

    def environment(self) -> dict[str, str]:
        """The environment variables of the demo's processes."""
        path = os.pathsep.join([str(programs()), os.environ.get("PATH", "")])
        # No one else on this machine can use the server of the demo.
        token = {"SPARK_CONNECT_AUTHENTICATE_TOKEN": self._token} if self._has_server else {}
        return {**os.environ, **self._settings(self.spark), **token, "PATH": path}

    @property
    def _has_server(self) -> bool:
        return self.spark.startswith("sc://")

    def _settings(self, spark: str) -> dict[str, str]:
        from dqx_airflow.diagnostics.templates import filled
        from dqx_airflow.engine.session.java import java_environment

        transport = {"type": "file", "log_file_path": str(self.lineage), "append": True}
        text = filled(
            __package__,
            "environment.txt",
            home=self,
            dags=shipped("dags_examples"),
            transport=json.dumps(transport),
            python=sys.executable,
            spark=spark,
        )
        settings = (line.split("=", 1) for line in text.splitlines() if not line.startswith("#"))
        return {**dict(settings), **java_environment()}


def programs() -> Path:
    """The folder with `airflow` and `spark-submit` of this environment."""
    return Path(sys.executable).parent
