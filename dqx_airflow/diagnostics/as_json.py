"""Diagnostics as JSON: the values as they are, for scripts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.diagnostics.json_text import json_text


def json_list(diagnostics: Iterable[Diagnostic]) -> str:
    """An array of objects with `level`, `code`, `message`, `span`, `label`, `related`, `help`."""
    return json_text(
        [{"level": diagnostic.level.value, **asdict(diagnostic)} for diagnostic in diagnostics]
    )
