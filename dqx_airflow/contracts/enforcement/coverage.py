"""The coverage of a contract: each clause with its treatment and its assertions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from dqx_airflow import values
from dqx_airflow.contracts import model as elements
from dqx_airflow.contracts.compile.suite import Compiled


@dataclass(frozen=True, slots=True)
class ClauseCoverage:
    """A clause: its position, its treatment with the reason, and the assertions that enforce it.

    A list that one rule uses is a single clause. A clause of several rules, as in a definition that
    several fields refer to, is checked if assertions enforce all of these rules that state a check.
    """

    path: str
    span: values.Span
    treatment: elements.Treatment
    reason: str
    assertions: tuple[str, ...] = ()


def coverage(contract: elements.Contract, compiled: Compiled) -> tuple[ClauseCoverage, ...]:
    """All clauses in the order of the document, each once, followed by clauses of other files."""
    coverages: dict[tuple[str, str], ClauseCoverage] = {}
    unenforced = unenforced_clauses(compiled)
    for note in (*contract.notes, *compiled.notes):
        clause = note.clause
        treatment = note.treatment
        reason = note.reason
        acceptance = unenforced.get(clause_key(clause)) or contract.acceptance_of("", clause.path)
        if treatment is elements.Treatment.UNSUPPORTED and acceptance is not None:
            treatment = elements.Treatment.ACCEPTED
            reason = f"{reason}; accepted by {acceptance.owner}: {acceptance.reason}"
        coverages[clause_key(clause)] = ClauseCoverage(clause.path, clause.span, treatment, reason)
    pairs: tuple[tuple[str, elements.Rule], ...] = (*compiled.enforced, *compiled.included)
    for assertion, clause in [(name, clause) for name, rule in pairs for clause in rule.clauses]:
        known = coverages.get(key := clause_key(clause))
        # A definition may be one that not all of its fields enforce.
        if known is None or not (known.assertions or key in unenforced):
            known = ClauseCoverage(clause.path, clause.span, elements.Treatment.CHECKED, "")
        assertions = tuple(dict.fromkeys((*known.assertions, assertion)))
        coverages[key] = replace(known, assertions=assertions)
    files = dict.fromkeys((contract.span.file, *(file for file, _ in coverages)))
    order = {file: number for number, file in enumerate(files)}

    def place_of(item: ClauseCoverage) -> tuple[int, int, int]:
        return order[item.span.file], item.span.line, item.span.column

    return tuple(sorted(coverages.values(), key=place_of))


def counts(clauses: Iterable[ClauseCoverage]) -> dict[elements.Treatment, int]:
    """The number of clauses with each treatment, including zeros."""
    counted = Counter(clause.treatment for clause in clauses)
    return {treatment: counted[treatment] for treatment in elements.Treatment}


def unenforced_clauses(compiled: Compiled) -> dict[tuple[str, str], elements.Acceptance | None]:
    """The clauses that state a check and are not enforced, with their acceptance."""
    refusals = sorted(compiled.unenforced, key=lambda refused: refused.acceptance is not None)
    return {
        clause_key(clause): refused.acceptance for refused in refusals for clause in refused.clauses
    }


def clause_key(clause: elements.Clause | ClauseCoverage) -> tuple[str, str]:
    return clause.span.file, clause.path
