"""Verdicts on a contract: on clauses that assertions enforce, on clauses that nothing enforces, and
on the version that a table declares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from dqx_airflow.dql.checks.suite import IMPLICIT_CHECK
from dqx_airflow.values import (
    EnforcedClause,
    EnforcedContract,
    Severity,
    Status,
    UnenforcedClause,
    Verdict,
)


def with_clauses(verdicts: Iterable[Verdict], contract: EnforcedContract) -> tuple[Verdict, ...]:
    """The verdicts, with the paths and positions of their clauses in a contract; then the verdicts
    on clauses that no assertion checks."""
    clauses = {clause.assertion: clause for clause in contract.clauses}
    on_clauses = (_with_clause(verdict, clauses.get(verdict.name)) for verdict in verdicts)
    return (*on_clauses, *unenforced_verdicts(contract))


def _with_clause(verdict: Verdict, clause: EnforcedClause | None) -> Verdict:
    if clause is None:
        return verdict
    return replace(verdict, clause=clause.path, span=clause.span, source_line=clause.line)


def verdicts_on_tables(
    contract: EnforcedContract, published: Mapping[str, tuple[str, str | None]]
) -> tuple[Verdict, ...]:
    """The verdicts on tables whose properties refer to this contract: is it the same version?

    A table that refers to another version was written under another promise. That is a warning,
    since its data may satisfy the contract all the same.

    :param published: the id and version in the properties of tables, by dataset.
    """
    return tuple(
        _verdict_on_table(contract, dataset, version)
        for dataset, (contract_id, version) in published.items()
        if contract_id == contract.id
    )


def _verdict_on_table(contract: EnforcedContract, dataset: str, version: str | None) -> Verdict:
    status = Status.PASSED
    reason = None
    if version != contract.version:
        status = Status.FAILED
        reason = f"the table declares version {version} of {contract.id}"
    return Verdict(
        name=f"{dataset}.contract_version",
        check=IMPLICIT_CHECK,
        datasets=(dataset,),
        expression="the contract version of the table",
        expected=f"== {contract.version}",
        severity=Severity.P2,
        status=status,
        value=version,
        scaled_value=version,
        threshold=contract.version,
        reason=reason,
    )


def unenforced_verdicts(contract: EnforcedContract) -> tuple[Verdict, ...]:
    """The verdicts on clauses that state a check and cannot be enforced: errors, or skipped if the
    contract accepts that. A promise that is not checked is not kept."""
    return tuple(
        Verdict(
            name=clause.assertion,
            check=clause.dataset,
            datasets=(clause.dataset,),
            expression=clause.path,
            expected="an enforceable clause",
            severity=clause.severity,
            status=Status.SKIPPED if clause.is_accepted else Status.ERROR,
            reason=_reason(clause),
            span=clause.span,
            source_line=clause.line,
            clause=clause.path,
            let_by=clause.let_by,
        )
        for clause in contract.unenforced
    )


def unenforced_line(clause: UnenforcedClause) -> str:
    """One line about a clause that is not enforced: its path, its severity, and the reason."""
    treatment = "accepted" if clause.is_accepted else "not checked"
    return f"{treatment}: {clause.path} ({clause.severity.value}): {_reason(clause)}"


def _reason(clause: UnenforcedClause) -> str:
    if clause.let_by is None:
        return clause.reason
    verb = "accepted" if clause.is_accepted else "let through"
    return f"{clause.reason} ({verb} by {clause.let_by})"
