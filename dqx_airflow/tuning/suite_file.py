"""Changes of the text of a suite: values of tunables, profiles, and other forms of assertions.
Every other byte stays."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from textwrap import indent
from typing import Any, TypeAlias

from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.diagnostics.renderers import draw, drawn_error
from dqx_airflow.dql import nodes
from dqx_airflow.dql.check import Checked, check_source
from dqx_airflow.dql.constants import settle
from dqx_airflow.dql.import_readers import FileReader, Reader, search_path
from dqx_airflow.dql.printer import show
from dqx_airflow.dql.syntax.source_file import Unreadable, read_source, source_of
from dqx_airflow.errors import ChangeRefusedError, RequestError
from dqx_airflow.tuning.proposals import ProposedForm
from dqx_airflow.tuning.protection import HUMAN, Judgement, is_algorithm, judge_values
from dqx_airflow.tuning.suite_history import Append, Entry, History, new_id
from dqx_airflow.tuning.tunables import literal_of, tunables_of, with_values
from dqx_airflow.values import SourceFile, Span

_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class SuiteText:
    """`read` parses a text to a suite, and raises SourceError if it has errors."""

    text: str
    suite: nodes.Suite
    read: Callable[[str], nodes.Suite]

    def changed(self, profile: str | None = None, form: ProposedForm | None = None) -> nodes.Suite:
        """The suite with an additional profile, or with another form of an assertion.

        :raises SourceError: the resulting suite has errors.
        :raises RequestError: it does not have the assertion of the form.
        """
        return self.read(with_edits(self.text, self.suite, {}, profile, form))


def with_edits(
    text: str,
    suite: nodes.Suite,
    values: Mapping[str, float],
    profile: str | None = None,
    form: ProposedForm | None = None,
) -> str:
    """The text of a suite with other values of its tunables, an additional profile, and another
    form of an assertion.

    :raises RequestError: the suite does not have the assertion of the form.
    """
    settled = settle(suite.constants)
    edits = [
        (constant.value.span, show(literal_of(settled[name], values[name])))
        for constant in suite.constants
        if (name := constant.name.text) in values
    ]
    if profile is not None:
        end = suite.span
        line, column = end.end_line, end.end_column - 1
        span = Span(end.file, line, column, line, column)
        edits.append((span, f"\n{indent(profile.strip(), '    ')}\n"))
    if form is not None:
        edits += form_edits(text, suite, form)
    return replaced(text, edits)


def replaced(text: str, edits: Iterable[tuple[Span, str]]) -> str:
    """The text with replacements for some ranges."""
    starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
    for span, literal in sorted(edits, key=lambda edit: (edit[0].line, edit[0].column))[::-1]:
        start = starts[span.line - 1] + span.column - 1
        end = starts[span.end_line - 1] + span.end_column - 1
        text = text[:start] + literal + text[end:]
    return text


Patch: TypeAlias = "Sequence[Sequence[str]]"
"""The changed parts of a text, each before and after, with the two lines around it."""


def patch_between(before: str, after: str) -> Patch:
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return [
        ["".join(old[part[0][1] : part[-1][2]]), "".join(new[part[0][3] : part[-1][4]])]
        for part in matcher.get_grouped_opcodes(2)
    ]


def without_patch(text: str, patch: Patch) -> str | None:
    """The text before a patch; None if it does not contain the patch's changed parts unaltered."""
    for before, after in patch:
        if text.count(after) != 1:
            return None
        text = text.replace(after, before)
    return text if patch else None


@dataclass(frozen=True, slots=True)
class ParamChange:
    """A new value of a tunable, and the agent that sets it. `facts` go into its history entry."""

    param: str
    value: float
    agent: str = HUMAN
    reason: str | None = None
    action: str = "set_param"
    facts: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Saved:
    """The names of the tunables whose values were written, and of those that await review."""

    written: tuple[str, ...] = ()
    proposed: tuple[str, ...] = ()


def pending_in(history: History) -> tuple[Entry, ...]:
    """The undecided proposals of a history, oldest first."""
    pending: dict[str, Entry] = {}
    for entry in history.entries:
        if entry.get("action") == "propose":
            pending[str(entry.get("id"))] = entry
        elif entry.get("action") in ("approve", "reject"):
            pending.pop(str(entry.get("id")), None)
    return tuple(pending.values())


def refuse(refusals: Sequence[Diagnostic], sources: Mapping[str, str]) -> None:
    """Raises if there are refusals; the message is their drawing.

    :raises ChangeRefusedError: there is one.
    """
    if refusals:
        raise ChangeRefusedError(draw(refusals, sources), diagnostics=tuple(refusals))


def _sorted_out(
    checked: Checked, suite: nodes.Suite, wanted: Sequence[ParamChange]
) -> tuple[list[ParamChange], list[ParamChange]]:
    """The changes to write, and those that need a review.

    Each agent is checked against the values of people, and against the values of earlier agents.
    """
    written, proposed = [], []
    for agent in sorted(dict.fromkeys(change.agent for change in wanted), key=is_algorithm):
        own = [change for change in wanted if change.agent == agent]
        waits = [change for change in own if _judge(suite, [change]).needs_review]
        direct = [change for change in own if change not in waits]
        for changes in (own, direct):
            refuse(_judge(suite, changes).refusals, checked.sources)
        suite = with_values(suite, {change.param: change.value for change in direct})
        written += direct
        proposed += waits
    return written, proposed


def _judge(suite: nodes.Suite, changes: Sequence[ParamChange]) -> Judgement:
    agent = changes[0].agent if changes else HUMAN
    return judge_values(suite, {change.param: change.value for change in changes}, agent)


def _entry(change: ParamChange, before: Mapping[str, float]) -> Entry:
    entry: Entry = {
        "action": change.action,
        "param": change.param,
        "old": before[change.param],
        "new": change.value,
        "agent": change.agent,
    }
    if change.reason is not None:
        entry["reason"] = change.reason
    return {**entry, **dict(change.facts)}


@contextmanager
def replacing(path: Path, content: bytes) -> Iterator[None]:
    """Replaces a file atomically at the end of the block: readers see the old or the new file.

    :raises RequestError: the file cannot be written; then nothing was done.
    """
    target = path.resolve()  # a link stays a link
    with _write_errors(path):
        file, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with _write_errors(path), os.fdopen(file, "wb") as out:
            out.write(content)
            os.fchmod(out.fileno(), target.stat().st_mode & 0o7777)
            out.flush()
            os.fsync(out.fileno())
        yield
        with _write_errors(path):
            os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@contextmanager
def _write_errors(path: Path) -> Iterator[None]:
    """:raises RequestError: a file cannot be written."""
    try:
        yield
    except OSError as error:
        raise RequestError(
            f"cannot write {path}: {error.strerror}",
            "run this where the folder of the suite is writable and has room",
        ) from error


@dataclass(frozen=True, slots=True)
class SuiteFile:
    """The file of a suite, its name as given, and the history next to it.

    Its imports are searched next to it, and in the folders.
    """

    path: Path
    name: str
    folders: tuple[Path, ...] = ()

    @classmethod
    def at(cls, path: str | os.PathLike[str], environment: Mapping[str, str]) -> SuiteFile:
        """:param environment: its DQL_PATH names folders to import from."""
        return cls(Path(path).expanduser(), os.fspath(path), tuple(search_path(environment)))

    @property
    def history(self) -> History:
        return History.of(self.path)

    @property
    def reader(self) -> Reader:
        return FileReader(self.name, self.path, self.path.parent, self.folders)

    def read(self, *, needs_suite: bool = True) -> Checked:
        """:raises SourceError: the file does not exist, or has errors."""
        source = read_source(self.path, self.name)
        if isinstance(source, Unreadable):
            raise source.error
        return self._checked(source, needs_suite=needs_suite)

    def changed(
        self, checked: Checked, profile: str | None = None, form: ProposedForm | None = None
    ) -> Checked:
        """The suite with an additional profile, or another form of an assertion; the file is not
        changed.

        :raises SourceError: the resulting suite has errors.
        :raises RequestError: the file does not have the assertion of the form.
        """
        text = self.text(checked)
        changed = with_edits(text.text, text.suite, {}, profile, form)
        return self._checked(SourceFile(self.name, changed))

    def text(self, checked: Checked) -> SuiteText:
        """The text of the suite, with the function that parses it after changes."""

        def read(text: str) -> nodes.Suite:
            lines = "\n".join(_LINE_END.split(text))
            return self._checked(SourceFile(self.name, lines)).valid_suite

        return SuiteText(checked.sources[self.name], checked.valid_suite, read)

    def _checked(self, source: SourceFile, *, needs_suite: bool = True) -> Checked:
        checked = check_source(source, self.reader, needs_suite=needs_suite)
        if checked.errors:
            raise drawn_error(checked.errors, checked.sources)
        return checked

    def content(self, checked: Checked) -> str:
        """The text of the file with its own line ends.

        :raises RequestError: it is not the text that was checked.
        """
        content = self.path.read_bytes()
        source = source_of(content, self.name)
        if isinstance(source, Unreadable) or source.text != checked.sources[self.name]:
            raise RequestError(f"{self.path} was changed while it was read", "try again")
        return content.decode("utf-8")

    def edited(
        self,
        text: str,
        suite: nodes.Suite,
        values: Mapping[str, float],
        profile: str | None = None,
        form: ProposedForm | None = None,
    ) -> tuple[str, Checked]:
        """A text of the suite with other values, an additional profile, or another form of an
        assertion, and nothing else changed; and the suite that it is.

        :raises ChangeRefusedError: the suite would have errors.
        :raises RequestError: the text does not have the assertion of the form.
        """
        text = with_edits(text, suite, values, profile, form)
        result = self.accepted(text)
        is_more = profile is not None or form is not None
        if not is_more and result.suite != with_values(suite, values):
            raise RequestError(f"cannot write the values into {self.path}", "edit it by hand")
        return text, result

    def accepted(self, text: str) -> Checked:
        """The suite if its file had another text.

        :raises ChangeRefusedError: it would have errors.
        """
        source = source_of(text.encode("utf-8"), self.name)
        if isinstance(source, Unreadable):
            raise RequestError(f"{self.path} was changed while it was read", "try again")
        checked = check_source(source, self.reader, needs_suite=True)
        refuse(checked.errors, checked.sources)
        return checked

    def save(self, changes: Iterable[ParamChange], *, logged_since: int | None = None) -> Saved:
        """Writes new values into the file, and their entries into its history.

        An algorithm's change of an assertion marked `@human_review` is not written: it goes into
        the history as a proposal, once.

        :param logged_since: a line of the history: changes that the caller has logged after it are
            not repeated.
        :raises ChangeRefusedError: a change is not allowed, or it breaks the suite.
        :raises SourceError: the suite has errors as it is.
        :raises RequestError: the file or its history cannot be written.
        """
        with self.changing() as (checked, append):
            suite = checked.valid_suite
            current_values = {tunable.name: tunable.value for tunable in tunables_of(suite)}
            wanted = [
                change for change in changes if current_values.get(change.param) != change.value
            ]
            written, proposed = _sorted_out(checked, suite, wanted)
            new_values = {change.param: change.value for change in written}
            text, _ = self.edited(self.content(checked), suite, new_values)
            lines, _ = self.history.read()
            logged = {
                entry["param"]: entry.get("new")
                for number, entry in lines
                if logged_since is not None and number > logged_since and "param" in entry
            }
            entries = [
                _entry(change, current_values)
                for change in written
                if logged.get(change.param) != change.value
            ]
            waiting = {(entry.get("param"), entry.get("new")) for entry in pending_in(self.history)}
            entries += [
                {**_entry(change, current_values), "action": "propose", "id": new_id()}
                for change in proposed
                if (change.param, change.value) not in waiting
            ]
            content = text.encode("utf-8")
            with replacing(self.path, content) if written else nullcontext():
                append(entries)
        return Saved(
            tuple(change.param for change in written), tuple(change.param for change in proposed)
        )

    @contextmanager
    def changing(self) -> Iterator[tuple[Checked, Append]]:
        """The suite, and a function that appends to its history, while no other process can. A file
        that is not a suite gets no history.

        :raises SourceError: the file does not exist, or has errors.
        :raises RequestError: the history cannot be written.
        """
        self.read()
        with self.history.locked() as append:
            yield self.read(), append
        self.history.flush()

    def last_line(self) -> int:
        """The number of the last line of the history."""
        lines, _ = self.history.read()
        return lines[-1][0] if lines else 0


def form_edits(text: str, suite: nodes.Suite, form: ProposedForm) -> list[tuple[Span, str]]:
    """Replacements for ranges of the text.

    :raises RequestError: the suite does not have the assertion of the form.
    """
    lines = _LINE_END.split(text)
    end_of_line = ending[0] if (ending := _LINE_END.search(text)) else "\n"
    node = assertion_of(suite, form.check, form.assertion)
    if node is None or claim_text(text, node) != form.before:
        raise RequestError(
            f"'{form.assertion}' is no longer `{form.before}`",
            "reject the proposal and create a new one",
        )
    edits = [(node.claim.span, form.claim)]
    constants = {
        constant.name.text: constant
        for constant in suite.constants
        if constant.span.file == suite.span.file
    }
    replaced_constants = [constants[name] for name in form.replaces if name in constants]
    if form.constants:
        span = replaced_constants[0].span if replaced_constants else _before(suite, constants)
        pad = re.match(r"\s*", lines[span.line - 1])[0]  # type: ignore[index]
        added = f"{end_of_line}{pad}".join(form.constants)
        edits.append((span, added if replaced_constants else f"{added}{end_of_line}{pad}"))
    edits += [
        (_whole_lines(constant.span, lines), "")
        for constant in replaced_constants[bool(form.constants) :]
    ]
    edits += [
        (_whole_lines(profile.span, lines, with_comment=True), "")
        for profile in suite.profiles
        if profile.name.value in form.drops
    ]
    return edits


def assertion_of(suite: nodes.Suite, check: str, name: str) -> nodes.Assertion | None:
    """The assertion with a name in the file of the suite; None if a macro makes it, or if there is
    none."""
    matching = [
        node
        for owner in suite.checks
        if owner.name.value == check
        for node in owner.assertions
        if node.name is not None and node.name.value == name
    ]
    if len(matching) != 1 or matching[0].uses or matching[0].span.file != suite.span.file:
        return None
    return matching[0]


def claim_text(text: str, node: nodes.Assertion) -> str:
    """A claim as in the text, in one line."""
    span, lines = node.claim.span, _LINE_END.split(text)
    taken = lines[span.line - 1 : span.end_line]
    taken[-1] = taken[-1][: span.end_column - 1]
    taken[0] = taken[0][span.column - 1 :]
    return " ".join(" ".join(taken).split())


def _before(suite: nodes.Suite, constants: dict[str, nodes.Constant]) -> Span:
    """The position before the first constant; before the first check if there is none."""
    first = next(iter(constants.values()), suite.checks[0]).span
    return Span(first.file, first.line, first.column, first.line, first.column)


def _whole_lines(span: Span, lines: list[str], *, with_comment: bool = False) -> Span:
    """The lines of a range, with the comment directly above it; only the range if it shares its
    lines."""
    before, after = lines[span.line - 1][: span.column - 1], lines[span.end_line - 1]
    if before.strip() or after[span.end_column - 1 :].strip() or span.end_line >= len(lines):
        return span
    first = span.line
    while with_comment and first > 1 and lines[first - 2].lstrip().startswith("#"):
        first -= 1
    return Span(span.file, first, 1, span.end_line + 1, 1)
