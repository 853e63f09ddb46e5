"""Diagnostics for programs: JSON, GitHub workflow commands (annotations next to the lines of a pull
request), or SARIF 2.1.0 (for code hosts and editors).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from dqx_airflow import __version__
from dqx_airflow.diagnostics.diagnostic import Diagnostic, page, reason, title
from dqx_airflow.values import Span

_STEERING = re.compile(
    r"[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)


def json_text(value: Any, *, default: Callable[[Any], Any] | None = None) -> str:
    """The value as JSON: letters unchanged, control and bidirectional characters escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=default)
    return _STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def json_list(diagnostics: Iterable[Diagnostic]) -> str:
    """An array of objects with `level`, `code`, `message`, `span`, `label`, `related`, `help`."""
    return json_text(
        [{"level": diagnostic.level.value, **asdict(diagnostic)} for diagnostic in diagnostics]
    )


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


_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif_log(diagnostics: Iterable[Diagnostic]) -> str:
    """A SARIF log with one run; its rules are the codes that occur."""
    listed = list(diagnostics)
    codes = sorted({diagnostic.code for diagnostic in listed if diagnostic.code})
    driver = {"name": "dql", "version": __version__, "rules": [_rule(code) for code in codes]}
    results = [_result(diagnostic) for diagnostic in listed]
    run = {"tool": {"driver": driver}, "results": results, "columnKind": "unicodeCodePoints"}
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(code: str) -> dict[str, Any]:
    return {
        "id": code,
        "shortDescription": {"text": title(code)},
        "fullDescription": {"text": reason(code)},
        "help": {"text": page(code), "markdown": page(code)},
    }


def _result(diagnostic: Diagnostic) -> dict[str, Any]:
    text = diagnostic.message + (f"\nhelp: {diagnostic.help}" if diagnostic.help else "")
    result: dict[str, Any] = {
        "ruleId": diagnostic.code or diagnostic.level.value,
        "level": diagnostic.level.value,
        "message": {"text": text},
        "locations": [_location(diagnostic.span)],
    }
    if diagnostic.related:
        result["relatedLocations"] = [
            {**_location(related.span), "message": {"text": related.label}}
            for related in diagnostic.related
        ]
    return result


def _location(span: Span) -> dict[str, Any]:
    region = {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,
    }
    uri = span.file.replace("\\", "/")
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}


FOR_MACHINES = {"json": json_list, "github": github_annotations, "sarif": sarif_log}
"""The formats of diagnostics that programs read."""
