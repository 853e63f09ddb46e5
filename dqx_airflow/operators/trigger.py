"""Waits for the job of a gate, also while the task is deferred.

All calls block: the triggerer makes them in threads.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from airflow.providers.common.compat.sdk import AirflowException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from dqx_airflow.errors import StoreError
from dqx_airflow.operators import submitters
from dqx_airflow.operators.exceptions import GateInfrastructureError, GateTimeoutError
from dqx_airflow.operators.results_location import ResultsLocation, results_location_of
from dqx_airflow.operators.submitters import DriverEnd, DriverUnknownError
from dqx_airflow.values import GatePart, GateReport, GateRequest, from_json, to_json
from dqx_airflow.values.json_form import EXIT_TIMED_OUT

if TYPE_CHECKING:
    from dqx_airflow.operators.spark_processes import SparkLog


_LONGEST_CAUSE = 300
_MORE_TIME = "increase the timeout, or reduce the data"
_OUTPUT = "see its output"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a job ended, what to do if it left no report, and whether it reached its time limit.

    `last_lines` are the last lines of its output, unless the task log contains them.
    """

    how: str
    advice: str
    is_late: bool = False
    has_failed: bool = True
    last_lines: tuple[str, ...] = ()


def ending_of_code(code: int | None, timeout_s: float | None) -> Ending:
    """The meaning of the job's exit code."""
    if not code:
        return Ending(
            f"the Spark job succeeded (exit code {code})",
            "its driver must reach the same storage at this location as the worker",
            has_failed=False,
        )
    if code == EXIT_TIMED_OUT and timeout_s is not None:
        return _late(timeout_s)
    how = f"was killed by signal {-code}" if code < 0 else f"failed (exit code {code})"
    return Ending(f"the Spark job {how}", _OUTPUT)


def ending_of_submission(hook: Any, error: Exception | None, timeout_s: float | None) -> Ending:
    """The ending of a job that a hook submitted, or failed to submit with `error`."""
    if isinstance(error, FileNotFoundError):
        return Ending(
            f"program {error.filename!r} not found on the PATH of this worker",
            "install pyspark or a Spark distribution there, or set spark_binary",
        )
    code = getattr(getattr(hook, "_submit_sp", None), "returncode", None)
    # The driver's own, if the cluster reports it.
    code = getattr(hook, "_spark_exit_code", None) or code
    if error is None or code:
        return ending_of_code(code, timeout_s)
    # This message of the hook contains the whole command, which is long, and may contain secrets.
    if str(error).startswith("Cannot execute"):
        return Ending("the Spark job failed", _OUTPUT)
    return Ending(f"the Spark job failed: {str(error)[:_LONGEST_CAUSE]}", _OUTPUT)


def with_cause(ending: Ending, spark: SparkLog) -> Ending:
    """The ending with the last error in the output of the job, and with the location of the
    rest."""
    where = f"see {spark.path}" if spark.is_file else "see its output above"
    advice = where if ending.advice == _OUTPUT else ending.advice
    lines = spark.tail if spark.is_file else ()
    if not ending.has_failed or ending.is_late or not spark.cause:
        return replace(ending, advice=advice, last_lines=lines)
    return replace(ending, how=f"{ending.how}: {spark.cause}", advice=advice, last_lines=lines)


def ending_of_event(event: dict[str, Any], timeout_s: float | None) -> Ending:
    """The ending according to the event of a deferred gate's trigger."""
    if event["is_late"]:
        return Ending(event["how"], _MORE_TIME, is_late=True)
    if event.get("code") == EXIT_TIMED_OUT and timeout_s is not None:
        return _late(timeout_s)
    if event.get("code") == 0:
        return replace(ending_of_code(0, timeout_s), how=event["how"])
    logs = event.get("logs") or "the log of its driver in the cluster for the cause"
    return Ending(event["how"], f"see {logs}")


def _late(timeout_s: float) -> Ending:
    return Ending(f"the gate took longer than {timeout_s:g} seconds", _MORE_TIME, is_late=True)


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


Driver: TypeAlias = YarnApplication | KubernetesPod | submitters.SubmittedJob

DRIVERS: dict[str, type[YarnApplication | KubernetesPod]] = {
    driver.kind: driver for driver in (YarnApplication, KubernetesPod)
}
"""The drivers in clusters, by the name of their kind."""


def stored_reports(
    request: GateRequest, location: ResultsLocation
) -> tuple[GateReport, ...] | None:
    """The complete reports of exactly this attempt, if all exist.

    Before the submission it serves a task that was restarted within the same try, and detects an
    unreadable store before a JVM is started.

    :raises GateInfrastructureError: the store cannot be read.
    """
    from dqx_airflow.results.query import StoredResults, read_reports

    results = StoredResults(request.results_root, location.storage_options)
    try:
        return read_reports(results, request.run_keys, request.attempt.id, request.answered)
    except StoreError as error:
        raise GateInfrastructureError(f"no report: {error}") from None


def require_reports(
    request: GateRequest, location: ResultsLocation, ending: Ending, log: Any
) -> tuple[GateReport, ...]:
    """The reports of the job from the results store.

    :raises GateInfrastructureError: there are none; the error says how the job ended.
    """
    reports = stored_reports(request, location)
    if reports is not None:
        return reports
    key = request.run_key
    if ending.last_lines:
        log.error("the last lines of Spark:\n%s", "\n".join(ending.last_lines))
    kind = GateTimeoutError if ending.is_late else GateInfrastructureError
    raise kind(
        f"no report in {request.results_root}: gate {key.gate_instance}, "
        f"date {key.date.isoformat()}: {ending.how}; {ending.advice}"
    )


_MOST_MISSED_SIGNS = 6


class TakerWatch:
    """Follows the job that took a stored request, after the job that was followed has ended.

    A service may start a job twice, and name only the second one, which finds the request taken.
    The first one is then known only by its name and its signs of life in the store.

    :param options: returns the storage options of the store.
    :param tell: writes a line into a log.
    """

    def __init__(
        self,
        address: str,
        options: Callable[[], Mapping[str, str] | None],
        tell: Callable[..., object],
    ) -> None:
        self.driver_end: DriverEnd | None = None
        self._address = address
        self._options = options
        self._tell = tell
        self._sign: str | None = None
        self._seen_at = 0.0

    def ended(self) -> DriverEnd | None:
        """The end of the job that judges the request: the job that was followed, unless another one
        took the request. None while that one gives signs of life.

        :raises DriverUnknownError: the store does not answer.
        """
        from dqx_airflow.results.stored_requests import request_state

        assert self.driver_end is not None
        try:
            state = request_state(self._address, self._options())
        except (StoreError, AirflowException) as error:
            raise DriverUnknownError(str(error)) from None
        if state.taker is None:
            return self.driver_end
        how = self.driver_end.how
        if state.code is not None:
            if state.reason and state.reason not in how:
                how = f"{how}; {state.taker.name} ended: {state.reason}"
            return DriverEnd(how, state.code)
        now = time.monotonic()
        if self._sign is None:
            self._tell("%s; waiting for the job that took its request: %s", how, state.taker)
        if state.sign != self._sign:
            self._sign = state.sign
            self._seen_at = now
        silent_s = now - self._seen_at
        if silent_s < _MOST_MISSED_SIGNS * state.every_s:
            return None
        return DriverEnd(
            f"{how}; its request was taken by {state.taker}, which has given no sign of life for "
            f"{silent_s:.0f} seconds",
            self.driver_end.code,
        )


_FIRST_WAIT_S = 1.0
_LEAST_POLL_S = 10
_MOST_SILENCES = 10


@dataclass(eq=False, repr=False, kw_only=True)
class GateTrigger(BaseTrigger):
    """Polls the cluster for the driver of a gate until that has ended, at growing intervals.

    If the cluster does not respond, the report is searched in the results store; after ten attempts
    without either, the driver is given up.

    :param kind: that of the driver, a key of `DRIVERS`.
    :param driver_id: the driver.
    :param conn_id: the Spark connection with which it was submitted.
    :param request: as JSON, to find the report; returned with the event.
    :param results_conn_id: the connection to the results store, if it has one.
    :param deadline: the time, in seconds of the epoch, at which the driver is cancelled.
    :param longest_wait_s: the maximum interval.
    :param job: the description of a job on a service, whose handle is `driver_id`.
    """

    kind: str
    driver_id: str
    conn_id: str
    request: str
    results_conn_id: str | None
    deadline: float | None
    longest_wait_s: float
    job: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        super().__init__()
        self._driver: Driver
        self._taker: TakerWatch | None = None
        if self.job is not None:
            self._driver = job = submitters.described_job(self.job, self.driver_id)
            self._taker = TakerWatch(job.request, self._storage_options, self.log.info)
        else:
            self._driver = DRIVERS[self.kind](self.driver_id, self.conn_id)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """The class and its arguments: Airflow creates the trigger again in another process."""
        arguments = {own.name: getattr(self, own.name) for own in fields(self)}
        return f"{__name__}.{type(self).__name__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yields one event: the driver ended, or was cancelled at the deadline.

        The driver is polled at growing intervals, up to `longest_wait_s` seconds.
        """
        wait_s, silences = min(_FIRST_WAIT_S, self.longest_wait_s), 0
        while True:
            end = None
            try:
                end = await asyncio.to_thread(self._ended)
                silences = 0
            except DriverUnknownError as unknown:
                silences += 1
                self.log.warning("%s; looking for the report of the gate", unknown)
                if await asyncio.to_thread(self._has_report):
                    end = DriverEnd("the report was complete before the driver reported its end")
                elif silences >= _MOST_SILENCES:
                    end = DriverEnd(f"its driver {self.driver_id} cannot be tracked: {unknown}")
            if end is not None:
                yield await asyncio.to_thread(self._event, end)
                return
            if self.deadline is not None and time.time() > self.deadline:
                await self.on_kill()
                how = "the task took longer than its execution_timeout"
                yield await asyncio.to_thread(self._event, DriverEnd(how), is_late=True)
                return
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, self.longest_wait_s)

    async def on_kill(self) -> None:
        """Cancels the driver. Airflow calls this since 3.3, if a user ends the task."""
        for end in (self._driver.cancel, self._discard):
            try:
                await asyncio.to_thread(end)
            except Exception as error:
                self.log.error("cannot cancel %s: %s", self.driver_id, error)

    def _ended(self) -> DriverEnd | None:
        """The end of the driver, or of another job that has taken its request; None while either
        runs.

        :raises DriverUnknownError: the state is currently unknown.
        """
        if self._taker is None:
            return self._driver.ended()
        if self._taker.driver_end is None:
            self._taker.driver_end = self._driver.ended()
        if self._taker.driver_end is None:
            return None
        return self._driver_end_or(self._taker)

    def _driver_end_or(self, taker: TakerWatch) -> DriverEnd | None:
        if taker.driver_end is not None and taker.driver_end.code == 0 and self._has_report():
            return taker.driver_end
        return taker.ended()

    def _discard(self) -> None:
        """Deletes the stored request, so that an unknown job that has taken it ends as well."""
        if isinstance(self._driver, submitters.SubmittedJob):
            from dqx_airflow.results.stored_requests import discard_request

            discard_request(self._driver.request, self._storage_options())

    def _storage_options(self) -> Mapping[str, str] | None:
        root = from_json(GateRequest, self.request).results_root
        location = results_location_of(root, self.results_conn_id)
        return location.storage_options if location else None

    def _event(self, end: DriverEnd, *, is_late: bool = False) -> TriggerEvent:
        payload = {"request": self.request, "how": end.how, "code": end.code, "is_late": is_late}
        if isinstance(self._driver, submitters.SubmittedJob):
            payload |= {"logs": self._driver.logs(), "stored": self._driver.request}
        return TriggerEvent(payload)

    def _has_report(self) -> bool:
        from dqx_airflow.results.query import StoredResults, read_reports

        request = from_json(GateRequest, self.request)
        keys, attempt = request.run_keys, request.attempt.id
        try:
            results = StoredResults(request.results_root, self._storage_options())
            reports = read_reports(results, keys, attempt, request.answered)
        except (StoreError, AirflowException) as error:
            self.log.warning("%s", error)
            return False
        return reports is not None


def trigger_of(
    driver: Driver,
    request: GateRequest,
    *,
    results_conn_id: str | None,
    deadline: float | None,
    poll_interval_s: float,
) -> GateTrigger:
    """The trigger that waits for the driver of a gate.

    :param deadline: the time, in seconds of the epoch, at which the driver is cancelled.
    """
    # The triggerer's arguments go into Airflow's database: no sources, which may be long.
    bare = replace(request.suite, text="")
    more = tuple(GatePart(key) for key in request.run_keys[1:])
    slim = replace(request, suite=bare, imports=(), contract=None, shadow=None, more=more)
    return GateTrigger(
        kind=driver.kind,
        driver_id=driver.id,
        conn_id=driver.conn_id,
        request=to_json(slim),
        results_conn_id=results_conn_id,
        deadline=deadline,
        longest_wait_s=max(poll_interval_s, _LEAST_POLL_S),
        job=driver.described() if isinstance(driver, submitters.SubmittedJob) else None,
    )


def wait_here(trigger: GateTrigger) -> dict[str, Any]:
    """Runs a trigger in this process and returns its event."""

    async def first() -> dict[str, Any]:
        event = await anext(trigger.run())
        return dict(event.payload)

    return asyncio.run(first())
