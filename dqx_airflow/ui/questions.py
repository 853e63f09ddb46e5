"""Incidents beside the questions that are open in Airflow: the store has only what gates wrote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from dqx_airflow.results.incidents import ASKED, Incident, IncidentNote
from dqx_airflow.ui.airflow import Question


def as_airflow_knows(
    incidents: Iterable[Incident], questions: Mapping[str, Question]
) -> tuple[Incident, ...]:
    """The incidents, waiting exactly if their tasks wait.

    :param questions: the open questions by the id of the attempt.
    """
    return tuple(_as_known(one, questions.get(one.last.attempt.id)) for one in incidents)


def _as_known(incident: Incident, question: Question | None) -> Incident:
    if question is None:
        if incident.question is None:
            return incident
        # The task was marked, cleared or deleted while it waited.
        return replace(incident, notes=tuple(n for n in incident.notes if n.kind != ASKED))
    if incident.question is not None:
        return incident
    last = incident.last
    note = IncidentNote(
        gate=last.run_key.gate,
        date=incident.date,
        kind=ASKED,
        author=last.run_key.gate,
        text=question.default or "",
        map_index=incident.map_index,
        slice=last.slice,
        run_id=last.run_id,
        at=question.since,
        until=question.until,
    )
    return replace(incident, notes=(*incident.notes, note))
