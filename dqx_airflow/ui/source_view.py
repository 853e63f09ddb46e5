"""The source texts of a gate, with the lines of its assertions marked.

If the results store has the texts they are displayed completely, with long stretches without a
failure folded. Otherwise only the lines in the verdicts are known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import chain, groupby, pairwise
from typing import TypeAlias

from dqx_airflow.ui import report_view
from dqx_airflow.ui.assertion_view import AssertionView
from dqx_airflow.ui.verdict_text import fault_of
from dqx_airflow.values import SourceFile, Span

_AROUND = 3
_SHORT_FILE = 60
_SHORT_STRETCH = 6
_MOST_LINES = 2000
_LONGEST_LINE = 1000


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line, split at the highlighted span. `state` is the state of its worst assertion, "warned"
    if its failure does not block, empty if the line has no assertion. `notes` describe the failures
    that begin here. `is_changed` is set if the line is new since the last good run."""

    number: int
    before: str
    span: str = ""
    after: str = ""
    state: str = ""
    notes: tuple[str, ...] = ()
    is_changed: bool = False

    @property
    def is_bad(self) -> bool:
        return self.state in ("failed", "error", "warned")

    @property
    def is_shown(self) -> bool:
        """Whether it is shown unasked, with the lines around it."""
        return self.is_bad or self.is_changed


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive lines, and `left_out` unknown ones after them."""

    lines: tuple[SourceLine, ...]
    is_folded: bool = False
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class SourceView:
    """A file. One without failures and changed lines is displayed on request."""

    file: str
    stretches: tuple[Stretch, ...]
    is_folded: bool
    lines: int


_Marks: TypeAlias = Sequence[tuple[Span, AssertionView]]
"""The assertions of a file with their positions, the worst first."""


def changed_lines(now: SourceFile, before: SourceFile) -> tuple[range, ...]:
    """The lines of a text that are not in an earlier one, as ranges of their numbers; where lines
    were only removed, the line before them."""
    old, new = (source.text.split("\n") for source in (before, now))
    found = []
    for tag, _, _, start, end in SequenceMatcher(None, old, new).get_opcodes():
        if tag == "delete":
            found.append(range(max(start, 1), max(start, 1) + 1))
        elif tag != "equal":
            found.append(range(start + 1, end + 1))
    return tuple(found)


def sources_of(
    assertions: Iterable[AssertionView],
    sources: Sequence[SourceFile],
    changed: Mapping[str, Sequence[range]] | None = None,
) -> tuple[SourceView, ...]:
    """The files of a gate, those with failures first.

    :param assertions: the worst first.
    :param sources: the files as far as they are stored.
    :param changed: the lines that have changed since the last good run, by file.
    """
    changed = changed or {}
    marks: dict[str, list[tuple[Span, AssertionView]]] = {}
    for assertion in assertions:
        if span := assertion.verdict.span:
            marks.setdefault(span.file, []).append((span, assertion))

    def rank(file: str) -> int:
        own = marks.get(file, ())
        is_bad = any(report_view.is_bad(assertion.verdict) for _, assertion in own)
        return 0 if is_bad else 1 if own else 2

    views = []
    room = _MOST_LINES
    for text in sorted(sources, key=lambda text: rank(text.name)):
        new = {number for lines in changed.get(text.name, ()) for number in lines}
        view = _whole(text, marks.get(text.name, ()), new, room)
        room -= sum(len(stretch.lines) for stretch in view.stretches)
        views.append(view)
    stored = {text.name for text in sources}
    for file in sorted(marks.keys() - stored):
        if excerpt := _excerpt(file, marks[file]):
            views.append(excerpt)
    return tuple(sorted(views, key=lambda view: rank(view.file)))


def _whole(source: SourceFile, marks: _Marks, changed: Collection[int], most: int) -> SourceView:
    texts = source.text.split("\n")
    if texts[-1] == "":
        texts.pop()
    marked = _marked(dict(enumerate(texts, 1)), marks)
    lines = [
        marked.get(number) or SourceLine(number, _cut(text)) for number, text in enumerate(texts, 1)
    ]
    lines = [replace(line, is_changed=True) if line.number in changed else line for line in lines]
    is_shown = any(line.is_shown for line in lines)
    stretches = tuple(_stretches(lines, is_shown=is_shown))
    return SourceView(source.name, _within(stretches, most), not is_shown, len(lines))


def _stretches(lines: Sequence[SourceLine], *, is_shown: bool) -> Iterator[Stretch]:
    """The lines in stretches, folded if they are far from all failures and changes."""
    if not is_shown or len(lines) <= _SHORT_FILE:
        yield Stretch(tuple(lines))
        return
    near = {
        number
        for line in lines
        if line.is_shown
        for number in range(line.number - _AROUND, line.number + _AROUND + 1)
    }

    def is_folded(group: Sequence[SourceLine]) -> bool:
        return group[0].number not in near and len(group) >= _SHORT_STRETCH

    groups = [[*group] for _, group in groupby(lines, lambda line: line.number in near)]
    for folds, adjacent in groupby(groups, is_folded):
        yield Stretch(tuple(chain.from_iterable(adjacent)), folds)


def _within(stretches: Sequence[Stretch], most: int) -> tuple[Stretch, ...]:
    """The stretches with as many lines as fit, the folded ones last."""
    fitting: dict[int, Stretch] = {}
    for index, stretch in sorted(enumerate(stretches), key=lambda item: item[1].is_folded):
        lines = stretch.lines[: max(most, 0)]
        most -= len(lines)
        fitting[index] = replace(stretch, lines=lines, left_out=len(stretch.lines) - len(lines))
    return tuple(fitting[index] for index in range(len(stretches)))


def _excerpt(file: str, marks: _Marks) -> SourceView | None:
    """The lines in the verdicts; None if there are none."""
    known = [(span.line, assertion.verdict.source_line) for span, assertion in marks]
    texts = {number: text for number, text in known if text is not None}
    if not texts:
        return None
    marked = [line for _, line in sorted(_marked(texts, marks).items())]
    indent = min(len(line.before) - len(line.before.lstrip()) for line in marked)
    lines = [replace(line, before=line.before[indent:]) for line in marked]
    consecutive = groupby(enumerate(lines), lambda pair: pair[1].number - pair[0])
    groups = [tuple(line for _, line in group) for _, group in consecutive]
    gaps = [after[0].number - before[-1].number - 1 for before, after in pairwise(groups)]
    pairs = zip(groups, [*gaps, 0], strict=True)
    stretches = tuple(Stretch(group, left_out=gap) for group, gap in pairs)
    return SourceView(file, stretches, is_folded=False, lines=len(lines))


def _marked(texts: Mapping[int, str], marks: _Marks) -> dict[int, SourceLine]:
    """The lines with assertions, by number; the worst assertion of each counts."""
    lines: dict[int, SourceLine] = {}
    notes: dict[int, list[str]] = {}
    for span, assertion in marks:
        verdict = assertion.verdict
        is_bad = report_view.is_bad(assertion.verdict)
        state = assertion.state if is_bad else verdict.status.value
        if state in ("accepted", "waived"):
            state = "warned"
        for number in range(span.line, min(span.end_line, span.line + _SHORT_FILE) + 1):
            if number in texts and number not in lines:
                lines[number] = _line(number, texts[number], span, state)
        if is_bad and span.line in texts:
            notes.setdefault(span.line, []).append(fault_of(verdict))
    return lines | {
        number: replace(lines[number], notes=tuple(own)) for number, own in notes.items()
    }


def _line(number: int, text: str, span: Span, state: str) -> SourceLine:
    text = _cut(text)
    indent = len(text) - len(text.lstrip())
    start = max(span.column - 1, 0) if number == span.line else indent
    end = max(span.end_column - 1, start) if number == span.end_line else len(text)
    return SourceLine(number, text[:start], text[start:end], text[end:], state)


def _cut(text: str) -> str:
    text = text.rstrip("\r")
    return text if len(text) <= _LONGEST_LINE else f"{text[:_LONGEST_LINE]}…"
