"""The total time that a gate waits for lineage, whatever the other side does. Standard library
only.

Calls run in a thread that ends with the process: no socket timeout limits the lookup of a host
name, a response that arrives byte by byte, or an absent broker.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

_LEAST_S = 0.01


class UnfinishedError(Exception):
    """No response in time."""


class ExhaustedError(Exception):
    """Not tried: the time for lineage is over."""


@dataclass(slots=True)
class TimeBudget:
    """`total_s` is the time in seconds for all calls together, `each_s` the maximum for one."""

    total_s: float
    each_s: float = float("inf")
    spent_s: float = 0.0

    @property
    def left_s(self) -> float:
        return max(self.total_s - self.spent_s, 0.0)

    @property
    def is_over(self) -> bool:
        return self.left_s < _LEAST_S

    def wait_for(self, call: Callable[[], T], *, share: float = 1.0) -> T:
        """What `call` returns or raises.

        :param share: the maximum share of the remaining time.
        :raises ExhaustedError: there is no time left.
        :raises UnfinishedError: it takes longer. It continues in its thread: what it sends may
            arrive after all, and once more from the spool.
        """
        if self.is_over:
            raise ExhaustedError(f"not tried: the {self.total_s:g} s for lineage are used up")
        limit_s = min(self.left_s * share, self.each_s)
        outcome: list[T] = []
        failure: list[Exception] = []

        def run() -> None:
            try:
                outcome.append(call())
            except Exception as error:
                failure.append(error)

        thread = threading.Thread(target=run, name="dqx-lineage", daemon=True)
        began = time.monotonic()
        thread.start()
        thread.join(limit_s)
        self.spent_s += time.monotonic() - began
        if failure:
            raise failure[0]
        if not outcome:
            raise UnfinishedError(f"no response within {limit_s:.2g} s")
        return outcome[0]
