"""Batches of Apache Livy: also on HDInsight, and the pools of Azure Synapse.

https://livy.apache.org/docs/latest/rest-api.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dqx_airflow.operators.submitters import DriverEnd, Job, Submitter, job_end

_ENDED = {"success", "dead", "killed", "error"}
_NOT_FOUND = 404
_BAD_REQUEST = 400
_TIMEOUT_S = 60
_LONGEST_ANSWER = 300
_MOST_LINES = 1000
_PAGE = 500


@dataclass(frozen=True)
class LivyBatches(Submitter):
    """Submits a gate as a batch of Livy.

    :param batch: the body of `POST /batches`: `file`, the address of `gate_job.py`, and `pyFiles`,
        `archives`, `queue`, `driverMemory` and so on. The gate adds `name`, `args` and to `conf`.
    :param livy_conn_id: the connection to Livy.
    :param endpoint_prefix: the path before `/batches`, such as `livy` on HDInsight.
    :param headers: headers of each request, such as `X-Requested-By`.
    :param auth: the dotted path of a class of `requests`' authentication, for tokens and Kerberos.
    """

    batch: Mapping[str, Any]
    livy_conn_id: str = "livy_default"
    endpoint_prefix: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    auth: str | None = None

    def submit(self, job: Job) -> str:
        """The id of the batch. Livy refuses a second one of the same name, and this finds it."""
        body = {**self.batch, "name": job.name, "args": job.arguments}
        body["conf"] = {**job.conf, **body.get("conf", {})}
        answer = self._ask("POST", "/batches", json.dumps(body))
        if answer.status_code == _BAD_REQUEST and "uplicate session name" in answer.text:
            return self._found(job.name)
        _require_success(answer)
        return str(answer.json()["id"])

    def _found(self, name: str) -> str:
        """The id of the batch of a name, on any page of the list.

        :raises RuntimeError: it is on none: Livy has removed it meanwhile.
        """
        start = 0
        while True:
            page = self._ask("GET", "/batches", {"from": start, "size": _PAGE}).json()
            for batch in page["sessions"]:
                if batch.get("name") == name:
                    return str(batch["id"])
            start += len(page["sessions"])
            if not page["sessions"] or start >= page["total"]:
                raise RuntimeError(f"Livy refuses a second batch {name}, and lists no first one")

    def state(self, handle: str) -> DriverEnd | None:
        """The end of the batch, with the last error in its log; None while it runs."""
        answer = self._ask("GET", f"/batches/{handle}")
        if answer.status_code == _NOT_FOUND:
            return DriverEnd(f"Livy no longer knows the batch {handle}")
        _require_success(answer)
        batch = answer.json()
        if batch["state"] not in _ENDED:
            return None
        what = f"the batch {handle} ended as {batch['state']}"
        if batch["state"] == "success":
            return job_end(what, has_succeeded=True)
        # A batch has its last lines, which Spark fills while it ends.
        answer = self._ask("GET", f"/batches/{handle}/log", {"size": _MOST_LINES})
        lines = answer.json()["log"] if answer.ok else batch.get("log") or ()
        return job_end(what, "\n".join(lines))

    def cancel(self, handle: str) -> None:
        """Deletes the batch, which ends its driver."""
        answer = self._ask("DELETE", f"/batches/{handle}")
        if answer.status_code != _NOT_FOUND:
            _require_success(answer)

    def logs_url(self, handle: str) -> str | None:
        """The log of the driver, or what Livy has of it."""
        found = self._ask("GET", f"/batches/{handle}").json().get("appInfo") or {}
        ours = f"{self._hook.base_url}{self._hook.endpoint_prefix}/batches/{handle}/log"
        return str(found.get("driverLogUrl") or ours)

    def _ask(self, method: str, path: str, data: Any = None) -> Any:
        hook = self._hook
        return hook.run_method(f"{hook.endpoint_prefix}{path}", method, data, {**self.headers})

    @cached_property
    def _hook(self) -> Any:
        from airflow.providers.apache.livy.hooks.livy import LivyHook
        from airflow.providers.common.compat.module_loading import import_string

        return LivyHook(
            self.livy_conn_id,
            extra_options={"check_response": False, "timeout": _TIMEOUT_S},
            auth_type=import_string(self.auth) if self.auth else None,
            endpoint_prefix=self.endpoint_prefix,
        )


def _require_success(answer: Any) -> None:
    """:raises RuntimeError: Livy refused a request."""
    if not answer.ok:
        text = answer.text[:_LONGEST_ANSWER]
        raise RuntimeError(f"Livy answered {answer.status_code}: {text}")
