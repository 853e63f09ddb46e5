"""The conformance cases, and the proof by them that an engine has our values.

The Markdown files in `cases/` are the cases; `cases` reads them, `prove` runs them on a Spark,
`differences` says what an engine that differs must not judge.
"""
