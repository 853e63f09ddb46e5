"""What a gate has to know about the contract of a dataset."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dqx_airflow.values.outcomes import Severity
from dqx_airflow.values.sources import SourceFile, Span


@dataclass(frozen=True, slots=True)
class EnforcedClause:
    """The clause of a contract that an assertion enforces: its path, position and line; from its
    rule, the id and the tags as written, and the quality dimension. `element_ids` are those of the
    field and the model that it is about."""

    assertion: str
    path: str
    span: Span
    line: str
    id: str | None = None
    tags: tuple[str, ...] = ()
    dimension: str | None = None
    element_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnenforcedClause:
    """A clause of a contract that states a check and cannot be enforced: the name of its assertion,
    its path, position and line, its dataset, and the reason. `let_by` names who accepted it, and
    `is_accepted` is set if that is in the contract. The other fields are those of `EnforcedClause`.
    """

    assertion: str
    path: str
    span: Span
    line: str
    dataset: str
    severity: Severity
    reason: str
    let_by: str | None = None
    is_accepted: bool = False
    id: str | None = None
    tags: tuple[str, ...] = ()
    dimension: str | None = None
    element_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Responsible:
    """Who is responsible for a contract, and what to do in an incident."""

    owner: str | None = None
    contacts: tuple[str, ...] = ()
    channel: str | None = None
    runbook: str | None = None
    incident_response: str | None = None
    business_hours: str | None = None

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """The known facts, each with its label."""
        named = (
            ("owner", self.owner),
            ("contacts", ", ".join(self.contacts) or None),
            ("channel", self.channel),
            ("incident response", self.incident_response),
            ("runbook", self.runbook),
            ("business hours", self.business_hours),
        )
        return tuple((name, text) for name, text in named if text)


@dataclass(frozen=True, slots=True)
class EnforcedContract:
    """The contract that a suite was compiled from.

    `clauses` map each assertion to the clause that it enforces. `documented` and `unsupported` are
    the numbers of clauses of the document that no assertion enforces, `accepted` how many of the
    latter the contract accepts. `sources` are its files. `pin` is the version that the gate relies
    on (`2`, `2.3` or `2.3.0`), None for any. `unenforced` are the clauses that state a check and
    cannot be enforced: their verdicts are errors unless they are accepted. `not_understood` are
    clauses that have no meaning here and state no check. `name`, `description` and `status`
    (`active`) are those of the document.
    """

    id: str
    version: str | None
    dialect: str
    clauses: tuple[EnforcedClause, ...] = ()
    checked: int = 0
    documented: int = 0
    unsupported: int = 0
    sources: tuple[SourceFile, ...] = ()
    pin: str | None = None
    unenforced: tuple[UnenforcedClause, ...] = ()
    accepted: int = 0
    responsible: Responsible | None = None
    not_understood: tuple[str, ...] = ()
    name: str | None = None
    description: str | None = None
    status: str | None = None

    @property
    def in_report(self) -> EnforcedContract:
        """The part for a report: without what the verdicts and the digests of its files contain."""
        return replace(self, clauses=(), sources=(), unenforced=())


@dataclass(frozen=True, slots=True)
class FieldSource:
    """A source field from which a field is derived, in the terms of OpenLineage."""

    namespace: str
    name: str
    field: str
    type: str | None = None
    subtype: str | None = None
    description: str | None = None
    masking: bool = False


@dataclass(frozen=True, slots=True)
class FieldDescription:
    """A column as a contract describes it, for readers of the table."""

    name: str
    type: str
    description: str | None = None
    sources: tuple[FieldSource, ...] = ()


@dataclass(frozen=True, slots=True)
class ContractDescription:
    """What a table's properties say about its contract."""

    id: str
    version: str | None
    description: str | None = None
    owners: tuple[str, ...] = ()
    fields: tuple[FieldDescription, ...] = ()
