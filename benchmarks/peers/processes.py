"""Runs engines as processes with the same settings and a time limit, and reads their JSON lines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from peers.environments import Interpreter

SAME_FOR_ALL = ("spark.sql.", "spark.ui.")
OURS_ALONE = ("spark.sql.ansi.enabled", "spark.sql.warehouse.dir")
"""Deequ fails in ANSI mode, which is not the default of its Spark."""


def session_settings(spark: Any) -> dict[str, str]:
    """The settings of our own session, which all engines get."""
    told = dict(spark.sparkContext.getConf().getAll())
    same = {key: value for key, value in told.items() if key.startswith(SAME_FOR_ALL)}
    return {key: value for key, value in same.items() if key not in OURS_ALONE}


def told_by(
    found: Interpreter,
    program: Path,
    arguments: Sequence[str],
    settings: Mapping[str, str],
    jvm: Mapping[str, str],
    limit_s: float,
) -> tuple[list[dict[str, Any]], str | None]:
    """The lines that the program printed, and why it ended early, or None if it did not.

    After the limit it is killed, and its JVM with it.
    """
    command = [str(found.python), str(program), *arguments]
    command += ["--settings", json.dumps(dict(settings))]
    command += ["--jar", str(found.jar)] if found.jar else []
    environment = {**os.environ, **found.variables}
    environment |= {"PYSPARK_PYTHON": str(found.python), "SPARK_LOCAL_IP": "127.0.0.1", **jvm}
    complaint = None
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        try:
            out, err = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            complaint = f"not done after {limit_s:g} seconds"
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    lines = [json.loads(line) for line in out.splitlines() if line.startswith('{"')]
    if complaint is None and (process.returncode or not lines):
        complaint = "\n".join(err.strip().splitlines()[-3:]) or f"ended with {process.returncode}"
    return lines, complaint
