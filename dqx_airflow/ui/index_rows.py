"""The rows of an index, of datasets or of contracts, by the gates that they belong to: their state,
the search for words, and the filter by outcome."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from dqx_airflow.ui.board_page import STATES_WORST_FIRST, GateRow
from dqx_airflow.ui.responses import Filters


class IndexRow(Protocol):
    """A row of an index: `state` is the worst status of its gates, `texts` are searched."""

    @property
    def state(self) -> str: ...

    @property
    def texts(self) -> Sequence[str]: ...


_Row = TypeVar("_Row", bound=IndexRow)


@dataclass(frozen=True, slots=True)
class IndexFilters(Filters):
    """The filters of an index."""

    search: str = ""
    outcome: str = ""

    def matching(self, rows: Iterable[_Row]) -> list[_Row]:
        """The rows of the outcome that contain each of the words."""
        words = self.search.lower().split()
        return [
            row
            for row in rows
            if self.outcome in ("", row.state) and _has_words("\n".join(row.texts), words)
        ]


def _has_words(text: str, words: Sequence[str]) -> bool:
    lower = text.lower()
    return all(word in lower for word in words)


def outcomes_of(rows: Iterable[IndexRow]) -> list[str]:
    """The states among rows, worst first."""
    states = {row.state for row in rows}
    return [state for state in STATES_WORST_FIRST if state in states]


def last_run_of(gates: Iterable[GateRow]) -> datetime | None:
    """When one of the gates last ran; None if none has."""
    return max((gate.ran for gate in gates if gate.ran), default=None)
