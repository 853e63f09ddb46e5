"""The diagnostic value. It depends on nothing but `values`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from dqx_airflow.values import Span


class Level(str, Enum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Related:
    """A second relevant position, such as the first definition of a repeated name."""

    span: Span
    label: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding about a source.

    `label` is next to the carets, `notes` are pairs such as ("expected", "== 0") below the excerpt,
    `help` says what to type instead. `code` is None for run-time findings, of which `is_mild` marks
    warnings.
    """

    message: str
    span: Span
    code: str | None = None
    label: str = ""
    related: tuple[Related, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    help: str | None = None
    is_mild: bool = False

    @property
    def level(self) -> Level:
        is_warning = self.is_mild or (self.code or "E").startswith("W")
        return Level.WARNING if is_warning else Level.ERROR


def errors_of(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Those that are errors, in order."""
    return tuple(diagnostic for diagnostic in diagnostics if diagnostic.level is Level.ERROR)
