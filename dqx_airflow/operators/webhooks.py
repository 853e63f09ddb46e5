"""Webhooks: the incidents of gates as events for other systems.

A slice begins to block, changes, is accepted, waived, or good again. Each is posted to the
connections in `webhook_conn_id` of section `[dqx]`. Airflow runs callbacks when it knows the state
of the task, so that no other task waits for them. An event is signed as
https://www.standardwebhooks.com says, repeated until it is taken, or given up.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from functools import partial
from string import Template
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

from airflow.providers.common.compat.sdk import BaseHook, Stats
from airflow.providers.common.compat.sdk import conf as airflow_conf

from dqx_airflow.operators.notifications import gate_notification
from dqx_airflow.operators.results_location import ResultsLocation
from dqx_airflow.operators.same_cause import first_incidents_by_run
from dqx_airflow.operators.state_changes import stored_faults
from dqx_airflow.operators.webhook_address import Webhook, WebhookMistake, webhook_of
from dqx_airflow.values import GateReport

if TYPE_CHECKING:
    from dqx_airflow.results.incidents import Incident
    from dqx_airflow.results.query import StoredResults
    from dqx_airflow.results.report_rows import RunRow

TIME_BUDGET_S = 15.0
"""The total time for posting. Airflow ends a task 20 seconds after its success
(`task_success_overtime`)."""

_EACH_S = 4.0
_RETRIES: dict[str, Any] = {"total": 4, "backoff_factor": 0.5, "allowed_methods": None}
_REFUSALS: dict[str, Any] = {"raise_on_status": False, "respect_retry_after_header": False}
_TRY_AGAIN = (408, 425, 429, 500, 502, 503, 504)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WebhookEvent:
    """An event, whose JSON is `asdict`. `data` is the payload of a notification with its
    `markdown`, the id of the `incident`, the id of the first incident of the DAG with the same
    `cause` (its own if it came first), its `date`, and the `action`: "trigger" or "resolve"."""

    type: str
    timestamp: str
    data: dict[str, Any]


def webhook_conn_ids() -> list[str]:
    """The connection IDs in `webhook_conn_id`, which receive the events of all gates."""
    names = airflow_conf.get("dqx", "webhook_conn_id", fallback=None) or ""
    return [name.strip() for name in names.split(",") if name.strip()]


def webhook_mistakes() -> dict[str, str | None]:
    """The reason why a connection cannot deliver events, None if it can, by connection ID."""
    from airflow.models.connection import Connection

    found: dict[str, str | None] = {}
    for conn_id in webhook_conn_ids():
        try:
            webhook_of(Connection.get_connection_from_secrets(conn_id))
            found[conn_id] = None
        except WebhookMistake as mistake:
            found[conn_id] = str(mistake)
        except Exception as error:  # of a secrets backend, or the connection does not exist
            found[conn_id] = f"Airflow does not give the connection: {type(error).__name__}"
    return found


def send_after(task: Any, send: Callable[[Any], None]) -> None:
    """Registers a callback for the end of the task in any state, also before a retry."""
    for end in ("success", "failure", "skipped", "retry"):
        name = f"on_{end}_callback"
        setattr(task, name, [*(getattr(task, name) or ()), send])


def sender(reports: Sequence[GateReport], location: ResultsLocation) -> Callable[[Any], None]:
    """The callback that posts the events about the reports of a task, and logs what is not
    taken."""
    return partial(_send_events, reports=reports, location=location)


def _send_events(context: Any, reports: Sequence[GateReport], location: ResultsLocation) -> None:
    from dqx_airflow.lineage.transport import TimeBudget

    conn_ids = webhook_conn_ids()
    if not conn_ids:
        return
    events = [*_events(context, reports, location)]
    if not events:
        return
    logging.getLogger("urllib3").setLevel(logging.ERROR)  # it contains paths, which may be secrets
    budget = TimeBudget(TIME_BUDGET_S)
    for number, conn_id in enumerate(conn_ids):
        try:
            webhook = webhook_of(BaseHook.get_connection(conn_id))
            post = partial(_post, webhook, events)
            budget.wait_for(post, share=1 / (len(conn_ids) - number))
        except WebhookMistake as mistake:
            _report_loss(context, conn_id, events, str(mistake))
        except Exception as error:
            _report_loss(context, conn_id, events, _reason_of(error))


def _reason_of(error: Exception) -> str:
    """The status or the kind of an error, not its message: that contains the address, which may be
    a secret."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    return f"HTTP {status}" if status else type(error).__name__


def _report_loss(context: Any, conn_id: str, events: Sequence[WebhookEvent], reason: str) -> None:
    """Reports events that a webhook did not take, to the log of the task and to the metrics."""
    types = ", ".join(dict.fromkeys(event.type for event in events))
    log.error("the webhook %s did not take an event: %s (%s)", conn_id, reason, types)
    tags = {"dag_id": context["ti"].dag_id, "task_id": context["ti"].task_id, "webhook": conn_id}
    Stats.incr("dqx.webhook.lost", tags=tags)


def _events(
    context: Any, reports: Sequence[GateReport], location: ResultsLocation
) -> Iterator[WebhookEvent]:
    """The events about the slices that the reports have changed."""
    from dqx_airflow.results.incidents import stored_incidents
    from dqx_airflow.results.query import RunsWanted, StoredResults

    keys = [report.run_key for report in reports]
    gates = {key.gate for key in keys}
    dates = [key.date for key in keys]
    index = keys[0].map_index if keys[0].map_index >= 0 else None
    wanted = RunsWanted(gates, since=min(dates), until=max(dates), map_index=index)
    results = StoredResults(location.root, location.storage_options)
    own = {report.run_id: report for report in reports}
    changed = []
    for incident in stored_incidents(results, wanted):
        change = _change_by(incident, own, results)
        if change is not None:
            changed.append((incident, change))
    if not changed:
        return
    first = first_incidents_by_run(context, reports, results)
    for incident, change in changed:
        yield _event(context, incident, change, first.get(incident.id, incident).id)


def _event(context: Any, incident: Incident, change: str, cause: str) -> WebhookEvent:
    on = incident.date.isoformat()
    notification = gate_notification(context, is_recovery=incident.is_recovered, on=on)
    data = {
        **notification.payload,
        "markdown": notification.markdown,
        "incident": incident.id,
        "cause": cause,
        "run_id": (incident.repair or incident.last).run_id,
        "date": on,
        "action": "trigger" if incident.is_open else "resolve",
    }
    return WebhookEvent(f"incident.{change}", datetime.now(timezone.utc).isoformat(), data)


def _change_by(
    incident: Incident, own: Mapping[str, GateReport], results: StoredResults
) -> str | None:
    """The change of an incident by the reports of a task, such as "opened"; None without any.

    :param own: the reports of the task, by the ids of their runs.
    """
    if incident.repair is not None:
        good = own.get(incident.repair.run_id)
        return None if good is None else _ending(incident, good)
    if incident.id in own:
        return "opened"
    last_own = {run.run_key.gate: run for run in reversed(incident.runs) if run.run_id in own}
    before = {run.run_key.gate: run for run in reversed(incident.runs) if run.run_id not in own}
    for gate, run in last_own.items():
        earlier = before.get(gate)
        if earlier is None:
            return "changed"
        if _faults(results, earlier) != _faults(results, run):
            return "changed"
    return None


def _ending(incident: Incident, good: GateReport) -> str:
    """The word for the end of an incident by a report that released its data."""
    if good.accepted:
        return "accepted"
    if good.waived:
        return "waived"
    return "recovered" if incident.is_recovered else "warned"


def _faults(results: StoredResults, run: RunRow) -> set[tuple[str, str, str]]:
    return stored_faults(results.select, run.run_id, run.fail_on)


def _post(webhook: Webhook, events: Sequence[WebhookEvent]) -> None:
    """Posts events, one after the other, each until it is taken or refused.

    :raises Exception: one was refused, or is given up.
    """
    import requests
    from urllib3.util import Retry

    from dqx_airflow.lineage.transport import StatusOnly

    again = Retry(**_RETRIES, **_REFUSALS, status_forcelist=_TRY_AGAIN)
    session = requests.Session()
    session.max_redirects = 0  # another host gets neither the event nor a secret in it
    for scheme in ("http://", "https://"):
        session.mount(scheme, StatusOnly(max_retries=again))
    answers = []
    for event in events:
        body = _body(webhook, event)
        headers = _headers(event, body.encode(), webhook.key)
        answers.append(session.post(webhook.address, body, headers=headers, timeout=_EACH_S))
    for answer in answers:
        answer.raise_for_status()


def _body(webhook: Webhook, event: WebhookEvent) -> str:
    """The body of a request: the event, or the template of the webhook with its values."""
    if not webhook.template:
        return json.dumps(asdict(event))
    texts = {**event.data, "type": event.type, "password": webhook.password}
    template = Template(json.dumps(webhook.template))
    return template.safe_substitute({name: _in_json(text) for name, text in texts.items()})


def _in_json(value: object) -> str:
    """A value escaped for use inside a JSON string."""
    return json.dumps("" if value is None else str(value))[1:-1]


def _headers(event: WebhookEvent, body: bytes, key: bytes | None) -> dict[str, str]:
    """The headers of a request, with the signature over its id, its time and its body."""
    own_id = str(uuid5(NAMESPACE_URL, json.dumps(asdict(event))))
    at = str(int(time.time()))
    headers = {"content-type": "application/json", "webhook-id": own_id, "webhook-timestamp": at}
    if key is not None:
        digest = hmac.new(key, f"{own_id}.{at}.".encode() + body, hashlib.sha256).digest()
        headers["webhook-signature"] = f"v1,{base64.b64encode(digest).decode()}"
    return headers
