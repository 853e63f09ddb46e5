"""Whether instances of a mapped gate would replace each other's promoted rows."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_DIFFERS = re.compile(r"\b(ti|task_instance|map_index|task|expanded_ti_count|macros)\b")
"""What may make a template differ between instances."""


def target_mistakes(instances: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The first two instances that promote to the same place for the same date: the second of them
    would be refused when it runs.

    :param instances: the arguments of each instance.
    """
    promoted_by: dict[tuple[str, str, str], int] = {}
    for number, arguments in enumerate(instances):
        part, date = _fixed(arguments.get("promote_slice")), _fixed(arguments.get("date"))
        if part is None or date is None:
            continue
        for target in _targets(arguments.get("promote_to")):
            first = promoted_by.setdefault((target, part, date), number)
            if first != number:
                yield (
                    f"the instances {first} and {number} would both be promoted to {target} for "
                    "the same date, and the second is refused: give each its own promote_to, or "
                    'its own promote_slice, such as {"store": "zurich"}'
                )
                return


def _targets(value: Any) -> list[str]:
    """The places that are the same text in each instance."""
    places = value.values() if isinstance(value, Mapping) else [value]
    paths = [os.fspath(place) for place in places if isinstance(place, str | os.PathLike)]
    return [place for place in paths if place and not _DIFFERS.search(place)]


def _fixed(value: Any) -> str | None:
    """A value as a string; None if it is only known when the instance runs."""
    from dqx_airflow.operators.gate_arguments import has_open

    text = repr(value)
    if isinstance(value, str) and "{{" in value:
        return None if _DIFFERS.search(value) else text
    return None if has_open(value) else text
