"""The files that results depend on, as they were at one moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date

from dqx_airflow.engine.files import DataFile, files_at
from dqx_airflow.engine.fingerprints import Chain, chain_of
from dqx_airflow.engine.found import Need
from dqx_airflow.engine.frames import References
from dqx_airflow.engine.opened import OpenDataset


@dataclass(frozen=True, slots=True)
class Basis:
    """The files that a result depends on: those of its dataset, and those of its lookups."""

    own: Chain
    looked_into: tuple[str, ...]

    @property
    def fingerprint(self) -> str:
        return " ".join((self.own.fingerprint, *self.looked_into))

    def added_since(self, fingerprint: str) -> tuple[DataFile, ...] | None:
        """The files of the dataset that were added; None where anything else has changed."""
        own, *looked_into = fingerprint.split(" ")
        return self.own.added_since(own) if tuple(looked_into) == self.looked_into else None


@dataclass(slots=True)
class Sight:
    """The files of datasets as they were at one moment. `listed` tells those at a path."""

    listed: Callable[[OpenDataset], Sequence[DataFile] | None]
    _files: dict[str, Sequence[DataFile] | None] = field(default_factory=dict)
    _chains: dict[tuple[str, date | None], Chain | None] = field(default_factory=dict)

    def basis_of(self, need: Need, dataset: OpenDataset, references: References) -> Basis | None:
        """All files that a need depends on; None where they are not known."""
        if not need.is_storable:
            return None
        own = self._chain(dataset, need.date)
        looked_into = []
        for name in need.looks_into:
            reference = references.opened[name]
            on = references.date if reference.ref.date_column else None
            looked_into.append(self._chain(reference, on))
        known = [chain.fingerprint for chain in looked_into if chain is not None]
        is_known = own is not None and len(known) == len(looked_into)
        return Basis(own, tuple(known)) if own is not None and is_known else None

    def _chain(self, dataset: OpenDataset, on: date | None) -> Chain | None:
        name = dataset.ref.name
        if name not in self._files:
            self._files[name] = self.listed(dataset)
        if (name, on) not in self._chains:
            self._chains[name, on] = chain_of(dataset, on, self._files[name])
        return self._chains[name, on]


def as_opened() -> Sight:
    """The files that were there when the datasets were opened."""
    return Sight(lambda dataset: dataset.files)


def as_now() -> Sight:
    """The files that are there when somebody asks for them."""
    return Sight(lambda dataset: None if dataset.files is None else files_at(dataset.location))
