"""Reads the clauses of a document one by one, with their types. Shared by all dialects.

A reader requests the keys that it supports. It takes a `clause` for a rule, and marks clauses that
data cannot violate as documented; every leaf that was never requested ends as unsupported.

An accepted clause, at its position, or in a list of the root whose items have a `clause`:

    quality:
      - type: custom
        engine: monte-carlo
        x-dqx-accepted: {owner: data-platform, reason: the vendor checks it}

The handling of an incident, and renamed models and fields:

    x-dqx-incident: {channel: "#orders", runbook: https://wiki.example.com/orders}
    x-dqx-renamed:
      - {model: purchases, from: orders}
      - {model: purchases, field: address.zip, from: address.postcode}

In ODCS, whose objects allow no additional keys, each is a custom property with this value.

Durations and frequencies: a month is 30.436875 days and a year is 365.2425 days, the means of the
calendar: twelve months are a year, and no limit depends on the current date.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime, time, timedelta
from itertools import pairwise
from math import isfinite
from typing import TypeAlias

from dqx_airflow.contracts.demands import Bound, Demand, Length, Literal, Refers, one_line
from dqx_airflow.contracts.document import (
    NOTHING,
    Mapping,
    Node,
    Path,
    Scalar,
    Sequence,
    leaves,
    show_path,
)
from dqx_airflow.contracts.mistakes import mistake
from dqx_airflow.contracts.model import (
    Acceptance,
    Clause,
    Field,
    IncidentResponse,
    Model,
    Note,
    Promise,
    Renamed,
    Rule,
    Treatment,
    UnknownKey,
    column_path,
    dotted_path,
)
from dqx_airflow.contracts.references import References
from dqx_airflow.contracts.time_texts import BoundError, bound_moment, iso_moment
from dqx_airflow.diagnostics.diagnostic import Diagnostic, did_you_mean, nearest, slip_of
from dqx_airflow.metrics import types
from dqx_airflow.metrics.text_formats import TEXT_FORMATS
from dqx_airflow.values.files import table_rows

NUMBER_WORDS = ("number", "whole_number")


def spark_type_of(text: str) -> str | None:
    """A Spark type as spelled in schemas: `bigint` for `LONG`; None if Spark has no such type."""
    try:
        return types.canonical_type(text)
    except types.TypeTextError:
        return None


def with_type(item: Field, spark_type: str) -> Field:
    """The field with a Spark type; the fields, items, keys and values of a nested type become
    fields."""
    parts = types.parts_of(spark_type)
    match spark_type.partition("<")[0]:
        case "array":
            return replace(item, type="array", items=_part(item, "[]", parts[0]))
        case "map":
            keys, values = _part(item, "{key}", parts[0]), _part(item, "{value}", parts[1])
            return replace(item, type="map", keys=keys, values=values)
        case "struct":
            inner = types.fields_of(spark_type).items()
            fields = (_part(item, f".{column_path(name)}", kind, name) for name, kind in inner)
            return replace(item, type="struct", fields=tuple(fields))
    return replace(item, type=spark_type)


def with_examples(item: Field, examples: Iterable[Scalar]) -> Field:
    """The field with its examples; it is sensitive if its classification or one of its tags is."""
    listed = list(examples)
    return replace(
        item,
        is_sensitive=item.is_sensitive or is_sensitive(item.classification, item.tags),
        examples=tuple(example.value for example in listed),
        example_spans=tuple(example.span for example in listed),
    )


_MEANT = {"proposed": "draft", "in development": "draft", "stable": "active", "retired": "sunset"}


def status_of(written: str | None, statuses: Collection[str]) -> str | None:
    """The status of `Lifecycle` for a status of a dialect; None without one or if it is unknown."""
    word = (written or "").lower()
    return _MEANT.get(word, word) if word in statuses else None


def most_digits(spark_type: str | None) -> int:
    """The maximum number of digits of a decimal; of the longest decimal for every other type."""
    if spark_type is not None and spark_type.startswith("decimal"):
        return int(types.parts_of(spark_type)[0])
    return types.LONGEST_DECIMAL


def _part(item: Field, mark: str, spark_type: str, name: str | None = None) -> Field:
    part = Field(mark if name is None else name, item.path + mark, None, item.span, spark_type)
    return with_type(part, spark_type)


Limits: TypeAlias = "tuple[tuple[str, str, str], ...]"
"""Keys that limit a value or its length, each with the name of its rule and its comparison."""

_EXTENSION = "an extension that the dialect does not define"


def clause_of(node: Node) -> Clause:
    """The clause of a node."""
    text = (node.written or node.text) if isinstance(node, Scalar) else ""
    return Clause(show_path(node.path), one_line(text), node.span)


def _of_slip(slip: UnknownKey, clause: Clause, promise: Promise | None = None) -> Note:
    """The note about what is written under an unknown key."""
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
        written, node = owner.text(key), owner.get(key)
        if written is None or written.lower() in {choice.lower() for choice in choices}:
            return
        if is_open and written == written.strip() and slip_of(written, choices) is None:
            return
        reason = f"'{written}' is not one of the values of '{key}'"
        self.mistaken(node, "E422", reason, did_you_mean(written, choices))

    def documented_keys(self, node: Mapping, *keys: str, reason: str = "") -> None:
        """Marks the values of these keys of a mapping as documented."""
        for key in keys:
            self.documented(node.get(key), reason)

    def remarks(self, node: Mapping, place: str) -> None:
        """Marks the keys that `remarks.txt` lists below the heading `place` as documented.

        :raises KeyError: there is no such heading.
        """
        rows = table_rows(__package__, "remarks.txt", place)
        if not rows:
            raise KeyError(place)
        for keys, *reason in rows:
            self.documented_keys(node, *keys.split(), reason="".join(reason))

    def notes(self, unknown: Collection[UnknownKey] = ()) -> tuple[Note, ...]:
        """All leaves without a rule, in the order of the document.

        Leaves of other files count if something refers to them. A leaf that was never requested is
        an extension, unless it is below one of the `unknown` keys.
        """
        slips = {(key.span.file, key.path): key for key in unknown}
        unseen = {place: slip for place, slip in slips.items() if slip.is_check}
        unread = {
            (leaf.span.file, leaf.path): Note(clause_of(leaf), Treatment.DOCUMENTED, _EXTENSION)
            for leaf in leaves(self.root)
        }
        notes = []
        for position, marked in (unread | self._marked).items():
            note = marked
            file, path = position
            above = (slips.get((file, show_path(path[:end]))) for end in range(len(path), 0, -1))
            slip = next(filter(None, above), None) if slips else None
            if slip is not None:
                # Also in a definition, which is a remark as a whole.
                is_remark = note.treatment is Treatment.DOCUMENTED and slip.is_check
                if position not in self._marked or is_remark:
                    note = _of_slip(slip, note.clause, note.promise)
                unseen.pop((slip.span.file, slip.path), None)
            if note.treatment is Treatment.UNSUPPORTED:
                notes.append(note)
            elif note.treatment is not Treatment.CHECKED:
                notes.append(replace(note, promise=None))
        for slip in unseen.values():  # in referenced files
            notes.append(_of_slip(slip, Clause(slip.path, "", slip.span)))
        return tuple(notes)

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

    def report_unknown_type(self, column: Mapping, key: str) -> None:
        """Reports a type that Spark does not have."""
        node = column.get(key)
        if isinstance(node, Scalar):
            name = re.split(r"[<(]", node.text, maxsplit=1)[0].strip().lower()
            hint = did_you_mean(name, types.TYPE_NAMES)
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


def at_the_top(reading: ClauseReader, key: str) -> Node | None:
    """The value of a key at the root or below `contract`, or of a custom property of that name."""
    if (node := reading.root.get(key)) is not None:
        return node
    for item in reading.mappings(reading.root, "customProperties"):
        if item.text("property") == key:
            return item.get("value")
    return reading.mapping(reading.root, "contract").get(key)


_LONGEST = 60


def slug(text: str) -> str:
    """A text as the name of a rule: `null_values` for `Null values!` and for `nullValues`."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    separated = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", plain)
    return re.sub(r"[^a-z0-9]+", "_", separated.lower())[:_LONGEST].strip("_")


def with_unique_names(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The rules with unique names: the second `sql` becomes `sql_2`. Equal rules become one."""
    equal_rules: dict[Rule, list[Rule]] = {}
    for rule in rules:
        equal_rules.setdefault(rule, []).append(rule)
    taken: set[str] = set()
    renamed = []
    for rule, same in equal_rules.items():
        clauses = tuple(clause for duplicate in same for clause in duplicate.clauses)
        renamed.append(replace(rule, name=unique_name(rule.name, taken), clauses=clauses))
    return tuple(renamed)


def unique_name(wanted: str, taken: set[str]) -> str:
    """Returns `wanted`, or `wanted_2` and so on if it is taken, and adds it to `taken`."""
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    taken.add(name)
    return name


_HARMLESS = {"", "none", "public", "open", "unclassified", "unrestricted"}
_MARKS = {"pii", "phi", "pci", "gdpr", "sensitive", "confidential", "restricted", "secret"}
_PERSONAL = re.compile(
    r"(?i)(^|_)(e?mail(_address)?|phone(_number)?|ssn|tax_id|passport|iban|credit_card|birth_?date|"
    r"date_of_birth|first_name|last_name|full_name|surname)(_|$)"
)


def is_sensitive(classification: str | None, tags: Iterable[str] = ()) -> bool:
    """True for every classification except public, and for a tag such as `pii`."""
    classified = (classification or "").strip().lower() not in _HARMLESS
    return classified or any(tag.strip().lower() in _MARKS for tag in tags)


def looks_personal(name: str) -> bool:
    """True for names of columns with personal data: `email`, `birth_date`."""
    return _PERSONAL.search(name) is not None


PlacedRule: TypeAlias = "tuple[str | None, Rule]"
"""A rule with the path of its column; None for a rule about the model."""
RuleOfModel: TypeAlias = "tuple[str, str | None, Rule]"
"""A rule with its model and the path of its column; None for a rule about the model."""


def with_rules(model: Model, placed: Iterable[PlacedRule]) -> Model:
    """The model with further rules: rules about a field are added to the field; rules about the
    model, and about columns that it does not have, to the model."""
    rules_of: dict[str | None, list[Rule]] = {item.path: [*item.rules] for item in model.fields}
    rules_of[None] = [*model.rules]
    for path, rule in placed:
        rules_of.get(path, rules_of[None]).append(rule)
    unique = {path: with_unique_names(rules) for path, rules in rules_of.items()}
    fields = tuple(replace(item, rules=unique[item.path]) for item in model.fields)
    return replace(model, fields=fields, rules=unique[None])


ACCEPTED = "x-dqx-accepted"
_CUSTOM = "customProperties"
_REQUIRED = ("owner", "reason")


def read_acceptances(reading: ClauseReader, models: Collection[str]) -> tuple[Acceptance, ...]:
    """All acceptances of the document. An acceptance without an owner or a reason is reported and
    ignored.

    :param models: the names of models, which are the prefixes of the names of assertions.
    """
    acceptances = list(_within(reading, reading.root))
    known = [show_path(leaf.path) for leaf in leaves(reading.root)] if acceptances else []
    for acceptance in acceptances:
        is_name = any(acceptance.clause.startswith(f"{name}.") for name in models)
        if not is_name and not any(map(acceptance.covers, known)):
            clause, span = acceptance.clause, acceptance.span
            reading.report(mistake("unknown_accepted", span, clause=clause))
    return tuple(acceptances)


def _within(reading: ClauseReader, node: Node) -> Iterator[Acceptance]:
    if isinstance(node, Sequence):
        for item in node.items:
            yield from _within(reading, item)
    if not isinstance(node, Mapping):
        return
    for key, entry in node.entries.items():
        if key == ACCEPTED:
            yield from _acceptance(reading, entry.node, node.path)
        elif key == _CUSTOM:
            for item in node.items(key):
                if isinstance(item, Mapping) and item.text("property") == ACCEPTED:
                    yield from _acceptance(reading, item.get("value") or item, node.path)
        else:
            yield from _within(reading, entry.node)


def _acceptance(reading: ClauseReader, node: Node, owner: Path) -> Iterator[Acceptance]:
    reading.documented(node, "records who accepts that a clause is not checked")
    for item in node.items if isinstance(node, Sequence) else (node,):
        mapping = item if isinstance(item, Mapping) else NOTHING
        clause = mapping.text("clause") or show_path(owner)
        given = {key: mapping.text(key) if mapping.literal(key) else None for key in _REQUIRED}
        accepted_by, reason = (one_line(text or "") for text in given.values())
        if accepted_by and reason and clause:
            yield Acceptance(clause, reason, accepted_by, item.span)
            continue
        missing = "owner" if not accepted_by else "reason" if not reason else "clause"
        reading.report(mistake("incomplete_acceptance", item.span, missing=missing, key=ACCEPTED))


_FORMS = {
    "email": "write it as name@example.com",
    "uri": "write it with its scheme: https://example.com/page",
}
_PLACEHOLDER = re.compile(r"\$\{|\{\{|^__\w+__$")
"""Placeholders that are replaced before the contract is used."""


INCIDENT = "x-dqx-incident"


def with_extension(reading: ClauseReader, incident: IncidentResponse) -> IncidentResponse:
    """The information of the dialect, completed by the extension of the document."""
    extension = at_the_top(reading, INCIDENT)
    if not isinstance(extension, Mapping):
        return incident
    reading.documented(extension, "how incidents are handled")
    named = {item.name: extension.text(item.name) for item in fields(incident)}
    return replace(incident, **{name: text for name, text in named.items() if text})


RENAMED = "x-dqx-renamed"


def read_renames(reading: ClauseReader, models: Iterable[Model]) -> Iterator[Renamed]:
    """The renames in the document. Incomplete renames, and renames of unknown elements, are
    reported and ignored."""
    node = at_the_top(reading, RENAMED)
    if node is None:
        return
    reading.documented(node, "renames since the previous version")
    known = {model.name: model for model in models}
    for item in node.items if isinstance(node, Sequence) else (node,):
        mapping = item if isinstance(item, Mapping) else NOTHING
        model, path = mapping.text("model"), mapping.text("field")
        old = mapping.text("from")
        if model is None or old is None:
            missing = "model" if model is None else "from"
            reading.report(mistake("incomplete_rename", item.span, missing=missing))
        elif model not in known:
            hint = did_you_mean(model, known)
            reading.report(mistake("unknown_model", item.span, model=model, hint=hint))
        elif path is None:
            yield Renamed(model, None, old)
        else:
            column, before = dotted_path(path), dotted_path(old)
            if known[model].field_at(column) is None:
                hint = did_you_mean(path, [field.path for field in known[model].walk()])
                parts = {"model": model, "field": path, "hint": hint}
                reading.report(mistake("unknown_field", item.span, **parts))
            else:
                yield Renamed(model, column, before)


MINUTE_S = 60
HOUR_S = 60 * MINUTE_S
DAY_S = 24 * HOUR_S
WEEK_S = 7 * DAY_S
YEAR_S = 31_556_952
MONTH_S = YEAR_S // 12
QUARTER_S = YEAR_S // 4

_UNITS: dict[str, float] = {
    **dict.fromkeys(("ms", "millis", "millisecond", "milliseconds"), 0.001),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), MINUTE_S),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), HOUR_S),
    **dict.fromkeys(("d", "day", "days"), DAY_S),
    **dict.fromkeys(("w", "week", "weeks"), WEEK_S),
    **dict.fromkeys(("mo", "month", "months"), MONTH_S),
    **dict.fromkeys(("quarter", "quarters"), QUARTER_S),
    **dict.fromkeys(("y", "yr", "yrs", "year", "years"), YEAR_S),
}
"""The units of durations, with their seconds."""
_NUMBER = r"(\d+(?:[.,]\d+)?)"
_PART = re.compile(rf"\s*{_NUMBER}[\s_]*([A-Za-z]+)[\s_]*")
_ISO = re.compile(
    rf"P(?:{_NUMBER}Y)?(?:{_NUMBER}M)?(?:{_NUMBER}W)?(?:{_NUMBER}D)?"
    rf"(?:T(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?(?<![PT])",
    re.IGNORECASE,
)
_ISO_UNITS = (YEAR_S, MONTH_S, WEEK_S, DAY_S, HOUR_S, MINUTE_S, 1)
_EXAMPLES = "write it as 24h, '7 days' or PT24H"


def seconds_of(text: str) -> float | None:
    """The seconds of a duration, simple or of ISO 8601; None if the text is not a duration.

    >>> seconds_of("7_years") == seconds_of("P7Y") == 7 * YEAR_S
    True
    """
    written = text.strip()
    total, position = 0.0, 0
    if match := _ISO.fullmatch(written):
        parts = zip(match.groups(), _ISO_UNITS, strict=True)
        total, position = sum(_number(count) * unit for count, unit in parts if count), match.end()
    while position < len(written):
        part = _PART.match(written, position)
        # A month to some, a minute to others.
        if part is None or part[2] == "M" or part[2].lower() not in _UNITS:
            return None
        total += _number(part[1]) * _UNITS[part[2].lower()]
        position = part.end()
    return total if written and isfinite(total) else None


def duration_s(node: Node, report: Callable[[Diagnostic], None]) -> float | None:
    """The seconds of the duration at a node; an invalid duration is reported with a correction."""
    text = node.text if isinstance(node, Scalar) else ""
    seconds = seconds_of(text)
    if seconds is None:
        where, hint = show_path(node.path), _hint(text.strip())
        report(mistake("no_duration", node.span, where=where, written=text, hint=hint))
    return seconds


def _number(text: str) -> float:
    return float(text.replace(",", "."))


def _hint(text: str) -> str:
    if re.fullmatch(_NUMBER, text):
        return (
            f"{text} has no unit: write {text}h or PT{text}H for hours, "
            f"{text}d or P{text}D for days"
        )
    if match := re.fullmatch(rf"{_NUMBER}\s*M", text):
        return f"write '{match[1]} months' or '{match[1]} minutes'"
    if text[:1].upper() == "P":
        return "ISO 8601 writes P1Y2M3DT4H5M6S, with a T before hours, minutes and seconds"
    if match := re.fullmatch(rf"{_NUMBER}[\s_]*([A-Za-z]+)", text):
        near = nearest(match[2].lower(), _UNITS)
        if near is not None and match[2].lower() not in _UNITS:
            return f"did you mean '{match[1]} {near}'?"
    return _EXAMPLES


_WORDS: dict[str, float] = {
    **{f"{unit}ly": _UNITS[unit] for unit in ("hour", "week", "month", "quarter", "year")},
    **{"daily": DAY_S, "annually": YEAR_S},
}
"""The words for intervals, with their seconds."""
_SHORTHANDS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
"""The cron expressions of shorthands."""
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
# Five years from a Sunday on contain every effect of the calendar on a cron expression.
_FIRST_DAY, _DAYS = date(2023, 1, 1), 5 * 366
_SAMPLED_RUNS = 60


CADENCES = {"week": 7, "month": 1, "quarter": 3, "half": 6, "semi": 6, "year": 12, "annual": 12}
"""Prefixes of the cadences of breaking changes, with the months of each; for a week, its days."""


@dataclass(frozen=True, slots=True)
class Frequency:
    """The frequency of deliveries: the maximum seconds between two of them, and the cron expression
    that schedules them, if any."""

    interval_s: float
    schedule: str | None = None


def frequency_of(text: str) -> Frequency | None:
    """The frequency of an interval, or of a cron expression; None for anything else."""
    seconds = interval_s(text)
    if seconds is not None:
        return Frequency(seconds)
    of_cron = cron_interval_s(text)
    return Frequency(of_cron, schedule_of(text)) if of_cron is not None else None


def interval_s(text: str) -> float | None:
    """The seconds of `daily`, `15 minutes`, `every 2 hours`, `every day` or `PT1H`; None for
    anything else."""
    words = " ".join(text.lower().split())
    if words in _WORDS:
        return _WORDS[words]
    counted = words.removeprefix("every ")
    if counted != words and counted in _UNITS:
        return _UNITS[counted]
    return seconds_of(counted) or None


def cron_interval_s(text: str) -> float | None:
    """The longest time between two runs of a cron expression; None if it is invalid.

    >>> cron_interval_s("0 6 * * 1-5") == 3 * DAY_S  # from Friday to Monday
    True
    """
    fields = schedule_of(text).split()
    if len(fields) != 5:
        return _interval_of_other(text)
    minutes, hours = _values(fields[0], 0, 59), _values(fields[1], 0, 23)
    days, months = _values(fields[2], 1, 31), _values(fields[3], 1, 12, _MONTHS)
    weekdays = _values(fields[4], 0, 7, _WEEKDAYS)
    if not (minutes and hours and days and months and weekdays):
        return _interval_of_other(text)
    from_sunday = {weekday % 7 for weekday in weekdays}
    times = sorted(hour * HOUR_S + minute * MINUTE_S for hour in hours for minute in minutes)
    any_day, any_weekday = fields[2][0] in "*?", fields[4][0] in "*?"

    def runs_on(day: date) -> bool:
        on_day, on_weekday = day.day in days, day.isoweekday() % 7 in from_sunday
        # As in cron: if both are restricted, one of them is enough.
        is_day = on_day and on_weekday if any_day or any_weekday else on_day or on_weekday
        return day.month in months and is_day

    run_days = [n for n in range(_DAYS) if runs_on(_FIRST_DAY + timedelta(days=n))]
    if len(run_days) < 2:
        return None
    within = [later - earlier for earlier, later in pairwise(times)]
    gap = max(later - earlier for earlier, later in pairwise(run_days))
    return max([*within, gap * DAY_S + times[0] - times[-1]])


def schedule_of(text: str) -> str:
    """A cron expression without shorthands: `0 0 1 * *` for `@monthly`."""
    return _SHORTHANDS.get(text.strip().lower(), text.strip())


def _interval_of_other(text: str) -> float | None:
    """The longest time between two of the next runs of a cron expression that only croniter parses:
    with `L`, `#` or `W`. None if it is invalid."""
    if re.search(r"[lw#]", text.lower()) is None:
        return None
    from croniter import CroniterBadDateError, CroniterError, croniter

    try:
        runs = croniter(schedule_of(text), datetime.combine(_FIRST_DAY, time.min))
        times: list[datetime] = [runs.get_next(datetime) for _ in range(_SAMPLED_RUNS)]
    except (CroniterError, CroniterBadDateError, ValueError, TypeError):
        return None
    return max((later - earlier).total_seconds() for earlier, later in pairwise(times))


def _values(field: str, least: int, most: int, names: tuple[str, ...] = ()) -> set[int] | None:
    """The values of a field of a cron expression; None if it is invalid."""
    values: set[int] = set()
    for part in field.lower().split(","):
        bounds, _, step = part.partition("/")
        low, _, high = bounds.partition("-")
        if bounds in ("*", "?"):
            first, last = least, most
        else:
            first = _value(low, names)
            last = _value(high, names) if high else (most if step else first)
        if not least <= first <= last <= most or not (step or "1").isdigit() or step == "0":
            return None
        values.update(range(first, last + 1, int(step or 1)))
    return values


def _value(text: str, names: tuple[str, ...]) -> int:
    """A number or a name as a number; -1 for anything else."""
    if text in names:
        return names.index(text) + (1 if names is _MONTHS else 0)
    return int(text) if text.isdigit() and len(text) <= 2 else -1
