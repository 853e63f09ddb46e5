"""The trigger of a deferred gate: waits in the triggerer for the end of its driver."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from airflow.providers.common.compat.sdk import AirflowException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from dqx_airflow.operators.drivers import DRIVERS, Driver, DriverEnd, DriverUnknownError
from dqx_airflow.operators.results_location import results_location_of
from dqx_airflow.values import GatePart, GateRequest, to_json

_ARGUMENTS = (
    *("kind", "driver_id", "conn_id", "request", "results_conn_id", "deadline"),
    "longest_wait_s",
)
_FIRST_WAIT_S = 1.0
_LEAST_POLL_S = 10
_MOST_SILENCES = 10


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
    """

    def __init__(
        self,
        *,
        kind: str,
        driver_id: str,
        conn_id: str,
        request: str,
        results_conn_id: str | None,
        deadline: float | None,
        longest_wait_s: float,
    ) -> None:
        super().__init__()
        self.kind = kind
        self.driver_id = driver_id
        self.conn_id = conn_id
        self.request = request
        self.results_conn_id = results_conn_id
        self.deadline = deadline
        self.longest_wait_s = longest_wait_s
        self._driver = DRIVERS[kind](driver_id, conn_id)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """The class and its arguments: Airflow creates the trigger again in another process."""
        arguments = {name: getattr(self, name) for name in _ARGUMENTS}
        return f"{__name__}.{type(self).__name__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event: the driver ended, or its time is over.

        The driver is polled at growing intervals, up to `longest_wait_s` seconds.
        """
        wait_s, silences = min(_FIRST_WAIT_S, self.longest_wait_s), 0
        while True:
            end = None
            try:
                end = await asyncio.to_thread(self._driver.ended)
                silences = 0
            except DriverUnknownError as unknown:
                silences += 1
                self.log.warning("%s; looking for the report of the gate", unknown)
                if await asyncio.to_thread(self._has_report):
                    end = DriverEnd("the report was complete before the driver reported its end")
                elif silences >= _MOST_SILENCES:
                    end = DriverEnd(f"its driver {self.driver_id} cannot be tracked: {unknown}")
            if end is not None:
                yield self._event(end)
                return
            if self.deadline is not None and time.time() > self.deadline:
                await self.on_kill()
                how = "the task took longer than its execution_timeout"
                yield self._event(DriverEnd(how), is_late=True)
                return
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, self.longest_wait_s)

    async def on_kill(self) -> None:
        """Cancels the driver. Airflow calls this since 3.3, if a user ends the task."""
        try:
            await asyncio.to_thread(self._driver.cancel)
        except Exception as error:
            self.log.warning("cannot cancel %s: %s", self.driver_id, error)

    def _event(self, end: DriverEnd, *, is_late: bool = False) -> TriggerEvent:
        return TriggerEvent(
            {"request": self.request, "how": end.how, "code": end.code, "is_late": is_late}
        )

    def _has_report(self) -> bool:
        from dqx_airflow.errors import StoreError
        from dqx_airflow.results.reader import read_reports
        from dqx_airflow.values import GateRequest, from_json

        request = from_json(GateRequest, self.request)
        keys, attempt = request.run_keys, request.attempt.id
        try:
            location = results_location_of(request.results_root, self.results_conn_id)
            options = location.storage_options if location else None
            reports = read_reports(request.results_root, keys, attempt, storage_options=options)
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
    )
