"""Takes the picture of a contract's page for the docs; it is not a test.

python tests/ui/contract_picture.py dqx_airflow/docs/images

The contract and its clauses are those of the example `slot_telemetry`; what became of them in two
months is made up, since the demo has no contract.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from dqx_airflow.contracts.enforcement.enforced_contract import enforce
from dqx_airflow.contracts.references import FolderReader
from dqx_airflow.values import (
    DatasetRef,
    DatasetSnapshot,
    EnforcedContract,
    Outcome,
    RunKey,
    Severity,
    SourceFile,
    Status,
    Verdict,
)
from tests.ui.chromium import PROGRAM, chromium
from tests.ui.screenshots import open_page, shoot

_FILE = Path(__file__).parents[2] / "dags_examples/contracts/slot_telemetry.contract.yaml"
_DAYS = 60
_VERSIONS = (("2.3.0", 0, 41), ("2.2.0", 12, 38), ("2.1.1", 40, 35))
"""Each version, the days ago until which it was in force, and how many clauses were checked."""
_BROKEN = {
    "slot_telemetry.amount_won.minimum": ("== 0 violating rows", Severity.P0, 14, (0, 1)),
    "slot_telemetry.accuracy": ("== 0 violating rows", Severity.P1, 197, (0, 4, 8)),
    "slot_telemetry.player_id.completeness": (">= 60%", Severity.P2, 0.58, (6,)),
}
"""Clauses with what is expected, and the days ago on which they were broken with which value."""


def main(folder: Path) -> None:
    with (
        TemporaryDirectory(ignore_cleanup_errors=True) as home,
        api_server(Path(home), _fill) as (address, token),
        TemporaryDirectory() as profile,
        chromium(PROGRAM, Path(profile)) as page,
    ):
        page.call("Network.setCookie", name="_token", value=token, url=address)
        light = [{"name": "prefers-color-scheme", "value": "light"}]
        page.call("Emulation.setEmulatedMedia", features=light)
        open_page(page, f"{address}/dqx/contract?id=bronze.slot_telemetry", 1280, 880)
        shoot(page, folder / "contract.png")


@contextmanager
def api_server(home: Path, fill: Callable[[Path], None]) -> Iterator[tuple[str, str]]:
    """Airflow's API server: its address, and the token of its one user.

    :param fill: writes the history, given the place of the results store.
    """
    os.environ |= {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__API_AUTH__JWT_SECRET": "of this picture only; " * 4,
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__DQX__RESULTS_ROOT": str(home / "results"),
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
    }
    from airflow.utils.db import initdb

    initdb()
    import uvicorn
    from airflow.api_fastapi.app import create_app, get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    app = create_app(apps="core")
    fill(home / "results")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    user = SimpleAuthManagerUser(username="ada", role="admin", teams=[])
    yield f"http://127.0.0.1:{port}", get_auth_manager().generate_jwt(user)
    server.should_exit = True


def _fill(root: Path) -> None:
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.session import create_session

    from tests.ui.ui_scene import DAY, Scene, report_of

    newest = _contract()
    with create_session() as session:
        session.add(DagBundleModel(name="red-dags"))
        session.flush()
        session.add(
            DagModel(dag_id="slot_telemetry", bundle_name="red-dags", owners="data-engineering")
        )
        session.commit()
        scene = Scene(root, session)
        tables = ("staging/slot_telemetry", "bronze/slot_telemetry")
        for gate, (task, table) in enumerate(
            zip(("ingest_gate", "boundary_gate"), tables, strict=True)
        ):
            for days_ago in range(_DAYS if gate == 0 else 30):
                on, number = DAY - timedelta(days=days_ago), 1 + gate * 100 + days_ago
                version, _, checked = next(
                    entry for entry in reversed(_VERSIONS) if days_ago >= entry[1]
                )
                verdicts = _verdicts(newest, days_ago if gate == 0 else _DAYS)
                worst = [
                    verdict.severity for verdict in verdicts if verdict.status is Status.FAILED
                ]
                outcome = Outcome.PASSED if not worst else Outcome.WARNED
                outcome = Outcome.BLOCKED if {Severity.P0, Severity.P1} & {*worst} else outcome
                report = report_of(
                    number,
                    on=on,
                    verdicts=verdicts,
                    outcome=outcome,
                    contract=replace(newest, version=version, checked=checked),
                    datasets=(
                        DatasetSnapshot(
                            "slot_telemetry", f"s3://lake/{table}", "delta", version=7, rows=20000
                        ),
                    ),
                )
                key = RunKey(f"slot_telemetry.{task}", on, report.run_key.scheduler_run)
                scene.ran(
                    replace(report, run_key=key),
                    dag_id="slot_telemetry",
                    task_id=task,
                    number=number,
                )


def _contract() -> EnforcedContract:
    source = SourceFile(_FILE.name, _FILE.read_text(encoding="utf-8"))
    found = enforce(
        source, FolderReader(_FILE.parent), on=None, expect_version=None, models=(), is_strict=False
    )
    places = [DatasetRef("slot_telemetry", path="/staging", date_column="event_date")]
    contract = found.over(places).contract
    assert contract is not None
    return contract


def _verdicts(contract: EnforcedContract, days_ago: int) -> tuple[Verdict, ...]:
    clauses = {clause.assertion: clause for clause in contract.clauses}
    return tuple(
        Verdict(
            name=name,
            check="slot_telemetry",
            datasets=("slot_telemetry",),
            expression=name.rpartition(".")[2],
            expected=expected,
            severity=severity,
            status=Status.FAILED if days_ago in days else Status.PASSED,
            value=value if days_ago in days else 0,
            scaled_value=value if days_ago in days else 0,
            column=name.split(".")[1] if name.count(".") == 2 else None,
            clause=clauses[name].path,
            span=clauses[name].span,
            source_line=clauses[name].line,
        )
        for name, (expected, severity, value, days) in _BROKEN.items()
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
