"""SQL that a user writes is evaluated in the mode that the run declares, or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dqx_airflow.api.contract import ContractValidator
from dqx_airflow.api.database import SparkDatabase
from dqx_airflow.api.suite import Suite
from dqx_airflow.engine.job import run_gates
from dqx_airflow.results.runs import find_report
from dqx_airflow.values import GateReport, Outcome, Status
from dqx_airflow.values.request import ANSI
from tests.connect_server import connect_server
from tests.engine.lake import Run, delta, request
from tests.processes import PROGRAMS, ended, environment

pytestmark = pytest.mark.spark

CODES = pa.table(
    {
        "code": ["1", "x873", "3"],
        "big": pa.array([1, 2**31 - 1, 3], pa.int32()),
        "zero": pa.array([1, 0, 1], pa.int32()),
    }
)
SUITE = """suite "Codes" {
  check "Codes" on codes {
    assert sql("sum(cast(code as int))") > 0 name "cast"
    assert sql("sum(big / zero)") > 0 name "division"
    assert query("SELECT count(*) FROM codes WHERE big + 1 > 0") >= 2 name "overflow"
    assert query("SELECT count(*) FROM codes WHERE code = 0") == 0 name "compared"
    assert num_rows() == 3 name "own"
    assert each row: big + 1 > 0 name "arithmetic"
  }
  check "Filtered" on filtered { assert num_rows() > 0 name "filtered" }
  check "Queried" on queried { assert num_rows() > 0 name "queried" }
}"""
OF_SQL = ("cast", "division", "overflow", "compared", "filtered", "queried")
CONTRACT = """
dataContractSpecification: 1.2.1
id: codes
info: {title: Codes, version: 1.0.0, owner: team}
models:
  codes:
    fields: {code: {type: string}}
    quality:
      - {type: sql, query: "SELECT sum(cast(code AS int)) FROM codes", mustBeGreaterThan: 0}
"""


@contextmanager
def ansi(spark: Any, mode: str) -> Iterator[None]:
    spark.conf.set("spark.sql.ansi.enabled", mode)
    try:
        yield
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")


def codes(folder: Path) -> tuple[Any, ...]:
    ref = delta(folder, "codes", CODES)
    filtered = replace(ref, name="filtered", filter="cast(code AS int) >= 0")
    queried = replace(
        ref, name="queried", path=None, format="delta", query="SELECT cast('x' AS int) AS a"
    )
    return ref, filtered, queried


def reasons(report: GateReport) -> dict[str, str]:
    return {
        verdict.name: verdict.reason or ""
        for verdict in report.verdicts
        if verdict.status is Status.ERROR
    }


def test_a_session_of_our_own_is_in_ansi_mode(spark: Any) -> None:
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"


@pytest.mark.more
def test_sql_in_a_session_without_ansi_mode_is_an_error_unless_that_is_declared(
    spark: Any, run: Run, tmp_path: Path
) -> None:
    gate = request(tmp_path, SUITE, codes(tmp_path), allow_empty=True)
    with ansi(spark, "false"):
        refused = run(gate)
        days = run_gates(
            [gate, replace(gate, run_key=replace(gate.run_key, date=date(2024, 1, 1)))],
            lambda _: spark,
        )
        declared = run(replace(gate, ansi=False))
    assert refused.outcome is Outcome.BROKEN
    for report in (refused, *days):
        found = reasons(report)
        assert set(found) == set(OF_SQL), found
        for reason in found.values():
            assert "spark.sql.ansi.enabled=true" in reason
            assert "ansi=False" in reason
    # What each of them passes over without a word is why.
    assert set(reasons(declared)) == set()
    assert (refused.ansi, declared.ansi, declared.spark_version) == (False, False, spark.version)
    stored = find_report(gate.results_root, declared.run_id)
    assert stored is not None
    assert (stored.ansi, stored.spark_version) == (False, spark.version)

    strict = run(gate)
    assert strict.ansi is True
    assert "CAST_INVALID_INPUT" in reasons(strict)["cast"]
    wrong = run(replace(gate, ansi=False))
    assert set(reasons(wrong)) == set(OF_SQL)
    assert "spark.sql.ansi.enabled=false" in reasons(wrong)["cast"]


def test_in_python_too(spark: Any, tmp_path: Path) -> None:
    ref = codes(tmp_path)[0]
    text = (
        'suite "S" { check "C" on codes { assert sql("sum(cast(code as int))") > 0 name "cast" } }'
    )
    contract = tmp_path / "codes.yaml"
    contract.write_text(CONTRACT, encoding="utf-8")
    frame = spark.createDataFrame([("1",), ("x873",)], "code string")
    with ansi(spark, "false"):
        run = Suite.from_string(text).run
        database = SparkDatabase(spark, {"codes": ref})
        assert "ANSI mode is off" in reasons(run(database, date(2024, 1, 2)).report)["cast"]
        assert run(database, date(2024, 1, 2), ansi=False).outcome is Outcome.PASSED
        validator = ContractValidator(contract)
        refused = validator.validate(frame)
        assert "ANSI mode is off" in "\n".join(refused["quality_errors"])
        assert validator.validate(frame, ansi=False)["valid"]


@pytest.mark.nightly
@pytest.mark.parametrize("by", ["spark-defaults.conf", "a Connect server"])
def test_the_configuration_of_a_cluster_does_not_change_the_mode_of_a_session_of_our_own(
    by: str, tmp_path: Path
) -> None:
    path = codes(tmp_path)[0].path
    suite = tmp_path / "codes.dql"
    suite.write_text(SUITE[: SUITE.index('  check "Filtered"')] + "}", encoding="utf-8")
    call = [str(PROGRAMS / "dql"), "run", str(suite), "--date", "2024-01-02", "--format", "json"]
    call += ["--dataset", f"codes={path}"]
    with ExitStack() as stack:
        settings = environment()
        if by == "a Connect server":
            call += ["--connection", stack.enter_context(connect_server(tmp_path, f"{ANSI}=false"))]
        else:
            (tmp_path / "spark-defaults.conf").write_text(f"{ANSI} false\n", encoding="utf-8")
            settings["SPARK_CONF_DIR"] = str(tmp_path)
        done = [ended([*call, *more], env=settings, cwd=tmp_path) for more in ([], ["--no-ansi"])]
    refused, declared = (json.loads(run.stdout) for run in done)
    wrong = {item["assertion"]: item["reason"] for item in refused["verdicts"] if item["reason"]}
    assert set(wrong) == {"cast", "division", "overflow", "compared"}, done[0].stderr
    assert "CAST_INVALID_INPUT" in wrong["cast"]
    assert [refused["ansi"], declared["ansi"]] == [True, False]
    assert not any(item["status"] == "error" for item in declared["verdicts"]), done[1].stderr
