"""Every request of an editor gets an answer soon, whatever is typed."""

from __future__ import annotations

import random
import re
import time
from contextlib import suppress
from pathlib import Path

import pytest

from dqx_airflow.dql.check import check_source
from dqx_airflow.editor.catalog import Catalog
from dqx_airflow.editor.completion import complete
from dqx_airflow.editor.files import Files
from dqx_airflow.editor.hover import hover
from dqx_airflow.editor.occurrences import definitions, occurrences, proposed, rename
from dqx_airflow.editor.parsed_file import Lines, Symbol, outline, parsed_file
from dqx_airflow.errors import RequestError
from dqx_airflow.values import SourceFile

TESTS = Path(__file__).parents[1]
SUITES = sorted([*TESTS.glob("dql/seed/*.dql"), *TESTS.parent.glob("dags_examples/suites/*.dql")])
MUTATIONS = 8
SECONDS_EACH = 2.0

_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\w+|\s+|.', re.DOTALL)
_STRANGE = ('"', "`", "{", "}", "(", ")", "[", "]", "\0", "\ufeff", "\r", "\\", "#", "@", "🦆", "é")
_STRANGE += ("\u2028", "\x0c", "..", "a.", ".a", "use x.", "import {", "name", "in", "is", "1e999")


@pytest.mark.few(4)
@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
def test_every_question_about_a_mutated_suite_is_answered(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    chance = random.Random(path.name)
    for _ in range(MUTATIONS):
        mutated = text
        for _ in range(chance.randint(1, 4)):
            mutated = _mutate(mutated, chance)
        started = time.process_time()
        _ask_everything(str(path), mutated, chance.randint(0, len(mutated)))
        assert time.process_time() - started < SECONDS_EACH, mutated


@pytest.mark.few(4)
@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
def test_every_question_at_the_end_of_a_suite_being_typed_is_answered(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for end in range(0, len(text), max(len(text) // 15, 1)):
        _ask_everything(str(path), text[:end], end)


def _mutate(text: str, chance: random.Random) -> str:
    parts = _TOKEN.findall(text) if chance.random() < 0.7 else list(text)
    if not parts:
        return chance.choice(_STRANGE)
    here, there = chance.randrange(len(parts)), chance.randrange(len(parts))
    match chance.randrange(4):
        case 0:
            del parts[here]
        case 1:
            parts[here], parts[there] = parts[there], parts[here]
        case 2:
            parts.insert(here, chance.choice(_STRANGE))
        case _:
            low, high = sorted((here, there))
            del parts[low : min(high, low + 40)]
    return "".join(parts)


def _check_symbols(symbols: tuple[Symbol, ...], lines: Lines) -> None:
    """An editor refuses a symbol whose name lies outside of it."""
    for symbol in symbols:
        (start, end), (name_start, name_end) = (
            lines.range(symbol.span),
            lines.range(symbol.name_span),
        )
        assert start <= name_start <= name_end <= end
        _check_symbols(symbol.children, lines)


def _ask_everything(name: str, text: str, offset: int) -> None:
    files = Files((Path(name).parent,), opened={name: text})
    source = SourceFile(name, text)
    reading = parsed_file(source, files.reader(name))
    catalog = Catalog({"orders": {"columns": ["id", "order date"]}})
    lines = reading.lines
    for item in occurrences(reading):
        start, end = lines.stretch(item.span)
        assert 0 <= start <= end <= len(text)
        assert lines.range(item.span)[0] <= lines.range(item.span)[1]
    found = complete(reading, offset, catalog, ["common/nulls.dql"])
    assert found.start <= offset <= found.end
    hover(reading, offset, catalog)
    definitions(reading, offset)
    _check_symbols(outline(reading), lines)
    with suppress(RequestError):
        rename(reading, offset, "renamed")
    for finding in check_source(source, files.reader(name)).diagnostics:
        if finding.span.file == name:
            proposed(finding, lines)
