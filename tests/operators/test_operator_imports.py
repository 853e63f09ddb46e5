"""What an import of the operators costs, on top of the one of Airflow's own operator."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.airflow


AIRFLOWS = (
    "from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator; "
    "from airflow.providers.common.compat.sdk import AirflowFailException, BaseHook, conf"
)
OURS = "from dqx_airflow.operators import DqlGateOperator"
NEW = "import sys; print(*sorted(sys.modules))"


def modules_of(statement: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{statement}; {NEW}"], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_importing_a_gate_loads_nothing_heavy() -> None:
    added = modules_of(OURS) - modules_of(AIRFLOWS)
    packages = {name.partition(".")[0] for name in added}
    heavy = {"lark", "sympy", "pyarrow", "deltalake", "cattrs", "typer", "rich", "yaml", "pyspark"}
    assert packages & heavy == set()
    foreign = {name for name in added if not name.startswith("dqx_airflow")}
    assert len(foreign) < 10, sorted(foreign)
    ours = {name.split(".")[1] for name in added if name.startswith("dqx_airflow.")}
    assert ours == {"operators", "limits"}
