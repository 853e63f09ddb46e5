"""The lineage events of a run. Nothing of OpenLineage is loaded where nobody wants them."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from dqx_airflow.lineage import spool as spools
from dqx_airflow.lineage.configured import is_configured
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.values import GateReport, GateRequest

if TYPE_CHECKING:
    from dqx_airflow.lineage.emitter import LineageEmitter


class RunEvents:
    """Sends one event when a run begins and one when it ends, however it does. Never raises.

        with RunEvents(request, run_id, started, store) as events:
            report = ...
            events.end(report)

    What is raised within is the end of a run that crashed.
    """

    def __init__(
        self, request: GateRequest, run_id: str, started: datetime, store: ResultsStore
    ) -> None:
        self.request = request
        self.run_id = run_id
        self.started = started
        self._emitter = _emitter(_spool(store))

    def end(self, report: GateReport) -> None:
        if self._emitter is not None:
            from dqx_airflow.lineage.events import terminal_event

            self._emitter.emit(terminal_event(self.request, report, self._emitter.namespace))

    def __enter__(self) -> RunEvents:
        emitter = self._emitter
        if emitter is not None:
            from dqx_airflow.lineage.events import start_event

            event = start_event(self.request, self.run_id, self.started, emitter.namespace)
            if emitter.emit(event):
                # The server is there again: it also gets what earlier runs could not send.
                emitter.resend()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        emitter = self._emitter
        if emitter is None:
            return
        if error is not None:
            from dqx_airflow.lineage.events import crash_event

            message, now = f"{type(error).__name__}: {error}", datetime.now(timezone.utc)
            emitter.emit(crash_event(self.request, self.run_id, now, message, emitter.namespace))
        emitter.close()


def _emitter(spool: Path | None) -> LineageEmitter | None:
    # It also says that events wait which cannot be sent any more.
    has_waiting = spool is not None and spools.has_some(spool)
    if not is_configured(os.environ) and not has_waiting:
        return None
    from dqx_airflow.lineage.emitter import LineageEmitter

    return LineageEmitter(spool)


def _spool(store: ResultsStore) -> Path | None:
    """Where events wait that could not be sent: beside the results, where these are files.

    Elsewhere they go whole into the log of the job.
    """
    location = store.location
    return Path(location.root) / "lineage_spool" if location.is_local else None
