"""Limits how long calls wait for a Spark Connect server that does not respond.

A separate file, since its imports need a client of Spark Connect.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql.connect.client.retries import DefaultPolicy, RetryPolicyState

# About a minute.
_RETRIES = 7
_LONGEST_WAIT_MS = 20_000


class LimitedRetries(DefaultPolicy):  # type: ignore[misc]
    """A retry policy that waits for a server for about a minute; after that, all further calls fail
    at once.

    By default each call waits ten minutes, even a call that only releases what the server has lost.

    """

    def __init__(self) -> None:
        super().__init__(max_retries=_RETRIES, max_backoff=_LONGEST_WAIT_MS)
        self.is_lost = False

    def can_retry(self, e: BaseException) -> bool:
        """True if the server may respond later."""
        return not self.is_lost and bool(super().can_retry(e))

    def to_state(self) -> RetryPolicyState:
        """The retry state of one call: the attempts that are left, and the next delay."""
        return _RetriesOfCall(self)


class _RetriesOfCall(RetryPolicyState):  # type: ignore[misc]
    def next_attempt(self, *about: Any) -> int | None:
        wait_ms: int | None = super().next_attempt(*about)
        if wait_ms is None and isinstance(self.policy, LimitedRetries):
            self.policy.is_lost = True
        return wait_ms
