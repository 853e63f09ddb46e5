"""The metrics of the language: one entry each, and functions of them. Pure Python."""
