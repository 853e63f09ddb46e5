"""Positions are counted as the parser counts them, and as the editor does."""

from __future__ import annotations

import pytest

from dqx_airflow.editor.parsed_file import Lines
from dqx_airflow.values import Span

TEXT = 'one\n"🦆é" x\r\nthree\rfour'


@pytest.mark.parametrize(("encoding", "character"), [("utf-16", 6), ("utf-8", 9), ("utf-32", 5)])
def test_an_emoji_counts_its_units_in_the_encoding(encoding: str, character: int) -> None:
    lines = Lines(TEXT, encoding)
    assert lines.position(TEXT.index("x")) == (1, character)
    assert lines.offset((1, character)) == TEXT.index("x")


def test_offsets_survive_a_round_trip_through_positions() -> None:
    lines = Lines(TEXT)
    inside_a_line_end = TEXT.index("\r\n") + 1
    for offset in range(len(TEXT) + 1):
        if offset != inside_a_line_end:
            assert lines.offset(lines.position(offset)) == offset


def test_spans_and_offsets_convert_into_each_other() -> None:
    lines = Lines(TEXT)
    for start in range(len(TEXT) + 1):
        for end in range(start, len(TEXT) + 1):
            assert lines.stretch(lines.span(start, end, "f")) == (start, end)


def test_a_carriage_return_ends_a_line_for_the_editor_and_not_for_the_parser() -> None:
    four = TEXT.index("four")
    lines = Lines(TEXT)
    assert lines.position(four) == (3, 0)
    assert lines.span(four, four + 4, "f") == Span("f", 3, 7, 3, 11)


@pytest.mark.parametrize("position", [(0, 99), (99, 0), (-1, 0), (1, -5), (3, 99)])
def test_a_position_past_the_end_is_clamped(position: tuple[int, int]) -> None:
    assert 0 <= Lines(TEXT).offset(position) <= len(TEXT)


def test_a_span_past_the_end_is_clamped() -> None:
    assert Lines("a").range(Span("f", 7, 3, 9, 1)) == ((0, 1), (0, 1))
