"""Fingerprints of the files that a result is computed from, and of how these are read.

Added files are recognised as well: the fingerprint of the earlier files is a link in the chain that
leads to the fingerprint of all files. Nothing has a fingerprint if its files cannot be listed, as
for most catalog tables, or if its filter may select other rows tomorrow.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from functools import cached_property
from json.encoder import encode_basestring_ascii as _quoted
from typing import Any

import dqx_airflow
from dqx_airflow.engine.scan.fixed_filters import is_fixed
from dqx_airflow.engine.scan.frames import ReferenceTables
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.listing import DataFile, ListedFiles, files_at
from dqx_airflow.plan.passes import AggregateRequest
from dqx_airflow.values import DatasetRef


@dataclass(frozen=True, slots=True)
class LookedInto:
    """A dataset of a lookup that a result depends on: how it is read, on which date, and its
    files."""

    scope: str
    date: date | None
    chain: Chain

    @property
    def fingerprint(self) -> str:
        text = f"{self.scope} {self.date} {self.chain.fingerprint}"
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class InputFiles:
    """The files that a result depends on: the files of its dataset, and of the datasets of its
    lookups."""

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
        return self.own.is_older_than(moment_ns) and all(
            reference.chain.is_older_than(moment_ns) for reference in self.looked_into
        )


@dataclass(slots=True)
class FileSnapshot:
    """The files of datasets at one point in time.

    :param listed: returns the files at a path.
    :param scope: returns how a dataset is read.
    """

    listed: Callable[[OpenDataset], ListedFiles | None]
    scope: Callable[[OpenDataset], str]
    _files: dict[str, ListedFiles | None] = field(default_factory=dict)
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


def files_when_opened(dataset: OpenDataset) -> ListedFiles | None:
    """The files at the time a dataset was opened."""
    return None if dataset.files is None else ListedFiles(dataset.files)


def files_now(dataset: OpenDataset, dates: Collection[date | None]) -> ListedFiles | None:
    """The current files, at least those that may hold rows of some dates."""
    if dataset.files is None:
        return None
    files = files_at(dataset.location, dataset.folders_of(dates))
    return None if files is None else ListedFiles(files)


STATE_FORMAT = 4
"""Incremented whenever a state of the same aggregate and files changes its form or meaning."""

WITHOUT_EFFECT = frozenset(
    {
        # A state belongs to the data, whatever a gate calls it. The names of references are part of
        # the aggregates that look into them.
        "name",
        # The absolute path counts, as the location of the dataset.
        "path",
        # The files of the version count, with their partitions and columns.
        "version",
        "timestamp",
        # They choose which columns of failing rows are shown.
        "keys",
        # The values of a masked column are not stored at all.
        "masked",
        # It is for catalogs alone.
        "lineage_name",
    }
)
"""The settings of a dataset that do not affect its states. All other settings do."""

_COARSE_NS = 1_000_000_000
"""Object stores report times in whole seconds."""


@dataclass(frozen=True)
class Chain:
    """The files that may hold the rows of a date, oldest first, and everything else that affects a
    state.

    Each link is the fingerprint of the files up to one file: the first of none, the last of all.
    """

    ground: str
    files: tuple[DataFile, ...]

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.sha256(self.ground.encode())
        for file in self.files:
            digest.update(_link(file))
        return digest.hexdigest()

    def added_since(self, fingerprint: str) -> tuple[DataFile, ...] | None:
        """The files added since a fingerprint; None if anything else has changed."""
        if fingerprint == self.fingerprint:
            return ()
        start = self._links.get(fingerprint)
        return None if start is None else self.files[start:]

    def is_older_than(self, moment_ns: int) -> bool:
        """False if a file may have been rewritten since a timestamp and look the same: its time is
        in whole seconds and not before that timestamp."""
        return all(
            (time := file.changed_ns or file.modified_ns) % _COARSE_NS
            or time + _COARSE_NS <= moment_ns
            for file in self.files
        )

    @cached_property
    def _links(self) -> dict[str, int]:
        """The number of files of each link."""
        digest = hashlib.sha256(self.ground.encode())
        links = {digest.hexdigest(): 0}
        for number, file in enumerate(self.files, start=1):
            digest.update(_link(file))
            links[digest.hexdigest()] = number
        return links


def _link(file: DataFile) -> bytes:
    """A file in a fingerprint, as `json.dumps` writes it, in a third of its time."""
    path, size, modified_ns, changed_ns, inode, partition = file
    values = ", ".join(map(_quoted, partition))
    text = f"[{_quoted(path)}, {size}, {modified_ns}, {changed_ns}, {inode}, [{values}]]"
    return text.encode()


def scope_of(dataset: OpenDataset, settings: Mapping[str, str | None], spark_version: str) -> str:
    """The part of a fingerprint that does not depend on files: the location of a dataset, how it is
    read, and by which engine."""
    return _digest(
        {
            "state format": STATE_FORMAT,
            "versions": [dqx_airflow.__version__, spark_version],
            "settings": dict(settings),
            "location": dataset.location,
            "read by": _read_by(dataset.ref),
        }
    )


def _read_by(ref: DatasetRef) -> dict[str, Any]:
    """The settings that affect how a dataset is read: all of them, except for those listed."""
    names = (field.name for field in fields(ref) if field.name not in WITHOUT_EFFECT)
    return {name: getattr(ref, name) for name in names}


def chain_of(dataset: OpenDataset, on: date | None, listed: ListedFiles | None) -> Chain | None:
    """The chain of the files of a date; None if they are unknown, or if a filter may select other
    rows tomorrow.

    :param listed: the files at the path of a dataset without a transaction log.
    """
    condition = dataset.ref.filter
    if condition is not None and not is_fixed(condition, dataset.struct.names):
        return None
    version = None
    if dataset.log is not None:
        logged = dataset.log.files_held(on)
        if logged is None:
            return None
        files = logged
        # Rows deleted in place leave the files as they are, and the log does not list them.
        version = dataset.log.version if dataset.log.features else None
    elif dataset.files is not None and listed is not None:
        files = dataset.files_on(on, listed)
    else:
        return None
    columns = [(column.name, column.type) for column in dataset.fields]
    by_age = sorted(files, key=lambda file: (file.modified_ns, file.path))
    # A folder of any date may change how the strings in all of them are read.
    in_utf8 = [] if dataset.partitions is None else dataset.partitions.in_utf8
    return Chain(_json([columns, version, *in_utf8]), tuple(by_age))


def fingerprint_of(dataset: OpenDataset, on: date | None, opened_at: datetime) -> str | None:
    """The digest that identifies the rows of a date in a dataset, however often they are read; None
    if unknown, also for files that may have been rewritten since and look the same.

    :param opened_at: when its files were listed, or before.
    """
    listed = files_when_opened(dataset)
    chain = chain_of(dataset, on if dataset.dates is not None else None, listed)
    if chain is None or not chain.is_older_than(int(opened_at.timestamp() * 1_000_000_000)):
        return None
    read = {"location": dataset.location, "read by": _read_by(dataset.ref)}
    return _digest({**read, "files": chain.fingerprint})


def _digest(content: Any) -> str:
    return hashlib.sha256(_json(content).encode()).hexdigest()


def _json(content: Any) -> str:
    return json.dumps(content, default=str, sort_keys=True)
