"""A SparkApplication for each gate, which the Spark operator of Kubeflow runs on Kubernetes.

https://kubeflow.github.io/spark-operator/docs/api-docs.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dqx_airflow.operators.submitters import DriverEnd, Job, Submitter, job_end

_KIND = ("sparkoperator.k8s.io", "v1beta2")
_PLURAL = "sparkapplications"
_ENDED = {"COMPLETED", "FAILED"}
_NOT_FOUND = 404
_CONFLICT = 409
_LIMIT = {"_request_timeout": 60}


@dataclass(frozen=True)
class SparkApplications(Submitter):
    """Submits a gate as a SparkApplication.

    :param spec: its `spec`: `image`, `sparkVersion`, `mainApplicationFile`, the address of
        `gate_job.py`, `driver`, `executor` and so on. The gate adds `arguments`, to `sparkConf`,
        and that it is never restarted.
    :param namespace: where it runs.
    :param kubernetes_conn_id: the connection to Kubernetes.
    """

    spec: Mapping[str, Any]
    namespace: str = "default"
    kubernetes_conn_id: str = "kubernetes_default"

    def submit(self, job: Job) -> str:
        """The name of the application. Kubernetes refuses a second one of the same name."""
        own = {"type": "Python", "mode": "cluster", "pythonVersion": "3", **self.spec}
        conf = {**job.conf, **own.get("sparkConf", {})}
        never = {"type": "Never"}
        spec = {**own, "arguments": job.arguments, "sparkConf": conf, "restartPolicy": never}
        body = {
            "apiVersion": "/".join(_KIND),
            "kind": "SparkApplication",
            "metadata": {"name": job.name, "namespace": self.namespace},
            "spec": spec,
        }
        place = (*_KIND, self.namespace, _PLURAL)
        try:
            self._client.create_namespaced_custom_object(*place, body, **_LIMIT)
        except Exception as error:
            if getattr(error, "status", None) != _CONFLICT:
                raise
        return job.name

    def state(self, handle: str) -> DriverEnd | None:
        """The end of the application, with its error; None while it runs."""
        try:
            found = self._client.get_namespaced_custom_object(*self._place(handle), **_LIMIT)
        except Exception as error:
            if getattr(error, "status", None) == _NOT_FOUND:
                return DriverEnd(f"Kubernetes no longer knows the application {handle}")
            raise
        state = found.get("status", {}).get("applicationState", {})
        name = state.get("state")
        if name not in _ENDED:
            return None
        what = f"the application {handle} ended as {name}"
        return job_end(what, state.get("errorMessage", ""), has_succeeded=name == "COMPLETED")

    def cancel(self, handle: str) -> None:
        """Deletes the application with its driver."""
        self._client.delete_namespaced_custom_object(*self._place(handle), **_LIMIT)

    def _place(self, handle: str) -> tuple[str, ...]:
        return (*_KIND, self.namespace, _PLURAL, handle)

    @cached_property
    def _client(self) -> Any:
        from airflow.providers.cncf.kubernetes.hooks.kubernetes import KubernetesHook

        return KubernetesHook(kubernetes_conn_id=self.kubernetes_conn_id).custom_object_client
