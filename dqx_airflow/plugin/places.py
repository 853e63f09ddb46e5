"""Datasets by their place: which gates read one, and which put rows that passed into it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dqx_airflow.lineage.places import place_at, place_of
from dqx_airflow.plugin.airflow import TaskRun
from dqx_airflow.plugin.report_view import ReportView, view_of_summary
from dqx_airflow.values import DatasetSnapshot


@dataclass(frozen=True, slots=True)
class PlacedDataset:
    """A dataset of a gate: what the gate calls it, and where it is."""

    name: str
    place: str


def place_in(gate: str, snapshot: DatasetSnapshot) -> str:
    """The place of a dataset of a gate; of a query, or where nothing says it, its name there."""
    known = place_of(snapshot) if snapshot.location else None
    return known or _name_in(gate, snapshot)


def is_at(place: str, gate: str, snapshot: DatasetSnapshot) -> bool:
    """Whether a dataset of a gate is there; summaries of older versions know only its name."""
    return place in (place_in(gate, snapshot), _name_in(gate, snapshot))


def _name_in(gate: str, snapshot: DatasetSnapshot) -> str:
    return f"{snapshot.name} of {gate}"


def datasets_in(report: ReportView) -> tuple[PlacedDataset, ...]:
    """The datasets of a report."""
    return tuple(PlacedDataset(one.name, place_in(report.gate, one)) for one in report.datasets)


def promotions_in(report: ReportView) -> tuple[str, ...]:
    """The places into which rows of a report went that had passed."""
    done = (one.location for one in report.promotions if one.version is not None and one.location)
    return tuple(map(place_at, done))


def runs_reading(runs: Iterable[TaskRun], place: str) -> list[TaskRun]:
    """The runs of the task instances that lately read or filled a place, in the same order.

    An instance of a mapped task may be about other data in another run: that is left out.
    """
    known = [(run, view_of_summary(run.pushed)) for run in runs]
    about = {
        id(run): view is not None and place in (*_places(view), *promotions_in(view))
        for run, view in known
    }
    instances = {_instance(run) for run, _ in known if about[id(run)]}
    return [
        run
        for run, view in known
        if about[id(run)] or (view is None and _instance(run) in instances)
    ]


def _places(view: ReportView) -> tuple[str, ...]:
    return tuple(one.place for one in datasets_in(view))


def _instance(run: TaskRun) -> tuple[str, str, int]:
    return run.dag_id, run.task_id, run.map_index
