"""The files in an editor: unsaved text takes precedence over the file on disk.

A file is identified by its full path; an unsaved one by the editor's name for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from dqx_airflow.dql.imports import FileReader, Reader, no_imports
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
