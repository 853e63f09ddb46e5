"""Finds mistakes of a contract before any data is read: contradictions, dates, clauses, examples.

Errors are mistakes that change the meaning of a contract: a broken reference, an example that
violates it. Warnings follow the practice of seed 003: a contract without an owner, or a column
without a meaning, is incomplete.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from itertools import combinations
from typing import Any, TypeAlias

from dqx_airflow.contracts import demands
from dqx_airflow.contracts import model as elements
from dqx_airflow.contracts.compile.ecma_regex import BrokenPatternError, java_pattern
from dqx_airflow.contracts.compile.rule_context import RuleContext
from dqx_airflow.contracts.compile.suite import compile_contract
from dqx_airflow.contracts.dialects import reader_of
from dqx_airflow.contracts.dialects.personal_data import looks_personal
from dqx_airflow.contracts.enforcement.broken_examples import broken_examples
from dqx_airflow.contracts.enforcement.contradictions import contradictions
from dqx_airflow.contracts.mistakes import mistake
from dqx_airflow.diagnostics.diagnostic import Diagnostic, Related, did_you_mean, nearest, slip_of
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.values import Span
from dqx_airflow.values.files import table_rows

_Place: TypeAlias = "tuple[str, str]"
"""A file, and a path in it."""


def _dates(contract: elements.Contract) -> Iterator[Diagnostic]:
    """The contradictions in the lifecycle of a contract."""
    yield from _BY_NAME["dates"].mistakes(contract)
    life = contract.lifecycle
    named = (
        ("effective date", life.effective_date),
        ("deprecation", life.deprecation_date),
        ("sunset", life.sunset_date),
    )
    days: dict[str, date] = {}
    for name, text in named:
        if (day := elements.day_of(text)) is not None:
            days[name] = day
    for earlier, later in combinations(days, 2):
        if days[earlier] > days[later]:
            span = _span_of(contract, days[later].isoformat())
            parts = {"later": later, "on": days[later], "earlier": earlier}
            yield mistake("dates_in_disorder", span, before=days[earlier], **parts)
    deprecated = days.get("deprecation")
    sunset = days.get("sunset")
    if deprecated is None or sunset is None or sunset < deprecated:
        return
    between = (sunset - deprecated).days
    periods = ((life.notice_days, "notice"), (life.dual_write_days, "dual writes"))
    for promised, period in periods:
        if promised is not None and promised > between:
            span = _span_of(contract, sunset.isoformat())
            parts = {"between": between, "promised": promised, "period": period}
            yield mistake("short_notice", span, **parts)


def _span_of(contract: elements.Contract, text: str) -> Span:
    """The position of a value of the lifecycle."""
    spans = (note.clause.span for note in contract.notes if note.clause.text.startswith(text))
    return next(spans, contract.span)


# Conditions on one number -------------------------------------------------------------------------


_SEMVER = re.compile(r"v?\d+\.\d+\.\d+([-+][\w.+-]+)?", re.ASCII)
_FORMAT = re.compile(r"^\s*v?\d+\s*$", re.ASCII)


@dataclass(frozen=True, slots=True)
class LintRule:
    """A lint rule: the name by which it is ignored, its code, its purpose, and the texts of its
    findings, if all of them have the same texts."""

    name: str
    code: str
    doc: str
    message: str = ""
    help: str = ""

    def find(self, contract: elements.Contract) -> Iterator[Diagnostic]:
        return _FINDERS[self.name](contract) if self.name in _FINDERS else self.mistakes(contract)

    def mistakes(self, contract: elements.Contract) -> Iterator[Diagnostic]:
        """The mistakes that the reader of the dialect found: one finding for each cause."""
        for note in _causes(note for note in contract.notes if note.code == self.code):
            named = f"{_parent(note)}: " if note.treatment is elements.Treatment.UNSUPPORTED else ""
            yield Diagnostic(f"{named}{note.reason}", note.clause.span, self.code, help=note.help)


RULES = tuple(LintRule(*row) for row in table_rows(__package__, "lint.txt", "rules"))
"""All rules, in the order of their findings."""
_BY_NAME = {rule.name: rule for rule in RULES}


def _finding(name: str, span: Span, *related: Related, **named: Any) -> Diagnostic:
    """A finding of a rule, with the values that its texts name."""
    rule = _BY_NAME[name]
    message = rule.message.format(**named)
    help_line = rule.help.format(**named)
    return Diagnostic(message, span, rule.code, related=related, help=help_line)


def lint(contract: elements.Contract, *, ignored: Collection[str] = ()) -> tuple[Diagnostic, ...]:
    """All findings of the rules, in the order of the document.

    :param ignored: names or codes of rules to ignore.
    """
    not_expressible = reader_of(contract.dialect).not_expressible
    diagnostics = [
        diagnostic
        for rule in RULES
        if rule.name not in {*ignored, *not_expressible} and rule.code not in ignored
        for diagnostic in rule.find(contract)
    ]
    diagnostics.sort(key=lambda item: (item.span.file, item.span.line, item.span.column))
    return tuple(dict.fromkeys(diagnostics))


def unknown_rules(names: Collection[str]) -> Iterator[tuple[str, str | None]]:
    """Unknown names of rules, each with the probably intended name."""
    known = [word for rule in RULES for word in (rule.name, rule.code)]
    for name in names:
        if name not in known:
            yield name, did_you_mean(name, [rule.name for rule in RULES])


def _causes(notes: Iterable[elements.Note]) -> Iterator[elements.Note]:
    """The first of the notes with the same text about the leaves of one rule."""
    seen: set[tuple[str, str, str]] = set()
    for note in notes:
        path = _parent(note)
        above = (path[:end] for end in range(len(path) + 1) if path[end : end + 1] in ("", "."))
        if not any((note.clause.span.file, part, note.reason) in seen for part in above):
            seen.add((note.clause.span.file, path, note.reason))
            yield note


def _parent(note: elements.Note) -> str:
    return note.clause.path.rpartition(".")[0]


def _spelling(contract: elements.Contract) -> Iterator[Diagnostic]:
    unread = _unread_places(contract)
    for key in contract.unknown_keys:
        if not key.is_check or (key.span.file, key.path) not in unread:
            hint = "remove it, or let the name of your own key begin with x-"
            hint = f"did you mean '{key.meant}'?" if key.meant else hint
            yield _finding("spelling", key.span, key=key.key, hint=hint)


def _constraints(contract: elements.Contract) -> Iterator[Diagnostic]:
    unread = _unread_places(contract)
    for key in contract.unknown_keys:
        is_accepted = contract.acceptance_of("", key.path) is not None
        if key.is_check and (key.span.file, key.path) in unread and not is_accepted:
            meant = f"write '{key.meant}'" if key.meant else "no key of the format states it here"
            yield _finding("constraints", key.span, key=key.key, meant=meant)


def _unread_places(contract: elements.Contract) -> Collection[_Place]:
    """The positions of unsupported clauses, and of the mappings and lists that enclose them. An
    unknown key at any other position is a spelling that the reader of the dialect accepts."""
    return {
        place
        for note in contract.notes
        if note.treatment is elements.Treatment.UNSUPPORTED
        for place in _places_above(note.clause)
    }


def _places_above(clause: elements.Clause) -> Iterator[_Place]:
    """The position of a clause, and the positions of the mappings and lists that enclose it."""
    path = clause.path
    yield clause.span.file, path
    for end, letter in enumerate(path):
        if letter in ".[":
            yield clause.span.file, path[:end]


def _enforceable(contract: elements.Contract) -> Iterator[Diagnostic]:
    """The clauses that state a check and are not enforced, except for those with another
    finding."""
    reported = {note.clause for note in contract.notes if note.code is not None}
    reported |= {clause for rule, _ in _broken_patterns(contract) for clause in rule.clauses}
    compiled = compile_contract(contract)
    for unenforced in compiled.unenforced:
        if unenforced.acceptance is not None:
            reported.update(unenforced.clauses)
    unknown = {(key.span.file, key.path) for key in contract.unknown_keys}
    notes = (
        note
        for note in (*contract.notes, *compiled.notes)
        if note.treatment is elements.Treatment.UNSUPPORTED
        and note.clause not in reported
        and unknown.isdisjoint(_places_above(note.clause))
    )
    for note in _causes(notes):
        message = f"{note.clause.path} is not checked: {note.reason}"
        yield Diagnostic(message, note.clause.span, "W020")


def _references(contract: elements.Contract) -> Iterator[Diagnostic]:
    yield from _BY_NAME["references"].mistakes(contract)
    columns = _Columns(contract, {model.name: _paths(model) for model in contract.models})
    for model, item, rule in contract.rules():
        for demand in _stated_in(rule.demand):
            stated = replace(rule, demand=demand)
            yield from columns.missing_targets(model, stated)
            yield from columns.missing_columns(model, item, stated)


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of the models of a contract; `paths` are their paths by the model."""

    contract: elements.Contract
    paths: Mapping[str, Collection[str]]

    def missing_targets(self, model: elements.Model, rule: elements.Rule) -> Iterator[Diagnostic]:
        """Reports the model and the columns that a rule refers to, if they do not exist."""
        demand = rule.demand
        if not isinstance(demand, demands.Refers):
            return
        span = _span_of_rule(rule, model)
        target = self.contract.model(demand.dataset)
        if target is not None:
            for column in demand.other_columns:
                yield from _no_field(target, self.paths[target.name], column, span)
            return
        near = nearest(demand.dataset, self.paths)
        if near is not None and "." not in demand.dataset:
            hint = f"did you mean '{near}'?"
            yield mistake("unknown_model", span, model=demand.dataset, hint=hint)

    def missing_columns(
        self, model: elements.Model, item: elements.Field | None, rule: elements.Rule
    ) -> Iterator[Diagnostic]:
        """Reports the columns of the model that a rule uses, if they do not exist."""
        paths = self.paths[model.name]
        # A query may read columns of the table that are not in the contract.
        is_query = isinstance(rule.demand, demands.QueryGives) and not model.is_closed
        for column in self._used_in(model, item, rule):
            for diagnostic in _no_field(model, paths, column, _span_of_rule(rule, model)):
                is_sure = not is_query or slip_of(column, paths) is not None
                yield diagnostic if is_sure else replace(diagnostic, is_mild=True)

    def _used_in(
        self, model: elements.Model, item: elements.Field | None, rule: elements.Rule
    ) -> Iterable[str]:
        """The columns that a rule uses; for SQL only the columns that do not exist."""
        if not isinstance(rule.demand, demands.QueryGives | demands.RowsSatisfy):
            return rule.demand.named_columns
        # sqlglot is imported for contracts with SQL.
        from dqx_airflow.contracts.enforcement.sql_columns import missing_columns

        way = (item,) if item is not None else ()
        return dict.fromkeys(missing_columns(RuleContext(self.contract, model, way, rule)))


def _span_of_rule(rule: elements.Rule, model: elements.Model) -> Span:
    return rule.clauses[0].span if rule.clauses else model.span


def _stated_in(demand: demands.Demand) -> tuple[demands.Demand, ...]:
    """The demand; for a demand on some of the rows, also the predicate that selects the rows."""
    if isinstance(demand, demands.AmongRows):
        return demands.RowsSatisfy(demand.where, demand.sql_dialect), demand.demand
    return (demand,)


def _paths(model: elements.Model) -> dict[str, None]:
    """The paths of all fields of a model, in order."""
    return dict.fromkeys(item.path for item in model.walk())


def _no_field(
    model: elements.Model, paths: Collection[str], column: str, span: Span
) -> Iterator[Diagnostic]:
    """Reports a column that is not a field of the model.

    :param paths: the paths of all fields of the model."""
    if paths and column not in paths and column not in model.partition_by:
        hint = did_you_mean(column, paths)
        yield mistake("unknown_field", span, model=model.name, field=column, hint=hint)


def _examples(contract: elements.Contract) -> Iterator[Diagnostic]:
    for broken in broken_examples(contract):
        clauses = broken.rule.clauses[:1] if broken.rule is not None else ()
        related = tuple(Related(clause.span, "rejected by this clause") for clause in clauses)
        help_line = f"correct the {broken.kind}, or the clause"
        yield Diagnostic(broken.what, broken.place, "E421", related=related, help=help_line)


def _semantics(contract: elements.Contract) -> Iterator[Diagnostic]:
    word = reader_of(contract.dialect).meaning_key
    for model in contract.models:
        for item in model.fields:
            if not (item.semantic or "").strip():
                yield _finding("semantics", item.span, item=item, model=model, word=word)


def _owner(contract: elements.Contract) -> Iterator[Diagnostic]:
    if not contract.owner and not contract.contacts:
        yield _finding("owner", contract.span, contract=contract)


def _version(contract: elements.Contract) -> Iterator[Diagnostic]:
    if not contract.version:
        yield _finding("version", contract.span, contract=contract)
    elif not _SEMVER.fullmatch(contract.version):
        message = f"the version {contract.version} is not of the form MAJOR.MINOR.PATCH"
        hint = f"{contract.version.strip()}.0.0" if _FORMAT.match(contract.version) else "1.0.0"
        yield Diagnostic(message, contract.span, "W032", help=f"write {hint}")


def _keys(contract: elements.Contract) -> Iterator[Diagnostic]:
    for model in contract.models:
        rules = [*model.rules, *(rule for item in model.walk() for rule in item.rules)]
        kinds = demands.Unique | demands.Distinct
        if model.fields and not any(isinstance(rule.demand, kinds) for rule in rules):
            yield _finding("keys", model.span, model=model)


def _quality(contract: elements.Contract) -> Iterator[Diagnostic]:
    if contract.models and not any(rule.demand.is_quality for _, _, rule in contract.rules()):
        yield _finding("quality", contract.span, contract=contract)


def _sensitive(contract: elements.Contract) -> Iterator[Diagnostic]:
    for model in contract.models:
        for item in model.walk():
            if looks_personal(item.name) and not item.is_sensitive:
                yield _finding("sensitive", item.span, item=item, model=model)


def _bounds(contract: elements.Contract) -> Iterator[Diagnostic]:
    for contradiction in contradictions(contract):
        first, *rest = [clause for rule in contradiction.rules for clause in rule.clauses[:1]]
        related = (Related(clause.span, "and this") for clause in rest)
        which = "one of them" if rest else "it"
        yield _finding("bounds", first.span, *related, what=contradiction.what, which=which)


def _patterns(contract: elements.Contract) -> Iterator[Diagnostic]:
    for rule, problem in _broken_patterns(contract):
        yield _finding("patterns", rule.clauses[0].span, problem=problem)


def _broken_patterns(contract: elements.Contract) -> Iterator[tuple[elements.Rule, str]]:
    for _, _, rule in contract.rules():
        pattern = getattr(rule.demand, "pattern", None)
        expression = getattr(rule.demand, "expression", None) or pattern
        if isinstance(expression, str) and rule.clauses:
            try:
                java_pattern(expression)
            except BrokenPatternError as error:
                yield rule, str(error)
            except NoCounterpartError:
                pass  # a pattern that Spark cannot match: coverage reports it


_KEY_OF_MODELS = {elements.Dialect.ODCS: "schema", elements.Dialect.DCS: "models"}


def _models(contract: elements.Contract) -> Iterator[Diagnostic]:
    if not contract.models:
        message = f"the contract {contract.id} has no models, so nothing can be checked"
        help_line = "add its tables with their fields"
        if (key := _KEY_OF_MODELS.get(contract.dialect)) is not None:
            help_line += f", below `{key}:`"
        yield Diagnostic(message, contract.span, "W036", help=help_line)
    for model in contract.models:
        if not model.fields:
            yield _finding("models", model.span, model=model)


def _elements(contract: elements.Contract) -> Iterator[Diagnostic]:
    missing = [name for name in reader_of(contract.dialect).elements if name not in contract.parts]
    if missing:
        yield _finding("elements", contract.span, contract=contract, missing=", ".join(missing))


_FINDERS: dict[str, Callable[[elements.Contract], Iterator[Diagnostic]]] = {
    "references": _references,
    "examples": _examples,
    "bounds": _bounds,
    "patterns": _patterns,
    "dates": _dates,
    "constraints": _constraints,
    "enforceable": _enforceable,
    "spelling": _spelling,
    "semantics": _semantics,
    "owner": _owner,
    "version": _version,
    "keys": _keys,
    "quality": _quality,
    "sensitive": _sensitive,
    "models": _models,
    "elements": _elements,
}
"""The functions that find violations of lint rules, by the name of the rule. Violations of other
rules are found by the reader of the dialect."""
