"""The text of a suite, and its text after changes: every other byte stays."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from textwrap import indent

from dqx_airflow.dql import nodes
from dqx_airflow.dql.constants import settle
from dqx_airflow.dql.printer import show
from dqx_airflow.tuning.form_edits import form_edits
from dqx_airflow.tuning.proposals import ProposedForm
from dqx_airflow.tuning.tunables import literal_of
from dqx_airflow.values import Span

_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class SuiteText:
    """`read` parses a text to a suite, and raises SourceError if it has errors."""

    text: str
    suite: nodes.Suite
    read: Callable[[str], nodes.Suite]

    def changed(self, profile: str | None = None, form: ProposedForm | None = None) -> nodes.Suite:
        """The suite with an additional profile, or with another form of an assertion.

        :raises SourceError: the resulting suite has errors.
        :raises RequestError: it does not have the assertion of the form.
        """
        return self.read(with_edits(self.text, self.suite, {}, profile, form))


def with_edits(
    text: str,
    suite: nodes.Suite,
    values: Mapping[str, float],
    profile: str | None = None,
    form: ProposedForm | None = None,
) -> str:
    """The text of a suite with other values of its tunables, an additional profile, and another
    form of an assertion.

    :raises RequestError: the suite does not have the assertion of the form.
    """
    settled = settle(suite.constants)
    edits = [
        (
            constant.value.span,
            show(literal_of(settled[constant.name.text], values[constant.name.text])),
        )
        for constant in suite.constants
        if constant.name.text in values
    ]
    if profile is not None:
        end = suite.span
        line, column = end.end_line, end.end_column - 1
        span = Span(end.file, line, column, line, column)
        edits.append((span, f"\n{indent(profile.strip(), '    ')}\n"))
    if form is not None:
        edits += form_edits(text, suite, form)
    return replaced(text, edits)


def replaced(text: str, edits: Iterable[tuple[Span, str]]) -> str:
    """The text with replacements for some ranges."""
    starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
    for span, literal in sorted(edits, key=lambda edit: (edit[0].line, edit[0].column))[::-1]:
        start = starts[span.line - 1] + span.column - 1
        end = starts[span.end_line - 1] + span.end_column - 1
        text = text[:start] + literal + text[end:]
    return text
