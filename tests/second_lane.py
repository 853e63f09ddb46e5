"""Which inputs of a test wait for the second lane: CONTRIBUTING.md says why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def few_first(inputs: Iterable[Any], few: int) -> list[Any]:
    """All inputs of a test. The default lane has the first few, the second lane the others, too.

    A tuple holds the values of several arguments.
    """
    kept = list(inputs)
    return [*kept[:few], *(_in_second_lane(one) for one in kept[few:])]


def _in_second_lane(one: Any) -> Any:
    values = one if isinstance(one, tuple) else (one,)
    return pytest.param(*values, marks=pytest.mark.slow)
