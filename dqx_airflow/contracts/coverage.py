"""What becomes of every clause of a contract: checked, documented, or unsupported and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from dqx_airflow.contracts.compile import Compiled
from dqx_airflow.contracts.dialects import reader_of
from dqx_airflow.contracts.model import Clause, Contract, Dialect, Rule, Treatment
from dqx_airflow.contracts.reading import UNKNOWN
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.values import Span

_SLIP = 0.8
"""So alike is a key to the one that was meant. Other keys are of no dialect, and no slips."""

_KEY = re.compile(r"(?<![\w[])[^.`\[\]]+")


@dataclass(frozen=True, slots=True)
class ClauseCoverage:
    """A clause: its place, what becomes of it, why, and the assertions that enforce it.

    A list that a rule takes as a whole is one clause.
    """

    path: str
    span: Span
    treatment: Treatment
    reason: str
    assertions: tuple[str, ...] = ()


def coverage(contract: Contract, compiled: Compiled) -> tuple[ClauseCoverage, ...]:
    """All clauses in the order of the document, each once. Those of other files come behind."""
    found: dict[tuple[str, str], ClauseCoverage] = {}
    for note in (*contract.notes, *compiled.notes):
        found[_key(note.clause)] = ClauseCoverage(
            note.clause.path, note.clause.span, note.treatment, note.reason
        )
    # A clause of several rules is checked if one of them is.
    for clause, assertions in _enforced(compiled).values():
        found[_key(clause)] = ClauseCoverage(
            clause.path, clause.span, Treatment.CHECKED, "", assertions
        )
    files = dict.fromkeys((contract.span.file, *(file for file, _ in found)))
    order = {file: number for number, file in enumerate(files)}
    return tuple(
        sorted(
            found.values(),
            key=lambda item: (order[item.span.file], item.span.line, item.span.column),
        )
    )


def counts(clauses: Iterable[ClauseCoverage]) -> dict[Treatment, int]:
    """How many clauses are treated how; all treatments are there."""
    counted = Counter(clause.treatment for clause in clauses)
    return {treatment: counted[treatment] for treatment in Treatment}


def unsupported(dialect: Dialect, clauses: Iterable[ClauseCoverage]) -> tuple[Diagnostic, ...]:
    """A warning for each clause that is not checked, though data could break it."""
    known = tuple(dict.fromkeys(_keys(reader_of(dialect).schema())))
    return tuple(
        _warning(clause, known) for clause in clauses if clause.treatment is Treatment.UNSUPPORTED
    )


def _warning(clause: ClauseCoverage, known: tuple[str, ...]) -> Diagnostic:
    if clause.reason != UNKNOWN:
        message = f"{clause.path} is not checked: {clause.reason}"
        return Diagnostic(message, clause.span, code="W020")
    key, near = _slip(clause.path, known)
    if near is None:
        message = f"{clause.path} is not checked: nothing is known about it"
        return Diagnostic(message, clause.span, code="W020")
    message = f"nothing is known about '{key}', and {clause.path} is not checked"
    return Diagnostic(message, clause.span, code="W021", help=f"did you mean '{near}'?")


def _slip(path: str, known: tuple[str, ...]) -> tuple[str, str | None]:
    """The key in a path that is nearly a known one, and that one; the last such."""
    for key in reversed(_KEY.findall(path)):
        if key in known:
            break
        if near := get_close_matches(key, known, n=1, cutoff=_SLIP):
            return key, near[0]
    return path, None


def _enforced(compiled: Compiled) -> dict[tuple[str, str], tuple[Clause, tuple[str, ...]]]:
    """The clauses that are enforced, with their assertions."""
    found: dict[tuple[str, str], tuple[Clause, tuple[str, ...]]] = {}
    pairs: tuple[tuple[str, Rule], ...] = (*compiled.enforced, *compiled.included)
    for assertion, rule in pairs:
        for clause in rule.clauses:
            _, before = found.get(_key(clause), (clause, ()))
            found[_key(clause)] = clause, tuple(dict.fromkeys((*before, assertion)))
    return found


def _key(clause: Clause) -> tuple[str, str]:
    return clause.span.file, clause.path


def _keys(schema: Any) -> Iterator[str]:
    """All keys that a JSON Schema knows, wherever they may stand."""
    if isinstance(schema, Mapping):
        properties = schema.get("properties")
        if isinstance(properties, Mapping):
            yield from properties
        for part in schema.values():
            yield from _keys(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _keys(part)
