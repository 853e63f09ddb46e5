"""The manifests of a Spark Connect server match each other, the systemd recipe, and our Spark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "dags_examples" / "kubernetes"
PAGE = (ROOT / "dqx_airflow" / "docs" / "operating.md").read_text("utf-8")
PROXY = (FOLDER / "nginx.conf").read_text("utf-8")
VALUES = yaml.safe_load((FOLDER / "airflow-values.yaml").read_text("utf-8"))
OVERLAY = yaml.safe_load((FOLDER / "kustomization.yaml").read_text("utf-8"))
OBJECTS = {
    one["kind"]: one
    for one in yaml.safe_load_all((FOLDER / "spark-connect.yaml").read_text("utf-8"))
}
POD = OBJECTS["Deployment"]["spec"]["template"]
SPARK, TLS = POD["spec"]["containers"]


def test_every_config_map_and_secret_of_the_pod_is_created() -> None:
    made = {one["name"] for one in (*OVERLAY["configMapGenerator"], *OVERLAY["secretGenerator"])}
    volumes = {volume["name"]: volume for volume in POD["spec"]["volumes"]}
    used = {one["secretRef"]["name"] for one in SPARK["envFrom"]}
    used |= {one["secret"]["secretName"] for one in volumes.values() if "secret" in one}
    used |= {one["configMap"]["name"] for one in volumes.values() if "configMap" in one}
    assert used == made
    mounted = {one["name"] for container in (SPARK, TLS) for one in container["volumeMounts"]}
    assert mounted == volumes.keys()


def test_service_and_policy_find_the_pod_and_the_port_of_the_proxy() -> None:
    labels = POD["metadata"]["labels"]
    service, policy = OBJECTS["Service"]["spec"], OBJECTS["NetworkPolicy"]["spec"]
    assert OBJECTS["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    assert service["selector"] == policy["podSelector"]["matchLabels"] == labels
    (port,) = TLS["ports"]
    assert service["ports"][0]["targetPort"] == port["name"]
    assert policy["ingress"][0]["ports"] == [{"port": port["name"]}]
    assert f"listen {port['containerPort']} ssl" in PROXY
    assert "grpc_pass grpc://127.0.0.1:15002;" in PROXY
    # The server itself listens where the proxy alone gets to.
    assert "spark.connect.grpc.binding.address=127.0.0.1" in SPARK["command"]
    commands = {probe: SPARK[probe]["exec"]["command"][-1] for probe in _PROBES}
    assert {probe for probe in commands if "15002" not in commands[probe]} == set()


_PROBES = ("startupProbe", "livenessProbe")


def test_command_and_spark_version_match_the_unit_and_the_lock_file() -> None:
    (unit,) = re.findall(r"^ExecStart=\S+ (.+?)^Restart", PAGE, re.M | re.S)
    assert unit.replace("\\\n", "").split() == SPARK["command"][1:]
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    (spark,) = re.findall(r"^pyspark==(\S+)", lock, re.M)
    assert SPARK["image"] == f"apache/spark:{spark}"
    assert f"/opt/spark-connect/bin/pip install pyspark=={spark}\n" in PAGE


def test_the_limit_of_memory_is_the_heap_and_a_quarter() -> None:
    command: list[str] = SPARK["command"]
    heap = int(command[command.index("--driver-memory") + 1].removesuffix("g"))
    assert SPARK["resources"]["limits"]["memory"] == f"{heap * 5 // 4}Gi"
    assert f"MemoryMax={heap * 5 // 4}G\n" in PAGE


def test_containers_have_least_privileges() -> None:
    assert POD["spec"]["securityContext"]["runAsNonRoot"]
    for container in (SPARK, TLS):
        confined: dict[str, Any] = container["securityContext"]
        assert not confined["allowPrivilegeEscalation"]
        assert confined["readOnlyRootFilesystem"]
        assert confined["capabilities"] == {"drop": ["ALL"]}


def test_workers_get_the_connection_and_the_authority_that_the_page_makes() -> None:
    (connection,), (volume,), (mount,) = (
        VALUES[key] for key in ("secret", "volumes", "volumeMounts")
    )
    secret = volume["secret"]
    assert connection["secretName"] == secret["secretName"]
    assert f"create secret generic {connection['secretName']} " in PAGE
    assert f"--from-literal={connection['secretKey']}=" in PAGE
    (item,) = secret["items"]
    assert f"--from-file={item['key']}=tls.crt" in PAGE
    assert VALUES["env"][0]["value"] == f"{mount['mountPath']}/{item['path']}"


def test_the_token_and_the_key_are_never_committed() -> None:
    ignored = (ROOT / ".gitignore").read_text("utf-8")
    assert "/dags_examples/kubernetes/connect.env\n" in ignored
    assert "/dags_examples/kubernetes/tls.*\n" in ignored
