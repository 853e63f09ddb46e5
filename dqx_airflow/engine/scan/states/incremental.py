"""The added files that are read separately, for aggregates that earlier runs began."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from dqx_airflow.engine.scan.passes import has_few_rows
from dqx_airflow.engine.scan.results import AggregateRequest, PartialState
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.listing import DataFile


def added_file_passes(
    dataset: OpenDataset,
    requests: Sequence[AggregateRequest],
    partial_states: Mapping[AggregateRequest, PartialState],
) -> Iterator[tuple[Sequence[DataFile], list[AggregateRequest]]]:
    """The files of each pass over added files, and the aggregates that it completes.

    With few rows there is none if all files have to be read anyway: another pass costs more than
    reading these files again.
    """
    groups: dict[tuple[date | None, int], list[AggregateRequest]] = {}
    for request in requests:
        if request in partial_states:
            groups.setdefault((request.date, len(partial_states[request].added)), []).append(
                request
            )
    are_all = sum(map(len, groups.values())) == len(requests)
    if not are_all and has_few_rows(dataset, {request.date for request in requests}):
        return
    growths: list[_Growth] = []
    for group in groups.values():
        part = partial_states[group[0]]
        growth = next((growth for growth in growths if growth.suits(part)), None)
        if growth is None:
            growths.append(growth := _Growth())
        growth.take(part, group)
    for growth in growths:
        yield list(growth.files), growth.requests


@dataclass(slots=True)
class _Growth:
    """Files that are read together: all of the aggregates lack all of them."""

    files: dict[DataFile, None] = field(default_factory=dict)
    requests: list[AggregateRequest] = field(default_factory=list)
    parts: list[PartialState] = field(default_factory=list)

    def suits(self, part: PartialState) -> bool:
        together = self.files.keys() | set(part.added)
        return all(
            together.intersection(state.files) == set(state.added) for state in (*self.parts, part)
        )

    def take(self, part: PartialState, requests: Sequence[AggregateRequest]) -> None:
        self.files |= dict.fromkeys(part.added)
        self.requests += requests
        self.parts.append(part)
