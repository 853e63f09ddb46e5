"""Jobs of EMR Serverless, runs of AWS Glue, and steps of an EMR cluster.

https://docs.aws.amazon.com/emr-serverless/latest/APIReference,
https://docs.aws.amazon.com/glue/latest/dg/aws-glue-api-jobs-runs.html and
https://docs.aws.amazon.com/emr/latest/APIReference
"""

from __future__ import annotations

import shlex
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from dqx_airflow.operators.submitters import DriverEnd, Job, Submitter, job_end

_ACTIVE = {
    *("SUBMITTED", "PENDING", "SCHEDULED", "QUEUED", "WAITING", "STARTING", "RUNNING"),
    *("CANCELLING", "CANCEL_PENDING", "STOPPING"),
}
_SUCCEEDED = {"SUCCESS", "SUCCEEDED", "COMPLETED"}
_NOT_FOUND = {"ResourceNotFoundException", "EntityNotFoundException", "InvalidRequestException"}


@dataclass(frozen=True)
class _OnAws(Submitter):
    client_type: ClassVar[str]
    what: ClassVar[str]

    @abstractmethod
    def _asked(self, handle: str) -> tuple[str, str | None]:
        """Requests the state of a job, and the message of the service about it."""

    def state(self, handle: str) -> DriverEnd | None:
        """The end of the job, with the message of the service; None while it runs."""
        try:
            state, message = self._asked(handle)
        except Exception as error:  # botocore makes the classes of its errors when it runs
            answer: Any = getattr(error, "response", {})
            if answer.get("Error", {}).get("Code") in _NOT_FOUND:
                return DriverEnd(f"AWS no longer knows {self.what} {handle}")
            raise
        if state in _ACTIVE:
            return None
        has_succeeded = state in _SUCCEEDED
        return job_end(
            f"{self.what} {handle} ended as {state}", message or "", has_succeeded=has_succeeded
        )

    @cached_property
    def _client(self) -> Any:
        from airflow.providers.amazon.aws.hooks.base_aws import AwsBaseHook

        conn_id, region = (getattr(self, name) for name in ("aws_conn_id", "region_name"))
        return AwsBaseHook(conn_id, client_type=self.client_type, region_name=region).conn


@dataclass(frozen=True)
class EmrServerlessJobs(_OnAws):
    """Submits a gate as a job of an EMR Serverless application.

    :param run: the arguments of `StartJobRun`: `applicationId`, `executionRoleArn`, and `jobDriver`
        with the `entryPoint`, the address of `gate_job.py`, of its `sparkSubmit`. The gate adds the
        name, the arguments, the token, and to `sparkSubmitParameters`.
    :param aws_conn_id: the connection to AWS.
    :param region_name: the region; by default that of the connection.
    """

    run: Mapping[str, Any]
    aws_conn_id: str = "aws_default"
    region_name: str | None = None
    client_type = "emr-serverless"
    what = "the job run"

    def submit(self, job: Job) -> str:
        """The id of the job run: the first job run with the same token."""
        spark = self.run["jobDriver"]["sparkSubmit"]
        words = [*_settings(job), spark.get("sparkSubmitParameters", "")]
        spark = {**spark, "entryPointArguments": job.arguments}
        body = {"name": job.name, **_limit(job, "executionTimeoutMinutes"), **self.run}
        body["jobDriver"] = {"sparkSubmit": {**spark, "sparkSubmitParameters": " ".join(words)}}
        return str(self._client.start_job_run(**body, clientToken=job.token)["jobRunId"])

    def _asked(self, handle: str) -> tuple[str, str | None]:
        run = self._client.get_job_run(**self._key(handle))["jobRun"]
        return run["state"], run["stateDetails"]

    def cancel(self, handle: str) -> None:
        """Cancels the job."""
        self._client.cancel_job_run(**self._key(handle))

    def logs_url(self, handle: str) -> str | None:
        """Where the job writes its log, if that is a bucket."""
        of_logs = self.run.get("configurationOverrides", {}).get("monitoringConfiguration", {})
        bucket = of_logs.get("s3MonitoringConfiguration", {}).get("logUri")
        place = f"applications/{self.run['applicationId']}/jobs/{handle}/"
        return f"{bucket.rstrip('/')}/{place}" if bucket else None

    def _key(self, handle: str) -> dict[str, str]:
        return {"applicationId": self.run["applicationId"], "jobRunId": handle}


@dataclass(frozen=True)
class GlueJobRuns(_OnAws):
    """Submits a gate as a run of a job of AWS Glue, whose script is `gate_job.py`.

    :param run: the arguments of `StartJobRun`: `JobName`, and `WorkerType` and so on. The gate adds
        to `Arguments`; the Spark settings in the `--conf` of the job stay.
    :param aws_conn_id: the connection to AWS.
    :param region_name: the region; by default that of the connection.
    """

    run: Mapping[str, Any]
    aws_conn_id: str = "aws_default"
    region_name: str | None = None
    client_type = "glue"
    what = "the job run"

    def submit(self, job: Job) -> str:
        """The id of the run. (Glue has no token: a second run finds no request.)"""
        flag, address = job.arguments
        given = self.run.get("Arguments", {})
        # The arguments of a run replace those of the job, which has its catalogs there.
        of_job = self._client.get_job(JobName=self.run["JobName"])["Job"].get("DefaultArguments")
        words = [*_settings(job), *_settings_of(of_job or {}), *_settings_of(given)]
        settings = " ".join(words).removeprefix("--conf ")
        body = {**_limit(job, "Timeout"), **self.run}
        body["Arguments"] = {**given, flag: address, "--conf": settings}
        return str(self._client.start_job_run(**body)["JobRunId"])

    def _asked(self, handle: str) -> tuple[str, str | None]:
        run = self._client.get_job_run(JobName=self.run["JobName"], RunId=handle)["JobRun"]
        return run["JobRunState"], run.get("ErrorMessage")

    def cancel(self, handle: str) -> None:
        """Stops the run.

        :raises RuntimeError: Glue refuses, in an answer without an error.
        """
        given = {"JobName": self.run["JobName"], "JobRunIds": [handle]}
        answer = self._client.batch_stop_job_run(**given)
        for refusal in answer.get("Errors") or ():
            detail = refusal.get("ErrorDetail", {})
            raise _refused(detail.get("ErrorCode"), detail.get("ErrorMessage"))

    def logs_url(self, handle: str) -> str | None:
        """The page of the run in the console."""
        region = self._client.meta.region_name
        page = f"https://{region}.console.aws.amazon.com/gluestudio/home?region={region}"
        return f"{page}#/job/{self.run['JobName']}/run/{handle}"


@dataclass(frozen=True)
class EmrSteps(_OnAws):
    """Submits a gate as a step of a running EMR cluster.

    :param cluster_id: the cluster, `j-...`.
    :param program: the address of `gate_job.py`.
    :param spark_submit: more words of `spark-submit`, such as `["--py-files", "s3://..."]`.
    :param aws_conn_id: the connection to AWS.
    :param region_name: the region; by default that of the connection.
    """

    cluster_id: str
    program: str
    spark_submit: Sequence[str] = ()
    aws_conn_id: str = "aws_default"
    region_name: str | None = None
    client_type = "emr"
    what = "the step"

    def submit(self, job: Job) -> str:
        """The id of the step. (Steps have no token: a second one finds no request.)"""
        settings = [word for item in job.conf.items() for word in ("--conf", "=".join(item))]
        words = ["spark-submit", *settings, *self.spark_submit, self.program, *job.arguments]
        jar = {"Jar": "command-runner.jar", "Args": words}
        step = {"Name": job.name, "ActionOnFailure": "CONTINUE", "HadoopJarStep": jar}
        added = self._client.add_job_flow_steps(JobFlowId=self.cluster_id, Steps=[step])
        return str(added["StepIds"][0])

    def _asked(self, handle: str) -> tuple[str, str | None]:
        step = self._client.describe_step(ClusterId=self.cluster_id, StepId=handle)["Step"]
        status = step["Status"]
        return status["State"], status.get("FailureDetails", {}).get("Message")

    def cancel(self, handle: str) -> None:
        """Cancels the step, also if it runs.

        :raises RuntimeError: EMR refuses, in an answer without an error.
        """
        how = {"StepCancellationOption": "SEND_INTERRUPT"}
        answer = self._client.cancel_steps(ClusterId=self.cluster_id, StepIds=[handle], **how)
        for step in answer.get("CancelStepsInfoList") or ():
            if step.get("Status") == "FAILED":
                raise _refused("FAILED", step.get("Reason"))


def _refused(code: object, reason: object) -> RuntimeError:
    return RuntimeError(f"AWS refuses to end it: {code}: {reason}")


def _settings(job: Job) -> list[str]:
    """The Spark settings as words of a command."""
    return [f"--conf {shlex.quote(f'{key}={value}')}" for key, value in job.conf.items()]


def _settings_of(given: Mapping[str, str]) -> list[str]:
    """The Spark settings in the arguments of a Glue job; they override ours."""
    return [f"--conf {given['--conf']}"] if given.get("--conf") else []


def _limit(job: Job, name: str) -> dict[str, int]:
    """The time limit of a job in minutes, as the argument `name` of a service; empty without."""
    return {} if job.limit_s is None else {name: job.limit_s // 60 + 1}
