"""Keys of our own at the top of a document, in the way in which its dialect is extended."""

from __future__ import annotations

from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.source.yaml_document import Node


def at_the_top(reading: ClauseReader, key: str) -> Node | None:
    """What is written under a key at the root or below `contract`, or as the value of a custom
    property of that name."""
    if (node := reading.root.get(key)) is not None:
        return node
    for item in reading.mappings(reading.root, "customProperties"):
        if reading.text(item, "property") == key:
            return item.get("value")
    top = reading.mapping(reading.root, "contract")
    return top.get(key) if top is not None else None
