"""The metrics of the language: one entry each, and what can be derived from them. Pure Python."""
