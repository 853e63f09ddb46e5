"""Diagnostics as JSON: the values as they are, for scripts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict

from dqx_airflow.diagnostics.diagnostic import Diagnostic


def json_list(diagnostics: Iterable[Diagnostic]) -> str:
    """An array of objects with `level`, `code`, `message`, `span`, `label`, `related`, `help`."""
    return json.dumps(
        [{"level": diagnostic.level.value, **asdict(diagnostic)} for diagnostic in diagnostics],
        indent=2,
        ensure_ascii=False,
    )
