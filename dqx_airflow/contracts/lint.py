"""What a contract should have and has not: ONE entry a rule, each of which can be left out.

Errors keep a contract from saying what it means: a reference that leads nowhere, an example that it
would turn down. The others are the practice of seed 003: a contract without an owner, or a column
without a meaning, is half a contract.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from dqx_airflow.contracts.examples import broken_examples
from dqx_airflow.contracts.model import (
    Complete,
    Contract,
    Demand,
    Dialect,
    Distinct,
    Fresh,
    Measured,
    Model,
    Prompt,
    QueryGives,
    Refers,
    Retained,
    RowsSatisfy,
    Unique,
    Volume,
)
from dqx_airflow.contracts.sensitivity import looks_personal
from dqx_airflow.diagnostics.diagnostic import Diagnostic, Related
from dqx_airflow.diagnostics.nearest import did_you_mean, nearest
from dqx_airflow.values import Span

_SEMVER = re.compile(r"v?\d+\.\d+\.\d+([-+][\w.+-]+)?", re.ASCII)
_FORMAT = re.compile(r"^\s*v?\d+\s*$", re.ASCII)

_QUALITY = (Complete, Distinct, Fresh, Measured, Prompt, QueryGives, RowsSatisfy, Volume)


@dataclass(frozen=True, slots=True)
class LintRule:
    """A rule: the name by which it is left out, its code, what it is for, and what it finds."""

    name: str
    code: str
    doc: str
    find: Callable[[Contract], Iterator[Diagnostic]]


def lint(contract: Contract, *, ignored: Collection[str] = ()) -> tuple[Diagnostic, ...]:
    """All that the rules find, in the order of the document.

    :param ignored: names or codes of rules that do not count.
    """
    found = [
        diagnostic
        for rule in RULES
        if rule.name not in ignored and rule.code not in ignored
        for diagnostic in rule.find(contract)
    ]
    found.sort(key=lambda item: (item.span.file, item.span.line, item.span.column))
    return tuple(dict.fromkeys(found))


def unknown_rules(names: Collection[str]) -> Iterator[tuple[str, str | None]]:
    """Names that are of no rule, each with what was probably meant."""
    known = [word for rule in RULES for word in (rule.name, rule.code)]
    for name in names:
        if name not in known:
            yield name, did_you_mean(name, [rule.name for rule in RULES])


def _references(contract: Contract) -> Iterator[Diagnostic]:
    models = {model.name: model for model in contract.models}
    for model, _, rule in contract.rules():
        demand = rule.demand
        if isinstance(demand, Refers):
            span = rule.clauses[0].span if rule.clauses else model.span
            target = models.get(demand.dataset)
            if target is None:
                near = nearest(demand.dataset, models)
                if near is not None and "." not in demand.dataset:
                    message = f"there is no model '{demand.dataset}'"
                    yield Diagnostic(message, span, "E420", help=f"did you mean '{near}'?")
                continue
            for column in demand.other_columns:
                yield from _no_field(target, column, span)
        else:
            span = rule.clauses[0].span if rule.clauses else model.span
            for column in _columns_of(demand):
                yield from _no_field(model, column, span)


def _no_field(model: Model, column: str, span: Span) -> Iterator[Diagnostic]:
    paths = [item.path for item in model.walk()]
    if paths and column not in paths:
        message = f"'{model.name}' has no field '{column}'"
        yield Diagnostic(message, span, "E420", help=did_you_mean(column, paths))


def _columns_of(demand: Demand) -> tuple[str, ...]:
    match demand:
        case Unique(columns=columns) | Distinct(columns=columns):
            return columns
        case Fresh(column=None):
            return ()
        case Complete(column=str(column)) | Fresh(column=str(column)) | Retained(column=column):
            return (column,)
        case Prompt(source=source, processed=processed):
            return source, processed
    return ()


def _examples(contract: Contract) -> Iterator[Diagnostic]:
    for broken in broken_examples(contract):
        if broken.rule is None:
            message = f"the example {broken.value} of {broken.path} is no value of its type"
            yield Diagnostic(message, broken.place, "E421", help="correct the example, or the type")
            continue
        clauses = broken.rule.clauses[:1]
        related = tuple(Related(clause.span, "by this clause") for clause in clauses)
        what = "example rows" if broken.value is None else f"example {broken.value}"
        verb = "are" if broken.value is None else "is"
        message = f"the {what} of {broken.path} {verb} turned down"
        help_line = "correct the example, or the clause"
        yield Diagnostic(message, broken.place, "E421", related=related, help=help_line)


def _semantics(contract: Contract) -> Iterator[Diagnostic]:
    word = "semantic" if contract.dialect is Dialect.FABRIC else "description"
    for model in contract.models:
        for item in model.fields:
            if not (item.semantic or "").strip():
                message = f"the field '{item.path}' of '{model.name}' has no {word}"
                help_line = f"write `{word}:`, what its values mean: a type does not say it"
                yield Diagnostic(message, item.span, "W030", help=help_line)


def _owner(contract: Contract) -> Iterator[Diagnostic]:
    if not contract.owner and not contract.contacts:
        message = f"the contract {contract.id} has no owner"
        help_line = "name the team that keeps it: somebody has to be asked"
        yield Diagnostic(message, contract.span, "W031", help=help_line)


def _version(contract: Contract) -> Iterator[Diagnostic]:
    if contract.dialect is Dialect.DATALEX:
        return
    if not contract.version:
        message = f"the contract {contract.id} has no version"
        help_line = "write one, such as 1.0.0: nobody can pin what has none"
        yield Diagnostic(message, contract.span, "W032", help=help_line)
    elif not _SEMVER.fullmatch(contract.version):
        message = f"the version {contract.version} is not of the form MAJOR.MINOR.PATCH"
        hint = f"{contract.version.strip()}.0.0" if _FORMAT.match(contract.version) else "1.0.0"
        yield Diagnostic(message, contract.span, "W032", help=f"write {hint}")


def _keys(contract: Contract) -> Iterator[Diagnostic]:
    for model in contract.models:
        demands = [rule.demand for item in model.walk() for rule in item.rules]
        demands += [rule.demand for rule in model.rules]
        if model.fields and not any(isinstance(item, Unique | Distinct) for item in demands):
            message = f"nothing says what tells the rows of '{model.name}' apart"
            help_line = "name a primary key, or a column that is unique"
            yield Diagnostic(message, model.span, "W033", help=help_line)


def _quality(contract: Contract) -> Iterator[Diagnostic]:
    demands = [rule.demand for _, _, rule in contract.rules()]
    if contract.models and not any(isinstance(item, _QUALITY) for item in demands):
        message = f"the contract {contract.id} promises a schema alone"
        help_line = "promise freshness, completeness or volume too: a stale table has a schema"
        yield Diagnostic(message, contract.span, "W034", help=help_line)


def _sensitive(contract: Contract) -> Iterator[Diagnostic]:
    for model in contract.models:
        for item in model.walk():
            if looks_personal(item.name) and not item.is_sensitive:
                message = f"'{item.path}' of '{model.name}' looks like data about a person"
                help_line = "mark it (pii, classification), so that its values stay hidden"
                yield Diagnostic(message, item.span, "W035", help=help_line)


RULES: tuple[LintRule, ...] = (
    LintRule("references", "E420", "References lead to fields that exist.", _references),
    LintRule("examples", "E421", "Examples keep the contract.", _examples),
    LintRule("semantics", "W030", "Every field says what it means.", _semantics),
    LintRule("owner", "W031", "Somebody owns the contract.", _owner),
    LintRule("version", "W032", "The contract has a version that can be pinned.", _version),
    LintRule("keys", "W033", "Something tells the rows of a model apart.", _keys),
    LintRule("quality", "W034", "The contract promises more than a schema.", _quality),
    LintRule("sensitive", "W035", "Data about people is marked.", _sensitive),
)
"""All rules, in the order in which they are told about."""
