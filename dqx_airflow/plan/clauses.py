"""Verdicts on a compiled contract: each named after the clause that it enforces."""

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


def with_clauses(
    verdicts: Iterable[Verdict], contract: EnforcedContract | None
) -> tuple[Verdict, ...]:
    """The verdicts, with the paths and positions of their clauses in a contract."""
    if contract is None:
        return tuple(verdicts)
    clauses = {clause.assertion: clause for clause in contract.clauses}
    return tuple(_of_clause(verdict, clauses.get(verdict.name)) for verdict in verdicts)


def verdicts_on_tables(
    contract: EnforcedContract | None, published: Mapping[str, tuple[str, str | None]]
) -> tuple[Verdict, ...]:
    """Whether tables that name this contract in their properties name this very version of it.

    A table that names another version was written under another promise. That is a warning, since
    its data may satisfy the contract all the same.

    :param published: the id and version that tables name, by dataset.
    """
    if contract is None:
        return ()
    return tuple(
        Verdict(
            name=f"{dataset}.contract_version",
            check=IMPLICIT_CHECK,
            datasets=(dataset,),
            expression="the contract version of the table",
            expected=f"== {contract.version}",
            severity=Severity.P2,
            status=Status.PASSED if version == contract.version else Status.FAILED,
            value=version,
            scaled_value=version,
            threshold=contract.version,
            reason=None
            if version == contract.version
            else f"the table declares version {version} of {contract_id}",
        )
        for dataset, (contract_id, version) in published.items()
        if contract_id == contract.id
    )


def unenforced_verdicts(contract: EnforcedContract | None) -> tuple[Verdict, ...]:
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
        for clause in (contract.unenforced if contract else ())
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


def _of_clause(verdict: Verdict, clause: EnforcedClause | None) -> Verdict:
    if clause is None:
        return verdict
    return replace(verdict, clause=clause.path, span=clause.span, source_line=clause.line)
