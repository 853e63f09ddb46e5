"""The alerts of the last weeks: unlabelled failures first; and the form that labels one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from http import HTTPStatus
from itertools import chain
from typing import Any

from fastapi import APIRouter, Request, Response

from dqx_airflow.results.alerts import (
    AssertionOfGate,
    RecentAlert,
    alert_of,
    histories,
    recent_alerts,
    with_failing_rows,
)
from dqx_airflow.results.labels import Label, write_labels
from dqx_airflow.results.query import equals
from dqx_airflow.results.schema import RUNS
from dqx_airflow.ui import airflow
from dqx_airflow.ui.board_page import DEPTH, gate_rows, gates_of_rows
from dqx_airflow.ui.chart import Chart, chart_of, past_of
from dqx_airflow.ui.forms import Form, Refused, form_token
from dqx_airflow.ui.gate_page import SPARK_HEIGHT, SPARK_WIDTH
from dqx_airflow.ui.report_view import Sample, reading_of, samples_of
from dqx_airflow.ui.responses import address, form_response, gate_address, html_page, store_client
from dqx_airflow.ui.store import Answer
from dqx_airflow.values import Verdict

MOST_SHOWN = 60
"""The maximum number of alerts on the page; filters lead to the others."""


@dataclass(frozen=True, slots=True)
class AlertFilters:
    """The filters; empty strings mean all. `show` is `all` or empty, which means alerts without a
    label."""

    dag: str = ""
    task: str = ""
    show: str = ""

    @property
    def query(self) -> dict[str, str]:
        """The filters as parameters of an address."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class AlertView:
    """A failure. `task` is its task, if Airflow still knows it."""

    date: date
    run_id: str
    verdict: Verdict
    label: Label | None
    task: airflow.TaskRef | None
    can_label: bool
    samples: tuple[Sample, ...]


@dataclass(frozen=True, slots=True)
class AlertGroup:
    """The failures of an assertion, first those without a label, then the newest. `instance` is
    the label or the map index of an instance of a mapped gate, empty for others."""

    gate: str
    instance: str
    verdict: Verdict
    unlabelled: int
    alerts: tuple[AlertView, ...]
    spark: Chart | None


@dataclass(frozen=True, slots=True)
class AlertsPage:
    """The displayed groups: first those with the most unlabelled failures. `more` is the number of
    matching alerts that are not displayed."""

    groups: tuple[AlertGroup, ...]
    unlabelled: int
    total: int
    more: int
    dags: tuple[str, ...]
    filters: AlertFilters


def chosen_alerts(
    recent: Iterable[RecentAlert], filters: AlertFilters
) -> tuple[tuple[RecentAlert, ...], int]:
    """The displayed alerts, in the order of the page, and the number of other matches."""
    groups: dict[AssertionOfGate, list[RecentAlert]] = {}
    for recent_alert in recent:
        if filters.show == "all" or recent_alert.alert.label is None:
            groups.setdefault(recent_alert.key, []).append(recent_alert)
    ranked = sorted(groups.values(), key=_rank)
    chosen = [
        recent_alert for group in ranked for recent_alert in sorted(group, key=_rank_in_group)
    ]
    return tuple(chosen[:MOST_SHOWN]), max(len(chosen) - MOST_SHOWN, 0)


def alerts_page(
    recent: Sequence[RecentAlert],
    shown: Sequence[RecentAlert],
    more: int,
    histories: Mapping[AssertionOfGate, Sequence[tuple[date, Verdict]]],
    tasks: Mapping[str, airflow.TaskRef],
    editable: Iterable[str],
    dags: Iterable[str],
    filters: AlertFilters,
) -> AlertsPage:
    """The page of recent alerts.

    :param recent: all alerts of the selected gates.
    :param shown: those to display, in order, with their failing rows.
    :param tasks: the tasks of attempts.
    :param editable: the DAGs that the user may edit.
    :param dags: the DAGs to choose from.
    """
    editable = frozenset(editable)
    unlabelled: dict[AssertionOfGate, int] = {}
    for recent_alert in recent:
        unlabelled[recent_alert.key] = unlabelled.get(recent_alert.key, 0) + (
            recent_alert.alert.label is None
        )
    groups: dict[AssertionOfGate, list[RecentAlert]] = {}
    for recent_alert in shown:
        groups.setdefault(recent_alert.key, []).append(recent_alert)
    return AlertsPage(
        groups=tuple(
            AlertGroup(
                key[0],
                _instance(alerts, tasks),
                alerts[0].alert.verdict,
                unlabelled[key],
                tuple(
                    _view(recent_alert, tasks.get(recent_alert.attempt_id), editable)
                    for recent_alert in alerts
                ),
                _spark(histories.get(key, ())),
            )
            for key, alerts in groups.items()
        ),
        unlabelled=sum(unlabelled.values()),
        total=len(recent),
        more=more,
        dags=tuple(sorted(dags)),
        filters=filters,
    )


def _rank(group: Sequence[RecentAlert]) -> tuple[object, ...]:
    without = sum(recent_alert.alert.label is None for recent_alert in group)
    newest = max(recent_alert.alert.date for recent_alert in group)
    severity = min(recent_alert.alert.verdict.severity.value for recent_alert in group)
    return not without, severity, -without, -newest.toordinal(), group[0].key


def _rank_in_group(recent_alert: RecentAlert) -> tuple[bool, int]:
    return recent_alert.alert.label is not None, -recent_alert.alert.date.toordinal()


def _view(
    recent_alert: RecentAlert, task: airflow.TaskRef | None, editable: frozenset[str]
) -> AlertView:
    alert = recent_alert.alert
    return AlertView(
        alert.date,
        alert.run_id,
        alert.verdict,
        alert.label,
        task,
        task is not None and task.dag_id in editable,
        samples_of(alert.verdict.failing_rows),
    )


def _instance(alerts: Sequence[RecentAlert], tasks: Mapping[str, airflow.TaskRef]) -> str:
    index = alerts[0].alert.map_index
    if index < 0:
        return ""
    refs = (tasks.get(recent_alert.attempt_id) for recent_alert in alerts)
    labels = [task.label for task in refs if task is not None and task.label]
    return labels[0] if labels else str(index)


def _spark(history: Sequence[tuple[date, Verdict]]) -> Chart | None:
    if not history:
        return None
    last = history[-1][1]
    past = [past_of(day, verdict) for day, verdict in history]
    return chart_of(last.name, past, SPARK_WIDTH, SPARK_HEIGHT, reading_of(last))


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
    session: airflow.SessionDep,
    user: airflow.GetUserDep,
    tasks: airflow.TasksDep,
    dag: str = "",
    task: str = "",
    show: str = "",
) -> Response:
    """The failures of the last weeks in the gates that the user may read."""
    filters = AlertFilters(dag, task, "all" if show == "all" else "")
    rows = gate_rows(airflow.recent_runs(session, tasks.tasks, DEPTH), tasks.dags)
    selected = [row for row in rows if dag in ("", row.dag_id) and task in ("", row.task_id)]
    session.close()
    client = store_client()
    gates, problem = gates_of_rows(client, selected)
    answer: Answer[RecentAlert] = Answer(problem=problem)
    if names := set(chain.from_iterable(gates.values())):
        answer = client.ask(lambda store: recent_alerts(store, names))
    chosen, more = chosen_alerts(answer.found, filters)
    shown = client.ask(lambda store: with_failing_rows(store, chosen)) if chosen else Answer()
    past: Answer[Any] = Answer()
    if chosen:
        until = max(recent_alert.alert.date for recent_alert in answer.found)
        keys = {recent_alert.key for recent_alert in chosen}
        past = client.ask(lambda store: tuple(histories(store, keys, until).items()))
    labelled = airflow.tasks_of(session, {recent_alert.attempt_id for recent_alert in chosen})
    editable = {dag_id for dag_id in _dags(labelled) if airflow.may_edit(request, user, dag_id)}
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
def label(
    request: Request, session: airflow.SessionDep, user: airflow.GetUserDep, form: Form
) -> Response:
    """Stores a user's label of a failure, in the label table and in Airflow's audit log."""
    truth = _GROUND_TRUTH.get(form.get("said", ""))
    reason = form.get("reason", "").strip()
    if truth is None or len(reason) > _LONGEST_REASON:
        raise Refused(
            HTTPStatus.BAD_REQUEST,
            f"Send false_alarm or real, with a reason of at most {_LONGEST_REASON} characters.",
        )
    client = store_client()
    run_id, columns = form.get("report", ""), ("attempt_id", "gate", "run_id", "dataset_date")
    where, order = [equals("run_id", run_id)], 'ORDER BY "finished_at", "run_id"'
    runs = client.ask(lambda store: tuple(store.select(RUNS, columns, where, order)))
    task = _task_of_run(session, runs)
    if task is None or not airflow.may_read(request, user, task.dag_id):
        raise _NO_ALERT
    if not airflow.may_edit(request, user, task.dag_id):
        raise Refused(HTTPStatus.FORBIDDEN, "Labels need permission to edit this DAG.")
    check, name = form.get("check", ""), form.get("name", "")
    answer = client.ask(lambda store: alert_of(store, runs.found[0], check, name))
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
    airflow.record(session, user, "dqx label", task, _facts(new_label))
    session.close()
    problem = client.change(lambda results: write_labels(results, [new_label]))
    return form_response(problem, _page_before(form, task))


def _task_of_run(session: Any, runs: Answer[Any]) -> airflow.TaskRef | None:
    """The task of a run; None if Airflow does not know it."""
    if runs.problem is not None:
        raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, runs.problem)
    attempts = [run["attempt_id"] for run in runs.found]
    return airflow.tasks_of(session, attempts).get(attempts[0]) if attempts else None


def _dags(tasks: Mapping[str, airflow.TaskRef]) -> set[str]:
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


def _page_before(form: Mapping[str, str], task: airflow.TaskRef) -> str:
    """The page of the form: an address that we construct, whatever the form contains."""
    if form.get("back") == "alerts":
        filters = {name: form.get(name, "") for name in ("dag", "task", "show")}
        return address("alerts", **filters)
    return gate_address(task)
