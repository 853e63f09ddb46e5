"""Fingerprints, which prove that a stored state was computed from exactly the current files, read
in exactly the same way.

Added files are recognised as well: the fingerprint of the earlier files is a link in the chain that
leads to that of all files. Without a fingerprint nothing is reused: neither for catalog tables, nor
for paths whose files cannot be listed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from functools import cached_property
from types import MappingProxyType
from typing import Any

import dqx_airflow
from dqx_airflow.engine.scan.states.fixed_filters import is_fixed
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.listing import DataFile
from dqx_airflow.values import DatasetRef

STATE_FORMAT = 3
"""Incremented whenever a state of the same aggregate and files changes its form or meaning."""

WITHOUT_EFFECT = MappingProxyType(
    {
        "name": "a state belongs to the data, whatever a gate calls it; the names of references "
        "are part of the aggregates that look into them",
        "path": "the absolute path counts, which is the place of the dataset",
        "version": "the files of the version count, with their partitions and columns",
        "timestamp": "the files of the version count, with their partitions and columns",
        "keys": "they choose what is shown of failing rows",
        "masked": "what reveals a masked column is not stored at all",
        "lineage_name": "it is for catalogs alone",
    }
)
"""Why a dataset setting does not affect states. All other settings do."""

_COARSE_NS = 1_000_000_000
"""Object stores report times in whole seconds."""


@dataclass(frozen=True)
class Chain:
    """The files that may hold the rows of a date, oldest first, and everything else that affects a
    state.

    Each link is the fingerprint of the files up to one of them: the first of none, the last of all.
    """

    ground: str
    files: tuple[DataFile, ...]

    @property
    def fingerprint(self) -> str:
        return next(reversed(self._links))

    def added_since(self, fingerprint: str) -> tuple[DataFile, ...] | None:
        """The files added since a fingerprint; None if anything else has changed."""
        start = self._links.get(fingerprint)
        return None if start is None else self.files[start:]

    def is_older_than(self, moment_ns: int) -> bool:
        """False if a file may have been rewritten since a timestamp and look the same: its time is
        in whole seconds and not before that timestamp."""
        times = (file.changed_ns or file.modified_ns for file in self.files)
        return all(time % _COARSE_NS or time + _COARSE_NS <= moment_ns for time in times)

    @cached_property
    def _links(self) -> dict[str, int]:
        """The number of files of each link."""
        return {link: number for number, link in enumerate(self._hashed())}

    def _hashed(self) -> Iterator[str]:
        digest = hashlib.sha256(self.ground.encode())
        yield digest.hexdigest()
        for file in self.files:
            digest.update(_json([getattr(file, name) for name in _OF_FILE]).encode())
            yield digest.hexdigest()


_OF_FILE = tuple(field.name for field in fields(DataFile))


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


def chain_of(
    dataset: OpenDataset, on: date | None, listed: Sequence[DataFile] | None
) -> Chain | None:
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
        dates = dataset.dates
        files = [
            file for file in listed if dates is None or on is None or dates.may_be_in(on, file.path)
        ]
    else:
        return None
    columns = [(column.name, column.type) for column in dataset.fields]
    return Chain(_json([columns, version]), tuple(sorted(files, key=_age)))


def _age(file: DataFile) -> tuple[int, str]:
    return file.modified_ns, file.path


def _digest(content: Any) -> str:
    return hashlib.sha256(_json(content).encode()).hexdigest()


def _json(content: Any) -> str:
    return json.dumps(content, default=str, sort_keys=True)
