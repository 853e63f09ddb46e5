"""Fingerprints: by them a stored state is known to be that of the very files that are there now.

Where files were only added, that is known too: the fingerprint of those before is a link of the
chain that leads to the one of all. No fingerprint, no reuse: of catalog tables, and of places whose
files cannot be listed, nothing is taken from the store.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any

from pyspark.sql import SparkSession

import dqx_airflow
from dqx_airflow.engine.files import DataFile
from dqx_airflow.engine.opened import OpenDataset

_SETTINGS = (
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
    "spark.sql.legacy.timeParserPolicy",
)
"""The settings of a session that change what an aggregate yields."""


_CALLS = re.compile(r"\(|current_|localtimestamp", re.IGNORECASE)
"""Whatever may be a call in a filter: `now()`, `rand()`, and `current_date` without brackets."""


@dataclass(frozen=True)
class Chain:
    """The files that may hold the rows of a date, oldest first, and all else that makes a state.

    Each link is the fingerprint of the files up to one of them: the first of none, the last of all.
    """

    ground: str
    files: tuple[DataFile, ...]

    @property
    def fingerprint(self) -> str:
        return next(reversed(self._links))

    def added_since(self, fingerprint: str) -> tuple[DataFile, ...] | None:
        """The files that are there besides those of a fingerprint; None where more has changed."""
        there = self._links.get(fingerprint)
        return None if there is None else self.files[there:]

    @cached_property
    def _links(self) -> dict[str, int]:
        """How many files each link is of."""
        return {link: number for number, link in enumerate(self._hashed())}

    def _hashed(self) -> Iterator[str]:
        found = hashlib.sha256(self.ground.encode())
        yield found.hexdigest()
        for file in self.files:
            length = len(file.path)  # without it, one path could pass for two files
            found.update(f"{length}:{file.path}:{file.size}:{file.modified_ns};".encode())
            yield found.hexdigest()


def scope_of(dataset: OpenDataset, spark: SparkSession) -> str:
    """What the states of a dataset have in common, whatever its files: where it is, how it is
    read, and by which engine."""
    ref = dataset.ref
    settings = [spark.conf.get(name, None) for name in _SETTINGS]
    read = [dataset.location, ref.format, sorted(ref.options), ref.filter, ref.schema]
    read += [ref.date_column, ref.date_format, ref.time_zone]
    return _digest([read, settings, dqx_airflow.__version__, spark.version])


def chain_of(
    dataset: OpenDataset, on: date | None, listed: Sequence[DataFile] | None
) -> Chain | None:
    """The files of a date; None where they cannot be told, and where a filter may let other rows
    through tomorrow.

    :param listed: the files at the path of a dataset that has no log.
    """
    if dataset.ref.filter is not None and _CALLS.search(dataset.ref.filter):
        return None
    version = None
    if dataset.log is not None:
        files = dataset.log.files_of(on)
        # Rows deleted in place leave the files as they are, and the log does not list them.
        version = dataset.log.version if dataset.log.features else None
    elif dataset.files is not None and listed is not None:
        dates = dataset.dates
        files = [
            file for file in listed if dates is None or on is None or dates.may_be_in(on, file.path)
        ]
    else:
        return None
    fields = [(field.name, field.type) for field in dataset.fields]
    return Chain(_json([fields, version]), tuple(sorted(files, key=_age)))


def _age(file: DataFile) -> tuple[int, str]:
    return file.modified_ns, file.path


def _digest(content: Any) -> str:
    return hashlib.sha256(_json(content).encode()).hexdigest()


def _json(content: Any) -> str:
    return json.dumps(content, default=str, sort_keys=True)
