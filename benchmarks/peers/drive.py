"""Lets one engine judge a table, in a JVM of its own, and prints what that took as a line of JSON.

Runs in the environment of the engine, which has neither this project nor the other engines. The
clock starts when the engine is imported and the session open, and stops at the last verdict.

    python benchmarks/peers/drive.py ENGINE TABLE [--warm RUNS] [--faulty TABLE]
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import sys
import time
from dataclasses import asdict
from pathlib import Path

from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).parents[1]))

from measuring import JVM, java_version, run_of, submit_with
from workload import CHECKS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("engine", help="a module of benchmarks/peers/engines")
    parser.add_argument("table", help="the path of the parquet table")
    parser.add_argument("--warm", type=int, default=1, help="how often, after the first run")
    parser.add_argument("--faulty", help="another table, to be judged once at the end")
    parser.add_argument("--settings", default="{}", help="of the session, as JSON")
    parser.add_argument("--jar", help="what the engine needs beside Spark's own jars")
    options = parser.parse_args()

    started = time.perf_counter()
    judge = importlib.import_module(f"engines.{options.engine}").judge
    imported = time.perf_counter()
    jar = {"spark.jars": options.jar} if options.jar else {}
    submit_with({**JVM, **json.loads(options.settings), **jar})
    spark = SparkSession.builder.appName("benchmark").getOrCreate()
    opened = time.perf_counter()

    def judged(table: str) -> dict[str, bool]:
        """Only what was asked: we for one also look whether there are any rows."""
        return {name: holds for name, holds in judge(spark, table).items() if name in CHECKS}

    first, verdicts = run_of(spark, lambda: judged(options.table))
    warm = [run_of(spark, lambda: judged(options.table))[0] for _ in range(options.warm)]
    faulty = judged(options.faulty) if options.faulty else {}
    told = {
        "import_s": round(imported - started, 3),
        "session_s": round(opened - imported, 3),
        "first": asdict(first),
        "warm": [asdict(run) for run in warm],
        "verdicts": {"sound": verdicts, "faulty": faulty},
        "spark": spark.version,
        "java": java_version(spark),
        "python": platform.python_version(),
    }
    print(json.dumps(told), flush=True)
    # PyDeequ opens one, and its thread would keep this process for ever.
    spark.sparkContext._gateway.shutdown_callback_server()


if __name__ == "__main__":
    main()
