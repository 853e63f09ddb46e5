"""Drivers that a cluster runs, and tells of: an application of YARN, a pod of Kubernetes.

All of it blocks: the triggerer calls it in threads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

_YARN_ACTIVE = {"NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING"}
_NOT_FOUND = 404


class DriverUnknownError(Exception):
    """The cluster does not tell what became of a driver."""


class Driver(Protocol):
    """A driver somewhere in a cluster."""

    def ended(self) -> str | None:
        """How it ended, in words; None while it waits or runs.

        :raises DriverUnknownError: nobody tells.
        """

    def cancel(self) -> None:
        """Asks the cluster to end it."""


@dataclass(slots=True)
class YarnApplication:
    """Asked for over the REST interface of the ResourceManager that the connection names."""

    kind: ClassVar[str] = "yarn"
    id: str
    conn_id: str
    _hook: Any = field(default=None, repr=False)

    def ended(self) -> str | None:
        try:
            status = self._manager().query_yarn_application_status(self.id)
        except (RuntimeError, ValueError) as error:
            self._hook = None  # its connection may have been read while nobody could tell it
            raise DriverUnknownError(str(error)) from None
        if status in _YARN_ACTIVE:
            return None
        return f"the application {self.id} ended as {status}"

    def cancel(self) -> None:
        manager = self._manager()
        manager._yarn_application_id = self.id  # what the hook kills
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
    """Asked for of the API server that Airflow itself uses. `id` is `namespace:pod`."""

    kind: ClassVar[str] = "kubernetes"
    id: str
    conn_id: str

    def ended(self) -> str | None:
        namespace, _, name = self.id.partition(":")
        try:
            phase = _pods().read_namespaced_pod(name, namespace).status.phase
        except Exception as error:  # of the API, of the network, of the client's configuration
            status = getattr(error, "status", None)
            if status == _NOT_FOUND:
                return f"the driver pod {name} is gone"
            told = f"{type(error).__name__}{f' {status}' if status else ''}"
            raise DriverUnknownError(f"the Kubernetes API: {told}") from None
        if phase == "Unknown":
            raise DriverUnknownError(f"the node of the driver pod {name} does not answer")
        if phase in ("Succeeded", "Failed"):
            return f"the driver pod {name} ended as {phase}"
        return None

    def cancel(self) -> None:
        namespace, _, name = self.id.partition(":")
        _pods().delete_namespaced_pod(name, namespace)


def _pods() -> Any:
    from airflow.providers.cncf.kubernetes.kube_client import get_kube_client

    return get_kube_client()


DRIVERS: dict[str, type[YarnApplication] | type[KubernetesPod]] = {
    driver.kind: driver for driver in (YarnApplication, KubernetesPod)
}
"""The drivers that can be followed, by the name of their kind."""
