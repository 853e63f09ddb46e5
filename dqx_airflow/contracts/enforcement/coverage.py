"""The treatment of every clause of a contract: checked, documented, or unsupported and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from dqx_airflow.contracts.compile import Compiled
from dqx_airflow.contracts.model import Clause, Contract, Rule, Treatment
from dqx_airflow.values import Span


@dataclass(frozen=True, slots=True)
class ClauseCoverage:
    """A clause: its position, its treatment with the reason, and the assertions that enforce it.

    A list that a rule uses as a whole is one clause. A clause of several rules, as in a definition
    that several fields refer to, is checked if assertions enforce all of them that state a check.
    """

    path: str
    span: Span
    treatment: Treatment
    reason: str
    assertions: tuple[str, ...] = ()


def coverage(contract: Contract, compiled: Compiled) -> tuple[ClauseCoverage, ...]:
    """All clauses in the order of the document, each once, followed by those of other files."""
    coverages: dict[tuple[str, str], ClauseCoverage] = {}
    accepted = {
        _key(clause): refused.acceptance
        for refused in compiled.unenforced
        for clause in refused.clauses
        if refused.acceptance is not None
    }
    for note in (*contract.notes, *compiled.notes):
        clause, treatment, reason = note.clause, note.treatment, note.reason
        acceptance = accepted.get(_key(clause)) or contract.acceptance_of("", clause.path)
        if treatment is Treatment.UNSUPPORTED and acceptance is not None:
            treatment = Treatment.ACCEPTED
            reason = f"{reason}; accepted by {acceptance.owner}: {acceptance.reason}"
        coverages[_key(clause)] = ClauseCoverage(clause.path, clause.span, treatment, reason)
    unenforced = {_key(clause) for refused in compiled.unenforced for clause in refused.clauses}
    for key, (clause, assertions) in _enforced(compiled).items():
        # A definition that not all of its fields enforce.
        if key in unenforced and key in coverages:
            coverages[key] = replace(coverages[key], assertions=assertions)
        else:
            coverages[key] = ClauseCoverage(
                clause.path, clause.span, Treatment.CHECKED, "", assertions
            )
    files = dict.fromkeys((contract.span.file, *(file for file, _ in coverages)))
    order = {file: number for number, file in enumerate(files)}
    return tuple(
        sorted(
            coverages.values(),
            key=lambda item: (order[item.span.file], item.span.line, item.span.column),
        )
    )


def counts(clauses: Iterable[ClauseCoverage]) -> dict[Treatment, int]:
    """The number of clauses with each treatment, including zeros."""
    counted = Counter(clause.treatment for clause in clauses)
    return {treatment: counted[treatment] for treatment in Treatment}


def _enforced(compiled: Compiled) -> dict[tuple[str, str], tuple[Clause, tuple[str, ...]]]:
    """The enforced clauses, with their assertions."""
    enforced: dict[tuple[str, str], tuple[Clause, tuple[str, ...]]] = {}
    pairs: tuple[tuple[str, Rule], ...] = (*compiled.enforced, *compiled.included)
    for assertion, rule in pairs:
        for clause in rule.clauses:
            _, before = enforced.get(_key(clause), (clause, ()))
            enforced[_key(clause)] = clause, tuple(dict.fromkeys((*before, assertion)))
    return enforced


def _key(clause: Clause) -> tuple[str, str]:
    return clause.span.file, clause.path
