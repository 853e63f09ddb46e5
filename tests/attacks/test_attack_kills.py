"""SIGKILL of a gate at any time: readers see complete runs only, and a rerun is complete.

The gate has two suites, quarantines and promotes, in a loop, so that the kill falls into a scan,
into the writing of one of the tables, or between two of them. With `--sail` it runs on Sail.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from dqx_airflow.engine.job import run_gates
from dqx_airflow.errors import StoreError
from dqx_airflow.results.decisions import acceptance_of
from dqx_airflow.results.incidents import stored_incidents, write_notes
from dqx_airflow.results.query import RunsWanted, StoredResults
from dqx_airflow.results.runs import find_report, list_runs, read_report
from dqx_airflow.values import (
    Attempt,
    DatasetRef,
    GateOrigin,
    GatePart,
    GateRequest,
    Outcome,
    Severity,
    SourceFile,
    to_json,
)
from tests.attacks.attack_gates import gate_request
from tests.attacks.exact_tables import TODAY
from tests.processes import environment

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

KILLS = 100
ACCEPTING_KILLS = 20
ROWS, BAD = 500, 40
ASSERTIONS = 4

GATES = """
import sys
from dataclasses import replace
from dqx_airflow.engine.job import run_gates
from dqx_airflow.datasets.spark_address import connection_of
from dqx_airflow.engine.session.connection import open_session
from dqx_airflow.values import Attempt, GateRequest, Severity, from_json

spark = open_session(connection_of(sys.argv[3]), "kills", {})
request = from_json(GateRequest, open(sys.argv[1]).read())
for number in range(1, 1000):
    print("gate", number, flush=True)
    attempt = Attempt(number, f"{sys.argv[2]}-{number}")
    fail_on = (Severity.P0, Severity.P1)[number % 2]  # one promotes, the next one quarantines
    if request.promote_valid:
        fail_on = Severity.P1  # each does both
    run_gates(replace(request, attempt=attempt, fail_on=fail_on).parts, lambda _: spark)
"""

SUITE = """
suite "Kills" {
    check "All" on t {
        assert each row: x >= 0 name "x" severity P1
        assert num_rows() > 0 name "rows"
        assert unique(id) name "id"
    }
}
"""


@pytest.fixture
def address(pytestconfig: pytest.Config) -> str:
    """The engine of the gates that are killed."""
    return "sail" if pytestconfig.getoption("--sail") else "local[*]"


def test_readers_ignore_what_a_killed_gate_left(
    spark: Any, address: str, tmp_path: Path, attack: Callable[[str], Any]
) -> None:
    tally = attack("SIGKILL of a gate: partial runs, lost or doubled rows")
    request = _request(tmp_path)
    file = tmp_path / "request.json"
    file.write_text(to_json(request))
    random = Random(0)
    believed: set[str] = set()
    for kill in range(KILLS):
        seen = _killed(file, address, kill, random.uniform(0.0, 1.5))
        what = f"kill {kill} ({seen})"
        tally.tried(_are_whole(request.results_root, believed), f"{what}: a run is not whole")
        tally.tried(_rows(tmp_path / "target") in (0, ROWS), f"{what}: a promotion is not whole")
        tally.tried(_bad(tmp_path) in ([], [*range(BAD)]), f"{what}: a quarantine is not whole")
    for number, outcome in ((10_000, Outcome.WARNED), (10_001, Outcome.BLOCKED)):
        fail_on = Severity.P0 if outcome is Outcome.WARNED else Severity.P1
        attempt = Attempt(number, f"last-{number}")
        parts = replace(request, attempt=attempt, fail_on=fail_on).parts
        last = run_gates(parts, lambda _: spark)[0]
        found = read_report(request.results_root, request.run_key, attempt.id)
        assert found is not None
        assert (found.run_id, found.outcome) == (last.run_id, outcome)
    assert _rows(tmp_path / "target") == ROWS
    # In = valid + quarantined.
    assert _bad(tmp_path) == [*range(BAD)]


def test_a_killed_gate_promotes_accepted_data_once(
    spark: Any, address: str, tmp_path: Path
) -> None:
    request = _request(tmp_path)
    judged = run_gates(request.parts, lambda _: spark)
    assert {report.outcome for report in judged} == {Outcome.BLOCKED}
    results = StoredResults(request.results_root)
    write_notes(results, [acceptance_of(report, "eve", "a holiday") for report in judged])
    file = tmp_path / "request.json"
    file.write_text(to_json(request))
    random = Random(1)
    for kill in range(ACCEPTING_KILLS):
        seen = _killed(file, address, kill, random.uniform(0.0, 3.0))
        assert _rows(tmp_path / "target") in (0, ROWS), seen
        for incident in stored_incidents(results, RunsWanted()):
            is_promoted = _rows(tmp_path / "target") == ROWS
            assert incident.status == "blocked" or is_promoted, seen
    last = replace(request, attempt=Attempt(10_000, "last"))
    assert {one.outcome for one in run_gates(last.parts, lambda _: spark)} == {Outcome.ACCEPTED}
    assert _rows(tmp_path / "target") == ROWS
    (incident,) = stored_incidents(results, RunsWanted())
    assert incident.status == "accepted"


def test_a_killed_gate_neither_loses_nor_doubles_good_rows(
    spark: Any, address: str, tmp_path: Path
) -> None:
    request = replace(_request(tmp_path), promote_valid="10%")
    file = tmp_path / "request.json"
    file.write_text(to_json(request))
    random = Random(2)
    for kill in range(ACCEPTING_KILLS):
        seen = _killed(file, address, kill, random.uniform(0.0, 3.0))
        bad, promoted = _bad(tmp_path), _rows(tmp_path / "target")
        assert bad in ([], [*range(BAD)]), seen
        assert promoted in (0, ROWS - BAD), seen
        assert bad or not promoted, f"{seen}: rows that were left out are lost"
    last = replace(request, attempt=Attempt(10_001, "last"))
    reports = run_gates(last.parts, lambda _: spark)
    assert {report.outcome for report in reports} == {Outcome.WARNED}
    assert {report.left_out for report in reports} == {(f"{BAD} of {ROWS} rows of t",)}
    promoted_ids = DeltaTable(str(tmp_path / "target")).to_pyarrow_table()["id"].to_pylist()
    assert sorted([*promoted_ids, *_bad(tmp_path)]) == [*range(ROWS)]


def _are_whole(root: str, believed: set[str]) -> bool:
    """True where each run that readers list has its report, with all its verdicts."""
    if not Path(root).exists():
        return True
    try:
        runs = list_runs(root, all_attempts=True, limit=100_000)
    except StoreError as error:
        return "no results under" in str(error)
    for run in runs:
        if run.run_id in believed:
            continue
        report = find_report(root, run.run_id)
        if report is None or len(report.verdicts) != ASSERTIONS:
            return False
        believed.add(run.run_id)
    return True


def _request(folder: Path) -> GateRequest:
    table = pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "x": pa.array([-1 if n < BAD else n for n in range(ROWS)], pa.int64()),
            "ds": pa.array([TODAY] * ROWS),
        }
    )
    write_deltalake(str(folder / "t"), table)
    ref = DatasetRef("t", path=str(folder / "t"), date_column="ds", keys=("id",))
    request = gate_request(
        folder,
        SUITE,
        [ref],
        fail_on=Severity.P1,
        quarantine=(("t", str(folder / "quarantine" / "t")),),
        promote_to=(("t", str(folder / "target")),),
    )
    first, second = (
        replace(request.run_key, gate=f"{request.run_key.gate}/{name}") for name in "AB"
    )
    other = SourceFile("other.dql", SUITE.replace("Kills", "Others"))
    origin = GateOrigin(job=request.run_key.gate)
    return replace(request, run_key=first, origin=origin, more=(GatePart(second, other),))


def _killed(file: Path, address: str, kill: int, after_s: float) -> str:
    """Starts gates in a process of their own and kills it; what it was at."""
    process = subprocess.Popen(
        [sys.executable, "-c", GATES, str(file), str(kill), address],
        env=environment(PYTHONPATH=os.pathsep.join(sys.path)),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    seen = process.stdout.readline().strip()
    assert seen, "no gate began"
    time.sleep(after_s)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return f"{seen}, {after_s:.2f} s later"


def _bad(folder: Path) -> list[int]:
    """The ids in quarantine."""
    path = folder / "quarantine" / "t"
    if not (path / "_delta_log").exists():
        return []
    return sorted(DeltaTable(str(path)).to_pyarrow_table()["id"].to_pylist())


def _rows(path: Path) -> int:
    if not (path / "_delta_log").exists():
        return 0
    return int(DeltaTable(str(path)).to_pyarrow_table().num_rows)
