"""Keys that contracts of all dialects may add: accepted clauses, renames, the incident response.

An accepted clause, at its position, or in a list of the root whose items have a `clause`:

    quality:
      - type: custom
        engine: monte-carlo
        x-dqx-accepted: {owner: data-platform, reason: the vendor checks it}

The handling of an incident, and renamed models and fields:

    x-dqx-incident: {channel: "#orders", runbook: https://wiki.example.com/orders}
    x-dqx-renamed:
      - {model: purchases, from: orders}
      - {model: purchases, field: address.zip, from: address.postcode}

In ODCS, whose objects allow no additional keys, each is a custom property with this value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import fields, replace

from dqx_airflow.contracts.demands import one_line
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.document import NOTHING, Mapping, Node, Path, Sequence, leaves, show_path
from dqx_airflow.contracts.mistakes import mistake
from dqx_airflow.contracts.model import Acceptance, IncidentResponse, Model, Renamed, dotted_path
from dqx_airflow.diagnostics.diagnostic import did_you_mean


def at_the_top(reading: ClauseReader, key: str) -> Node | None:
    """The value of a key at the root, of a custom property with its name, or of the key below
    `contract`; None without one."""
    if (node := reading.root.get(key)) is not None:
        return node
    for item in reading.mappings(reading.root, "customProperties"):
        if item.text("property") == key:
            return item.get("value")
    return reading.mapping(reading.root, "contract").get(key)


ACCEPTED = "x-dqx-accepted"
_CUSTOM = "customProperties"


def read_acceptances(reading: ClauseReader, models: Collection[str]) -> tuple[Acceptance, ...]:
    """All acceptances of the document. An acceptance without an owner, a reason or a clause is
    reported and ignored; an acceptance of an unknown clause is reported and kept.

    :param models: the names of models, which are the prefixes of the names of assertions.
    """
    acceptances = list(_within(reading, reading.root))
    known = [show_path(leaf.path) for leaf in leaves(reading.root)] if acceptances else []
    for acceptance in acceptances:
        is_name = any(acceptance.clause.startswith(f"{name}.") for name in models)
        if not is_name and not any(map(acceptance.covers, known)):
            clause = acceptance.clause
            span = acceptance.span
            reading.report(mistake("unknown_accepted", span, clause=clause))
    return tuple(acceptances)


def _within(reading: ClauseReader, node: Node) -> Iterator[Acceptance]:
    """The acceptances in a node and below it, in the order of the document."""
    if isinstance(node, Sequence):
        for item in node.items:
            yield from _within(reading, item)
    if not isinstance(node, Mapping):
        return
    for key, entry in node.entries.items():
        if key == ACCEPTED:
            yield from _acceptance(reading, entry.node, node.path)
        elif key == _CUSTOM:
            for item in node.items(key):
                if isinstance(item, Mapping) and item.text("property") == ACCEPTED:
                    yield from _acceptance(reading, item.get("value") or item, node.path)
        else:
            yield from _within(reading, entry.node)


def _acceptance(reading: ClauseReader, node: Node, owner: Path) -> Iterator[Acceptance]:
    """The complete acceptances in a value of `x-dqx-accepted`: a mapping, or a list of mappings.

    :param owner: the path of the element with the key, which an item without a `clause` accepts.
    """
    reading.documented(node, "records who accepts that a clause is not checked")
    for item in node.items if isinstance(node, Sequence) else (node,):
        mapping = item if isinstance(item, Mapping) else NOTHING
        clause = mapping.text("clause") or show_path(owner)
        owner_text = _line_at(mapping, "owner")
        reason = _line_at(mapping, "reason")
        if not owner_text:
            missing = "owner"
        elif not reason:
            missing = "reason"
        elif not clause:
            missing = "clause"
        else:
            yield Acceptance(clause, reason, owner_text, item.span)
            continue
        reading.report(mistake("incomplete_acceptance", item.span, missing=missing, key=ACCEPTED))


def _line_at(node: Mapping, key: str) -> str:
    """The string at a key on one line; empty for `false`, for 0, and if there is none."""
    return one_line(node.text(key) or "") if node.literal(key) else ""


INCIDENT = "x-dqx-incident"


def with_extension(reading: ClauseReader, incident: IncidentResponse) -> IncidentResponse:
    """The incident response of the dialect, in which each value that the extension has replaces
    the value of the dialect."""
    extension = at_the_top(reading, INCIDENT)
    if not isinstance(extension, Mapping):
        return incident
    reading.documented(extension, "how incidents are handled")
    named = {item.name: extension.text(item.name) for item in fields(incident)}
    return replace(incident, **{name: text for name, text in named.items() if text})


RENAMED = "x-dqx-renamed"


def read_renames(reading: ClauseReader, models: Iterable[Model]) -> Iterator[Renamed]:
    """The renames in the document. Incomplete renames, and renames of unknown elements, are
    reported and ignored."""
    node = at_the_top(reading, RENAMED)
    if node is None:
        return
    reading.documented(node, "renames since the previous version")
    known = {model.name: model for model in models}
    for item in node.items if isinstance(node, Sequence) else (node,):
        renamed = _rename(reading, item, known)
        if renamed is not None:
            yield renamed


def _rename(reading: ClauseReader, item: Node, models: dict[str, Model]) -> Renamed | None:
    """The rename in one item; None for an incorrect one, which is reported."""
    mapping = item if isinstance(item, Mapping) else NOTHING
    name = mapping.text("model")
    path = mapping.text("field")
    old = mapping.text("from")
    if name is None or old is None:
        missing = "model" if name is None else "from"
        reading.report(mistake("incomplete_rename", item.span, missing=missing))
        return None
    model = models.get(name)
    if model is None:
        hint = did_you_mean(name, models)
        reading.report(mistake("unknown_model", item.span, model=name, hint=hint))
        return None
    if path is None:
        return Renamed(name, None, old)
    column = dotted_path(path)
    if model.field_at(column) is None:
        hint = did_you_mean(path, [field.path for field in model.walk()])
        parts = {"model": name, "field": path, "hint": hint}
        reading.report(mistake("unknown_field", item.span, **parts))
        return None
    return Renamed(name, column, dotted_path(old))
