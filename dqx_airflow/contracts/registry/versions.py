"""The registry of contracts: their published versions, which never change.

A home stores them: a folder (`registry.folder`), or a Delta table (`registry.table`). The rules of
publication are the same for both. The versions of a contract are numbered in the order of
publication; of two that are published concurrently one gets the number, and the other is checked
against it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Protocol

from dqx_airflow.contracts.model import Contract
from dqx_airflow.contracts.publishing import Objection, PublishedVersion, objections
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.contracts.versions import Bump
from dqx_airflow.errors import RegistryError
from dqx_airflow.values import SourceFile

FORMAT = 1
"""The format of entries; other formats are not supported."""

_MOST_TRIES = 100


@dataclass(frozen=True, slots=True)
class VersionEntry:
    """A published version in a home: the files of the contract by name, itself first.

    `version` and `dialect` are for users who inspect a home.
    """

    contract_id: str
    number: int
    version: str | None
    dialect: str
    on: date
    digest: str
    files: Mapping[str, str]


class Home(Protocol):
    """Storage of entries. Every method raises `RegistryError` if it cannot be used."""

    def ids(self) -> tuple[str, ...]:
        """The ids of all contracts, in their order."""
        ...

    def entries(self, contract_id: str) -> tuple[VersionEntry, ...]:
        """The entries of a contract, in numerical order."""
        ...

    def add(self, entry: VersionEntry) -> bool:
        """Stores an entry atomically; False if others wrote meanwhile: read them first."""
        ...


@dataclass(frozen=True, slots=True)
class Publication:
    """The result of publishing a version: it is published, or was before, or there are
    objections."""

    published: PublishedVersion | None
    objections: tuple[Objection, ...] = ()
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
        return next(
            entry.files for entry in self.home.entries(contract_id) if entry.number == number
        )

    def publish(
        self,
        contract: Contract,
        texts: Mapping[str, str],
        on: date,
        *,
        semantic: Bump = Bump.MAJOR,
        is_dry: bool = False,
    ) -> Publication:
        """Publishes a version, unless there are objections.

        :param texts: the files of the contract by their names in its folder, itself first.
        :param on: the date of the publication.
        :param is_dry: publishes nothing, and returns the objections.
        """
        digest = digest_of(texts)
        for _ in range(_MOST_TRIES):
            versions = self.versions(contract.id)
            problems = objections(contract, digest, versions, on, semantic=semantic)
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
        raise RegistryError(
            f"{shown} was changed after it was published", "restore it from a backup"
        )
    main, text = next(iter(entry.files.items()))
    result = read_contract(SourceFile(main, text), _FilesReader(entry.files), variables=None)
    if result.contract is None:
        raise RegistryError(f"{shown} is not a contract", "restore it from a backup")
    return PublishedVersion(result.contract, entry.number, entry.on, entry.digest)


@dataclass(frozen=True, slots=True)
class _FilesReader:
    """Reads the files that were published with a contract."""

    files: Mapping[str, str]

    def __call__(self, referrer: str, path: str) -> SourceFile | str:
        name = normpath(PurePosixPath(referrer).parent / path)
        if name not in self.files:
            return f"'{path}' was not published with the contract"
        return SourceFile(name, self.files[name])
