"""The result of the conformance cases on an engine: the proof, and the differences."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

ERROR = "error: "
"""The prefix of the value of a claim that ended in an error."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A claim of a conformance case whose value on an engine differs from the expected one.

    `due` is the expected value, `found` the value on the engine.
    """

    case: str
    claim: str
    due: str
    found: str

    @property
    def is_error(self) -> bool:
        """True if the engine returned an error instead of a value: an error is no wrong verdict."""
        return self.found.startswith(ERROR)


PROVE_AGAIN = "prove again"
"""The label of an engine whose stored proof is about another version or other settings."""


@dataclass(frozen=True, slots=True)
class EngineProof:
    """The result of all conformance cases on one engine.

    `key` is the digest of what identifies the engine: the version and build of Spark, the kind of
    session, the plugins and settings that may change a value, and our version. `engine` contains
    the same as JSON. `agreeing` is the number of claims with the expected value. `doubts` are the
    traits of requests that gates do not judge on this engine. `untried` are the reasons why claims
    were not tried, each with the number of these claims.
    """

    key: str
    engine: str
    spark_version: str
    at: datetime
    agreeing: int
    differences: tuple[Difference, ...]
    doubts: tuple[str, ...]
    untried: tuple[tuple[str, int], ...] = ()

    @property
    def mark(self) -> str:
        """The proof in one line of a report: `proven on 2026-11-24: 1,538 cases agree`, and the
        numbers of other values, errors and untried cases, if there are any."""
        text = f"proven on {self.at.date()}: {self.agreeing:,} cases agree"
        errors = sum(difference.is_error for difference in self.differences)
        others = len(self.differences) - errors
        text += f", {others:,} have other values" if others else ""
        text += f", {errors:,} are errors" if errors else ""
        untried = sum(number for _, number in self.untried)
        return text + (f", {untried:,} were not tried" if untried else "")
