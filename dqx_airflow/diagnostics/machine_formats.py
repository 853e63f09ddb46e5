"""Diagnostics for programs: JSON, GitHub workflow commands (annotations next to the lines of a pull
request), SARIF 2.1.0 (for code hosts and editors), or JUnit (for the tests of a CI system).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from dqx_airflow import __version__
from dqx_airflow.diagnostics import junit
from dqx_airflow.diagnostics.diagnostic import Diagnostic, Level, page, reason, title
from dqx_airflow.values import Span

_STEERING = re.compile(
    r"[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)


def json_text(value: Any, *, default: Callable[[Any], Any] | None = None) -> str:
    """The value as JSON: letters unchanged, control and bidirectional characters escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=default)
    return _STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def json_list(diagnostics: Iterable[Diagnostic]) -> str:
    """An array of objects with the keys of `_object`."""
    return json_text([_object(diagnostic) for diagnostic in diagnostics])


def _object(diagnostic: Diagnostic) -> dict[str, Any]:
    return {
        "level": diagnostic.level.value,
        "code": diagnostic.code,
        "message": diagnostic.message,
        "span": asdict(diagnostic.span),
        "label": diagnostic.label,
        "related": [asdict(related) for related in diagnostic.related],
        "notes": diagnostic.notes,
        "help": diagnostic.help,
    }


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
        "title": _rule_id(diagnostic),
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
    """A SARIF log with one run; its rules are the codes that occur, and the assertions."""
    listed = list(diagnostics)
    codes = sorted({diagnostic.code for diagnostic in listed if diagnostic.code})
    assertions = sorted({diagnostic.rule for diagnostic in listed if diagnostic.rule})
    rules = [*map(_rule, codes), *({"id": assertion} for assertion in assertions)]
    driver = {"name": "dql", "version": __version__, "rules": rules}
    results = [_result(diagnostic) for diagnostic in listed]
    run = {"tool": {"driver": driver}, "results": results, "columnKind": "unicodeCodePoints"}
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule_id(diagnostic: Diagnostic) -> str:
    return diagnostic.code or diagnostic.rule or diagnostic.level.value


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
        "ruleId": _rule_id(diagnostic),
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


def junit_of_files(title: str, diagnostics: Iterable[Diagnostic], files: Iterable[str] = ()) -> str:
    """A test suite for each file: a case for each finding, of which errors fail; a case that passed
    for a file without any.

    :param title: the command that found them.
    :param files: all files that were checked.
    """
    found: dict[str, list[junit.Case]] = {file: [] for file in files}
    for diagnostic in diagnostics:
        found.setdefault(diagnostic.span.file, []).append(_case(diagnostic))
    suites = [
        junit.CaseSuite(file, tuple(cases) or (junit.Case(file),)) for file, cases in found.items()
    ]
    return junit.junit_xml(title, suites)


def _case(diagnostic: Diagnostic) -> junit.Case:
    span = diagnostic.span
    name = f"{_rule_id(diagnostic)} at line {span.line}, column {span.column}"
    help = f"help: {diagnostic.help}" if diagnostic.help else ""
    text = "\n".join(part for part in (diagnostic.message, diagnostic.label, help) if part)
    if diagnostic.level is Level.WARNING:
        return junit.Case(name, "system-out", text=text, span=span)
    return junit.Case(name, "failure", diagnostic.message, text, span=span)


FOR_MACHINES = {"json": json_list, "github": github_annotations, "sarif": sarif_log}
"""The formats of diagnostics that programs read, without their files."""
