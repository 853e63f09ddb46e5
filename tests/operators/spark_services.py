"""Stand-ins for services that start Spark, written from their public API documents.

Each is an HTTP server of this machine that runs the jobs it gets, by the `spark-submit` on PATH:
the stub in quick tests, the real one in the lane slow. None of them was compared with the real
service.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlsplit

from tests.http_stub import Asked, Reply, http_stub
from tests.operators.clusters import kube_config
from tests.processes import PROGRAMS

Answer = tuple[int, Any]
JOB = str(Path(__file__).parents[2] / "spark_jobs" / "gate_job.py")
SIGN_IN = "/sign-in"


@dataclass
class ServiceJob:
    """A job that a service runs, with the body of the request for it."""

    body: Mapping[str, Any]
    process: subprocess.Popen[bytes]
    output: Path
    is_cancelled: bool = False

    @property
    def code(self) -> int | None:
        return self.process.poll()

    @property
    def log(self) -> list[str]:
        return self.output.read_text(errors="replace").splitlines()

    def cancel(self) -> None:
        if self.code is None:
            self.is_cancelled = True
            os.killpg(self.process.pid, 9)
            self.process.wait()


@dataclass
class SparkService:
    """A service with its jobs, and what it is told to do wrong.

    `faults` are the status codes of the next answers, 0 for a connection that is cut after the
    service has done what it was asked.
    """

    folder: Path
    address: str = ""
    jobs: list[ServiceJob] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    faults: list[int] = field(default_factory=list)
    waits: int = 0
    refuses_to_cancel: bool = False
    """Whether it says so in an answer of success, as services of AWS do."""
    spark_submit: str = "spark-submit"
    kind: ClassVar[str] = ""
    conn_type: ClassVar[str] = ""
    extra: ClassVar[Mapping[str, str]] = {}
    has_token: ClassVar[bool] = True
    """Whether it knows a second submission of the same job."""
    authorization: str | None = None
    """The header of the last request."""

    @property
    def connection(self) -> str:
        """The connection of Airflow, as JSON."""
        url = urlsplit(self.address)
        fields = {"conn_type": self.conn_type, "host": url.hostname, "port": url.port}
        return json.dumps({**fields, "schema": "http", "password": "hush", "extra": self.extra})

    @abstractmethod
    def submitter(self) -> Any:
        """A submitter that leads here, over the connection `service`."""

    @abstractmethod
    def answer(self, method: str, path: str, body: Any) -> Answer:
        """The status and the body of an answer."""

    def run(
        self, body: Mapping[str, Any], program: str, arguments: Sequence[str], conf: Any = None
    ) -> int:
        """Starts a job; returns its number."""
        settings = [word for key in conf or {} for word in ("--conf", f"{key}={conf[key]}")]
        command = [self.spark_submit, "--master", "local[2]", *settings, program, *arguments]
        output = self.folder / f"{self.kind}-{len(self.jobs)}.log"
        # The stub of a test is first on PATH.
        path = os.pathsep.join([os.environ["PATH"], str(PROGRAMS)])
        env = {**os.environ, "PATH": path, "PYSPARK_PYTHON": sys.executable}
        with output.open("wb") as log:
            process = subprocess.Popen(
                command,
                env=env,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self.jobs.append(ServiceJob(body, process, output))
        return len(self.jobs) - 1

    def state(self, number: int, names: Sequence[str]) -> str:
        """The state of a job, by the service's names for: waits, runs, succeeded, failed,
        cancelled."""
        job = self.jobs[number]
        if job.is_cancelled:
            return names[4]
        if self.waits > 0:
            self.waits -= 1
            return names[0]
        code = job.code
        return names[1] if code is None else names[3] if code else names[2]

    def knows(self, number: int) -> bool:
        return number < len(self.jobs)

    def forget(self) -> None:
        """Loses the jobs, which keep running."""
        self.jobs = []


class Livy(SparkService):
    """https://livy.apache.org/docs/latest/rest-api.html"""

    kind = "livy"
    conn_type = "livy"
    page = 500

    def submitter(self) -> Any:
        from dqx_airflow.operators.submitters import LivyBatches

        return LivyBatches({"file": JOB}, "service", headers={"X-Requested-By": "dqx"})

    def answer(self, method: str, path: str, body: Any) -> Answer:
        match (method, *path.strip("/").split("/")):
            case "POST", "batches":
                if body["name"] in [job.body["name"] for job in self.jobs]:
                    return 400, {"msg": f"Duplicate session name: Some({body['name']})"}
                number = self.run(body, body["file"], body["args"], body["conf"])
                return 201, self._batch(number)
            case "GET", "batches":
                batches = [self._batch(number) for number in range(len(self.jobs))]
                start = int(body.get("from", 0))
                page = batches[start : start + min(int(body.get("size", 100)), self.page)]
                return 200, {"from": start, "total": len(batches), "sessions": page}
            case _, "batches", number if not self.knows(int(number)):
                return 404, {"msg": f"Session '{number}' not found."}
            case "GET", "batches", number:
                return 200, self._batch(int(number))
            case "GET", "batches", number, "log":
                return 200, {"id": int(number), "log": self.jobs[int(number)].log}
            case "DELETE", "batches", number:
                self.jobs[int(number)].cancel()
                return 200, {"msg": "deleted"}
        return 404, {"msg": "no such page"}

    def _batch(self, number: int) -> dict[str, Any]:
        job = self.jobs[number]
        names = ("starting", "running", "success", "dead", "killed")
        return {
            "id": number,
            "name": job.body["name"],
            "state": self.state(number, names),
            "appId": None,
            "appInfo": {"driverLogUrl": None, "sparkUiUrl": None},
            "log": ["stdout: ", *job.log[-10:], "\nstderr: "],
        }


class Databricks(SparkService):
    """https://docs.databricks.com/api/workspace/jobs, in version 2.2."""

    kind = "databricks"
    conn_type = "databricks"

    def submitter(self) -> Any:
        from dqx_airflow.operators.submitters import DatabricksRuns

        cluster = {"spark_version": "16.4.x-scala2.12", "num_workers": 1}
        task = {"new_cluster": cluster, "spark_python_task": {"python_file": JOB}}
        return DatabricksRuns(task, "service")

    def answer(self, method: str, path: str, body: Any) -> Answer:
        name = path.removeprefix("/api/2.2/jobs/runs/")
        if name == "submit":
            return 200, {"run_id": self._submit(body)}
        number = int(body["run_id"]) % 1000 - 1
        if not self.knows(number):
            message = f"Run {body['run_id']} does not exist."
            return 400, {"error_code": "INVALID_PARAMETER_VALUE", "message": message}
        match method, name:
            case "GET", "get":
                return 200, self._run(number)
            case "GET", "get-output":
                job = self.jobs[number]
                error = f"SystemExit: {job.code}" if job.code else None
                return 200, {"metadata": {}, "logs": "\n".join(job.log), "error": error}
            case "POST", "cancel":
                self.jobs[number].cancel()
                return 200, {}
        return 404, {"error_code": "ENDPOINT_NOT_FOUND"}

    def _submit(self, body: Any) -> int:
        """The id of a new run, or of the one with the same token."""
        tokens = [job.body["idempotency_token"] for job in self.jobs]
        if body["idempotency_token"] in tokens:
            return 1001 + tokens.index(body["idempotency_token"])
        (task,) = body["tasks"]
        conf = task.get("new_cluster", {}).get("spark_conf", {})
        python = task.get("spark_python_task") or {"python_file": JOB, **task["python_wheel_task"]}
        assert len(json.dumps(python["parameters"])) <= 10_000
        return 1001 + self.run(body, python["python_file"], python["parameters"], conf)

    def _run(self, number: int) -> dict[str, Any]:
        names = ("PENDING", "RUNNING", "SUCCESS", "FAILED", "CANCELED")
        state = self.state(number, names)
        has_ended = state in names[2:]
        result = {"result_state": state} if has_ended else {}
        message = "Task gate failed with message: Workload failed" if state == "FAILED" else ""
        life = "TERMINATED" if has_ended else state
        return {
            "run_id": 1001 + number,
            "job_id": 7,
            "run_page_url": f"{self.address}/?o=0#job/7/run/{1001 + number}",
            "state": {"life_cycle_state": life, "state_message": message, **result},
            "tasks": [{"run_id": 2001 + number, "task_key": "gate"}],
        }


class Aws(SparkService):
    """A service of AWS, by the models of botocore, which it also checks requests with."""

    conn_type = "aws"
    has_token = False

    @property
    def connection(self) -> str:
        extra = {"endpoint_url": self.address, "region_name": "eu-central-1"}
        login = {"login": "AKIAXXXXXXXXXXXXXXXX", "password": "hush"}
        return json.dumps({"conn_type": "aws", **login, "extra": extra})

    def message(self, number: int) -> str:
        code = self.jobs[number].code
        return f"Job failed, see the logs. ExitCode: {code}." if code else ""


class EmrServerless(Aws):
    """https://docs.aws.amazon.com/emr-serverless/latest/APIReference"""

    kind = "emr_serverless"
    has_token = True

    def submitter(self) -> Any:
        from dqx_airflow.operators.submitters import EmrServerlessJobs

        bucket = {"s3MonitoringConfiguration": {"logUri": f"{self.address}/logs/"}}
        run = {
            "applicationId": "00f1",
            "executionRoleArn": "arn:aws:iam::123456789012:role/gates",
            "jobDriver": {
                "sparkSubmit": {
                    "entryPoint": JOB,
                    "sparkSubmitParameters": "--conf spark.executor.cores=2",
                }
            },
            "configurationOverrides": {"monitoringConfiguration": bucket},
        }
        return EmrServerlessJobs(run, "service")

    def answer(self, method: str, path: str, body: Any) -> Answer:
        match (method, *path.strip("/").split("/")):
            case "POST", "applications", application, "jobruns":
                tokens = [job.body["clientToken"] for job in self.jobs]
                number = len(tokens)
                if body["clientToken"] in tokens:
                    number = tokens.index(body["clientToken"])
                else:
                    spark = body["jobDriver"]["sparkSubmit"]
                    words = shlex.split(spark["sparkSubmitParameters"])
                    conf = dict(word.split("=", 1) for word in words if word != "--conf")
                    self.run(body, spark["entryPoint"], spark["entryPointArguments"], conf)
                return 200, {
                    "applicationId": application,
                    "jobRunId": f"j{number}",
                    "arn": "a" * 60,
                }
            case _, "applications", _, "jobruns", run if not self.knows(int(run[1:])):
                return 404, {"__type": "ResourceNotFoundException", "message": "Job run not found"}
            case "DELETE", "applications", _, "jobruns", run:
                self.jobs[int(run[1:])].cancel()
                return 200, {"applicationId": "00f1", "jobRunId": run}
            case "GET", "applications", _, "jobruns", run:
                names = ("PENDING", "RUNNING", "SUCCESS", "FAILED", "CANCELLED")
                state = self.state(int(run[1:]), names)
                found = {"state": state, "stateDetails": self.message(int(run[1:])) or "-"}
                return 200, {"jobRun": {"jobRunId": run, **found}}
        return 404, {}


class Glue(Aws):
    """https://docs.aws.amazon.com/glue/latest/dg/aws-glue-api-jobs-runs.html"""

    kind = "glue"

    def submitter(self) -> Any:
        from dqx_airflow.operators.submitters import GlueJobRuns

        arguments = {"--conf": "spark.executor.cores=2", "--mode": "gate"}
        return GlueJobRuns({"JobName": "gates", "Arguments": arguments}, "service")

    def answer(self, method: str, path: str, body: Any) -> Answer:
        action = path.rpartition(".")[2]
        if action == "GetJob":
            catalog = "spark.sql.catalog.lake=org.apache.iceberg.spark.SparkCatalog"
            arguments = {"--conf": f"{catalog} --conf spark.executor.cores=4"}
            return 200, {"Job": {"Name": body["JobName"], "DefaultArguments": arguments}}
        if action == "StartJobRun":
            arguments = dict(body["Arguments"])
            words = shlex.split(f"--conf {arguments.pop('--conf')}")
            conf = dict(word.split("=", 1) for word in words if word != "--conf")
            # Glue adds arguments of its own.
            given = {"--JOB_NAME": body["JobName"], **arguments, "--TempDir": "s3://tmp"}
            words = [word for pair in given.items() for word in pair]
            return 200, {"JobRunId": f"jr_{self.run(body, JOB, words, conf)}"}
        run = body["RunId"] if action == "GetJobRun" else body["JobRunIds"][0]
        number = int(run[3:])
        if not self.knows(number):
            return 400, {"__type": "EntityNotFoundException", "Message": f"Job run {run} not found"}
        if action == "BatchStopJobRun" and self.refuses_to_cancel:
            detail = {"ErrorCode": "AccessDenied", "ErrorMessage": "not yours"}
            return 200, {"Errors": [{"JobName": "gates", "JobRunId": run, "ErrorDetail": detail}]}
        if action == "BatchStopJobRun":
            self.jobs[number].cancel()
            return 200, {"SuccessfulSubmissions": [{"JobName": "gates", "JobRunId": run}]}
        state = self.state(number, ("WAITING", "RUNNING", "SUCCEEDED", "FAILED", "STOPPED"))
        code = self.jobs[number].code
        error = {"ErrorMessage": f"SystemExit: {code}"} if code else {}
        return 200, {"JobRun": {"Id": run, "JobRunState": state, **error}}


class Emr(Aws):
    """https://docs.aws.amazon.com/emr/latest/APIReference"""

    kind = "emr"

    def submitter(self) -> Any:
        from dqx_airflow.operators.submitters import EmrSteps

        return EmrSteps("j-1", JOB, ["--conf", "spark.executor.cores=2"], "service")

    def answer(self, method: str, path: str, body: Any) -> Answer:
        action = path.rpartition(".")[2]
        if action == "AddJobFlowSteps":
            (step,) = body["Steps"]
            name, *words = step["HadoopJarStep"]["Args"]
            assert name == "spark-submit"
            program = words.index(JOB)
            conf = dict(word.split("=", 1) for word in words[:program] if word != "--conf")
            return 200, {"StepIds": [f"s-{self.run(body, JOB, words[program + 1 :], conf)}"]}
        step = body["StepId"] if action == "DescribeStep" else body["StepIds"][0]
        number = int(step[2:])
        if not self.knows(number):
            message = f"Step id '{step}' is not valid."
            return 400, {"__type": "InvalidRequestException", "Message": message}
        if action == "CancelSteps" and self.refuses_to_cancel:
            refusal = {"StepId": step, "Status": "FAILED", "Reason": "AccessDenied: not yours"}
            return 200, {"CancelStepsInfoList": [refusal]}
        if action == "CancelSteps":
            self.jobs[number].cancel()
            return 200, {"CancelStepsInfoList": [{"StepId": step, "Status": "SUBMITTED"}]}
        names = ("PENDING", "RUNNING", "COMPLETED", "FAILED", "CANCELLED")
        status: dict[str, Any] = {"State": self.state(number, names)}
        if reason := self.message(number):
            status["FailureDetails"] = {"Reason": "Unknown Error.", "Message": reason}
        return 200, {"Step": {"Id": step, "Status": status}}


class SparkOperator(SparkService):
    """https://kubeflow.github.io/spark-operator/docs/api-docs.html, behind an API server."""

    kind = "spark_operator"

    @property
    def connection(self) -> str:
        config = kube_config(self.address)
        return json.dumps({"conn_type": "kubernetes", "extra": {"kube_config": config}})

    def submitter(self) -> Any:
        from dqx_airflow.operators.submitters import SparkApplications

        spec = {"image": "lake/dqx", "sparkVersion": "4.0.1", "mainApplicationFile": JOB}
        return SparkApplications(spec, "lake", "service")

    def answer(self, method: str, path: str, body: Any) -> Answer:
        place = "/apis/sparkoperator.k8s.io/v1beta2/namespaces/lake/sparkapplications"
        folder, _, name = path.removeprefix(place).rpartition("/")
        names = [job.body["metadata"]["name"] for job in self.jobs]
        if not path.startswith(place) or folder:
            return 404, self._refusal(404, "NotFound")
        if method == "POST":
            if body["metadata"]["name"] in names:
                return 409, self._refusal(409, "AlreadyExists")
            spec = body["spec"]
            assert spec["restartPolicy"] == {"type": "Never"}
            self.run(body, spec["mainApplicationFile"], spec["arguments"], spec["sparkConf"])
            return 201, body
        if name not in names:
            return 404, self._refusal(404, "NotFound")
        number = names.index(name)
        if method == "DELETE":
            self.jobs[number].cancel()
            return 200, {"kind": "Status", "status": "Success"}
        job = self.jobs[number]
        if job.is_cancelled:
            return 404, self._refusal(404, "NotFound")
        state = self.state(number, ("SUBMITTED", "RUNNING", "COMPLETED", "FAILED", ""))
        failed = f"driver container failed with ExitCode: {job.code}, Reason: Error"
        error = {"errorMessage": failed} if job.code else {}
        return 200, {**job.body, "status": {"applicationState": {"state": state, **error}}}

    def _refusal(self, code: int, reason: str) -> dict[str, Any]:
        return {"kind": "Status", "status": "Failure", "reason": reason, "code": code}


class Google(SparkService):
    """Dataproc behind Google's sign-in of service accounts. Google's own classes read the bodies,
    and refuse fields that it does not know."""

    PLACE = "/v1/projects/lake/"

    @property
    def connection(self) -> str:
        account = {
            "type": "service_account",
            "project_id": "lake",
            "client_email": "gates@lake.iam.gserviceaccount.com",
            "private_key": _private_key(),
            "token_uri": f"{self.address}{SIGN_IN}",
        }
        extra = {"keyfile_dict": json.dumps(account)}
        return json.dumps({"conn_type": "google_cloud_platform", "extra": extra})

    def answer(self, method: str, path: str, body: Any) -> Answer:
        if path == SIGN_IN:
            assert body["grant_type"].endswith("jwt-bearer")
            return 200, {"access_token": "hush", "expires_in": 3600, "token_type": "Bearer"}
        if self.authorization != "Bearer hush":
            return self.refusal(401, "UNAUTHENTICATED")
        place, _, action = path.removeprefix(self.PLACE).partition(":")
        return self.resource((method, *place.split("/"), *([action] if action else [])), body)

    @abstractmethod
    def resource(self, asked: tuple[str, ...], body: Any) -> Answer:
        """The answer, by the method, the parts of the path, and what is done with the resource."""

    def refusal(self, code: int, status: str) -> Answer:
        return code, {"error": {"code": code, "message": "no", "status": status}}

    def message(self, number: int) -> str:
        code = self.jobs[number].code
        more = "Additional details can be found at:\nhttps://console.cloud.google.com/lake\ngs://l"
        return f"Job failed with message [SystemExit: {code}]. {more}" if code else ""


class DataprocServerless(Google):
    """https://cloud.google.com/dataproc/docs/reference/rest/v1/projects.locations.batches"""

    kind = "dataproc_batches"

    def submitter(self) -> Any:
        from dqx_airflow.operators.submitters import DataprocBatches

        batch = {
            "pysparkBatch": {"mainPythonFileUri": JOB},
            "runtimeConfig": {"version": "2.3", "containerImage": "lake/dqx"},
        }
        return DataprocBatches(batch, "europe-west1", "service", endpoint=self.address)

    def resource(self, asked: tuple[str, ...], body: Any) -> Answer:
        names = [job.body["batchId"] for job in self.jobs]
        match asked:
            case "POST", "locations", "europe-west1", "batches":
                return self._create(body, names)
            case "GET", "locations", "europe-west1", "batches", name if name in names:
                number = names.index(name)
                states = ("PENDING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED")
                batch = {"state": self.state(number, states), "stateMessage": self.message(number)}
                return 200, {**batch, "operation": self._operation(number)}
            case "POST", "regions", "europe-west1", "operations", name, "cancel":
                self.jobs[int(name)].cancel()
                return 200, {}
        return self.refusal(404, "NOT_FOUND")

    def _create(self, body: Any, names: list[str]) -> Answer:
        from google.cloud.dataproc_v1 import Batch

        requests = [job.body["requestId"] for job in self.jobs]
        if body["requestId"] in requests:
            return 200, {"name": self._operation(requests.index(body["requestId"]))}
        if body["batchId"] in names:
            return self.refusal(409, "ALREADY_EXISTS")
        assert 4 <= len(body["batchId"]) <= 63
        assert len(body["requestId"]) <= 40
        batch = {key: body[key] for key in body if key not in ("batchId", "requestId")}
        Batch.from_json(json.dumps(batch))
        spark, conf = batch["pysparkBatch"], batch["runtimeConfig"]["properties"]
        number = self.run(body, spark["mainPythonFileUri"], spark["args"], conf)
        return 200, {"name": self._operation(number)}

    def _operation(self, number: int) -> str:
        return f"projects/lake/regions/europe-west1/operations/{number}"


class DataprocCluster(Google):
    """https://cloud.google.com/dataproc/docs/reference/rest/v1/projects.regions.jobs"""

    kind = "dataproc_jobs"

    def submitter(self) -> Any:
        from dqx_airflow.operators.submitters import DataprocJobs

        job = {"placement": {"clusterName": "c"}, "pysparkJob": {"mainPythonFileUri": JOB}}
        return DataprocJobs(job, "europe-west1", "service", endpoint=self.address)

    def resource(self, asked: tuple[str, ...], body: Any) -> Answer:
        names = [job.body["job"]["reference"]["jobId"] for job in self.jobs]
        match asked:
            case "POST", "regions", "europe-west1", "jobs", "submit":
                return self._submit(body)
            case _, "regions", "europe-west1", "jobs", name, *action if name in names:
                number = names.index(name)
                if action == ["cancel"]:
                    self.jobs[number].cancel()
                states = ("PENDING", "RUNNING", "DONE", "ERROR", "CANCELLED")
                status = {"state": self.state(number, states), "details": self.message(number)}
                return 200, {**self.jobs[number].body["job"], "status": status}
        return self.refusal(404, "NOT_FOUND")

    def _submit(self, body: Any) -> Answer:
        from google.cloud.dataproc_v1 import SubmitJobRequest

        requests = [job.body["requestId"] for job in self.jobs]
        if body["requestId"] in requests:
            return 200, self.jobs[requests.index(body["requestId"])].body["job"]
        assert len(body["requestId"]) <= 40
        SubmitJobRequest.from_json(json.dumps(body))
        spark = body["job"]["pysparkJob"]
        self.run(body, spark["mainPythonFileUri"], spark["args"], spark["properties"])
        return 200, body["job"]


@cache
def _private_key() -> str:
    """The key of a service account that exists nowhere."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)
    return key.private_bytes(*form, serialization.NoEncryption()).decode()


SERVICES: dict[str, type[SparkService]] = {
    kind.kind: kind
    for kind in (
        Livy,
        Databricks,
        EmrServerless,
        Glue,
        Emr,
        SparkOperator,
        DataprocServerless,
        DataprocCluster,
    )
}


@contextmanager
def serving(service: SparkService) -> Iterator[SparkService]:
    """Starts a service on a free port, and ends it with its jobs."""

    def answer(asked: Asked) -> Reply | None:
        url = urlsplit(asked.path)
        headers = asked.headers
        is_form = headers.get("Content-Type", "").endswith("form-urlencoded")
        body = dict(parse_qsl(asked.body.decode())) if is_form else json.loads(asked.body or b"{}")
        body = {**dict(parse_qsl(url.query)), **body}
        path = f"{url.path}{headers.get('X-Amz-Target') or ''}"
        service.asked.append(f"{asked.method} {path}")
        service.authorization = headers.get("Authorization")
        can_fail = service.faults and url.path != SIGN_IN and not path.endswith(".GetJob")
        fault = service.faults.pop(0) if can_fail else None
        if fault:
            return Reply(fault, {"message": "try again"})
        answered = Reply(*service.answer(asked.method, path, body))
        return answered if fault is None else None

    started = service.jobs
    with http_stub(answer) as service.address:
        try:
            yield service
        finally:
            for job in {id(job): job for job in (*started, *service.jobs)}.values():
                job.cancel()
