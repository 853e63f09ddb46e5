"""The text of a contract: YAML with positions, `$ref`, and what JSON Schemas find wrong with it."""
