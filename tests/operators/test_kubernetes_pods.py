"""Kubernetes drivers: a real client, with stand-ins for the API server and `spark-submit`.

They run where the extra `kubernetes` is installed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.http_stub import Asked, Reply, http_stub
from tests.operators.clusters import kube_config
from tests.operators.gate_stubs import Gates, SparkSubmit

pytestmark = pytest.mark.airflow

POD_NAME = "spark.kubernetes.driver.pod.name"
POD = "dqx-gate-0123abcd-driver"
PATH = f"/api/v1/namespaces/lake/pods/{POD}"


@dataclass
class ApiServer:
    """Answers with `phases`, one for each question; the last one repeats. `None` is no answer."""

    phases: list[str | None] = field(default_factory=lambda: ["Running"])
    asked: int = 0
    is_deleted: bool = False

    def answer(self, path: str) -> tuple[int, dict[str, Any]]:
        if path != PATH or self.is_deleted:
            return 404, {"kind": "Status", "code": 404}
        self.asked += 1
        phase = self.phases[min(self.asked, len(self.phases)) - 1]
        if phase is None:
            return 500, {"kind": "Status", "code": 500}
        status = {"phase": phase, "containerStatuses": self.containers(phase)}
        return 200, {"kind": "Pod", "metadata": {"name": POD}, "status": status}

    def containers(self, phase: str) -> list[dict[str, Any]]:
        """The driver's, and one of those that clusters add; pending pods have no more."""
        if phase == "Pending":
            return []
        ended = {"terminated": {"exitCode": 124 if phase == "Failed" else 0}}
        always = {"image": "i", "imageID": "i", "ready": False, "restartCount": 0}
        return [
            {"name": "sidecar", "state": {"terminated": {"exitCode": 9}}, **always},
            {
                "name": "spark-kubernetes-driver",
                "state": {"running": {}} if phase == "Running" else ended,
                **always,
            },
        ]


@pytest.fixture
def api(
    airflow_environment: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ApiServer]:
    pytest.importorskip("airflow.providers.cncf.kubernetes.kube_client")
    found = ApiServer()

    def answer(asked: Asked) -> Reply:
        answered = Reply(*found.answer(asked.path))
        found.is_deleted = found.is_deleted or (asked.method, asked.path) == ("DELETE", PATH)
        return answered

    with http_stub(answer) as address:
        (tmp_path / "kube.json").write_text(json.dumps(kube_config(address)))
        monkeypatch.setenv("AIRFLOW__KUBERNETES_EXECUTOR__IN_CLUSTER", "False")
        monkeypatch.setenv("AIRFLOW__KUBERNETES_EXECUTOR__CONFIG_FILE", str(tmp_path / "kube.json"))
        yield found


@pytest.fixture
def driver(api: ApiServer) -> Any:
    from dqx_airflow.operators.drivers import KubernetesPod

    return KubernetesPod(f"lake:{POD}", "kubernetes")


def test_a_pod_is_followed_to_its_end(driver: Any, api: ApiServer) -> None:
    api.phases = ["Pending", "Running", "Succeeded", "Failed"]
    ends = [driver.ended() for _ in api.phases]
    assert ends[:2] == [None, None]
    assert [(end.how, end.code) for end in ends[2:]] == [
        (f"the driver pod {POD} ended as Succeeded", 0),
        (f"the driver pod {POD} ended as Failed", 124),
    ]


@pytest.mark.parametrize("phase", ["Unknown", None])
def test_a_pod_without_a_phase_is_unknown(driver: Any, api: ApiServer, phase: str | None) -> None:
    from dqx_airflow.operators.submitters import DriverUnknownError

    api.phases = [phase]
    with pytest.raises(DriverUnknownError):
        driver.ended()


def test_a_cancelled_pod_is_deleted(driver: Any, api: ApiServer) -> None:
    driver.cancel()
    assert api.is_deleted
    assert driver.ended().how == f"the driver pod {POD} no longer exists"


@pytest.fixture
def on_kubernetes(api: ApiServer, gate: Gates, monkeypatch: pytest.MonkeyPatch) -> Gates:
    """Makes gates whose Spark connection leads to Kubernetes."""
    connection = {
        "conn_type": "spark",
        "host": "k8s://https://host",
        "extra": {"namespace": "lake"},
    }
    monkeypatch.setenv("AIRFLOW_CONN_KUBERNETES", json.dumps(connection))
    return replace(gate, given={**gate.given, "conn_id": "kubernetes"})


def test_the_submission_returns_with_the_pod(
    on_kubernetes: Gates, spark_submit: SparkSubmit
) -> None:
    made = on_kubernetes(deploy_mode="cluster", deferrable=True)
    _, arguments = on_kubernetes.deferred(made).trigger.serialize()
    pod = spark_submit.conf[POD_NAME]
    assert (arguments["kind"], arguments["driver_id"]) == ("kubernetes", f"lake:{pod}")
    assert spark_submit.conf["spark.kubernetes.submission.waitAppCompletion"] == "false"
    assert "spark.yarn.maxAppAttempts" not in spark_submit.conf


@pytest.mark.parametrize(
    ("name", "pod"),
    [
        (None, "dqx-gate-[0-9a-f]{16}-driver"),
        ("Orders: 100 % sound!", "orders-100-sound-[0-9a-f]{16}-driver"),
        ("gate-" * 60, "gate-gate-gate-gate-gate-gate-gate-gate-[0-9a-f]{16}-driver"),
        ("✓", "dqx-gate-[0-9a-f]{16}-driver"),
    ],
)
def test_every_driver_has_its_own_pod(
    on_kubernetes: Gates, spark_submit: SparkSubmit, name: str | None, pod: str
) -> None:
    made = on_kubernetes(deploy_mode="cluster", name=name)
    found = set()
    for attempt in "ab":
        on_kubernetes.context["ti"].id = attempt
        made.execute(on_kubernetes.context)
        found.add(spark_submit.conf[POD_NAME])
    assert len(found) == 2
    assert [name for name in found if not re.fullmatch(pod, name)] == []


def test_a_configured_pod_name_is_kept(on_kubernetes: Gates, spark_submit: SparkSubmit) -> None:
    on_kubernetes.run(deploy_mode="cluster", conf={POD_NAME: "mine"})
    assert spark_submit.conf[POD_NAME] == "mine"


def test_a_driver_on_the_worker_has_the_variables_of_its_gate(
    on_kubernetes: Gates, spark_submit: SparkSubmit
) -> None:
    on_kubernetes.run(env_vars={"ZONE": "eu"})
    assert spark_submit.env["ZONE"] == "eu"
    assert "SPARK_SUBMIT_OPTS" in spark_submit.env
    assert not [name for name in spark_submit.conf if "driverEnv" in name or name == POD_NAME]
