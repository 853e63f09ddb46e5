"""Proposed changes of a suite that await review: what, by whom, and on what evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from itertools import chain
from typing import Any

from dqx_airflow.dql import nodes
from dqx_airflow.errors import RequestError
from dqx_airflow.tuning.suite_history import Entry, new_id, timestamp_of, timestamp_text
from dqx_airflow.tuning.tunables import number_text
from dqx_airflow.values.exact import is_finite_number

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
    one needs, `replaces` the names of the constants that only the old one needed, `drops` those of
    profiles that become unnecessary.
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
        """What is removed from the suite, and what is added."""
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
    return Proposal(
        suite,
        str(entry.get("agent", "unknown")),
        (ProposedValue(str(entry.get("param")), old, new),),
        reason=entry.get("reason"),
        id=str(entry.get("id")),
        at=timestamp_of(entry.get("ts")) or datetime.fromtimestamp(0, timezone.utc),
    )
