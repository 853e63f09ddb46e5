"""Checks the rules of profiles: what they select, and what they must not change."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from fractions import Fraction

from dqx_airflow.diagnostics.diagnostic import Diagnostic, Related
from dqx_airflow.diagnostics.nearest import did_you_mean
from dqx_airflow.dql import nodes
from dqx_airflow.dql.checks.profile_selectors import SelectableAssertions
from dqx_airflow.exact import exact_text
from dqx_airflow.values import Severity, Span

_MOST_NAMED = 10
"""The maximum number of assertions that a finding names; it counts the others."""

_LEAST_FACTOR, _LARGEST_FACTOR = Fraction(1, 10), Fraction(10)
"""Beyond these bounds, a rule that scales is close to one that disables."""

_SEVERITIES = tuple(severity.value for severity in Severity)


def check_rules(
    profile: nodes.Profile, selection: SelectableAssertions, shares: Collection[int]
) -> Iterator[Diagnostic]:
    """The diagnostics of the rules of a profile.

    :param shares: the ids of the scaled assertions that are about a share.
    """
    for rule in profile.rules:
        yield from _check_rule(rule, profile, selection, shares)
    disabled = {
        id(assertion)
        for rule in profile.rules
        if isinstance(rule, nodes.Disable)
        for assertion in selection.of(rule.selector)
    }
    if disabled and len(disabled) == selection.size:
        message = f"profile '{profile.name.value}' disables every assertion of the suite"
        help_line = "keep some of them: a gate that checks nothing is broken"
        yield Diagnostic(message, profile.name.span, code="W014", help=help_line)


def _check_rule(
    rule: nodes.Rule,
    profile: nodes.Profile,
    selection: SelectableAssertions,
    shares: Collection[int],
) -> Iterator[Diagnostic]:
    selector = rule.selector
    if isinstance(rule, nodes.Downgrade) and rule.severity.text not in _SEVERITIES:
        message = f"unknown severity '{rule.severity.text}'"
        help_line = "severities are P0 (worst), P1, P2 and P3"
        yield Diagnostic(message, rule.severity.span, code="E004", help=help_line)
    if isinstance(rule, nodes.Scale) and rule.factor <= 0:
        # Multiplied by zero, a null rate or a change would pass for any data.
        message = "a factor must be above 0"
        help_line = "write `disable` to turn assertions off"
        yield Diagnostic(message, rule.span, code="E109", help=help_line)
    matched = selection.of(selector)
    checks = selection.names("check")
    if selector.check is not None and selector.check.value not in checks:
        message = f"unknown check '{selector.check.value}'"
        hint = did_you_mean(selector.check.value, checks)
        yield Diagnostic(message, selector.check.span, code="W002", help=hint)
    elif not matched:
        message = f"no assertion has the {selector.kind} '{selector.name.value}'"
        if selector.kind == "check":
            message = f"no check has assertions named '{selector.name.value}'"
        if selector.check is not None:
            message = f"check '{selector.check.value}' has no assertion '{selector.name.value}'"
        hint = did_you_mean(selector.name.value, selection.names(selector.kind))
        yield Diagnostic(message, selector.span, code="W002", help=hint)
    match rule:
        case nodes.Downgrade():
            yield from _check_downgrade(rule, matched)
        case nodes.Disable():
            if not profile.allows_required:
                yield from _check_disabled(rule, selection.required(selector))
        case nodes.Scale():
            yield from _check_scaled(rule, matched, selection.required(selector), shares)


def _check_disabled(rule: nodes.Disable, required: list[nodes.Assertion]) -> Iterator[Diagnostic]:
    help_line = "remove the rule, or write @allow_required above the profile"
    for assertion in required[:_MOST_NAMED]:
        is_marked = assertion.is_annotated("required")
        related = (Related(_place_of_requirement(assertion), "required here"),)
        message = f"this rule disables {_name_of(assertion)}, which is "
        message += "@required" if is_marked else "required, since it is P0"
        yield Diagnostic(message, rule.selector.span, code="E304", related=related, help=help_line)
    if (more := len(required) - _MOST_NAMED) > 0:
        message = f"this rule disables {more} more required assertions"
        yield Diagnostic(message, rule.selector.span, code="E304", help=help_line)


def _check_scaled(
    rule: nodes.Scale,
    matched: list[nodes.Assertion],
    required: list[nodes.Assertion],
    shares: Collection[int],
) -> Iterator[Diagnostic]:
    """Reports a rule that scales only shares, or that almost disables a required assertion."""
    if rule.factor <= 0:
        return
    if matched and all(id(assertion) in shares for assertion in matched):
        first = matched[0]
        is_composed = isinstance(first.claim, nodes.Composite)
        kind, scaled = ("several claims", "claims") if is_composed else ("a share", "shares")
        related = (Related(first.claim.span, kind),)
        subject = f"{_name_of(first)}, which is {kind}" if len(matched) == 1 else "only shares"
        yield Diagnostic(
            f"this rule scales {subject}",
            rule.selector.span,
            code="E305",
            related=related,
            help=f"{scaled} cannot be scaled: remove the rule, or write `downgrade` or `disable`",
        )
        return
    if _LEAST_FACTOR <= rule.factor <= _LARGEST_FACTOR:
        return
    for assertion in (
        assertion for assertion in required[:_MOST_NAMED] if id(assertion) not in shares
    ):
        yield Diagnostic(
            f"the factor {exact_text(rule.factor)} nearly disables "
            f"{_name_of(assertion)}, which is required",
            rule.span,
            code="W013",
            related=(Related(_place_of_requirement(assertion), "required here"),),
            help="write a factor from 0.1x to 10x",
        )


def _name_of(assertion: nodes.Assertion) -> str:
    return f"'{assertion.name.value}'" if assertion.name else "an unnamed assertion"


def _place_of_requirement(assertion: nodes.Assertion) -> Span:
    """The position at which an assertion is marked as required."""
    for annotation in assertion.annotations:
        if annotation.name.text == "required":
            return annotation.span
    return assertion.severity.span if assertion.severity else assertion.span


def _check_downgrade(rule: nodes.Downgrade, matched: list[nodes.Assertion]) -> Iterator[Diagnostic]:
    wanted = rule.severity.text
    for assertion in matched:
        severity = assertion.severity
        current = nodes.DEFAULT_SEVERITY.value if severity is None else severity.text
        if {wanted, current} <= set(_SEVERITIES) and wanted < current:
            message = f"this rule raises {_name_of(assertion)} from {current} to {wanted}"
            place = assertion.claim.span if severity is None else severity.span
            related = (Related(place, f"{current} by default" if severity is None else current),)
            help_line = (
                f"a downgrade lowers the severity: write {current} or lower, or remove the rule"
            )
            yield Diagnostic(
                message, rule.severity.span, code="W010", related=related, help=help_line
            )
