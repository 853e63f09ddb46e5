"""The files in an editor: unsaved text takes precedence over the file on disk; the diagnostics of
open files, each in the file it belongs to; and the datasets in a `dqx.toml`, with their columns.

Of tables, only local metadata is read, no data, and nothing before the columns of a dataset are
requested. The setting `columns` names them instead of reading them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from dqx_airflow.contracts.datalex.binding import check_blocks, find_manifest
from dqx_airflow.contracts.dialects.datalex import read_manifest
from dqx_airflow.datasets.dqx_toml import FILE_NAME, find_settings, read_settings
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.dql.check import Checked, check_source
from dqx_airflow.dql.imports import FileReader, Reader, no_imports
from dqx_airflow.dql.syntax.datalex_blocks import is_block_file
from dqx_airflow.errors import first_line
from dqx_airflow.values import SourceFile

MOST_FILES = 2000
"""The maximum number of files searched for references to a name."""


@dataclass(slots=True)
class Files:
    """The folders that are open in the editor, and the texts."""

    folders: tuple[Path, ...] = ()
    search_path: tuple[Path, ...] = ()
    opened: dict[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str | None:
        """The text of a file; None if it cannot be read."""
        if name in self.opened:
            return self.opened[name]
        try:
            return Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError, ValueError):
            return None

    def root(self, name: str) -> Path:
        """The folder of the editor that contains the file, or else the parent folder of the
        file."""
        holding = [folder for folder in self.folders if Path(name).is_relative_to(folder)]
        return max(holding, key=lambda folder: len(folder.parts), default=Path(name).parent)

    def reader(self, name: str) -> Reader:
        """Reads the imports of the file, direct and indirect."""
        if not Path(name).is_absolute():
            return no_imports
        root = self.root(name)
        disk = FileReader(name, Path(name), root, self.search_path)
        names_on_disk = {name: name}

        def read(importer: str, path: str) -> SourceFile | str:
            source = disk(names_on_disk[importer], path)
            if isinstance(source, str):
                return source
            whole = os.path.normpath(root / source.name)
            names_on_disk[whole] = source.name
            return SourceFile(whole, self.opened.get(whole, source.text))

        return read

    def suites(self) -> Iterator[str]:
        """The names of all DQL files that are open or in the folders."""
        yield from self.opened
        on_disk = (name for folder in self.folders for name in _suites_below(folder))
        yield from islice((name for name in on_disk if name not in self.opened), MOST_FILES)


def _suites_below(folder: Path) -> Iterator[str]:
    for home, subfolders, names in os.walk(folder):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        yield from (os.path.join(home, name) for name in sorted(names) if name.endswith(".dql"))


@dataclass(slots=True)
class OpenFiles:
    """The open files in their last checked state. A check may find mistakes in imported files."""

    checked: dict[str, Checked] = field(default_factory=dict)

    def check(self, name: str, files: Files) -> set[str]:
        """Checks an open file, and returns the files whose findings may have changed."""
        text = files.opened[name]
        touched = self.forget(name)
        self.checked[name] = _checked(SourceFile(name, text), files)
        return touched | self.checked[name].sources.keys()

    def forget(self, name: str) -> set[str]:
        """Forgets a closed file, and returns the files whose findings may have changed."""
        before = self.checked.pop(name, None)
        return set(before.sources) if before else set()

    def importers(self, name: str) -> list[str]:
        """The open files that import a file, directly or indirectly."""
        return [
            other
            for other, checked in self.checked.items()
            if other != name and name in checked.sources
        ]

    def findings(self, file: str) -> list[Diagnostic]:
        """The findings in a file: each once, however many files import it."""
        diagnostics: dict[object, Diagnostic] = {}
        for diagnostic in self._all(file):
            diagnostics.setdefault(
                (diagnostic.code, diagnostic.span, diagnostic.message), diagnostic
            )
        return list(diagnostics.values())

    def text(self, file: str) -> str | None:
        """The text of a file when it was checked."""
        texts = (checked.sources[file] for checked in self._seeing(file))
        return next(texts, None)

    def _all(self, file: str) -> Iterator[Diagnostic]:
        for checked in self._seeing(file):
            yield from (
                diagnostic for diagnostic in checked.diagnostics if diagnostic.span.file == file
            )

    def _seeing(self, file: str) -> Iterator[Checked]:
        """The checks that involved a file, its own first."""
        if file in self.checked:
            yield self.checked[file]
        for name, checked in self.checked.items():
            if name != file and file in checked.sources:
                yield checked


def _checked(source: SourceFile, files: Files) -> Checked:
    checked = check_source(source, files.reader(source.name))
    if not is_block_file(source.text):
        return checked
    place = find_manifest(Path(source.name).parent) if Path(source.name).is_absolute() else None
    text = files.text(str(place)) if place is not None else None
    manifest = read_manifest(SourceFile(str(place), text)) if text is not None else None
    return replace(checked, diagnostics=check_blocks(source, manifest).diagnostics)


_READ = ("delta", "parquet")


@dataclass(frozen=True, slots=True)
class KnownColumn:
    """A column of a dataset; the type is empty if it is unknown."""

    name: str
    type: str = ""


@dataclass(slots=True)
class Catalog:
    """The datasets of one `dqx.toml`. `problems` describe what could not be read."""

    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    folder: Path = Path()
    problems: list[str] = field(default_factory=list)
    _known: dict[str, tuple[KnownColumn, ...]] = field(default_factory=dict)

    @property
    def datasets(self) -> tuple[str, ...]:
        return tuple(self.tables)

    def path(self, dataset: str) -> str | None:
        """The path of a dataset, as written."""
        path = self.tables.get(dataset, {}).get("path")
        return path if isinstance(path, str) else None

    def columns(self, dataset: str) -> tuple[KnownColumn, ...]:
        """The columns of a dataset; empty if unknown."""
        if dataset not in self.tables:
            return ()
        if dataset not in self._known:
            try:
                self._known[dataset] = self._read(dataset)
            except Exception as error:  # whatever the libraries raise
                self._known[dataset] = ()
                message = f"the columns of dataset '{dataset}' cannot be read: {first_line(error)}"
                self.problems.append(f"{self.folder / FILE_NAME}: {message}")
        return self._known[dataset]

    def _read(self, dataset: str) -> tuple[KnownColumn, ...]:
        table = self.tables[dataset]
        columns = table.get("columns")
        if isinstance(columns, list):
            return tuple(KnownColumn(str(column)) for column in columns)
        path, format = self.path(dataset), table.get("format", "delta")
        if path is None or format not in _READ or "://" in path:
            return ()
        place = self.folder / path
        return _delta_columns(place) if format == "delta" else _parquet_columns(place)


def find_catalog(file: str) -> Catalog:
    """The catalog for a file: of the nearest `dqx.toml`, or else an empty one."""
    place = find_settings(Path(file).parent) if Path(file).is_absolute() else None
    if place is None:
        return Catalog()
    settings = read_settings(place)
    problems = [
        f"{problem.span.file}:{problem.span.line}: {problem.message}"
        for problem in settings.problems
    ]
    return Catalog(settings.datasets, place.parent, problems)


def _delta_columns(place: Path) -> tuple[KnownColumn, ...]:
    from deltalake import DeltaTable

    fields = DeltaTable(str(place)).schema().fields
    return tuple(KnownColumn(item.name, _type_name(item.type)) for item in fields)


def _type_name(type: Any) -> str:
    """`long` for a primitive type; `struct`, `array` or `map` for a nested one."""
    return str(type.type)


def _parquet_columns(place: Path) -> tuple[KnownColumn, ...]:
    """The columns of the first file, and those of the partitions that it is in."""
    from pyarrow import parquet

    first = place if place.is_file() else next(iter(place.rglob("*.parquet")), None)
    if first is None:
        raise FileNotFoundError(f"there is no .parquet file below {place}")
    columns = [KnownColumn(item.name, str(item.type)) for item in parquet.read_schema(first)]
    folders = first.relative_to(place).parts[:-1] if place.is_dir() else ()
    partitions = [KnownColumn(part.split("=", 1)[0]) for part in folders if "=" in part]
    return (*columns, *partitions)
