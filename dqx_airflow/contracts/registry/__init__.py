"""The registry of contracts: their published versions, which never change.

A home stores them: a folder (`registry.folder`) or a Delta table (`registry.table`). The rules of
publication are the same for both. The versions of a contract are numbered in the order of
publication; of two versions that are published concurrently, one gets the number, and the other is
checked against it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path, PurePosixPath
from posixpath import normpath

from dqx_airflow.contracts.model import Contract
from dqx_airflow.contracts.publishing import Blocker, PublishedVersion, objections
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.contracts.references import NotRead
from dqx_airflow.contracts.registry.folder import FolderHome
from dqx_airflow.contracts.registry.home import Home, VersionEntry
from dqx_airflow.errors import RegistryError
from dqx_airflow.values import SourceFile
from dqx_airflow.values.files import local_path

_MOST_TRIES = 100


@dataclass(frozen=True, slots=True)
class Publication:
    """The result of publishing a version: published now, published before, or objections."""

    published: PublishedVersion | None
    objections: tuple[Blocker, ...] = ()
    was_there: bool = False


@dataclass(frozen=True, slots=True)
class Registry:
    """The published versions in a home."""

    home: Home

    def ids(self) -> tuple[str, ...]:
        """The ids of all contracts, in their order."""
        return self.home.ids()

    def versions(self, contract_id: str) -> tuple[PublishedVersion, ...]:
        """The published versions of a contract, oldest first."""
        return tuple(map(_read, self.home.entries(contract_id)))

    def texts(self, contract_id: str, number: int) -> Mapping[str, str]:
        """The files of a version by name, the contract itself first."""
        entries = self.home.entries(contract_id)
        return next(entry.files for entry in entries if entry.number == number)

    def publish(
        self, contract: Contract, texts: Mapping[str, str], on: date, *, is_dry: bool = False
    ) -> Publication:
        """Publishes a version, unless there are objections.

        :param texts: the files of the contract by their names in its folder, its own file first.
        :param on: the date of the publication.
        :param is_dry: publishes nothing, and returns the objections.
        """
        digest = digest_of(texts)
        for _ in range(_MOST_TRIES):
            versions = self.versions(contract.id)
            problems = objections(contract, digest, versions, on)
            if problems:
                return Publication(None, problems)
            same = next((version for version in versions if version.digest == digest), None)
            if same is not None:
                return Publication(same, was_there=True)
            number = versions[-1].number + 1 if versions else 1
            published = PublishedVersion(contract, number, on, digest)
            if is_dry or self.home.add(_entry(published, texts)):
                return Publication(published)
        raise RegistryError(f"too many concurrent publications of {contract.id}", "try again later")


def digest_of(texts: Mapping[str, str]) -> str:
    """A hash of the contents of some files."""
    content = json.dumps(list(texts.items()), ensure_ascii=True)
    return hashlib.sha256(content.encode()).hexdigest()


def _entry(published: PublishedVersion, texts: Mapping[str, str]) -> VersionEntry:
    contract = published.contract
    return VersionEntry(
        contract.id,
        published.number,
        contract.version,
        contract.dialect.value,
        published.on,
        published.digest,
        texts,
    )


def _read(entry: VersionEntry) -> PublishedVersion:
    shown = f"version {entry.version} of {entry.contract_id}"
    if digest_of(entry.files) != entry.digest:
        problem = f"{shown} was changed after it was published"
        raise RegistryError(problem, "restore it from a backup")
    main, text = next(iter(entry.files.items()))

    def read(referrer: str, path: str) -> SourceFile | NotRead:
        name = normpath(PurePosixPath(referrer).parent / path)
        if name not in entry.files:
            return NotRead(f"'{path}' was not published with the contract")
        return SourceFile(name, entry.files[name])

    result = read_contract(SourceFile(main, text), read, variables=None)
    if result.contract is None:
        raise RegistryError(f"{shown} is not a contract", "restore it from a backup")
    return PublishedVersion(result.contract, entry.number, entry.on, entry.digest)


_TABLE_MARK = "delta:"


def registry_at(place: str) -> Registry:
    """The registry at a location, which need not exist yet.

    A URL such as `s3://lake/contracts`, `delta:PATH` and the path of a Delta table mean a Delta
    table; every other path means a folder.

    :raises RegistryError: the location is invalid.
    """
    path = place.removeprefix(_TABLE_MARK)
    if not path.strip():
        raise RegistryError("no registry given", "give a folder, delta:PATH, or a URL")
    path = local_path(path)
    is_url = "://" in path
    path = path if is_url else os.path.abspath(os.path.expanduser(path))
    if is_url or place.startswith(_TABLE_MARK) or Path(path, "_delta_log").is_dir():
        from dqx_airflow.contracts.registry.table import TableHome

        return Registry(TableHome(path))
    return Registry(FolderHome(Path(path)))
