"""The files in the log of a Delta table, whether its commits are whole, and the transactions of
applications in it.

deltalake takes a commit that a crashed writer left empty, or cut off between two lines, for one
that changes nothing. A commit holds one action per line (Delta protocol, "Delta Log Entries").
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow.parquet as pq
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import (
    FileInfo,
    FileSelector,
    FileSystem,
    LocalFileSystem,
    PyFileSystem,
    SubTreeFileSystem,
)

_LOG = "_delta_log"
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(
    r"(\d{20})\.checkpoint\.(?:(\d{10})\.(\d{10})\.|[0-9a-fA-F-]{36}\.)?(?:parquet|json)"
)
_ACTION = re.compile(
    rb'\s*\{\s*"(add|remove|metaData|protocol|txn|commitInfo|domainMetadata|cdc)"\s*:\s*\{'
)
_SHORTEST = len('{"txn":{}}')
_FILES_ADDED = ("num_added_files", "num_target_files_added", "numAddedFiles", "numTargetFilesAdded")
_ROWS_WRITTEN = ("num_added_rows", "numOutputRows")
_THREADS = 16
_MOST_REMEMBERED = 10_000
_whole: set[tuple[str, str, int, int]] = set()
"""Commits that were read: they never change."""


@dataclass(frozen=True, slots=True)
class LogFiles:
    """The files of a log up to a version, by the versions of commits.

    `checkpoint` are the parts of the newest complete one, and `start` is the version after it.
    """

    system: FileSystem
    commits: Mapping[int, FileInfo]
    checkpoint: tuple[str, ...]
    start: int

    def texts(self, commits: Iterable[FileInfo]) -> Iterator[bytes]:
        """The contents of commits, several of which are read at once.

        :raises OSError: one cannot be read.
        """

        def read(commit: FileInfo) -> bytes:
            with self.system.open_input_stream(commit.path) as file:
                return bytes(file.read())

        with ThreadPoolExecutor(_THREADS) as threads:
            yield from threads.map(read, commits)


def log_files(system: FileSystem, version: int) -> LogFiles:
    """The log of the table at the root of a file system.

    :raises OSError: it cannot be listed.
    """
    commits: dict[int, FileInfo] = {}
    parts: dict[int, list[tuple[str, int]]] = {}
    for info in system.get_file_info(FileSelector(_LOG)):
        if (match := _COMMIT.fullmatch(info.base_name)) and int(match[1]) <= version:
            commits[int(match[1])] = info
        elif (match := _CHECKPOINT.fullmatch(info.base_name)) and int(match[1]) <= version:
            parts.setdefault(int(match[1]), []).append((info.path, int(match[3] or 1)))
    whole = [at for at, found in parts.items() if len(found) >= found[0][1]]
    newest = max(whole, default=-1)
    checkpoint = tuple(path for path, _ in parts.get(newest, ()))
    return LogFiles(system, commits, checkpoint, newest + 1)


def table_files(root: str, options: Mapping[str, str] | None = None) -> FileSystem:
    """The file system below the root of a table, with the credentials of deltalake."""
    if "://" not in root:
        return SubTreeFileSystem(root, LocalFileSystem())
    return PyFileSystem(DeltaStorageHandler(root, dict(options) if options else None))


def require_whole_commits(
    root: str, version: int, options: Mapping[str, str] | None = None
) -> None:
    """Rejects a table if one of the commits up to a version was not written completely.

    Commits behind the newest checkpoint are read, once per process. Of those that it includes, only
    the sizes are looked at: whoever wrote it may have taken an empty one for one without changes.

    :raises ValueError: there is one.
    :raises OSError: the log cannot be read.
    """
    log = log_files(table_files(root, options), version)
    keys = {
        at: (root, info.base_name, info.size, info.mtime_ns) for at, info in log.commits.items()
    }
    unread = {at: info for at, info in sorted(log.commits.items()) if keys[at] not in _whole}
    for info in unread.values():
        if info.size < _SHORTEST:
            raise ValueError(_incomplete(info, "it has no action"))
    behind = {at: info for at, info in unread.items() if at >= log.start}
    for (at, info), text in zip(behind.items(), log.texts(behind.values()), strict=True):
        if (fault := _fault(text)) is not None:
            raise ValueError(_incomplete(info, fault))
        if len(_whole) >= _MOST_REMEMBERED:
            _whole.clear()
        _whole.add(keys[at])


def transactions(root: str, version: int) -> dict[str, int]:
    """The number that each application has recorded up to a version, by its name, which deltalake
    does not list (Delta protocol, "Transaction Identifiers").

    :raises ValueError: a commit is missing.
    :raises OSError: the log cannot be read.
    """
    log = log_files(table_files(root), version)
    needed = range(log.start, version + 1)
    if missing := [at for at in needed if at not in log.commits]:
        raise ValueError(f"the log has no commit {missing[0]}, and no checkpoint after it")
    numbers: dict[str, int] = {}
    for path in log.checkpoint:
        with log.system.open_input_file(path) as file:
            if path.endswith(".json"):
                numbers |= _transactions_in(file.read())
                continue
            parquet = pq.ParquetFile(file)
            if "txn" in parquet.schema_arrow.names:
                rows = parquet.read(["txn"]).column("txn").drop_null().to_pylist()
                numbers |= {row["appId"]: row["version"] for row in rows}
    for text in log.texts(log.commits[at] for at in needed):
        numbers |= _transactions_in(text)
    return numbers


def _transactions_in(text: bytes) -> dict[str, int]:
    lines = (json.loads(line).get("txn") for line in text.splitlines() if b'"txn"' in line)
    return {txn["appId"]: txn["version"] for txn in lines if txn}


def _incomplete(commit: FileInfo, fault: str) -> str:
    return f"the commit {commit.base_name} is incomplete: {fault}"


def _fault(text: bytes) -> str | None:
    """What a commit lacks; None if nothing is known to be missing.

    :param text: which deltalake accepts, so that its lines are JSON objects.
    """
    lines = [(line, match[1]) for line in text.splitlines() if (match := _ACTION.match(line))]
    if not lines:
        return "it has no action"
    actions = Counter(action for _, action in lines)
    metrics: dict[str, object] = {}
    for line, action in lines:
        if action == b"commitInfo":
            metrics = json.loads(line)["commitInfo"].get("operationMetrics") or {}
    expected = max(_count(metrics, _FILES_ADDED), min(_count(metrics, _ROWS_WRITTEN), 1))
    if actions[b"add"] < expected:
        return f"it adds {actions[b'add']} files, of {expected} or more that it mentions"
    return None


def _count(metrics: Mapping[str, object], names: Iterable[str]) -> int:
    counts = (str(metrics.get(name, 0)) for name in names)
    return max(int(count) if count.isdecimal() else 0 for count in counts)
