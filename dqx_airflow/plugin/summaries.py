"""The summaries of tasks, parsed once: the board displays thousands of them repeatedly.

The key of a summary is the id of its attempt, and the time at which it was pushed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from sqlalchemy import and_, select

from dqx_airflow.operators.outcome import XCOM_KEY
from dqx_airflow.plugin.report_view import Summary

_MOST_KEPT = 10_000
_ASKED_AT_ONCE = 500

_kept: dict[tuple[object, datetime], object] = {}
"""The parsed summaries, by the attempt and the time."""


def summaries_of(session: Any, timestamps: Mapping[Any, datetime]) -> dict[Any, object]:
    """The summaries of attempts under our key.

    :param timestamps: the time of the summary of each attempt.
    """
    pushed = {
        attempt_id: _kept[attempt_id, at]
        for attempt_id, at in timestamps.items()
        if (attempt_id, at) in _kept
    }
    missing = iter([attempt_id for attempt_id in timestamps if attempt_id not in pushed])
    while batch := list(islice(missing, _ASKED_AT_ONCE)):
        for attempt_id, at, value in session.execute(_pushed().where(TaskInstance.id.in_(batch))):
            _kept[attempt_id, at] = pushed[attempt_id] = as_pushed(value)
    for key in [*islice(_kept, max(len(_kept) - _MOST_KEPT, 0))]:
        _kept.pop(key, None)
    return pushed


def as_pushed(value: object) -> object:
    """The summary of a task, as in Airflow's table."""
    if isinstance(value, str):
        # Some ways into the table store the text of the JSON, not the JSON.
        try:
            value = json.loads(value)
        except ValueError:
            return None
    if isinstance(value, dict) and not isinstance(value, Summary):
        return Summary(value)
    return value


def _pushed() -> Any:
    pushed = and_(
        XComModel.dag_id == TaskInstance.dag_id,
        XComModel.task_id == TaskInstance.task_id,
        XComModel.run_id == TaskInstance.run_id,
        XComModel.map_index == TaskInstance.map_index,
        XComModel.key == XCOM_KEY,
    )
    return select(TaskInstance.id, XComModel.timestamp, XComModel.value).join(XComModel, pushed)
