"""The text of a contract: YAML with positions, `$ref`, and the errors found by JSON Schemas."""
