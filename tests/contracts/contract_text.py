"""A contract as readable text: the format of the readers' golden files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from dqx_airflow.contracts.demands import Presence
from dqx_airflow.contracts.document import leaves, show_path
from dqx_airflow.contracts.model import Contract, Field, Rule
from dqx_airflow.contracts.read import ReadContract
from dqx_airflow.diagnostics import draw


def show_contract(read: ReadContract) -> str:
    """The contract that was read, the clauses without a rule, and the diagnostics, as text."""
    parts = []
    if read.contract is not None:
        parts += ["\n".join(_contract(read.contract)), "\n".join(_notes(read.contract))]
    if read.diagnostics:
        parts.append(draw(read.diagnostics, read.sources).rstrip())
    return "\n\n".join(part for part in parts if part) + "\n"


def show_rules(read: ReadContract) -> str:
    """Only the rules, and what is wrong."""
    lines = []
    if read.contract is not None:
        for model, item, rule in read.contract.rules():
            lines.append(f"{read.contract.assertion_name(model, item, rule)}: {_rule(rule)}")
        lines += _notes(read.contract, all_of_them=False)
    if read.diagnostics:
        lines.append(draw(read.diagnostics, read.sources).rstrip())
    return "\n".join(lines) + "\n"


def misaccounted(read: ReadContract) -> list[str]:
    """The leaves of a document with neither a rule nor a note, and the leaves with both."""
    assert read.document.root is not None
    assert read.contract is not None
    noted = {note.clause.path for note in read.contract.notes}
    every = [*leaves(read.document.root)]
    paths = {show_path(leaf.path) for leaf in every}
    # The key of a column says that it exists, whatever is below it.
    carried = {
        clause.path
        for _, _, rule in read.contract.rules()
        for clause in rule.clauses
        if clause.span.file == read.document.source.name
        if rule.demand != Presence() or clause.path in paths
    }
    found = []
    for leaf in every:
        own = show_path(leaf.path)
        above = {show_path(leaf.path[:depth]) for depth in range(1, len(leaf.path) + 1)}
        if (own in noted) == bool(above & carried):
            found.append(own)
    return found


def _contract(contract: Contract) -> Iterator[str]:
    yield f"{contract.dialect} {contract.id} {contract.version}"
    for name in ("dialect_version", "name", "owner", "contacts", "domain", "tags"):
        if value := getattr(contract, name):
            yield f"  {name}: {_shown(value)}"
    if shown := _shown(contract.lifecycle).removeprefix("Lifecycle(").removesuffix(")"):
        yield f"  lifecycle: {shown}"
    for server in contract.servers:
        yield f"  server {_shown(server)}"
    for consumer in contract.consumers:
        yield f"  consumer {_shown(consumer)}"
    for model in contract.models:
        yield ""
        yield f"model {model.name}" + _extras(
            model, "title", "location", "partition_by", "is_closed", "tags"
        )
        for item in model.walk():
            yield _field(item)
            yield from (f"    {rule.name}: {_rule(rule)}" for rule in item.rules)
        yield from (f"  {rule.name}: {_rule(rule)}" for rule in model.rules)


def _field(item: Field) -> str:
    return f"  {item.path} {item.type}" + _extras(
        item, "title", "unit", "default", "is_key", "is_sensitive", "classification", "tags"
    )


def _extras(owner: object, *names: str) -> str:
    pairs = ((name, getattr(owner, name)) for name in names)
    shown = ", ".join(
        name if value is True else f"{name}={_shown(value)}" for name, value in pairs if value
    )
    return f"  ({shown})" if shown else ""


def _rule(rule: Rule) -> str:
    extras = _extras(rule, "severity", "dimension", "tags")
    share = f" for {rule.share:g} of the values" if rule.share < 1 else ""
    paths = ", ".join(clause.path for clause in rule.clauses)
    return f"{_shown(rule.demand)}{share}{extras}  <- {paths}"


def _notes(contract: Contract, *, all_of_them: bool = True) -> list[str]:
    notes = [note for note in contract.notes if all_of_them or note.reason]
    lines = []
    for note in notes:
        if not all_of_them and note.treatment == "documented":
            continue
        reason = f": {note.reason}" if note.reason else ""
        lines.append(f"{note.treatment} {note.clause.path}{reason}")
    return lines


def _shown(value: object) -> str:
    if is_dataclass(value) and not isinstance(value, type):
        pairs = ((item, getattr(value, item.name)) for item in fields(value) if item.compare)
        arguments = ", ".join(
            f"{item.name}={_shown(found)}"
            for item, found in pairs
            if found not in (None, ()) and found != item.default
        )
        return f"{type(value).__name__}({arguments})"
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))})"
    if isinstance(value, str):
        return str(value) if value.isidentifier() else repr(str(value))
    return repr(value)
