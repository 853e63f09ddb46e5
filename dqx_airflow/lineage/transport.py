"""OpenLineage transports with the limits of a gate: two seconds in total, and reported failures.

OpenLineage's own configuration selects the transport. This module adds limits that the user did not
set, and a wrapper that records what was not sent. Imports the OpenLineage client.
"""

from __future__ import annotations

import os
from typing import Any

from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import RunEvent
from openlineage.client.serde import Serde
from openlineage.client.transport import Transport, get_default_factory
from openlineage.client.transport.composite import CompositeTransport
from openlineage.client.transport.noop import NoopConfig, NoopTransport

from dqx_airflow.lineage.http_status import bounded
from dqx_airflow.lineage.time_budget import TimeBudget

TIME_BUDGET_S = 2.0
"""The total time that a gate waits for all its events, for any configuration, in seconds."""

# One event more than the client's other attempts would take all of that time.
_TIMEOUT_S = 2.0
_RETRY = {"total": 1, "connect": 1, "read": 0, "status": 0, "backoff_factor": 0.1}
# A server that says "come back in an hour" would be obeyed, and before another attempt all of a
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

    :raises Exception: the configuration is not of the right shape; any kind.
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


def limited(config: dict[str, Any]) -> dict[str, Any]:
    """`config` with limits where it has none that are narrower, also inside composite and transform
    transports."""
    config = dict(config)
    kind = config.get("type")
    if kind in {"http", "async_http", "datadog"}:
        # The asynchronous transport never reports a lost event. Two events for each run need no
        # asynchrony.
        config["type"] = "http" if kind == "async_http" else kind
        timeout = config.get("timeout")
        is_shorter = isinstance(timeout, int | float) and timeout < _TIMEOUT_S
        config["timeout"] = timeout if is_shorter else _TIMEOUT_S
        retry = config["retry"] if isinstance(config.get("retry"), dict) else _RETRY
        config["retry"] = {**retry, **_NO_NAPS}
    elif kind == "composite":
        children = config.get("transports")
        if isinstance(children, dict):
            config["transports"] = {
                name: limited(child) if isinstance(child, dict) else child
                for name, child in children.items()
            }
        elif isinstance(children, list):
            config["transports"] = [limited(c) if isinstance(c, dict) else c for c in children]
    elif kind == "transform" and isinstance(config.get("transport"), dict):
        config["transport"] = limited(config["transport"])
    return config


def watched(
    config: dict[str, Any], time_budget: TimeBudget
) -> tuple[Transport, tuple[Watched, ...]]:
    """The transport of `config`, and its parts that can fail separately.

    :param time_budget: for all of them together.
    :raises Exception: it cannot be built; any kind, transports are plugins.
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
    """True if every part of a transport must get every event: a fallback list needs only one."""
    return not isinstance(transport, CompositeTransport) or transport.config.continue_on_success


def quiet_client() -> OpenLineageClient:
    """A client with OpenLineage's configuration but without a transport yet."""
    return OpenLineageClient(transport=NoopTransport(NoopConfig()))


def rebuilt(event: dict[str, Any]) -> RunEvent:
    """A run event from its JSON form, for transports that inspect it (Kafka).

    :raises Exception: it is not the JSON form of a run event; KeyError, TypeError or ValueError.
    """
    from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunState
    from openlineage.client.facet_v2 import parent_run

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
