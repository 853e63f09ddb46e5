"""The warm-up of a JVM only loads classes, and its list matches the pinned Spark."""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from gate_classes import loaded_classes

from dqx_airflow.engine.session.launch import PORT, SECRET, class_names, starter_of, warm_up
from tests.processes import environment, free_port, output_of
from tests.quick_jvm import QUICK_JVM

LOADED = re.compile(r"\[class,load *\] (\S+) source: \S+\.jar\b")
INITIALIZED = re.compile(r"\[class,init *\] \d+ Initializing '(\S+)'")
# The first class that the JVM needs when Python has come up and calls it.
PYTHON_IS_UP = "py4j.ClientServerConnection"

A_FEW = """
import os
from dqx_airflow.engine.session.launch import starter_of, warm_up
names = ["no.such.Name", "org.apache.spark.ml.Pipeline$", "", "org.apache.spark.ml.PipelineModel$"]
working = warm_up(starter_of(os.environ), "\\n".join(names))
working.join(60)
assert not working.is_alive()
"""

BY_HAND = """
import os, threading
from dqx_airflow.datasets.spark_address import connection_of
from dqx_airflow.engine.session.connection import open_session
from dqx_airflow.engine.session.launch import THREAD
for name in ("first", "second"):
    spark = open_session(connection_of("local[1]"), name, {"spark.sql.shuffle.partitions": "3"})
    found = (spark.sparkContext.appName, spark.conf.get("spark.sql.shuffle.partitions"))
    assert found == (name, "3")
    for working in threading.enumerate():
        if working.name == THREAD:
            working.join(60)
    spark.stop()
"""


def submit(folder: Path, job: str, *arguments: str, options: str = QUICK_JVM) -> str:
    """What the JVM notes of its classes while a job runs."""
    program, log = folder / "job.py", folder / "classes.log"
    program.write_text(job)
    python = f"spark.pyspark.driver.python={sys.executable}"
    output_of(
        ["spark-submit", "--master", "local[2]", "--conf", python, str(program), *arguments],
        env=environment(SPARK_SUBMIT_OPTS=f"-Xlog:class+load,class+init:file={log}:tags {options}"),
    )
    return log.read_text(encoding="utf-8")


@pytest.mark.e2e
@pytest.mark.spark
def test_classes_are_loaded_and_not_initialized(tmp_path: Path) -> None:
    log = submit(tmp_path, A_FEW)
    for name in ("org.apache.spark.ml.Pipeline$", "org.apache.spark.ml.PipelineModel$"):
        assert name in LOADED.findall(log)
        assert name.replace(".", "/") not in INITIALIZED.findall(log)
    begun = INITIALIZED.findall(log[log.index(PYTHON_IS_UP) :])
    for name in ("scala/reflect/runtime/JavaUniverse", "org/codehaus/janino/UnitCompiler"):
        assert name in begun
    of_sql = {name.partition("$")[0] for name in begun if name.startswith("org/apache/spark/sql/")}
    parser = "org/apache/spark/sql/catalyst/parser/SqlBase"
    assert of_sql == {f"{parser}Lexer", f"{parser}Parser"}


@pytest.mark.e2e
@pytest.mark.spark
def test_a_jvm_that_python_starts_works_ahead_too(tmp_path: Path) -> None:
    log = tmp_path / "classes.log"
    output_of(
        [sys.executable, "-c", BY_HAND],
        env=environment(SPARK_SUBMIT_OPTS=f"{QUICK_JVM} -Xlog:class+init:file={log}:tags"),
    )
    assert "org/codehaus/janino/UnitCompiler" in INITIALIZED.findall(log.read_text())


@pytest.mark.e2e
@pytest.mark.spark
def test_a_jvm_with_an_archive_has_its_classes(tmp_path: Path) -> None:
    archive = f"-XX:SharedArchiveFile={tmp_path}/none.jsa -Xshare:auto"
    log = submit(tmp_path, A_FEW, options=f"{QUICK_JVM} {archive}")
    assert "org.apache.spark.ml.Pipeline$" not in LOADED.findall(log)
    assert PYTHON_IS_UP in LOADED.findall(log)


def test_a_process_that_no_jvm_started_knows_none() -> None:
    assert starter_of({}) is None


def test_a_lost_jvm_is_ignored() -> None:
    gone = starter_of({PORT: str(free_port()), SECRET: "secret"})
    assert gone is not None
    working = warm_up(gone, "java.lang.String")
    working.join(60)
    assert not working.is_alive()


@pytest.mark.slow
def test_the_classes_of_the_list_are_in_the_jars_of_spark() -> None:
    names = class_names().splitlines()
    assert len(names) == len({*names})
    there = {*classes_in_jars()}
    missing = [name for name in names if name not in there]
    assert len(missing) < 0.01 * len(names), missing


def classes_in_jars() -> Iterator[str]:
    import pyspark

    for jar in Path(pyspark.__file__).with_name("jars").glob("*.jar"):
        for entry in zipfile.ZipFile(jar).namelist():
            if entry.endswith(".class"):
                yield entry.removesuffix(".class").replace("/", ".")


@pytest.mark.nightly
@pytest.mark.spark
def test_the_list_is_what_a_gate_loads(tmp_path: Path) -> None:
    needed = {*loaded_classes(tmp_path)}
    listed = {*class_names().splitlines()}
    both = len(listed & needed)
    assert both > 0.95 * len(needed)
    assert both > 0.95 * len(listed)
