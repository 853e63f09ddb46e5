"""Random tables and suites: Spark against exact Python and DuckDB, over four runs.

A first run, a rerun on stored states, a run after rows were appended, and one that recomputes. The
bounds of most claims lie one unit of the last digit beside the value.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from dqx_airflow.dql.check import check_source
from dqx_airflow.engine.job import run_gates
from dqx_airflow.values import DatasetRef, GateReport, SourceFile
from tests.attacks.attack_gates import gate_request
from tests.attacks.exact_tables import (
    EXACT,
    SCHEMA,
    TODAY,
    YESTERDAY,
    Claim,
    Row,
    as_arrow,
    random_claims,
    random_rows,
)

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

SEEDS = range(40)
KINDS = ["partitioned Delta", "plain Delta", "Parquet"]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_gate_agrees_with_exact_arithmetic(
    seed: int, spark: Any, tmp_path: Path, attack: Callable[[str], Any]
) -> None:
    random = Random(seed)
    kind = KINDS[seed % len(KINDS)]
    before = random_rows(random, random.choice([1, 7, 40]), YESTERDAY)
    rows = random_rows(random, random.choice([1, 3, 50, 400]), TODAY)
    tally = attack("differential fuzz: assertions of gates")
    _append(tmp_path / "t", before + rows, kind, part=0)

    def judged(now: list[Row], step: str, **changes: Any) -> None:
        claims = [claim for claim in random_claims(Random(seed), now, before) if _is_sound(claim)]
        report = _gate(spark, tmp_path, claims, kind, **changes)
        for number, claim in enumerate(claims):
            verdict = next(item for item in report.verdicts if item.name == f"c{number}")
            tally.tried(
                verdict.status.value == ("passed" if claim.holds else "failed"),
                f"seed {seed}, {kind}, {step}: `{claim.text}` is {claim.holds}, the gate says "
                f"{verdict.status} ({verdict.value!r}, {verdict.reason})",
            )

    _same_for_duckdb(rows)
    judged(rows, "first run")
    judged(rows, "rerun")
    more = random_rows(random, random.choice([1, 20]), TODAY)
    _append(tmp_path / "t", more, kind, part=1)
    judged(rows + more, "after an append")
    judged(rows + more, "recomputed", recompute=True)


def _is_sound(claim: Claim) -> bool:
    """False where the language sees that a claim can never fail or never pass (`count < 0`)."""
    text = f'suite "S" {{ check "C" on t {{ assert {claim.text} name "n" }} }}'
    return not check_source(SourceFile("claim.dql", text)).diagnostics


def _append(path: Path, rows: list[Row], kind: str, part: int) -> None:
    table = as_arrow(rows)
    if kind == "Parquet":
        path.mkdir(exist_ok=True)
        pq.write_table(table, path / f"{part}.parquet")
        return
    partitions = ["ds"] if kind == "partitioned Delta" else None
    write_deltalake(str(path), table, mode="append", partition_by=partitions)


def _gate(spark: Any, folder: Path, claims: list[Claim], kind: str, **changes: Any) -> GateReport:
    lines = "\n".join(
        f'assert {claim.text} name "c{number}"' for number, claim in enumerate(claims)
    )
    suite = f'suite "Fuzz" {{ check "All" on t {{\n{lines}\n}} }}'
    ref = DatasetRef(
        "t",
        path=str(folder / "t"),
        format="parquet" if kind == "Parquet" else "delta",
        date_column="ds",
    )
    return run_gates(
        [gate_request(folder, suite, [ref], sample_rows=0, **changes)], lambda _: spark
    )[0]


def _same_for_duckdb(rows: list[Row]) -> None:
    """The sums, extremes and counts of the exact Python are those of DuckDB as well."""
    table = as_arrow(rows)
    connection = duckdb.connect()
    connection.register("t", table)
    for column in EXACT:
        values = [row[column] for row in rows if row[column] is not None]
        wide = column if pa.types.is_decimal(SCHEMA.field(column).type) else f"{column}::HUGEINT"
        query = f"SELECT count({column}), sum({wide}), min({column}), max({column}), "
        found = connection.execute(query + f"count(DISTINCT {column}) FROM t").fetchone()
        expected = (
            len(values),
            sum(values) if values else None,
            min(values, default=None),
            max(values, default=None),
            len(set(values)),
        )
        assert found == expected, column
