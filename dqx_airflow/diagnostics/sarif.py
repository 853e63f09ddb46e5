"""Diagnostics as SARIF 2.1.0, for code hosts and editors."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from dqx_airflow import __version__
from dqx_airflow.diagnostics.codes import CODES
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.diagnostics.pages import page, reason
from dqx_airflow.values import Span

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif_log(diagnostics: Iterable[Diagnostic]) -> str:
    """A SARIF log with one run; its rules are the codes that occur."""
    listed = list(diagnostics)
    codes = sorted({diagnostic.code for diagnostic in listed if diagnostic.code})
    driver = {
        "name": "dql",
        "version": __version__,
        "rules": [_rule(code) for code in codes],
    }
    results = [_result(diagnostic) for diagnostic in listed]
    run = {"tool": {"driver": driver}, "results": results, "columnKind": "unicodeCodePoints"}
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(code: str) -> dict[str, Any]:
    return {
        "id": code,
        "shortDescription": {"text": CODES[code]},
        "fullDescription": {"text": reason(code)},
        "help": {"text": page(code), "markdown": page(code)},
    }


def _result(diagnostic: Diagnostic) -> dict[str, Any]:
    text = diagnostic.message + (f"\nhelp: {diagnostic.help}" if diagnostic.help else "")
    result: dict[str, Any] = {
        "ruleId": diagnostic.code,
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
