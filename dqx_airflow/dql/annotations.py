"""The annotations of the language: the statements that each applies to, and its arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dqx_airflow.diagnostics.diagnostic import Diagnostic, did_you_mean
from dqx_airflow.dql import nodes
from dqx_airflow.limits import MOST_GROUPS

ANNOTATED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "assertion": {
        "experimental": (),
        "required": (),
        "cost": ("false_positive", "false_negative"),
        "human_review": (),
        "auto_approve": (),
        "max_groups": ("count",),
    },
    "profile": {"allow_required": ()},
    "suite": {"require_history": ()},
}
"""The annotations of each kind of statement, with the arguments that each takes."""

MODIFIERS: Mapping[str, str] = {
    "name": 'name "..."',
    "severity": "severity P1",
    "tag": "tags [name]",
    "tags": "tags [name]",
}
"""Modifiers after an assertion, by words that users mistake for annotations."""


def check_annotation(annotation: nodes.Annotation, annotated: str) -> Iterator[Diagnostic]:
    """Reports the mistakes in an annotation.

    :param annotated: the kind of statement below it, a key of `ANNOTATED`.
    """
    name = annotation.name
    known = ANNOTATED[annotated]
    if name.text not in known:
        message = f"unknown annotation '@{name.text}'"
        help_line = did_you_mean(name.text, known)
        for other, annotations in ANNOTATED.items():
            if name.text in annotations:
                message = f"'@{name.text}' is an annotation for {other}s, not for {annotated}s"
                help_line = "remove it, or move it to the right statement"
        if annotated == "assertion" and name.text in MODIFIERS:
            help_line = modifier_hint(name.text)
        yield Diagnostic(message, name.span, code="E012", help=help_line)
        return
    allowed = known[name.text]
    for argument, value in annotation.arguments:
        if argument.text not in allowed:
            message = f"@{name.text} has no argument '{argument.text}'"
            help_line = did_you_mean(argument.text, allowed)
            yield Diagnostic(message, argument.span, code="E012", help=help_line)
        elif name.text == "max_groups" and not _is_count(value):
            help_line = f"write a whole number from 1 to {MOST_GROUPS:,}"
            yield Diagnostic(
                "this is not a number of groups", value.span, code="E109", help=help_line
            )
        elif not isinstance(value, nodes.Number):
            yield Diagnostic("a cost must be a number", value.span, code="E107")


def modifier_hint(word: str) -> str:
    """The hint for an annotation with the name of a modifier, a key of `MODIFIERS`."""
    return f"write `{MODIFIERS[word]}` after the assertion"


def _is_count(value: nodes.Expression) -> bool:
    return (
        isinstance(value, nodes.Number)
        and value.unit is nodes.Unit.PLAIN
        and isinstance(value.value, int)
        and 1 <= value.value <= MOST_GROUPS
    )
