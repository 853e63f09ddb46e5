"""The files of a Delta table as storage has them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat

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
    """The storage of a table at a path, as Spark reads it, with a cache of what was listed."""

    root: str
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
            self._seen.update(_on_this_machine(folder, by_folder[folder]))
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
        listed = system.get_file_info(FileSelector(base, allow_not_found=True))
        existing = {info.base_name: info for info in listed if info.type is FileType.File}
        missing = names.keys() - existing.keys()
        # A listing may change a name: a file that it does not show is requested individually.
        for name in missing:
            (info,) = system.get_file_info([f"{base}/{name}".lstrip("/")])
            if info.type is FileType.File:
                existing[name] = info
        return {uri: _stored(existing.get(name)) for name, uri in names.items()}


def _on_this_machine(folder: str, uris: Iterable[str]) -> dict[str, StoredFile | None]:
    stored: dict[str, StoredFile | None] = dict.fromkeys(uris)
    by_name = {uri.rpartition("/")[2]: uri for uri in stored}
    try:
        with os.scandir(folder or "/") as entries:
            for entry in entries:
                uri = by_name.get(entry.name)
                if uri is not None and entry.is_file():
                    stat = entry.stat()
                    latest = max(stat.st_mtime_ns, stat.st_ctime_ns)
                    stored[uri] = StoredFile(stat.st_size, latest, stat.st_ino)
    except (FileNotFoundError, NotADirectoryError):
        pass
    return stored


def _stored(info: FileInfo | None) -> StoredFile | None:
    return None if info is None else StoredFile(info.size, info.mtime_ns)
