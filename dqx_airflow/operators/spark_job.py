"""Runs the request of a gate as a Spark job: `spark-submit`, Spark Connect, or a service."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Mapping
from functools import cache, partial
from inspect import getattr_static
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import AirflowException

from dqx_airflow.operators.airflow_versions import GIVEN_ARGUMENTS, IS_CONSTRUCTED
from dqx_airflow.operators.exceptions import GateMisconfiguredError
from dqx_airflow.operators.spark_connection import connect_address, is_connect, is_sail, master_of
from dqx_airflow.operators.templates import FOUND_FIELDS, TEMPLATE_FIELDS

if TYPE_CHECKING:
    from dqx_airflow.operators.connect_process import ConnectJob
    from dqx_airflow.operators.drivers import Driver
    from dqx_airflow.operators.ending import Ending
    from dqx_airflow.operators.results_location import ResultsLocation
    from dqx_airflow.operators.spark_log import SparkLog
    from dqx_airflow.operators.submitters import SubmittedJob, Submitter
    from dqx_airflow.values import JobRequest

_RM_ADDRESS = "yarn_resourcemanager_webapp_address"
_POD_NAME = "spark.kubernetes.driver.pod.name"
_LISTENER_DISABLED = "spark.openlineage.disabled"
_OF_DRIVERS = ("spark.yarn.appMasterEnv.", "spark.kubernetes.driverEnv.")
_NAME = "dqx-gate"
_LONGEST_NAME = 40
_LONGEST_CANCEL_S = 20.0
_OF_SUBMISSION = (
    "application",
    "files",
    "py_files",
    "archives",
    "jars",
    "packages",
    "driver_class_path",
    "driver_memory",
    "executor_memory",
    "executor_cores",
    "total_executor_cores",
    "num_executors",
    "keytab",
    "principal",
    "proxy_user",
    "properties_file",
    "yarn_queue",
    "post_submit_commands",
    "deploy_mode",
)
"""The arguments without effect over Spark Connect: no Spark is submitted."""


class SparkJobOperator(SparkSubmitOperator):
    """Runs a request over its Spark connection, and returns how it ended.

    `driver` is the driver of a submitted job that continues without this worker. With `deferrable`
    the task does not wait for it.
    """

    # Airflow wraps every __init__, which is slow with hundreds of gates in a DAG file: initial
    # empty values are class attributes.
    application: str | None
    name: str | None
    deferrable: bool
    driver: Driver | None = None
    _results_location: ResultsLocation
    submit: Submitter | None
    env_vars: dict[str, Any] | None
    _connect_job: ConnectJob | None = None
    _spark_log: SparkLog
    _is_driver_a_pod = False
    _is_here: bool | None = None
    _is_killed = False
    _knows_resource_manager = False

    def __setattr__(self, key: str, value: Any) -> None:
        """Assigns an attribute as Airflow does, which searches for a converter each time. A
        constructor has a hundred assignments, and hundreds of gates are in a DAG file."""
        own = self.__dict__
        if IS_CONSTRUCTED in own:
            if own.get(TEMPLATE_FIELDS) is own.pop(FOUND_FIELDS, None):
                own.pop(TEMPLATE_FIELDS, None)
            super().__setattr__(key, value)
            return
        given = own.get(GIVEN_ARGUMENTS)
        kind: Any = type(self)
        if given is None or key in given or not _is_plain(kind, key):
            super().__setattr__(key, value)
        else:
            own[key] = value

    def run_job(self, request: JobRequest, connection: Any, context: Any) -> Ending | None:
        """Runs the job, and returns how it ended; None if it continues, as `driver` in a cluster.

        :raises GateMisconfiguredError: it cannot be run with these settings.
        """
        from dqx_airflow.operators.ending import with_cause

        self.driver = None
        self._is_here = is_connect(connection) or self._is_driver_here(connection.extra_dejson)
        if self.deferrable:
            self._require_driver_to_follow(connection)
        spark_log = self._open_spark_log(context)
        try:
            if is_connect(connection):
                ending = self._run_over_connect(request, connection, spark_log)
            else:
                ending = self._submit(request, connection, context, spark_log)
        finally:
            spark_log.close()
        ending = with_cause(ending, spark_log)
        if ending.has_failed:
            self.log.warning("%s; looking for the report of the gate", ending.how)
        return ending if self.driver is None else None

    def arguments_of(self, request: JobRequest) -> list[str]:
        """The arguments that pass a request to its job."""
        from dqx_airflow.values.json_form import to_arguments

        return to_arguments(request)

    def start_on_service(
        self, submitter: Submitter, request: JobRequest, location: ResultsLocation
    ) -> SubmittedJob:
        """Starts the job of a request on a service, where it continues as `driver`.

        :raises GateInfrastructureError: it cannot be started.
        """
        from dqx_airflow.operators.submitters import submit_job

        self._is_here = self._is_killed = False
        unused = [name for name in (*_OF_SUBMISSION, "env_vars") if self._is_given(name)]
        if unused:
            self.log.warning("with submit, these have no effect: %s", ", ".join(unused))
        settings = {_LISTENER_DISABLED: "true", **request.session_settings, **(self.conf or {})}
        self.driver = job = submit_job(submitter, request, location, settings)
        self.log.info("submitted as %s, see %s", job.id, job.logs() or "the service")
        if self._is_killed:
            self.on_kill()
        return job

    def _open_spark_log(self, context: Any) -> SparkLog:
        """Opens the destination of Spark's output: a file, or with `verbose` the task log."""
        from dqx_airflow.operators.spark_log import SparkLog, spark_log_path

        path = None if self._verbose else spark_log_path(context["ti"])
        spark_log = SparkLog(path, self.log.info)
        try:
            spark_log.open()
        except OSError as error:
            self.log.warning("the log of Spark cannot be kept in a file: %s", error)
        if spark_log.is_file:
            self.log.info("the log of Spark is in %s", path)
        self._spark_log = spark_log
        return spark_log

    def execute_resumable(self, context: Any) -> Any:
        """Submits the job as the provider does, but a deferrable gate does not wait for it."""
        if not self.deferrable:
            return super().execute_resumable(context)
        from dqx_airflow.operators.drivers import KubernetesPod, YarnApplication

        kind = YarnApplication if self._yarn_track_via_rm_api else KubernetesPod
        try:
            self.driver = kind(str(self.submit_job(context)), self._conn_id)
        finally:
            # For Kubernetes the provider leaves them to its own waiting.
            self._hook._run_post_submit_commands()
        return None

    def job_sends_events(self) -> bool:
        """True if the job is known to send OpenLineage events of its own.

        Before the job runs, the driver settings in the connection are unknown.
        """
        is_here = self._is_here
        if is_here is None:
            is_here = self.submit is None and not self.deferrable and self._is_driver_here({})
        return job_sends_events(self.env_vars, self.conf, is_driver_here=is_here)

    def on_kill(self) -> None:
        """Ends the Spark job, wherever its driver runs."""
        self._is_killed = True
        if self.submit is not None:
            if self.driver is not None:
                self._cancel(self.driver)
        elif self._connect_job is not None:
            self._connect_job.end()
        elif self._hook is not None:
            # Not like the provider's operator: on YARN it ends only what it tracks over REST. And a
            # worker may lack the program `yarn`, with which the hook would end the rest.
            self._hook._yarn_track_via_rm_api = self._knows_resource_manager
            try:
                self._hook.on_kill()
            except Exception as error:  # of a program, of the network, of a cluster's client
                self.log.warning("the driver may keep running until its timeout: %s", error)

    def _cancel(self, driver: Driver) -> None:
        """Cancels a driver on another thread: Airflow gives connections to one thread at a time,
        perhaps to the thread that was interrupted."""
        from dqx_airflow.operators.submitters import SubmittedJob

        def cancel() -> None:
            try:
                driver.cancel()
            except Exception as error:  # of the service, of the network
                self.log.error("the job %s may keep running: %s", driver.id, error)
            if isinstance(driver, SubmittedJob):
                self._discard(driver.request)

        thread = threading.Thread(target=cancel, daemon=True)
        thread.start()
        thread.join(_LONGEST_CANCEL_S)

    def _discard(self, stored_request: str) -> None:
        """Deletes the request of a job that has ended: no other job can take it, and a job that
        has taken it ends."""
        from dqx_airflow.errors import StoreError
        from dqx_airflow.results.stored_requests import discard_request

        try:
            discard_request(stored_request, self._results_location.storage_options)
        except StoreError as error:
            self.log.warning("the request of this gate stays in the store: %s", error)

    def _run_over_connect(
        self, request: JobRequest, connection: Any, spark_log: SparkLog
    ) -> Ending:
        """Runs the job in a separate process here, with its Spark on a server."""
        from dqx_airflow.operators.connect_process import ConnectJob
        from dqx_airflow.operators.ending import ending_of_code

        unused = [name for name in _OF_SUBMISSION if self._is_given(name)]
        if unused:
            self.log.warning(
                "over Spark Connect, and on Sail, a gate starts no Spark of its own; ignored: %s",
                ", ".join(unused),
            )
        address, secrets = connect_address(connection)
        settings = {**request.session_settings, **(self.conf or {})}
        self._connect_job = job = ConnectJob(address, settings, secrets)
        code = job.run(self.arguments_of(request), self.env_vars or {}, spark_log.add)
        return ending_of_code(code, request.timeout_s)

    def _is_given(self, argument: str) -> bool:
        return bool(getattr(self, argument, None) or getattr(self, f"_{argument}", None))

    def _submit(
        self, request: JobRequest, connection: Any, context: Any, spark_log: SparkLog
    ) -> Ending:
        """Runs the job by `spark-submit`."""
        from dqx_airflow.operators.ending import ending_of_submission
        from dqx_airflow.operators.local_driver import LocalDriver
        from dqx_airflow.values.files import shipped

        self.application = self.application or str(shipped("spark_jobs/gate_job.py"))
        self.name = self.name or _NAME
        self.application_args = self.arguments_of(request)
        # A listener of the cluster would name the datasets again, for a third job.
        self.conf: dict[str, str] = {
            _LISTENER_DISABLED: "true",
            **request.session_settings,
            **(self.conf or {}),
        }
        driver: LocalDriver | None = None
        if self._is_driver_here(connection.extra_dejson):
            program = self._spark_binary or connection.extra_dejson.get("spark-binary")
            on_classpath = {
                "spark.jars": self.jars,
                "spark.jars.packages": self.packages,
                "spark.driver.extraClassPath": self.driver_class_path,
                "spark.driver.memory": self._driver_memory,
            }
            driver = LocalDriver(
                self.conf, self.env_vars, program or "spark-submit", on_classpath, self.log
            )
            self.conf, self.env_vars = driver.conf, driver.env_vars
        elif "yarn" in master_of(connection):
            self._knows_resource_manager = bool(connection.extra_dejson.get(_RM_ADDRESS))
            # A driver that YARN restarts would be a try unknown to Airflow.
            self.conf.setdefault("spark.yarn.maxAppAttempts", "1")
        else:
            self._is_driver_a_pod = "k8s" in master_of(connection)
        # `dag.test()` runs all tries on one operator, and a hook keeps its arguments.
        self._hook: Any = None
        error: Exception | None = None
        try:
            super().execute(context)
        except (AirflowException, RuntimeError, OSError) as caught:
            error = caught
        except ValueError as unfit:
            # Errors of the hook about settings that it cannot use, including settings of the
            # connection.
            raise GateMisconfiguredError(f"the Spark job cannot be submitted: {unfit}") from None
        finally:
            self.application_args = []  # they belong to this try, not to the gate
        if driver is not None:
            driver.keep_classes(has_ended_well=error is None)
        return ending_of_submission(self._hook, error, request.timeout_s)

    def _require_driver_to_follow(self, connection: Any) -> None:
        """Prepares the submission of a driver that the triggerer can follow.

        :raises GateMisconfiguredError: with these settings the driver cannot be followed.
        """
        master = "Spark Connect" if is_connect(connection) else master_of(connection)
        if is_sail(connection):
            master = "Sail in the process of the gate"
        is_yarn, is_kubernetes = "yarn" in master, "k8s" in master
        if not (is_yarn or is_kubernetes) or self._is_driver_here(connection.extra_dejson):
            mode = "client" if self._is_driver_here(connection.extra_dejson) else "cluster"
            raise GateMisconfiguredError(
                f"deferrable=True: the Spark connection '{self._conn_id}' ({master}, {mode} mode) "
                "has no driver that the triggerer can track: submit to YARN or Kubernetes "
                "with deploy_mode='cluster', or leave deferrable out"
            )
        if is_yarn and not connection.extra_dejson.get(_RM_ADDRESS):
            raise GateMisconfiguredError(
                f"deferrable=True: the triggerer does not know the ResourceManager: set "
                f"{_RM_ADDRESS} in the extra of the Spark connection '{self._conn_id}', such as "
                "http://rm:8088"
            )
        if is_yarn and self._yarn_rm_auth is not None:
            raise GateMisconfiguredError(
                "deferrable=True: yarn_rm_auth cannot be handed to the triggerer: leave it out, "
                "and set keytab and principal in the extra of the Spark connection "
                f"'{self._conn_id}'"
            )
        self._deploy_mode = "cluster"
        self._yarn_track_via_rm_api = is_yarn
        self._track_driver_via_k8s_api = is_kubernetes

    def _get_hook(self) -> Any:
        try:
            hook = super()._get_hook()
        except (NameError, RuntimeError):  # so the provider does not find what it imports if it can
            raise ValueError(
                f"the Spark connection '{self._conn_id}' leads to Kubernetes, whose client is not "
                "installed on this worker: pip install 'dqx-airflow[kubernetes]'"
            ) from None
        from dqx_airflow.operators.spark_log import SubmissionLog

        # One byte of output that is not UTF-8 would end the task while its job continues.
        hook.submit = partial(hook.submit, encoding="utf-8", errors="replace")
        if self._is_driver_a_pod:
            _name_driver_pod(hook)
        elif hook._is_kubernetes:
            # The provider expects them in a pod, and this driver has none.
            hook._env = hook._env_vars
            hook._env_vars = None
        log = SubmissionLog(hook.log, self._spark_log)
        hook._log = log
        read_output = hook._process_spark_submit_log
        mask = hook._mask_cmd
        hook._process_spark_submit_log = lambda lines: read_output(
            _noting_exit_code(hook, log.reading(lines))
        )
        hook._mask_cmd = lambda command: mask(_without_request(command))
        return hook

    def _is_driver_here(self, extra: Mapping[str, Any]) -> bool:
        """True if the driver runs on this worker, as in client mode.

        :param extra: the extra of the Spark connection.
        """
        of_conf = (self.conf or {}).get("spark.submit.deployMode")
        mode = self._deploy_mode or extra.get("deploy-mode") or of_conf or "client"
        return bool(mode != "cluster")


@cache
def _is_plain(kind: Any, attribute: str) -> bool:
    """True if Airflow only assigns this attribute of operators while they are constructed."""
    if not hasattr(kind, IS_CONSTRUCTED) or hasattr(kind, f"_convert_{attribute}"):
        return False
    # Statically: a descriptor may answer its class with something else.
    return not hasattr(getattr_static(kind, attribute, None), "__set__")  # a property


def is_deferrable(given: bool | None, submitter: Submitter | None) -> bool:
    """Whether a gate releases its slot while Spark runs: as it says, else on a service as Airflow's
    `default_deferrable` says. Not every Spark connection leads to a driver that can be tracked."""
    if given is None and submitter is not None:
        from airflow.providers.common.compat.sdk import conf

        return bool(conf.getboolean("operators", "default_deferrable", fallback=False))
    return False if given is None else given


def _name_driver_pod(hook: Any) -> None:
    """Sets the name of the driver's pod, so that the hook has it even if Spark does not log it.

    (The provider finds the name in the log of Spark 4 only for the namespace `spark`.)
    """
    import secrets

    name = re.sub("[^a-z0-9]+", "-", hook._name.lower())[:_LONGEST_NAME].strip("-") or _NAME
    own = {_POD_NAME: f"{name}-{secrets.token_hex(8)}-driver"}
    hook._conf = {**own, **hook._conf}
    hook._kubernetes_driver_pod = hook._conf[_POD_NAME]


def _without_request(command: str | list[str]) -> str | list[str]:
    """The command without its request, which is long and compressed."""
    from dqx_airflow.values.json_form import FLAG

    if isinstance(command, str) or FLAG not in command:
        return command
    return [*command[: command.index(FLAG) + 1], "..."]


def _noting_exit_code(hook: Any, lines: Iterator[Any]) -> Iterator[Any]:
    """Yields the output of `spark-submit`, and gives the hook the exit code of a driver on YARN.

    (The provider only looks for the exit code of a driver on Kubernetes.)
    """
    from dqx_airflow.operators.drivers import yarn_exit_code

    for line in lines:
        code = yarn_exit_code(line)
        if code is not None:
            hook._spark_exit_code = code
        yield line


def job_sends_events(
    env_vars: Mapping[str, Any] | None, conf: Mapping[str, Any] | None, *, is_driver_here: bool
) -> bool:
    """True if the job of a gate is known to find a configuration of OpenLineage.

    Of a driver in a cluster only the task's own settings are known.
    """
    from dqx_airflow.lineage import is_configured

    env = {name: str(value) for name, value in (env_vars or {}).items()}
    for setting, value in (conf or {}).items():
        for prefix in _OF_DRIVERS:
            if setting.startswith(prefix):
                env[setting.removeprefix(prefix)] = str(value)
    if is_driver_here:
        return is_configured({**os.environ, **env})
    return any(name.startswith("OPENLINEAGE") for name in env) and is_configured(env)
