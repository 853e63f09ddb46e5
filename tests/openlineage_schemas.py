"""Validates events against the published OpenLineage schemas, without a network."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from openlineage.client.event_v2 import RunEvent
from openlineage.client.serde import Serde

_SCHEMAS = Path(__file__).with_name("lineage") / "openlineage"


@cache
def validator() -> ModuleType:
    """The validator as a module."""
    spec = importlib.util.spec_from_file_location("openlineage_validate", _SCHEMAS / "validate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@cache
def _schemas() -> Any:
    return validator().Spec([_SCHEMAS])


def problems(events: Sequence[RunEvent | dict[str, Any]], *, lifecycle: bool = True) -> list[str]:
    """Errors and warnings, those about the order of events included."""
    checks = validator()
    checker = checks.Checker(_schemas(), strict=True)
    for number, event in enumerate(events):
        text = json.dumps(event) if isinstance(event, dict) else Serde.to_json(event)
        # As the validator reads a file: no NaN, no key twice.
        checker.event(f"event {number}", checks.loads(text))
    if lifecycle:
        checker.lifecycle()
    found: list[str] = checker.report.errors + checker.report.warnings
    return found
