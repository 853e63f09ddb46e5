"""The exceptions of the project: one base class, few subclasses, each carrying data.

Diagnostics about sources are values (see `diagnostics`), not exceptions. An exception stops a gate.
The operators convert these exceptions to exceptions of Airflow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dqx_airflow.diagnostics.diagnostic import Diagnostic


def first_line(error: BaseException) -> str:
    r"""The first line of the message of an exception, or else its type: Java's messages have pages.

    >>> first_line(ValueError("a\nb")), first_line(TimeoutError())
    ('a', 'TimeoutError')
    """
    return (str(error).strip() or type(error).__name__).splitlines()[0]


@dataclass
class DqxError(Exception):
    """The base class: `problem` says what is wrong, `hint` how to fix it."""

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
    """There is no connection to Spark, or it was lost."""


class StoreError(DqxError):
    """The results store cannot be read or written."""


class NoStoreError(StoreError):
    """There is no results store at the root that was given."""


class DeadlineError(DqxError):
    """The gate exceeded its time limit: there is no report."""


class PromotionError(DqxError):
    """Validated rows cannot be promoted at the moment: the gate then has no report."""


class UnverifiedError(DqxError):
    """The receipts do not confirm that this version passed its gates."""


class RegistryError(DqxError):
    """The registry of contracts cannot be read or written."""


class RequestError(DqxError):
    """A call or a gate request is invalid."""


@dataclass
class SourceError(DqxError):
    """A suite has errors. `diagnostics` holds all of them, in source order."""

    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass
class ChangeRefusedError(RequestError):
    """A change of a suite is not allowed. `diagnostics` say why, each with its position."""

    diagnostics: tuple[Diagnostic, ...] = ()


class UpstreamFailure(DqxError):  # noqa: N818 (as the language's own specification has it)
    """The suite was not run on a date, because a checkpoint before it had failed."""


class NoCounterpartError(DqxError):
    """A rule, an expression or a file has no equivalent in the target language. `problem` says why,
    in words that follow its name."""
