"""Documents of YAML or JSON with values that nobody expects, at places that nobody thought of."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import yaml
from hypothesis import strategies as st

ODD_VALUES: list[Any] = [
    *(10**330, -(10**330), float("nan"), float("-inf"), 1e308, 0, -1, 2.5, True, False, None),
    *([], {}, [None], [[]], [{}], {"a": None}, {1: {2: 3}}, date(1, 1, 1), datetime(9999, 12, 31)),
    *("", " ", "\n\n", "x" * 5000, "ß", "İ", "😀", "%%", "= 1", "'; drop", "{{ x }}", "null"),
    *("${X}", "${X:-}", "$", "${", "[", "(?P<a", "a{999999999}", "\\", "1e999", "0x10", "1_000"),
    *("2024-13-45", "P1Y", "99999999d", "-1d"),
]


def places_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [path, *(place for key, item in inner for place in places_in(item, (*path, key)))]


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


@st.composite
def with_odd_values(draw: Callable[..., Any], document: Any) -> Any:
    """The document, with one to four of its parts replaced."""
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.sampled_from(places_in(document)))
        document = replaced(document, place, draw(st.sampled_from(ODD_VALUES)))
    return document


def text_of(document: Any, ending: str) -> str:
    """The text of a file with this ending, such as `.json`."""
    if ending == ".json":
        return json.dumps(document, default=str)
    return yaml.safe_dump(document, allow_unicode=True)
