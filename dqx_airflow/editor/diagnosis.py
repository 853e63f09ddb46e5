"""The diagnostics of open files, each in the file it belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from dqx_airflow.contracts.datalex.check import check_blocks, find_manifest
from dqx_airflow.contracts.datalex.manifest import read_manifest
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.dql.check import Checked, check_source
from dqx_airflow.dql.syntax.datalex_blocks import is_block_file
from dqx_airflow.editor.files import Files
from dqx_airflow.values import SourceFile


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
