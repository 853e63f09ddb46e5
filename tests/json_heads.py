"""All JSON about a gate begins with the same keys, whichever interface prints it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dqx_airflow.values.output_form import HEAD


def require_same_head(found: Any) -> None:
    """Checks each object in JSON at any depth: of one about a gate the keys of `HEAD` come first,
    in their order, and of one about a run of a gate all that identify its slice."""
    wrong = list(_wrong_heads(found, ""))
    assert wrong == [], wrong


def _wrong_heads(found: Any, path: str) -> Iterator[str]:
    if isinstance(found, list):
        for item in found:
            yield from _wrong_heads(item, f"{path}[]")
    if not isinstance(found, dict):
        return
    keys = [*found]
    if "gate" in keys and not isinstance(found["gate"], dict):
        first = [key for key in HEAD if key in keys]
        if keys[: len(first)] != first:
            yield f"{path}: {keys} does not begin with {first}"
        if "run_id" in keys and not {"date", "map_index"} <= {*keys}:
            yield f"{path}: {keys} has not the whole slice of its run"
    for key, value in found.items():
        yield from _wrong_heads(value, f"{path}.{key}")
