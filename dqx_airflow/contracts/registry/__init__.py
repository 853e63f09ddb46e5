"""The registry of contracts: their published versions, which never change.

A home stores them: a folder, or a Delta table (`registry.table`). The rules of publication are the
same for both. The versions of a contract are numbered in the order of publication; of two versions
that are published concurrently, one gets the number, and the other is checked against it.

The folder of a contract has a folder for each version, with the original files of the contract and
an `entry.json`. A version is written next to it and then renamed, so that it is published
atomically.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any, Protocol
from urllib.parse import quote

from dqx_airflow.contracts.model import Contract
from dqx_airflow.contracts.publishing import Blocker, PublishedVersion, objections
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.errors import RegistryError
from dqx_airflow.values import SourceFile
from dqx_airflow.values.files import local_path

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
        """Stores an entry atomically; False if another process has added an entry meanwhile, which
        must be read first."""
        ...


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

    def read(referrer: str, path: str) -> SourceFile | str:
        name = normpath(PurePosixPath(referrer).parent / path)
        if name not in entry.files:
            return f"'{path}' was not published with the contract"
        return SourceFile(name, entry.files[name])

    result = read_contract(SourceFile(main, text), read, variables=None)
    if result.contract is None:
        raise RegistryError(f"{shown} is not a contract", "restore it from a backup")
    return PublishedVersion(result.contract, entry.number, entry.on, entry.digest)


_ENTRY = "entry.json"
_LONGEST_NAME = 150


@dataclass(frozen=True, slots=True)
class FolderHome:
    """The home of a registry in a folder, which need not exist yet."""

    folder: Path

    def ids(self) -> tuple[str, ...]:
        with _registry_errors(self.folder):
            if not self.folder.is_dir():
                return ()
            homes = [home for home in self.folder.iterdir() if home.is_dir()]
            first = (entry for home in homes for entry in _folders(home)[:1])
            return tuple(sorted(str(_record(entry)["id"]) for entry in first))

    def entries(self, contract_id: str) -> tuple[VersionEntry, ...]:
        with _registry_errors(self.folder):
            return tuple(map(_entry_in, _folders(self._home(contract_id))))

    def add(self, entry: VersionEntry) -> bool:
        with _registry_errors(self.folder):
            return _write(self._home(entry.contract_id), entry)

    def _home(self, contract_id: str) -> Path:
        return self.folder / _folder_name(contract_id)


def _folder_name(contract_id: str) -> str:
    """The name of a folder for any id."""
    name = quote(contract_id, safe=" ")
    if name.startswith("."):
        name = f"%2E{name[1:]}"
    if len(name) > _LONGEST_NAME:
        digest = hashlib.sha256(contract_id.encode()).hexdigest()[:16]
        name = f"{name[:_LONGEST_NAME]}-{digest}"
    return name


def _folders(home: Path) -> list[Path]:
    """The folders of versions, in numerical order."""
    if not home.is_dir():
        return []
    return sorted(folder for folder in home.iterdir() if folder.name.isdigit())


def _record(folder: Path) -> dict[str, Any]:
    record = json.loads(_text(folder / _ENTRY))
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise RegistryError(f"{folder} has an unknown format", "use the version that wrote it")
    return record


def _entry_in(folder: Path) -> VersionEntry:
    record = _record(folder)
    return VersionEntry(
        record["id"],
        int(folder.name),
        record["version"],
        record["dialect"],
        date.fromisoformat(record["on"]),
        record["digest"],
        {name: _text(folder / _harmless(name)) for name in record["files"]},
    )


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8")


def _write(home: Path, entry: VersionEntry) -> bool:
    """Writes an entry; False if another writer has taken its number meanwhile."""
    record = {
        "format": FORMAT,
        "id": entry.contract_id,
        "version": entry.version,
        "dialect": entry.dialect,
        "on": entry.on.isoformat(),
        "digest": entry.digest,
        "files": list(entry.files),
    }
    place = home / f"{entry.number:06}"
    home.mkdir(parents=True, exist_ok=True)
    staged = Path(tempfile.mkdtemp(prefix=".publishing-", dir=home))
    try:
        staged.chmod(0o755)
        for name, text in entry.files.items():
            _write_text(staged / _harmless(name), text)
        _write_text(staged / _ENTRY, json.dumps(record, indent=2, ensure_ascii=False) + "\n")
        # A folder that is not empty is never replaced: there is a single winner.
        staged.rename(place)
    except OSError:
        if place.exists():
            return False
        raise
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return True


def _harmless(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or path.name == _ENTRY:
        raise RegistryError(f"a file cannot be named {name} in the registry", "rename it")
    return path


def _write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(text.encode("utf-8"))
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _registry_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError) as error:
        cause = getattr(error, "strerror", None) or error
        raise RegistryError(
            f"the registry {folder} cannot be read or written: {cause}",
            "check that it is a registry and that you may write to it",
        ) from error


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
