"""A results store on an object store: a server with the S3 API, from PyPI."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow.fs import S3FileSystem

from dqx_airflow.engine.scan.states import State, StateStore
from dqx_airflow.engine.sources.date_column import DateColumn
from dqx_airflow.engine.sources.delta_checkpoints import loose_files
from dqx_airflow.engine.sources.delta_files import DeltaLog, struct_of
from dqx_airflow.errors import StoreError
from dqx_airflow.results.runs import list_runs, read_report
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.results.stored_requests import (
    RequestTakenError,
    discard_request,
    store_request,
    take_request,
)
from dqx_airflow.results.tables import locate, open_table
from dqx_airflow.values.json_form import from_arguments
from tests.command_line import dql
from tests.processes import environment, free_port, running, wait_until
from tests.results.samples import RUN_KEY, sample_report
from tests.results.test_requests import sample_request

pytestmark = pytest.mark.nightly

ROOT = "s3://lake/dqx"
SERVER = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "dqx-airflow" / "moto"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the server is; it has an environment of its own, which is kept for the next run."""
    program = SERVER / "bin" / "moto_server"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(SERVER)], check=True)
        install = [str(SERVER / "bin" / "pip"), "install", "-q", "moto[server]>=5"]
        if subprocess.run(install, check=False).returncode != 0:
            pytest.skip("moto cannot be had from PyPI")
    port = free_port()
    log = tmp_path_factory.mktemp("moto") / "moto.log"
    found = f"http://127.0.0.1:{port}"
    with running([str(program), "-H", "127.0.0.1", "-p", str(port)], environment(), log):
        wait_until(lambda: _answers(f"{found}/moto-api/"), log)
        yield found


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address):
            return True
    except OSError:
        return False


@pytest.fixture
def bucket(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty bucket, of which the environment tells."""
    reset = urllib.request.Request(f"{address}/moto-api/reset", method="POST")
    made = urllib.request.Request(f"{address}/lake", method="PUT")
    for request in (reset, made):
        urllib.request.urlopen(request).close()
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "anybody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "anything")
    monkeypatch.setenv("AWS_REGION", "us-east-1")


@pytest.mark.usefixtures("bucket")
def test_a_report_is_written_once_and_read_back_exactly() -> None:
    store = ResultsStore(ROOT)
    store.check_writable()
    assert read_report(ROOT, RUN_KEY, "attempt-1") is None
    for _ in range(2):
        store.write(sample_report())
    store.check_writable()
    assert read_report(ROOT, RUN_KEY, "attempt-1") == sample_report()
    assert len(list_runs(ROOT)) == 1


def test_the_command_line_reads_with_the_options_of_the_storage(
    address: str, bucket: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ResultsStore(ROOT).write(sample_report())
    options = {"aws_endpoint_url": address, "aws_allow_http": "true", "aws_region": "us-east-1"}
    options |= {"aws_access_key_id": "anybody", "aws_secret_access_key": "anything"}
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("DQX_RESULTS_STORAGE", json.dumps(options))
    for command in (("list",), ("show", "latest"), ("show", sample_report().run_id)):
        done = dql("results", *command, "--results-root", ROOT)
        assert done.returncode == 0, done.output
        assert sample_report().run_key.gate in done.output


@pytest.mark.usefixtures("bucket")
def test_concurrent_writers_lose_nothing() -> None:
    reports = [sample_report(number, attempt=number) for number in range(1, 7)]
    with ThreadPoolExecutor(len(reports)) as threads:
        list(threads.map(ResultsStore(ROOT).write, reports))
    table = open_table(ResultsStore(ROOT).location, "runs")
    assert table is not None
    runs = table.to_pyarrow_table()["run_id"].to_pylist()
    assert sorted(runs) == sorted(report.run_id for report in reports)


@pytest.mark.usefixtures("bucket")
def test_states_are_stored_and_read_back() -> None:
    states = StateStore(ResultsStore(ROOT).location)
    on = date(2024, 3, 2)
    kept = State(on, {"count(1)": 5}, {"count(1)": "abc"})
    assert states.recall("scope", [on]) == ()
    states.keep("scope", "run", datetime.now(timezone.utc), [kept])
    assert states.recall("scope", [on]) == (kept,)


@pytest.mark.spark
@pytest.mark.usefixtures("bucket")
def test_a_request_beside_the_results_is_read_once() -> None:
    address = store_request(locate(ROOT, None), sample_request(ROOT))
    assert address.startswith(f"{ROOT}/_dqx_requests/")
    assert from_arguments(take_request(address, None).arguments) == sample_request(ROOT)
    with pytest.raises(RequestTakenError, match="was taken by another job: process"):
        take_request(address, None)
    discard_request(address, None)
    with pytest.raises(StoreError, match="is gone"):
        take_request(address, None)


@pytest.mark.usefixtures("bucket")
def test_a_gate_writes_its_report_and_its_states(spark: Any, tmp_path: Path) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    from dqx_airflow.engine.job import run_gates
    from dqx_airflow.values import Attempt, DatasetRef, GateRequest, RunKey, SourceFile

    path = str(tmp_path / "orders")
    write_deltalake(path, pa.table({"id": [1, 2], "price": [1.0, 2.0]}))
    suite = 'suite "S" { check "C" on orders { assert average(price) == 1.5 name "average" } }'
    for number, origin in ((1, "scan"), (2, "stored state")):
        request = GateRequest(
            RunKey("gate", date(2024, 3, 2), "run"),
            Attempt(number, str(number)),
            SourceFile("suite.dql", suite),
            (DatasetRef("orders", path),),
            ROOT,
        )
        report = run_gates([request], lambda _: spark)[0]
        assert read_report(ROOT, request.run_key, str(number)) == report
        (average,) = (verdict for verdict in report.verdicts if verdict.name == "average")
        assert average.origin is not None
        assert (average.value, average.origin.value) == (1.5, origin)


@pytest.mark.usefixtures("bucket")
def test_the_log_of_a_table_is_used_only_while_its_objects_exist(address: str) -> None:
    on, root = date(2024, 3, 2), "s3://lake/orders"
    rows = pa.table({"x": [1, 2], "ds": [on] * 2, "k": ["a b/ü", "%"]})
    write_deltalake(root, rows, partition_by=["ds", "k"])

    def log() -> DeltaLog:
        table = DeltaTable(root)
        return DeltaLog(table, root, struct_of(table), DateColumn("ds", "date"))

    first = log()
    assert first.is_believed([on])
    assert len(first.files_held(on) or ()) == 2
    assert loose_files(root, 0) == frozenset()
    path = f"lake/orders/{unquote(first.files_of(on)[0].path)}"
    keys = {"access_key": "anybody", "secret_key": "anything", "region": "us-east-1"}
    system = S3FileSystem(endpoint_override=address, **keys)
    with system.open_input_stream(path) as file:
        content = file.read()
    time.sleep(1.1)  # its times are whole seconds
    for other, reason in (
        (content[::-1], None),  # of the same size
        (content[:-3], f"but it has {len(content) - 3}"),
        (b"", "but it has 0"),
        (None, "which does not exist"),
    ):
        if other is None:
            system.delete_file(path)
        else:
            with system.open_output_stream(path) as file:
                file.write(other)
        changed = log()
        assert not changed.is_believed([on])
        assert (changed.files_held(on) is None) is (reason is not None)
        assert str(reason) in str(changed.lost_file([on]))
