"""A Spark Connect server that dies under a gate: what its message says. No server is needed."""

from __future__ import annotations

import pytest

from dqx_airflow.errors import SparkError

pytestmark = pytest.mark.spark

DRAWN = """<_MultiThreadedRendezvous of RPC that terminated with:
\tstatus = StatusCode.UNAVAILABLE
\tdetails = "failed to connect to all addresses; Connection refused (111)"
\tdebug_error_string = "UNKNOWN:Error received from peer"
>"""


def test_the_message_has_the_reason_and_not_the_name_of_a_class_of_grpc() -> None:
    import grpc
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    from dqx_airflow.engine.session.spark_errors import spark_failures

    lost = SparkConnectGrpcException(DRAWN, grpc_status_code=grpc.StatusCode.UNAVAILABLE)
    with pytest.raises(SparkError) as raised, spark_failures():
        raise lost
    assert raised.value.problem == (
        "Spark was lost: failed to connect to all addresses; Connection refused (111)"
    )
    assert raised.value.hint
