"""Proposed changes of a suite with their authors and evidence, and the decisions of reviewers on
them, in the results store.

The store is append-only. The last decision counts; an applied proposal is final.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from dqx_airflow.dql import nodes
from dqx_airflow.errors import RequestError
from dqx_airflow.results.schema import PROPOSALS, PROPOSALS_SCHEMA, Row, as_utc
from dqx_airflow.tuning.suite_history import Entry, new_id, timestamp_of, timestamp_text
from dqx_airflow.tuning.tunables import number_text
from dqx_airflow.values import WordEnum
from dqx_airflow.values.exact import is_finite_number
from dqx_airflow.values.output_form import output_form

if TYPE_CHECKING:  # suites are checked without the store, which loads deltalake
    from dqx_airflow.results.query import StoredResults

_NO_PROPOSAL = "not a proposal"


@dataclass(frozen=True, slots=True)
class ProposedValue:
    """A tunable, its value when the change was proposed, and the new one. `unit` is how the suite
    writes them."""

    param: str
    old: float
    new: float
    unit: nodes.Unit = field(default=nodes.Unit.PLAIN, compare=False)

    @property
    def old_text(self) -> str:
        """The old value as in the suite: `5%`, `2 hours`."""
        return number_text(self.old, self.unit)

    @property
    def new_text(self) -> str:
        """The new value as in the suite."""
        return number_text(self.new, self.unit)

    def __str__(self) -> str:
        return f"{self.param}: {self.old_text} -> {self.new_text}"


@dataclass(frozen=True, slots=True)
class ProposedForm:
    """Another claim for an assertion, in DQL.

    `before` is the claim when the change was proposed. `constants` are the tunables that the new
    one needs, `replaces` the names of the constants that only the old one needed, `drops` the
    names of the profiles that become unnecessary.
    """

    check: str
    assertion: str
    before: str
    claim: str
    constants: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    drops: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The change as a diff: removed claims, constants and profiles, then added ones."""
        profiles = [f'profile "{name}"' for name in self.drops]
        removed = [self.before, *self.replaces, *profiles]
        added = [*self.constants, self.claim]
        lines = [f"- {text}" for text in removed] + [f"+ {text}" for text in added]
        return "\n".join(lines)


LOST_ISSUES = "lost_issues"
"""The evidence that a proposal would not find known issues any more."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change of a suite, which is identified by its name.

    `profile` is the text of a profile to be added, in DQL; `form` another claim for an assertion.
    `evidence` are the findings of the agent, as JSON; `gate` is the gate whose results it used.
    """

    suite: str
    agent: str
    changes: tuple[ProposedValue, ...] = ()
    profile: str | None = None
    reason: str | None = None
    gate: str | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    form: ProposedForm | None = None
    id: str = field(default_factory=new_id)
    at: datetime = field(default_factory=lambda: datetime.now(timezone.utc))

    @property
    def values(self) -> dict[str, float]:
        """The new values of the tunables."""
        return {change.param: change.new for change in self.changes}

    def to_json(self) -> str:
        """The proposal in the words of the output, which `proposal_from_json` reads."""
        plain = {**output_form(self), "at": timestamp_text(self.at)}
        return json.dumps(plain, ensure_ascii=False)


def proposal_from_json(text: str) -> Proposal:
    """The proposal from its JSON form, even with the keys of 0.2.0: `agent`, `param`, `claim`.

    :raises RequestError: it is not valid.
    """
    try:
        return _proposal(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RequestError(f"{_NO_PROPOSAL}: {error}") from error


def _proposal(fields: Mapping[str, Any]) -> Proposal:
    """:raises TypeError: a field has a value of another type."""
    form = fields.get("form")
    proposal = Proposal(
        suite=_string(fields["suite"]),
        agent=_string(_value(fields, "author", "agent")),
        changes=tuple(_change(change) for change in fields.get("changes", ())),
        profile=_optional_string(fields.get("profile")),
        reason=_optional_string(fields.get("reason")),
        gate=_optional_string(fields.get("gate")),
        evidence=fields.get("evidence") or {},
        form=_form(form) if form is not None else None,
        at=timestamp_of(fields.get("at")) or datetime.now(timezone.utc),
    )
    proposal_id = _optional_string(fields.get("id"))
    return replace(proposal, id=proposal_id) if proposal_id is not None else proposal


def _change(fields: Mapping[str, Any]) -> ProposedValue:
    param = str(_value(fields, "tunable", "param"))
    old = fields["old"]
    new = fields["new"]
    if not is_finite_number(old) or not is_finite_number(new):
        raise TypeError(f"{param} has no numbers")
    return ProposedValue(param, old, new, _unit(fields.get("unit")))


def _unit(text: object) -> nodes.Unit:
    """The notation; plain if it is unknown, as in proposals of earlier versions."""
    for unit in nodes.Unit:
        if unit.value == text:
            return unit
    return nodes.Unit.PLAIN


def _form(fields: Mapping[str, Any]) -> ProposedForm:
    return ProposedForm(
        check=_string(fields["check"]),
        assertion=_string(fields["assertion"]),
        before=_string(fields["before"]),
        claim=_string(_value(fields, "after", "claim")),
        constants=_strings(fields.get("constants")),
        replaces=_strings(fields.get("replaces")),
        drops=_strings(fields.get("drops")),
    )


def _value(fields: Mapping[str, Any], key: str, former: str) -> Any:
    """:raises KeyError: there is neither the key nor its former name."""
    return fields[key] if former not in fields else fields[former]


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("expected a string")
    return value


def _optional_string(value: object) -> str | None:
    return None if value is None else _string(value)


def _strings(values: Iterable[object] | None) -> tuple[str, ...]:
    return tuple(_string(value) for value in values or ())


def proposal_of_entry(suite: str, entry: Entry) -> Proposal | None:
    """The proposal in an entry of a history; None for another entry.

    :param suite: the name of the suite.
    """
    if entry.get("action") != "propose":
        return None
    old = entry.get("old")
    new = entry.get("new")
    if not is_finite_number(old) or not is_finite_number(new):
        return None
    return Proposal(
        suite,
        str(entry.get("agent", "unknown")),
        changes=(ProposedValue(str(entry.get("param")), old, new),),
        reason=entry.get("reason"),
        id=str(entry.get("id")),
        at=timestamp_of(entry.get("ts")) or datetime.fromtimestamp(0, timezone.utc),
    )


_MOST_ATTEMPTS = 1000


class ProposalStage(WordEnum):
    """The stage of a proposal. `APPROVED` waits to be applied to the file of the suite."""

    PENDING = "proposed"
    APPROVED = "approved"
    REJECTED = "rejected"
    APPLIED = "applied"


@dataclass(frozen=True, slots=True)
class StoredProposal:
    """A proposal, and its stage: who decided last, when and why."""

    proposal: Proposal
    stage: ProposalStage
    agent: str
    at: datetime
    reason: str | None = None


def propose(results: StoredResults | str, proposal: Proposal) -> None:
    """Puts a proposal into the review queue.

    `tuning.protection` decides whether it is allowed, and checks again when it is applied.

    :raises StoreError: the store cannot be written.
    """
    row = _row(proposal, ProposalStage.PENDING, proposal.agent, proposal.reason, proposal.at)
    _append(results, [{**row, "proposal": proposal.to_json()}])


def decide(
    results: StoredResults | str,
    proposals: Iterable[Proposal],
    stage: ProposalStage,
    author: str,
    reason: str | None = None,
) -> None:
    """Records a decision on proposals.

    :raises StoreError: the store cannot be written.
    """
    now = datetime.now(timezone.utc)
    _append(results, [_row(proposal, stage, author, reason, now) for proposal in proposals])


def read_proposals(
    results: StoredResults | str, suite: str | None = None, *, stage: ProposalStage | None = None
) -> tuple[StoredProposal, ...]:
    """The proposals for a suite, or for all, oldest first.

    :param suite: the name of the suite, as in its file.
    :raises StoreError: the store exists and cannot be read.
    """
    from dqx_airflow.results.query import RunsWanted, opened

    rows = opened(results).select(
        PROPOSALS,
        PROPOSALS_SCHEMA.names,
        RunsWanted(suite=suite).conditions,
        'ORDER BY "event_at", "event_id"',
    )
    made: dict[str, Proposal] = {}
    last: dict[str, Row] = {}  # the row that decided the stage
    for row in rows:
        proposal_id = row["proposal_id"]
        if row.get("proposal"):
            try:
                made.setdefault(proposal_id, proposal_from_json(row["proposal"]))
            except RequestError:
                continue  # of a newer version
        if row["event"] in list(ProposalStage) and _counts(last.get(proposal_id), row):
            last[proposal_id] = row
    found = []
    for proposal_id, decision in last.items():
        is_wanted = stage is None or decision["event"] == stage.value
        if is_wanted and proposal_id in made:
            found.append(_stored(made[proposal_id], decision))
    return tuple(found)


def attempts_behind(
    results: StoredResults, proposals: Iterable[StoredProposal]
) -> Mapping[str, Sequence[frozenset[str]]]:
    """For each proposal, by its id, the newest attempts of its gate, or of all gates that run the
    suite.

    :raises StoreError: the store exists and cannot be read.
    """
    from dqx_airflow.results.query import RunsWanted

    attempts: dict[str, Sequence[frozenset[str]]] = {}
    for proposal in (stored.proposal for stored in proposals):
        wanted = RunsWanted(suite=proposal.suite)
        if proposal.gate is not None:
            wanted = RunsWanted([proposal.gate])
        order = f'ORDER BY "finished_at" DESC, "run_id" LIMIT {_MOST_ATTEMPTS}'
        by_gate: dict[str, set[str]] = {}
        for row in results.run_rows(wanted, ("gate", "attempt_id"), order):
            by_gate.setdefault(row["gate"], set()).add(row["attempt_id"])
        attempts[proposal.id] = tuple(map(frozenset, by_gate.values()))
    return attempts


def _counts(before: Row | None, row: Row) -> bool:
    """True if a row changes the stage of a proposal: an applied proposal stays applied."""
    if before is None:
        return True
    is_applied: bool = before["event"] == ProposalStage.APPLIED
    is_decision: bool = row["event"] != ProposalStage.PENDING
    return is_decision and not is_applied


def _stored(proposal: Proposal, row: Row) -> StoredProposal:
    return StoredProposal(
        proposal,
        stage=ProposalStage(row["event"]),
        agent=row["agent"],
        at=as_utc(row["event_at"]),
        reason=row.get("reason"),
    )


def _row(
    proposal: Proposal, stage: ProposalStage, agent: str, reason: str | None, at: datetime
) -> Row:
    """The row of an event of a proposal, without its JSON form."""
    return {
        "event_id": str(uuid.uuid4()),
        "proposal_id": proposal.id,
        "event": stage.value,
        "gate": proposal.gate,
        "suite": proposal.suite,
        "agent": agent,
        "reason": reason,
        "proposal": None,
        "event_at": at,
    }


def _append(results: StoredResults | str, rows: Iterable[Row]) -> None:
    """Appends events of proposals."""
    from dqx_airflow.results.query import opened
    from dqx_airflow.results.store import ResultsStore  # pyarrow, which readers do not need

    results = opened(results)
    store = ResultsStore(results.root, results.storage_options)
    store.append_rows({PROPOSALS: {row["event_id"]: [row] for row in rows}})
