"""Sends lineage events. An outage of lineage never fails or stalls a gate, and loses no event."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import DatasetEvent, RunEvent
from openlineage.client.serde import Serde
from openlineage.client.transport import Transport

from dqx_airflow.lineage import spool as spools
from dqx_airflow.lineage import transport
from dqx_airflow.lineage.events import DEFAULT_NAMESPACE
from dqx_airflow.lineage.transport import ExhaustedError, LineageCheck, SkippedError, TimeBudget
from dqx_airflow.values.redact import RedactingFilter, redact, secrets_of

if TYPE_CHECKING:
    from dqx_airflow.values import GateRequest

log = logging.getLogger(__name__)

_CHECK_S = 5.0
_CLOSE_S = 0.1

# They log configuration, addresses and errors unredacted.
_TRANSPORTS = ("async_http", "composite", "datadog", "file", "http", "kafka", "transform.transform")
_TALKATIVE = (
    *(f"openlineage.client.{name}" for name in ("client", "utils", "git")),
    *(f"openlineage.client.transport.{name}" for name in _TRANSPORTS),
    "urllib3.connectionpool",
    "urllib3.util.retry",
)


class Resent(NamedTuple):
    """The numbers of spooled events that were sent, and that are still in the spool."""

    sent: int
    kept: int


class LineageEmitter:
    """Sends events through the transport in the configuration of OpenLineage.

    The configuration is read once, here: `OPENLINEAGE_*` variables or an `openlineage.yml`. Without
    any, no event is sent. Unsent events are written into the folder `spool`. No method raises, for
    any configuration or network state, and all of them together wait no longer than `time_budget`
    allows: two seconds by default.

        with LineageEmitter(Path("spool")) as emitter:
            emitter.emit(start_event(request, run_id, now, emitter.namespace))
    """

    def __init__(self, spool: Path | None = None, *, time_budget: TimeBudget | None = None) -> None:
        self.spool = spool
        self.time_budget = time_budget or TimeBudget(transport.TIME_BUDGET_S)
        self.namespace = os.environ.get("OPENLINEAGE_NAMESPACE") or DEFAULT_NAMESPACE
        self._client: OpenLineageClient | None = None
        self._transport: Transport | None = None
        self._parts: tuple[transport.Watched, ...] = ()
        self._is_configured = False
        self._is_disabled = os.environ.get("OPENLINEAGE_DISABLED", "").lower().strip() == "true"
        self._problem = ""
        self._filter = RedactingFilter(_secrets_of_environment())
        for name in _TALKATIVE:
            logging.getLogger(name).addFilter(self._filter)
        try:
            self._build()
        except Exception as error:
            self._problem = self._redacted_line(error)
            log.warning("OpenLineage configuration cannot be used: %s", self._problem)

    def emit(self, event: RunEvent | DatasetEvent) -> bool:
        """True if the event was sent to all of its receivers. Never raises.

        After a failure the later events are not tried but spooled at once.
        """
        try:
            return self._emit(event)
        except Exception as error:  # not even anything unforeseen
            self._keep(_json(event), self._redacted_line(error))
            return False

    def namespace_of(self, request: GateRequest) -> str:
        """The namespace of the jobs of a request: of the environment, else of its Airflow task."""
        is_set = bool(os.environ.get("OPENLINEAGE_NAMESPACE"))
        parent = request.parent
        return parent.namespace if parent is not None and not is_set else self.namespace

    @property
    def sends(self) -> bool:
        """False if no transport is configured, or a transport that drops events."""
        return (
            self._transport is not None and self._is_configured and self._transport.kind != "noop"
        )

    @property
    def why_not(self) -> str:
        """The reason why no event is sent; meaningful only if `sends` is False."""
        if self._is_disabled:
            return "OPENLINEAGE_DISABLED is true"
        return self._problem or "no OpenLineage transport is configured"

    def resend(self, spool: Path | None = None) -> Resent:
        """Sends the events of a spool folder (default: our own) in order. Never raises.

        A sent event is removed. After an event that was not sent, the later events are kept
        untried, unless the server refused the event itself: then only the later events of its run
        are kept, since a run's end must not come before its start. If the process dies between
        sending and removing, an event is sent twice, never lost. If one of several transports
        missed an event, all get it again: receivers identify an event by its run and time.
        """
        folder = spool or self.spool
        try:
            waiting = spools.kept(folder) if folder is not None else []
        except OSError as error:
            log.warning("The spool %s cannot be read: %s", folder, self._redacted_line(error))
            return Resent(0, 0)
        if not waiting:
            return Resent(0, 0)
        if self._transport is None or not self.sends:
            log.warning("%d lineage events remain in %s: %s", len(waiting), folder, self.why_not)
            return Resent(0, len(waiting))
        sent = self._resend_all(waiting)
        return Resent(sent, len(waiting) - sent)

    def check(self) -> LineageCheck:
        """Checks which transport is configured, and whether it can be reached. Takes some seconds
        at most, sends nothing, never raises."""
        if self._transport is None:
            return LineageCheck(False, f"the configuration cannot be used: {self._problem}")
        try:
            checked = self._transport
            lineage_check = TimeBudget(_CHECK_S).wait_for(
                lambda: transport.check_transport(checked)
            )
        except Exception as error:
            return LineageCheck(False, f"{self._transport.kind}: {self._redacted_line(error)}")
        if not self._is_configured and not self._is_disabled:
            return LineageCheck(True, "no OpenLineage transport is configured: no events are sent")
        return LineageCheck(lineage_check.ok, self._redacted(lineage_check.line))

    def close(self) -> None:
        """Closes connections. Never raises."""
        try:
            if self._transport is not None:
                closed = self._transport
                limit_s = max(self.time_budget.left_s, _CLOSE_S)
                TimeBudget(limit_s).wait_for(lambda: closed.close(limit_s))
        except Exception as error:
            log.warning("OpenLineage transport did not close: %s", self._redacted_line(error))
        for name in _TALKATIVE:
            logging.getLogger(name).removeFilter(self._filter)

    def __enter__(self) -> LineageEmitter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _build(self) -> None:
        client = transport.quiet_client()
        if self._is_disabled:
            self._client = client
            self._transport = client.transport
            return
        config = transport.settings(client)
        if config is None and self._filter.errors:
            raise ValueError("the configuration file is empty or cannot be read")
        self._is_configured = config is not None
        # Without this, the client would write whole events into the log of every job without a
        # transport.
        config = config or {"type": "noop"}
        self._filter.secrets |= secrets_of(config)
        self._transport, self._parts = transport.watched(config, self.time_budget)
        client.transport = self._transport
        self._client = client

    def _emit(self, event: RunEvent | DatasetEvent) -> bool:
        if self._client is None:
            self._keep(_json(event), self._problem)
            return False
        client = self._client
        missed = self._missed_by(lambda: client.emit(event))
        if missed is not None:
            text, cause = missed
            self._keep(text or _json(event), self._redacted_line(cause))
        return missed is None

    def _missed_by(self, send: Callable[[], object]) -> tuple[str, Exception] | None:
        """An event that did not reach all receivers, as JSON if possible, and the reason."""
        for part in self._parts:
            part.missed = None
        failure: Exception | None = None
        try:
            send()
        except Exception as error:
            failure = error
        # A composite only says that a part failed, or nothing as long as another one works.
        missed = next((part.missed for part in self._parts if part.missed is not None), None)
        if failure is None:
            return missed if transport.needs_all(self._require_transport()) else None
        return missed or ("", failure)

    def _keep(self, event: str, reason: str) -> None:
        """Writes an event into the spool and reports it; without a spool, the log is the last
        resort."""
        if self.spool is not None:
            try:
                path = spools.keep(self.spool, event, _label(event))
            except Exception as error:
                reason += f"; the spool failed too: {self._redacted_line(error)}"
            else:
                log.warning("Lineage event not sent, kept in %s: %s", path, reason)
                return
        # Redaction would corrupt the event: it contains no secrets, and has to stay whole.
        log.warning("Lineage event not sent: %s. The event: %s", reason, event)

    def _resend_all(self, waiting: Iterable[Path]) -> int:
        """Sends events of the spool until the time is over or no server responds; returns their
        number."""
        self._try_all_parts_again()
        sent = 0
        refused_runs: set[str] = set()
        deadline = time.monotonic() + self.time_budget.left_s
        for path in waiting:
            # Reading them takes time as well, if there are many.
            if self.time_budget.is_over or time.monotonic() > deadline:
                break
            event = self._read_waiting(path)
            if event is None or event.run.runId in refused_runs:
                continue
            # Bypasses the client: the event already has its tags, and passed its filters.
            missed = self._missed_by(partial(self._require_transport().emit, event))
            if missed is None:
                self._remove_sent(path)
                sent += 1
                continue
            failure = missed[1]
            if not isinstance(failure, SkippedError | ExhaustedError):
                log.warning("%s not sent: %s", path, self._redacted_line(failure))
            if not _is_refusal(failure):
                break
            refused_runs.add(event.run.runId)
            self._try_all_parts_again()
        return sent

    def _try_all_parts_again(self) -> None:
        for part in self._parts:
            part.down = None

    def _read_waiting(self, path: Path) -> RunEvent | None:
        """The event in a file of the spool; None if it is not one, which is logged."""
        try:
            return transport.rebuilt(spools.event_in(path))
        except Exception as error:
            log.warning("%s is not a lineage event: %s", path, self._redacted_line(error))
            return None

    def _remove_sent(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            log.warning("%s was sent but not removed: %s", path, self._redacted_line(error))

    def _require_transport(self) -> Transport:
        assert self._transport is not None
        return self._transport

    def _redacted_line(self, error: BaseException) -> str:
        return self._redacted(transport.one_line(error))

    def _redacted(self, text: str) -> str:
        return redact(text, self._filter.secrets)


def _secrets_of_environment() -> frozenset[str]:
    """The secrets in `OPENLINEAGE_*` variables. They are redacted even before the configuration is
    parsed: if parsing fails, the client logs the text that it has read."""
    variables = {key: value for key, value in os.environ.items() if key.startswith("OPENLINEAGE_")}
    parsed: list[Any] = []
    for value in variables.values():
        try:
            parsed.append(json.loads(value))
        except ValueError:
            continue
    return secrets_of([variables, parsed])


def _is_refusal(error: BaseException) -> bool:
    """True if a server responded and refused this event: a status from 400 to 499."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    return isinstance(status, int) and 400 <= status < 500


def _json(event: Any) -> str:
    try:
        return Serde.to_json(event)
    except Exception:  # no event at all
        return json.dumps({"not_an_event": repr(event)})


def _label(event: str) -> str:
    try:
        content = json.loads(event)
        return f"{content['run']['runId']}-{content['eventType']}"
    except (ValueError, KeyError, TypeError):
        return "event"
