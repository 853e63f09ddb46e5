"""Jars that are not part of the package, fetched once with Maven and kept for later runs."""

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
POSTGRES = "org.postgresql:postgresql:42.7.14"
MYSQL = "com.mysql:mysql-connector-j:9.4.0"
AVRO = f"org.apache.spark:spark-avro_2.13:{pyspark.__version__}"
AVRO_BEFORE = "org.apache.spark:spark-avro_2.13:4.1.1"
SPARK_OF_ICEBERG = "4.1.1"
"""The newest that Iceberg has a runtime for."""
ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"

_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>tests</groupId><artifactId>tests</artifactId><version>1</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY = """
    <dependency>
      <groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
    </dependency>"""


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


def with_all_they_need(*artifacts: str) -> Path:
    """A folder with some jars and those that they require, for a program of its own."""
    folder = FOLDER / "-".join(artifacts[0].split(":")[1:])
    pom, done = folder / "pom.xml", folder / "lib"
    text = _POM.format(
        dependencies="".join(_DEPENDENCY.format(*one.split(":")) for one in artifacts)
    )
    if not done.exists() or pom.read_text() != text:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        pom.write_text(text)
        target = folder / "partial"
        _run_maven("copy-dependencies", "-f", str(pom), f"-DoutputDirectory={target}")
        target.rename(done)
    return done


def _fetched(artifact: str) -> Path:
    _, name, version = artifact.split(":")
    found = sorted(FOLDER.glob(f"{name}-{'*' if version == 'RELEASE' else version}.jar"))
    if found:
        return found[-1]
    FOLDER.mkdir(parents=True, exist_ok=True)
    _run_maven("copy", f"-Dartifact={artifact}", f"-DoutputDirectory={FOLDER}")
    return sorted(FOLDER.glob(f"{name}-*.jar"))[-1]


def _run_maven(goal: str, *arguments: str) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip(f"there is no Maven to {goal} {' '.join(arguments)}")
    call = [maven, "-B", "-q", f"{_PLUGIN}:{goal}", *arguments]
    done = subprocess.run(call, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode != 0:
        pytest.skip(f"Maven cannot {goal} {' '.join(arguments)}")
