"""Imports an engine and opens its session, in the environment of the engine."""

from __future__ import annotations

import argparse
import importlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from measuring import JVM, submit_with
from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Opened:
    """`engine` is a module of benchmarks/peers/engines."""

    engine: ModuleType
    spark: Any
    import_s: float
    session_s: float


def arguments(description: str | None) -> argparse.ArgumentParser:
    """The arguments of every program that opens an engine."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("engine", help="a module of benchmarks/peers/engines")
    parser.add_argument("table", help="the path of the parquet table")
    parser.add_argument("--settings", default="{}", help="of the session, as JSON")
    parser.add_argument("--jar", help="what the engine needs beside Spark's own jars")
    return parser


@contextmanager
def opened(options: argparse.Namespace) -> Iterator[Opened]:
    started = time.perf_counter()
    engine = importlib.import_module(f"engines.{options.engine}")
    imported = time.perf_counter()
    jar = {"spark.jars": options.jar} if options.jar else {}
    submit_with({**JVM, **json.loads(options.settings), **jar})
    spark = SparkSession.builder.appName("benchmark").getOrCreate()
    session_s = time.perf_counter() - imported
    try:
        yield Opened(engine, spark, round(imported - started, 3), round(session_s, 3))
    finally:
        # PyDeequ opens a callback server, whose thread would keep this process alive.
        spark.sparkContext._gateway.shutdown_callback_server()
