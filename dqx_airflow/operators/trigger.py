"""Waits for the job of a gate, also while the task is deferred."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from airflow.providers.common.compat.sdk import AirflowException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from dqx_airflow.errors import StoreError
from dqx_airflow.operators.drivers import DRIVERS, Driver
from dqx_airflow.operators.results_location import results_location_of
from dqx_airflow.operators.submitters import (
    DriverEnd,
    DriverUnknownError,
    SubmittedJob,
    described_job,
)
from dqx_airflow.values import GatePart, GateRequest, from_json, to_json

_MOST_MISSED_SIGNS = 6


class TakerWatch:
    """Follows the job that took a stored request, after the job that was followed has ended.

    A service may start a job twice, and name only the second one, which finds the request taken.
    The first one is then known only by its name and its signs of life in the store.

    :param options: returns the storage options of the store.
    :param log: writes a line into a log.
    """

    def __init__(
        self,
        address: str,
        options: Callable[[], Mapping[str, str] | None],
        log: Callable[..., object],
    ) -> None:
        self.driver_end: DriverEnd | None = None
        self._address = address
        self._options = options
        self._log = log
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
            self._log("%s; waiting for the job that took its request: %s", how, state.taker)
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

    :param kind: the kind of the driver, a key of `DRIVERS`.
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
            self._driver = job = described_job(self.job, self.driver_id)
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
        wait_s = min(_FIRST_WAIT_S, self.longest_wait_s)
        silences = 0
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
        if isinstance(self._driver, SubmittedJob):
            from dqx_airflow.results.stored_requests import discard_request

            discard_request(self._driver.request, self._storage_options())

    def _storage_options(self) -> Mapping[str, str] | None:
        root = from_json(GateRequest, self.request).results_root
        location = results_location_of(root, self.results_conn_id)
        return location.storage_options if location else None

    def _event(self, end: DriverEnd, *, is_late: bool = False) -> TriggerEvent:
        payload = {"request": self.request, "how": end.how, "code": end.code, "is_late": is_late}
        if isinstance(self._driver, SubmittedJob):
            payload |= {"logs": self._driver.logs(), "stored": self._driver.request}
        return TriggerEvent(payload)

    def _has_report(self) -> bool:
        from dqx_airflow.results.query import StoredResults
        from dqx_airflow.results.runs import read_reports

        request = from_json(GateRequest, self.request)
        keys = request.run_keys
        attempt = request.attempt.id
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
        job=driver.described() if isinstance(driver, SubmittedJob) else None,
    )


def wait_here(trigger: GateTrigger) -> dict[str, Any]:
    """Runs a trigger in this process and returns its event."""

    async def first() -> dict[str, Any]:
        event = await anext(trigger.run())
        return dict(event.payload)

    return asyncio.run(first())
