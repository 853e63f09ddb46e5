"""The published versions of contracts, in a folder: nothing in it is ever changed or deleted.

Below the folder of a contract each version has a folder of its own, numbered in the order of
publication, with the files of the contract as they were and an `entry.json`. A version is written
beside and then renamed, so that it is there as a whole or not at all; of two that are published at
the same time one gets the number, and the other one is held against it.
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
from typing import Any
from urllib.parse import quote

from dqx_airflow.contracts.model import Contract
from dqx_airflow.contracts.publishing import Objection, PublishedVersion, objections
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.contracts.references import FolderReader
from dqx_airflow.contracts.versions import Bump
from dqx_airflow.errors import RegistryError
from dqx_airflow.values import SourceFile

_ENTRY = "entry.json"
_FORMAT = 1
_MOST_TRIES = 100
_LONGEST_NAME = 150


@dataclass(frozen=True, slots=True)
class Publication:
    """What became of publishing a version: it is published, was so before, or there are reasons
    against it.
    """

    published: PublishedVersion | None
    objections: tuple[Objection, ...] = ()
    was_there: bool = False


@dataclass(frozen=True, slots=True)
class Registry:
    """A registry in a folder, which need not be there yet."""

    folder: Path

    def ids(self) -> tuple[str, ...]:
        """The ids of all contracts, in their order."""
        with _failures_told(self.folder):
            if not self.folder.is_dir():
                return ()
            homes = [home for home in self.folder.iterdir() if home.is_dir()]
            entries = (entry for home in homes for entry in _entries(home)[:1])
            return tuple(sorted(str(_record(entry)["id"]) for entry in entries))

    def versions(self, contract_id: str) -> tuple[PublishedVersion, ...]:
        """The published versions of a contract, the oldest publication first."""
        with _failures_told(self.folder):
            return tuple(map(_read, _entries(self._home(contract_id))))

    def texts(self, contract_id: str, number: int) -> Mapping[str, str]:
        """The files of a version by name, the contract itself first."""
        with _failures_told(self.folder):
            entry = self._home(contract_id) / _numbered(number)
            return {name: _text(entry / name) for name in _record(entry)["files"]}

    def publish(
        self,
        contract: Contract,
        texts: Mapping[str, str],
        on: date,
        *,
        semantic: Bump = Bump.MAJOR,
    ) -> Publication:
        """Publishes a version, unless something speaks against it.

        :param texts: the files of the contract by their names in its folder, itself first.
        :param on: the day of the publication.
        """
        digest = digest_of(texts)
        home = self._home(contract.id)
        for _ in range(_MOST_TRIES):
            known = self.versions(contract.id)
            found = objections(contract, digest, known, on, semantic=semantic)
            if found:
                return Publication(None, found)
            same = next((item for item in known if item.digest == digest), None)
            if same is not None:
                return Publication(same, was_there=True)
            number = known[-1].number + 1 if known else 1
            published = PublishedVersion(contract, number, on, digest)
            with _failures_told(self.folder):
                if _write(home, published, texts):
                    return Publication(published)
        raise RegistryError(
            f"too many others publish {contract.id} at the same time", "try again later"
        )

    def _home(self, contract_id: str) -> Path:
        return self.folder / _folder_name(contract_id)


def digest_of(texts: Mapping[str, str]) -> str:
    """A text that tells the content of some files from every other one."""
    content = json.dumps(list(texts.items()), ensure_ascii=True)
    return hashlib.sha256(content.encode()).hexdigest()


def _folder_name(contract_id: str) -> str:
    """A name for a folder, whatever the id holds."""
    name = quote(contract_id, safe=" ")
    if name.startswith("."):
        name = f"%2E{name[1:]}"
    if len(name) > _LONGEST_NAME:
        digest = hashlib.sha256(contract_id.encode()).hexdigest()[:16]
        name = f"{name[:_LONGEST_NAME]}-{digest}"
    return name


def _numbered(number: int) -> str:
    return f"{number:06}"


def _entries(home: Path) -> list[Path]:
    """The folders of versions, in the order of their numbers."""
    if not home.is_dir():
        return []
    return sorted(entry for entry in home.iterdir() if entry.name.isdigit())


def _record(entry: Path) -> dict[str, Any]:
    record = json.loads(_text(entry / _ENTRY))
    if not isinstance(record, dict) or record.get("format") != _FORMAT:
        raise RegistryError(f"{entry} is of another format", "use the version that wrote it")
    return record


def _read(entry: Path) -> PublishedVersion:
    record = _record(entry)
    texts = {name: _text(entry / name) for name in record["files"]}
    if digest_of(texts) != record["digest"]:
        raise RegistryError(
            f"{entry} was changed after it was published", "restore the files from a backup"
        )
    main, text = next(iter(texts.items()))
    found = read_contract(SourceFile(main, text), FolderReader((entry / main).parent))
    if found.contract is None:
        raise RegistryError(f"{entry} holds no contract", "restore the files from a backup")
    return PublishedVersion(
        found.contract, int(entry.name), date.fromisoformat(record["on"]), record["digest"]
    )


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8")


def _write(home: Path, published: PublishedVersion, texts: Mapping[str, str]) -> bool:
    """Writes a version; False where another one took its number in the meantime."""
    record = {
        "format": _FORMAT,
        "id": published.contract.id,
        "version": published.contract.version,
        "dialect": published.contract.dialect.value,
        "on": published.on.isoformat(),
        "digest": published.digest,
        "files": list(texts),
    }
    home.mkdir(parents=True, exist_ok=True)
    staged = Path(tempfile.mkdtemp(prefix=".publishing-", dir=home))
    try:
        staged.chmod(0o755)
        for name, text in texts.items():
            _write_text(staged / _harmless(name), text)
        _write_text(staged / _ENTRY, json.dumps(record, indent=2, ensure_ascii=False) + "\n")
        # A folder that is not empty is never replaced: there is one winner.
        staged.rename(home / _numbered(published.number))
    except OSError:
        if (home / _numbered(published.number)).exists():
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
def _failures_told(folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError) as error:
        cause = getattr(error, "strerror", None) or error
        raise RegistryError(
            f"the registry {folder} cannot be read or written: {cause}",
            "is it a registry, and may you write there?",
        ) from error
