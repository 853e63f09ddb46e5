"""Takes the pictures of the gates of a whole lake for the docs; it is not a test.

python tests/ui/lake_pages.py dqx_airflow/docs/images

The lake is the one of the tutorial, with 40 tables and faults in seven. Its gates are drafted by
`dql init`, and run by `dql run`; `orders.key` blocks. Which jobs read the tables is made up.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory

from dqx_airflow.results.runs import find_report, list_runs
from dqx_airflow.values import GateReport, RunKey, SourceFile, from_json, to_json
from tests.processes import PROGRAMS, environment
from tests.ui.chromium import PROGRAM, chromium
from tests.ui.contract_picture import api_server
from tests.ui.screenshots import open_page, shoot

_SCRIPT = Path(__file__).parents[2] / "dags_examples/lake/make_lake.py"
_NEWEST = datetime.now(timezone.utc).date() - timedelta(days=1)
_DAYS = 14
_DAG = "lake_gates"
_LAKE = "/data/lake"
_JOBS = {
    "reports.revenue": ("sales/orders", "finance/payments", "finance/currencies", "mart/margins"),
    "reports.funnel": ("web/visits", "web/clicks", "web/pages", "sales/orders"),
    "reports.cash": ("finance/payments", "finance/invoices", "finance/currencies"),
    "mart.margins": ("sales/orders", "sales/order_lines", "finance/currencies"),
    "mart.visitors": ("web/visits", "web/visitors"),
}
"""The tables that each job reads; a job of `mart` writes the table of its name."""


def main(folder: Path) -> None:
    with TemporaryDirectory(ignore_cleanup_errors=True) as made, TemporaryDirectory() as profile:
        home = Path(made)
        lake, gates, results = home / "lake", home / "gates", home / "local"
        subprocess.run([sys.executable, _SCRIPT, lake], check=True)
        _dql("init", gates, "--dataset", lake)
        orders = gates / "suites" / "sales" / "orders.dql"
        _dql("tune", "enforce", orders, "--assertion", "orders.key")
        _dql("run", gates / "suites", "--date", _NEWEST, "--results-root", results)
        before = f"{_NEWEST - timedelta(days=_DAYS)}..{_NEWEST - timedelta(days=1)}"
        _dql("run", orders, "--date", before, "--results-root", results)
        _write_events(home / "events.jsonl")
        os.environ["AIRFLOW__DQX__LINEAGE_EVENTS"] = str(home / "events.jsonl")
        with (
            api_server(home, lambda root: _fill(root, gates, results, lake)) as (address, token),
            chromium(PROGRAM, Path(profile)) as page,
        ):
            page.call("Network.setCookie", name="_token", value=token, url=address)
            light = [{"name": "prefers-color-scheme", "value": "light"}]
            page.call("Emulation.setEmulatedMedia", features=light)
            gate = f"dag_id={_DAG}&task_id=orders&date={_NEWEST}"
            open_page(page, f"{address}/dqx/incident?{gate}", 1280, 760)
            shoot(page, folder / "lake_gate.png")
            open_page(page, f"{address}/dqx/coverage", 1180, 640)
            shoot(page, folder / "lake_coverage.png")


def _dql(*words: object) -> None:
    """A command of ours; the exit code of `run` says only whether a gate blocks."""
    call = [PROGRAMS / "dql", *map(str, words)]
    done = subprocess.run(call, check=False, env=environment(), stdout=subprocess.DEVNULL)
    if done.returncode and words[0] != "run":
        sys.exit(done.returncode)


def _write_events(file: Path) -> None:
    """The events of the jobs, one a line."""

    def table(name: str) -> dict[str, str]:
        return {"namespace": "file", "name": f"{_LAKE}/{name}"}

    events = [
        {
            "eventTime": f"{_NEWEST}T06:00:00Z",
            "job": {"namespace": "prod", "name": job},
            "inputs": [table(name) for name in names],
            "outputs": [table(job.replace(".", "/"))] if job.startswith("mart.") else [],
        }
        for job, names in _JOBS.items()
    ]
    file.write_text("".join(f"{json.dumps(event)}\n" for event in events))


def _fill(root: Path, gates: Path, results: Path, lake: Path) -> None:
    """Puts the runs of `dql run` into Airflow, as those of the tasks of a DAG."""
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.session import create_session

    from tests.ui.ui_scene import Scene

    suites = {path.stem: path for path in (gates / "suites").rglob("*.dql")}
    with create_session() as session:
        session.add(DagBundleModel(name="red-dags"))
        session.commit()
        scene = Scene(root, session)
        for number, run in enumerate(list_runs(str(results), limit=1000), 1):
            report = find_report(str(results), run.run_id)
            assert report is not None
            report = from_json(GateReport, to_json(report).replace(str(lake), _LAKE))
            (task_id,) = {report.suite} & suites.keys()
            on = report.run_key.date
            key = RunKey(f"{_DAG}.{task_id}", on, f"scheduled__{on}")
            text = suites[task_id].read_text("utf-8")
            scene.ran(
                replace(report, run_key=key),
                dag_id=_DAG,
                task_id=task_id,
                number=number,
                sources=(SourceFile(f"{task_id}.dql", text),),
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
