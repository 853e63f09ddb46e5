"""Time limits, which apply in the nightly lane only, where nothing else runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

_JUDGED: list[bool] = [False]


def judge_times(wanted: bool) -> None:
    """Says for this run whether what takes too long is an error."""
    _JUDGED[0] = wanted


def is_in_time(took_s: float, limit_s: float) -> bool:
    return not _JUDGED[0] or took_s < limit_s


@contextmanager
def at_most(limit_s: float) -> Iterator[None]:
    """What happens inside takes less than these seconds on the clock; mark the test `timing`."""
    began = time.monotonic()
    yield
    took_s = time.monotonic() - began
    assert is_in_time(took_s, limit_s), f"{took_s:.1f} s, and {limit_s} s are allowed"
