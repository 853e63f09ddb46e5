"""A registry of contracts in a Delta table: one row for each published version.

Delta lets several writers append concurrently. So each version leaves a transaction identifier that
consists of its contract and its number: Delta refuses the second of two commits with the same
identifier.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from dqx_airflow.contracts.registry.home import FORMAT, VersionEntry
from dqx_airflow.datasets.delta_log import require_whole_commits
from dqx_airflow.errors import RegistryError, first_line

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
        named = (row[name] for name in _SCHEMA.names)
        contract_id, number, version, dialect, on, digest, listed, _ = named
        files = {file["name"]: file["text"] for file in listed}
        return VersionEntry(contract_id, number, version, dialect, on, digest, files)

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
    files = [{"name": name, "text": text} for name, text in entry.files.items()]
    return asdict(entry) | {"published_on": entry.on, "files": files, "format": FORMAT}


def _has_log(path: str) -> bool:
    """True if a local path has a Delta table. deltalake reports "not found" for anything else."""
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
