"""The files that results depend on, at one point in time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date

from dqx_airflow.engine.scan.frames import ReferenceTables
from dqx_airflow.engine.scan.results import AggregateRequest
from dqx_airflow.engine.scan.states.fingerprints import Chain, chain_of
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.listing import DataFile, files_at


@dataclass(frozen=True, slots=True)
class LookedInto:
    """A dataset that a result looks into: how it is read, on which date, and its files."""

    scope: str
    date: date | None
    chain: Chain

    @property
    def fingerprint(self) -> str:
        text = f"{self.scope} {self.date} {self.chain.fingerprint}"
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class InputFiles:
    """The files that a result depends on: those of its dataset, and those of its lookups."""

    own: Chain
    looked_into: tuple[LookedInto, ...]

    @property
    def fingerprint(self) -> str:
        return " ".join(
            (self.own.fingerprint, *(reference.fingerprint for reference in self.looked_into))
        )

    def added_since(self, fingerprint: str) -> tuple[DataFile, ...] | None:
        """The files added to the dataset; None if anything else has changed."""
        of_dataset, *looked_into = fingerprint.split(" ")
        is_same = looked_into == [reference.fingerprint for reference in self.looked_into]
        return self.own.added_since(of_dataset) if is_same else None

    def is_older_than(self, moment_ns: int) -> bool:
        """False if a file may have been rewritten since a timestamp and look the same."""
        chains = (self.own, *(reference.chain for reference in self.looked_into))
        return all(chain.is_older_than(moment_ns) for chain in chains)


@dataclass(slots=True)
class FileSnapshot:
    """The files of datasets at one point in time.

    :param listed: returns the files at a path.
    :param scope: returns how a dataset is read.
    """

    listed: Callable[[OpenDataset], Sequence[DataFile] | None]
    scope: Callable[[OpenDataset], str]
    _files: dict[str, Sequence[DataFile] | None] = field(default_factory=dict)
    _chains: dict[tuple[str, date | None], Chain | None] = field(default_factory=dict)

    def inputs_of(
        self, request: AggregateRequest, dataset: OpenDataset, references: ReferenceTables
    ) -> InputFiles | None:
        """All files that an aggregate depends on; None if they are unknown."""
        if not request.is_storable:
            return None
        own_chain = self._chain(dataset, request.date)
        if own_chain is None:
            return None
        looked_into = []
        for name in request.looks_into:
            reference = references.opened[name]
            on = references.date if reference.ref.date_column else None
            chain = self._chain(reference, on)
            if chain is None:
                return None
            looked_into.append(LookedInto(self.scope(reference), on, chain))
        return InputFiles(own_chain, tuple(looked_into))

    def _chain(self, dataset: OpenDataset, on: date | None) -> Chain | None:
        name = dataset.ref.name
        if name not in self._files:
            self._files[name] = self.listed(dataset)
        if (name, on) not in self._chains:
            self._chains[name, on] = chain_of(dataset, on, self._files[name])
        return self._chains[name, on]


def files_when_opened(dataset: OpenDataset) -> Sequence[DataFile] | None:
    """The files at the time a dataset was opened."""
    return dataset.files


def files_now(dataset: OpenDataset) -> Sequence[DataFile] | None:
    """The current files."""
    return None if dataset.files is None else files_at(dataset.location)
