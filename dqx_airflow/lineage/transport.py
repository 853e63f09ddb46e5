"""OpenLineage transports with the limits of a gate: two seconds in total, and reported failures.

OpenLineage's own configuration selects the transport. This module adds limits that the user did not
set, a wrapper that records what was not sent, and the check of `dql doctor`. Calls run in a thread
that ends with the process: no socket timeout limits the lookup of a host name, a response that
arrives byte by byte, or an absent broker. Of a response only the status is read: a body may be
endless, or a gigabyte of zeros in a megabyte of gzip. Imports requests and the OpenLineage client.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit, urlunsplit

import requests
import urllib3
from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import parent_run
from openlineage.client.serde import Serde
from openlineage.client.transport import Transport, get_default_factory
from openlineage.client.transport.composite import CompositeTransport
from openlineage.client.transport.file import FileTransport
from openlineage.client.transport.http import HttpTransport
from openlineage.client.transport.noop import NoopConfig, NoopTransport
from openlineage.client.transport.transform import TransformTransport
from requests.adapters import HTTPAdapter

from dqx_airflow.values.redact import redact

T = TypeVar("T")

_LEAST_S = 0.01


class UnfinishedError(Exception):
    """No response in time."""


class ExhaustedError(Exception):
    """Not tried: the time for lineage is over."""


@dataclass(slots=True)
class TimeBudget:
    """A time limit for calls: `total_s` seconds for all together, `each_s` for each one."""

    total_s: float
    each_s: float = float("inf")
    spent_s: float = 0.0

    @property
    def left_s(self) -> float:
        return max(self.total_s - self.spent_s, 0.0)

    @property
    def is_over(self) -> bool:
        return self.left_s < _LEAST_S

    def wait_for(self, call: Callable[[], T], *, share: float = 1.0) -> T:
        """Calls `call` within the time left; returns its result, or raises its exception.

        :param share: the maximum share of the remaining time.
        :raises ExhaustedError: there is no time left.
        :raises UnfinishedError: the call takes longer. It continues in its thread: its event may
            arrive after all, and once more from the spool.
        """
        if self.is_over:
            raise ExhaustedError(f"not tried: the {self.total_s:g} s for lineage are used up")
        limit_s = min(self.left_s * share, self.each_s)
        outcome: list[T] = []
        failure: list[Exception] = []

        def run() -> None:
            try:
                outcome.append(call())
            except Exception as error:
                failure.append(error)

        thread = threading.Thread(target=run, name="dqx-lineage", daemon=True)
        began = time.monotonic()
        thread.start()
        thread.join(limit_s)
        self.spent_s += time.monotonic() - began
        if failure:
            raise failure[0]
        if not outcome:
            raise UnfinishedError(f"no response within {limit_s:.2g} s")
        return outcome[0]


_MOST_REDIRECTS = 3
_LOSE_THE_EVENT = (301, 302, 303)
"""Redirects after which a POST is followed by a GET, without the event."""


class StatusOnly(HTTPAdapter):
    """Reads the status and the headers of a response, and closes the connection."""

    def send(self, request: Any, **settings: Any) -> Any:  # type: ignore[override]
        answer = super().send(request, **{**settings, "stream": True})
        answer._content = b""
        answer._content_consumed = True
        answer.raw.close()
        if answer.status_code in _LOSE_THE_EVENT:
            place = answer.headers.get("location", "nowhere")
            raise requests.HTTPError(
                f"{answer.status_code} redirects to {place}, and the event would be lost: "
                f"configure the target address",
                response=answer,
            )
        return answer


def bounded(transport: Transport) -> Transport:
    """An HTTP transport, changed to read no response bodies; any other transport unchanged."""
    # A transform transport contains another transport, the Datadog transport an HTTP transport.
    inner = (getattr(transport, name, None) for name in ("transport", "http"))
    for part in (transport, *inner):
        if isinstance(part, HttpTransport) and part.config.adapter is None:
            session = part.session
            retries = urllib3.util.Retry(**part.config.retry)
            # A redirect may lead to another host.
            for prefix in ("http://", "https://", part.url):
                session.mount(prefix, StatusOnly(max_retries=retries))
            session.max_redirects = _MOST_REDIRECTS
    return transport


TIME_BUDGET_S = 2.0
"""The total time that a gate waits for all its events, for any configuration, in seconds."""

# One event more than the client's other attempts would take all of that time.
_TIMEOUT_S = 2.0
_RETRY = {"total": 1, "connect": 1, "read": 0, "status": 0, "backoff_factor": 0.1}
# A server that answers "come back in an hour" would be obeyed, and before another attempt all of a
# response is read, which may be endless.
_NO_NAPS = {"respect_retry_after_header": False, "status_forcelist": []}


class SkippedError(Exception):
    """Not tried: this transport already failed in this run."""


class Watched(Transport):
    """A transport that gives up in time, stays down after a failure, and records why.

    The `later` transports of a composite get their share of the time. `missed` is the last event if
    it was not sent, as JSON, with the reason; None if it was.
    """

    def __init__(self, inner: Transport, time_budget: TimeBudget) -> None:
        self.inner = bounded(inner)
        self.time_budget = time_budget
        self.later: tuple[Watched, ...] = ()
        self.kind = inner.kind
        self.name = inner.name
        self.priority = inner.priority
        self.down: Exception | None = None
        self.missed: tuple[str, Exception] | None = None

    def emit(self, event: Any) -> Any:
        self.missed = None
        try:
            if self.down is not None:
                raise SkippedError(f"not tried after {type(self.down).__name__}") from self.down
            waiting = sum(part.down is None for part in self.later)
            return self.time_budget.wait_for(
                lambda: self.inner.emit(event), share=1 / (1 + waiting)
            )
        except Exception as error:
            self.down = self.down or error
            self.missed = Serde.to_json(event), error
            raise

    def close(self, timeout: float = -1) -> bool:
        return self.inner.close(timeout)


def settings(client: OpenLineageClient) -> dict[str, Any] | None:
    """The transport in OpenLineage's configuration; None if there is none.

    :raises Exception: the configuration does not have the right structure; any exception.
    """
    configured = client.config.transport
    if configured and not isinstance(configured, dict):
        raise TypeError("the transport must be a mapping")
    if configured and configured.get("type"):
        return dict(configured)
    # What OpenLineageClient does itself if only a URL is given.
    if url := os.environ.get("OPENLINEAGE_URL"):
        http_settings: dict[str, Any] = {"type": "http", "url": url}
        if endpoint := os.environ.get("OPENLINEAGE_ENDPOINT"):
            http_settings["endpoint"] = endpoint
        if api_key := os.environ.get("OPENLINEAGE_API_KEY"):
            http_settings["auth"] = {"type": "api_key", "apiKey": api_key}
        return http_settings
    return None


def limited(config: Any) -> Any:
    """`config` with our limits where it has no narrower ones, also inside composite and transform
    transports. A value that is not a mapping is returned unchanged."""
    if not isinstance(config, dict):
        return config
    kind = config.get("type")
    if kind in ("http", "async_http", "datadog"):
        return _limited_http(config)
    if kind == "composite":
        return _limited_composite(config)
    if kind == "transform" and "transport" in config:
        return {**config, "transport": limited(config["transport"])}
    return dict(config)


def _limited_http(config: dict[str, Any]) -> dict[str, Any]:
    timeout = config.get("timeout")
    is_shorter = isinstance(timeout, int | float) and timeout < _TIMEOUT_S
    retry = config["retry"] if isinstance(config.get("retry"), dict) else _RETRY
    return {
        **config,
        # The asynchronous transport never reports a lost event. Two events for each run need no
        # asynchrony.
        "type": "http" if config["type"] == "async_http" else config["type"],
        "timeout": timeout if is_shorter else _TIMEOUT_S,
        "retry": {**retry, **_NO_NAPS},
    }


def _limited_composite(config: dict[str, Any]) -> dict[str, Any]:
    children = config.get("transports")
    if isinstance(children, dict):
        return {**config, "transports": {name: limited(child) for name, child in children.items()}}
    if isinstance(children, list):
        return {**config, "transports": [limited(child) for child in children]}
    return dict(config)


def watched(
    config: dict[str, Any], time_budget: TimeBudget
) -> tuple[Transport, tuple[Watched, ...]]:
    """The transport of `config`, and the transports inside it that can fail separately.

    :param time_budget: for all of them together.
    :raises Exception: it cannot be built; any exception, since transports are plugins.
    """
    transport = get_default_factory().create(limited(config))
    if not isinstance(transport, CompositeTransport):
        only = Watched(transport, time_budget)
        return only, (only,)
    # A composite hides the failure of a part as long as another part succeeds.
    parts = [Watched(child, time_budget) for child in transport.transports]
    for number, part in enumerate(parts, start=1):
        part.later = tuple(parts[number:])
    transport.transports[:] = parts
    return transport, tuple(parts)


def needs_all(transport: Transport) -> bool:
    """True if every transport inside a transport must get every event, unlike a fallback list."""
    return not isinstance(transport, CompositeTransport) or transport.config.continue_on_success


def quiet_client() -> OpenLineageClient:
    """A client with OpenLineage's configuration but without a transport yet."""
    return OpenLineageClient(transport=NoopTransport(NoopConfig()))


def rebuilt(event: dict[str, Any]) -> RunEvent:
    """A run event from its JSON form, for transports that inspect it (Kafka).

    :raises Exception: it is not the JSON form of a run event; KeyError, TypeError or ValueError.
    """
    run_facets = dict(event["run"].get("facets") or {})
    if isinstance(parent := run_facets.get("parent"), dict):
        root = parent.get("root")
        run_facets["parent"] = parent_run.ParentRunFacet(
            run=parent_run.Run(**parent["run"]),
            job=parent_run.Job(**parent["job"]),
            root=parent_run.Root(
                run=parent_run.RootRun(**root["run"]), job=parent_run.RootJob(**root["job"])
            )
            if root
            else None,
            producer=parent["_producer"],
        )
    return RunEvent(
        eventType=RunState(event["eventType"]),
        eventTime=event["eventTime"],
        run=Run(event["run"]["runId"], facets=run_facets),
        job=Job(**event["job"]),
        inputs=[InputDataset(**dataset) for dataset in event.get("inputs") or []],
        outputs=[OutputDataset(**dataset) for dataset in event.get("outputs") or []],
        producer=event["producer"],
    )


_PROBE_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class LineageCheck:
    """The result of a check of the transport. `ok` is False if events would not be sent. `line`
    describes the transport or the problem on one line, without secrets."""

    ok: bool
    line: str


def check_transport(transport: Transport) -> LineageCheck:
    """Tries to reach a transport, for two seconds at most. Nothing is sent, nothing is written."""
    if isinstance(transport, Watched):
        transport = transport.inner
    if isinstance(transport, CompositeTransport):
        parts = [check_transport(part) for part in transport.transports]
        return LineageCheck(
            all(part.ok for part in parts), "composite: " + "; ".join(part.line for part in parts)
        )
    if isinstance(transport, HttpTransport):
        return _check_http(transport)
    if isinstance(transport, FileTransport):
        return _check_file(transport)
    if isinstance(transport, TransformTransport):
        inner = check_transport(transport.transport)
        return LineageCheck(inner.ok, f"transform: {inner.line}")
    if transport.kind == "noop":
        return LineageCheck(True, "noop: OpenLineage is switched off, no events are sent")
    if transport.kind == "console":
        return LineageCheck(True, "console: events go to the log of the job")
    return LineageCheck(True, f"{transport.kind or type(transport).__name__}: not tried")


def one_line(error: BaseException, limit: int = 300) -> str:
    """An exception as `Kind: message` in one short line, without credentials."""
    line = " ".join(redact(f"{type(error).__name__}: {error}").split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _check_http(transport: HttpTransport) -> LineageCheck:
    address = redact(urljoin(transport.url, transport.endpoint))
    options: dict[str, Any] = {"verify": transport.verify}
    if getattr(transport, "cert", None) is not None:  # since openlineage-python 1.54
        options["cert"] = transport.cert
    try:
        # Any response is enough, even 404. HEAD has no effects.
        answer = requests.head(
            _without_user(transport.url), timeout=_PROBE_TIMEOUT_S, allow_redirects=False, **options
        )
    except (requests.RequestException, ValueError, OSError) as error:
        return LineageCheck(False, f"http: {address} cannot be reached ({one_line(error)})")
    return LineageCheck(True, f"http: {address} can be reached (HTTP {answer.status_code})")


def _check_file(transport: FileTransport) -> LineageCheck:
    config = transport.config
    where = redact(config.log_file_path)
    if config._needs_fsspec():
        return LineageCheck(True, f"file: {where}, not tried")
    path = Path(urlsplit(config.log_file_path).path if "://" in where else config.log_file_path)
    if config.append and path.exists():
        can_write = path.is_file() and os.access(path, os.W_OK)
        return LineageCheck(
            can_write, f"file: {where} {'can' if can_write else 'cannot'} be written"
        )
    folder = path.parent
    if not folder.is_dir():
        problem = f"{where} cannot be written: folder {folder} does not exist"
        return LineageCheck(False, f"file: {problem}")
    if not os.access(folder, os.W_OK | os.X_OK):
        return LineageCheck(False, f"file: {where}, the folder {folder} cannot be written")
    return LineageCheck(True, f"file: {where} can be written")


def _without_user(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
