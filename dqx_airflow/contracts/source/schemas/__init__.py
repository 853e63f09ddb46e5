"""The JSON Schemas of dialects that do not provide one."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def load_schema(name: str) -> dict[str, Any]:
    """The schema in the file `name.schema.json` of this folder."""
    text = files(__package__).joinpath(f"{name}.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
