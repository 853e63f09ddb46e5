"""The header lines of csv files: files that were written with other columns are told apart."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from pyarrow.fs import FileSystem

from dqx_airflow.engine.files import DataFile, paths_of

_MOST_BYTES = 1_000_000
_THREADS = 16


def groups_by_header(location: str, files: Sequence[DataFile]) -> list[list[str]]:
    """The paths of files, those with the same first line together.

    No group at all where there is no need for them, or the files cannot be looked into.
    """
    filled = [file for file in files if file.size > 0]
    paths = paths_of(location, filled)
    if len(paths) < 2:
        return []
    try:
        system, _ = FileSystem.from_uri(location)
        with ThreadPoolExecutor(_THREADS) as threads:
            lines = list(threads.map(lambda file: _first_line(system, file), filled))
    except (OSError, ValueError):
        return []
    groups: dict[bytes, list[str]] = {}
    for line, path in zip(lines, paths, strict=True):
        groups.setdefault(line, []).append(path)
    return list(groups.values()) if len(groups) > 1 else []


def _first_line(system: FileSystem, file: DataFile) -> bytes:
    with system.open_input_stream(file.path, buffer_size=65536) as stream:
        found = b""
        while b"\n" not in found and len(found) < _MOST_BYTES and (part := stream.read(4096)):
            found += part
    return bytes(found.partition(b"\n")[0].rstrip(b"\r"))
