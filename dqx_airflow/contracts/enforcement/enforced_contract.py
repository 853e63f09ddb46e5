"""A contract as enforced by a gate: read, pinned, compiled, each assertion linked to its clause."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from dqx_airflow.contracts.compile import Compiled, Unenforced, compile_contract
from dqx_airflow.contracts.demands import Demand, OnlyColumns
from dqx_airflow.contracts.enforcement.coverage import ClauseCoverage, counts, coverage
from dqx_airflow.contracts.enforcement.dimensions import dimension_of
from dqx_airflow.contracts.enforcement.version_pins import lifecycle_status, objection_to_version
from dqx_airflow.contracts.model import Contract, Field, Model, Note, Promise, Rule, Treatment
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.contracts.source.references import FileReader, no_files
from dqx_airflow.diagnostics.diagnostic import Diagnostic, errors_of
from dqx_airflow.diagnostics.nearest import did_you_mean
from dqx_airflow.dql.check import check_source
from dqx_airflow.limits import LONGEST_KEPT_SOURCE
from dqx_airflow.plan.clauses import unenforced_line
from dqx_airflow.plan.dataset_needs import check_datasets
from dqx_airflow.values import (
    DatasetRef,
    EnforcedClause,
    EnforcedContract,
    SourceFile,
    Span,
    UnenforcedClause,
)

Unsupported: TypeAlias = Literal["error", "warn"]
"""The treatment of clauses that state a check and cannot be enforced."""

_MOST_NOT_UNDERSTOOD = 20


@dataclass(frozen=True, slots=True)
class Enforced:
    """The suite that enforces a contract over given datasets.

    `clauses` are all clauses of the document with their treatment, `objections` are requirements
    that the datasets do not meet.
    """

    suite: SourceFile
    contract: EnforcedContract
    clauses: tuple[ClauseCoverage, ...]
    objections: tuple[str, ...]

    @property
    def account(self) -> tuple[str, ...]:
        """What no assertion checks, one line each; first the clauses that state a check."""
        contract = self.contract
        return tuple(map(unenforced_line, contract.unenforced)) + contract.not_understood


@dataclass(frozen=True, slots=True)
class Enforcement:
    """A contract to be enforced, or why it must not be.

    `contract` is None if the document has errors. `refused` says why the contract cannot be relied
    on: another version than the pinned one, or a contract past its end. `warnings` are about its
    state too.
    """

    source: SourceFile
    contract: Contract | None
    refused: tuple[str, ...]
    warnings: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]
    sources: Mapping[str, str]
    pin: str | None = None

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return errors_of(self.diagnostics)

    def over(
        self,
        datasets: Sequence[DatasetRef],
        *,
        on: date | None = None,
        unsupported: Unsupported = "error",
    ) -> Enforced:
        """The suite over these datasets. Clauses that compare days need one with dates.

        :param on: the date of the data.
        :param unsupported: the treatment of clauses that state a check and cannot be enforced:
            "error", or "warn" to accept them.
        """
        contract = self.contract
        assert contract is not None
        compiled = compile_contract(contract, datasets, on=on)
        clauses = coverage(contract, compiled)
        document = _Document.of(contract, self.sources)
        counted = counts(clauses)
        enforced = EnforcedContract(
            contract.id,
            contract.version,
            contract.dialect.value,
            tuple(document.enforced(compiled)),
            checked=counted[Treatment.CHECKED],
            documented=counted[Treatment.DOCUMENTED],
            unsupported=counted[Treatment.UNSUPPORTED],
            sources=tuple(
                SourceFile(file, text)
                for file, text in self.sources.items()
                if len(text) <= LONGEST_KEPT_SOURCE
            ),
            pin=self.pin,
            unenforced=tuple(document.unenforced(compiled, unsupported)),
            accepted=counted[Treatment.ACCEPTED],
            responsible=contract.responsible,
            not_understood=_not_understood(clauses, compiled),
            name=contract.name,
            description=contract.description,
            status=contract.lifecycle.written_status or contract.lifecycle.status,
        )
        suite = SourceFile(f"{self.source.name} (compiled)", compiled.text)
        return Enforced(suite, enforced, clauses, _objections(suite, enforced, datasets))

    def of_models(self, models: Sequence[str]) -> Enforcement:
        """The same for some of the models."""
        assert self.contract is not None
        return replace(self, contract=_restricted(self.contract, models, is_strict=False))

    def closed(self) -> Enforcement:
        """The same, with columns that a model does not name as violations."""
        assert self.contract is not None
        return replace(self, contract=_restricted(self.contract, (), is_strict=True))

    def narrowed(self, model: str, is_kept: Callable[[Demand], bool]) -> Enforcement:
        """The same for one model, with only the rules whose demand is kept."""
        assert self.contract is not None
        models = (_with_rules(item, is_kept) for item in self.contract.models if item.name == model)
        notes = tuple(replace(note, promise=None) for note in self.contract.notes)
        return replace(self, contract=replace(self.contract, models=tuple(models), notes=notes))


def _not_understood(clauses: Iterable[ClauseCoverage], compiled: Compiled) -> tuple[str, ...]:
    """A line for each clause that is not checked and states no check."""
    unenforced = (clause for refused in compiled.unenforced for clause in refused.clauses)
    reported = {(clause.span.file, clause.path) for clause in unenforced}
    lines = [
        f"not checked: {clause.path}: {clause.reason}"
        for clause in clauses
        if clause.treatment is Treatment.UNSUPPORTED
        and (clause.span.file, clause.path) not in reported
    ]
    more = len(lines) - _MOST_NOT_UNDERSTOOD
    rest = (f"not checked: {more} more; see `dql contract coverage`",) if more > 0 else ()
    return (*lines[:_MOST_NOT_UNDERSTOOD], *rest)


@dataclass(frozen=True, slots=True)
class _Document:
    """The lines of a contract by file, and the model and the field of each rule by its `id`."""

    lines: Mapping[str, Sequence[str]]
    owners: Mapping[int, tuple[Model, Field | None]]

    @classmethod
    def of(cls, contract: Contract, sources: Mapping[str, str]) -> _Document:
        return cls(
            {file: text.split("\n") for file, text in sources.items()},
            {id(rule): (model, item) for model, item, rule in contract.rules()},
        )

    def enforced(self, compiled: Compiled) -> Iterator[EnforcedClause]:
        """The first clause of each rule with an assertion."""
        for name, rule in compiled.enforced:
            for clause in rule.clauses[:1]:
                line = self._line(clause.span)
                yield EnforcedClause(name, clause.path, clause.span, line, **self._about(rule))

    def unenforced(
        self, compiled: Compiled, unsupported: Unsupported
    ) -> Iterator[UnenforcedClause]:
        """The first clause of each check that no assertion makes."""
        for refused in compiled.unenforced:
            for clause in refused.clauses[:1]:
                yield UnenforcedClause(
                    refused.name,
                    clause.path,
                    clause.span,
                    self._line(clause.span),
                    refused.dataset,
                    refused.severity,
                    refused.reason,
                    _let_by(refused, unsupported),
                    refused.acceptance is not None,
                    **self._about(refused.source),
                )

    def _line(self, span: Span) -> str:
        return self.lines[span.file][span.line - 1]

    def _about(self, source: Rule | Promise | None) -> dict[str, Any]:
        """The properties of a rule, with the tags and ids of its field and model as written."""
        owners = [owner for owner in self.owners.get(id(source), ()) if owner is not None]
        tagged = [owner.tags for owner in (source, *owners) if owner is not None]
        return {
            "id": source.id if source else None,
            "tags": tuple(dict.fromkeys(tag for tags in tagged for tag in tags)),
            "dimension": dimension_of(source) if source else None,
            "element_ids": tuple(owner.id for owner in owners if owner.id is not None),
        }


def _let_by(unenforced: Unenforced, unsupported: Unsupported) -> str | None:
    """Who accepted a clause that is not enforced."""
    if (accepted := unenforced.acceptance) is not None:
        return f"{accepted.owner}: {accepted.reason}"
    return None if unsupported == "error" else f"unsupported={unsupported}"


def enforce(
    source: SourceFile,
    read: FileReader = no_files,
    *,
    on: date | None,
    expect_version: str | None = None,
    models: Sequence[str] = (),
    is_strict: bool = False,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Enforcement:
    """What can be enforced of the contract in a text.

    :param on: the date on which it is relied on; None skips the check of its end.
    :param expect_version: the pinned version: `2`, `2.3` or `2.3.0`.
    :param models: the models to enforce; all of them by default.
    :param is_strict: columns that a model does not name are violations for every model.
    :param variables: the values that the contract may know.
    """
    document = read_contract(source, read, variables=variables)
    contract = document.contract
    if contract is None or document.errors:
        return Enforcement(source, None, (), (), document.diagnostics, document.sources)
    refused: list[str] = []
    if expect_version is not None:
        refused += filter(None, [objection_to_version(contract, expect_version, models)])
    state = lifecycle_status(contract, on) if on is not None else None
    warnings = [state.message] if state is not None and not state.is_refused else []
    refused += [state.message] if state is not None and state.is_refused else []
    for name in models:
        if contract.model(name) is None:
            hint = did_you_mean(name, [model.name for model in contract.models])
            refused.append(f"{contract.id} has no model '{name}': {hint}")
    return Enforcement(
        source,
        _restricted(contract, models, is_strict=is_strict),
        tuple(refused),
        tuple(warnings),
        document.diagnostics,
        document.sources,
        expect_version,
    )


def _objections(
    suite: SourceFile, contract: EnforcedContract, datasets: Sequence[DatasetRef]
) -> tuple[str, ...]:
    """The requirements of a contract that the datasets of a gate do not meet."""
    checked = check_source(suite, needs_suite=True)
    if checked.suite is None or checked.errors:
        return tuple(f"{error.message} ({error.span.file})" for error in checked.errors)
    clauses = {clause.assertion: clause.path for clause in contract.clauses}
    named = [
        (assertion.span.line, clauses.get(assertion.name.value, ""))
        for check in checked.suite.checks
        for assertion in check.assertions
        if assertion.name is not None
    ]
    objections = []
    for diagnostic in check_datasets(checked.suite, datasets):
        paths = [path for line, path in named if line <= diagnostic.span.line and path]
        where = f"{paths[-1]}: " if paths else ""
        advice = "give it in `datasets`" if diagnostic.code == "E009" else diagnostic.help
        objections.append(f"{where}{diagnostic.message}; {advice}")
    return tuple(objections)


def _with_rules(model: Model, is_kept: Callable[[Demand], bool]) -> Model:
    def kept(rules: Iterable[Rule]) -> tuple[Rule, ...]:
        return tuple(rule for rule in rules if is_kept(rule.demand))

    fields = tuple(replace(item, rules=kept(item.rules)) for item in model.fields)
    return replace(model, fields=fields, rules=kept(model.rules))


def _restricted(contract: Contract, models: Sequence[str], *, is_strict: bool) -> Contract:
    """The contract with only these models, all of them closed if it is strict."""
    kept = [model for model in contract.models if not models or model.name in models]
    excluded = {model.name for model in contract.models} - {model.name for model in kept}
    if is_strict:
        kept = [model if _is_closed(model) else _closed(model) for model in kept]
    return replace(contract, models=tuple(kept), notes=tuple(_without(contract.notes, excluded)))


def _without(notes: Iterable[Note], models: Collection[str]) -> Iterator[Note]:
    """The notes without the promises of these models."""
    for note in notes:
        is_left_out = note.promise is not None and note.promise.model in models
        yield replace(note, promise=None) if is_left_out else note


def _is_closed(model: Model) -> bool:
    return any(isinstance(rule.demand, OnlyColumns) for rule in model.rules)


def _closed(model: Model) -> Model:
    only = Rule("only_columns", OnlyColumns(), ())
    return replace(model, rules=(*model.rules, only), is_closed=True)
