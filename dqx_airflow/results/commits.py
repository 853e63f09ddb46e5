"""Commits to Delta tables that several processes write concurrently."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from deltalake.exceptions import CommitFailedError

T = TypeVar("T")

WAITS_S = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds between two attempts at a commit, each varied by half."""


def committed(commit: Callable[[], T], waits_s: Sequence[float] = WAITS_S) -> T:
    """The result of `commit`, which is repeated if another process was first.

    Delta orders writers by the number of a version: a writer that comes second is refused and has
    to read the table again (Delta protocol, "Optimistic concurrency control").

    :raises CommitFailedError: another process was first every time.
    """
    for wait_s in waits_s:
        try:
            return commit()
        except CommitFailedError:
            time.sleep(wait_s * random.uniform(0.5, 1.5))  # noqa: S311 (spreads the writers)
    return commit()
