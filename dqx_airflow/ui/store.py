"""The results store for this server: a response within seconds or none, and never an exception.

The pages work without it. An API server often lacks the credentials of the storage, and an
unreachable store may take minutes to fail.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from dqx_airflow.errors import DqxError

if TYPE_CHECKING:
    from dqx_airflow.results.query import StoredResults

log = logging.getLogger(__name__)

T = TypeVar("T")

PATIENCE_S = 8.0
"""The time that a page waits for the store. The first response of a server includes its imports."""

_REST_S = 30.0
_LOOKS_AGAIN_S = 300.0

UNKNOWN = (
    "This server has no results store: set results_root or results_conn_id in section [dqx] of "
    "its configuration to see all assertions, their history and failing rows."
)
UNREACHABLE = (
    "The results store did not respond, so this page shows only what the task stored in Airflow. "
    "See the log of the API server for the cause."
)
READ_ONLY = (
    "This server cannot write to the results store, so labels and decisions are turned off here: "
    "use `dql tune label` and `dql tune review`. See the log of the API server for the cause."
)
UNSURE = (
    "The results store did not respond in time. It may or may not have been stored: go "
    "back, reload the page, and try again if it is not shown. It is never stored twice."
)


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """The response of the store; `problem` says why there is none."""

    found: tuple[T, ...] = ()
    problem: str | None = None


@dataclass(slots=True)
class StoreClient:
    """Queries the store below `root`. After a query without a response it pauses for a while."""

    root: str | None
    # They may contain secrets.
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    _store: StoredResults | None = None
    _rests_until: float = 0.0
    _is_writable: bool = False
    _looks_again: float = 0.0
    _pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(4, thread_name_prefix="dqx-results"), repr=False
    )

    def ask(self, question: Callable[[StoredResults], tuple[T, ...]]) -> Answer[T]:
        """Runs a query; returns its rows, or the problem."""
        if self.root is None:
            return Answer(problem=UNKNOWN)
        if time.monotonic() < self._rests_until:
            return Answer(problem=UNREACHABLE)
        try:
            response = self._pool.submit(lambda: question(self._open()))
            return Answer(response.result(timeout=PATIENCE_S))
        except TooLate:
            log.warning("the results store %s did not respond within %g s", self.root, PATIENCE_S)
        except (DqxError, ImportError) as error:
            log.warning("the results store %s: %s", self.root, error)
        self._rests_until = time.monotonic() + _REST_S
        return Answer(problem=UNREACHABLE)

    def read_only(self) -> str | None:
        """The reason why the store is read-only, None if it is not; tested every five minutes."""
        if self.root is None:
            return UNKNOWN
        if time.monotonic() >= self._looks_again:
            self._is_writable = self._problem_of(self._check_writable) is None
            self._looks_again = time.monotonic() + _LOOKS_AGAIN_S
        return None if self._is_writable else READ_ONLY

    def change(self, action: Callable[[StoredResults], object]) -> str | None:
        """Runs an action that writes below the root; returns why it failed, None on success."""
        if self.root is None:
            return UNKNOWN
        return self._problem_of(action)

    def _problem_of(self, action: Callable[[StoredResults], object]) -> str | None:
        try:
            self._pool.submit(lambda: action(self._open())).result(timeout=PATIENCE_S)
        except TooLate:
            log.warning("the results store %s was not written within %g s", self.root, PATIENCE_S)
            return UNSURE
        except (DqxError, ImportError) as error:
            log.warning("the results store %s: %s", self.root, error)
            return READ_ONLY
        return None

    @staticmethod
    def _check_writable(results: StoredResults) -> None:
        from dqx_airflow.results.store import OF_PEOPLE, ResultsStore

        ResultsStore(results.root, results.storage_options).check_writable(OF_PEOPLE)

    def _open(self) -> StoredResults:
        from dqx_airflow.results.query import StoredResults

        if self._store is None:
            assert self.root is not None
            self._store = StoredResults(self.root, self.storage_options)
        return self._store


_CLIENTS: dict[object, StoreClient] = {}


def client_of(root: str | None, storage_options: Mapping[str, str] | None = None) -> StoreClient:
    """The client of a root: shared by all requests of this process, as long as its storage options
    are the same."""
    key = (root, *sorted((storage_options or {}).items()))
    return _CLIENTS.setdefault(key, StoreClient(root, storage_options))
