"""The positions of keys in a TOML text, for messages: its parser does not provide them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from dqx_airflow.values import Span

Path: TypeAlias = tuple[str, ...]

_KEY = r"(?:\"[^\"]*\"|'[^']*'|[\w-]+)"
_KEYS = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_TABLE = re.compile(rf"\s*\[\[?\s*({_KEYS})\s*\]")
_SETTING = re.compile(rf"\s*({_KEYS})\s*=\s*")
_INNER = re.compile(rf"[{{,]\s*({_KEYS})\s*=\s*")
_LONG_TEXT = re.compile(r"\"\"\"|'''")


@dataclass(frozen=True, slots=True)
class KeyLocation:
    """A key and, after it on the same line, its value."""

    key: Span
    value: Span


@dataclass(slots=True)
class Positions:
    """The positions of the tables and keys of a valid TOML text, read line by line."""

    file: str
    text: str
    _places: dict[Path, KeyLocation] = field(default_factory=dict)

    def __post_init__(self) -> None:
        table: Path = ()
        in_text = False
        for number, line in enumerate(self.text.split("\n"), start=1):
            if not in_text:
                if match := _TABLE.match(line):
                    table = _path(match[1])
                    span = self._span(number, match.start(1), match.end(1))
                    self._places.setdefault(table, KeyLocation(span, span))
                elif match := _SETTING.match(line):
                    self._add(table, match, number, line)
            in_text ^= len(_LONG_TEXT.findall(line)) % 2 == 1

    def key(self, *path: str) -> Span:
        """The position of a key; of the nearest enclosing table if it was not found."""
        return self._nearest(path).key

    def value(self, *path: str) -> Span:
        return self._nearest(path).value

    def _nearest(self, path: Path) -> KeyLocation:
        path = _parts(path)
        while path and path not in self._places:
            path = path[:-1]
        first = self._span(1, 0, 1)
        return self._places.get(path, KeyLocation(first, first))

    def _add(self, table: Path, match: re.Match[str], number: int, line: str) -> None:
        path = (*table, *_path(match[1]))
        end = len(line.rstrip())
        value = self._span(number, match.end(), end)
        self._places[path] = KeyLocation(self._span(number, match.start(1), match.end(1)), value)
        for inner in _INNER.finditer(line, match.end()):
            behind = re.compile(r"\"[^\"]*\"|'[^']*'|\[[^\]]*\]|[^,}]*").match(line, inner.end())
            value = self._span(number, inner.end(), behind.end() if behind else end)
            key = self._span(number, inner.start(1), inner.end(1))
            self._places[(*path, *_path(inner[1]))] = KeyLocation(key, value)

    def _span(self, line: int, start: int, end: int) -> Span:
        return Span(self.file, line, start + 1, line, max(end, start + 1) + 1)


def _path(keys: str) -> Path:
    return _parts(key.strip("\"'") for key in re.findall(_KEY, keys))


def _parts(keys: Iterable[str]) -> Path:
    """A path in which quoted keys are split at their dots like others: settings are written both
    ways."""
    return tuple(part for key in keys for part in key.split("."))
