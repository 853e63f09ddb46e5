"""A value of a masked column leaves Spark in no form, for every kind of rule: each masked cell has
a mark, which is looked for in everything that a gate writes and the command line prints. For pages,
notifications and XCom see `plugin/test_ui_hidden_values.py`."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from dqx_airflow.cli.reports import write_reports
from dqx_airflow.datasets.dqx_toml import RunFormat
from dqx_airflow.diagnostics.verdicts import draw_report
from dqx_airflow.engine.job import run_gates, run_job
from dqx_airflow.engine.session.java import java_environment
from dqx_airflow.engine.session.job_ending import JobEnding
from dqx_airflow.engine.session.spark_session import conf_of, without_log
from dqx_airflow.values import DatasetRef, GateReport, GateRequest, to_json
from dqx_airflow.values.json_form import to_arguments
from tests.command_line import dql
from tests.engine.lake import request
from tests.masked_cells import FEW, OPEN, leaks, masked_datasets, rules, suite_of
from tests.processes import ended

pytestmark = pytest.mark.spark


@pytest.fixture
def datasets(tmp_path: Path) -> tuple[DatasetRef, DatasetRef]:
    return masked_datasets(tmp_path)


def printed(reports: list[GateReport], output: RunFormat, gate: GateRequest) -> str:
    """What `dql run` prints."""
    days = [report.run_key.date for report in reports]
    dates = [day - timedelta(number) for number, day in enumerate(days)]
    with StringIO() as text:
        write_reports(reports, output, text, gate.results_root, dates=dates)
        return text.getvalue()


def run(
    spark: Any, gate: GateRequest, capfd: Any, caplog: Any
) -> tuple[GateReport, dict[str, str]]:
    """The report of a gate, and everything that it writes."""
    capfd.readouterr()
    caplog.set_level(logging.CRITICAL, logger="SQLQueryContextLogger")  # as in a gate
    try:
        report = run_gates([gate], lambda _: without_log(spark, gate.datasets))[0]
    finally:
        spark.sparkContext.setLogLevel("ERROR")
    said = capfd.readouterr()
    written = {
        "the report": to_json(report),
        "the drawn report": draw_report(report, root=gate.results_root),
        **{f"the {kind.value}": printed([report], kind, gate) for kind in RunFormat},
        **{
            f"the {kind.value} of two dates": printed([report] * 2, kind, gate)
            for kind in RunFormat
        },
        "the log": f"{said.out}\n{said.err}\n{caplog.text}",
    }
    for flags in ([], ["--rows"], ["--format", "json"]):
        shown = dql("results", "show", "latest", "--results-root", gate.results_root, *flags)
        assert shown.returncode == 0, shown.stderr
        written[f"dql results show {flags}"] = shown.stdout + shown.stderr
    for _, place in gate.quarantine:
        written["the commits of the quarantine"] = str(DeltaTable(place).history())
    for file in Path(gate.results_root).rglob("*"):
        if file.suffix == ".parquet" and "/sources/" not in str(file):
            written[str(file)] = json.dumps(pq.read_table(file).to_pylist(), default=str)
        elif file.is_file() and file.suffix != ".parquet":
            written[str(file)] = file.read_bytes().decode("utf-8", "replace")
    return report, written


@pytest.mark.more
@pytest.mark.parametrize(
    "asserted", [FEW, pytest.param((*rules(),), marks=pytest.mark.nightly)], ids=["few", "all"]
)
def test_no_masked_value_leaves_spark(
    spark: Any,
    tmp_path: Path,
    datasets: tuple[DatasetRef, DatasetRef],
    asserted: Sequence[str],
    capfd: Any,
    caplog: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lineage = tmp_path / "results" / "lineage.jsonl"
    lineage.parent.mkdir()
    transport = {"type": "file", "log_file_path": str(lineage), "append": True}
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT", json.dumps(transport))
    known = list(dict.fromkeys(asserted))
    gate = request(
        tmp_path, suite_of(known), datasets, quarantine=(("t", str(tmp_path / "quarantine")),)
    )
    report, written = run(spark, gate, capfd, caplog)
    assert leaks(written) == []
    values = {verdict.name: verdict.value for verdict in report.verdicts}
    assert {rule: values[f"a{known.index(rule)}"] for rule in OPEN} == OPEN


@pytest.mark.slow
def test_no_masked_text_is_quoted_by_what_cannot_be_read(
    spark: Any, tmp_path: Path, capfd: Any, caplog: Any
) -> None:
    """Malformed values and dates, a line that is no line, and a file in a folder of a value."""
    texts = tmp_path / "orders.csv"
    texts.write_text("id,salary,ds\n1,CANARY1,2024-03-02\n2,4711002,CANARY2\n3,CANARY3\n")
    path = tmp_path / "bad" / "tax_id=CANARY4" / "part-0.parquet"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"PAR1 CANARY5 PAR1")
    orders = DatasetRef(
        "orders",
        path=str(texts),
        format="csv",
        options=(("header", "true"),),
        schema="id int, salary int, ds date",
        date_column="ds",
        masked=("salary", "ds"),
    )
    bad = DatasetRef("bad", path=str(tmp_path / "bad"), format="parquet", masked=("TAX_ID",))
    declared = replace(bad, name="bad2", schema="id int")
    suite = """suite "T" {
        check "A" on orders { assert each row: salary > 0 name "a"
            assert malformed_count(ds) == 0 name "b" assert unique(salary) name "c"
            assert sql("max(`dqx: text of salary`)") == 1 name "d" }
        check "B" on bad { assert num_rows() == 9 name "e" }
        check "C" on bad2 { assert maximum(id) == 9 name "f" }
    }"""
    gate = request(tmp_path, suite, (orders, bad, declared))
    report, written = run(spark, gate, capfd, caplog)
    passed = [one.name for one in report.verdicts if one.status.value == "passed"]
    assert passed == ["orders.not_empty", "a"]
    assert leaks(written) == []


@pytest.mark.nightly
def test_no_masked_value_is_in_the_log_of_a_job(
    tmp_path: Path, datasets: tuple[DatasetRef, DatasetRef]
) -> None:
    """All that a driver prints, with what its JVM prints."""
    gate = request(tmp_path, suite_of((*rules(),)), datasets)
    job = Path(__file__).parents[2] / "spark_jobs" / "gate_job.py"
    environment = {**os.environ, **java_environment()}
    done = ended([sys.executable, str(job), *to_arguments(gate)], env=environment, timeout=1800)
    assert done.returncode == 0, done.stderr[-3000:]
    assert leaks({"stdout": done.stdout, "stderr": done.stderr}) == []


def test_the_log_of_executors_is_off_where_that_of_the_driver_is() -> None:
    """`spark.executor.syncLogLevel.enabled` of Spark passes the level of `without_log` on."""
    assert conf_of("gate").get("spark.executor.syncLogLevel.enabled") == "true"


def test_an_error_that_ends_a_job_quotes_no_masked_value(
    tmp_path: Path, datasets: tuple[DatasetRef, DatasetRef], capsys: Any, monkeypatch: Any
) -> None:
    lineage = tmp_path / "lineage.jsonl"
    transport = {"type": "file", "log_file_path": str(lineage), "append": True}
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT", json.dumps(transport))
    gate = request(tmp_path, suite_of(FEW), datasets)

    def broken(_: str) -> Any:
        raise ValueError("[CAST_INVALID_INPUT] The value 'CANARY1' is no int; kind=CANARY2/part")

    code = run_job(to_arguments(gate), lambda one: run_gates([one], broken), JobEnding(), broken)
    said = capsys.readouterr().err
    assert (code, "CAST_INVALID_INPUT" in said) == (4, True)
    assert "CAST_INVALID_INPUT" in lineage.read_text()
    assert leaks({"stderr": said, "lineage": lineage.read_text()}) == []
