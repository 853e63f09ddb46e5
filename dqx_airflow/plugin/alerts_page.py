"""The alerts of the last weeks: unlabelled failures first, and labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date

from dqx_airflow.plugin.airflow import TaskRef
from dqx_airflow.plugin.chart import Chart, chart_of, past_of
from dqx_airflow.plugin.failing_rows import Sample, samples_of
from dqx_airflow.plugin.gate_page import SPARK_HEIGHT, SPARK_WIDTH
from dqx_airflow.plugin.value_format import reading_of
from dqx_airflow.results.labels import Label
from dqx_airflow.results.recent_alerts import AssertionKey, RecentAlert
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
    task: TaskRef | None
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
    groups: dict[AssertionKey, list[RecentAlert]] = {}
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
    histories: Mapping[AssertionKey, Sequence[tuple[date, Verdict]]],
    tasks: Mapping[str, TaskRef],
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
    unlabelled: dict[AssertionKey, int] = {}
    for recent_alert in recent:
        unlabelled[recent_alert.key] = unlabelled.get(recent_alert.key, 0) + (
            recent_alert.alert.label is None
        )
    groups: dict[AssertionKey, list[RecentAlert]] = {}
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


def _view(recent_alert: RecentAlert, task: TaskRef | None, editable: frozenset[str]) -> AlertView:
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


def _instance(alerts: Sequence[RecentAlert], tasks: Mapping[str, TaskRef]) -> str:
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
