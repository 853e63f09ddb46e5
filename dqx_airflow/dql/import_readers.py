"""Finds and reads the files that a suite imports: on disk, or in a request."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from dqx_airflow.dql.syntax.source_file import Unreadable, read_source
from dqx_airflow.values import ImportedFile, SourceFile

Reader: TypeAlias = Callable[[str, str], SourceFile | str]
"""Called with the name of the importing file and the path as written: the file, or why there is
none."""

_MARKS = ("dqx.toml", ".git")


def no_imports(importer: str, path: str) -> str:
    """Rejects every import: the reader for a source without a location."""
    return "imports need a file: this suite was not read from a file"


def inlined(files: Iterable[ImportedFile]) -> Reader:
    """The reader of a job: the worker has read every import, and the request contains it."""
    known = {(file.importer, file.path): file.file for file in files}

    def read(importer: str, path: str) -> SourceFile | str:
        return known.get((importer, path)) or "the file is not part of the request"

    return read


def search_path(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """The folders of DQL_PATH, separated by colons."""
    return tuple(map(Path, filter(None, environment.get("DQL_PATH", "").split(":"))))


def project_root(file: Path) -> Path | None:
    """The nearest folder above a file with a `dqx.toml` or a `.git`; None if there is none."""
    for folder in Path(os.path.realpath(file)).parents:
        if any((folder / mark).exists() for mark in _MARKS):
            return folder
    return None


class FileReader:
    """Reads imports from disk.

    A path is searched next to the importing file, then below the project root of the main file,
    then below `root`, then in the folders of `search_path`. Nothing outside of these and of the
    folder of the main file is read, even if a path contains `..`.
    """

    def __init__(self, name: str, path: Path, root: Path, search_path: Iterable[Path] = ()) -> None:
        self._places: dict[str, Path] = {name: Path(os.path.realpath(path))}
        self._read: dict[str, SourceFile | Unreadable] = {}
        self._main = self._places[name]
        self._root = root.resolve()
        self._search_path = search_path

    @cached_property
    def _project(self) -> Path | None:
        return project_root(self._main)

    @cached_property
    def _folders(self) -> tuple[Path, ...]:
        """The folders to search for imports, looked up once something is imported."""
        homes = (self._root,) if self._project is None else (self._project, self._root)
        return (*homes, *(folder.resolve() for folder in self._search_path))

    @property
    def files(self) -> tuple[Path, ...]:
        """The main file, and the files read so far."""
        return tuple(self._places.values())

    def __call__(self, importer: str, path: str) -> SourceFile | str:
        if "\0" in path or not path:
            return "invalid path"
        beside = self._places[importer].parent
        folders = (beside,) if path.startswith(".") else (beside, *self._folders)
        try:
            return self._find(path, tuple(dict.fromkeys(folders)))
        except OSError as error:
            return f"cannot read the file: {error}"
        except (ValueError, RuntimeError):  # a NUL in it, or links in a circle
            return f"{path!a} is not a file path"

    def _find(self, path: str, folders: tuple[Path, ...]) -> SourceFile | str:
        for folder in folders:
            place = (folder / path).resolve()
            if not place.is_file():
                continue
            if not any(map(place.is_relative_to, (self._main.parent, *self._folders))):
                reason = f"{place} is outside the allowed folders"
                hint = "; to import from all of a project, put a dqx.toml at its root"
                return reason if self._project is not None else reason + hint
            name = self._name_of(place)
            self._places[name] = place
            if name not in self._read:
                self._read[name] = read_source(place, name)
            source = self._read[name]
            return source.reason if isinstance(source, Unreadable) else source
        if any((folder / path).is_dir() for folder in folders):
            return "this is a folder, not a file"
        return f"file not found in {', '.join(map(str, folders))}"

    def _name_of(self, place: Path) -> str:
        """The path below `root`, or else the full path: no two files have the same name."""
        is_below = place.is_relative_to(self._root)
        return place.relative_to(self._root).as_posix() if is_below else str(place)
