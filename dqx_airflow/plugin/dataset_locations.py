"""Datasets by their location: the gates that read one, and those that promote rows into it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dqx_airflow.lineage.locations import location_of, trimmed_location
from dqx_airflow.plugin.airflow import TaskRun
from dqx_airflow.plugin.report_view import ReportView, Summary, outcome_of_summary, view_of_summary
from dqx_airflow.values import DatasetSnapshot


@dataclass(frozen=True, slots=True)
class LocatedDataset:
    """A dataset of a gate: its name in the gate, and its location."""

    name: str
    location: str


def location_in(gate: str, snapshot: DatasetSnapshot) -> str:
    """The location of a dataset of a gate; for a query, or if it is unknown, its name there."""
    location = location_of(snapshot) if snapshot.location else None
    return location or _name_in(gate, snapshot)


def is_at(location: str, gate: str, snapshot: DatasetSnapshot) -> bool:
    """Whether a dataset of a gate is there; summaries of older versions only have its name."""
    return location in (location_in(gate, snapshot), _name_in(gate, snapshot))


def _name_in(gate: str, snapshot: DatasetSnapshot) -> str:
    return _nameless(snapshot.name, gate)


def datasets_in(report: ReportView) -> tuple[LocatedDataset, ...]:
    """The datasets of a report."""
    return tuple(
        LocatedDataset(snapshot.name, location_in(report.gate, snapshot))
        for snapshot in report.datasets
    )


def promotions_in(report: ReportView) -> tuple[str, ...]:
    """The locations into which a report's rows were promoted."""
    done = (
        promotion.location
        for promotion in report.promotions
        if promotion.version is not None and promotion.location
    )
    return tuple(map(trimmed_location, done))


def runs_reading(runs: Iterable[TaskRun], location: str) -> list[TaskRun]:
    """The runs of the task instances that recently read or filled a location, in the same order.

    An instance of a mapped task that was about other data in another run is left out.
    """
    candidates = [(run, _is_about(run.pushed, location)) for run in runs]
    instances = {_instance(run) for run, is_about in candidates if is_about}
    return [
        run
        for run, is_about in candidates
        if is_about or (_instance(run) in instances and outcome_of_summary(run.pushed) is None)
    ]


def _is_about(pushed: object, location: str) -> bool:
    """Whether a summary is about a location; most are not, and are not parsed further."""
    if not isinstance(pushed, Mapping) or location not in _mentioned(pushed):
        return False
    if outcome_of_summary(pushed) is None:
        return False
    view = view_of_summary(pushed)
    assert view is not None
    return location in (*(dataset.location for dataset in datasets_in(view)), *promotions_in(view))


def _mentioned(pushed: Mapping[str, Any]) -> frozenset[str]:
    """A superset of the locations that a summary may be about."""
    if not isinstance(pushed, Summary):
        return _locations_and_names(pushed)
    if not hasattr(pushed, "mentioned"):
        pushed.mentioned = _locations_and_names(pushed)
    return pushed.mentioned


def _locations_and_names(pushed: Mapping[str, Any]) -> frozenset[str]:
    locations, validated = pushed.get("places"), pushed.get("validated")
    mentioned = (
        {str(location) for location in locations.values()}
        if isinstance(locations, Mapping)
        else set()
    )
    if isinstance(validated, Mapping):
        locations = (
            entry.get("location") for entry in validated.values() if isinstance(entry, Mapping)
        )
        mentioned |= {
            trimmed_location(location) for location in locations if isinstance(location, str)
        }
    datasets = pushed.get("datasets")
    if isinstance(datasets, list):
        mentioned |= {_nameless(name, pushed.get("gate")) for name in datasets}
    return frozenset(mentioned)


def _nameless(name: object, gate: object) -> str:
    return f"{name} of {gate}"


def _instance(run: TaskRun) -> tuple[str, str, int]:
    return run.dag_id, run.task_id, run.map_index
