"""Clauses that nothing checks, and who accepts that, by an extension of the contract.

    quality:
- type: custom engine: monte-carlo x-dqx-accepted: {owner: data-platform, reason: the vendor checks
  it}

At the root it is a list, whose items name a `clause`. In ODCS, whose objects allow no additional
keys, it is a custom property with the mapping as its value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.model import Acceptance
from dqx_airflow.contracts.source.yaml_document import (
    Mapping,
    Node,
    Path,
    Scalar,
    Sequence,
    leaves,
    show_path,
)
from dqx_airflow.diagnostics.diagnostic import Diagnostic

KEY = "x-dqx-accepted"
_CUSTOM = "customProperties"
_EXAMPLE = f"write `{KEY}: {{owner: data-platform, reason: ...}}`"


def read_acceptances(reading: ClauseReader, models: Collection[str]) -> tuple[Acceptance, ...]:
    """All acceptances of the document. One without an owner or a reason is reported and ignored.

    :param models: their names are the prefixes of the names of assertions.
    """
    acceptances = list(_within(reading, reading.root))
    known = [show_path(leaf.path) for leaf in leaves(reading.root)] if acceptances else []
    for acceptance in acceptances:
        is_name = any(acceptance.clause.startswith(f"{name}.") for name in models)
        if not is_name and not any(map(acceptance.covers, known)):
            message = f"cannot accept unknown clause '{acceptance.clause}'"
            help_line = "remove it, or use a clause path that `dql contract coverage` lists"
            reading.report(Diagnostic(message, acceptance.span, "W022", help=help_line))
    return tuple(acceptances)


def _within(reading: ClauseReader, node: Node) -> Iterator[Acceptance]:
    if isinstance(node, Sequence):
        for item in node.items:
            yield from _within(reading, item)
    if not isinstance(node, Mapping):
        return
    for key, entry in node.entries.items():
        if key == KEY:
            yield from _read(reading, entry.node, node.path)
        elif key == _CUSTOM:
            for item in reading.items(node, key):
                if isinstance(item, Mapping) and reading.text(item, "property") == KEY:
                    yield from _read(reading, item.get("value") or item, node.path)
        else:
            yield from _within(reading, entry.node)


def _read(reading: ClauseReader, node: Node, owner: Path) -> Iterator[Acceptance]:
    reading.documented(node, "records who accepts that a clause is not checked")
    for item in node.items if isinstance(node, Sequence) else (node,):
        mapping = item if isinstance(item, Mapping) else None
        clause = reading.text(mapping, "clause") or show_path(owner)
        accepted_by, reason = (_text_at(mapping, key) for key in ("owner", "reason"))
        if accepted_by and reason and clause:
            yield Acceptance(clause, reason, accepted_by, item.span)
            continue
        missing = "owner" if not accepted_by else "reason" if not reason else "clause"
        message = f"the acceptance has no {missing}"
        reading.report(Diagnostic(message, item.span, "E411", help=_EXAMPLE))


def _text_at(node: Mapping | None, key: str) -> str:
    child = node.get(key) if node is not None else None
    return " ".join(child.text.split()) if isinstance(child, Scalar) and child.value else ""
