"""The files of a Delta table as storage has them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat
from stat import S_ISREG
from typing import NamedTuple

import numpy as np
from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType

from dqx_airflow.datasets.delta_log import table_files
from dqx_airflow.engine.sources.listing import is_local
from dqx_airflow.engine.sources.logged_files import Numbers

_THREADS = 16


class StoredFile(NamedTuple):
    """An existing file. `changed_ns` is the latest of its times; on this machine that includes the
    change time of its inode, which cannot be set back."""

    size: int
    changed_ns: int
    inode: int = 0


_MISSING = -1
_NONE = StoredFile(_MISSING, 0)
"""A file that does not exist."""


@dataclass(slots=True)
class TableStorage:
    """The storage of a table at a path, as Spark reads it, with a cache of its folders: each is
    listed once, also if files of it are looked at several times."""

    root: str
    _names: dict[str, frozenset[str]] = field(default_factory=dict)
    _far: dict[str, dict[str, StoredFile]] = field(default_factory=dict)

    def look_at(self, uris: Collection[str]) -> Mapping[str, StoredFile | None]:
        """The stored file at each path, or None if it does not exist.

        :raises OSError: a folder cannot be listed.
        """
        by_folder: dict[str, list[str]] = {}
        for uri in uris:
            by_folder.setdefault(uri.rpartition("/")[0], []).append(uri)
        far = {folder: in_folder for folder, in_folder in by_folder.items() if not is_local(folder)}
        seen: dict[str, StoredFile | None] = {}
        for folder in by_folder.keys() - far.keys():
            if folder not in self._names:
                self._names[folder] = _names_in(folder)
            seen.update(_on_this_machine(self._names[folder], by_folder[folder]))
        if far:
            system = table_files(self.root)
            with ThreadPoolExecutor(min(_THREADS, len(far))) as threads:
                for stored in threads.map(self._far_away, repeat(system), far, far.values()):
                    seen.update(stored)
        return seen

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
        if folder not in self._far:
            listed = system.get_file_info(FileSelector(base, allow_not_found=True))
            self._far[folder] = {
                info.base_name: _stored(info) for info in listed if info.type is FileType.File
            }
        existing = self._far[folder]
        missing = names.keys() - existing.keys()
        # A listing may change a name: a file that it does not show is requested individually.
        for name in missing:
            (info,) = system.get_file_info([f"{base}/{name}".lstrip("/")])
            if info.type is FileType.File:
                existing[name] = _stored(info)
        return {uri: existing.get(name) for name, uri in names.items()}


_UNSEEN = -2
_AT_ONCE = 50_000


class StoredFiles:
    """The files of a log as storage has them, by their numbers in the log: each is looked at once.
    In arrays, as a table may have a million files."""

    def __init__(self, storage: TableStorage, uris: Callable[[Numbers], list[str]], count: int):
        self._storage = storage
        self._uris = uris
        self._sizes: Numbers = np.full(count, _UNSEEN, np.int64)
        self._changed_ns: Numbers = np.zeros(count, np.int64)
        self._inodes = np.zeros(count, np.uint64)

    def look_at(self, numbers: Numbers) -> None:
        """Looks at the files that have not been looked at.

        :raises OSError: a folder cannot be listed.
        """
        unseen = numbers[self._sizes[numbers] == _UNSEEN]
        for start in range(0, len(unseen), _AT_ONCE):
            part = unseen[start : start + _AT_ONCE]
            uris = self._uris(part)
            found = self._storage.look_at(uris)
            stored = [found[uri] or _NONE for uri in uris]
            self._changed_ns[part] = [file.changed_ns for file in stored]
            self._inodes[part] = [file.inode for file in stored]
            self._sizes[part] = [file.size for file in stored]

    def sizes(self, numbers: Numbers) -> Numbers:
        """The sizes of files that were looked at, negative for those that do not exist."""
        return self._sizes[numbers]

    def changed_ns(self, numbers: Numbers) -> Numbers:
        return self._changed_ns[numbers]

    def inodes(self, numbers: Numbers) -> list[int]:
        found: list[int] = self._inodes[numbers].tolist()
        return found


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


def _stored(info: FileInfo) -> StoredFile:
    return StoredFile(info.size, info.mtime_ns)
