"""Notices on a change of state: when a gate begins to block, and when it recovers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from dqx_airflow.operators.notices import Callback, GateNotice, gate_notice, summary_of

_BAD = ("blocked", "broken")

log = logging.getLogger(__name__)


def notify_on_change(make: Callable[[GateNotice], Any]) -> Callback:
    """A callback that sends a notice only when the gate has changed its state: it is blocked or
    broken and was not, or passes again. Give it as `on_failure_callback` and as
    `on_success_callback`.

    The earlier state is that of the last run in the results store, of any date of the data and of
    the same map index. Without a report, or where the store cannot be read, the notice is sent.
    """

    def notify(context: Any) -> None:
        if _is_change(context):
            make(gate_notice(context)).notify(context)

    return notify


def _is_change(context: Any) -> bool:
    ti = context["ti"]
    report = summary_of(ti)
    gate, outcome, run_id = (str(report.get(key) or "") for key in ("gate", "outcome", "run_id"))
    if not run_id:
        return True
    try:
        before = _outcome_before(context, gate, run_id, str(report.get("finished_at") or ""))
    except Exception:  # a notice too many is better than none
        log.exception("the earlier state of gate %s is unknown", gate)
        return True
    return (outcome in _BAD) != (before in _BAD)


def _outcome_before(context: Any, gate: str, run_id: str, finished_at: str) -> str | None:
    """The outcome of the last run of a gate before this one; None where there was none."""
    from dqx_airflow.operators.results_location import results_place
    from dqx_airflow.results.past import selecting
    from dqx_airflow.results.query import text_literal
    from dqx_airflow.results.run_lines import instance_condition
    from dqx_airflow.results.schema import RUNS

    ti, task = context["ti"], context.get("task")
    place = results_place(
        getattr(task, "results_root", None), getattr(task, "results_conn_id", None)
    )
    if place is None:
        raise LookupError("no results root is known")
    until = datetime.fromisoformat(finished_at).astimezone(timezone.utc).replace(tzinfo=None)
    where = [
        f'"gate" = {text_literal(gate)}',
        f'"run_id" <> {text_literal(run_id)}',
        "arrow_cast(\"finished_at\", 'Timestamp(Microsecond, None)') <= "
        f"TIMESTAMP '{until.isoformat()}'",
    ]
    if ti.map_index is not None and ti.map_index >= 0:
        where.append(instance_condition(ti.map_index))
    select = selecting(place.root, place.storage_options)
    rows = select(RUNS, ["outcome", "finished_at"], where, 'ORDER BY "finished_at" DESC LIMIT 1')
    return str(rows[0]["outcome"]) if rows else None
