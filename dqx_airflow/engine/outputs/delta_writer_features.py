"""Requirements of a Delta table on its writers: the writer features of the Delta protocol."""

from __future__ import annotations

from deltalake import DeltaTable

_HARMLESS = frozenset(
    {
        *("appendOnly", "changeDataFeed", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"),
        # Relevant only if a column or a property uses them.
        *("checkConstraints", "generatedColumns", "invariants"),
    }
)
"""Table features that require nothing from writers that add and remove whole files."""
_OF_COLUMNS = {
    "delta.invariants": "invariants",
    "delta.generationExpression": "generated columns",
    "delta.identity.start": "identity columns",
}


def demands_of(table: DeltaTable) -> tuple[str, ...]:
    """The features that a writer of the table needs beyond files and a log."""
    configuration = table.metadata().configuration
    features = set(table.protocol().writer_features or ()) - _HARMLESS
    if any(name.startswith("delta.constraints.") for name in configuration):
        features.add("check constraints")
    if configuration.get("delta.columnMapping.mode", "none") != "none":
        features.add("columnMapping")
    for field in table.schema().fields:
        features |= {word for key, word in _OF_COLUMNS.items() if key in field.metadata}
        if not field.nullable:
            features.add("columns that are NOT NULL")
    return tuple(sorted(features))
