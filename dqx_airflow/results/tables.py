"""The locations of the Delta tables of a store, how they are opened, and their errors; and commits
by several processes at the same time."""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from deltalake import DeltaTable, PostCommitHookProperties
from deltalake.exceptions import CommitFailedError, TableNotFoundError

from dqx_airflow.datasets.delta_log import require_whole_commits
from dqx_airflow.errors import DqxError, StoreError
from dqx_airflow.values.blank import is_blank
from dqx_airflow.values.files import local_path

T = TypeVar("T")

WAITS_S = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds between two attempts at a commit, each varied by half."""


def committed(commit: Callable[[], T], waits_s: Sequence[float] = WAITS_S) -> T:
    """The result of `commit`, which is repeated if another process was first.

    Delta orders writers by the number of a version: a writer that comes second is refused and has
    to read the table again (Delta protocol, "Optimistic concurrency control").

    :raises CommitFailedError: another process was first every time.
    """
    for wait_s in waits_s:
        try:
            return commit()
        except CommitFailedError:
            time.sleep(wait_s * random.uniform(0.5, 1.5))  # noqa: S311 (spreads the writers)
    return commit()


_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_BACKTRACE = re.compile(r"\s*\d+: ")
_PERCENT_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}")
_LONGEST_CAUSE = 400

_OURS = {"run_id", "event_id", "engine_key"}
"""Columns that identify a table of a results store: each has one of them."""

NO_LOG_CLEANUP = PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)
"""Properties that keep a commit from listing the whole log to find expired entries."""


@dataclass(frozen=True, slots=True)
class ResultsRoot:
    """A results root: an absolute local path, or a URI with its storage options."""

    root: str
    storage_options: Mapping[str, str] | None = field(
        default=None, repr=False
    )  # may contain secrets

    @property
    def is_local(self) -> bool:
        """True for a folder on this machine."""
        return not _URI.match(self.root)

    @property
    def options(self) -> dict[str, str] | None:
        """The options that deltalake needs for access, including secrets."""
        return dict(self.storage_options) if self.storage_options else None

    def table(self, name: str) -> str:
        """Path or URI of the table."""
        return f"{self.root.rstrip('/')}/{name}"


def locate(root: str, storage_options: Mapping[str, str] | None = None) -> ResultsRoot:
    """The resolved location of `root`: `~` and relative paths are resolved, URIs are kept.

    :raises StoreError: it is empty, or a path that cannot be used.
    """
    if is_blank(root):
        raise StoreError("the results root is empty", "give a path or URI")
    root = local_path(root)
    if _URI.match(root):
        return ResultsRoot(root, storage_options)
    path = os.path.abspath(os.path.expanduser(root))
    if _PERCENT_ENCODED.search(path):
        # deltalake would create such a folder and then search the decoded name.
        raise StoreError(
            f"the results root {path} has a percent sign followed by two hexadecimal digits",
            "choose a path without it",
        )
    return ResultsRoot(path, storage_options)


def open_table(location: ResultsRoot, name: str) -> DeltaTable | None:
    """The newest state of the table, or None if there is no table yet.

    :raises StoreError: something else than a table of a results store exists there, or the table
        cannot be read.
    """
    uri = location.table(name)
    with store_errors(location, "read"):
        if location.is_local and not _has_local_log(location, name):
            return None
        try:
            table = DeltaTable(uri, storage_options=location.options)
        except TableNotFoundError:
            return None
        require_whole_commits(uri, table.version(), location.options)
        columns = {column.name for column in table.schema().fields}
    if columns.isdisjoint(_OURS):
        raise StoreError(
            f"{uri} is a Delta table, but not one of a results store",
            "choose another results root, or move that table away",
        )
    return table


@contextmanager
def store_errors(location: ResultsRoot, doing: str) -> Iterator[None]:
    """Turns every exception of a library into one `StoreError`.

    :param doing: "read" or "write".
    :raises StoreError: the store cannot be read or written, with the cause.
    """
    try:
        yield
    except DqxError:
        raise
    except PermissionError as error:
        raise StoreError(
            f"no permission to {doing} the results store {location.root}: {error}",
            "give this user access to it, or choose another results root",
        ) from error
    except Exception as error:
        raise StoreError(
            f"cannot {doing} the results store {location.root}: {_cause(error)}", _hint(location)
        ) from error


def _has_local_log(location: ResultsRoot, name: str) -> bool:
    """True if there is a Delta log to read. deltalake itself reports "not found" for a file at this
    path, for a missing permission and for a missing table."""
    root = Path(location.root)
    table = Path(location.table(name))
    for path in (root, table, table / "_delta_log"):
        try:
            entries = os.listdir(path)
        except FileNotFoundError:
            return False
        except NotADirectoryError as error:
            role = "results root" if path == root else "results store"
            raise StoreError(
                f"the {role} {location.root} cannot be used: {_file_in_the_way(path)} is a file",
                "give the path of a folder; the first gate that writes results creates it",
            ) from error
        if path == table and entries and "_delta_log" not in entries:
            raise StoreError(
                f"{table} is a folder with files, but not a Delta table",
                "choose another results root, or move that folder away",
            )
    return True


def _file_in_the_way(path: Path) -> Path:
    return next((parent for parent in [*reversed(path.parents), path] if parent.is_file()), path)


def _hint(location: ResultsRoot) -> str:
    if location.is_local:
        return "if the files are damaged, restore them, or choose another results root"
    return "check the address, the network and the credentials (environment or storage options)"


def _cause(error: Exception) -> str:
    """The message on one line, without the colors and the backtrace that Rust adds."""
    lines = _COLOUR.sub("", str(error)).replace("\u21b3", "").splitlines()
    message = " ".join(" ".join(line for line in lines if not _BACKTRACE.match(line)).split())
    return message[:_LONGEST_CAUSE] or type(error).__name__
