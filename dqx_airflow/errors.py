"""The exceptions of the project: one root, few branches, each carrying data.

Diagnostics about sources are values (see `diagnostics`), not exceptions. What is raised is what
stops a gate. The operators wrap these at their border into exceptions that Airflow knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dqx_airflow.diagnostics.diagnostic import Diagnostic


def first_line(error: BaseException) -> str:
    """The first line of what an exception says, or else its type: messages of Java go on for pages.

    >>> first_line(ValueError("a\\nb")), first_line(TimeoutError())
    ('a', 'TimeoutError')
    """
    return (str(error).strip() or type(error).__name__).splitlines()[0]


@dataclass
class DqxError(Exception):
    """The root: `problem` says what is wrong, `hint` what to do about it."""

    problem: str
    hint: str = ""

    @property
    def in_one_line(self) -> str:
        return f"{self.problem}; {self.hint}" if self.hint else self.problem

    def __str__(self) -> str:
        return f"{self.problem}\n  help: {self.hint}" if self.hint else self.problem


class DatasetError(DqxError):
    """A dataset cannot be read: no such path, unknown format, a feature that needs a package."""


class SparkError(DqxError):
    """There is no way to a Spark session, or it was lost."""


class StoreError(DqxError):
    """The results store cannot be read or written."""


class DeadlineError(DqxError):
    """The gate took longer than it may: there is no report."""


class PromotionError(DqxError):
    """Rows that were validated cannot be promoted as it is now: the gate has no report then."""


class RegistryError(DqxError):
    """The registry of contracts cannot be read or written."""


class RequestError(DqxError):
    """A call or a gate request that does not make sense."""


@dataclass
class SourceError(DqxError):
    """A suite with errors. `diagnostics` holds all of them, in source order."""

    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass
class ChangeRefusedError(RequestError):
    """A change of a suite that is not allowed. `diagnostics` say why, each with its place."""

    diagnostics: tuple[Diagnostic, ...] = ()


class UpstreamFailure(DqxError):  # noqa: N818 (as the language's own specification has it)
    """The suite was not run on a date, since something before it had failed."""
