"""The result of an export: a text, and the parts of the contract that it lacks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dqx_airflow.contracts.model import Contract, Field, Model, Rule, Treatment


@dataclass(frozen=True, slots=True)
class Loss:
    """A part of the contract that the export lacks. `path` is its position."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Exported:
    """A contract in another format. `losses` list everything that `text` leaves out."""

    text: str
    losses: tuple[Loss, ...] = ()


def unsupported_clauses(contract: Contract) -> Iterator[Loss]:
    """The clauses without rules that data could violate: no format has them."""
    for note in contract.notes:
        if note.treatment is Treatment.UNSUPPORTED:
            yield Loss(note.clause.path, f"not checked at all: {note.reason}")


def loss_of(contract: Contract, model: Model, item: Field | None, rule: Rule, reason: str) -> Loss:
    """The loss of a rule that a format cannot express, by the name of its assertion."""
    return Loss(contract.assertion_name(model, item, rule), reason)
