"""The history of a suite: JSON Lines next to its file, append-only; and the past values of its
tunables."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time, timezone
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.errors import RequestError
from dqx_airflow.values import Span
from dqx_airflow.values.exact import nearest_float
from dqx_airflow.values.json_form import iso_timestamp
from dqx_airflow.values.typed_values import day_in

Entry: TypeAlias = dict[str, Any]
Append: TypeAlias = Callable[[Iterable[Mapping[str, Any]]], None]

ENDING = ".history"
"""The suffix of the history's file name."""

_log = logging.getLogger("dqx.history")


@dataclass(frozen=True, slots=True)
class TunableChange:
    """A change of a tunable: its values before and after, who made it, why, and how.

    `action` is `set_param`, `rollback` or another one that changes values; `entry` is the number of
    its line in the history, None if it is not written yet.
    """

    timestamp: datetime
    param: str
    old_value: Any
    new_value: Any
    agent: str
    reason: str | None = None
    action: str = "set_param"
    entry: int | None = None


class History:
    """The history in a file, such as `orders.dql.history`. It need not exist."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @classmethod
    def of(cls, suite: str | os.PathLike[str]) -> History:
        """Reads the history of the suite in a file."""
        return cls(os.fspath(suite) + ENDING)

    def log(self, entry: Mapping[str, Any]) -> None:
        """Appends an entry, with the current time if it has none. It survives this process.

        :raises RequestError: it cannot be written as JSON, or not to that file.
        """
        with self.locked() as append:
            append([entry])

    def flush(self) -> None:
        """Returns when all logged entries are on disk: they survive a power failure.

        :raises RequestError: they cannot be written there.
        """
        try:
            file = os.open(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return
        try:
            os.fsync(file)
        except OSError as error:
            raise RequestError(f"cannot write the history {self.path}: {error.strerror}") from error
        finally:
            os.close(file)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries, in the order in which they were written, without damaged lines."""
        entries, damaged = self.read()
        for diagnostic in damaged:
            _log.warning(
                "%s:%d: %s", diagnostic.span.file, diagnostic.span.line, diagnostic.message
            )
        return tuple(entry for _, entry in entries)

    def read(self) -> tuple[tuple[tuple[int, Entry], ...], tuple[Diagnostic, ...]]:
        """Returns all entries with the numbers of their lines, and the damaged lines.

        :raises RequestError: the file cannot be read.
        """
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return (), ()
        except OSError as error:
            raise RequestError(f"cannot read the history {self.path}: {error.strerror}") from error
        entries, damaged = [], []
        for number, line in enumerate(content.split(b"\n"), start=1):
            if not line.strip():
                continue
            entry = _parsed(line)
            if entry is not None:
                entries.append((number, entry))
                continue
            span = Span(str(self.path), number, 1, number, 2)
            message = "invalid entry: incomplete, or edited by hand"
            damaged.append(Diagnostic(message, span, code="W050"))
        return tuple(entries), tuple(damaged)

    def changes(self, param: str | None = None) -> tuple[TunableChange, ...]:
        """Returns the changes of a tunable, or of all of them, oldest first."""
        entries, _ = self.read()
        changes = (_change(number, entry) for number, entry in entries)
        return tuple(change for change in changes if change and param in (None, change.param))

    @contextmanager
    def locked(self) -> Iterator[Append]:
        """Returns a function that appends entries, while no other process can.

        :raises RequestError: the file cannot be written.
        """
        try:
            file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        except OSError as error:
            raise RequestError(
                f"cannot write the history {self.path}: {error.strerror}",
                "it is next to the suite: run this where that folder is writable",
            ) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield lambda entries: _append(file, entries, self.path)
        finally:
            os.close(file)


def _append(file: int, entries: Iterable[Mapping[str, Any]], path: Path) -> None:
    lines = "".join(f"{_line(entry)}\n" for entry in entries).encode()
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        lines = b"\n" + lines  # closes a line that a crash left incomplete
    try:
        written = os.write(file, lines)
        if written < len(lines):
            raise OSError(None, "the disk is full")
    except OSError as error:
        raise RequestError(f"cannot write the history {path}: {error.strerror}") from error


def _line(entry: Mapping[str, Any]) -> str:
    stamped = (
        entry if "ts" in entry else {"ts": timestamp_text(datetime.now(timezone.utc)), **entry}
    )
    try:
        return json.dumps(stamped, ensure_ascii=False, allow_nan=False, default=_json_form)
    except (TypeError, ValueError) as error:
        raise RequestError(f"a history entry has an invalid value: {error}") from error


def _json_form(value: Any) -> Any:
    """The JSON form of unsupported values: numbers of numpy, fractions, dates."""
    if isinstance(value, Fraction):
        return nearest_float(value)
    if isinstance(value, datetime):
        return timestamp_text(value)
    if isinstance(value, date):
        return value.isoformat()
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} {value!r}")


def new_id() -> str:
    """An identifier of a proposal or a decision, short enough to type."""
    return uuid.uuid4().hex[:12]


def timestamp_text(timestamp: datetime) -> str:
    """A timestamp in the format of entries: `2024-12-01T10:00:00Z`."""
    return f"{timestamp.astimezone(timezone.utc):%Y-%m-%dT%H:%M:%SZ}"


def timestamp_of(text: object) -> datetime | None:
    """The timestamp of an entry; None if it has none."""
    try:
        timestamp = iso_timestamp(str(text))
    except ValueError:
        return None
    return timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=timezone.utc)


def _parsed(line: bytes) -> Entry | None:
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def _change(number: int, entry: Entry) -> TunableChange | None:
    """The change in an entry; None for another kind, such as a proposal."""
    param, action = entry.get("param"), str(entry.get("action"))
    if not isinstance(param, str) or action not in CHANGING or "new" not in entry:
        return None
    timestamp = timestamp_of(entry.get("ts")) or datetime.fromtimestamp(0, timezone.utc)
    values, agent = (entry.get("old"), entry["new"]), str(entry.get("agent", "unknown"))
    return TunableChange(timestamp, param, *values, agent, entry.get("reason"), action, number)


CHANGING = frozenset({"set_param", "rollback", "enforce"})
"""The actions whose entries have a new value of a tunable."""


Cut: TypeAlias = datetime | int
"""A time, or the number of an entry: later changes are undone."""


def cut_of(text: str, history: History) -> Cut:
    """Parses `--to-entry`: the end of a day in UTC, a time, or the entry with a number or an id.
    Entry 0 is before everything.

    :raises RequestError: it is none of these.
    """
    entries, _ = history.read()
    bare = text.removeprefix("#")
    if bare == "0":
        return 0  # before everything
    for number, entry in entries:
        if bare == str(number) or (entry.get("id") and entry["id"] == text):
            return number
    day = day_in(text)
    if day is not None:
        return datetime.combine(day, time.max, timezone.utc)
    timestamp = timestamp_of(text)
    if timestamp is None:
        raise RequestError(
            f"--to-entry {text}: neither a history entry nor a date",
            "write a date as 2024-12-15, a time as 2024-12-15T14:30:00Z, "
            "or the number of an entry that `dql tune history` shows",
        )
    return timestamp


def values_at(changes: Iterable[TunableChange], cut: Cut) -> dict[str, float]:
    """The values of all tunables that were ever changed, directly after an entry or at a time."""
    kept: dict[str, float] = {}
    undone: dict[str, float] = {}
    in_order = list(changes)
    if isinstance(cut, datetime):
        in_order.sort(key=lambda change: change.timestamp)
    for change in in_order:
        if is_kept(change.entry, change.timestamp, cut):
            kept[change.param] = change.new_value
        else:
            undone.setdefault(change.param, change.old_value)
    return {**undone, **kept}


def is_kept(entry: int | None, timestamp: datetime | None, cut: Cut) -> bool:
    """True if an entry, by its number and time, is not after a cut."""
    if isinstance(cut, datetime):
        return timestamp is not None and timestamp <= cut
    return entry is not None and entry <= cut
