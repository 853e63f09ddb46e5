"""The files of a Delta table as storage has them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat
from stat import S_ISREG

from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType

from dqx_airflow.datasets.delta_log import table_files
from dqx_airflow.engine.sources.listing import is_local

_THREADS = 16


@dataclass(frozen=True, slots=True)
class StoredFile:
    """An existing file. `changed_ns` is the latest of its times; on this machine that includes the
    change time of its inode, which cannot be set back."""

    size: int
    changed_ns: int
    inode: int = 0


@dataclass(slots=True)
class TableStorage:
    """The storage of a table at a path, as Spark reads it, with a cache of what was listed: each
    folder once, also if files of it are looked at several times."""

    root: str
    _names: dict[str, frozenset[str]] = field(default_factory=dict)
    _infos: dict[str, dict[str, FileInfo]] = field(default_factory=dict)
    _seen: dict[str, StoredFile | None] = field(default_factory=dict)

    def look_at(self, uris: Collection[str]) -> Mapping[str, StoredFile | None]:
        """The stored file at each path, or None if it does not exist.

        :raises OSError: a folder cannot be listed.
        """
        by_folder: dict[str, list[str]] = {}
        for uri in uris:
            if uri not in self._seen:
                by_folder.setdefault(uri.rpartition("/")[0], []).append(uri)
        far = {folder: in_folder for folder, in_folder in by_folder.items() if not is_local(folder)}
        for folder in by_folder.keys() - far.keys():
            if folder not in self._names:
                self._names[folder] = _names_in(folder)
            self._seen.update(_on_this_machine(self._names[folder], by_folder[folder]))
        if far:
            system = table_files(self.root)
            with ThreadPoolExecutor(min(_THREADS, len(far))) as threads:
                for stored in threads.map(self._far_away, repeat(system), far, far.values()):
                    self._seen.update(stored)
        return {uri: self._seen[uri] for uri in uris}

    def _far_away(
        self, table_system: FileSystem, folder: str, uris: Iterable[str]
    ) -> dict[str, StoredFile | None]:
        root = self.root.rstrip("/")
        if folder == root or folder.startswith(f"{root}/"):
            system = table_system
            base = folder[len(root) :].strip("/")
        else:  # a clone has its files elsewhere
            system, base = FileSystem.from_uri(folder)
        names = {uri.rpartition("/")[2]: uri for uri in uris}
        if folder not in self._infos:
            listed = system.get_file_info(FileSelector(base, allow_not_found=True))
            self._infos[folder] = {
                info.base_name: info for info in listed if info.type is FileType.File
            }
        existing = self._infos[folder]
        missing = names.keys() - existing.keys()
        # A listing may change a name: a file that it does not show is requested individually.
        for name in missing:
            (info,) = system.get_file_info([f"{base}/{name}".lstrip("/")])
            if info.type is FileType.File:
                existing[name] = info
        return {uri: _stored(existing.get(name)) for name, uri in names.items()}


def _names_in(folder: str) -> frozenset[str]:
    """The names of what a folder of this machine contains; nothing if it does not exist. Entries
    would keep the state of each file, too, which is a kilobyte."""
    try:
        with os.scandir(folder or "/") as entries:
            return frozenset(entry.name for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()


def _on_this_machine(names: Collection[str], uris: Iterable[str]) -> dict[str, StoredFile | None]:
    return {uri: _stored_here(uri) if uri.rpartition("/")[2] in names else None for uri in uris}


def _stored_here(path: str) -> StoredFile | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    if not S_ISREG(found.st_mode):
        return None
    return StoredFile(found.st_size, max(found.st_mtime_ns, found.st_ctime_ns), found.st_ino)


def _stored(info: FileInfo | None) -> StoredFile | None:
    return None if info is None else StoredFile(info.size, info.mtime_ns)
