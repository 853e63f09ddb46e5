"""What importing the operators costs in addition to Airflow's own operator."""

from __future__ import annotations

import sys

import pytest

from tests.processes import output_of

pytestmark = pytest.mark.airflow


AIRFLOWS = (
    "from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator; "
    "from airflow.providers.common.compat.sdk import AirflowFailException, BaseHook, conf"
)
OURS = "from dqx_airflow.operators import DqlGateOperator"
ADDED = f"""
import sys
{AIRFLOWS}
before = set(sys.modules)
{OURS}
print(*set(sys.modules) - before)
"""


@pytest.mark.more
def test_importing_a_gate_loads_nothing_heavy() -> None:
    printed = output_of([sys.executable, "-c", ADDED])
    added = printed.splitlines()[-1].split()  # Airflow 3.2 writes its log there, too
    packages = {name.partition(".")[0] for name in added}
    heavy = {"lark", "sympy", "pyarrow", "deltalake", "cattrs", "typer", "rich", "yaml", "pyspark"}
    assert packages & heavy == set()
    foreign = {name for name in added if not name.startswith("dqx_airflow")}
    assert len(foreign) < 10, sorted(foreign)
    ours = {name.split(".")[1] for name in added if name.startswith("dqx_airflow.")}
    assert ours == {"operators", "limits"}
