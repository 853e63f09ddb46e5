"""The answers of the language server at a position in a suite: see the Markdown files."""

from __future__ import annotations

import random
from itertools import groupby
from pathlib import Path

import pytest

from dqx_airflow.dql.import_readers import no_imports
from dqx_airflow.editor import vocabulary
from dqx_airflow.editor.catalog import find_catalog
from dqx_airflow.editor.completion import Sort, complete
from dqx_airflow.editor.hover import hover
from dqx_airflow.editor.occurrences import definitions, references, rename
from dqx_airflow.editor.parsed_file import ParsedFile, parsed_file
from dqx_airflow.editor.signatures import signature_at
from dqx_airflow.errors import RequestError
from dqx_airflow.values import SourceFile
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


@of("references")
def test_references_are_found_in_all_files(case: Case, tmp_path: Path) -> None:
    now = scene(case, tmp_path)
    spans = references(now.reading, now.offset, now.others(), with_definitions=True)
    uses = references(now.reading, now.offset, now.others(), with_definitions=False)
    assert set(spans) - set(uses) == set(definitions(now.reading, now.offset)) & set(spans)
    lines = []
    for span in sorted(spans, key=lambda one: (one.file, one.line, one.column)):
        shown = now.read(span.file).source.text.splitlines()[span.line - 1]
        lines.append(f"{now.short(span.file)}:{span.line}:{span.column}: {shown.strip()}")
    case.expect("\n".join(lines) or "nothing")


@of("signature")
def test_a_call_shows_its_signature(case: Case, tmp_path: Path) -> None:
    now = scene(case, tmp_path)
    found = signature_at(now.reading, now.offset)
    if found is None:
        case.expect("nothing")
        return
    active = found.parameters[found.active]
    case.expect(f"{found.label}: [{active}]")


@of("completion")
def test_while_typing_it_offers_the_same(case: Case, tmp_path: Path) -> None:
    """The tree is then of the text before, and statements far from the cursor are not read."""
    now = scene(case, tmp_path)
    text = now.reading.source.text
    line = text.rfind("\n", 0, now.offset) + 1
    before = SourceFile(now.reading.name, text[:line] + text[now.offset :])
    parsed = parsed_file(before, now.files.reader(before.name))
    typed = parsed.with_text(text)
    catalog = find_catalog(now.reading.name)
    places = [_context(one, now.offset) for one in (typed, now.reading)]
    assert places[0] == places[1] == vocabulary.place_at(text, now.offset)
    assert {one.label for one in complete(typed, now.offset, catalog).items} >= {
        one.label
        for one in complete(now.reading, now.offset, catalog).items
        if one.sort in (Sort.KEYWORD, Sort.METRIC, Sort.FUNCTION)
    }


def _context(reading: ParsedFile, offset: int) -> vocabulary.CompletionContext:
    near = reading.nearby(offset)
    return vocabulary.place_at(near.text, offset - near.shift)


FILES = sorted(Path(__file__).parents[1].rglob("*.dql"))


@pytest.mark.few(3)
@pytest.mark.parametrize("seed", range(60))
def test_far_statements_do_not_decide_what_may_follow(seed: int) -> None:
    """With a broken statement at the cursor, and without."""
    chance = random.Random(seed)
    for file in chance.sample(FILES, 3):
        text = file.read_text(encoding="utf-8")
        offset = chance.randrange(len(text))
        end = text.find("\n", offset)
        for cut in (text, text[:offset] + text[end:]):
            reading = parsed_file(SourceFile(file.name, cut), no_imports)
            assert _context(reading, offset) == vocabulary.place_at(cut, offset), (file, offset)


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
