"""A Kubernetes on one machine: a real API server with etcd, and a simulated node.

The programs are those of envtest: `setup-envtest use -p env` fetches them, and tells the variable
KUBEBUILDER_ASSETS that names their folder. A container is a process of this machine in a mount
namespace of its own, with the volumes of its pod; its image is this machine and its PySpark.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import ssl
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark
import pytest

from tests.operators.clusters import Bundle, kube_config
from tests.processes import environment, free_port, running, wait_until

_ACCOUNT = "spark"
_NAMESPACE = "lake"
_NODE = "here"
_SPARK_HOME = Path(pyspark.__file__).parent
_TOKEN = "of-whoever-submits"
_AT = "127.0.0.1"
_HERE = f"/api/v1/namespaces/{_NAMESPACE}"
_ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces"
_STOPS_IN_S = 5
_NOT_FOUND = 404


@dataclass(frozen=True)
class Kubernetes:
    """Where a running Kubernetes is reached; `config` is the file for KUBECONFIG."""

    address: str
    folder: Path

    refused = (
        {"conf": {"spark.kubernetes.authenticate.driver.serviceAccountName": "nobody"}},
        'serviceaccount "nobody" not found',
    )

    @property
    def config(self) -> Path:
        return self.folder / "config.json"

    @property
    def authority(self) -> Path:
        return self.folder / "certificates" / "apiserver.crt"

    @property
    def connection(self) -> dict[str, Any]:
        extra = {"namespace": _NAMESPACE}
        return {"conn_type": "spark", "host": f"k8s://{self.address}", "extra": extra}

    @property
    def variables(self) -> dict[str, str]:
        return {
            "KUBECONFIG": str(self.config),
            "AIRFLOW__KUBERNETES_EXECUTOR__IN_CLUSTER": "False",
            "AIRFLOW__KUBERNETES_EXECUTOR__CONFIG_FILE": str(self.config),
        }

    @property
    def conf(self) -> dict[str, str]:
        return {
            "spark.kubernetes.container.image": "spark:of-this-machine",
            "spark.kubernetes.authenticate.driver.serviceAccountName": _ACCOUNT,
            "spark.kubernetes.driver.master": self.address,
            "spark.kubernetes.file.upload.path": f"file://{self.folder / 'uploads'}",
        }

    def in_cluster(self, bundle: Bundle) -> dict[str, Any]:
        return {
            "py_files": str(bundle.code),
            "archives": f"{bundle.native}#native",
            "conf": {
                "spark.kubernetes.driverEnv.PYTHONPATH": "native",
                "spark.kubernetes.driverEnv.PYSPARK_PYTHON": str(bundle.python),
            },
        }

    def drivers(self) -> list[str]:
        found = self.ask("GET", f"{_HERE}/pods?labelSelector=spark-role%3Ddriver")["items"]
        found.sort(key=lambda pod: str(pod["metadata"]["creationTimestamp"]), reverse=True)
        return [f"{_NAMESPACE}:{pod['metadata']['name']}" for pod in found]

    def fate(self, driver: str) -> str:
        try:
            pod = self.ask("GET", f"{_HERE}/pods/{driver.partition(':')[2]}")
        except urllib.error.HTTPError as error:
            if error.code != _NOT_FOUND:
                raise
            return "KILLED"
        phase = str(pod["status"]["phase"]).upper()
        return "WAITING" if phase == "PENDING" else phase

    def kill(self, driver: str) -> str:
        pod = driver.partition(":")[2]
        self.ask("DELETE", f"{_HERE}/pods/{pod}")
        return f"the driver pod {pod} is gone"

    def is_ready(self) -> bool:
        try:
            self.ask("GET", "/api/v1/namespaces/default")
        except OSError:
            return False
        return True

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """The answer of the API server; a PATCH is a strategic merge."""
        kind = "application/strategic-merge-patch+json" if method == "PATCH" else "application/json"
        request = urllib.request.Request(
            f"{self.address}{path}",
            method=method,
            headers={"Content-Type": kind, "Authorization": f"Bearer {_TOKEN}"},
            data=None if body is None else json.dumps(body).encode(),
        )
        trusted = ssl.create_default_context(cafile=str(self.authority))
        with urllib.request.urlopen(request, timeout=60, context=trusted) as answer:
            return json.load(answer)


@contextmanager
def kubernetes_cluster(folder: Path) -> Iterator[Kubernetes]:
    """Starts it, and waits until it takes pods; skips the test where it cannot be had."""
    pytest.importorskip("kubernetes")
    programs = Path(os.environ.get("KUBEBUILDER_ASSETS", "/nowhere"))
    if not (programs / "kube-apiserver").exists():
        pytest.skip("KUBEBUILDER_ASSETS names no folder with kube-apiserver and etcd")
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine gives processes no mount namespaces of their own")
    store, peers, port = (free_port() for _ in range(3))
    kubernetes = Kubernetes(f"https://{_AT}:{port}", folder)
    _write_credentials(kubernetes)
    etcd = [
        str(programs / "etcd"),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls=http://{_AT}:{store}",
        f"--advertise-client-urls=http://{_AT}:{store}",
        f"--listen-peer-urls=http://{_AT}:{peers}",
        "--unsafe-no-fsync",
    ]
    server = [
        str(programs / "kube-apiserver"),
        f"--etcd-servers=http://{_AT}:{store}",
        f"--bind-address={_AT}",
        f"--advertise-address={_AT}",
        f"--secure-port={port}",
        f"--cert-dir={kubernetes.authority.parent}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        f"--service-account-issuer={kubernetes.address}",
        f"--service-account-key-file={folder / 'account.key'}",
        f"--service-account-signing-key-file={folder / 'account.key'}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--authorization-mode=RBAC",
    ]
    log, env = folder / "kubernetes.log", environment()
    with running(etcd, env, log), running(server, env, log):
        wait_until(kubernetes.is_ready, log)
        _make_namespace(kubernetes)
        with _Node(kubernetes):
            yield kubernetes


def _write_credentials(kubernetes: Kubernetes) -> None:
    """A key for the tokens of service accounts, the token of who submits, and its KUBECONFIG."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (kubernetes.folder / "account.key").write_bytes(key)
    (kubernetes.folder / "tokens.csv").write_text(f"{_TOKEN},airflow,1,system:masters\n")
    authority = {"certificate-authority": str(kubernetes.authority)}
    config = kube_config(kubernetes.address, _TOKEN, **authority)
    kubernetes.config.write_text(json.dumps(config))


def _make_namespace(kubernetes: Kubernetes) -> None:
    """With what its controllers would make there, and an account with the rights of a driver."""
    at = f"{_ROLES}/{_NAMESPACE}"
    account = {"kind": "ServiceAccount", "name": _ACCOUNT, "namespace": _NAMESPACE}
    authority = {"ca.crt": kubernetes.authority.read_text()}
    resources = ["pods", "services", "configmaps", "persistentvolumeclaims"]
    rule = {"apiGroups": [""], "resources": resources, "verbs": ["*"]}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": _ACCOUNT}
    for path, name, body in (
        ("/api/v1/namespaces", _NAMESPACE, {}),
        ("/api/v1/nodes", _NODE, {}),
        (f"{_HERE}/serviceaccounts", "default", {}),
        (f"{_HERE}/serviceaccounts", _ACCOUNT, {}),
        (f"{_HERE}/configmaps", "kube-root-ca.crt", {"data": authority}),
        (f"{at}/roles", _ACCOUNT, {"rules": [rule]}),
        (f"{at}/rolebindings", _ACCOUNT, {"roleRef": role, "subjects": [account]}),
    ):
        kubernetes.ask("POST", path, {"metadata": {"name": name}, **body})


@dataclass
class _Node:
    """Takes every pod of the namespace, runs its container, and tells the API server of it."""

    kubernetes: Kubernetes
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _is_over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> None:
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        assert self._thread is not None
        self._thread.join()
        for process in self._running.values():
            _end(process, 0)

    def _work(self) -> None:
        while not self._is_over.wait(0.2):
            for pod in self.kubernetes.ask("GET", f"{_HERE}/pods")["items"]:
                try:
                    self._look_after(pod)
                except urllib.error.HTTPError as error:
                    # It is deleted in the meantime, or what it mounts is still to come.
                    if error.code != _NOT_FOUND:
                        raise

    def _look_after(self, pod: dict[str, Any]) -> None:
        name = pod["metadata"]["name"]
        path = f"{_HERE}/pods/{name}"
        process = self._running.get(name)
        if "deletionTimestamp" in pod["metadata"]:
            if process is not None:
                _end(self._running.pop(name), _STOPS_IN_S)
            self.kubernetes.ask("DELETE", path, {"gracePeriodSeconds": 0})
        elif "nodeName" not in pod["spec"]:
            target = {"kind": "Node", "name": _NODE}
            self.kubernetes.ask(
                "POST", f"{path}/binding", {"metadata": {"name": name}, "target": target}
            )
        elif process is None and pod["status"]["phase"] == "Pending":
            self._running[name] = _Container(self.kubernetes, pod).start()
            self._set_status(pod, "Running", {"running": {}})
        elif process is not None and process.poll() is not None:
            code = self._running.pop(name).returncode
            code = 128 - code if code < 0 else code
            phase = "Failed" if code else "Succeeded"
            self._set_status(pod, phase, {"terminated": {"exitCode": code}})

    def _set_status(self, pod: dict[str, Any], phase: str, state: dict[str, Any]) -> None:
        (container,) = pod["spec"]["containers"]
        always = {"image": container["image"], "imageID": "", "restartCount": 0}
        container_status = {
            "name": container["name"],
            "state": state,
            "ready": phase == "Running",
            **always,
        }
        status = {"phase": phase, "podIP": _AT, "containerStatuses": [container_status]}
        path = f"{_HERE}/pods/{pod['metadata']['name']}/status"
        self.kubernetes.ask("PATCH", path, {"status": status})


@dataclass(frozen=True)
class _Container:
    """The one container of a pod, and its volumes."""

    kubernetes: Kubernetes
    pod: dict[str, Any]

    @property
    def folder(self) -> Path:
        return self.kubernetes.folder / "pods" / self.pod["metadata"]["name"]

    def start(self) -> subprocess.Popen[bytes]:
        (container,) = self.pod["spec"]["containers"]
        (self.folder / "work").mkdir(parents=True, exist_ok=True)
        hosts = self.folder / "hosts"
        services = self.kubernetes.ask("GET", f"{_HERE}/services")["items"]
        names = [f"{service['metadata']['name']}.{_NAMESPACE}.svc" for service in services]
        hosts.write_text("".join(f"{_AT} {name}\n" for name in ["localhost", *names]))
        volumes = {volume["name"]: volume for volume in self.pod["spec"]["volumes"]}
        mounts = [
            (
                self._content_of(volumes[mount["name"]]) / mount.get("subPath", ""),
                mount["mountPath"],
            )
            for mount in container["volumeMounts"]
        ]
        script = "\n".join(
            [
                "set -e",
                *self._writable({Path(at).resolve().parts[1] for _, at in mounts}),
                f"mount --bind {hosts} /etc/hosts",
                *(f"mkdir -p {at}; mount --bind {source} {at}" for source, at in mounts),
                f"cd {self.folder / 'work'}",
                'exec "$@"',
            ]
        )
        env = self._environment(container)
        command = ["unshare", "-rm", "sh", "-c", script, "sh", *_entrypoint(container, env)]
        with (self.folder / "log").open("wb") as log:
            return subprocess.Popen(
                command, env=env, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def _writable(self, tops: set[str]) -> Iterator[str]:
        """Hides files in these folders from other containers."""
        for top in sorted(tops):
            upper, work = self.folder / f"{top}.upper", self.folder / f"{top}.work"
            upper.mkdir(exist_ok=True)
            work.mkdir(exist_ok=True)
            options = f"lowerdir=/{top},upperdir={upper},workdir={work}"
            yield f"mount -t overlay overlay -o {options} /{top}"

    def _environment(self, container: dict[str, Any]) -> dict[str, str]:
        variables = {}
        for variable in container.get("env", ()):
            source = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            known = {"status.podIP": _AT, "metadata.name": self.pod["metadata"]["name"]}
            variables[variable["name"]] = known[source] if source else variable.get("value", "")
        return {**environment(SPARK_HOME=str(_SPARK_HOME)), **variables}

    def _content_of(self, volume: dict[str, Any]) -> Path:
        if "hostPath" in volume:
            return Path(volume["hostPath"]["path"])
        folder = self.folder / "volumes" / volume["name"]
        folder.mkdir(parents=True, exist_ok=True)
        if "configMap" in volume:
            self._write_map(volume["configMap"], folder)
        for source in volume.get("projected", {}).get("sources", ()):
            if "configMap" in source:
                self._write_map(source["configMap"], folder)
            elif "serviceAccountToken" in source:
                (folder / source["serviceAccountToken"]["path"]).write_text(self._token())
            else:
                (item,) = source["downwardAPI"]["items"]
                (folder / item["path"]).write_text(_NAMESPACE)
        return folder

    def _write_map(self, source: dict[str, Any], folder: Path) -> None:
        data = self.kubernetes.ask("GET", f"{_HERE}/configmaps/{source['name']}").get("data", {})
        items = source.get("items") or [{"key": key, "path": key} for key in data]
        for item in items:
            (folder / item["path"]).write_text(data[item["key"]])

    def _token(self) -> str:
        account = self.pod["spec"]["serviceAccountName"]
        path = f"{_HERE}/serviceaccounts/{account}/token"
        answer = self.kubernetes.ask("POST", path, {"spec": {"expirationSeconds": 3600}})
        return str(answer["status"]["token"])


def _entrypoint(container: dict[str, Any], env: dict[str, str]) -> list[str]:
    """The command that the image of Spark runs for a driver or an executor."""
    role, *arguments = container["args"]
    if role == "driver":
        bind = f"spark.driver.bindAddress={env['SPARK_DRIVER_BIND_ADDRESS']}"
        submit = [str(_SPARK_HOME / "bin" / "spark-submit"), "--conf", bind]
        return [*submit, "--deploy-mode", "client", *arguments]
    java = shutil.which("java", path=f"{env.get('JAVA_HOME', '')}/bin:{env['PATH']}")
    options = sorted(
        (name for name in env if name.startswith("SPARK_JAVA_OPT_")),
        key=lambda name: int(name.rpartition("_")[2]),
    )
    places = [env["SPARK_CONF_DIR"], f"{_SPARK_HOME}/jars/*"]
    flags = {
        "driver-url": "DRIVER_URL",
        "executor-id": "EXECUTOR_ID",
        "cores": "EXECUTOR_CORES",
        "app-id": "APPLICATION_ID",
        "hostname": "EXECUTOR_POD_IP",
        "resourceProfileId": "RESOURCE_PROFILE_ID",
        "podName": "EXECUTOR_POD_NAME",
    }
    return [
        str(java),
        *(env[name] for name in options),
        f"-Xmx{env['SPARK_EXECUTOR_MEMORY']}",
        *("-cp", ":".join(places)),
        "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
        *(word for flag, name in flags.items() for word in (f"--{flag}", env[f"SPARK_{name}"])),
    ]


def _end(process: subprocess.Popen[bytes], grace_s: float) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(grace_s)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
