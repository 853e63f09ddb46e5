"""The alerts of the last weeks: unlabelled failures first; and the form that labels them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from http import HTTPStatus
from itertools import chain
from typing import Annotated, Any, NamedTuple, TypeGuard

from fastapi import Depends, Response

from dqx_airflow.results.alerts import (
    Alert,
    AssertionOfGate,
    alert_of,
    histories,
    recent_alerts,
    with_failing_rows,
)
from dqx_airflow.results.query import equals
from dqx_airflow.results.schema import RUNS, as_utc
from dqx_airflow.results.stored_labels import Label, write_labels
from dqx_airflow.ui import airflow, airflow_dags, airflow_users, responses
from dqx_airflow.ui.alert_lines import AlertLine, judged_alike, lines_of, rows_judged
from dqx_airflow.ui.api import PageRouter
from dqx_airflow.ui.assertion_view import SPARK_HEIGHT, SPARK_WIDTH
from dqx_airflow.ui.board_page import gate_rows, recent_attempts
from dqx_airflow.ui.chart import Chart, chart_of, past_of
from dqx_airflow.ui.json_members import NotInJson
from dqx_airflow.ui.store import Answer
from dqx_airflow.ui.stored_summaries import reported_runs
from dqx_airflow.ui.summary_view import parsed
from dqx_airflow.ui.verdict_text import reading_of
from dqx_airflow.values import Verdict

MOST_SHOWN = 30
"""The maximum number of lines on the page; filters lead to the others."""

_MOST_COMPARED = 300
"""How many of the first alerts are compared with each other."""


@dataclass(frozen=True, slots=True)
class AlertFilters(responses.Filters):
    """The filters. `show` is `all` or empty, which means alerts without a label."""

    dag_id: str = ""
    task_id: str = ""
    show: str = ""


def chosen_alerts(recent: Iterable[Alert], filters: AlertFilters) -> list[Alert]:
    """The matching alerts, in the order of the page."""
    groups: dict[AssertionOfGate, list[Alert]] = {}
    for alert in recent:
        if filters.show == "all" or alert.label is None:
            groups.setdefault(alert.key, []).append(alert)
    ranked = sorted(groups.values(), key=_rank)
    for group in ranked:
        group.sort(key=lambda alert: (alert.label is not None, -alert.date.toordinal()))
    return [*chain.from_iterable(ranked)]


@dataclass(frozen=True, slots=True)
class AlertGroup:
    """The displayed alerts of an assertion, and the number of its alerts without a label.
    `instance` is the instance of a mapped gate, or empty. In `lines`, each alert has those of other
    gates about the same rows, and the other failures of its cause, beside it."""

    gate: str
    instance: str
    unlabelled: int
    spark: NotInJson[Chart | None]
    lines: list[AlertLine]

    @property
    def also(self) -> NotInJson[list[str]]:
        """The other gates with the same alerts."""
        gates = (alert.gate for line in self.lines for alert in line.also)
        return [*dict.fromkeys(gates)]


def _groups(
    recent: Iterable[Alert],
    shown: Sequence[AlertLine],
    past: Mapping[AssertionOfGate, Sequence[tuple[date, Verdict]]],
    tasks: Mapping[str, airflow.TaskRef],
) -> list[AlertGroup]:
    """The alerts of each assertion: first those without a label, then the newest.

    :param recent: all alerts of the selected gates.
    :param shown: those to display, in order, with their failing rows.
    :param tasks: the tasks of attempts, as far as Airflow knows them.
    """
    without = Counter(alert.key for alert in recent if alert.label is None)
    groups: dict[AssertionOfGate, list[AlertLine]] = {}
    for line in shown:
        groups.setdefault(line.alert.key, []).append(line)
    return [
        AlertGroup(
            gate=key[0],
            instance=_instance([line.alert for line in lines], tasks),
            unlabelled=without[key],
            spark=_spark(past.get(key, ())),
            lines=lines,
        )
        for key, lines in groups.items()
    ]


def _rank(group: Sequence[Alert]) -> tuple[object, ...]:
    without = sum(alert.label is None for alert in group)
    newest = max(alert.date for alert in group)
    severity = min(alert.verdict.severity.value for alert in group)
    return not without, severity, -without, -newest.toordinal(), group[0].key


def _instance(alerts: Sequence[Alert], tasks: Mapping[str, airflow.TaskRef]) -> str:
    index = alerts[0].map_index
    if index < 0:
        return ""
    refs = (tasks.get(alert.attempt_id) for alert in alerts)
    labels = [task.label for task in refs if task is not None and task.label]
    return labels[0] if labels else str(index)


def _spark(history: Sequence[tuple[date, Verdict]]) -> Chart | None:
    if not history:
        return None
    last = history[-1][1]
    past = [past_of(day, verdict) for day, verdict in history]
    return chart_of(last.name, past, SPARK_WIDTH, SPARK_HEIGHT, reading_of(last))


router = PageRouter()

_LONGEST_REASON = 500
_GROUND_TRUTH = {"false_alarm": False, "real": True}
_NO_ALERT = responses.Refused(
    HTTPStatus.NOT_FOUND,
    "Alert not found: the assertion did not fail, a later attempt replaced the report, or "
    "Airflow no longer knows its task. Reload the page. `dql tune label` labels any stored "
    "verdict.",
)
_NO_LONGER_AN_ALERT = responses.Refused(
    HTTPStatus.CONFLICT,
    "This alert does not exist: the assertion did not fail, the data has been checked again since "
    "the page was made, or it is older than 30 days of data. "
    f"Reload the page. {responses.UNCHANGED}",
)


class AlertsPage(NamedTuple):
    """Alerts of the last weeks, and their number: without a label, in all, and not displayed.
    `causes` is the number of causes of all of them. `tasks` are the tasks of their attempts, as far
    as Airflow knows them."""

    groups: list[AlertGroup]
    tasks: Mapping[str, airflow.TaskRef]
    unlabelled: int
    total: int
    more: int
    problem: str | None
    causes: int


@router.get("/alerts")
def alerts(
    visitor: airflow_users.VisitorDep,
    tasks: airflow_dags.TasksDep,
    filters: Annotated[AlertFilters, Depends()],
) -> responses.Page[AlertsPage]:
    """The failures of the last weeks in the gates that the user may read."""
    client = responses.store_client()
    rows = gate_rows(reported_runs(visitor.session, client, tasks.tasks), tasks.dags)
    selected = [
        row
        for row in rows
        if filters.dag_id in ("", row.dag_id) and filters.task_id in ("", row.task_id)
    ]
    visitor.session.close()
    gates = client.ask(lambda store: store.gates_of(recent_attempts(selected)))
    answer = client.ask(lambda store: recent_alerts(store, gates.found))
    chosen = chosen_alerts(answer.found, filters)
    alike = judged_alike(chosen[:_MOST_COMPARED])
    rows_of_runs = client.ask(lambda store: rows_judged(store, alike))
    all_lines = lines_of(chosen, dict(rows_of_runs.found))
    lines = all_lines[:MOST_SHOWN]
    more = len(all_lines) - len(lines)
    selection = [line.alert for line in lines]
    shown = client.ask(lambda store: with_failing_rows(store, selection))
    for line, alert in zip(lines, shown.found, strict=False):
        line.alert = alert
    keys = {alert.key for alert in selection}
    until = max((alert.date for alert in answer.found), default=date.max)
    past = client.ask(lambda store: tuple(histories(store, keys, until).items()))
    attempts = {alert.attempt_id for line in lines for alert in line.alerts}
    labelled = airflow.tasks_of(visitor.session, attempts)
    dag_ids = {task.dag_id for task in labelled.values()}
    editable = {*filter(visitor.may_edit, dag_ids)}
    groups = _groups(answer.found, lines, dict(past.found), labelled)
    unlabelled = sum(alert.label is None for alert in answer.found)
    causes = len({alert.cause for alert in answer.found if alert.cause})
    problem = answer.problem or shown.problem or past.problem
    return responses.Page(
        "alerts.html",
        AlertsPage(groups, labelled, unlabelled, len(answer.found), more, problem, causes),
        editable=editable,
        dags=sorted({row.dag_id for row in rows}),
        filters=filters,
        read_only=client.read_only() if editable else None,
        token=responses.form_token(visitor.user),
        keys_of=partial(_keys_of, labelled, editable),
    )


def _keys_of(
    tasks: Mapping[str, airflow.TaskRef], editable: Collection[str], lines: Iterable[AlertLine]
) -> str:
    """The keys of the alerts of lines that the user may label, as the value of one box."""
    alerts = [alert for line in lines for alert in line.alerts]
    own = [one for one in alerts if one.attempt_id in tasks]
    return " ".join(_key_of(one) for one in own if tasks[one.attempt_id].dag_id in editable)


def _key_of(alert: Alert) -> str:
    """The key of an alert in the form of the list."""
    return responses.key_of_row(alert.run_id, alert.verdict.check, alert.verdict.name)


@router.post("/label")
def label(visitor: airflow_users.VisitorDep, form: responses.Form) -> Response:
    """Stores a user's label of failures: first in Airflow's audit log, then in the label table."""
    truth, reason = responses.chosen(form, _GROUND_TRUTH, "ground_truth", _LONGEST_REASON)
    with responses.one_at_a_time():
        return _label(visitor, form, truth, reason)


def _label(
    visitor: airflow_users.Visitor, form: Mapping[str, str], truth: bool, reason: str
) -> Response:
    """Stores labels, unless these alerts have them already.

    :raises Refused: someone else has labelled one of the alerts after the page was made.
    """
    found = _picked(visitor, form) if responses.PICKED in form else [_one_alert(visitor, form)]
    dags = {task.dag_id for _, task in found}
    responses.require_editor(visitor, dags, _NO_ALERT, "Labels need permission to edit this DAG.")
    shown_at = parsed(datetime.fromisoformat, form.get("as_of", ""))
    labels = []
    others = []
    entries: list[tuple[airflow.TaskRef | str, dict[str, Any]]] = []
    for alert, task in found:
        new_label = _label_of(alert, visitor.name, truth, reason)
        if alert.label is not None and alert.label.content == new_label.content:
            continue  # a form that is sent twice
        if _is_by_someone_else(alert.label, visitor.name, shown_at):
            others.append(_in_words(alert, alert.label))
        labels.append(new_label)
        entries.append((task, _facts_of(alert, new_label)))
    if others:
        raise responses.no_longer_open(others)
    back = _page_before(form, found[0][1])
    if not labels:
        return responses.back_to(back)
    write = partial(write_labels, labels=labels)
    return responses.recorded_changes(visitor, "dqx label", entries, write, back)


def _is_by_someone_else(
    label: Label | None, author: str, shown_at: datetime | None
) -> TypeGuard[Label]:
    """Whether someone else has stored a label after the page was made.

    :param shown_at: the time of the page; None for a form without it.
    """
    if label is None or shown_at is None or label.author == author:
        return False
    return label.at > as_utc(shown_at)


def _in_words(alert: Alert, label: Label) -> str:
    """A label of someone else: `orders.key, data of 2024-03-20: real issue, by eve at ...`."""
    kind = "real issue" if label.ground_truth else "false alarm"
    about = f"{alert.verdict.name}, data of {alert.date}"
    reason = f": {label.reason}" if label.reason else ""
    return f"{about}: labeled as {kind} by {label.author} at {label.at:%Y-%m-%d %H:%M} UTC{reason}"


def _label_of(alert: Alert, author: str, truth: bool, reason: str) -> Label:
    return Label(
        gate=alert.gate,
        date=alert.date,
        check=alert.verdict.check,
        name=alert.verdict.name,
        ground_truth=truth,
        author=author,
        reason=reason or None,
        suite=alert.suite,
        run_id=alert.run_id,
        map_index=alert.map_index,
    )


def _facts_of(alert: Alert, new_label: Label) -> dict[str, Any]:
    """The entry of a label in the audit log."""
    return {
        "gate": alert.gate,
        "date": alert.date.isoformat(),
        "map_index": alert.map_index,
        "check": alert.verdict.check,
        "assertion": alert.verdict.name,
        "ground_truth": new_label.ground_truth,
        "reason": new_label.reason,
        "report": alert.run_id,
        "label": new_label.id,
    }


def _one_alert(
    visitor: airflow_users.Visitor, form: Mapping[str, str]
) -> tuple[Alert, airflow.TaskRef]:
    """The alert in the form of a tab, with its task, which the user may edit.

    :raises Refused: there is none, or the user may not.
    """
    client = responses.store_client()
    columns = ("attempt_id", "gate", "run_id", "dataset_date")
    where = [equals("run_id", form.get("report", ""))]
    order = 'ORDER BY "finished_at", "run_id"'
    runs = client.ask(lambda store: tuple(store.select(RUNS, columns, where, order)))
    task = _task_of_run(visitor.session, runs)
    dags = [task.dag_id] if task else []
    responses.require_editor(visitor, dags, _NO_ALERT, "Labels need permission to edit this DAG.")
    check, name = form.get("check", ""), form.get("assertion", "")
    answer = client.ask(lambda store: alert_of(store, runs.found[0], check, name))
    if task is None:
        raise _NO_ALERT
    if not answer.found:
        raise _NO_LONGER_AN_ALERT
    return answer.found[0], task


def _picked(
    visitor: airflow_users.Visitor, form: Mapping[str, str]
) -> list[tuple[Alert, airflow.TaskRef]]:
    """The checked alerts of the list, with their tasks.

    :raises Refused: one of them is not among the alerts that the user may see.
    """
    keys = {*form[responses.PICKED].split()}
    client = responses.store_client()
    tasks = airflow_dags.gate_tasks(visitor)
    rows = gate_rows(airflow.recent_runs(visitor.session, tasks.tasks), tasks.dags)
    gates = client.ask(lambda store: store.gates_of(recent_attempts(rows)))
    answer = client.ask(lambda store: recent_alerts(store, gates.found))
    if answer.problem is not None:
        raise responses.Refused(HTTPStatus.SERVICE_UNAVAILABLE, answer.problem)
    chosen = [alert for alert in answer.found if _key_of(alert) in keys]
    known = airflow.tasks_of(visitor.session, {alert.attempt_id for alert in chosen})
    if len(chosen) < len(keys) or any(alert.attempt_id not in known for alert in chosen):
        edits = any(visitor.may_edit(row.dag_id) for row in rows)
        raise _NO_LONGER_AN_ALERT if edits else _NO_ALERT
    return [(alert, known[alert.attempt_id]) for alert in chosen]


def _task_of_run(session: Any, runs: Answer[Any]) -> airflow.TaskRef | None:
    """The task of a run; None if Airflow does not know it."""
    if runs.problem is not None:
        raise responses.Refused(HTTPStatus.SERVICE_UNAVAILABLE, runs.problem)
    attempts = [run["attempt_id"] for run in runs.found]
    return airflow.tasks_of(session, attempts).get(attempts[0]) if attempts else None


def _page_before(form: Mapping[str, str], task: airflow.TaskRef) -> str:
    """The page of the form: an address that we construct, whatever the form contains."""
    if form.get("back") == "alerts":
        filters = {name: form.get(name, "") for name in ("dag_id", "task_id", "show")}
        return responses.address("alerts", **filters)
    return responses.gate_address(task)
