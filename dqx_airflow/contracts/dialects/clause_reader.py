"""Reads the clauses of a document one by one, with their types. Shared by all dialects.

A reader requests the keys that it supports. It takes a `clause` for a rule, and marks clauses that
data cannot violate as documented; every leaf that was never requested ends as unsupported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, time
from typing import TypeAlias

from dqx_airflow.contracts.demands import Bound, Demand, Length, Literal, Refers, one_line
from dqx_airflow.contracts.dialects.personal_data import is_sensitive
from dqx_airflow.contracts.document import NOTHING, Mapping, Node, Path, Scalar, leaves, show_path
from dqx_airflow.contracts.field_types import NUMBER_WORDS
from dqx_airflow.contracts.mistakes import mistake
from dqx_airflow.contracts.mistyped_types import hint_at_type, meant_type
from dqx_airflow.contracts.model import (
    Clause,
    Field,
    Note,
    Promise,
    Rule,
    Treatment,
    UnknownKey,
    column_path,
    day_of,
)
from dqx_airflow.contracts.references import References
from dqx_airflow.contracts.time_texts import BoundError, bound_moment, iso_moment
from dqx_airflow.contracts.unknown_keys import Position, UndefinedKeys
from dqx_airflow.diagnostics.diagnostic import Diagnostic, did_you_mean, folded_word, slip_of
from dqx_airflow.metrics import types
from dqx_airflow.metrics.text_formats import TEXT_FORMATS
from dqx_airflow.values.files import table_rows


def with_examples(item: Field, examples: Iterable[Scalar]) -> Field:
    """The field with its examples; it is sensitive if its classification or one of its tags is."""
    listed = list(examples)
    return replace(
        item,
        is_sensitive=item.is_sensitive or is_sensitive(item.classification, item.tags),
        examples=tuple(example.value for example in listed),
        example_spans=tuple(example.span for example in listed),
    )


_MEANT = {"proposed": "draft", "in development": "draft", "stable": "active"}
_ENDED = ("retired", "sunset", "end of life", "EOL", "decommissioned")
"""Statuses of a contract that has ended, in any format: where a format leaves the words open, they
end it, too."""


def status_of(written: str | None, statuses: Collection[str]) -> str | None:
    """The status of `Lifecycle` for a status of a dialect; None without one or if it is unknown."""
    word = (written or "").lower()
    if folded_word(word) in map(folded_word, _ENDED):
        return "sunset"
    return _MEANT.get(word, word) if word in statuses else None


Limits: TypeAlias = "tuple[tuple[str, str, str], ...]"
"""Keys that limit a value or its length, each with the name of its rule and its comparison."""

_EXTENSION = "an extension that the format does not define"
_NO_EFFECT = "has no effect here: the format defines it for another type, or another kind of rule"
_FORMS = {
    "email": "write it as name@example.com",
    "uri": "write it with its scheme: https://example.com/page",
}
_PLACEHOLDER = re.compile(r"\$\{|\{\{|^__\w+__$")
"""Placeholders that are replaced before the contract is used."""


def clause_of(node: Node) -> Clause:
    """The clause of a node."""
    text = (node.written or node.text) if isinstance(node, Scalar) else ""
    return Clause(show_path(node.path), one_line(text), node.span)


def _slip_above(
    position: tuple[str, Path], slips: dict[tuple[str, str], UnknownKey]
) -> UnknownKey | None:
    """The unknown key at the position of a leaf, or the closest one above it."""
    file, path = position
    if not slips:
        return None
    for end in range(len(path), 0, -1):
        slip = slips.get((file, show_path(path[:end])))
        if slip is not None:
            return slip
    return None


def _of_slip(slip: UnknownKey, clause: Clause, promise: Promise | None = None) -> Note:
    """The note about a clause under an unknown key."""
    hint = f": did you mean '{slip.meant}'?" if slip.meant else ""
    reason = f"the key '{slip.key}' is unknown here{hint}"
    if promise is None and slip.is_check:
        promise = Promise(slip.path, slip.path)
    return Note(clause, Treatment.UNSUPPORTED, reason, promise=promise)


@dataclass(slots=True)
class ClauseReader:
    """The reading of one document: its references, the mistakes found, and the treatment of leaves.

    `model` is the model being read, None outside of models. `sql_dialect` is the dialect of the
    server; if the server `is_spark`, physical types are Spark types.
    """

    root: Mapping
    references: References
    report: Callable[[Diagnostic], None]
    model: str | None = None
    sql_dialect: str | None = None
    is_spark: bool = True
    _marked: dict[tuple[str, Path], Note] = field(default_factory=dict)
    """The notes about leaves, by file and path; also about leaves that a rule checks."""

    # Taking values -------------------------------------------------------------------------------

    def mapping(self, node: Mapping, key: str) -> Mapping:
        """The mapping at a key, with its `$ref` resolved; `NOTHING` if there is none."""
        child = node.get(key)
        return self.resolved(child) if isinstance(child, Mapping) else NOTHING

    def resolved(self, node: Mapping) -> Mapping:
        """The mapping with the contents of its `$ref`; the reference itself is documented."""
        reference = node.get("$ref")
        if reference is None:
            return node
        self.documented(reference, "replaced by the content that it refers to")
        return self.references.resolve(node)

    def mappings(self, node: Mapping, key: str) -> Iterator[Mapping]:
        """The mappings in the list at a key."""
        return (self.resolved(item) for item in node.items(key) if isinstance(item, Mapping))

    def text(self, node: Mapping, *paths: str) -> str | None:
        """The string at the first of some paths below a node that has one that is not empty.

        :param paths: keys, or keys of nested mappings: `versioning.current_version`.
        """
        found = None
        for path in paths:
            owner, key = self._owner_of(node, path)
            text = owner.text(key)
            if not found:
                found = text
        return found

    def texts(self, node: Mapping, *paths: str) -> tuple[str, ...]:
        """All strings at some paths below a node, which lead to strings or lists of strings; empty
        strings are left out."""
        found: list[str] = []
        for path in paths:
            owner, key = self._owner_of(node, path)
            found.extend(text for text in owner.texts(key) if text)
        return tuple(found)

    def whole_number(self, node: Mapping, path: str) -> int | None:
        """The number at a path below a node, without its fraction."""
        owner, key = self._owner_of(node, path)
        return owner.whole_number(key)

    def _owner_of(self, node: Mapping, path: str) -> tuple[Mapping, str]:
        """The mapping that a path leads into, and the last key of the path."""
        *above, last = path.split(".")
        owner = node
        for key in above:
            owner = self.mapping(owner, key)
        return owner, last

    # Accounting for leaves -----------------------------------------------------------------------

    @contextmanager
    def of_model(self, name: str) -> Iterator[None]:
        """Assigns what is read in the block to this model."""
        before, self.model = self.model, name
        try:
            yield
        finally:
            self.model = before

    def clause(self, node: Node) -> Clause:
        """The clause of a node, for its rule."""
        self._mark(node, Treatment.CHECKED, "")
        return clause_of(node)

    def rule(self, name: str, demand: Demand, *nodes: Node | None) -> Rule:
        """A rule made from nodes; missing nodes are None."""
        clauses = tuple(self.clause(node) for node in nodes if node is not None)
        return Rule(name, demand, clauses)

    def documented(self, node: Node | None, reason: str = "") -> None:
        """Marks every leaf below the node as understood, and as nothing that data could violate."""
        self._mark(node, Treatment.DOCUMENTED, reason)

    def unsupported(
        self,
        node: Node | None,
        reason: str,
        code: str | None = None,
        help: str | None = None,
        *,
        promise: Promise | None = None,
    ) -> None:
        """Marks every leaf below the node as a check that is not made, with the reason.

        :param code: the code of the mistake, if the document is invalid; `help` is the correction.
        :param promise: the check to which the node belongs; by default the node itself.
        """
        if node is None:
            return
        path = show_path(node.path)
        kept = promise or Promise(path, path, self.model)
        self._mark(node, Treatment.UNSUPPORTED, reason, code, help, kept)

    def not_understood(
        self, node: Node | None, reason: str, code: str | None = None, help: str | None = None
    ) -> None:
        """Marks every leaf below the node as without meaning here, and as no check of its own."""
        self._mark(node, Treatment.UNSUPPORTED, reason, code, help)

    def mistaken(self, node: Node | None, code: str, reason: str, help: str | None) -> None:
        """Marks a value that becomes no rule, and is a mistake: lint reports it."""
        self._mark(node, Treatment.DOCUMENTED, reason, code, help)

    def one_of(
        self, owner: Mapping, key: str, choices: Collection[str], *, is_open: bool = False
    ) -> None:
        """Reports a value that is not among the choices. Case is ignored, but not surrounding
        spaces: other code would treat such a value as unknown.

        :param is_open: other values are allowed, and only likely typos are reported.
        """
        written = owner.text(key)
        node = owner.get(key)
        if written is None or written.lower() in {choice.lower() for choice in choices}:
            return
        if is_open and written == written.strip() and slip_of(written, choices) is None:
            return
        reason = f"'{written}' is not one of the values of '{key}'"
        self.mistaken(node, "E422", reason, did_you_mean(written, choices))

    def status(
        self, owner: Mapping, key: str, statuses: Collection[str], *, is_open: bool = False
    ) -> str | None:
        """The status of `Lifecycle` at a key. A typo of a word for the end is a check that is not
        made: the contract may have ended.

        :param is_open: the format allows other words, too.
        """
        self.one_of(owner, key, statuses, is_open=is_open)
        written = owner.text(key)
        status = status_of(written, statuses)
        if written is None or status is not None:
            return status
        meant = slip_of(written, (*statuses, *_ENDED))
        if meant is None and is_open:
            self.documented(
                owner.get(key), "the format allows any word, and does not define this one"
            )
        elif status_of(meant, statuses) == "sunset":
            reason = f"'{written}' is not one of the values of '{key}'"
            self.unsupported(owner.get(key), reason, "E422", f"did you mean '{meant}'?")
        return None

    def lifecycle_date(self, owner: Mapping, key: str, name: str, *, ends: bool) -> str | None:
        """The date of the lifecycle at a key, as it is written; None without one. A value that is
        not a date is reported.

        :param ends: the contract ends on the date, or a period after it: if no one can read it, the
            end is a check that is not made.
        """
        node = owner.get(key)
        is_null = isinstance(node, Scalar) and node.value is None
        written = owner.text(key)
        if node is None or is_null or day_of(written) is not None:
            return written
        named = f"'{node.text}'" if isinstance(node, Scalar) else "is a list or a mapping, and"
        reason = f"the {name} {named} is not a date"
        treat = self.unsupported if ends else self.mistaken
        treat(node, reason=reason, code="E427", help="write a date such as 2026-03-31")
        return written

    def notice_days(self, owner: Mapping, key: str) -> int | None:
        """The days from the deprecation of a contract to its end; what is no number of them is a
        check that is not made."""
        node = owner.get(key)
        days = owner.whole_number(key)
        is_null = isinstance(node, Scalar) and node.value is None
        if node is None or is_null or (days is not None and days >= 0):
            return days
        written = f"'{node.text}'" if isinstance(node, Scalar) else "a list or a mapping"
        reason = f"the notice of the deprecation is {written}, which is not a number of days"
        self.unsupported(node, reason, "E427", "write a number such as 90")
        return None

    def documented_keys(self, node: Mapping, *keys: str, reason: str = "") -> None:
        """Marks the values of these keys of a mapping as documented."""
        for key in keys:
            self.documented(node.get(key), reason)

    def remarks(self, node: Mapping, place: str) -> None:
        """Marks the keys that `remarks.txt` lists below the heading `place` as documented.

        :raises KeyError: the heading does not exist.
        """
        rows = table_rows(__package__, "remarks.txt", place)
        if not rows:
            raise KeyError(place)
        for keys, *reason in rows:
            self.documented_keys(node, *keys.split(), reason="".join(reason))

    def notes(self, undefined: UndefinedKeys) -> tuple[Note, ...]:
        """All leaves without a rule, in the order of the document.

        Leaves of other files count if something refers to them. A leaf that was never requested is
        an extension below a key of the user; else the format defines it, and it has no effect here.
        """
        slips = {(slip.span.file, slip.path): slip for slip in undefined.unknown}
        unread = {
            (leaf.span.file, leaf.path): self._unread(leaf, undefined.own)
            for leaf in leaves(self.root)
        }
        notes = []
        noted: set[UnknownKey] = set()
        for position, note in (unread | self._marked).items():
            slip = _slip_above(position, slips)
            if slip is not None:
                noted.add(slip)
                # Also in a definition, which is a remark as a whole.
                is_remark = note.treatment is Treatment.DOCUMENTED and slip.is_check
                if position not in self._marked or is_remark:
                    stated = note.promise if position in self._marked else None
                    notes.append(_of_slip(slip, note.clause, stated))
                    continue
            if note.treatment is Treatment.UNSUPPORTED:
                notes.append(note)
            elif note.treatment is not Treatment.CHECKED:
                notes.append(replace(note, promise=None))
        for slip in slips.values():
            if slip.is_check and slip not in noted:  # it is in a referenced file
                notes.append(_of_slip(slip, Clause(slip.path, "", slip.span)))
        return tuple(notes)

    def _unread(self, leaf: Node, own: Collection[Position]) -> Note:
        """The note about a leaf that was never requested."""
        clause = clause_of(leaf)
        above = (show_path(leaf.path[:end]) for end in range(1, len(leaf.path) + 1))
        if any((leaf.span.file, path) in own for path in above):
            return Note(clause, Treatment.DOCUMENTED, _EXTENSION)
        if not isinstance(leaf, Scalar) or leaf.value is None:
            return Note(clause, Treatment.DOCUMENTED, "states nothing")
        promise = Promise(clause.path, clause.path)
        return Note(clause, Treatment.UNSUPPORTED, _NO_EFFECT, promise=promise)

    def _mark(
        self,
        node: Node | None,
        treatment: Treatment,
        reason: str,
        code: str | None = None,
        help: str | None = None,
        promise: Promise | None = None,
    ) -> None:
        for leaf in leaves(node) if node is not None else ():
            position = (leaf.span.file, leaf.path)
            before = self._marked.get(position)
            # A check at one use of a definition outweighs other uses; and a mistake outweighs any
            # note about the enclosing nodes.
            if before is not None:
                is_mistake = before.code is not None and treatment is Treatment.DOCUMENTED
                if before.treatment is Treatment.CHECKED or is_mistake:
                    continue
            stated = promise or (before.promise if before is not None else None)
            note = Note(clause_of(leaf), treatment, reason, code, help, stated)
            self._marked[position] = note

    # Rules and mistakes of keys that dialects have in common -------------------------------------

    def report_unknown_type(
        self, column: Mapping, key: str, is_type: Callable[[str], bool]
    ) -> None:
        """Reports a type that the format does not have.

        :param is_type: whether a text is a type there.
        """
        node = column.get(key)
        if isinstance(node, Scalar):
            hint = hint_at_type(meant_type(node.text, is_type))
            if hint is None:
                simple = "" if "<" in node.text else node.text.partition("(")[0].strip().lower()
                hint = did_you_mean(simple, types.TYPE_NAMES)
            self.report(mistake("unknown_type", node.span, written=node.text, hint=hint))

    def bound_rule(
        self,
        owner: Mapping,
        key: str,
        name: str,
        op: str,
        field_type: str | None,
        pattern: str | None = None,
    ) -> Rule | None:
        """The rule for a bound of a field: a number for numeric fields, a string for dates.

        A bound that is not a value of the field's type is reported.

        :param pattern: the format in which dates may be written, too.
        """
        node = owner.get(key)
        if not isinstance(node, Scalar) or node.value is None:
            return None
        family = types.family_of(field_type) if field_type is not None else None
        number = owner.number(key)
        bound: Literal = node.text
        if family is types.Family.TIME:
            moment = self.bound_moment(node, pattern)
            if moment is None:
                return None
            if iso_moment(node.text.strip()) is None:
                bound = moment.isoformat() if moment.time() != time() else moment.date().isoformat()
        elif number is not None and family is not types.Family.TEXT:
            bound = number
        elif family is types.Family.NUMBER or field_type in NUMBER_WORDS:
            parts = {"bound": node.text, "type": field_type}
            self.report(mistake("bound_is_no_number", node.span, **parts))
            return None
        return self.rule(name, Bound(op, bound), node)

    def bound_moment(
        self, node: Scalar, pattern: str | None, *, is_time: bool = False
    ) -> datetime | None:
        """The moment of a bound; None for one that is reported: no time, or one of two."""
        try:
            return bound_moment(node.text, pattern, is_time=is_time)
        except BoundError as error:
            parts = {"reason": str(error), "wanted": error.help}
            self.report(mistake("bound_is_no_time", node.span, **parts))
            return None

    def bound_rules(
        self, owner: Mapping, least: str, most: str, field_type: str | None
    ) -> Iterator[Rule]:
        """The rules for the two inclusive bounds of a field, by their keys."""
        for key, name, op in ((least, "minimum", ">="), (most, "maximum", "<=")):
            if (rule := self.bound_rule(owner, key, name, op, field_type)) is not None:
                yield rule

    def length_rules(self, owner: Mapping, limits: Limits) -> Iterator[Rule]:
        """The rules for limits of lengths."""
        for key, name, op in limits:
            if (count := owner.number(key)) is not None:
                yield self.rule(name, Length(op, int(count)), owner.get(key))

    def reference_rule(self, owner: Mapping, path: str, wanted: str) -> Iterator[Rule]:
        """The rule for a `foreign_key` with a table and its column; other values are refused.

        :param path: the path of the referring column.
        :param wanted: the description of a correct value.
        """
        node = owner.get("foreign_key")
        table, _, other = (owner.text("foreign_key") or "").strip().rpartition(".")
        if table and other:
            yield self.rule("references", Refers((path,), table, (column_path(other),)), node)
        else:
            self.unsupported(node, f"does not name {wanted}")

    def check_address(self, owner: Mapping, key: str, kind: str) -> None:
        """Reports the value of a key if it does not have the format `kind`: `email` or `uri`."""
        written = owner.text(key)
        if written is None or _PLACEHOLDER.search(written):
            return
        address = written.strip().removeprefix("mailto:") if kind == "email" else written.strip()
        if re.fullmatch(TEXT_FORMATS[kind].pattern, address) is None:
            form = "e-mail address" if kind == "email" else "URL"
            reason = f"'{written}' is not a valid {form}"
            self.mistaken(owner.get(key), "E426", reason, _FORMS[kind])
