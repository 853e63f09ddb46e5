"""Diagnostics as GitHub workflow commands: annotations next to the lines of a pull request."""

from __future__ import annotations

from collections.abc import Iterable

from dqx_airflow.diagnostics.diagnostic import Diagnostic


def github_annotations(diagnostics: Iterable[Diagnostic]) -> str:
    """One workflow command on each line."""
    return "\n".join(_annotation(diagnostic) for diagnostic in diagnostics)


def _annotation(diagnostic: Diagnostic) -> str:
    span = diagnostic.span
    properties = {
        "file": span.file,
        "line": span.line,
        "endLine": span.end_line,
        "col": span.column,
        "endColumn": span.end_column,
        "title": diagnostic.code or diagnostic.level.value,
    }
    fields = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    parts = [diagnostic.message, diagnostic.label, diagnostic.help and f"help: {diagnostic.help}"]
    message = _data("\n".join(part for part in parts if part))
    return f"::{diagnostic.level.value} {fields}::{message}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
