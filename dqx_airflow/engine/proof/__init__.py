"""Proves with conformance cases that an engine computes our values.

The Markdown files in `cases/` are the cases; `cases` reads them, `prove` runs them on a Spark,
`differences` finds the traits that an engine with other values must not judge.
"""
