"""Our own keys at the top of a document, in the form of extensions of its dialect."""

from __future__ import annotations

from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.source.yaml_document import Node


def at_the_top(reading: ClauseReader, key: str) -> Node | None:
    """The value of a key at the root or below `contract`, or of a custom property of that name."""
    if (node := reading.root.get(key)) is not None:
        return node
    for item in reading.mappings(reading.root, "customProperties"):
        if reading.text(item, "property") == key:
            return item.get("value")
    return reading.node(reading.mapping(reading.root, "contract"), key)
