"""The words for severity in contracts, as severities of DQL."""

from __future__ import annotations

from dqx_airflow.values import Severity

_WORDS = {
    **dict.fromkeys(("p0", "critical", "blocker", "fatal"), Severity.P0),
    **dict.fromkeys(("p1", "error", "high", "major"), Severity.P1),
    **dict.fromkeys(("p2", "warning", "warn", "medium", "minor"), Severity.P2),
    **dict.fromkeys(("p3", "info", "low", "informational", "notice"), Severity.P3),
}


def severity_of(word: str | None) -> Severity | None:
    """The severity for a word; None for no word, and for an unknown one."""
    return _WORDS.get(word.strip().lower()) if word else None
