"""A contract as a gate enforces it: read, pinned, compiled, each assertion tied to its clause."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from dqx_airflow.contracts.compile import compile_contract
from dqx_airflow.contracts.coverage import ClauseCoverage, counts, coverage
from dqx_airflow.contracts.model import Contract, Demand, Model, OnlyColumns, Rule, Treatment
from dqx_airflow.contracts.pins import objection_to_version, standing
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.contracts.references import FileReader, no_files
from dqx_airflow.diagnostics.diagnostic import Diagnostic, Level
from dqx_airflow.diagnostics.nearest import did_you_mean
from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.nodes import DEFAULT_SEVERITY
from dqx_airflow.limits import LONGEST_KEPT_SOURCE
from dqx_airflow.plan.resolve import check_datasets
from dqx_airflow.values import (
    DatasetRef,
    EnforcedClause,
    EnforcedContract,
    Severity,
    SourceFile,
    UnjudgedClause,
)


@dataclass(frozen=True, slots=True)
class Enforced:
    """The suite that enforces a contract over given datasets.

    `clauses` are all clauses of the document with what became of them, `objections` tell what they
    ask of the datasets and do not get.
    """

    suite: SourceFile
    contract: EnforcedContract
    clauses: tuple[ClauseCoverage, ...]
    objections: tuple[str, ...]

    @property
    def unchecked(self) -> tuple[ClauseCoverage, ...]:
        """The clauses that would have to be checked, and are not."""
        return tuple(item for item in self.clauses if item.treatment is Treatment.UNSUPPORTED)


@dataclass(frozen=True, slots=True)
class Enforcement:
    """A contract that is to be enforced, or why it must not.

    `contract` is None where the document has errors. `refused` tells why the contract may not be
    relied on: another version than the one that is pinned, or a contract past its end. `warnings`
    are about its state too.
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
        return tuple(found for found in self.diagnostics if found.level is Level.ERROR)

    def over(self, datasets: Sequence[DatasetRef]) -> Enforced:
        """The suite over these datasets. Clauses that compare days need one with dates."""
        contract = self.contract
        assert contract is not None
        compiled = compile_contract(contract, datasets)
        clauses = coverage(contract, compiled)
        lines = {file: text.split("\n") for file, text in self.sources.items()}
        counted = counts(clauses)
        enforced = EnforcedContract(
            contract.id,
            contract.version,
            contract.dialect.value,
            tuple(
                EnforcedClause(
                    name, clause.path, clause.span, lines[clause.span.file][clause.span.line - 1]
                )
                for name, rule in compiled.enforced
                for clause in rule.clauses[:1]
            ),
            checked=counted[Treatment.CHECKED],
            documented=counted[Treatment.DOCUMENTED],
            unsupported=counted[Treatment.UNSUPPORTED],
            sources=tuple(
                SourceFile(file, text)
                for file, text in self.sources.items()
                if len(text) <= LONGEST_KEPT_SOURCE
            ),
            pin=self.pin,
            unjudged=tuple(
                UnjudgedClause(
                    left.name,
                    clause.path,
                    clause.span,
                    lines[clause.span.file][clause.span.line - 1],
                    left.dataset,
                    Severity(left.rule.severity or DEFAULT_SEVERITY),
                    left.reason,
                )
                for left in compiled.unjudged
                for clause in left.rule.clauses[:1]
            ),
        )
        suite = SourceFile(f"{self.source.name} (compiled)", compiled.text)
        return Enforced(suite, enforced, clauses, _objections(suite, enforced, datasets))

    def closed(self) -> Enforcement:
        """The same, with columns that a model does not name as violations."""
        assert self.contract is not None
        return replace(self, contract=_restricted(self.contract, (), is_strict=True))

    def narrowed(self, model: str, is_kept: Callable[[Demand], bool]) -> Enforcement:
        """The same of one model, and of those of its rules whose demand is kept."""
        assert self.contract is not None
        models = (_with_rules(item, is_kept) for item in self.contract.models if item.name == model)
        return replace(self, contract=replace(self.contract, models=tuple(models)))


def enforce(
    source: SourceFile,
    read: FileReader = no_files,
    *,
    on: date,
    expect_version: str | None = None,
    models: Sequence[str] = (),
    is_strict: bool = False,
) -> Enforcement:
    """What there is to enforce of the contract that a text holds.

    :param on: the day on which it is relied on.
    :param expect_version: the version that is pinned: `2`, `2.3` or `2.3.0`.
    :param models: the models that are enforced; all of them by default.
    :param is_strict: columns that a model does not name are violations for every model.
    """
    document = read_contract(source, read)
    contract = document.contract
    if contract is None or document.errors:
        return Enforcement(source, None, (), (), document.diagnostics, document.sources)
    refused: list[str] = []
    if expect_version is not None:
        refused += filter(None, [objection_to_version(contract, expect_version)])
    state = standing(contract, on)
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
    """What the clauses of a contract ask of the datasets of a gate, and do not get."""
    checked = check_source(suite, needs_suite=True)
    if checked.suite is None or checked.errors:
        return tuple(f"{item.message} ({item.span.file})" for item in checked.errors)
    clauses = {item.assertion: item.path for item in contract.clauses}
    named = [
        (item.span.line, clauses.get(item.name.value, ""))
        for check in checked.suite.checks
        for item in check.assertions
        if item.name is not None
    ]
    told = []
    for found in check_datasets(checked.suite, datasets):
        paths = [path for line, path in named if line <= found.span.line and path]
        where = f"{paths[-1]}: " if paths else ""
        advice = "give it in `datasets`" if found.code == "E009" else found.help
        told.append(f"{where}{found.message}; {advice}")
    return tuple(told)


def _with_rules(model: Model, is_kept: Callable[[Demand], bool]) -> Model:
    def kept(rules: Iterable[Rule]) -> tuple[Rule, ...]:
        return tuple(rule for rule in rules if is_kept(rule.demand))

    fields = tuple(replace(item, rules=kept(item.rules)) for item in model.fields)
    return replace(model, fields=fields, rules=kept(model.rules))


def _restricted(contract: Contract, models: Sequence[str], *, is_strict: bool) -> Contract:
    """The contract with these models alone, all of them closed where it is strict."""
    kept = [model for model in contract.models if not models or model.name in models]
    if is_strict:
        kept = [model if _is_closed(model) else _closed(model) for model in kept]
    return replace(contract, models=tuple(kept))


def _is_closed(model: Model) -> bool:
    return any(isinstance(rule.demand, OnlyColumns) for rule in model.rules)


def _closed(model: Model) -> Model:
    only = Rule("only_columns", OnlyColumns(), ())
    return replace(model, rules=(*model.rules, only), is_closed=True)
