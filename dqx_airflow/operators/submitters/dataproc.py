"""Batches of Dataproc Serverless, and jobs on a Dataproc cluster.

https://cloud.google.com/dataproc/docs/reference/rest. The official provider signs in; its Dataproc
hook, whose clients speak only gRPC, is not used.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from dqx_airflow.operators.submitters import DriverEnd, Job, Submitter, job_end

_SUCCEEDED = {"SUCCEEDED", "DONE"}
_ENDED = {*_SUCCEEDED, "CANCELLED", "FAILED", "ERROR"}
_NOT_FOUND = 404
_CONFLICT = 409
_ASKED_AGAIN_ON = (429, 500, 502, 503, 504)
_WHERE_THE_LOG_IS = ". Additional details can be found at:"
_LONGEST_ID = 40
_TIMEOUT_S = 60


@dataclass(frozen=True)
class _OnDataproc(Submitter):
    body: Mapping[str, Any]
    region: str
    gcp_conn_id: str = "google_cloud_default"
    project_id: str | None = None
    impersonation_chain: str | Sequence[str] | None = None
    endpoint: str | None = None
    what: ClassVar[str]
    page: ClassVar[str]

    @abstractmethod
    def _asked(self, handle: str) -> tuple[str, str]:
        """Requests the state of a job, and the message of Dataproc about it."""

    def state(self, handle: str) -> DriverEnd | None:
        """The end of the job, with the message of Dataproc; None while it runs."""
        from requests import HTTPError

        try:
            state, message = self._asked(handle)
        except HTTPError as error:
            if error.response is not None and error.response.status_code == _NOT_FOUND:
                return DriverEnd(f"Dataproc no longer knows {self.what} {handle}")
            raise
        if state not in _ENDED:
            return None
        cause = message.partition(_WHERE_THE_LOG_IS)[0].partition("\n")[0]
        how = f"{self.what} {handle} ended as {state}"
        return job_end(how, cause, has_succeeded=state in _SUCCEEDED)

    def logs_url(self, handle: str) -> str | None:
        """The page of the job in the console, with the output of its driver."""
        page = self.page.format(region=self.region, handle=handle)
        return f"https://console.cloud.google.com/dataproc/{page}project={self._project}"

    def _ask(self, method: str, place: str, body: Any = None, **parameters: str) -> Any:
        """Sends a request to the API, and returns the answer; `place` is the name of a resource.

        :raises requests.HTTPError: Dataproc refuses, with its message.
        """
        from requests import HTTPError

        answer = self._session.request(
            method, f"{self._address}/{place}", json=body, params=parameters, timeout=_TIMEOUT_S
        )
        if not answer.ok:
            raise HTTPError(f"{answer.status_code} {answer.text}", response=answer)
        return answer.json()

    @property
    def _address(self) -> str:
        host = self.endpoint or f"https://{self.region}-dataproc.googleapis.com"
        return f"{host.rstrip('/')}/v1"

    @property
    def _project(self) -> str:
        project = self.project_id or self._hook.project_id
        if not project:
            raise ValueError(f"the connection {self.gcp_conn_id} names no project: give project_id")
        return str(project)

    @cached_property
    def _hook(self) -> Any:
        from airflow.providers.google.common.hooks.base_google import GoogleBaseHook

        return GoogleBaseHook(self.gcp_conn_id, impersonation_chain=self.impersonation_chain)

    @cached_property
    def _session(self) -> Any:
        """An HTTP session that also repeats requests that start a job: each has a unique id."""
        from google.auth.transport.requests import AuthorizedSession
        from requests.adapters import HTTPAdapter
        from urllib3.util import Retry

        again = Retry(
            3,
            status_forcelist=_ASKED_AGAIN_ON,
            allowed_methods=None,
            backoff_factor=1,
            raise_on_status=False,
        )
        session = AuthorizedSession(self._hook.get_credentials())
        session.mount(self._address, HTTPAdapter(max_retries=again))
        return session


@dataclass(frozen=True)
class DataprocBatches(_OnDataproc):
    """Submits a gate as a batch of Dataproc Serverless.

    :param body: the batch, as in `batches.create`: `pysparkBatch` with `mainPythonFileUri`, the
        address of `gate_job.py`; `runtimeConfig`, `environmentConfig` and so on.
    :param region: where it runs, such as `europe-west1`.
    :param gcp_conn_id: the connection to Google Cloud.
    :param project_id: the project; by default that of the connection.
    :param impersonation_chain: a service account to act as, or a chain of them.
    :param endpoint: another address of the API, such as one of Private Service Connect.
    """

    what = "the batch"
    page = "batches/{region}/{handle}/monitoring?"

    def submit(self, job: Job) -> str:
        """The id of the batch: the first batch with the same token, or of the same name."""
        from requests import HTTPError

        given = self.body
        environment = self.body.get("environmentConfig", {})
        runtime = given.get("runtimeConfig", {})
        properties = {**job.conf, **runtime.get("properties", {})}
        body = {
            **given,
            "pysparkBatch": {**given["pysparkBatch"], "args": job.arguments},
            "runtimeConfig": {**runtime, "properties": properties},
        }
        if job.limit_s is not None:
            execution = {"ttl": f"{job.limit_s}s", **environment.get("executionConfig", {})}
            body["environmentConfig"] = {**environment, "executionConfig": execution}
        ids = {"batchId": job.name, "requestId": job.token[:_LONGEST_ID]}
        try:
            self._ask("POST", f"{self._folder}/batches", body, **ids)
        except HTTPError as error:
            # The first answer was lost, and with it what Dataproc knew about the id of the request.
            if error.response is None or error.response.status_code != _CONFLICT:
                raise
        return job.name

    def _asked(self, handle: str) -> tuple[str, str]:
        batch = self._ask("GET", f"{self._folder}/batches/{handle}")
        return batch["state"], batch.get("stateMessage", "")

    def cancel(self, handle: str) -> None:
        """Cancels the batch, by the operation that created it."""
        batch = self._ask("GET", f"{self._folder}/batches/{handle}")
        self._ask("POST", f"{batch['operation']}:cancel", {})

    @property
    def _folder(self) -> str:
        return f"projects/{self._project}/locations/{self.region}"


@dataclass(frozen=True)
class DataprocJobs(_OnDataproc):
    """Submits a gate as a job on a running Dataproc cluster.

    :param body: the job, as in `jobs.submit`: `placement` with `clusterName`, and `pysparkJob` with
        `mainPythonFileUri`, the address of `gate_job.py`.
    :param region: where the cluster runs, such as `europe-west1`.
    :param gcp_conn_id: the connection to Google Cloud.
    :param project_id: the project; by default that of the connection.
    :param impersonation_chain: a service account to act as, or a chain of them.
    :param endpoint: another address of the API, such as one of Private Service Connect.
    """

    what = "the job"
    page = "jobs/{handle}?region={region}&"

    def submit(self, job: Job) -> str:
        """The id of the job: the first job with the same token."""
        spark = self.body["pysparkJob"]
        properties = {**job.conf, **spark.get("properties", {})}
        body = {
            **self.body,
            "reference": {"projectId": self._project, "jobId": job.name},
            "pysparkJob": {**spark, "args": job.arguments, "properties": properties},
        }
        request = {"job": body, "requestId": job.token[:_LONGEST_ID]}
        return str(self._ask("POST", f"{self._jobs}:submit", request)["reference"]["jobId"])

    def _asked(self, handle: str) -> tuple[str, str]:
        status = self._ask("GET", f"{self._jobs}/{handle}")["status"]
        return status["state"], status.get("details", "")

    def cancel(self, handle: str) -> None:
        """Cancels the job, without waiting for its end."""
        self._ask("POST", f"{self._jobs}/{handle}:cancel", {})

    @property
    def _jobs(self) -> str:
        return f"projects/{self._project}/regions/{self.region}/jobs"
