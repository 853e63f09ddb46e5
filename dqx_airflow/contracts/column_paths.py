"""Paths of columns as DQL writes them, and back: `address.`zip code``."""

from __future__ import annotations

import re

_PART = re.compile(r"`(?P<quoted>(?:[^`]|``)*)`|(?P<plain>[^.`]+)")


def column_path(name: str) -> str:
    """A column as DQL writes it: in backticks unless it is a plain word."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        return name
    return "`" + name.replace("`", "``") + "`"


def dotted_path(name: str) -> str:
    """The path of a name in which each dot leads into a struct, as in Spark."""
    return ".".join(map(column_path, name.split(".")))


def parts_of(path: str) -> tuple[str, ...]:
    """The names in a path: `address`, `zip code` for ``address.`zip code` ``."""
    return tuple(
        (part["quoted"] or "").replace("``", "`") or part["plain"] or ""
        for part in _PART.finditer(path)
    )


def plain_name(path: str) -> str:
    """A column as other tools write it: without the backticks of DQL."""
    return ".".join(parts_of(path))


def without_quoted(path: str) -> str:
    """A path without the names in backticks, which may contain any characters."""
    return _PART.sub(lambda part: part["plain"] or "", path)
