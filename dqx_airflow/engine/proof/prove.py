"""Runs the conformance cases on a Spark, and finds the values that differ."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dqx_airflow.engine.measure import measure_together
from dqx_airflow.engine.proof.cases import ProofCase, frame_of, proof_cases
from dqx_airflow.engine.proof.differences import doubts_of
from dqx_airflow.engine.proof.engine_key import KnownEngine, engine_key
from dqx_airflow.engine.session.concurrency import side_by_side
from dqx_airflow.engine.session.spark_versions import context_of, has_types_since
from dqx_airflow.values import Difference, EngineProof
from dqx_airflow.values.engine_proof import ERROR

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of cases that were run, and of all."""

_FOR_FEW_ROWS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}


def prove(
    spark: SparkSession,
    folder: Path | None,
    progress: Progress,
    cases: Sequence[ProofCase] = proof_cases(),
) -> EngineProof:
    """Runs cases on an engine, and compares its values with the expected values.

    :param folder: a folder for files that this process and Spark both see; without it the cases
        with files are not tried.
    :raises SparkError: Spark was lost, or hides its settings.
    """
    key, engine = engine_key(spark)
    if context_of(spark) is None:
        # A server has a minute: each of these queries would be compiled, and its ten rows would be
        # divided into hundreds of partitions, in jobs of their own.
        for name, value in _FOR_FEW_ROWS.items():
            spark.conf.set(name, value)
    lock = Lock()
    ended = [0]
    results: dict[ProofCase, tuple[str, ...] | str] = {}

    def run(case: ProofCase) -> None:
        found = _run(spark, case, cases.index(case), folder)
        with lock:
            results[case] = found
            ended[0] += 1
            progress(ended[0], len(cases))

    side_by_side(spark, run, cases)
    return _summary(key, engine, cases, results)


def _run(
    spark: SparkSession, case: ProofCase, number: int, folder: Path | None
) -> tuple[str, ...] | str:
    """The value of each line of a case, or the reason why the case was not tried."""
    if case.since is not None and not has_types_since(spark, case.since):
        return f"needs Spark {case.since}"
    if folder is None and any(block.kind == "csv" for block in case.blocks):
        return "Spark sees no folder of this machine"
    own = folder and folder / str(number)
    if own is not None:
        own.mkdir()
    tables, given = case.tables(own)
    refs = []
    try:
        for ref in given:
            if ref.table is not None:
                view = f"dqx_proof_{number}_{ref.name}"
                frame_of(spark, tables[ref.name]).createOrReplaceTempView(view)
                refs.append(replace(ref, table=view))
            else:
                refs.append(ref)
    except (PySparkException, TypeError, ValueError) as error:
        reason = f"{ERROR}its tables cannot be made: {type(error).__name__}"
        return tuple(reason for _ in case.lines)
    plan = case.plan(tuple(refs))
    _, (scanned,) = measure_together(spark, refs, [plan], engine=KnownEngine())
    return case.found(plan, scanned)


def _summary(
    key: str,
    engine: dict[str, Any],
    cases: Sequence[ProofCase],
    results: dict[ProofCase, tuple[str, ...] | str],
) -> EngineProof:
    agreeing = 0
    differences: list[Difference] = []
    untried: dict[str, int] = {}
    tried: dict[ProofCase, tuple[str, ...]] = {}
    for case in cases:
        found = results[case]
        if isinstance(found, str):
            untried[found] = untried.get(found, 0) + len(case.lines)
            continue
        tried[case] = found
        for (claim, due), value in zip(case.lines, found, strict=True):
            if value == due or (value.startswith(ERROR) and due.startswith(ERROR)):
                agreeing += 1
            else:
                differences.append(Difference(str(case), claim, due, value))
    return EngineProof(
        key=key,
        engine=json.dumps(engine, sort_keys=True),
        spark_version=str(engine["spark"]),
        at=datetime.now(timezone.utc),
        agreeing=agreeing,
        differences=tuple(differences),
        doubts=doubts_of(tried),
        untried=tuple(sorted(untried.items())),
    )
