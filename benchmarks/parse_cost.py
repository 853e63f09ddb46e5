"""What 300 gates cost to parse, and what one gate costs in the process of its task.

Each is compared with Airflow's SparkSubmitOperator, pair by pair, in fresh processes. The
`spark-submit` is the stub of the tests, which writes a report.

    python benchmarks/parse_cost.py [ROUNDS]
    python benchmarks/parse_cost.py --files 300
    python benchmarks/parse_cost.py --gates 300

The second has one operator in each of many DAG files, the third many operators in one file, with a
suite each, also by `gates_of`. Airflow's class for that parses each file in a process, forked from
one that has loaded the plugins, as in the DAG processor.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROUNDS = int(sys.argv[1]) if len(sys.argv) == 2 else 9
OPERATORS = 300

PLAIN = """
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

def operator(task_id):
    return SparkSubmitOperator(task_id=task_id, application="job.py", name="job")
"""
DQL_GATE = """
from dqx_airflow.operators import DqlGateOperator

def operator(task_id):
    datasets = {"orders": {"path": "/lake/orders", "date_column": "day"}}
    return DqlGateOperator(task_id=task_id, suite="orders.dql", datasets=datasets)
"""
CONTRACT_GATE = """
from dqx_airflow.operators import ContractGateOperator

def operator(task_id):
    return ContractGateOperator(task_id=task_id, contract="orders.yaml", data="/lake/orders")
"""
DAG = """
from datetime import datetime
from airflow.sdk import DAG

with DAG("lake", start_date=datetime(2024, 1, 1), schedule=None):
    for number in range({operators}):
        operator(f"task_{{number}}")
"""
KINDS = {
    "SparkSubmitOperator": PLAIN,
    "DqlGateOperator": DQL_GATE,
    "ContractGateOperator": CONTRACT_GATE,
}

# The work of the DAG processor per file, in a process that has imported Airflow already.
PARSE = """
import json, sys, time
from airflow.dag_processing.dagbag import DagBag
from airflow.serialization.serialized_objects import DagSerialization

started, cpu = time.perf_counter(), time.process_time()
bag = DagBag(dag_folder=sys.argv[1])
assert not bag.import_errors, bag.import_errors
stored = json.dumps(DagSerialization.to_dict(bag.dags["lake"]))
print(json.dumps({"wall": time.perf_counter() - started, "cpu": time.process_time() - cpu}))
"""

# What the DAG processor does with the files of a folder, several times, with the kinds of gates in
# turn: by kind, CPU seconds of all processes, each time.
FOLDER = """
import gc, json, os, resource, selectors, sys, time, uuid
from pathlib import Path
import structlog
from airflow.dag_processing.processor import DagFileProcessorProcess
from airflow.listeners.listener import get_listener_manager

sys.argv.append("dag-processor")
get_listener_manager()  # it loads the plugins
gc.freeze()
folder, selector = Path(sys.argv[1]), selectors.DefaultSelector()
kinds = sorted(path.name for path in folder.iterdir())

def used():
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime

def process(file):
    parser = DagFileProcessorProcess.start(
        id=uuid.uuid4(), path=str(file), bundle_path=folder, bundle_name="dags",
        dag_file_rel_path=file.name, callbacks=[], selector=selector, client=None,
        logger=structlog.get_logger(), logger_filehandle=open(os.devnull, "wb"),
    )
    while not parser.is_ready:
        for key, _ in selector.select(timeout=1):
            handler, on_close = key.data
            if not handler(key.fileobj):
                on_close(key.fileobj)
                key.fileobj.close()
    result = parser.parsing_result
    assert result.serialized_dags and not result.import_errors, (file, result)
    parser.close()

costs = {kind: [] for kind in kinds}
for turn in range(int(os.environ["TURNS"])):
    for kind in kinds:
        costs[kind].append(0)
    for number in range(len(list((folder / kinds[0]).glob("*.py")))):
        for kind in kinds if (number + turn) % 2 else reversed(kinds):
            before = used()
            process(folder / kind / f"lake_{number}.py")
            costs[kind][-1] += used() - before
print(json.dumps(costs))
"""

# The process of a task: it parses the DAG file and executes one operator.
TASK = """
import json, sys
from datetime import datetime, timezone
from types import SimpleNamespace
from airflow.dag_processing.dagbag import DagBag

bag = DagBag(dag_folder=sys.argv[1])
(dag,) = bag.dags.values()
run = SimpleNamespace(
    logical_date=datetime(2024, 5, 17, tzinfo=timezone.utc), conf={}, clear_number=0
)
task = SimpleNamespace(
    dag_id="lake", task_id="task_0", run_id="manual", map_index=-1, try_number=1, id="attempt",
    dag_run=run, xcom_push=lambda key, value: None,
    get_template_context=lambda: {"dag_run": run},
)
operator = dag.get_task("task_0")
operator.execute(context={"ti": task, "dag_run": run, "dag": dag, "ds": "2024-05-17"})
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
held = open("/proc/self/smaps_rollup").read()
print(json.dumps({"peak": peak, "end": held}))
"""

SUITE = """suite "Orders" {
    check "Completeness" on orders {
        assert null_count(id) == 0 name "orders.id" severity P0
    }
}
"""
CONTRACT = """dataContractSpecification: 1.2.1
id: orders
info: {title: Orders, version: 1.0.0}
models:
  orders:
    fields:
      id: {type: long, required: true}
"""

# Records the memory of the calling process while Spark would run, and writes the report of a gate.
SUBMIT = """#!/bin/sh
cat /proc/$PPID/smaps_rollup > "$NOTES"
case "$*" in *--request*) exec "$PYTHON" -c "$REPORT" passed "$@" > /dev/null ;; esac
"""
REPORT = """
import sys
from tests.operators import spark_submit_stub
spark_submit_stub.main(sys.argv[1], sys.argv[2:])
"""


def write_dags(folder: Path) -> None:
    """Writes, for each kind of operator, a DAG of many and a DAG of one."""
    for kind, text in KINDS.items():
        for name, operators in ((kind, OPERATORS), (f"{kind}_1", 1)):
            (folder / f"{name}.py").write_text(text + DAG.format(operators=operators))
    (folder / "orders.dql").write_text(SUITE)
    (folder / "orders.yaml").write_text(CONTRACT)


def environment(home: Path) -> dict[str, str]:
    """The variables of a fresh Airflow whose `spark-submit` is the stub."""
    submit = home / "bin" / "spark-submit"
    submit.parent.mkdir()
    submit.write_text(SUBMIT)
    submit.chmod(0o755)
    kept = {key: os.environ[key] for key in ("HOME", "LANG", "TMPDIR") if key in os.environ}
    return {
        **kept,
        "PATH": os.pathsep.join([str(submit.parent), os.environ["PATH"]]),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__DQX__RESULTS_ROOT": str(home / "results"),
        "AIRFLOW__OPENLINEAGE__DISABLED": "True",
        "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "local[2]"}',
        "NOTES": str(home / "notes"),
        "PYTHON": sys.executable,
        "REPORT": REPORT,
    }


def ran(program: str, dag_file: Path, env: dict[str, str]) -> Any:
    """The last line that the program prints in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", program, str(dag_file)],
        env=env,
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def memory(dag_file: Path, env: dict[str, str]) -> dict[str, float]:
    """The memory of the task's process in MB, with and without the pages of libraries."""
    shutil.rmtree(Path(env["AIRFLOW_HOME"], "results"), ignore_errors=True)
    told = ran(TASK, dag_file, env)
    meanwhile = Path(env["NOTES"]).read_text()
    return {
        "while Spark runs": megabytes(meanwhile, "Rss"),
        "of it its own": megabytes(meanwhile, "Private_Dirty"),
        "peak": megabytes(told["peak"], "VmHWM"),
        "its own in the end": megabytes(told["end"], "Private_Dirty"),
    }


def megabytes(status: str, name: str) -> float:
    """A figure from a file of /proc, in MB."""
    line = next(line for line in status.splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) / 1024


def show(title: str, rounds: list[dict[str, dict[str, float]]], compare: str) -> None:
    """Prints a table of medians, with the medians of the ratios and differences within a round."""
    plain, *gates = KINDS
    figures = list(rounds[0][plain])
    print(f"\n{title}\n")
    print(f"{'':<22}" + "".join(f"{figure:>28}" for figure in figures))
    for kind in (plain, *gates):
        cells = []
        for figure in figures:
            cell = f"{statistics.median(one[kind][figure] for one in rounds):.2f}"
            if kind != plain:
                pairs = [(one[kind][figure], one[plain][figure]) for one in rounds]
                if compare == "ratio":
                    cell += f" (x {statistics.median(ours / bare for ours, bare in pairs):.3f})"
                else:
                    cell += f" ({statistics.median(ours - bare for ours, bare in pairs):+.1f})"
            cells.append(f"{cell:>28}")
        print(f"{kind:<22}{''.join(cells)}")


def compare_files(files: int) -> None:
    """Prints the CPU seconds for DAG files: the first time, and when they are unchanged."""
    with tempfile.TemporaryDirectory() as folder:
        home, dags = Path(folder), Path(folder, "dags")
        for kind, text in KINDS.items():
            (dags / kind).mkdir(parents=True)
            for place in range(files):
                dag = text + DAG.format(operators=1).replace('"lake"', f'"{kind}_{place}"')
                own = dag.replace("orders.", f"orders_{place}.")
                (dags / kind / f"lake_{place}.py").write_text(own)
                (dags / kind / f"orders_{place}.dql").write_text(SUITE)
                (dags / kind / f"orders_{place}.yaml").write_text(CONTRACT)
        costs = ran(FOLDER, dags, {**environment(home), "TURNS": "2"})
    plain = costs[next(iter(KINDS))]
    for kind in KINDS:
        pairs = zip(costs[kind], plain, strict=True)
        shown = "".join(f"{own:8.1f} s (x {own / bare:.3f})" for own, bare in pairs)
        print(f"{kind:<22}{shown}", flush=True)


IN_ONE_FILE = {
    "SparkSubmitOperator": PLAIN,
    "DqlGateOperator": """
from dqx_airflow.operators import DqlGateOperator

def operator(task_id):
    datasets = {task_id: {"path": f"/lake/{task_id}", "date_column": "day"}}
    return DqlGateOperator(task_id=task_id, suite=f"{task_id}.dql", datasets=datasets)
""",
}
BY_SETTINGS = """
from datetime import datetime
from pathlib import Path
from airflow.sdk import DAG
from dqx_airflow.operators import gates_of

with DAG("lake", start_date=datetime(2024, 1, 1), schedule=None):
    gates_of(Path(__file__).with_name("dqx.toml"){more})
"""
OF_SETTINGS = """
[datasets.{name}]
path = "/lake/{name}"
date_column = "day"

[gates.{name}]
suite = "{name}.dql"
group = "group {group}"
"""


def compare_gates(gates: int) -> None:
    """Prints the CPU seconds for DAG files with many gates: the first time, and the median of the
    next ones."""
    texts = {
        **{kind: text + DAG.format(operators=gates) for kind, text in IN_ONE_FILE.items()},
        "gates_of": BY_SETTINGS.format(more=""),
        "gates_of, in a batch": BY_SETTINGS.format(more=", batch=True"),
    }
    with tempfile.TemporaryDirectory() as folder:
        home, dags = Path(folder), Path(folder, "dags")
        for kind, text in texts.items():
            own = dags / kind
            own.mkdir(parents=True)
            (own / "lake_0.py").write_text(text)
            tables = []
            for number in range(gates):
                name = f"task_{number}"
                (own / f"{name}.dql").write_text(SUITE.replace("orders", name))
                tables.append(OF_SETTINGS.format(name=name, group=number % 8))
            (own / "dqx.toml").write_text("".join(tables))
        costs = ran(FOLDER, dags, {**environment(home), "TURNS": str(ROUNDS + 1)})
    plain = costs["SparkSubmitOperator"]
    for kind in texts:
        ratios = (own / bare for own, bare in zip(costs[kind][1:], plain[1:], strict=True))
        again = statistics.median(costs[kind][1:])
        ratio = statistics.median(ratios)
        print(f"{kind:<22}{costs[kind][0]:8.2f} s{again:8.3f} s (x {ratio:.3f})", flush=True)


def main() -> None:
    if sys.argv[1:2] == ["--gates"]:
        compare_gates(int(sys.argv[2]))
        return
    if len(sys.argv) == 3:
        compare_files(int(sys.argv[2]))
        return
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        env = environment(home)
        write_dags(home)
        parsed, held = [], []
        for number in range(ROUNDS + 1):
            order = list(KINDS) if number % 2 else [*reversed(KINDS)]
            parsed.append({kind: ran(PARSE, home / f"{kind}.py", env) for kind in order})
            held.append({kind: memory(home / f"{kind}_1.py", env) for kind in order})
        # The first round warms the file cache.
        show(f"parsing a DAG of {OPERATORS} operators, s", parsed[1:], "ratio")
        show("the process of one task, MB", held[1:], "difference")


if __name__ == "__main__":
    main()
