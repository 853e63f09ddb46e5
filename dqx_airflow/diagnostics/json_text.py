"""JSON that is also safe to display: no character in it controls a terminal or reverses text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

_STEERING = re.compile(
    r"[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)


def json_text(value: Any, *, default: Callable[[Any], Any] | None = None) -> str:
    """The value as JSON: letters unchanged, control and bidirectional characters escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=default)
    return _STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
