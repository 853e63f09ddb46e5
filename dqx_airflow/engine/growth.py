"""Which added files are read alone, for whose needs the rest is known from earlier runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from dqx_airflow.engine.files import DataFile
from dqx_airflow.engine.found import Begun, Need
from dqx_airflow.engine.opened import OpenDataset
from dqx_airflow.engine.readings import has_few_rows


def growths(
    dataset: OpenDataset, needs: Sequence[Need], begun: Mapping[Need, Begun]
) -> Iterator[tuple[Sequence[DataFile], list[Need]]]:
    """The files of each pass over added files, and the needs that it completes.

    With few rows there is none, if all files have to be read for something else: another pass
    takes more than these files do.
    """
    groups: dict[tuple[date | None, int], list[Need]] = {}
    for need in needs:
        if need in begun:
            groups.setdefault((need.date, len(begun[need].added)), []).append(need)
    are_all = sum(map(len, groups.values())) == len(needs)
    if not are_all and has_few_rows(dataset, {need.date for need in needs}):
        return
    found: list[_Growth] = []
    for group in groups.values():
        part = begun[group[0]]
        growth = next((item for item in found if item.suits(part)), None)
        if growth is None:
            found.append(growth := _Growth())
        growth.take(part, group)
    for growth in found:
        yield list(growth.files), growth.needs


@dataclass(slots=True)
class _Growth:
    """Files that are read together: those that all of the needs lack, and none that one of them
    has counted already."""

    files: dict[DataFile, None] = field(default_factory=dict)
    needs: list[Need] = field(default_factory=list)
    parts: list[Begun] = field(default_factory=list)

    def suits(self, part: Begun) -> bool:
        together = self.files.keys() | set(part.added)
        return all(together.intersection(it.files) == set(it.added) for it in (*self.parts, part))

    def take(self, part: Begun, needs: Sequence[Need]) -> None:
        self.files |= dict.fromkeys(part.added)
        self.needs += needs
        self.parts.append(part)
