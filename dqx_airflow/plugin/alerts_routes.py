"""The route of the alerts, and the form that labels one."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from itertools import chain
from typing import Any

from fastapi import APIRouter, Request, Response

from dqx_airflow.plugin.addresses import address, gate_address
from dqx_airflow.plugin.airflow import (
    GetUserDep,
    SessionDep,
    TaskRef,
    TasksDep,
    may_edit,
    may_read,
    recent_runs,
    record,
    tasks_of,
)
from dqx_airflow.plugin.alerts_page import AlertFilters, alerts_page, chosen_alerts
from dqx_airflow.plugin.board_page import DEPTH, GateRow, gate_rows, recent_attempts
from dqx_airflow.plugin.responses import back_to, html_page, notice, store_client
from dqx_airflow.plugin.store import Answer, StoreClient
from dqx_airflow.plugin.writes import Form, Refused, form_token
from dqx_airflow.results.history import OpenStore
from dqx_airflow.results.labels import Label, write_labels
from dqx_airflow.results.recent_alerts import (
    RecentAlert,
    alert_of,
    gate_of_run,
    gates_of_attempts,
    histories,
    recent_alerts,
    unlabelled_counts,
    with_failing_rows,
)

router = APIRouter()

_LONGEST_REASON = 500
_GROUND_TRUTH = {"false_alarm": False, "real": True}
_NO_ALERT = Refused(
    HTTPStatus.NOT_FOUND,
    "Alert not found: the assertion did not fail, a later attempt replaced the report, or "
    "Airflow no longer knows its task. Reload the page. `dql label` labels any stored verdict.",
)


@router.get("/alerts")
def alerts(
    request: Request,
    session: SessionDep,
    user: GetUserDep,
    tasks: TasksDep,
    dag: str = "",
    task: str = "",
    show: str = "",
) -> Response:
    """The failures of the last weeks in the gates that the user may read."""
    filters = AlertFilters(dag, task, "all" if show == "all" else "")
    rows = gate_rows(recent_runs(session, tasks.tasks, DEPTH), tasks.dags)
    selected = [row for row in rows if dag in ("", row.dag_id) and task in ("", row.task_id)]
    session.close()
    client = store_client()
    gates, problem = gates_of_rows(client, selected)
    answer: Answer[RecentAlert] = Answer(problem=problem)
    if names := set(chain.from_iterable(gates.values())):
        answer = client.ask(lambda store: recent_alerts(store.select, names))
    chosen, more = chosen_alerts(answer.found, filters)
    shown = (
        client.ask(lambda store: with_failing_rows(store.select, chosen)) if chosen else Answer()
    )
    past: Answer[Any] = Answer()
    if chosen:
        until = max(recent_alert.alert.date for recent_alert in answer.found)
        keys = {recent_alert.key for recent_alert in chosen}
        past = client.ask(lambda store: tuple(histories(store.select, keys, until).items()))
    labelled = tasks_of(session, {recent_alert.attempt_id for recent_alert in chosen})
    editable = {dag_id for dag_id in _dags(labelled) if may_edit(request, user, dag_id)}
    page = alerts_page(
        answer.found,
        shown.found,
        more,
        dict(past.found),
        labelled,
        editable,
        {row.dag_id for row in rows},
        filters,
    )
    return html_page(
        "alerts.html",
        page=page,
        problem=answer.problem or shown.problem or past.problem,
        read_only=client.read_only() if editable else None,
        token=form_token(user),
    )


@router.post("/label")
def label(request: Request, session: SessionDep, user: GetUserDep, form: Form) -> Response:
    """Stores a user's label of a failure, in the label table and in Airflow's audit log."""
    truth = _GROUND_TRUTH.get(form.get("said", ""))
    reason = form.get("reason", "").strip()
    if truth is None or len(reason) > _LONGEST_REASON:
        raise Refused(
            HTTPStatus.BAD_REQUEST,
            f"Send false_alarm or real, with a reason of at most {_LONGEST_REASON} characters.",
        )
    client = store_client()
    runs = client.ask(lambda store: gate_of_run(store.select, form.get("report", "")))
    task = _task(session, runs)
    if task is None or not may_read(request, user, task.dag_id):
        raise _NO_ALERT
    if not may_edit(request, user, task.dag_id):
        raise Refused(HTTPStatus.FORBIDDEN, "Labels need permission to edit this DAG.")
    check, name = form.get("check", ""), form.get("name", "")
    answer = client.ask(lambda store: alert_of(store.select, runs.found[0], check, name))
    if not answer.found:
        raise _NO_ALERT
    alert = answer.found[0].alert
    author = user.get_name()
    new_label = Label(
        alert.gate,
        alert.date,
        check,
        name,
        truth,
        author,
        reason or None,
        alert.suite,
        alert.run_id,
        alert.map_index,
    )
    record(session, user, "dqx label", task, _facts(new_label))
    session.close()
    problem = client.change(
        lambda root, options: write_labels(root, [new_label], storage_options=options)
    )
    if problem is not None:
        return notice(HTTPStatus.SERVICE_UNAVAILABLE, "Not stored", problem)
    return back_to(_page_before(form, task))


def gates_of_rows(
    client: StoreClient, rows: list[GateRow]
) -> tuple[dict[tuple[str, str], set[str]], str | None]:
    """The names of gates by DAG and task, one for each suite, and why there are none."""
    tasks = recent_attempts(rows)
    runs = client.ask(lambda store: gates_of_attempts(store.select, tasks))
    gates: dict[tuple[str, str], set[str]] = {}
    for run in runs.found:
        gates.setdefault(tasks[run.attempt_id], set()).add(run.gate)
    return gates, runs.problem


def counts_of_rows(client: StoreClient, rows: list[GateRow]) -> dict[tuple[str, str], int]:
    """The number of recent alerts without a label for each gate, by DAG and task."""
    if client.root is None:
        return {}
    gates, _ = gates_of_rows(client, rows)
    names = set(chain.from_iterable(gates.values()))

    def counts(store: OpenStore) -> tuple[tuple[str, int], ...]:
        return unlabelled_counts(store.select, names)

    by_gate = dict(client.ask(counts).found) if names else {}
    return {
        task: sum(by_gate.get(gate, 0) for gate in own)
        for task, own in gates.items()
        if not own.isdisjoint(by_gate)
    }


def _task(session: Any, runs: Answer[Any]) -> TaskRef | None:
    """The task of a run; None if Airflow does not know it."""
    if runs.problem is not None:
        raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, runs.problem)
    attempts = [run.attempt_id for run in runs.found]
    return tasks_of(session, attempts).get(attempts[0]) if attempts else None


def _dags(tasks: Mapping[str, TaskRef]) -> set[str]:
    return {task.dag_id for task in tasks.values()}


def _facts(label: Label) -> dict[str, object]:
    return {
        "gate": label.gate,
        "date": label.date.isoformat(),
        "map_index": label.map_index,
        "check": label.check,
        "assertion": label.name,
        "ground_truth": label.ground_truth,
        "reason": label.reason,
        "report": label.run_id,
        "label": label.id,
    }


def _page_before(form: Mapping[str, str], task: TaskRef) -> str:
    """The page of the form: an address that we construct, whatever the form contains."""
    if form.get("back") == "alerts":
        filters = {name: form.get(name, "") for name in ("dag", "task", "show")}
        return address("alerts", **filters)
    return gate_address(task)
