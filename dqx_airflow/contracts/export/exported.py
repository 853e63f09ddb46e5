"""What an export gives: a text, and what of the contract is not in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dqx_airflow.contracts.model import Contract, Field, Model, Rule, Treatment
from dqx_airflow.dql.syntax.grammar import unquoted


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that the contract says and the export does not. `path` is where it says so."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Exported:
    """A contract in another format. Nothing is left out of `text` without a word in `losses`."""

    text: str
    losses: tuple[Loss, ...] = ()


def unsupported_clauses(contract: Contract) -> Iterator[Loss]:
    """The clauses of which no rule is made, though data could break them: no format has them."""
    for note in contract.notes:
        if note.treatment is Treatment.UNSUPPORTED:
            yield Loss(note.clause.path, f"not checked at all: {note.reason}")


def loss_of(contract: Contract, model: Model, item: Field | None, rule: Rule, reason: str) -> Loss:
    """What to say of a rule that a format does not have, by the name of its assertion."""
    return Loss(contract.assertion_name(model, item, rule), reason)


def plain_name(path: str) -> str:
    """A column as other tools write it: without the backticks of DQL."""
    return ".".join(unquoted(part) for part in path.split("."))
