"""Notes of the parse of a DAG file for the next one, which is another process.

The notes on a file are in a file of this user, a line of JSON for each: a key, and a value. Nothing
depends on them: what is missing, truncated or changed is found out again.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from dqx_airflow import __version__

_KEPT_S = 30 * 24 * 3600
_LARGEST_NOTES = 4_000_000
_SWEEPING = "00"
"""One new file of notes in 256 looks for old ones, since each look costs as much as their number.
"""

Status: TypeAlias = "list[Any]"
"""A file with the times of its last modification and last change, and its size; -1 for each if it
is missing. No program can set the second time, as tools that unpack files set the first."""

_read_notes: dict[Path, dict[str, Any]] = {}
"""The notes that this process has read, by their file."""


def notes_on(file: str) -> Path | None:
    """The notes on a DAG file, or on another one that it reads; None if this user has no private
    folder."""
    notes = _notes_file(tempfile.gettempdir(), file)
    if notes not in _read_notes:
        folder = notes.parent
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            status = folder.lstat()
        except OSError:
            return None
        # Others could write there that a gate is valid.
        if status.st_uid != os.getuid() or status.st_mode & 0o022:
            return None
    return notes


@lru_cache
def _notes_file(folder: str, file: str) -> Path:
    name = hashlib.sha1(f"{__version__}\0{file}".encode(), usedforsecurity=False).hexdigest()
    return Path(folder, f"dqx-airflow-{os.getuid()}", name)


def noted(notes: Path, key: str) -> Any:
    """The value that was noted last for a key; None without one."""
    return _all_in(notes).get(key)


def _all_in(notes: Path) -> dict[str, Any]:
    values = _read_notes.get(notes)
    if values is None:
        try:
            lines = notes.read_bytes().splitlines()
        except OSError:
            lines = []
        _read_notes[notes] = values = _values_in(lines)
    return values


def _values_in(lines: list[bytes]) -> dict[str, Any]:
    """The values by their keys, without lines that are truncated, or of another program."""
    try:
        # All at once takes a third of the time.
        return dict(json.loads(b"[%s]" % b",".join(lines)))
    except (ValueError, TypeError):
        values = {}
        for line in lines:
            try:
                key, value = json.loads(line)
                values[key] = value
            except (ValueError, TypeError):
                continue
        return values


def note(notes: Path, key: str, value: Any, *, alone: bool = False) -> None:
    """Notes a value that JSON can hold.

    :param alone: replaces all that was noted on the file.
    """
    values = _all_in(notes)
    if alone:
        values.clear()
    values[key] = value
    try:
        is_large = notes.is_file() and notes.stat().st_size > _LARGEST_NOTES
        if is_large or (notes.name.startswith(_SWEEPING) and not notes.exists()):
            _forget_old(notes.parent)
        line = f"{json.dumps([key, value])}\n".encode()
        flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if is_large or alone else os.O_APPEND)
        number = os.open(notes, flags, 0o600)
        try:
            os.write(number, line)
        finally:
            os.close(number)
    except OSError:
        return  # the next process finds it out again


def _forget_old(folder: Path) -> None:
    for file in folder.iterdir():
        if file.stat().st_mtime < time.time() - _KEPT_S:
            file.unlink(missing_ok=True)


def statuses(files: Iterable[Path]) -> list[Status]:
    """The status of each file, once."""
    return [_status(file) for file in dict.fromkeys(map(str, files))]


def are_unchanged(noted_statuses: Any) -> bool:
    """Whether files have the status that was noted; False if the note is no list of statuses."""
    try:
        for status in noted_statuses:
            if _status(status[0]) != status:
                return False
    except (TypeError, LookupError):
        return False
    return True


def _status(file: str) -> Status:
    try:
        status = os.stat(file)
    except (OSError, ValueError):
        return [file, -1, -1, -1]
    return [file, status.st_mtime_ns, status.st_ctime_ns, status.st_size]
