"""Runs the jobs of gates on services that start Spark by themselves.

    DqlGateOperator(..., submit=LivyBatches({"file": "s3://lake/dqx/gate_job.py"}))

A gate stores its request beside the results, has a `Submitter` start the job with the address of
the request, waits for its end, also deferred, and reads the report of exactly this attempt in the
results store: what a service says about a job explains a missing report, and never replaces one.

A `Submitter` of your own is a dataclass in a module that the triggerer can import, whose fields are
JSON values. It imports its client where it is used, since DAG files are parsed all the time.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from dqx_airflow import lazy_names

if TYPE_CHECKING:
    from dqx_airflow.operators.results_location import ResultsLocation
    from dqx_airflow.operators.submitters.aws import EmrServerlessJobs as EmrServerlessJobs
    from dqx_airflow.operators.submitters.aws import EmrSteps as EmrSteps
    from dqx_airflow.operators.submitters.aws import GlueJobRuns as GlueJobRuns
    from dqx_airflow.operators.submitters.databricks import DatabricksRuns as DatabricksRuns
    from dqx_airflow.operators.submitters.dataproc import DataprocBatches as DataprocBatches
    from dqx_airflow.operators.submitters.dataproc import DataprocJobs as DataprocJobs
    from dqx_airflow.operators.submitters.kubernetes import SparkApplications as SparkApplications
    from dqx_airflow.operators.submitters.livy import LivyBatches as LivyBatches
    from dqx_airflow.values import JobRequest

_NAMES, __getattr__ = lazy_names(
    __name__,
    {
        "aws": "EmrServerlessJobs EmrSteps GlueJobRuns",
        "databricks": "DatabricksRuns",
        "dataproc": "DataprocBatches DataprocJobs",
        "livy": "LivyBatches",
        "kubernetes": "SparkApplications",
    },
)

__all__ = ["DriverEnd", "Job", "Submitter", *_NAMES]  # noqa: PLE0604 (the names of the table)

_LONGEST_NAME = 35
"""The longest name of a job, with its digest: the Spark operator appends to it, at most up to 63
characters."""
_DIGEST = 12
_LONGEST_CAUSE = 300
_TO_START_S = 1800
_TIMED_OUT = "error: the gate took longer than"
_EXIT_CODE = re.compile(r"(?i)\b(?:system)?exit(?:ed with)?[ _]?(?:code|status)?[:=]? (\d+)")
_CAUSE = re.compile(r"^error(?:\[\w+\])?: (.+)", re.M)


@dataclass(frozen=True, slots=True)
class DriverEnd:
    """The end of a driver, in words, and its exit code if the cluster knows it."""

    how: str
    code: int | None = None


class DriverUnknownError(Exception):
    """The cluster does not report the state of a driver."""


@dataclass(frozen=True, slots=True)
class Job:
    """The job that a service has to start: the program `gate_job.py` with `arguments` and the Spark
    settings in `conf`.

    `name` is for people. It and `token`, 64 hexadecimal characters, belong to one request: a
    service that has a job with this token or name must not start another one. `name` has at most 35
    lowercase letters, digits and hyphens. `limit_s` are the seconds after which a service may
    cancel the job, with time to start; before, the job ends itself. None is no limit.
    """

    name: str
    token: str
    arguments: list[str]
    conf: dict[str, str]
    limit_s: int | None = None


class Submitter(ABC):
    """Starts jobs on a service, and follows them. Any exception is an error of the service.

    A subclass is a dataclass, since the triggerer makes it again from its fields. The `handle` is
    what the service calls the job.
    """

    @abstractmethod
    def submit(self, job: Job) -> str:
        """Starts a job, or finds the one with its token; returns the handle."""

    @abstractmethod
    def state(self, handle: str) -> DriverEnd | None:
        """The end of the job; None while it waits or runs. A job that the service no longer knows
        has ended."""

    @abstractmethod
    def cancel(self, handle: str) -> None:
        """Ends the job. Called while a task is killed, so it waits for nothing."""

    def logs_url(self, handle: str) -> str | None:
        """A page with the log of the job, if there is one."""
        return None


def job_end(what: str, reported: str = "", *, has_succeeded: bool = False) -> DriverEnd:
    """The end of a job, with the last error and the exit code in the text from the service.

    :param what: such as "batch 7 ended as dead".
    :param reported: the end of its log, or a message.
    """
    if has_succeeded:
        return DriverEnd(what, 0)
    codes = _EXIT_CODE.findall(reported)
    code = 124 if _TIMED_OUT in reported else int(codes[-1]) if codes else None
    causes = _CAUSE.findall(reported) or reported.strip().splitlines()
    how = f"{what}: {causes[-1].strip()[:_LONGEST_CAUSE]}" if causes else what
    return DriverEnd(how, code)


@dataclass(slots=True)
class SubmittedJob:
    """A job on a service, as a driver that a trigger follows. `request` is the address of its
    stored request."""

    kind: ClassVar[str] = "submitted"
    conn_id: ClassVar[str] = ""
    submitter: Submitter
    request: str
    id: str = ""

    def ended(self) -> DriverEnd | None:
        """The end of the job; None while it runs.

        :raises DriverUnknownError: its state is currently unknown.
        """
        from dqx_airflow.values.redact import redact_urls

        try:
            return self.submitter.state(self.id)
        except Exception as error:
            message = redact_urls(" ".join(str(error).split()))[:_LONGEST_CAUSE]
            raise DriverUnknownError(f"{type(error).__name__}: {message}") from None

    def cancel(self) -> None:
        """Ends the job."""
        self.submitter.cancel(self.id)

    def logs(self) -> str | None:
        """The page with the log of the job; None if the service has none."""
        try:
            return self.submitter.logs_url(self.id)
        except Exception:
            return None

    def described(self) -> dict[str, Any]:
        """Its fields as JSON, for `described_job`."""
        kind = type(self.submitter)
        return {
            "submitter": f"{kind.__module__}:{kind.__qualname__}",
            "settings": asdict(self.submitter),  # type: ignore[call-overload]
            "request": self.request,
        }


def described_job(description: Mapping[str, Any], handle: str) -> SubmittedJob:
    """The job that `SubmittedJob.described` described."""
    from importlib import import_module

    module, _, name = description["submitter"].partition(":")
    kind = getattr(import_module(module), name)
    return SubmittedJob(kind(**description["settings"]), description["request"], handle)


def submit_job(
    submitter: Submitter, request: JobRequest, location: ResultsLocation, conf: Mapping[str, Any]
) -> SubmittedJob:
    """Stores a request and starts the job for it.

    :raises GateInfrastructureError: the store or the service fails; no job will judge the request.
    """
    from dqx_airflow.errors import StoreError
    from dqx_airflow.operators.exceptions import GateInfrastructureError
    from dqx_airflow.results.stored_requests import checksum_of, discard_request, store_request
    from dqx_airflow.results.tables import locate
    from dqx_airflow.values.json_form import FILE_FLAG
    from dqx_airflow.values.redact import redact_urls

    try:
        address = store_request(locate(location.root, location.storage_options), request)
    except StoreError as error:
        raise GateInfrastructureError(f"the request cannot be stored: {error}") from None
    token = checksum_of(address)
    slug = re.sub("[^a-z0-9]+", "-", request.job_key.gate.lower()).strip("-")
    settings = {key: str(value) for key, value in conf.items()}
    limit_s = None if request.timeout_s is None else int(request.timeout_s) + _TO_START_S
    slug = slug[: _LONGEST_NAME - _DIGEST - len("dqx--")].strip("-")
    name = "-".join(filter(None, ("dqx", slug, token[:_DIGEST])))
    job = Job(name, token, [FILE_FLAG, address], settings, limit_s)
    try:
        return SubmittedJob(submitter, address, submitter.submit(job))
    except BaseException as error:
        # The service may have started it all the same: without its request it does nothing, or
        # ends.
        with suppress(StoreError):
            discard_request(address, location.storage_options)
        if not isinstance(error, Exception):
            raise
        message = redact_urls(" ".join(str(error).split()))[: 2 * _LONGEST_CAUSE]
        raise GateInfrastructureError(
            f"the job cannot be submitted: {type(error).__name__}: {message}"
        ) from None


def submitter_mistake(given: object) -> str | None:
    """The mistake in the argument `submit` of a gate; None if it is valid."""
    example = "write a submitter, such as LivyBatches({'file': 's3://lake/dqx/gate_job.py'})"
    if not isinstance(given, Submitter):
        return f"submit={given!r}: {example}"
    if not is_dataclass(given):
        return (
            f"submit: {type(given).__name__} is not a dataclass: the triggerer cannot make it again"
        )
    for field in fields(given):
        value = getattr(given, field.name)
        if not isinstance(value, str | int | float | list | tuple | Mapping | None):
            return f"submit: {field.name}={value!r} is not a JSON value"
    return None
