"""A Spark connection that does not exist, and one that cannot be looked up at the moment.

Airflow keeps the secrets backends of a process, so each look-up has a process of its own.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.processes import output_of

pytestmark = pytest.mark.airflow

BACKEND = """
from airflow.secrets import BaseSecretsBackend

class Vault(BaseSecretsBackend):
    def get_conn_value(self, conn_id, team_name=None):
        if conn_id == "unknown":
            return None
        raise TimeoutError("hush")
"""

API_SERVER = """
from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import ErrorResponse

class ApiServer:
    def send(self, message):
        if message.conn_id == "unknown":
            return ErrorResponse(error=ErrorType.CONNECTION_NOT_FOUND)
        raise AirflowRuntimeError(ErrorResponse(error=ErrorType.API_SERVER_ERROR))

task_runner.SUPERVISOR_COMMS = ApiServer()
"""

LOOKUP = """
import sys
from dqx_airflow.operators.spark_connection import require_connection

for name in sys.argv[1:]:
    try:
        require_connection(name)
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
"""


def look_up(*names: str, code: str = "", **env: str) -> list[str]:
    """The exception that each of the connections raises."""
    printed = output_of([sys.executable, "-c", code + LOOKUP, *names], env={**os.environ, **env})
    return [line for line in printed.splitlines() if line.startswith("Gate")]


@pytest.mark.slow
def test_a_failed_secrets_backend_is_not_an_unknown_connection(tmp_path: Path) -> None:
    (tmp_path / "vault.py").write_text(BACKEND)
    env = {"PYTHONPATH": str(tmp_path), "AIRFLOW__SECRETS__BACKEND": "vault.Vault"}
    unknown, far = look_up("unknown", "far", **env)
    assert unknown.startswith(
        "GateMisconfiguredError: the Spark connection 'unknown' does not exist"
    )
    assert far == (
        "GateInfrastructureError: the Spark connection 'far' cannot be looked up: "
        "Vault does not respond"
    )


@pytest.mark.slow
def test_a_failed_api_server_or_a_bad_variable_is_not_an_unknown_connection() -> None:
    names = ("unknown", "far", "broken")
    unknown, far, broken = look_up(*names, code=API_SERVER, AIRFLOW_CONN_BROKEN="{broken")
    assert unknown.startswith(
        "GateMisconfiguredError: the Spark connection 'unknown' does not exist"
    )
    assert far.startswith("GateInfrastructureError: the Spark connection 'far' cannot be looked up")
    assert far.endswith("the API server of Airflow does not respond")
    assert broken == (
        "GateMisconfiguredError: AIRFLOW_CONN_BROKEN cannot be read: write a URI, or a JSON object"
    )
