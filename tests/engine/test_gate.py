"""Whole gates on a real Spark: their verdicts, their scans, and what they store."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from dqx_airflow.engine.job import run_gates
from dqx_airflow.errors import SourceError, StoreError
from dqx_airflow.results.runs import read_report
from dqx_airflow.values import DatasetRef, GateReport, ImportedFile, Outcome, SourceFile
from tests.engine.lake import ORDERS, TODAY, YESTERDAY, Run, delta, request
from tests.job_count import jobs_so_far

pytestmark = pytest.mark.spark


def events(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "lineage.jsonl").read_text().splitlines()]


def statuses(report: GateReport) -> dict[str, str]:
    return {verdict.name: verdict.status.value for verdict in report.verdicts}


METRICS = """\
num_rows() | num_rows(lag 1) | count(price) | null_count(price) | average(price) | sum(amount)
minimum(price) | maximum(price) | variance(price) | variance(amount, lag 1)
duplicate_count(id) | duplicate_count([id, status]) | count_values(status, "paid")
count_values(id, 3) | min_length(status) | max_length(status)
day_over_day(num_rows()) | week_over_week(num_rows()) | mean(num_rows(), n 2)
stddev(num_rows(), n 2) | null_count(price) / num_rows() | sum(price) / sum(amount, lag 1)
"""


def test_a_dataset_is_read_in_one_spark_job_for_all_its_metrics_and_dates(
    spark: Any, run: Run, orders: DatasetRef, tmp_path: Path
) -> None:
    metrics = re.split(r" \| |\n", METRICS.strip())
    body = "\n".join(f"assert {text} is not None" for text in metrics)
    before = jobs_so_far(spark)
    run(request(tmp_path, body, [orders]))
    assert jobs_so_far(spark) - before == 1


def test_only_the_files_of_the_needed_dates_are_read(spark: Any, tmp_path: Path) -> None:
    from dqx_airflow.engine.sources.open import open_dataset

    ref = replace(delta(tmp_path, "orders", ORDERS, partition_by=["ds"]), date_column="ds")
    opened = open_dataset(spark, ref)
    assert ["ds=2024-03-01" in file for file in opened.read({YESTERDAY}).inputFiles()] == [True]


def test_files_of_other_dates_are_left_out_by_their_statistics(spark: Any, tmp_path: Path) -> None:
    from deltalake import write_deltalake

    from dqx_airflow.engine.sources.open import open_dataset

    path = str(tmp_path / "orders")
    for on in (TODAY, YESTERDAY):
        write_deltalake(path, ORDERS.filter(pc.equal(ORDERS["ds"], on)), mode="append")
    opened = open_dataset(spark, DatasetRef("orders", path, date_column="ds"))
    assert len(opened.read({TODAY}).inputFiles()) == 1


def test_a_date_without_data_never_passes(run: Run, orders: DatasetRef, tmp_path: Path) -> None:
    body = 'assert null_count(price) == 0 name "nulls"\nassert average(price) > 0 name "average"'
    on = TODAY.replace(year=2025)
    report = run(request(tmp_path, body, [orders], on))
    assert report.outcome is Outcome.BLOCKED
    assert statuses(report) == {
        "orders.not_empty": "failed",
        "nulls": "passed",
        "average": "failed",
    }


def test_an_empty_date_passes_if_the_gate_allows_it(
    run: Run, orders: DatasetRef, tmp_path: Path
) -> None:
    gate = request(tmp_path, "assert num_rows() >= 0", [orders], TODAY.replace(year=2025))
    assert run(replace(gate, allow_empty=True)).outcome is Outcome.PASSED


def test_an_invalid_assertion_is_an_error_and_the_others_are_judged(
    run: Run, orders: DatasetRef, countries: DatasetRef, tmp_path: Path
) -> None:
    body = """
    assert num_rows() == 4 name "good"
    assert null_count(pricee) == 0 name "missing column"
    assert average(status) > 0 name "wrong type"
    assert each row: statuss == "new" name "missing in predicate"
    assert each row: status > 5 name "cast"
    assert values(id) in values(code, dataset countries) name "types of lookup"
    assert values(country) in values(cod, dataset countries) name "missing in lookup"
    assert values(country) in values(code, dataset countries) name "good lookup"
    """
    report = run(request(tmp_path, body, [orders, countries]))
    reasons = {verdict.name: verdict.reason or "" for verdict in report.verdicts}
    assert statuses(report)["good"] == "passed"
    assert statuses(report)["good lookup"] == "failed"
    assert reasons["missing column"].endswith("has no column 'pricee': did you mean 'price'?")
    assert "average needs a boolean or number column" in reasons["wrong type"]
    assert "no column 'statuss': did you mean 'status'?" in reasons["missing in predicate"]
    assert statuses(report)["cast"] == "error"
    assert "cannot have values in common" in reasons["types of lookup"]
    assert "did you mean 'code'?" in reasons["missing in lookup"]
    assert report.outcome is Outcome.BLOCKED


HOSTILE = ["a.b", "{brace}", "select", "x'y", "emoji 🎉", "back\\slash", "1st"]


@pytest.mark.few(1)
@pytest.mark.parametrize("name", HOSTILE)
def test_columns_may_have_any_name(run: Run, tmp_path: Path, name: str) -> None:
    table = pa.table({name: ["x", None, "y"], "ds": pa.array([TODAY] * 3, pa.date32())})
    folder = tmp_path / "lake"
    orders = replace(delta(folder, "orders", table), date_column="ds")
    known = delta(folder, "known", pa.table({name: ["x"]}))
    body = f"""
    assert null_count(`{name}`) == 1 name "nulls"
    assert unique_count(`{name}`) == 2 name "unique"
    assert each row: `{name}` in ["x", "y"] name "set"
    assert 50% of rows: `{name}` in values(`{name}`, dataset known) name "lookup"
    """
    report = run(request(tmp_path, body, [orders, known]))
    assert {verdict.reason for verdict in report.verdicts} == {None}
    assert report.outcome is Outcome.PASSED


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["timestamp", "text", "date"])
def test_dates_may_be_timestamps_or_text_and_need_no_partitions(
    run: Run, tmp_path: Path, kind: str
) -> None:
    types = {"timestamp": pa.timestamp("us", tz="UTC"), "text": pa.string(), "date": pa.date32()}
    table = ORDERS.set_column(5, "ds", ORDERS["ds"].cast(types[kind]))
    orders = replace(delta(tmp_path, "orders", table), date_column="ds")
    body = "assert num_rows() == 4\nassert num_rows(lag 1) == 2"
    assert run(request(tmp_path, body, [orders])).outcome is Outcome.PASSED


def test_the_version_that_was_validated_is_in_the_report(
    run: Run, orders: DatasetRef, tmp_path: Path
) -> None:
    from deltalake import write_deltalake

    write_deltalake(orders.path or "", ORDERS, mode="append")
    body = "assert num_rows() == 4"
    old = run(request(tmp_path, body, [replace(orders, version=0)]))
    new = run(replace(request(tmp_path, body, [orders])))
    assert [report.datasets[0].version for report in (old, new)] == [0, 1]
    assert [report.outcome for report in (old, new)] == [Outcome.PASSED, Outcome.BLOCKED]
    assert [report.datasets[0].rows for report in (old, new)] == [4, 8]


def test_a_table_that_needs_deltas_own_source_names_the_package(
    run: Run, orders: DatasetRef, tmp_path: Path
) -> None:
    log = next((Path(orders.path or "") / "_delta_log").glob("*.json"))
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            line["protocol"] = {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": ["deletionVectors"],
                "writerFeatures": ["deletionVectors"],
            }
    log.write_text("\n".join(json.dumps(line) for line in lines))
    report = run(request(tmp_path, "assert num_rows() > 0", [orders]))
    assert report.outcome is Outcome.BROKEN
    assert "deletionVectors" in (report.verdicts[0].reason or "")


def test_the_report_is_in_the_store_and_the_events_frame_the_run(
    run: Run, orders: DatasetRef, tmp_path: Path
) -> None:
    gate = request(tmp_path, 'assert average(price) < 0 name "a" severity P0', [orders])
    report = run(gate)
    assert read_report(gate.results_root, gate.run_key, "attempt-1") == report
    assert DeltaTable(f"{gate.results_root}/results").to_pyarrow_table().num_rows == 2
    assert [event["eventType"] for event in events(tmp_path)] == ["START", "FAIL"]
    assert {event["run"]["runId"] for event in events(tmp_path)} == {report.run_id}


def test_warnings_complete_the_run(run: Run, orders: DatasetRef, tmp_path: Path) -> None:
    report = run(
        request(tmp_path, "assert average(price) < 0 severity P2\nassert num_rows() > 0", [orders])
    )
    assert report.outcome is Outcome.WARNED
    assert [event["eventType"] for event in events(tmp_path)] == ["START", "COMPLETE"]


def test_a_gate_without_checks_is_broken(run: Run, orders: DatasetRef, tmp_path: Path) -> None:
    report = run(request(tmp_path, 'suite "Nothing" { check "None" on orders { } }', [orders]))
    assert report.outcome is Outcome.BROKEN


def test_macros_of_an_imported_file_travel_with_the_request(
    run: Run, orders: DatasetRef, tmp_path: Path
) -> None:
    library = SourceFile(
        "nulls.dql",
        "export const MOST = 0\n"
        "export macro nulls(columns...) {\n"
        "  for column in columns {\n"
        '    assert null_count({column}) <= MOST name "{column} nulls"\n'
        "  }\n"
        "}\n",
    )
    suite = """import "nulls.dql" as common
    suite "S" { check "C" on orders { use common.nulls(id, price, `status`) } }"""
    imports = (ImportedFile("suite.dql", "nulls.dql", library),)
    report = run(request(tmp_path, suite, [orders], imports=imports))
    assert statuses(report) == {
        "orders.not_empty": "passed",
        "id nulls": "passed",
        "price nulls": "failed",
        "status nulls": "failed",
    }
    failed = report.verdicts[2]
    assert (failed.expression, failed.expected) == ("null_count(price)", "<= 0")
    assert failed.span is not None
    assert failed.span.line == 2  # the `use` in the suite


def test_a_suite_with_an_error_is_not_run_and_leaves_nothing_behind(
    run: Run, orders: DatasetRef, tmp_path: Path
) -> None:
    with pytest.raises(SourceError, match="unknown metric 'avg'"):
        run(request(tmp_path, "assert avg(price) > 0", [orders]))
    with pytest.raises(SourceError, match="the gate has no dataset 'orders'"):
        run(request(tmp_path, "assert num_rows() > 0", [replace(orders, name="others")]))
    lagged = request(
        tmp_path, "assert day_over_day(num_rows()) < 1", [replace(orders, date_column=None)]
    )
    with pytest.raises(SourceError, match="has no dates"):
        run(lagged)
    assert not (tmp_path / "results" / "runs").exists()
    assert not (tmp_path / "lineage.jsonl").exists()


def test_an_unwritable_store_is_found_before_the_scan(
    run: Run, orders: DatasetRef, tmp_path: Path
) -> None:
    (tmp_path / "results").write_text("a file")
    with pytest.raises(StoreError, match="results"):
        run(request(tmp_path, "assert num_rows() > 0", [orders]))


def test_a_crash_is_reported_to_lineage_and_leaves_no_report(
    run: Run, orders: DatasetRef, tmp_path: Path
) -> None:
    gate = request(tmp_path, "assert num_rows() > 0", [orders])

    def no_session(name: str) -> Any:
        raise RuntimeError("no cluster today")

    with pytest.raises(RuntimeError):
        run_gates([gate], no_session)
    assert [event["eventType"] for event in events(tmp_path)] == ["START", "FAIL"]
    message = events(tmp_path)[1]["run"]["facets"]["errorMessage"]["message"]
    assert "no cluster today" in message
    assert read_report(gate.results_root, gate.run_key, "attempt-1") is None
