"""A scene of the Markdown cases: files in a folder, with a cursor `|` in the first one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dqx_airflow.editor.files import Files
from dqx_airflow.editor.parsed_file import ParsedFile, parsed_file
from dqx_airflow.values import SourceFile
from tests.markdown_cases import Case


@dataclass(frozen=True)
class Scene:
    """The file with the cursor, as the editor has it open; the others are on disk."""

    folder: Path
    files: Files
    reading: ParsedFile
    offset: int

    def read(self, name: str) -> ParsedFile:
        source = SourceFile(name, self.files.text(name) or "")
        return parsed_file(source, self.files.reader(name))

    def others(self) -> list[ParsedFile]:
        return [self.read(name) for name in self.files.suites() if name != self.reading.name]

    def short(self, name: str) -> str:
        return Path(name).relative_to(self.folder).as_posix()


def scene(case: Case, folder: Path) -> Scene:
    """Blocks with the option `file=NAME` are on disk, the others are `suite.dql`."""
    for block in case.blocks:
        if block.option("file"):
            place = folder / block.option("file")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(block.text, encoding="utf-8")
    marked = next(item.text for item in case.blocks if not item.option("file"))
    offset = marked.index("|")
    text = marked[:offset] + marked[offset + 1 :]
    suite = folder / "suite.dql"
    suite.write_text(text, encoding="utf-8")
    files = Files((folder,), opened={str(suite): text})
    reading = parsed_file(SourceFile(str(suite), text), files.reader(str(suite)))
    return Scene(folder, files, reading, offset)
