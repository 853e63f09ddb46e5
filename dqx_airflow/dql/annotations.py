"""The annotations of the language: what each may stand above, and what it takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.diagnostics.nearest import did_you_mean
from dqx_airflow.dql import nodes

ANNOTATIONS: dict[str, tuple[str, ...]] = {
    "experimental": (),
    "required": (),
    "cost": ("false_positive", "false_negative"),
    "human_review": (),
    "auto_approve": (),
}
"""The annotations of an assertion and the arguments that each takes."""

SUITE_ANNOTATIONS: dict[str, tuple[str, ...]] = {"require_history": ()}

PROFILE_ANNOTATIONS: dict[str, tuple[str, ...]] = {"allow_required": ()}

_ANNOTATED = {
    "an assertion": ANNOTATIONS,
    "a profile": PROFILE_ANNOTATIONS,
    "a suite": SUITE_ANNOTATIONS,
}


def check_annotation(
    annotation: nodes.Annotation, known: Mapping[str, tuple[str, ...]], place: str
) -> Iterator[Diagnostic]:
    """What is wrong with an annotation.

    :param known: the annotations of the place where it stands, which is `place`.
    """
    name = annotation.name
    if name.text not in known:
        message = f"unknown annotation '@{name.text}'"
        help_line = did_you_mean(name.text, known)
        for other, annotations in _ANNOTATED.items():
            if name.text in annotations:
                message = f"'@{name.text}' belongs to {other}, not to {place}"
                help_line = f"write it above {other}, or remove it"
        yield Diagnostic(message, name.span, code="E012", help=help_line)
        return
    allowed = known[name.text]
    for argument, value in annotation.arguments:
        if argument.text not in allowed:
            message = f"@{name.text} has no argument '{argument.text}'"
            help_line = did_you_mean(argument.text, allowed)
            yield Diagnostic(message, argument.span, code="E012", help=help_line)
        elif not isinstance(value, nodes.Number):
            yield Diagnostic("a cost is a number", value.span, code="E107")
