"""Compares the time to import the operator with the time to import SparkSubmitOperator alone."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

PAIRS = 11
OURS = "from dqx_airflow.operators import DqlGateOperator"
THEIRS = "from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator"


def seconds(statement: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - started


def main() -> None:
    for statement in (OURS, THEIRS):
        seconds(statement)  # warms the file cache
    pairs = [(seconds(OURS), seconds(THEIRS)) for _ in range(PAIRS)]
    ratios = sorted(ours / theirs for ours, theirs in pairs)
    for name, column in (("DqlGateOperator", 0), ("SparkSubmitOperator", 1)):
        print(f"{name:<20} {statistics.median(pair[column] for pair in pairs):.3f} s")
    spread = f"({ratios[0]:.3f} to {ratios[-1]:.3f})"
    print(f"ratio                {statistics.median(ratios):.3f} {spread}")


if __name__ == "__main__":
    main()
