"""Time limits, which apply in the nightly lane only, where nothing else runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

_JUDGED: list[bool] = [False]


def judge_times(wanted: bool) -> None:
    """Sets for this run whether time limits apply."""
    _JUDGED[0] = wanted


def is_in_time(took_s: float, limit_s: float) -> bool:
    return not _JUDGED[0] or took_s < limit_s


@contextmanager
def at_most(limit_s: float) -> Iterator[None]:
    """Fails if the block takes longer than these seconds on the clock; mark the test `timing`."""
    began = time.monotonic()
    yield
    took_s = time.monotonic() - began
    assert is_in_time(took_s, limit_s), f"{took_s:.1f} s, and {limit_s} s are allowed"
