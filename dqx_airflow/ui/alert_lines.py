"""The lines of the list of alerts: the failures of a date with one cause, and the same rows that
several gates judged in the same way, are one line and get one label."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dqx_airflow.lineage.names import trimmed_location
from dqx_airflow.results.alerts import Alert
from dqx_airflow.results.query import RunsWanted, StoredResults

_Judged = tuple[object, ...]
"""A judgement without its gate: date, assertion, value, limit, label."""


@dataclass(slots=True)
class AlertLine:
    """An alert, the alerts of other gates about the same rows, and the other failures of its date
    with the same cause."""

    alert: Alert
    also: list[Alert] = field(default_factory=list)
    together: list[Alert] = field(default_factory=list)

    @property
    def alerts(self) -> list[Alert]:
        """All alerts of the line."""
        return [self.alert, *self.also, *self.together]


def lines_of(alerts: Iterable[Alert], rows: Mapping[str, Mapping[str, object]]) -> list[AlertLine]:
    """The lines of alerts, each at the place of its first alert.

    :param rows: what identifies the rows of datasets, as from `rows_judged`.
    """
    lines: list[AlertLine] = []
    known: dict[object, AlertLine] = {}
    for alert in alerts:
        same_rows = _same_rows(alert, rows)
        keys = [key for key in (same_rows, _cause(alert)) if key is not None]
        line = next((known[key] for key in keys if key in known), None)
        if line is None:
            line = AlertLine(alert)
            lines.append(line)
        elif same_rows is not None and same_rows == _same_rows(line.alert, rows):
            line.also.append(alert)
        else:
            line.together.append(alert)
        for key in keys:
            known.setdefault(key, line)
    return lines


def _cause(alert: Alert) -> object:
    """The key of the failures of a date with one cause and one label; None for a pass."""
    if not alert.cause:
        return None
    return alert.cause, alert.date, _truth(alert)


def _same_rows(alert: Alert, rows: Mapping[str, Mapping[str, object]]) -> object:
    """The key of alerts about the same rows; None where the rows are not identified, and for an
    instance of a mapped gate, which has rows of its own."""
    if alert.map_index >= 0:
        return None
    own = rows.get(alert.run_id, {})
    data = [own.get(name) for name in alert.verdict.datasets]
    if not data or any(one is None for one in data):
        return None
    return _judged(alert), *data


def _truth(alert: Alert) -> bool | None:
    return None if alert.label is None else alert.label.ground_truth


def _judged(alert: Alert) -> _Judged:
    verdict = alert.verdict
    limit = verdict.expected, repr(verdict.threshold), repr(verdict.scaled_value)
    return alert.date, verdict.name, verdict.expression, *limit, verdict.severity, _truth(alert)


def judged_alike(alerts: Sequence[Alert]) -> list[Alert]:
    """The alerts that another gate, or another instance of a mapped one, has raised in the same way
    on the same date."""
    gates: dict[_Judged, set[tuple[str, int]]] = {}
    for alert in alerts:
        gates.setdefault(_judged(alert), set()).add((alert.gate, alert.map_index))
    return [alert for alert in alerts if len(gates[_judged(alert)]) > 1]


def rows_judged(
    store: StoredResults, alerts: Collection[Alert]
) -> tuple[tuple[str, Mapping[str, object]], ...]:
    """What identifies the rows that the runs of alerts have judged, by run and dataset: the
    location, the filter, and the content, or the version without it.

    :raises StoreError: the store exists and cannot be read.
    """
    if not alerts:
        return ()
    days = [alert.date for alert in alerts]
    wanted = RunsWanted(
        {alert.gate for alert in alerts},
        since=min(days),
        until=max(days),
        attempt_ids={alert.attempt_id for alert in alerts},
    )
    found = []
    for row in store.run_rows(wanted, ("run_id", "datasets")):
        items = json.loads(row.get("datasets") or "[]")
        identified = {item["name"]: _identity(item) for item in items}
        found.append((row["run_id"], identified))
    return tuple(found)


def _identity(item: Mapping[str, Any]) -> object:
    content = item.get("fingerprint") or item.get("version")
    if content is None or not item.get("location"):
        return None
    return trimmed_location(item["location"]), item.get("condition"), content
