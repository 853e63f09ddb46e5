"""Kinds of changes, their class, and how a change is worded.

The rows follow seed 003's table where it has one. The page `docs/contracts/changes.md` is generated
from them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from enum import Enum
from typing import Any

from dqx_airflow.contracts.dialects import reader_of
from dqx_airflow.contracts.model import Contract
from dqx_airflow.contracts.versions import Bump, bump_between, is_enough, next_version, version_of
from dqx_airflow.diagnostics.diagnostic import edits
from dqx_airflow.values import Span


class Wording(Enum):
    """How a text differs from the previous one, from the least to the most."""

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

_WEIGHTY = {
    *("no", "not", "never", "none", "nothing", "neither", "nor", "cannot", "without", "except"),
    *("exclude", "include", "only", "all", "any", "each", "every", "some", "and", "or", "both"),
    *("before", "after", "since", "until", "gross", "net", "minimum", "maximum", "min", "max"),
    *("least", "most", "more", "less", "over", "under", "above", "below", "plus", "minus"),
    *("first", "last", "latest", "earliest", "sum", "total", "average", "mean", "median", "count"),
    *("usd", "eur", "gbp", "chf", "jpy", "dollar", "euro", "pound", "cent", "percent", "fraction"),
    *("millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year", "ms"),
    *("hourly", "daily", "weekly", "monthly", "quarterly", "yearly", "annual", "utc", "local"),
    *("byte", "kb", "mb", "gb", "gram", "kg", "lb", "meter", "metre", "km", "mile", "liter"),
    *("celsius", "fahrenheit", "hundred", "thousand", "million", "billion", "basis"),
    *("hashed", "encrypted", "masked", "plaintext", "unique", "required", "optional"),
}


def _words(text: str) -> list[str]:
    """Words, numbers and symbols; a hyphen separates words like a space."""
    return [
        _plain(word)
        for word in _WORD.findall(text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"))
    ]


def _plain(word: str) -> str:
    """Contracted negations in a countable form: `doesn't` is a `not`."""
    return "not" if word.endswith("n't") else word


def _stem(word: str) -> str:
    """A word without its grammatical ending: `includes` and `including` are equal."""
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


_WEIGHTY_STEMS = frozenset(map(_stem, _WEIGHTY))


def _weighs(word: str) -> bool:
    """True for a token that changes a meaning by itself: numbers, symbols, negations, bounds,
    units."""
    return not word.isalpha() or _stem(word) in _WEIGHTY_STEMS


def _is_corrected(before: list[str], after: list[str]) -> bool:
    if len(before) + len(after) > _MOST_WORDS:
        return before == after
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    return all(
        step == "equal" or _is_slip(before, start, end, after[other_start:other_end], other_start)
        for step, start, end, other_start, other_end in matcher.get_opcodes()
    )


def _is_slip(before: list[str], start: int, end: int, words: list[str], other_start: int) -> bool:
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
    """True if one word is the other with a letter or two wrong, and not another word."""
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


class ChangeClass(str, Enum):
    """The severity of a change for the consumers of the contract."""

    BREAKING = "breaking"
    COMPATIBLE = "compatible"
    DOCUMENTATION = "documentation"

    __str__ = str.__str__  # prints as its value, on every Python


_CLASSES = {
    Bump.MAJOR: ChangeClass.BREAKING,
    Bump.MINOR: ChangeClass.COMPATIBLE,
    Bump.PATCH: ChangeClass.DOCUMENTATION,
}


@dataclass(frozen=True, slots=True)
class Change:
    """One change. `path` is `model.column.rule`, as in the names of assertions.

    `old` and `new` are the texts there, None if there is none. `bump` is that of the kind, or an
    override. `column` is the path of the column, None if it is about none.
    """

    kind: ChangeKind
    path: str
    message: str
    bump: Bump
    old: str | None = None
    new: str | None = None
    old_span: Span | None = field(default=None, compare=False)
    new_span: Span | None = field(default=None, compare=False)
    model: str | None = None
    column: str | None = None

    @property
    def change_class(self) -> ChangeClass:
        return _CLASSES[self.bump]

    @property
    def breaks(self) -> tuple[View, ...]:
        return self.kind.breaks if self.bump is Bump.MAJOR else ()

    @property
    def reason(self) -> str:
        return self.kind.reason

    def as_plain(self) -> Mapping[str, Any]:
        """The change in machine-readable form."""
        return {
            "kind": self.kind.name,
            "class": self.change_class.value,
            "bump": self.bump.word,
            "breaks": [view.value for view in self.breaks],
            "path": self.path,
            "message": self.message,
            "reason": self.reason,
            "old": self.old,
            "new": self.new,
            "old_span": _plain_span(self.old_span),
            "new_span": _plain_span(self.new_span),
        }


@dataclass(frozen=True, slots=True)
class Diff:
    """All changes between two versions of a contract, breaking ones first."""

    old: Contract
    new: Contract
    changes: tuple[Change, ...]

    @property
    def due(self) -> Bump:
        """The bump that the changes require."""
        return max((change.bump for change in self.changes), default=Bump.NONE)

    @property
    def declared(self) -> Bump | None:
        """The declared bump of the versions; None if one of them is not a valid version."""
        old, new = version_of(self.old.version), version_of(self.new.version)
        return bump_between(old, new) if old is not None and new is not None else None

    @property
    def breaking(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.bump is Bump.MAJOR)

    @property
    def shortfall(self) -> str | None:
        """Why the declared version is too low for the changes; None if it is not."""
        if reader_of(self.new.dialect).versions_models:
            return self._same_signature()
        old, new = version_of(self.old.version), version_of(self.new.version)
        if new is None or old is None:
            return self._unread_version(old is None)
        if new < old:
            return f"the version goes back, from {self.old.version} to {self.new.version}"
        if is_enough(old, new, self.due):
            return None
        moves = (
            f"stays {self.new.version}"
            if new == old
            else f"goes from {self.old.version} to {self.new.version}"
        )
        wanted = next_version(old, self.due)
        return f"the version {moves}, and a {self.due.word} bump is required: {wanted} or higher"

    @property
    def falls_short(self) -> bool:
        return self.shortfall is not None

    def as_plain(self) -> Mapping[str, Any]:
        """The diff in machine-readable form."""
        return {
            "id": self.new.id,
            "old_version": self.old.version,
            "new_version": self.new.version,
            "due": self.due.word,
            "declared": self.declared.word if self.declared is not None else None,
            "falls_short": self.falls_short,
            "shortfall": self.shortfall,
            "changes": [change.as_plain() for change in self.changes],
        }

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
        """The note about versions that are not numbers: if neither is, any other version is
        sufficient."""
        before, after = self.old.version, self.new.version
        if self.due is Bump.NONE:
            return None
        if after is None:
            return f"the contract has no version, and a {self.due.word} bump is required"
        if before is None:
            return None
        if before == after:
            return f"the version stays {after}, and a {self.due.word} bump is required"
        if self.due is not Bump.MAJOR:
            return None
        version = before if is_old else after
        return f"a major bump is required, and '{version}' does not show how the version changed"


def _plain_span(span: Span | None) -> Mapping[str, Any] | None:
    return None if span is None else {"file": span.file, "line": span.line, "column": span.column}


class View(str, Enum):
    """Whom a change breaks: the readers or the writers of the data."""

    CONSUMER = "consumer"
    PRODUCER = "producer"

    __str__ = str.__str__  # prints as its value, on every Python


@dataclass(frozen=True, slots=True)
class ChangeKind:
    """A kind of change: the bump that it requires, whom it can break, and why."""

    name: str
    what: str
    bump: Bump
    reason: str
    breaks: tuple[View, ...] = ()


_READERS = (View.CONSUMER,)
_WRITERS = (View.PRODUCER,)
_BOTH = (View.CONSUMER, View.PRODUCER)

_ROWS: dict[str, tuple[ChangeKind, ...]] = {
    "Columns": (
        ChangeKind(
            "column_added",
            "a column is added that may be NULL, or that has a default",
            Bump.MINOR,
            "readers ignore a column that they do not know, and NULL or the default fills it",
        ),
        ChangeKind(
            "required_column_added",
            "a column is added that must not be NULL and has no default; "
            "with `datalex`, any column",
            Bump.MAJOR,
            "the data of producers that do not know the column is no longer valid",
            _WRITERS,
        ),
        ChangeKind(
            "column_removed",
            "a column is dropped",
            Bump.MAJOR,
            "readers may depend on it",
            _READERS,
        ),
        ChangeKind(
            "column_renamed",
            "a column is renamed: one is dropped, another one like it is added",
            Bump.MAJOR,
            "readers and writers use the old name",
            _BOTH,
        ),
        ChangeKind(
            "columns_reordered",
            "columns are reordered",
            Bump.PATCH,
            "columns are identified by name",
        ),
        ChangeKind(
            "type_widened",
            "a type is widened: `int` becomes `bigint`",
            Bump.MINOR,
            "all values of the old type fit into the new one",
        ),
        ChangeKind(
            "type_changed",
            "a type is narrowed or replaced",
            Bump.MAJOR,
            "valid values no longer fit, or readers cannot handle the new values",
            _BOTH,
        ),
        ChangeKind(
            "type_respelled", "a type is written differently", Bump.PATCH, "it is the same type"
        ),
        ChangeKind(
            "default_added",
            "a default is added",
            Bump.MINOR,
            "rows without the column get a value instead of NULL",
        ),
        ChangeKind(
            "default_changed",
            "a default changes",
            Bump.MINOR,
            "new rows without the column get another value",
        ),
        ChangeKind(
            "default_removed",
            "the default of a column that may be NULL is removed",
            Bump.MINOR,
            "rows without the column get NULL",
        ),
        ChangeKind(
            "needed_default_removed",
            "the default of a column that must not be NULL is removed",
            Bump.MAJOR,
            "rows that rely on the default are no longer valid",
            _WRITERS,
        ),
        ChangeKind(
            "key_changed",
            "the key changes or is removed",
            Bump.MAJOR,
            "joins on the old key lose or multiply rows",
            _BOTH,
        ),
        ChangeKind(
            "key_added",
            "a key is declared for the first time",
            Bump.MINOR,
            "readers may join on it; its requirements for the data are listed separately",
        ),
        ChangeKind(
            "sensitivity_raised",
            "a column becomes sensitive",
            Bump.MINOR,
            "its values are masked from now on; readers may need another permission",
        ),
        ChangeKind(
            "sensitivity_lowered",
            "a column is no longer sensitive",
            Bump.MINOR,
            "its values are no longer masked",
        ),
        ChangeKind(
            "classification_changed",
            "the classification of a column changes",
            Bump.MINOR,
            "readers may need another permission",
        ),
    ),
    "Meaning": (
        ChangeKind(
            "semantic_changed",
            "the described meaning of a column changes: for `fabric` any new wording, "
            "for other dialects numbers, units, negations and the like",
            Bump.MAJOR,
            "results change without any error: the most dangerous change",
            _READERS,
        ),
        ChangeKind(
            "grain_changed",
            "the description of a model is reworded, or its `odcs` granularity changes",
            Bump.MAJOR,
            "a row may represent something else, without any error: if not, use `--semantic`",
            _READERS,
        ),
        ChangeKind(
            "semantic_removed",
            "the `semantic` of a column is removed",
            Bump.MAJOR,
            "readers no longer know what the values mean",
            _READERS,
        ),
        ChangeKind(
            "wording_corrected",
            "typos, punctuation, capitals or spaces in a description are corrected",
            Bump.PATCH,
            "the meaning is the same",
        ),
        ChangeKind(
            "description_changed",
            "a description or a title is reworded or added",
            Bump.PATCH,
            "documentation only",
        ),
        ChangeKind(
            "unit_changed",
            "a unit changes or is removed",
            Bump.MAJOR,
            "calculations are wrong by the factor between the units",
            _READERS,
        ),
        ChangeKind(
            "unit_added",
            "a unit is declared for the first time",
            Bump.MINOR,
            "readers no longer have to guess",
        ),
        ChangeKind("example_changed", "examples", Bump.PATCH, "documentation only"),
        ChangeKind("tags_changed", "tags", Bump.PATCH, "documentation only"),
        ChangeKind(
            "lineage_changed",
            "the source fields of a column change",
            Bump.PATCH,
            "documentation only; the descriptions define what the values mean",
        ),
    ),
    "Rules, quality and service levels": (
        ChangeKind(
            "rule_added", "a rule is added", Bump.MAJOR, "valid data may now violate it", _WRITERS
        ),
        ChangeKind(
            "rule_tightened",
            "a rule is tightened: a higher minimum, a smaller enum, a shorter delay, NOT NULL",
            Bump.MAJOR,
            "valid data may now violate it",
            _WRITERS,
        ),
        ChangeKind(
            "rule_changed",
            "a rule changes, and each version rejects data that the other accepts: "
            "a pattern, SQL, a referenced dataset",
            Bump.MAJOR,
            "valid data may now violate it, and readers may meet what they did not expect",
            _BOTH,
        ),
        ChangeKind(
            "rule_loosened",
            "a rule is loosened: a lower minimum, a larger enum, a longer delay",
            Bump.MINOR,
            "valid data remains valid; readers may get new values",
        ),
        ChangeKind(
            "rule_removed",
            "a rule is removed: NULL is allowed, a limit or a quality rule is dropped",
            Bump.MINOR,
            "valid data remains valid; readers may get new values",
        ),
        ChangeKind(
            "severity_changed",
            "the severity of a rule changes",
            Bump.MINOR,
            "the same data is valid, but a gate may react differently to a violation",
        ),
        ChangeKind(
            "rule_described",
            "the description, dimension or tags of a rule change",
            Bump.PATCH,
            "documentation only",
        ),
    ),
    "Models": (
        ChangeKind(
            "model_added",
            "a model is added",
            Bump.MINOR,
            "readers ignore a table that they do not know",
        ),
        ChangeKind(
            "model_removed", "a model is dropped", Bump.MAJOR, "readers may depend on it", _READERS
        ),
        ChangeKind(
            "model_renamed",
            "a model is renamed: one is dropped, another one with its columns is added",
            Bump.MAJOR,
            "readers and writers use the old name",
            _BOTH,
        ),
        ChangeKind(
            "location_changed",
            "the table or file of a model changes",
            Bump.MAJOR,
            "readers use the old location",
            _BOTH,
        ),
        ChangeKind(
            "partition_changed",
            "the partition columns of a table change",
            Bump.MAJOR,
            "filters no longer prune partitions, and the table has to be rewritten",
            _BOTH,
        ),
    ),
    "The contract": (
        ChangeKind(
            "id_changed",
            "the id",
            Bump.MAJOR,
            "everyone who pins it or refers to it loses it",
            _BOTH,
        ),
        ChangeKind(
            "dialect_changed",
            "the dialect or its version changes",
            Bump.PATCH,
            "the same promises in another format",
        ),
        ChangeKind(
            "about_changed",
            "name, description, owner, contacts, domain or tags change",
            Bump.PATCH,
            "documentation only",
        ),
        ChangeKind(
            "consumers_changed", "the listed consumers change", Bump.PATCH, "documentation only"
        ),
        ChangeKind(
            "server_added",
            "a server is added",
            Bump.MINOR,
            "the data can be read from one more location",
        ),
        ChangeKind(
            "server_changed",
            "a server moves, or is removed",
            Bump.MINOR,
            "readers that use its address must switch; the data is the same",
        ),
        ChangeKind(
            "format_changed",
            "the file format of a table or a server changes",
            Bump.MAJOR,
            "readers of one format cannot read another",
            _BOTH,
        ),
    ),
    "Lifecycle": (
        ChangeKind(
            "status_advanced",
            "the status changes: a draft becomes active, or a deprecation starts or ends",
            Bump.MINOR,
            "readers may have to plan, nothing changes today",
        ),
        ChangeKind(
            "status_withdrawn",
            "the status changes to sunset, or back to draft",
            Bump.MAJOR,
            "consumers may no longer rely on it",
            _READERS,
        ),
        ChangeKind(
            "sunset_advanced",
            "the sunset is moved to an earlier date",
            Bump.MAJOR,
            "readers have less time than promised",
            _READERS,
        ),
        ChangeKind(
            "dates_changed",
            "other dates change: a sunset is announced or postponed, the deprecation, the start",
            Bump.MINOR,
            "readers may have to plan, nothing changes today",
        ),
        ChangeKind(
            "policy_changed",
            "the notice period, the dual-write period, "
            "the cadence of breaking changes or the successor changes",
            Bump.MINOR,
            "readers may have to plan, nothing changes today",
        ),
    ),
    "Other clauses": (
        ChangeKind(
            "input_changed",
            "an input of a `datalex` query is added, removed or changed",
            Bump.MAJOR,
            "callers still pass the old inputs",
            _READERS,
        ),
        ChangeKind(
            "documented_clause_changed",
            "a clause that no data can violate changes: terms, links, contacts",
            Bump.PATCH,
            "documentation only",
        ),
        ChangeKind(
            "unsupported_clause_changed",
            "a clause that is not checked changes",
            Bump.MINOR,
            "the effect is unknown: review it",
        ),
    ),
}

KINDS = {kind.name: kind for kinds in _ROWS.values() for kind in kinds}


def kinds_table() -> str:
    """All kinds as Markdown: a heading and a table for each group."""
    return "\n\n".join(
        f"## {group}\n\n"
        "| kind | change | bump | breaks | why |\n|---|---|---|---|---|\n"
        + "\n".join(_row(kind) for kind in kinds)
        for group, kinds in _ROWS.items()
    )


def _row(kind: ChangeKind) -> str:
    breaks = ", ".join(f"{view}s" for view in kind.breaks) or "no one"
    cells = (f"`{kind.name}`", kind.what, kind.bump.word, breaks, kind.reason)
    return f"| {' | '.join(cells)} |"
