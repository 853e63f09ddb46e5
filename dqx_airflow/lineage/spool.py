"""The spool: a local folder with the events that could not be sent, one file for each.

A file contains one event as one line of JSON, so that it can be read, or sent by other means. The
file names sort in the order of the events.
"""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any

from dqx_airflow.values.files import replacing

VARIABLE = "DQX_LINEAGE_SPOOL"
"""The environment variable with the path of the folder."""

_NAME = re.compile(r"\d{20}-[\w.@-]*\.json")
_last_time_ns = 0


def beside(results_root: str) -> Path:
    """The spool of a results store on this machine."""
    return Path(results_root) / "lineage_spool"


def keep(spool: Path, event: str, label: str) -> Path:
    """Writes `event` (JSON) into the spool atomically.

    :raises OSError: the folder cannot be created or written.
    """
    spool.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", label)[:100]
    path = spool / f"{_next_time_ns():020d}-{name}.json"
    with replacing(path) as part, part.open("w", encoding="utf-8") as file:
        file.write(event + "\n")
        file.flush()
        os.fsync(file.fileno())
    return path


def has_some(spool: Path) -> bool:
    """True for a folder with events in it; False for a folder that cannot be read."""
    try:
        return bool(kept(spool))
    except OSError:
        return False


def kept(spool: Path) -> list[Path]:
    """The files of the spool, oldest first. A missing folder counts as empty.

    :raises OSError: the folder cannot be read.
    """
    if not spool.is_dir():
        return []
    return [path for path in sorted(spool.iterdir()) if _NAME.fullmatch(path.name)]


def event_in(path: Path) -> dict[str, Any]:
    """The event of a spooled file.

    :raises OSError: the file cannot be read.
    :raises ValueError: it does not contain exactly one JSON object.
    """
    event = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(event, dict):
        raise ValueError("not a JSON object")
    return event


def _next_time_ns() -> int:
    # Two events within one tick of the clock, or around a clock that is set back, keep their order.
    global _last_time_ns
    _last_time_ns = max(_last_time_ns + 1, time.time_ns())
    return _last_time_ns
