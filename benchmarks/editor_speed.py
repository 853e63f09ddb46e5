"""Measures the processor time of an editor's requests about a suite of 5,000 assertions: after it
was opened, at each key that is typed, and again on unchanged text."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.language_speed import suite
from dqx_airflow.dql.import_readers import no_imports
from dqx_airflow.editor.catalog import Catalog
from dqx_airflow.editor.completion import complete
from dqx_airflow.editor.files import Files, OpenFiles, checked_file
from dqx_airflow.editor.hover import hover
from dqx_airflow.editor.parsed_file import ParsedFile, parsed_file
from dqx_airflow.editor.signatures import signature_at
from dqx_airflow.values import SourceFile

ASSERTIONS = 5_000
NAME = str(Path("/suites/orders.dql"))


def cost(what: str, action: Callable[[], object]) -> None:
    """Prints the processor time of an action."""
    started = time.process_time()
    action()
    print(f"{what:<42} {time.process_time() - started:.3f} s")


def main() -> None:
    text = suite(ASSERTIONS)
    files = Files(opened={NAME: text})
    board = OpenFiles()
    checked_file(NAME, Files(opened={NAME: suite(1)}))  # builds the tables of the parser
    cost("opening: parsing and checking", lambda: board.take(NAME, checked_file(NAME, files)))
    reading = parsed_file(SourceFile(NAME, text), no_imports)
    middle = text.index("null_count(column_2501") + 3
    cost("the first hover", lambda: hover(reading, middle, Catalog()))
    cost("another hover", lambda: hover(reading, middle, Catalog()))
    typed = f"{text[:middle]}x{text[middle:]}"
    latest: list[ParsedFile] = []
    cost("a key", lambda: latest.append(reading.with_text(typed)))
    cost("completion at this key", lambda: complete(latest[0], middle + 1, Catalog()))
    cost("its signature", lambda: signature_at(latest[0], middle + 9))


if __name__ == "__main__":
    main()
