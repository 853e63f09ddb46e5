"""A registry of contracts in a folder.

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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from dqx_airflow.contracts.registry.home import FORMAT, VersionEntry
from dqx_airflow.errors import RegistryError

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
