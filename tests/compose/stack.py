"""`docker-compose.yaml` as Compose reads it, with the defaults of its variables."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docker-compose.yaml").read_text(encoding="utf-8")

_VARIABLE = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<name>\w+)(?::-(?P<default>[^}]*))?\})")


@dataclass(frozen=True)
class Variable:
    """A variable of the file; `default` is None where it has none."""

    name: str
    default: str | None


def variables() -> list[Variable]:
    found = _VARIABLE.finditer(TEXT)
    return [Variable(item["name"], item["default"]) for item in found if item["name"]]


@cache
def stack() -> Any:
    """The document, interpolated: every variable has its default, `$$` is a dollar."""
    return _interpolated(yaml.safe_load(TEXT))


def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = stack()["services"]
    return found


def _interpolated(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _interpolated(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_interpolated(item) for item in value]
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: found["dollar"] or found["default"] or "", value)
    return value
