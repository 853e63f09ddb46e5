"""Proposed changes of a suite that await review: what, by whom, and on what evidence; and the
decisions on them in the results store.

The store is append-only. The last decision counts; an applied proposal is final.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from itertools import chain
from typing import TYPE_CHECKING, Any

from dqx_airflow.dql import nodes
from dqx_airflow.errors import RequestError
from dqx_airflow.results.schema import PROPOSALS, PROPOSALS_SCHEMA, Row, as_utc
from dqx_airflow.tuning.suite_history import Entry, new_id, timestamp_of, timestamp_text
from dqx_airflow.tuning.tunables import number_text
from dqx_airflow.values import WordEnum
from dqx_airflow.values.exact import is_finite_number

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
        all_removed = (*self.replaces, *(f'profile "{name}"' for name in self.drops))
        lines = [f"- {self.before}", *(f"- {removed}" for removed in all_removed)]
        return "\n".join([*lines, *(f"+ {added}" for added in (*self.constants, self.claim))])


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change of a suite, which is identified by its name.

    `profile` is the text of a profile to be added, in DQL; `form` another claim for an assertion.
    `evidence` is what the agent found, as JSON; `gate` the one whose results it used.
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
        return json.dumps({**asdict(self), "at": timestamp_text(self.at)}, ensure_ascii=False)


def proposal_from_json(text: str) -> Proposal:
    """The proposal from its JSON form.

    :raises RequestError: it is not valid.
    """
    try:
        fields = json.loads(text)
        changes = tuple(
            ProposedValue(str(entry["param"]), entry["old"], entry["new"], _unit(entry.get("unit")))
            for entry in fields.get("changes", ())
        )
        for change in changes:
            if not all(is_finite_number(value) for value in (change.old, change.new)):
                raise TypeError(f"{change.param} has no numbers")
        form = _form(fields["form"]) if fields.get("form") is not None else None
        optional = {
            name: fields[name] for name in ("profile", "reason", "gate", "id") if name in fields
        }
        texts = [
            fields["suite"],
            fields["agent"],
            *(value for value in optional.values() if value is not None),
        ]
        if not all(isinstance(text, str) for text in texts):
            raise TypeError("expected a string")
        return Proposal(
            fields["suite"],
            fields["agent"],
            changes,
            evidence=fields.get("evidence") or {},
            form=form,
            at=timestamp_of(fields.get("at")) or datetime.now(timezone.utc),
            **optional,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RequestError(f"{_NO_PROPOSAL}: {error}") from error


def _unit(text: object) -> nodes.Unit:
    """The notation; plain if it is unknown, as in proposals of earlier versions."""
    return next((unit for unit in nodes.Unit if unit.value == text), nodes.Unit.PLAIN)


def _form(fields: Mapping[str, Any]) -> ProposedForm:
    names = ("check", "assertion", "before", "claim")
    lists = [tuple(fields.get(name) or ()) for name in ("constants", "replaces", "drops")]
    form = ProposedForm(*(fields[name] for name in names), *lists)
    texts = (*(fields[name] for name in names), *chain.from_iterable(lists))
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("expected a string in the form")
    return form


def proposal_of_entry(suite: str, entry: Entry) -> Proposal | None:
    """The proposal in an entry of a history; None for another entry.

    :param suite: the name of the suite.
    """
    old, new = entry.get("old"), entry.get("new")
    if entry.get("action") != "propose" or not (is_finite_number(old) and is_finite_number(new)):
        return None
    agent, reason = str(entry.get("agent", "unknown")), entry.get("reason")
    change, own_id = ProposedValue(str(entry.get("param")), old, new), str(entry.get("id"))
    at = timestamp_of(entry.get("ts")) or datetime.fromtimestamp(0, timezone.utc)
    return Proposal(suite, agent, (change,), reason=reason, id=own_id, at=at)


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
    by, text = (proposal.agent, proposal.reason, proposal.at), proposal.to_json()
    _append(results, proposal, ProposalStage.PENDING, *by, text)


def decide(
    results: StoredResults | str,
    proposal: Proposal,
    stage: ProposalStage,
    author: str,
    reason: str | None = None,
) -> None:
    """Records a decision on a proposal.

    :raises StoreError: the store cannot be written.
    """
    _append(results, proposal, stage, author, reason, datetime.now(timezone.utc))


def read_proposals(
    results: StoredResults | str, suite: str | None = None, *, stage: ProposalStage | None = None
) -> tuple[StoredProposal, ...]:
    """The proposals for a suite, or for all, oldest first.

    :param suite: the name of the suite, as in its file.
    :raises StoreError: the store exists and cannot be read.
    """
    from dqx_airflow.results.query import RunsWanted, opened

    where, order = RunsWanted(suite=suite).conditions, 'ORDER BY "event_at", "event_id"'
    rows = opened(results).select(PROPOSALS, PROPOSALS_SCHEMA.names, where, order)
    made: dict[str, Proposal] = {}
    last: dict[str, Row] = {}
    for row in rows:
        proposal_id = row["proposal_id"]
        if row.get("proposal"):
            try:
                made.setdefault(proposal_id, proposal_from_json(row["proposal"]))
            except RequestError:
                continue  # of a newer version
        if row["event"] in list(ProposalStage) and _counts(last.get(proposal_id), row):
            last[proposal_id] = row
    stored = (_stored(made[key], row) for key, row in last.items() if key in made)
    return tuple(proposal for proposal in stored if stage in (None, proposal.stage))


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
    return before is None or (
        before["event"] != ProposalStage.APPLIED and row["event"] != ProposalStage.PENDING
    )


def _stored(proposal: Proposal, row: Row) -> StoredProposal:
    stage, at = ProposalStage(row["event"]), as_utc(row["event_at"])
    return StoredProposal(proposal, stage, row["agent"], at, row.get("reason"))


def _append(
    results: StoredResults | str,
    proposal: Proposal,
    stage: ProposalStage,
    agent: str,
    reason: str | None,
    at: datetime,
    text: str | None = None,
) -> None:
    """:param text: the proposal itself, when it is made."""
    from dqx_airflow.results.query import opened
    from dqx_airflow.results.store import ResultsStore  # pyarrow, which readers do not need

    event_id = str(uuid.uuid4())
    row: Row = {
        "event_id": event_id,
        "proposal_id": proposal.id,
        "event": stage.value,
        "gate": proposal.gate,
        "suite": proposal.suite,
        "agent": agent,
        "reason": reason,
        "proposal": text,
        "event_at": at,
    }
    results = opened(results)
    store = ResultsStore(results.root, results.storage_options)
    store.append_rows({PROPOSALS: {event_id: [row]}})
