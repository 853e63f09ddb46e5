"""A contract as a gate enforces it: its suite, and the clauses that no assertion enforces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from dqx_airflow import values
from dqx_airflow.contracts import model as elements
from dqx_airflow.contracts.compile.suite import Compiled, Unenforced, compile_contract
from dqx_airflow.contracts.demands import Demand, OnlyColumns
from dqx_airflow.contracts.enforcement.coverage import (
    ClauseCoverage,
    clause_key,
    counts,
    coverage,
    unenforced_clauses,
)
from dqx_airflow.contracts.enforcement.lifecycle import lifecycle_status
from dqx_airflow.contracts.enforcement.pins import objection_to_version
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.contracts.references import FileReader, no_files
from dqx_airflow.diagnostics.diagnostic import Diagnostic, did_you_mean, errors_of
from dqx_airflow.dql import nodes
from dqx_airflow.dql.check import Checked
from dqx_airflow.plan.clause_verdicts import unenforced_line
from dqx_airflow.plan.dataset_needs import check_datasets
from dqx_airflow.values.contracts import LONGEST_KEPT_SOURCE

if TYPE_CHECKING:
    pass


def dimension_of(rule: elements.Rule | elements.Promise) -> str | None:
    """The dimension in lower case; None if neither the rule nor its demand has one.

    >>> from dqx_airflow.contracts.demands import Required
    >>> dimension_of(elements.Rule("required", Required(), ()))
    'completeness'
    """
    if rule.dimension:
        return rule.dimension.lower()
    return rule.demand.dimension if isinstance(rule, elements.Rule) else None


Unsupported: TypeAlias = Literal["error", "warn"]
"""The treatment of clauses that state a check and cannot be enforced."""
_MOST_NOT_UNDERSTOOD = 20


@dataclass(frozen=True, slots=True)
class Enforced:
    """The suite that enforces a contract over given datasets.

    `checked` is the suite as a tree, `objections` are requirements that the datasets do not meet.
    """

    suite: values.SourceFile
    checked: Checked
    contract: values.EnforcedContract
    objections: tuple[str, ...]

    @property
    def account(self) -> tuple[str, ...]:
        """The clauses that no assertion checks, one line each; first clauses that state a check."""
        contract = self.contract
        return tuple(map(unenforced_line, contract.unenforced)) + contract.not_understood


@dataclass(frozen=True, slots=True)
class Enforcement:
    """A contract to be enforced, or the reasons why it must not be.

    `contract` is None if the document has errors. `refused` are the reasons why the contract cannot
    be relied on: another version than the pinned one, or a contract past its end. `warnings` are
    less severe objections to its state.
    """

    source: values.SourceFile
    contract: elements.Contract | None
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
        datasets: Sequence[values.DatasetRef],
        *,
        on: date | None = None,
        unsupported: Unsupported = "error",
    ) -> Enforced:
        """The suite over these datasets. Clauses that compare days need a dataset with dates.

        :param on: the date of the data.
        :param unsupported: the treatment of clauses that state a check and cannot be enforced:
            "error", or "warn" to accept them.
        """
        contract = self.contract
        assert contract is not None
        name = f"{self.source.name} (compiled)"
        compiled = compile_contract(contract, datasets, on=on, name=name)
        clauses = coverage(contract, compiled)
        document = _Document.of(contract, self.sources)
        enforced = values.EnforcedContract(
            contract.id,
            contract.version,
            contract.dialect.value,
            tuple(document.enforced(compiled)),
            sources=tuple(
                values.SourceFile(file, text)
                for file, text in self.sources.items()
                if len(text) <= LONGEST_KEPT_SOURCE
            ),
            pin=self.pin,
            unenforced=tuple(document.unenforced(compiled, unsupported)),
            responsible=contract.responsible,
            not_understood=_not_understood(clauses, compiled),
            name=contract.name,
            description=contract.description,
            status=contract.lifecycle.written_status or contract.lifecycle.status,
            **{treatment.value: number for treatment, number in counts(clauses).items()},
        )
        objections = _objections(compiled.checked.valid_suite, enforced, datasets)
        suite = values.SourceFile(name, compiled.text)
        return Enforced(suite, compiled.checked, enforced, objections)

    def of_models(self, models: Sequence[str], *, is_strict: bool = False) -> Enforcement:
        """The enforcement of some of the models; if it is strict, columns that the models do not
        list are violations."""
        assert self.contract is not None
        return replace(self, contract=_restricted(self.contract, models, is_strict=is_strict))

    def narrowed(self, is_kept: Callable[[Demand], bool]) -> Enforcement:
        """The enforcement of only the rules whose demand is kept."""
        assert self.contract is not None
        models = (model.narrowed(is_kept) for model in self.contract.models)
        notes = tuple(replace(note, promise=None) for note in self.contract.notes)
        return replace(self, contract=replace(self.contract, models=tuple(models), notes=notes))


def _not_understood(clauses: Iterable[ClauseCoverage], compiled: Compiled) -> tuple[str, ...]:
    """A line for each clause that is not checked and states no check."""
    reported = unenforced_clauses(compiled)
    lines = [
        f"not checked: {clause.path}: {clause.reason}"
        for clause in clauses
        if clause.treatment is elements.Treatment.UNSUPPORTED and clause_key(clause) not in reported
    ]
    more = len(lines) - _MOST_NOT_UNDERSTOOD
    rest = (f"not checked: {more} more; see `dql contract clauses`",) if more > 0 else ()
    return (*lines[:_MOST_NOT_UNDERSTOOD], *rest)


@dataclass(frozen=True, slots=True)
class _Document:
    """The lines of a contract by file, and the model and the field of each rule by its `id`."""

    lines: Mapping[str, Sequence[str]]
    owners: Mapping[int, tuple[elements.Model, elements.Field | None]]

    @classmethod
    def of(cls, contract: elements.Contract, sources: Mapping[str, str]) -> _Document:
        return cls(
            {file: text.split("\n") for file, text in sources.items()},
            {id(rule): (model, item) for model, item, rule in contract.rules()},
        )

    def enforced(self, compiled: Compiled) -> Iterator[values.EnforcedClause]:
        """The first clause of each rule with an assertion."""
        for name, rule in compiled.enforced:
            for clause in rule.clauses[:1]:
                yield values.EnforcedClause(name, **self._about(clause, rule))

    def unenforced(
        self, compiled: Compiled, unsupported: Unsupported
    ) -> Iterator[values.UnenforcedClause]:
        """The first clause of each check that no assertion makes."""
        for refused in compiled.unenforced:
            for clause in refused.clauses[:1]:
                yield values.UnenforcedClause(
                    refused.name,
                    dataset=refused.dataset,
                    severity=refused.severity,
                    reason=refused.reason,
                    let_by=_let_by(refused, unsupported),
                    is_accepted=refused.acceptance is not None,
                    **self._about(clause, refused.source),
                )

    def _about(
        self, clause: elements.Clause, source: elements.Rule | elements.Promise | None
    ) -> dict[str, Any]:
        """The position of a clause, and the properties of its rule, with the tags and ids of its
        field and model as written."""
        owners = [owner for owner in self.owners.get(id(source), ()) if owner is not None]
        tagged = [owner.tags for owner in (source, *owners) if owner is not None]
        return {
            "path": clause.path,
            "span": clause.span,
            "line": self.lines[clause.span.file][clause.span.line - 1],
            "id": source.id if source else None,
            "tags": tuple(dict.fromkeys(tag for tags in tagged for tag in tags)),
            "dimension": dimension_of(source) if source else None,
            "element_ids": tuple(owner.id for owner in owners if owner.id is not None),
        }


def _let_by(unenforced: Unenforced, unsupported: Unsupported) -> str | None:
    """The owner of the acceptance of a clause that is not enforced; None if it is not accepted."""
    if (accepted := unenforced.acceptance) is not None:
        return f"{accepted.owner}: {accepted.reason}"
    return None if unsupported == "error" else f"unsupported={unsupported}"


def enforce(
    source: values.SourceFile,
    read: FileReader = no_files,
    *,
    on: date | None,
    expect_version: str | None = None,
    models: Sequence[str] = (),
    is_strict: bool = False,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Enforcement:
    """Reads a contract, and determines whether it can be enforced.

    :param on: the date on which the contract is relied on; None skips the check of its end.
    :param expect_version: the pinned version: `2`, `2.3` or `2.3.0`.
    :param models: the models to enforce; all of them by default.
    :param is_strict: columns that a model does not list are violations for every model.
    :param variables: the values of the variables in the contract.
    """
    document = read_contract(source, read, variables=variables)
    contract = document.contract
    if contract is None or document.errors:
        return Enforcement(source, None, (), (), document.diagnostics, document.sources)
    refused: list[str] = []
    warnings: list[str] = []
    if expect_version is not None:
        refused += filter(None, [objection_to_version(contract, expect_version, models)])
    if on is not None and (state := lifecycle_status(contract, on)) is not None:
        (refused if state.is_refused else warnings).append(state.message)
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
    suite: nodes.Suite, contract: values.EnforcedContract, datasets: Sequence[values.DatasetRef]
) -> tuple[str, ...]:
    """The requirements of a contract that the datasets of a gate do not meet."""
    found = check_datasets(suite, datasets)
    if not found:
        return ()
    clauses = {clause.assertion: clause.path for clause in contract.clauses}
    named = [
        (assertion.span.line, clauses.get(assertion.name.value, ""))
        for check in suite.checks
        for assertion in check.assertions
        if assertion.name is not None
    ]
    objections = []
    for diagnostic in found:
        paths = [path for line, path in named if line <= diagnostic.span.line and path]
        where = f"{paths[-1]}: " if paths else ""
        advice = "give it in `datasets`" if diagnostic.code == "E009" else diagnostic.help
        objections.append(f"{where}{diagnostic.message}; {advice}")
    return tuple(objections)


def _restricted(
    contract: elements.Contract, models: Sequence[str], *, is_strict: bool
) -> elements.Contract:
    """The contract with only these models and promises, all of them closed if it is strict.

    :param models: all of them if it is empty.
    """
    if models:
        kept = tuple(model for model in contract.models if model.name in models)
        excluded = {model.name for model in contract.models if model.name not in models}
        notes = (
            replace(note, promise=None) if note.promise and note.promise.model in excluded else note
            for note in contract.notes
        )
        contract = replace(contract, models=kept, notes=tuple(notes))
    if is_strict:
        contract = replace(contract, models=tuple(map(_closed, contract.models)))
    return contract


def _closed(model: elements.Model) -> elements.Model:
    if any(isinstance(rule.demand, OnlyColumns) for rule in model.rules):
        return model
    only = elements.Rule("only_columns", OnlyColumns(), ())
    return replace(model, rules=(*model.rules, only), is_closed=True)
