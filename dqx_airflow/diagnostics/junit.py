"""JUnit XML, which CI systems show as tests: of runs, of checked files and of mutations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias
from xml.sax.saxutils import quoteattr

from dqx_airflow.diagnostics.renderers import without_controls
from dqx_airflow.diagnostics.templates import filled
from dqx_airflow.values import Span

CaseKind: TypeAlias = Literal["failure", "error", "skipped", "system-out"]


@dataclass(frozen=True, slots=True)
class Case:
    """A test case; without a kind, it passed.

    `text` is below its message. `group` is its class, by default the name of its suite. `type` is
    the severity of a failure.
    """

    name: str
    kind: CaseKind | None = None
    message: str = ""
    text: str = ""
    type: str = ""
    span: Span | None = None
    group: str = ""


@dataclass(frozen=True, slots=True)
class CaseSuite:
    """Test cases with a common name, time and facts."""

    name: str
    cases: tuple[Case, ...]
    at: datetime | None = None
    facts: Mapping[str, str] = field(default_factory=dict)


def junit_xml(title: str, suites: Sequence[CaseSuite], *, seconds: float = 0.0) -> str:
    """The suites as one document.

    :param title: the command that made them.
    """
    values = {"suites": suites, "seconds": seconds, "quoted": _attribute, "plain": _in_xml}
    return filled(__package__, "junit.xml", title=title, **values)


def _in_xml(text: str) -> str:
    """The text without characters that XML does not allow."""
    return without_controls(text, keep="\t\n")


def _attribute(text: str) -> str:
    """The text in quotes, as the value of an attribute."""
    return quoteattr(_in_xml(text))
