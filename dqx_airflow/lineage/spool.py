"""The spool: a local folder that keeps the events which could not be sent, one file for each.

A file holds one event as one line of JSON, so that it can be read, or sent by other means, as it
is. The file names sort in the order of the events. Standard library only.
"""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VARIABLE = "DQX_LINEAGE_SPOOL"
"""The environment variable that names the folder."""

_NAME = re.compile(r"(?P<time>\d{20})-(?P<event>[\w.-]*?)(?:@(?P<target>[\w.-]+))?\.json")
_last_time_ns = 0


@dataclass(frozen=True, slots=True)
class Spooled:
    """A spooled event. `target` names the one transport that missed it, None means all of them."""

    path: Path
    target: str | None


def beside(results_root: str) -> Path:
    """The spool of a results store on this machine."""
    return Path(results_root) / "lineage_spool"


def keep(spool: Path, event: str, label: str, target: str | None = None) -> Path:
    """Write `event` (JSON) into the spool; it is there as a whole or not at all.

    :raises OSError: the folder cannot be made or written.
    """
    spool.mkdir(parents=True, exist_ok=True)
    ending = f"@{plain_name(target)}" if target else ""
    path = spool / f"{_next_time_ns():020d}-{plain_name(label)}{ending}.json"
    partial = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        with partial.open("w", encoding="utf-8") as file:
            file.write(event + "\n")
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path


def has_some(spool: Path) -> bool:
    """True for a folder with events in it; False for one that cannot be read."""
    try:
        return bool(kept(spool))
    except OSError:
        return False


def kept(spool: Path) -> list[Spooled]:
    """What is in the spool, oldest first. A folder that does not exist holds nothing.

    :raises OSError: the folder cannot be read.
    """
    if not spool.is_dir():
        return []
    found = ((path, _NAME.fullmatch(path.name)) for path in sorted(spool.iterdir()))
    return [Spooled(path, match["target"]) for path, match in found if match is not None]


def read(spooled: Spooled) -> dict[str, Any]:
    """The event of a spooled file.

    :raises OSError: the file cannot be read.
    :raises ValueError: it does not hold one JSON object.
    """
    event = json.loads(spooled.path.read_text(encoding="utf-8"))
    if not isinstance(event, dict):
        raise ValueError("not a JSON object")
    return event


def _next_time_ns() -> int:
    # Two events within one tick of the clock, or around a clock that is set back, keep their order.
    global _last_time_ns
    _last_time_ns = max(_last_time_ns + 1, time.time_ns())
    return _last_time_ns


def plain_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", text)[:100]
