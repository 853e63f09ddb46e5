"""Registries of contracts: a folder, or a Delta table.

The folder of a contract has a folder for each version, with the original files of the contract and
an `entry.json`. A version is written next to it and then renamed, so that it is published
atomically.

Delta lets several writers append concurrently. So each version leaves a transaction identifier that
consists of its contract and its number: Delta refuses the second of two commits with the same one.
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
from urllib.parse import quote, unquote, urlsplit

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from dqx_airflow.delta_log import require_whole_commits
from dqx_airflow.errors import RegistryError, first_line
from dqx_airflow.registry.versions import FORMAT, Registry, VersionEntry

_TABLE_MARK = "delta:"


def registry_at(place: str) -> Registry:
    """The registry at a location, which need not exist yet.

    A URL such as `s3://lake/contracts` and `delta:PATH` mean a Delta table, and so does the path of
    one; every other path means a folder.

    :raises RegistryError: the location is invalid.
    """
    path = place.removeprefix(_TABLE_MARK)
    if not path.strip():
        raise RegistryError("no registry given", "give a folder, delta:PATH, or a URL")
    if path.startswith("file://"):
        path = unquote(urlsplit(path).path)
    is_url = "://" in path
    path = path if is_url else os.path.abspath(os.path.expanduser(path))
    if is_url or place.startswith(_TABLE_MARK) or Path(path, "_delta_log").is_dir():
        return Registry(TableHome(path))
    return Registry(FolderHome(Path(path)))


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
            return tuple(map(_read, _folders(self._home(contract_id))))

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


def _read(folder: Path) -> VersionEntry:
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


_FILE = pa.struct([("name", pa.string()), ("text", pa.string())])
_SCHEMA = pa.schema(
    [
        ("contract_id", pa.string()),
        ("number", pa.int64()),
        ("version", pa.string()),
        ("dialect", pa.string()),
        ("published_on", pa.date32()),
        ("digest", pa.string()),
        ("files", pa.list_(_FILE)),
        ("format", pa.int64()),
    ]
)
_APPEND_ONLY = {"delta.appendOnly": "true"}


@dataclass(frozen=True, slots=True)
class TableHome:
    """The home of a registry in a Delta table: a local path, or a URL.

    The table need not exist yet: the first version creates it. Credentials for a URL come from the
    environment.
    """

    place: str

    def ids(self) -> tuple[str, ...]:
        with self._registry_errors():
            table = self._table()
            if table is None:
                return ()
            ids = table.to_pyarrow_table(columns=["contract_id"])
            return tuple(sorted(set(ids["contract_id"].to_pylist())))

    def entries(self, contract_id: str) -> tuple[VersionEntry, ...]:
        with self._registry_errors():
            table = self._table()
            if table is None:
                return ()
            entries = table.to_pyarrow_table(filters=[("contract_id", "=", contract_id)])
            rows = sorted(entries.to_pylist(), key=lambda row: row["number"])
            return tuple(self._entry(row) for row in rows)

    def add(self, entry: VersionEntry) -> bool:
        name = f"dqx:contract:{entry.contract_id}:{entry.number}"
        once = CommitProperties(app_transactions=[Transaction(name, 1)])
        with self._registry_errors():
            table = self._table() or self._created()
            if table.transaction_version(name) is not None:
                return False
            try:
                rows = pa.Table.from_pylist([_row(entry)], schema=_SCHEMA)
                write_deltalake(table, rows, mode="append", commit_properties=once)
            except CommitFailedError:
                return False  # the number is taken, or another writer has created the table as well
        return True

    def _table(self) -> DeltaTable | None:
        """The current table, if there is one."""
        if "://" not in self.place and not _has_log(self.place):
            return None
        try:
            table = DeltaTable(self.place)
        except TableNotFoundError:
            return None
        require_whole_commits(self.place, table.version())
        columns = {column.name for column in table.schema().fields}
        if not columns.issuperset(_SCHEMA.names):
            raise RegistryError(
                f"{self.place} is a Delta table, but not a registry of contracts",
                "choose another location: publishing the first version creates the table",
            )
        return table

    def _created(self) -> DeltaTable:
        try:
            return DeltaTable.create(
                self.place, schema=_SCHEMA, mode="ignore", configuration=_APPEND_ONLY
            )
        except DeltaError:
            # Another writer has just created it. If not, the error is raised here.
            table = self._table()
            if table is None:
                raise
            return table

    def _entry(self, row: dict[str, Any]) -> VersionEntry:
        if row["format"] != FORMAT:
            raise RegistryError(
                f"version {row['version']} of {row['contract_id']} in {self.place} has an "
                f"unknown format",
                "use the version that wrote it",
            )
        return VersionEntry(
            row["contract_id"],
            row["number"],
            row["version"],
            row["dialect"],
            row["published_on"],
            row["digest"],
            {file["name"]: file["text"] for file in row["files"]},
        )

    @contextmanager
    def _registry_errors(self) -> Iterator[None]:
        try:
            yield
        except RegistryError:
            raise
        except Exception as error:  # deltalake has no base class for its exceptions
            raise RegistryError(
                f"the registry {self.place} cannot be read or written: {first_line(error)}",
                "check the location, your permissions, and the keys in the environment",
            ) from error


def _row(entry: VersionEntry) -> dict[str, Any]:
    return {
        "contract_id": entry.contract_id,
        "number": entry.number,
        "version": entry.version,
        "dialect": entry.dialect,
        "published_on": entry.on,
        "digest": entry.digest,
        "files": [{"name": name, "text": text} for name, text in entry.files.items()],
        "format": FORMAT,
    }


def _has_log(path: str) -> bool:
    """True if a local path contains a Delta table. deltalake says "not found" for anything else."""
    try:
        names = os.listdir(path)
    except FileNotFoundError:
        return False
    if names and "_delta_log" not in names:
        raise RegistryError(
            f"{path} is a folder with files, but not a Delta table",
            "choose a new location; or remove `delta:` if it is a registry in a folder",
        )
    return "_delta_log" in names
