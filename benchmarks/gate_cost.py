"""Measures the cost of one gate in Spark: jobs, stages, tasks and bytes read, from the event
log."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from datetime import date
from pathlib import Path

from dqx_airflow.cli.demo.home import DemoHome
from dqx_airflow.values import Attempt, DatasetRef, GateRequest, RunKey, SourceFile
from dqx_airflow.values.files import shipped
from dqx_airflow.values.json_form import to_arguments

RUNS = 5
HOME = DemoHome(Path(".dqx/demo").resolve())


def arguments(results: str) -> list[str]:
    suite = shipped("dags_examples/suites/flights_bronze.dql")
    bronze = HOME.lake / "bronze"
    references = [
        DatasetRef(name, str(bronze / name)) for name in ("airports", "airlines", "planes")
    ]
    request = GateRequest(
        run_key=RunKey("benchmark", date(2013, 6, 12), "manual"),
        attempt=Attempt(1, str(uuid.uuid4())),
        suite=SourceFile(suite.name, suite.read_text(encoding="utf-8")),
        datasets=(
            DatasetRef("flights", str(bronze / "flights"), date_column="flight_date"),
            *references,
        ),
        results_root=results,
    )
    return [str(shipped("spark_jobs/gate_job.py")), *to_arguments(request)]


def submit(application: list[str], log: Path) -> float:
    conf = {
        "spark.log.level": "ERROR",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": str(log),
    }
    told = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    started = time.perf_counter()
    subprocess.run(
        ["spark-submit", "--master", "local[2]", *told, *application],
        env=HOME.environment(),
        check=True,
        capture_output=True,
    )
    return time.perf_counter() - started


def count(log: Path) -> dict[str, int]:
    found = {"jobs": 0, "stages": 0, "tasks": 0, "bytes read": 0, "rows read": 0}
    for file in log.iterdir():
        for line in file.read_text(encoding="utf-8").splitlines():
            event = json.loads(line)
            kind = event["Event"]
            found["jobs"] += kind == "SparkListenerJobStart"
            found["stages"] += kind == "SparkListenerStageCompleted"
            if kind == "SparkListenerTaskEnd":
                found["tasks"] += 1
                read = event.get("Task Metrics", {}).get("Input Metrics", {})
                found["bytes read"] += read.get("Bytes Read", 0)
                found["rows read"] += read.get("Records Read", 0)
    return found


def main() -> None:
    if not (HOME.lake / "bronze" / "flights").exists():
        sys.exit("run `dql demo` first, in this folder")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        empty = root / "empty.py"
        empty.write_text(
            "from pyspark.sql import SparkSession\nSparkSession.builder.getOrCreate().stop()\n"
        )
        gates, bare = [], []
        for number in range(RUNS):
            logs = root / f"gate{number}", root / f"empty{number}"
            for log in logs:
                log.mkdir()
            gates.append(submit(arguments(str(root / "results")), logs[0]))
            bare.append(submit([str(empty)], logs[1]))
        for name, number in count(root / "gate0").items():
            print(f"{name:<12} {number:>10,}")
        print(f"{'gate':<12} {statistics.median(gates):>10.1f} s")
        print(f"{'empty job':<12} {statistics.median(bare):>10.1f} s")
        ratio = statistics.median(gate / none for gate, none in zip(gates, bare, strict=True))
        print(f"{'ratio':<12} {ratio:>10.2f}")


if __name__ == "__main__":
    main()
