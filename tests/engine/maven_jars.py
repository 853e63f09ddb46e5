"""Jars that are not part of the package, fetched with Maven once and kept for the next run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pyspark
import pytest

SPARK = ".".join(pyspark.__version__.split(".")[:2])
FOLDER = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "dqx-airflow" / "jars"

DELTA = (
    f"io.delta:delta-spark_{SPARK}_2.13:4.4.0",
    *(f"io.delta:delta-{name}:4.4.0" for name in ("storage", "kernel-api", "kernel-defaults")),
    "io.delta:delta-kernel-unitycatalog:4.4.0",
)
AVRO = f"org.apache.spark:spark-avro_2.13:{pyspark.__version__}"
AVRO_BEFORE = "org.apache.spark:spark-avro_2.13:4.1.1"
ICEBERG = f"org.apache.iceberg:iceberg-spark-runtime-{SPARK}_2.13:RELEASE"

_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


def jars(*artifacts: str) -> str:
    """The paths of the jars, as spark-submit takes them; skips the test if they cannot be had."""
    return ",".join(str(_fetched(artifact)) for artifact in artifacts)


def any_jar(*artifacts: str) -> str:
    """The first of some jars that can be had, from the best to the worst."""
    *better, last = artifacts
    for artifact in better:
        try:
            return jars(artifact)
        except pytest.skip.Exception:
            continue
    return jars(last)


def _fetched(artifact: str) -> Path:
    _, name, version = artifact.split(":")
    found = sorted(FOLDER.glob(f"{name}-{'*' if version == 'RELEASE' else version}.jar"))
    if found:
        return found[-1]
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip(f"{artifact} is not there, and neither is Maven to fetch it")
    FOLDER.mkdir(parents=True, exist_ok=True)
    call = [maven, "-B", "-q", _COPY, f"-Dartifact={artifact}", f"-DoutputDirectory={FOLDER}"]
    done = subprocess.run(call, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode != 0:
        pytest.skip(f"Maven cannot fetch {artifact}")
    return sorted(FOLDER.glob(f"{name}-*.jar"))[-1]
