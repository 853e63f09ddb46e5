"""Compiles a contract to a DQL suite: one check for each model, one assertion for each rule.

    compiled = compile_contract(contract)
    compiled.text       # canonical DQL: the same contract gives the same text
    compiled.enforced   # the rule behind each assertion, by its name

The severity of an assertion is the severity of its rule, and P1 if the contract states none. Its
tags are the dialect, the dimension (`dimension-completeness`), and the tags of the rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from dqx_airflow.contracts.compile import terms
from dqx_airflow.contracts.compile.claims import CompiledClaim, EnforcedByType
from dqx_airflow.contracts.compile.rule_context import RuleContext
from dqx_airflow.contracts.demands import OfType, printable_line
from dqx_airflow.contracts.dialects.rule_names import unique_name
from dqx_airflow.contracts.model import Acceptance, Clause, Contract, Note, Promise, Rule, Treatment
from dqx_airflow.dql.check import Checked, check_source
from dqx_airflow.dql.checks.suite import IMPLICIT_CHECK
from dqx_airflow.dql.formatter import WIDTH, format_source
from dqx_airflow.dql.nodes import DEFAULT_SEVERITY
from dqx_airflow.dql.printer import show_name, show_text
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.values import DatasetRef, Severity, SourceFile

_INDENT = " " * 4
_WIDTH_INSIDE = WIDTH - len(2 * _INDENT + "# ")


@dataclass(frozen=True, slots=True)
class Compiled:
    """A suite, and its coverage of the rules of the contract.

    `enforced` maps each assertion to its rule. `included` are rules that an assertion enforces
    besides its own: the types of nested fields. `notes` are the clauses of rules that cannot be
    enforced, with the reason. `unenforced` are the checks that the contract states and no assertion
    makes. `checked` is the suite as a tree with positions in `text`.
    """

    text: str
    checked: Checked = field(repr=False, compare=False)
    enforced: tuple[tuple[str, Rule], ...]
    included: tuple[tuple[str, Rule], ...]
    notes: tuple[Note, ...]
    unenforced: tuple[Unenforced, ...] = ()


@dataclass(frozen=True, slots=True)
class Unenforced:
    """A check that the contract states and no assertion makes: the name that its assertion would
    have, the dataset, its clauses, and the reason. `acceptance` is set if the contract accepts the
    gap. `source` is the rule behind the check, or its promise if no rule could be made."""

    name: str
    dataset: str
    clauses: tuple[Clause, ...]
    severity: Severity
    reason: str
    acceptance: Acceptance | None = None
    source: Rule | Promise | None = None


def compile_contract(
    contract: Contract,
    datasets: Iterable[DatasetRef] = (),
    *,
    on: date | None = None,
    name: str = "suite.dql",
) -> Compiled:
    """The suite that enforces a contract. `dql check` finds no error in it.

    :param datasets: the datasets of the gate, if known. A rule that needs dates is not enforced
        over a dataset without dates.
    :param on: the date of the data, for deliveries on calendar days. Without it, the longest
        interval between two deliveries counts.
    :param name: the name of the suite in positions.
    """
    drafting = _Drafting(contract, {ref.name: ref for ref in datasets}, on)
    drafting.draft_all()
    while True:
        assertions = [draft.assertion for draft in drafting.drafts]
        written = written_suite(name, *drafting.title(), assertions, drafting.unchecked())
        source, checked, wrong = written
        if not wrong:
            break
        # Claims that the language rejects, such as an empty range.
        drafting.refuse(wrong)
    if any(len(line) > WIDTH for line in source.text.splitlines()):
        source = SourceFile(name, format_source(source))
        checked = check_source(source)
    return Compiled(
        source.text,
        checked,
        tuple((draft.assertion.name, draft.rule) for draft in drafting.drafts),
        tuple((draft.assertion.name, rule) for draft in drafting.drafts for rule in draft.included),
        tuple(
            Note(clause, Treatment.UNSUPPORTED, refused.reason)
            for refused, _ in drafting.refused
            for clause in refused.clauses
        ),
        tuple(drafting.unenforced()),
    )


@dataclass(frozen=True, slots=True)
class _AssertionDraft:
    """An assertion, its rule, and the rules that it also enforces."""

    assertion: SuiteAssertion
    rule: Rule
    included: list[Rule] = field(default_factory=list)


@dataclass(slots=True)
class _Drafting:
    """Drafts the assertions of a contract."""

    contract: Contract
    datasets: Mapping[str, DatasetRef]
    on: date | None
    drafts: list[_AssertionDraft] = field(default_factory=list)
    refused: list[tuple[Unenforced, bool]] = field(default_factory=list)
    """The rules without an assertion; True if another rule has none for the same reason."""
    _names: set[str] = field(default_factory=set)
    _types: dict[int, _AssertionDraft] = field(default_factory=dict)
    """The assertions about types of a model, by the `id` of their fields."""

    def draft_all(self) -> None:
        for model in self.contract.models:
            self._types = {}
            ref = self.datasets.get(model.name)
            ways = [way for column in model.fields for way in column.ways()]
            for way in (*ways, ()):
                for rule in way[-1].rules if way else model.rules:
                    self._draft(RuleContext(self.contract, model, way, rule, ref, self.on))

    def refuse(self, wrong: dict[int, str]) -> None:
        """Removes the drafts with these numbers."""
        for number, reason in wrong.items():
            draft = self.drafts[number]
            name = draft.assertion.name
            dataset = draft.assertion.datasets[0]
            for rule in (draft.rule, *draft.included):
                self._refuse(name, dataset, rule, reason, is_part=rule is not draft.rule)
        self.drafts = [draft for number, draft in enumerate(self.drafts) if number not in wrong]

    def _draft(self, context: RuleContext) -> None:
        rule = context.rule
        place = (context.model.name, context.rule)
        try:
            claim = self._claim(context)
        except NoCounterpartError as error:
            self._refuse(self._name(context), *place, str(error))
            return
        if isinstance(claim, EnforcedByType):
            outer = self._types.get(id(claim.column))
            if outer is None:
                reason = (
                    f"the type of {claim.column.path} is not checked, and this clause is part of it"
                )
                self._refuse(self._name(context), *place, reason, is_part=True)
            else:
                outer.included.append(rule)
            return
        assertion = SuiteAssertion(
            self._name(context),
            claim.text,
            tuple(dict.fromkeys((context.model.name, *claim.others))),
            tuple(filter(None, [shortened(rule.description or "", _WIDTH_INSIDE)])),
            rule.severity if rule.severity != DEFAULT_SEVERITY else None,
            tuple(_tags(self.contract, rule)),
        )
        self.drafts.append(_AssertionDraft(assertion, rule))
        if isinstance(rule.demand, OfType) and context.item is not None:
            self._types[id(context.item)] = self.drafts[-1]

    def _refuse(
        self, name: str, dataset: str, rule: Rule, reason: str, *, is_part: bool = False
    ) -> None:
        accepted = self.contract.acceptance_of(name, *(clause.path for clause in rule.clauses))
        place = name, dataset, rule.clauses
        refused = Unenforced(*place, _severity(rule), reason, accepted, rule)
        self.refused.append((refused, is_part))

    def unenforced(self) -> Iterator[Unenforced]:
        """The checks that the contract states and no assertion makes: first rules, then promises
        that could not become a rule."""
        yield from (item for item, is_part in self.refused if item.clauses and not is_part)
        promised: dict[Promise, list[Note]] = {}
        for note in self.contract.notes:
            if note.promise is not None:
                promised.setdefault(note.promise, []).append(note)
        names = [model.name for model in self.contract.models]
        for promise, notes in promised.items() if names else ():
            dataset = promise.model if promise.model in names else names[0]
            clauses = tuple(note.clause for note in notes)
            paths = [promise.path, *(clause.path for clause in clauses)]
            accepted = self.contract.acceptance_of(promise.name, *paths)
            place = unique_name(promise.name, self._names), str(dataset), clauses
            yield Unenforced(*place, _severity(promise), notes[0].reason, accepted, promise)

    def _claim(self, context: RuleContext) -> CompiledClaim | EnforcedByType:
        try:
            claim = context.rule.demand.claim(context)
        except RecursionError:
            raise NoCounterpartError("it is nested too deeply") from None
        model = context.model.name
        if isinstance(claim, CompiledClaim):
            for dataset in (model, *claim.others):
                if not dataset or "\n" in dataset or not terms.is_writable(dataset):
                    raise NoCounterpartError(f"DQL cannot contain the dataset name {dataset!r}")
        return claim

    def _name(self, context: RuleContext) -> str:
        name = self.contract.assertion_name(context.model, context.item, context.rule)
        return unique_name(name, self._names)

    def title(self) -> tuple[str, str]:
        """The name of the suite, and the comment above it."""
        contract = self.contract
        version = f" {contract.version}" if contract.version else ""
        source = printable_line(f"{contract.id}{version} ({contract.dialect})")
        origin = f"Compiled from the contract {source}: change that, not this file."
        name = printable_line(contract.name or contract.id) or "contract"
        return name, shortened(origin, WIDTH - len("# "))

    def unchecked(self) -> list[str]:
        """The clauses that no assertion enforces, as lines of comments."""
        reasons = [
            (note.clause.path, note.reason)
            for note in self.contract.notes
            if note.treatment is Treatment.UNSUPPORTED
        ]
        reasons += [
            (clause.path, refused.reason)
            for refused, _ in self.refused
            for clause in refused.clauses[:1]
        ]
        lines = [f"  {shortened(f'{path}: {why}', WIDTH - len('#   '))}" for path, why in reasons]
        return ["Not checked:", *lines] if lines else []


# The text of a suite -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SuiteAssertion:
    """An assertion as text with its comments; `datasets` are the datasets of its check. Without a
    `severity`, it is P1."""

    name: str
    claim: str
    datasets: tuple[str, ...]
    comments: tuple[str, ...] = ()
    severity: Severity | None = None
    tags: tuple[str, ...] = ()


def written_suite(
    file: str, name: str, origin: str, assertions: Sequence[SuiteAssertion], closing: Iterable[str]
) -> tuple[SourceFile, Checked, dict[int, str]]:
    """A suite as text and as a tree, and the errors in it, by the number of the assertion at fault.

    It has one check for each model, and one for each combination of several datasets.

    :param file: the name of the suite in positions.
    :param origin: the comment at the top; `closing` are the comments at the end.
    """
    lines = [f"# {origin}", f"suite {show_text(name)} {{"]
    places: dict[int, int] = {}
    checks: dict[tuple[str, ...], list[int]] = {}
    for number, assertion in enumerate(assertions):
        checks.setdefault(assertion.datasets, []).append(number)
    taken = {IMPLICIT_CHECK}
    for datasets, numbers in checks.items():
        title = printable_line(" with ".join(datasets)) or "model"
        while title in taken:
            title += " (2)"
        taken.add(title)
        lines += [] if lines[-1].endswith("{") else [""]
        on = ", ".join(map(show_name, datasets))
        lines.append(f"{_INDENT}check {show_text(title)} on {on} {{")
        for number in numbers:
            lines += [] if lines[-1].endswith("{") else [""]
            start = len(lines)
            lines += (f"{_INDENT * 2}{line}" for line in _lines_of(assertions[number]))
            places |= dict.fromkeys(range(start + 1, len(lines) + 1), number)
        lines.append(f"{_INDENT}}}")
    if assertions:
        lines.append("}")
    else:
        lines[-1] += "}"
    comments = [f"# {line}" for line in closing]
    lines += ["", *comments] if comments else []
    source = SourceFile(file, "\n".join(lines) + "\n")
    checked = check_source(source)
    longest = max(places, key=lambda place: len(lines[place - 1]), default=None)
    wrong: dict[int, str] = {}
    for error in checked.errors:
        # An error of the file as a whole means that it is too large.
        at_fault = places.get(error.span.line, places[longest] if longest else None)
        if at_fault is not None:
            wrong.setdefault(at_fault, error.message)
    return source, checked, wrong


def _lines_of(assertion: SuiteAssertion) -> Iterator[str]:
    yield from (f"# {comment}" for comment in assertion.comments)
    yield f"assert {assertion.claim}"
    yield f"{_INDENT}name {show_text(assertion.name)}"
    if assertion.severity is not None:
        yield f"{_INDENT}severity {assertion.severity}"
    if assertion.tags:
        yield f"{_INDENT}tags [{', '.join(assertion.tags)}]"


def shortened(text: str, most: int) -> str:
    """A text on one line, cut after a maximum number of characters."""
    line = printable_line(text)
    return line if len(line) <= most else line[: most - 3].rstrip() + "..."


def _severity(source: Rule | Promise) -> Severity:
    return Severity(source.severity or DEFAULT_SEVERITY)


def _tags(contract: Contract, rule: Rule) -> Iterable[str]:
    dimension = [f"dimension-{rule.dimension}"] if rule.dimension else []
    tags = (_tag(text) for text in (contract.dialect.value, *dimension, *rule.tags))
    return dict.fromkeys(filter(None, tags))


def _tag(text: str) -> str:
    """A string as a tag; empty if none of its characters can be in a tag."""
    words = re.sub(r"[^a-zA-Z0-9_]+", "-", text).strip("-")
    return f"_{words}" if words[:1].isdigit() else words
