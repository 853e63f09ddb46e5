"""The drivers of jobs in clusters: whether one has ended, and how it is cancelled.

All calls block: the triggerer makes them in threads.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from dqx_airflow.operators.submitters import DriverEnd, DriverUnknownError, SubmittedJob

_YARN_ACTIVE = {"NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING"}
_NOT_FOUND = 404
_DRIVER_CONTAINER = "spark-kubernetes-driver"
_LONGEST_DIAGNOSIS = 200


@dataclass(slots=True)
class YarnApplication:
    """An application accessed through the REST API of the ResourceManager in the connection."""

    kind: ClassVar[str] = "yarn"
    id: str
    conn_id: str
    _hook: Any = field(default=None, repr=False)

    def ended(self) -> DriverEnd | None:
        """The end of the application; None while it runs.

        :raises DriverUnknownError: its state is currently unknown.
        """
        try:
            state, result, message = self._manager()._query_yarn_application_status(self.id)
        except (RuntimeError, ValueError) as error:
            self._hook = None  # its connection may have been read while no backend could provide it
            raise DriverUnknownError(str(error)) from None
        if state in _YARN_ACTIVE:
            return None
        how = f"the application {self.id} ended as {result if state == 'FINISHED' else state}"
        # What follows the first line are stack traces, and the end of what a container printed.
        diagnosis = (message or "").strip()
        first, *_ = diagnosis.splitlines() or [""]
        if first:
            how = f"{how}: {first[:_LONGEST_DIAGNOSIS]}"
        return DriverEnd(how, yarn_exit_code(diagnosis))

    def cancel(self) -> None:
        """Ends the application."""
        manager = self._manager()
        manager._yarn_application_id = self.id  # the hook kills this id
        manager.on_kill()

    def _manager(self) -> Any:
        if self._hook is None:
            from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

            self._hook = SparkSubmitHook(
                conn_id=self.conn_id, deploy_mode="cluster", yarn_track_via_rm_api=True
            )
        return self._hook


@dataclass(slots=True)
class KubernetesPod:
    """A pod accessed through the API server that Airflow itself uses. `id` is `namespace:pod`."""

    kind: ClassVar[str] = "kubernetes"
    id: str
    conn_id: str

    def ended(self) -> DriverEnd | None:
        """The end of the pod; None while it runs.

        :raises DriverUnknownError: its state is currently unknown.
        """
        namespace, _, name = self.id.partition(":")
        try:
            status = _pods().read_namespaced_pod(name, namespace).status
        except Exception as error:  # of the API, of the network, of the client's configuration
            code = getattr(error, "status", None)
            if code == _NOT_FOUND:
                return DriverEnd(f"the driver pod {name} no longer exists")
            problem = f"{type(error).__name__}{f' {code}' if code else ''}"
            raise DriverUnknownError(f"the Kubernetes API: {problem}") from None
        if status.phase == "Unknown":
            raise DriverUnknownError(f"the node of the driver pod {name} does not respond")
        if status.phase in ("Succeeded", "Failed"):
            how = f"the driver pod {name} ended as {status.phase}"
            return DriverEnd(how, _pod_exit_code(status))
        return None

    def cancel(self) -> None:
        """Ends the pod."""
        namespace, _, name = self.id.partition(":")
        _pods().delete_namespaced_pod(name, namespace)


def yarn_exit_code(text: str) -> int | None:
    """The exit code of a driver, if YARN mentions it in `text`."""
    match = re.search(r"User application exited with status (\d+)", text)
    return int(match[1]) if match else None


def _pod_exit_code(status: Any) -> int | None:
    for container in status.container_statuses or ():
        if container.name == _DRIVER_CONTAINER and container.state.terminated is not None:
            return int(container.state.terminated.exit_code)
    return None


def _pods() -> Any:
    from airflow.providers.cncf.kubernetes.kube_client import get_kube_client

    return get_kube_client()


Driver: TypeAlias = YarnApplication | KubernetesPod | SubmittedJob

DRIVERS: dict[str, type[YarnApplication | KubernetesPod]] = {
    driver.kind: driver for driver in (YarnApplication, KubernetesPod)
}
"""The drivers in clusters, by the name of their kind."""
