"""Kinds of changes, their class, and the size of a change in wording.

The kinds are rows of `kinds.md`, which follow seed 003's table where it has one.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from enum import Enum
from importlib.resources import files

from dqx_airflow.contracts import model as elements
from dqx_airflow.contracts.dialects import reader_of
from dqx_airflow.diagnostics.diagnostic import edits
from dqx_airflow.values import Span, WordEnum


class Wording(Enum):
    """The size of the difference between two texts, from the least to the most."""

    SAME = "same"
    CORRECTED = "corrected"
    REWORDED = "reworded"
    OTHER_MEANING = "other meaning"


def compare_wording(old: str, new: str) -> Wording:
    """The difference between two texts.

    `CORRECTED`: only punctuation, capitals and typos. `OTHER_MEANING`: numbers, symbols, and words
    that reverse a meaning, such as `not` or `excludes`, have changed.
    """
    if " ".join(old.split()) == " ".join(new.split()):
        return Wording.SAME
    before, after = _words(old), _words(new)
    if _is_corrected(before, after):
        return Wording.CORRECTED
    if Counter(map(_stem, filter(_weighs, before))) != Counter(map(_stem, filter(_weighs, after))):
        return Wording.OTHER_MEANING
    return Wording.REWORDED


_WORD = re.compile(r"(?:(?<![\w.])[-+])?\d+(?:[.,:]\d+)*|[^\W\d_]+(?:'[^\W\d_]+)?|[%$€£¥<>=≤≥≠]")
_ARTICLES = {"a", "an", "the"}
_MOST_WORDS = 3000
_SHORTEST_TYPO = 4
_TWO_SLIPS = 8


def _words(text: str) -> list[str]:
    """Words, numbers and symbols; a hyphen separates words like a space. Contracted negations are
    in a countable form: `doesn't` is a `not`."""
    words = _WORD.findall(text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"))
    return ["not" if word.endswith("n't") else word for word in words]


def _stem(word: str) -> str:
    """A word without its grammatical ending: `includes` and `including` are equal."""
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


_WEIGHTY_STEMS = frozenset(
    map(_stem, files(__package__).joinpath("weighty_words.txt").read_text("utf-8").split())
)


def _weighs(word: str) -> bool:
    """True for a token that changes a meaning by itself: numbers, symbols, negations, bounds,
    units."""
    return not word.isalpha() or _stem(word) in _WEIGHTY_STEMS


def _is_corrected(before: list[str], after: list[str]) -> bool:
    if len(before) + len(after) > _MOST_WORDS:
        return before == after
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    return all(
        step == "equal" or _is_slip(before, start, end, after[other_start:other_end])
        for step, start, end, other_start, other_end in matcher.get_opcodes()
    )


def _is_slip(before: list[str], start: int, end: int, words: list[str]) -> bool:
    """True if the old words were typos of these, or are unnecessary."""
    slips = before[start:end]
    if len(slips) == len(words):
        return all(map(_is_typo, slips, words))
    if "".join(slips) == "".join(words) and "".join(slips).isalpha():
        return True
    if slips and words:
        return False
    around = before[start - 1 : start] + before[end : end + 1]
    return all(word in _ARTICLES or (slips and word in around) for word in slips or words)


def _is_typo(old: str, new: str) -> bool:
    """True if a word is a misspelling of another by a letter or two, and not a different word."""
    if not (old.isalpha() and new.isalpha()):
        return old == new
    if old == new or {old, new} <= _ARTICLES:
        return True
    if _weighs(old) and _weighs(new):
        return _stem(old) == _stem(new)
    distance, shortest = edits(old, new, 2), min(len(old), len(new))
    if shortest < _SHORTEST_TYPO:
        return distance == 1 and (sorted(old) == sorted(new) or _stem(old) == _stem(new))
    if old[0] != new[0] and sorted(old) != sorted(new):
        return False
    return distance <= (2 if shortest >= _TWO_SLIPS else 1)


_CLASSES = {
    elements.Bump.MAJOR: "breaking",
    elements.Bump.MINOR: "compatible",
    elements.Bump.PATCH: "documentation",
}
"""The names of the severity of a change for consumers of the contract, by its bump."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change. `path` is `model.column.rule`, as in the names of assertions.

    `old` and `new` are the texts at the path, None if there is none. `bump` is the bump of the
    kind, or an override. `column` is the path of the column, None if it is not about a column.
    """

    kind: ChangeKind
    message: str
    bump: elements.Bump
    old: str | None
    new: str | None
    path: str
    old_span: Span | None = field(default=None, compare=False)
    new_span: Span | None = field(default=None, compare=False)
    model: str | None = None
    column: str | None = None

    @property
    def change_class(self) -> str:
        return _CLASSES[self.bump]

    @property
    def breaks(self) -> tuple[View, ...]:
        return self.kind.breaks if self.bump is elements.Bump.MAJOR else ()


@dataclass(frozen=True, slots=True)
class Diff:
    """All changes between two versions of a contract, breaking ones first."""

    old: elements.Contract
    new: elements.Contract
    changes: tuple[Change, ...]

    @property
    def due(self) -> elements.Bump:
        """The bump that the changes require."""
        return max((change.bump for change in self.changes), default=elements.Bump.NONE)

    @property
    def declared(self) -> elements.Bump | None:
        """The declared bump of the versions; None if one of them is not a valid version."""
        old, new = elements.version_of(self.old.version), elements.version_of(self.new.version)
        return elements.bump_between(old, new) if old is not None and new is not None else None

    @property
    def breaking(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.bump is elements.Bump.MAJOR)

    @property
    def shortfall(self) -> str | None:
        """The reason why the declared version is too low for the changes; None if it is not."""
        if reader_of(self.new.dialect).versions_models:
            return self._same_signature()
        old, new = elements.version_of(self.old.version), elements.version_of(self.new.version)
        if new is None or old is None:
            return self._unread_version(old is None)
        if new < old:
            return f"the version goes back, from {self.old.version} to {self.new.version}"
        if elements.is_enough(old, new, self.due):
            return None
        moves = (
            f"stays {self.new.version}"
            if new == old
            else f"goes from {self.old.version} to {self.new.version}"
        )
        wanted = elements.next_version(old, self.due)
        return f"the version {moves}, and a {self.due.word} bump is required: {wanted} or higher"

    @property
    def falls_short(self) -> bool:
        return self.shortfall is not None

    def _same_signature(self) -> str | None:
        """The note about a DataLex manifest, whose contracts have versions of their own: a model
        with the same name is a contract of the same version. Entities, which are bound to tables,
        have neither an id as their title nor a version."""
        before, after = (
            {model.name for model in contract.models if model.title is not None}
            for contract in (self.old, self.new)
        )
        kept = before & after
        removed = sorted(before - after)
        broken = dict.fromkeys(
            change.model or change.path.partition(".signature")[0]
            for change in self.breaking
            if change.model in kept or change.kind.name == "input_changed"
        )
        if removed:
            return (
                f"{', '.join(removed)}: removed while consumers may still pin it: "
                "keep it until no consumer does"
            )
        if not broken:
            return None
        return (
            f"{', '.join(broken)}: raise the version of each breaking contract, "
            "and keep the previous one"
        )

    def _unread_version(self, is_old: bool) -> str | None:
        """The note about versions that are not numbers; None if the version is sufficient: if
        neither is a number, any other version is."""
        before, after = self.old.version, self.new.version
        if self.due is elements.Bump.NONE:
            return None
        if after is None:
            return f"the contract has no version, and a {self.due.word} bump is required"
        if before is None:
            return None
        if before == after:
            return f"the version stays {after}, and a {self.due.word} bump is required"
        if self.due is not elements.Bump.MAJOR:
            return None
        version = before if is_old else after
        return f"a major bump is required, and '{version}' does not show how the version changed"


class View(WordEnum):
    """Whom a change breaks: the readers or the writers of the data."""

    CONSUMER = "consumer"
    PRODUCER = "producer"


@dataclass(frozen=True, slots=True)
class ChangeKind:
    """A kind of change: the bump that it requires, whom it can break, and why."""

    name: str
    what: str
    bump: elements.Bump
    reason: str
    breaks: tuple[View, ...] = ()


def kinds_table() -> str:
    """All kinds as Markdown: a heading and a table for each group."""
    return files(__package__).joinpath("kinds.md").read_text("utf-8").rstrip()


def _kind(row: str) -> ChangeKind:
    """The kind in a row of the table: name, description, bump, whom it breaks, why."""
    name, what, bump, breaks, reason = (cell.strip() for cell in row.strip("|").split("|"))
    views = tuple(view for view in View if f"{view}s" in breaks)
    return ChangeKind(name.strip("`"), what, elements.Bump[bump.upper()], reason, views)


_ROWS = (line for line in kinds_table().splitlines() if line.startswith("| `"))

KINDS = {kind.name: kind for kind in map(_kind, _ROWS)}
"""The kinds by their names, from `kinds.md`. `docs/contracts/changes.md` has the same table."""
