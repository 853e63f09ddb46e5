"""The source texts of a gate, with the lines of its assertions marked.

If the results store has the texts they are displayed completely, with long stretches without a
failure folded. Otherwise only the lines in the verdicts are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from dqx_airflow.ui.report_view import fault_of, is_bad
from dqx_airflow.values import Severity, SourceFile, Span, Status, Verdict

_AROUND = 3
_SHORT_FILE, _SHORT_STRETCH = 60, 6
_MOST_LINES = 2000
_LONGEST_LINE = 1000
_MOST_NOTES = 5


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line, split at the highlighted span. `state` is that of its worst assertion, "warned" if
    its failure is one, empty if the line has no assertion. `notes` describe the failures that begin
    here."""

    number: int
    before: str
    span: str = ""
    after: str = ""
    state: str = ""
    notes: tuple[str, ...] = ()
    more_notes: int = 0

    @property
    def is_bad(self) -> bool:
        return self.state in ("failed", "error", "warned")


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive lines, or `left_out` unknown ones."""

    lines: tuple[SourceLine, ...] = ()
    is_folded: bool = False
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class SourceView:
    """A file. One without failures is displayed on request."""

    file: str
    stretches: tuple[Stretch, ...]
    is_folded: bool
    lines: int


@dataclass(frozen=True, slots=True)
class _Mark:
    """An assertion as marked in its lines."""

    span: Span
    state: str
    text: str | None
    note: str | None


def sources_of(
    verdicts: Iterable[Verdict], fail_on: Severity | None, sources: Sequence[SourceFile] = ()
) -> tuple[SourceView, ...]:
    """The files of a gate, those with failures first.

    :param verdicts: the worst first.
    :param fail_on: the lowest severity whose failure is not a warning.
    :param sources: the files as far as they are stored.
    """
    marks: dict[str, list[_Mark]] = {}
    for verdict in verdicts:
        if verdict.span is not None:
            marks.setdefault(verdict.span.file, []).append(_mark(verdict, verdict.span, fail_on))

    def rank(file: str) -> int:
        own = marks.get(file, ())
        return 0 if any(mark.note for mark in own) else 1 if own else 2

    views = []
    room = _MOST_LINES
    for text in sorted(sources, key=lambda text: rank(text.name)):
        view = _whole(text, marks.get(text.name, ()), room)
        room -= sum(len(stretch.lines) for stretch in view.stretches)
        views.append(view)
    stored = {text.name for text in sources}
    for file in sorted(marks.keys() - stored):
        if excerpt := _excerpt(file, marks[file]):
            views.append(excerpt)
    return tuple(sorted(views, key=lambda view: rank(view.file)))


def _mark(verdict: Verdict, span: Span, fail_on: Severity | None) -> _Mark:
    is_mild = fail_on is not None and not verdict.can_block(fail_on)
    is_warning = verdict.status is Status.FAILED and is_mild
    return _Mark(
        span,
        "warned" if is_warning else verdict.status.value,
        verdict.source_line,
        fault_of(verdict) if is_bad(verdict) else None,
    )


def _whole(source: SourceFile, marks: Sequence[_Mark], most: int) -> SourceView:
    texts = source.text.split("\n")
    if texts[-1] == "":
        texts.pop()
    marked = _marked(dict(enumerate(texts, 1)), marks)
    lines = [
        marked.get(number) or SourceLine(number, _cut(text)) for number, text in enumerate(texts, 1)
    ]
    is_bad = any(line.is_bad for line in lines)
    stretches = tuple(_stretches(lines, is_bad=is_bad))
    return SourceView(source.name, _within(stretches, most), not is_bad, len(lines))


def _stretches(lines: Sequence[SourceLine], *, is_bad: bool) -> Iterator[Stretch]:
    """The lines in stretches, folded if they are far from all failures."""
    if not is_bad or len(lines) <= _SHORT_FILE:
        yield Stretch(tuple(lines))
        return
    near = {
        number
        for line in lines
        if line.is_bad
        for number in range(line.number - _AROUND, line.number + _AROUND + 1)
    }
    shown: list[SourceLine] = []
    for is_near, group in groupby(lines, lambda line: line.number in near):
        stretch = tuple(group)
        if is_near or len(stretch) < _SHORT_STRETCH:
            shown += stretch
            continue
        if shown:
            yield Stretch(tuple(shown))
        shown = []
        yield Stretch(stretch, is_folded=True)
    if shown:
        yield Stretch(tuple(shown))


def _within(stretches: Sequence[Stretch], most: int) -> tuple[Stretch, ...]:
    """The stretches with as many lines as fit, the folded ones last."""
    fitting: dict[int, Stretch] = {}
    for index, stretch in sorted(enumerate(stretches), key=lambda item: item[1].is_folded):
        lines = stretch.lines[: max(most, 0)]
        most -= len(lines)
        fitting[index] = replace(stretch, lines=lines, left_out=len(stretch.lines) - len(lines))
    return tuple(fitting[index] for index in range(len(stretches)))


def _excerpt(file: str, marks: Sequence[_Mark]) -> SourceView | None:
    """The lines in the verdicts; None if there are none."""
    texts = {mark.span.line: mark.text for mark in marks if mark.text is not None}
    if not texts:
        return None
    lines = [line for _, line in sorted(_marked(texts, marks).items())]
    indent = min(len(line.before) - len(line.before.lstrip()) for line in lines)
    stretches: list[Stretch] = []
    shown: list[SourceLine] = []
    for line in lines:
        if shown and line.number > shown[-1].number + 1:
            missing = line.number - shown[-1].number - 1
            stretches += [Stretch(tuple(shown)), Stretch(left_out=missing)]
            shown = []
        shown.append(replace(line, before=line.before[indent:]))
    stretches.append(Stretch(tuple(shown)))
    return SourceView(file, tuple(stretches), is_folded=False, lines=len(lines))


def _marked(texts: Mapping[int, str], marks: Sequence[_Mark]) -> dict[int, SourceLine]:
    """The lines with assertions, by number; the worst assertion of each counts."""
    lines: dict[int, SourceLine] = {}
    notes: dict[int, list[str]] = {}
    for mark in marks:
        span = mark.span
        for number in range(span.line, min(span.end_line, span.line + _SHORT_FILE) + 1):
            if number in texts and number not in lines:
                lines[number] = _line(number, texts[number], mark)
        if mark.note and span.line in texts:
            notes.setdefault(span.line, []).append(mark.note)
    for number, own in notes.items():
        more = max(len(own) - _MOST_NOTES, 0)
        lines[number] = replace(lines[number], notes=tuple(own[:_MOST_NOTES]), more_notes=more)
    return lines


def _line(number: int, text: str, mark: _Mark) -> SourceLine:
    text, span = _cut(text), mark.span
    indent = len(text) - len(text.lstrip())
    start = max(span.column - 1, 0) if number == span.line else indent
    end = max(span.end_column - 1, start) if number == span.end_line else len(text)
    return SourceLine(number, text[:start], text[start:end], text[end:], mark.state)


def _cut(text: str) -> str:
    text = text.rstrip("\r")
    return text if len(text) <= _LONGEST_LINE else f"{text[:_LONGEST_LINE]}…"
