"""The files in the log of a Delta table, a check that its commits are complete, and the
transactions that applications record in it.

deltalake treats a commit that a crashed writer left empty, or cut off between two lines, as one
that changes nothing. A commit has one action per line (Delta protocol, "Delta Log Entries").
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

C = TypeVar("C", bound="Commit")

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
_READ_AT_ONCE = 32
_MOST_COMMITS = 320
_MOST_REMEMBERED = 10_000
_whole: set[tuple[str, str, int, int]] = set()
"""Commits found complete in this process, which never change."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file in the log of a table."""

    name: str
    size: int
    changed_ns: int


@dataclass(frozen=True, slots=True)
class LogFiles:
    """The files of a log up to a version, by the versions of commits.

    `checkpoint` are the names of the parts of the newest complete one, and `start` is the version
    after it. `system` is None for a log on this machine, which is read without pyarrow.
    """

    root: str
    system: FileSystem | None
    commits: Mapping[int, LogFile]
    checkpoint: tuple[str, ...]
    start: int

    def opened(self, name: str) -> Any:
        """A file, opened for reading at any position.

        :raises OSError: it cannot be opened.
        """
        if self.system is None:
            return Path(self.root, _LOG, name).open("rb")
        return self.system.open_input_file(f"{_LOG}/{name}")

    def texts(self, commits: Iterable[LogFile]) -> Iterator[bytes]:
        """The contents of commits, several of which are read at once.

        :raises OSError: one cannot be read.
        """

        def read(commit: LogFile) -> bytes:
            with self.opened(commit.name) as file:
                return bytes(file.read())

        with ThreadPoolExecutor(_THREADS) as threads:
            yield from threads.map(read, commits)


def log_files(root: str, version: int, options: Mapping[str, str] | None = None) -> LogFiles:
    """The log of the table at a path.

    An empty checkpoint is none for deltalake either, which then reads the commits instead.

    :raises OSError: it cannot be listed.
    """
    commits: dict[int, LogFile] = {}
    checkpoints: dict[tuple[int, int], list[str]] = {}  # by their versions and numbers of parts
    system = table_files(root, options) if "://" in root else None
    for file in _on_this_machine(root) if system is None else _far_away(system):
        if (match := _COMMIT.fullmatch(file.name)) and int(match[1]) <= version:
            commits[int(match[1])] = file
        elif (match := _CHECKPOINT.fullmatch(file.name)) and int(match[1]) <= version and file.size:
            checkpoints.setdefault((int(match[1]), int(match[3] or 1)), []).append(file.name)
    whole = [(at, count) for (at, count), parts in checkpoints.items() if len(parts) >= count]
    newest = max(whole, default=(-1, 0))
    return LogFiles(root, system, commits, tuple(checkpoints.get(newest, ())), newest[0] + 1)


def _on_this_machine(root: str) -> Iterator[LogFile]:
    with os.scandir(Path(root, _LOG)) as entries:
        for entry in entries:
            try:
                stat = entry.stat()
            except FileNotFoundError:  # the temporary file of a writer, which is renamed
                continue
            yield LogFile(entry.name, stat.st_size, stat.st_mtime_ns)


def _far_away(system: FileSystem) -> Iterator[LogFile]:
    from pyarrow.fs import FileSelector

    for info in system.get_file_info(FileSelector(_LOG)):
        yield LogFile(info.base_name, info.size or 0, info.mtime_ns or 0)


def table_files(root: str, options: Mapping[str, str] | None = None) -> FileSystem:
    """The file system below the root of a table, with the credentials of deltalake."""
    from deltalake.fs import DeltaStorageHandler
    from pyarrow.fs import PyFileSystem

    return PyFileSystem(DeltaStorageHandler(root, dict(options) if options else None))


def require_whole_commits(
    root: str, version: int, options: Mapping[str, str] | None = None
) -> None:
    """Rejects a table if one of the commits up to a version was not written completely.

    Commits after the newest checkpoint are read, once per process. Of the commits that it includes,
    only the sizes are checked: its writer may have treated an empty one as one without changes.

    :raises ValueError: there is one.
    :raises OSError: the log cannot be read.
    """
    log = log_files(root, version, options)
    keys = {at: (root, file.name, file.size, file.changed_ns) for at, file in log.commits.items()}
    unread = {at: file for at, file in sorted(log.commits.items()) if keys[at] not in _whole}
    for file in unread.values():
        if file.size < _SHORTEST:
            raise ValueError(_incomplete(file, "it has no action"))
    behind = {at: file for at, file in unread.items() if at >= log.start}
    for (at, file), text in zip(behind.items(), log.texts(behind.values()), strict=True):
        if (fault := _fault(text)) is not None:
            raise ValueError(_incomplete(file, fault))
        if len(_whole) >= _MOST_REMEMBERED:
            _whole.clear()
        _whole.add(keys[at])


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit in the log: its `commitInfo`, the files that it adds, by their decoded paths,
    and the paths that it removes. A move writes the same rows into other files. `metadata` and
    `protocol` are the actions of these names; None if it has none."""

    version: int
    info: Mapping[str, Any]
    added: Mapping[str, Mapping[str, Any]]
    removed: tuple[str, ...]
    is_move: bool
    metadata: Mapping[str, Any] | None = None
    protocol: Mapping[str, Any] | None = None

    @classmethod
    def of(cls: type[C], version: int, text: bytes) -> C:
        """:raises ValueError: the text is not a commit."""
        actions: dict[str, list[dict[str, Any]]] = {}
        for line in filter(bytes.strip, text.splitlines()):
            for name, action in json.loads(line).items():
                actions.setdefault(name, []).append(action)
        info = (actions.get("commitInfo") or [{}])[0]
        noted = str(info.get("userMetadata"))
        if '"dqx_run_id"' in noted:  # how Spark's Delta source records it
            info |= json.loads(noted)
        adds = actions.get("add", [])
        removes = actions.get("remove", [])
        metadata = actions.get("metaData")
        protocol = actions.get("protocol")
        return cls(
            version,
            info,
            {unquote(add["path"]): add for add in adds},
            tuple(sorted(unquote(remove["path"]) for remove in removes)),
            not any(action.get("dataChange", True) for action in (*adds, *removes)),
            metadata[0] if metadata else None,
            protocol[0] if protocol else None,
        )


def commits_behind(root: str, version: int, files: Collection[str]) -> Iterator[Commit]:
    """The newest commits up to a version, the last one first, at least until all of these files are
    added; a limited number, and as far back as the log still goes.

    :param files: their decoded paths.
    :raises OSError: the log cannot be read.
    :raises ValueError: a commit cannot be read.
    """
    log = log_files(root, version)
    missing = set(files)
    numbers = sorted(log.commits, reverse=True)[:_MOST_COMMITS]
    for start in range(0, len(numbers), _READ_AT_ONCE):
        if start > 0 and not missing:
            return
        batch = numbers[start : start + _READ_AT_ONCE]
        for commit in map(Commit.of, batch, log.texts(log.commits[at] for at in batch)):
            missing -= commit.added.keys()
            yield commit


def transactions(root: str, version: int) -> dict[str, int]:
    """The number that each application has recorded up to a version, by its name, which deltalake
    does not list (Delta protocol, "Transaction Identifiers").

    :raises ValueError: a commit is missing.
    :raises OSError: the log cannot be read.
    """
    import pyarrow.parquet as pq

    log = log_files(root, version)
    needed = range(log.start, version + 1)
    if missing := [at for at in needed if at not in log.commits]:
        raise ValueError(f"the log has no commit {missing[0]}, and no checkpoint after it")
    numbers: dict[str, int] = {}
    for name in log.checkpoint:
        with log.opened(name) as file:
            if name.endswith(".json"):
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


def _incomplete(commit: LogFile, fault: str) -> str:
    return f"the commit {commit.name} is incomplete: {fault}"


def _fault(text: bytes) -> str | None:
    """Describes what is missing in a commit; None if it appears to be complete.

    :param text: which deltalake accepts, so that its lines are JSON objects.
    """
    actions = Counter[bytes]()
    metrics: dict[str, object] = {}
    # Line by line: the first commit of a table may add a million files.
    for line in BytesIO(text):
        match = _ACTION.match(line)
        if match is None:
            continue
        actions[match[1]] += 1
        if match[1] == b"commitInfo":
            metrics = json.loads(line)["commitInfo"].get("operationMetrics") or {}
    if not actions:
        return "it has no action"
    expected = max(_count(metrics, _FILES_ADDED), min(_count(metrics, _ROWS_WRITTEN), 1))
    if actions[b"add"] < expected:
        return f"it adds {actions[b'add']} files, of {expected} or more that it mentions"
    return None


def _count(metrics: Mapping[str, object], names: Iterable[str]) -> int:
    counts = (str(metrics.get(name, 0)) for name in names)
    return max(int(count) if count.isdecimal() else 0 for count in counts)
