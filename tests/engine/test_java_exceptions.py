"""A Java exception in one aggregate is an error of that assertion, whatever its class."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dqx_airflow.engine.job import try_gates
from dqx_airflow.engine.session.spark_errors import spark_failures
from dqx_airflow.errors import SparkError
from dqx_airflow.plan import passes
from dqx_airflow.values import DatasetRef, GateReport, Outcome, Verdict
from tests.engine.lake import request
from tests.job_count import jobs_so_far

pytestmark = [pytest.mark.spark, pytest.mark.compiled]

Gate = Callable[..., GateReport]

OTHERS = "\n".join(f'assert maximum(id) + {n} == {n + 2} name "other {n}"' for n in range(12))


@pytest.fixture
def gate(spark: Any, tmp_path: Path) -> Gate:
    pq.write_table(pa.table({"id": [1, 2], "form": ["%d", "%q"]}), tmp_path / "t")
    ref = DatasetRef("orders", str(tmp_path / "t"), format="parquet")

    def run(body: str, ref: DatasetRef = ref) -> GateReport:
        return try_gates([request(tmp_path, body, [ref])], lambda _: spark)[0]

    return run


def verdicts(report: GateReport) -> dict[str, Verdict]:
    return {verdict.name: verdict for verdict in report.verdicts}


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("max(format_string('%q', id))", "UnknownFormatConversionException [JAVA_EXCEPTION] C"),
        ("max(CAST(form AS INT))", "[CAST_INVALID_INPUT]"),
        ("max(format_string('%d', form))", "IllegalFormatConversionException [JAVA_EXCEPTION]"),
        ("max(format_string('%-', id))", "UnknownFormatConversionException [JAVA_EXCEPTION]"),
    ],
)
def test_a_java_exception_fails_its_own_assertion_only(gate: Gate, sql: str, reason: str) -> None:
    report = gate(f'{OTHERS}\nassert sql("{sql}") is not None name "bad"')
    found = verdicts(report)
    assert report.outcome is Outcome.BROKEN
    assert found["bad"].status.value == "error"
    assert reason in (found["bad"].reason or "")
    others = {name: item.status.value for name, item in found.items() if name != "bad"}
    assert others == dict.fromkeys(others, "passed")


@pytest.mark.more
def test_a_filter_that_fails_is_the_reason_of_all_and_is_not_tried_with_each(
    spark: Any, gate: Gate, tmp_path: Path
) -> None:
    failing = "length(format_string('%q', id)) > 0"
    ref = DatasetRef("orders", str(tmp_path / "t"), format="parquet", filter=failing)
    before = jobs_so_far(spark)
    report = gate(OTHERS + '\nassert not_null(id) name "n"', ref)
    assert jobs_so_far(spark) - before <= 4
    assert {item.status.value for item in report.verdicts} == {"error"}
    reasons = [item.reason or "" for item in report.verdicts]
    assert [reason for reason in reasons if "Conversion = 'q'" not in reason] == []


def test_masked_values_are_not_in_the_reason(gate: Gate, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    ref = DatasetRef("orders", path, format="parquet", masked=("form",))
    report = gate('assert sql("max(CAST(form AS INT))") is not None name "bad"', ref)
    reason = verdicts(report)["bad"].reason or ""
    assert "'%d'" not in reason
    assert "[CAST_INVALID_INPUT]" in reason


@pytest.mark.parametrize(
    "message",
    [
        "Job 3 cancelled because SparkContext was shut down",
        "Lost task 0.3 in stage 1.0: ExecutorLostFailure (executor 1 exited)",
        "java.io.IOException: No space left on device",
    ],
)
def test_a_lost_spark_is_an_infrastructure_error(spark: Any, message: str) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(SparkError, match="Spark was lost"), spark_failures():
        raise PySparkException(message)


@pytest.mark.slow
def test_many_assertions_over_few_rows_are_read_in_groups(
    spark: Any, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passes, "MOST_FUSED", 250)
    body = [f'assert sql("max(id + {n})") == {n + 2} name "n{n}"' for n in range(600)]
    body += [f'assert each row: id > -{n} name "r{n}"' for n in range(600)]
    before = jobs_so_far(spark)
    report = gate("\n".join(body))
    assert report.outcome is Outcome.PASSED
    assert len(report.verdicts) == 1201
    assert 3 <= jobs_so_far(spark) - before <= 12


def test_an_aggregate_too_deep_for_the_stack_is_an_error_of_its_own(
    spark: Any, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = "id" + " + id" * 6_000
    report = gate(f'{OTHERS}\nassert sql("max({deep})") is not None name "bad"')
    found = verdicts(report)
    assert found["other 3"].status.value == "passed"
    assert found["bad"].status.value in ("passed", "error")


@pytest.mark.nightly
@pytest.mark.parametrize("form", ["assert maximum(c{0}) == {0}", "assert each row: c{0} >= {1}"])
def test_20_000_assertions_over_2000_columns_are_judged(
    gate: Gate, tmp_path: Path, form: str
) -> None:
    table = pa.table({f"c{n}": pa.array([n, None], pa.int64()) for n in range(2000)})
    pq.write_table(table, tmp_path / "wide")
    ref = DatasetRef("orders", str(tmp_path / "wide"), format="parquet")
    body = [
        f'{form.format(n % 2000, -(n // 2000))} name "n{n}"' + (f" # {n}" if n % 3 else "")
        for n in range(20_000)
    ]
    report = gate("\n".join(body), ref)
    assert report.outcome is Outcome.PASSED
    assert len(report.verdicts) == 20_001
