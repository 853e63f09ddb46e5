"""The result of an export, the losses in it, and the writers of YAML and of models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from dqx_airflow.contracts.model import Contract, Field, Model, Rule, Treatment
from dqx_airflow.contracts.yaml_reader import is_read_as_text
from dqx_airflow.values.exact import WrittenFloat, WrittenInt


@dataclass(frozen=True, slots=True)
class Loss:
    """A statement of the contract that is missing in the export. `path` is its position."""

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


@dataclass(slots=True)
class ModelWriter:
    """Writes a model of a contract, and collects what the format cannot express."""

    contract: Contract
    model: Model
    losses: list[Loss] = field(default_factory=list)

    def lose(self, item: Field | None, rule: Rule, reason: str) -> None:
        """Adds a rule that the format cannot express, by the name of its assertion."""
        self.losses.append(Loss(self.contract.assertion_name(self.model, item, rule), reason))

    def exported(self, plain: dict[str, Any]) -> Exported:
        """The text in JSON, with the losses of the model and the unsupported clauses."""
        text = json.dumps(plain, indent=2, ensure_ascii=False) + "\n"
        return Exported(text, (*self.losses, *unsupported_clauses(self.contract)))


def yaml_text(plain: Any) -> str:
    """The YAML of a value: keys in their order, multi-line strings as blocks, lists below their
    key."""
    return yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def without_empty(plain: dict[str, Any]) -> dict[str, Any]:
    """The keys that have a value: no null, no empty string, list or mapping."""
    return {key: value for key, value in plain.items() if value not in (None, "", [], {})}


class _Dumper(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text:
        style = "|"
    elif not is_read_as_text(text):
        style = "'"  # `08` and `1e3` are strings in YAML 1.1, which PyYAML writes
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(WrittenFloat, lambda dumper, number: dumper.represent_float(float(number)))
_Dumper.add_representer(WrittenInt, lambda dumper, number: dumper.represent_int(int(number)))
