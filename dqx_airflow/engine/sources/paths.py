"""Paths of datasets: made absolute, and split at globs and partitions."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote

GLOB = re.compile(r"[*?\[\]{}\\]")
"""The characters that make a path a glob to Spark."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_FILE_URI = re.compile(r"file:(//(localhost)?(?=/))?", re.IGNORECASE)


def absolute(path: str) -> str:
    """Local paths as absolute ones: Spark and deltalake resolve relative paths differently.

    `~` is the home of the user who runs the job. A file URI becomes a path: `%20` in it is a space.
    """
    uri = _FILE_URI.match(path)
    if uri is not None:
        return os.path.abspath(unquote(path[uri.end() :]))
    return os.path.abspath(os.path.expanduser(path)) if is_local(path) else path


def is_local(path: str) -> bool:
    """True for a path of this machine."""
    return not _SCHEME.match(path)


def for_spark(path: str) -> str:
    """The path for a Spark reader, escaped if the name of a local folder looks like a glob."""
    is_name = is_local(path) and GLOB.search(path) is not None and Path(path).exists()
    return escaped(path) if is_name else path


def escaped(path: str) -> str:
    """The path with all glob characters escaped."""
    return GLOB.sub(r"\\\g<0>", path)


def partition_root(path: str) -> str | None:
    """The folder that contains the partitions, if the path leads to one (`ds=2024-03-02`) or
    several of them (`ds=2024-03-*`)."""
    parts = path.split("/")
    for number, part in enumerate(parts):
        if "=" in part:
            return "/".join(parts[:number]) or None
        if GLOB.search(part):
            return None
    return None
