"""The files in an editor, linked with their imports. Unsaved text takes precedence over the file on
disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path

from dqx_airflow.contracts.datalex_binding import check_blocks, find_manifest
from dqx_airflow.contracts.dialects.datalex import read_manifest
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.dql.check import Checked, check_source
from dqx_airflow.dql.import_readers import FileReader, Reader, no_imports
from dqx_airflow.dql.syntax.source_file import is_block_file
from dqx_airflow.editor.parsed_file import parsed_once
from dqx_airflow.values import SourceFile

MOST_FILES = 2000
"""The maximum number of files searched for references to a name."""


@dataclass(slots=True)
class Files:
    """The folders that are open in the editor, and the texts."""

    folders: tuple[Path, ...] = ()
    search_path: tuple[Path, ...] = ()
    opened: dict[str, str] = field(default_factory=dict)

    def as_now(self) -> Files:
        """The same files, which keep their texts while the editor changes them."""
        return replace(self, opened=dict(self.opened))

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

    def take(self, name: str, checked: Checked) -> set[str]:
        """Takes the check of an open file, and returns the files whose findings may have
        changed."""
        touched = self.forget(name)
        self.checked[name] = checked
        return touched | checked.sources.keys()

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
        found = chain.from_iterable(checked.diagnostics for checked in self._seeing(file))
        diagnostics: dict[object, Diagnostic] = {}
        for one in found:
            if one.span.file == file:
                diagnostics.setdefault((one.code, one.span, one.message), one)
        return list(diagnostics.values())

    def text(self, file: str) -> str | None:
        """The text of a file when it was checked."""
        texts = (checked.sources[file] for checked in self._seeing(file))
        return next(texts, None)

    def _seeing(self, file: str) -> Iterator[Checked]:
        """The checks that involved a file, its own first."""
        if file in self.checked:
            yield self.checked[file]
        for name, checked in self.checked.items():
            if name != file and file in checked.sources:
                yield checked


def checked_file(name: str, files: Files) -> Checked:
    """Checks an open file. It may run in a thread, since it depends only on its arguments."""
    source = SourceFile(name, files.opened[name])
    checked = check_source(source, files.reader(source.name), parse=parsed_once)
    if not is_block_file(source.text):
        return checked
    place = find_manifest(Path(source.name).parent) if Path(source.name).is_absolute() else None
    text = files.text(str(place)) if place is not None else None
    manifest = read_manifest(SourceFile(str(place), text)) if text is not None else None
    return replace(checked, diagnostics=check_blocks(source, manifest).diagnostics)
