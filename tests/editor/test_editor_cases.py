"""The answers of the language server at a position in a suite: see the Markdown files."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

from dqx_airflow.editor.catalog import find_catalog
from dqx_airflow.editor.completion import complete
from dqx_airflow.editor.hover import hover
from dqx_airflow.editor.occurrences import definitions, rename
from dqx_airflow.errors import RequestError
from tests.editor.editor_scene import Scene, scene
from tests.markdown_cases import Case, cases

HOME = Path(__file__).parent / "cases"
MOST_ITEMS = 12


def of(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", list(cases(HOME / f"{kind}.md")), ids=str)


@of("hover")
def test_hovering_shows_what_a_word_means(case: Case, tmp_path: Path) -> None:
    now = scene(case, tmp_path)
    found = hover(now.reading, now.offset, find_catalog(now.reading.name))
    if found is None:
        case.expect("nothing")
        return
    word = now.reading.source.text[found.start : found.end]
    # The fences of the answer must not end the block that it stands in.
    shown = [f"  {line}".rstrip() for line in found.markdown.splitlines()]
    case.expect("\n".join([f"{word}:", *shown]))


@of("completion")
def test_completion_offers_what_fits(case: Case, tmp_path: Path) -> None:
    now = scene(case, tmp_path)
    importable = [now.short(name) for name in now.files.suites() if name != now.reading.name]
    catalog = find_catalog(now.reading.name)
    found = complete(now.reading, now.offset, catalog, importable)
    assert not catalog.problems
    typed = now.reading.source.text[found.start : now.offset]
    fitting = [item for item in found.items if typed in (item.text or item.label)]
    lines = [
        f"{item.label} | {item.sort.name.lower()} | {item.detail}" for item in fitting[:MOST_ITEMS]
    ]
    if len(fitting) > MOST_ITEMS:
        lines.append(f"and {len(fitting) - MOST_ITEMS} more")
    case.expect("\n".join(line.rstrip(" |") for line in lines) or "nothing")


@of("definition")
def test_go_to_definition_finds_it(case: Case, tmp_path: Path) -> None:
    now = scene(case, tmp_path)
    lines = []
    for span in definitions(now.reading, now.offset):
        defining = now.read(span.file)
        start, end = defining.lines.stretch(span)
        shown = defining.source.text[start:end] or "the file"
        lines.append(f"{now.short(span.file)}:{span.line}:{span.column}: {shown}")
    case.expect("\n".join(lines) or "nothing")


@of("rename")
def test_renaming_changes_every_occurrence_or_is_refused(case: Case, tmp_path: Path) -> None:
    now = scene(case, tmp_path)
    name = case.blocks[-1].option("to")
    try:
        edits = rename(now.reading, now.offset, name, now.others())
    except RequestError as refused:
        case.expect(f"refused: {refused.problem}")
        return
    case.expect(_changed_lines(now, [(edit.span.file, edit.span, edit.text) for edit in edits]))


def _changed_lines(now: Scene, edits: list[tuple[str, object, str]]) -> str:
    """The lines of each file that are others after the edits."""
    changed = []
    for file, of_file in groupby(sorted(edits, key=lambda edit: edit[0]), lambda edit: edit[0]):
        reading = now.read(file)
        text = reading.source.text
        places = [(*reading.lines.stretch(span), new) for _, span, new in of_file]  # type: ignore[arg-type]
        for start, end, new in sorted(places, reverse=True):
            text = text[:start] + new + text[end:]
        pairs = zip(reading.source.text.splitlines(), text.splitlines(), strict=True)
        for number, (before, after) in enumerate(pairs, start=1):
            if before != after:
                changed.append(f"{now.short(file)}:{number}: {after.strip()}")
    return "\n".join(changed)
