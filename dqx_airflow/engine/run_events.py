"""The lineage events of a run: one when it begins, one when it ends."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from dqx_airflow.lineage import is_configured
from dqx_airflow.lineage import spool as spools
from dqx_airflow.plan.masks import without_values
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.values import GateReport, GateRequest

if TYPE_CHECKING:
    from dqx_airflow.lineage.emitter import LineageEmitter


@contextmanager
def run_events(
    requests: Mapping[str, GateRequest], started: datetime, store: ResultsStore
) -> Iterator[Callable[[GateReport], None]]:
    """Sends one event when each run begins and one when it ends, whatever its end.

        with run_events({run_id: request}, started, store) as end:
            report = ...
            end(report)

    An exception raised in the block ends the runs that have not ended: they failed.

    :param requests: the request of each run id.
    """
    emitter = _emitter(_spool(store))
    if emitter is None:
        yield lambda _: None
        return
    from dqx_airflow.lineage.events import crash_event, start_event, terminal_event

    running = dict(requests)

    def end(report: GateReport) -> None:
        request = running.pop(report.run_id)
        is_sent = emitter.emit(terminal_event(request, report, emitter.namespace_of(request)))
        if is_sent and not running:
            # The server responds: it also gets the events that earlier runs could not send, as time
            # allows.
            emitter.resend()

    with emitter:
        for run_id, request in requests.items():
            emitter.emit(start_event(request, run_id, started, emitter.namespace_of(request)))
        try:
            yield end
        except BaseException as error:
            message = message_of(error, requests.values())
            now = datetime.now(timezone.utc)
            for run_id, request in running.items():
                emitter.emit(
                    crash_event(request, run_id, now, message, emitter.namespace_of(request))
                )
            raise


def message_of(error: BaseException, requests: Iterable[GateRequest]) -> str:
    """The message of an error that ends a run; if columns are masked, without data that Spark
    quotes."""
    masked = [column for request in requests for ref in request.datasets for column in ref.masked]
    return without_values(f"{type(error).__name__}: {error}", masked)


def _emitter(spool: Path | None) -> LineageEmitter | None:
    # Also reports waiting events that cannot be sent any more.
    has_waiting = spool is not None and spools.has_some(spool)
    if not is_configured(os.environ) and not has_waiting:
        return None
    from dqx_airflow.lineage.emitter import LineageEmitter

    return LineageEmitter(spool)


def _spool(store: ResultsStore) -> Path | None:
    """The folder for unsent events: from the environment, or beside the results if they are files.

    None if there is no folder: complete events are then written to the log of the job.
    """
    if spool := os.environ.get(spools.VARIABLE):
        return Path(spool).expanduser()
    location = store.location
    return spools.beside(location.root) if location.is_local else None
