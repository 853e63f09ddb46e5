"""A gate over a database table: which processes get the password of its connection."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.operators.gate_stubs import SUITE, Gates, Log, SparkSubmit, dag_file

pytestmark = pytest.mark.airflow

SECRET = "s3cr3t-P4ss"
CONNECTION = {
    "conn_type": "postgres",
    "host": "db",
    "schema": "sales",
    "login": "reader",
    "password": SECRET,
    "extra": {"sslmode": "require"},
}
DAG = dag_file("""
    DqlGateOperator(
        task_id="gate",
        suite="orders.dql",
        datasets={"orders": {"table": "shop.orders", "conn_id": "shop"}},
        results_root="RESULTS",
    )
""")


def test_only_a_local_driver_gets_the_password(
    run_file: Callable[..., dict[str, str]],
    spark_submit: SparkSubmit,
    tmp_path: Any,
    log: Log,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps(CONNECTION))
    text = DAG.replace("RESULTS", str(tmp_path / "results"))
    assert run_file(text, {"orders.dql": SUITE})["gate"] == "success"
    assert json.loads(spark_submit.env["DQX_CONN_SHOP"])["password"] == SECRET
    assert SECRET not in str(spark_submit.calls)
    assert SECRET not in str(spark_submit.requests)
    assert SECRET not in log.text
    assert "DQX_CONN_SHOP" not in os.environ
    (orders,) = spark_submit.requests[0].datasets
    assert orders.lineage_name == "postgres://db:5432/sales.shop.orders"


@pytest.mark.parametrize(
    ("connection", "problem"),
    [
        (None, "the database connection 'shop' does not exist"),
        ({**CONNECTION, "conn_type": "oracle"}, "of type oracle"),
    ],
)
def test_an_unusable_connection_misconfigures_the_gate(
    gate: Gates, monkeypatch: pytest.MonkeyPatch, connection: dict[str, Any] | None, problem: str
) -> None:
    from dqx_airflow.operators.exceptions import GateMisconfiguredError

    if connection is not None:
        monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps(connection))
    given = {"orders": {"table": "shop.orders", "conn_id": "shop"}}
    with pytest.raises(GateMisconfiguredError, match=problem) as refused:
        gate.request(datasets=given)
    assert SECRET not in str(refused.value)
