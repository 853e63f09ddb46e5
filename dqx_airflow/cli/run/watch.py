"""Waits for files to change."""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path
from typing import TypeAlias

_INTERVAL_S = 0.3

Stamps: TypeAlias = "dict[Path, tuple[int, int] | None]"


def stamps_of(files: Collection[Path]) -> Stamps:
    """The modification time and the size of each file; None for a missing one."""
    return {file: _stamp(file) for file in files}


def wait_for_change(before: Stamps) -> tuple[Path, ...]:
    """The changed files, as soon as they no longer change."""
    changed: set[Path] = set()
    last = before
    while True:
        current = stamps_of(before)
        if changed and current == last:
            return tuple(sorted(changed))
        changed |= {file for file in current if current[file] != last[file]}
        last = current
        time.sleep(_INTERVAL_S)


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
