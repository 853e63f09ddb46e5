"""The archive of the classes that the JVM of a gate loads, with which a driver starts faster.

A JVM writes it while it runs a typical gate.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

from dqx_airflow.datasets.jvm_options import DRIVER_OPTIONS, for_a_short_life, while_archiving
from dqx_airflow.engine.session.java import java_environment
from dqx_airflow.errors import SparkError
from dqx_airflow.values import Attempt, DatasetRef, GateRequest, RunKey, SourceFile
from dqx_airflow.values.files import replacing, shipped
from dqx_airflow.values.json_form import to_arguments

_TODAY = date(2024, 5, 17)
_ROWS = 2000
_TAIL = 10
_JVM_MESSAGE = re.compile(r"^\[[\d.]+s\]\[\w+ *\]\[cds.*?\] *(.*)$", re.M)


def write_archive(path: Path) -> int:
    """Writes the archive atomically and returns its size: an incomplete one would crash a JVM.

    :raises SparkError: Spark did not run, or its Java does not support archives.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder, replacing(path) as made:
        output = _run_gate(typical_request(Path(folder)), while_archiving(str(made)))
        if not made.is_file():
            messages = _JVM_MESSAGE.findall(output)
            raise SparkError(
                f"Java wrote no archive: {messages[-1] if messages else 'no reason given'}",
                "a Java without a base archive makes one by `java -Xshare:dump`; SPARK_CONF_DIR "
                "must be empty or missing, since Java takes no folders with files into an archive",
            )
    return path.stat().st_size


def typical_request(folder: Path) -> GateRequest:
    """The request of a typical gate, with its data in a folder."""
    suite = Path(__file__).with_name("typical.dql")
    _write_tables(folder)
    return GateRequest(
        run_key=RunKey("typical", _TODAY, "archive"),
        attempt=Attempt(1, "archive"),
        suite=SourceFile(suite.name, suite.read_text(encoding="utf-8")),
        datasets=(
            DatasetRef("orders", str(folder / "orders"), date_column="ds"),
            DatasetRef("countries", str(folder / "countries")),
        ),
        results_root=str(folder / "results"),
    )


def _write_tables(folder: Path) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    numbers = range(_ROWS)
    noon = datetime(_TODAY.year, _TODAY.month, _TODAY.day, 12, tzinfo=timezone.utc)
    money = pa.decimal128(18, 2)
    orders = {
        "id": pa.array(numbers, pa.int64()),
        "code": pa.array([f"A{number:04}" for number in numbers]),
        "country": pa.array([("CH", "DE", "FR")[number % 3] for number in numbers]),
        "email": pa.array([f"{number}@example.com" if number % 5 else None for number in numbers]),
        "amount": pa.array([float(number % 900) for number in numbers]),
        "price": pa.array([Decimal(number % 900) for number in numbers], money),
        "ordered_at": pa.array([noon + timedelta(seconds=number) for number in numbers]),
        "ds": pa.array([_TODAY - timedelta(days=number % 2) for number in numbers]),
    }
    write_deltalake(str(folder / "orders"), pa.table(orders), partition_by=["ds"])
    countries = pa.table({"code": ["CH", "DE", "FR"]})
    write_deltalake(str(folder / "countries"), countries)


def _run_gate(request: GateRequest, options: str) -> str:
    """Runs the gate like an operator, and returns its output with the output of its JVM."""
    path = os.environ.get("PATH", os.defpath)
    if shutil.which("spark-submit") is None:
        path = os.pathsep.join([str(Path(sys.executable).parent), path])
    program = shutil.which("spark-submit", path=path)
    if program is None:
        raise SparkError("program 'spark-submit' not found", "pip install 'dqx-airflow[spark]'")
    conf = {DRIVER_OPTIONS: options, "spark.pyspark.driver.python": sys.executable}
    settings = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    env = {**os.environ, **java_environment(), "PATH": path, "OPENLINEAGE_DISABLED": "true"}
    job = [str(shipped("spark_jobs/gate_job.py")), *to_arguments(request)]
    done = subprocess.run(  # noqa: S603 (our own job, no shell)
        [program, "--master", "local[2]", *settings, *job],
        env={**env, **for_a_short_life(env)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        tail = "\n".join(done.stdout.strip().splitlines()[-_TAIL:])
        raise SparkError(f"the gate that is to be archived failed:\n{tail}", "try `dql doctor`")
    return done.stdout
