"""The edits of a suite's text for another form of an assertion: its claim, the constants that it
needs, and unnecessary profiles. Every other byte stays."""

from __future__ import annotations

import re

from dqx_airflow.dql import nodes
from dqx_airflow.errors import RequestError
from dqx_airflow.tuning.proposals import ProposedForm
from dqx_airflow.values import Span

_LINE_END = re.compile(r"\r\n|\r|\n")


def form_edits(text: str, suite: nodes.Suite, form: ProposedForm) -> list[tuple[Span, str]]:
    """Replacements for ranges of the text.

    :raises RequestError: the suite does not have the assertion of the form.
    """
    lines = _LINE_END.split(text)
    end_of_line = ending[0] if (ending := _LINE_END.search(text)) else "\n"
    node = assertion_of(suite, form.check, form.assertion)
    if node is None or claim_text(text, node) != form.before:
        raise RequestError(
            f"'{form.assertion}' is no longer `{form.before}`",
            "reject the proposal and create a new one",
        )
    edits = [(node.claim.span, form.claim)]
    constants = {
        constant.name.text: constant
        for constant in suite.constants
        if constant.span.file == suite.span.file
    }
    replaced_constants = [constants[name] for name in form.replaces if name in constants]
    if form.constants:
        span = replaced_constants[0].span if replaced_constants else _before(suite, constants)
        pad = re.match(r"\s*", lines[span.line - 1])[0]  # type: ignore[index]
        added = f"{end_of_line}{pad}".join(form.constants)
        edits.append((span, added if replaced_constants else f"{added}{end_of_line}{pad}"))
    edits += [
        (_whole_lines(constant.span, lines), "")
        for constant in replaced_constants[bool(form.constants) :]
    ]
    edits += [
        (_whole_lines(profile.span, lines, with_comment=True), "")
        for profile in suite.profiles
        if profile.name.value in form.drops
    ]
    return edits


def assertion_of(suite: nodes.Suite, check: str, name: str) -> nodes.Assertion | None:
    """The assertion with a name in the file of the suite; None if a macro makes it, or if there is
    none."""
    matching = [
        node
        for owner in suite.checks
        if owner.name.value == check
        for node in owner.assertions
        if node.name is not None and node.name.value == name
    ]
    if len(matching) != 1 or matching[0].uses or matching[0].span.file != suite.span.file:
        return None
    return matching[0]


def claim_text(text: str, node: nodes.Assertion) -> str:
    """A claim as in the text, in one line."""
    span, lines = node.claim.span, _LINE_END.split(text)
    taken = lines[span.line - 1 : span.end_line]
    taken[-1] = taken[-1][: span.end_column - 1]
    taken[0] = taken[0][span.column - 1 :]
    return " ".join(" ".join(taken).split())


def _before(suite: nodes.Suite, constants: dict[str, nodes.Constant]) -> Span:
    """The position before the first constant; before the first check if there is none."""
    first = next(iter(constants.values()), suite.checks[0]).span
    return Span(first.file, first.line, first.column, first.line, first.column)


def _whole_lines(span: Span, lines: list[str], *, with_comment: bool = False) -> Span:
    """The lines of a range, with the comment directly above it; only the range if it shares its
    lines."""
    before, after = lines[span.line - 1][: span.column - 1], lines[span.end_line - 1]
    if before.strip() or after[span.end_column - 1 :].strip() or span.end_line >= len(lines):
        return span
    first = span.line
    while with_comment and first > 1 and lines[first - 2].lstrip().startswith("#"):
        first -= 1
    return Span(span.file, first, 1, span.end_line + 1, 1)
