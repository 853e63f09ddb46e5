"""Checks the rules of profiles: that they select assertions, and that they mute no required one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from fractions import Fraction
from typing import TypeAlias

from dqx_airflow.diagnostics.diagnostic import Diagnostic, Related, did_you_mean
from dqx_airflow.dql import nodes
from dqx_airflow.values import Severity, Span
from dqx_airflow.values.exact import Exact, exact, exact_text

_Handle: TypeAlias = tuple[str, str, str | None]
"""The parts of a selector: its kind, the name, and the check if it has one."""


class SelectableAssertions:
    """The assertions of a suite, indexed by the names of selectors."""

    def __init__(self, checks: Iterable[nodes.Check]) -> None:
        self._selected: dict[_Handle, list[nodes.Assertion]] = defaultdict(list)
        self._names: dict[str, dict[str, None]] = defaultdict(dict)
        self.size = 0
        """The number of all assertions."""
        for check in checks:
            self._names["check"][check.name.value] = None
            for assertion in check.assertions:
                self.size += 1
                for handle in _handles(check, assertion):
                    self._selected[handle].append(assertion)
                    self._names[handle[0]][handle[1]] = None

    def of(self, selector: nodes.Selector) -> list[nodes.Assertion]:
        """The assertions that a rule with this selector applies to."""
        return self._selected.get(_handle(selector), [])

    def required(self, selector: nodes.Selector) -> list[nodes.Assertion]:
        """The assertions behind a selector that a rule must not change, see `is_required`."""
        return [*filter(is_required, self.of(selector))]

    def names(self, kind: str) -> Collection[str]:
        """All possible names in a selector of this kind."""
        return self._names[kind]


def selects(selector: nodes.Selector, check: nodes.Check, assertion: nodes.Assertion) -> bool:
    """True if a rule with this selector applies to the assertion."""
    return _handle(selector) in _handles(check, assertion)


def is_required(assertion: nodes.Assertion) -> bool:
    """True for `@required`, and for P0 unless it is `@experimental`: algorithms and profiles must
    not change such an assertion."""
    if assertion.is_annotated("required"):
        return True
    is_p0 = assertion.severity is not None and assertion.severity.text == "P0"
    return is_p0 and not assertion.is_annotated("experimental")


def _handle(selector: nodes.Selector) -> _Handle:
    check = None if selector.check is None else selector.check.value
    return selector.kind, selector.name.value, check


def _handles(check: nodes.Check, assertion: nodes.Assertion) -> Iterator[_Handle]:
    yield "check", check.name.value, None
    for tag in dict.fromkeys(tag.text for tag in assertion.tags):
        yield "tag", tag, None
    if assertion.name is not None:
        yield "assertion", assertion.name.value, check.name.value


_MOST_NAMED = 10
"""The maximum number of assertions that a finding names; it counts the others."""

_LEAST_FACTOR, _LARGEST_FACTOR = Fraction(1, 10), Fraction(10)
"""Beyond these bounds, a rule that scales is close to one that disables."""

_ALLOW = "write @allow_required above the profile"

_SEVERITIES = tuple(severity.value for severity in Severity)


def check_rules(
    profile: nodes.Profile, selection: SelectableAssertions, shares: Collection[int]
) -> Iterator[Diagnostic]:
    """The diagnostics of the rules of a profile.

    :param shares: the ids of the scaled assertions that are about a share.
    """
    factors: dict[int, Exact] = {}
    for rule in profile.rules:
        yield from _check_rule(rule, selection, shares)
        if not profile.allows_required:
            yield from _check_muted(rule, selection.required(rule.selector), shares, factors)
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


def check_downgrades(suite: nodes.Suite, fail_on: Severity) -> Iterator[Diagnostic]:
    """The rules by which failures of required assertions would not block a gate with `fail_on`."""
    selection = SelectableAssertions(suite.checks)
    for profile in suite.profiles:
        for rule in profile.rules:
            if isinstance(rule, nodes.Downgrade) and not profile.allows_required:
                yield from _muted(rule, selection.required(rule.selector), fail_on)


def is_beyond(factor: Exact) -> bool:
    """True for a factor that nearly disables what it scales."""
    return not _LEAST_FACTOR <= factor <= _LARGEST_FACTOR


def is_scalable(claim: nodes.Claim) -> bool:
    """False for claims whose result no factor changes, such as a comparison with zero."""
    match claim:
        case nodes.Measure(expression=left, condition=nodes.Comparison(bound=right)):
            return not any(
                isinstance(side, nodes.Number) and side.value == 0 for side in (left, right)
            )
        case nodes.Measure(condition=nodes.Between() | nodes.NotBetween() | nodes.WithinStddev()):
            return True
    return False


def _check_rule(
    rule: nodes.Rule, selection: SelectableAssertions, shares: Collection[int]
) -> Iterator[Diagnostic]:
    """Checks a rule of a profile: its values, and the assertions that it selects."""
    selector = rule.selector
    if isinstance(rule, nodes.Downgrade):
        yield from check_severity(rule.severity)
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
    if isinstance(rule, nodes.Downgrade):
        yield from _check_downgrade(rule, matched)
    elif isinstance(rule, nodes.Scale):
        yield from _check_scaled(rule, matched, shares)


def check_severity(severity: nodes.Name) -> Iterator[Diagnostic]:
    """The error of an unknown severity."""
    if severity.text not in _SEVERITIES:
        message = f"unknown severity '{severity.text}'"
        help_line = "severities are P0 (worst), P1, P2 and P3"
        yield Diagnostic(message, severity.span, code="E004", help=help_line)


def _check_muted(
    rule: nodes.Rule,
    required: list[nodes.Assertion],
    shares: Collection[int],
    factors: dict[int, Exact],
) -> Iterator[Diagnostic]:
    """Reports required assertions that a rule mutes.

    :param factors: collects the product of all factors of the profile for each assertion.
    """
    match rule:
        case nodes.Disable():
            yield from _refused(rule.selector.span, "this rule disables", required)
        case nodes.Downgrade():
            yield from _muted(rule, required, Severity.P1)
        case nodes.Scale() if rule.factor > 0:
            scaled = [
                item for item in required if id(item) not in shares and is_scalable(item.claim)
            ]
            for item in scaled:
                factors[id(item)] = exact(factors.get(id(item), 1) * rule.factor)
            nearly = [item for item in scaled if is_beyond(factors[id(item)])]
            if nearly:
                factor = exact_text(factors[id(nearly[0])])
                yield from _refused(
                    rule.span,
                    f"the factor {factor} nearly disables",
                    nearly,
                    "write factors that are together from 0.1x to 10x",
                )


def _muted(
    rule: nodes.Downgrade, required: list[nodes.Assertion], fail_on: Severity
) -> Iterator[Diagnostic]:
    """Reports required assertions whose failures would no longer block."""
    if rule.severity.text not in _SEVERITIES or Severity(rule.severity.text).at_least(fail_on):
        return
    muted = [item for item in required if _severity_of(item) <= fail_on.value]
    verb = f"this rule lets a gate with fail_on={fail_on.value} pass in spite of"
    help_line = f"write {fail_on.value} or a higher severity, remove the rule"
    yield from _refused(rule.selector.span, verb, muted, help_line)


def _refused(
    span: Span, verb: str, required: list[nodes.Assertion], help_line: str = "remove the rule"
) -> Iterator[Diagnostic]:
    help_line += f", or {_ALLOW}"
    for assertion in required[:_MOST_NAMED]:
        is_marked = assertion.is_annotated("required")
        related = (Related(_place_of_requirement(assertion), "required here"),)
        message = f"{verb} {_name_of(assertion)}, which is "
        message += "@required" if is_marked else "required, since it is P0"
        yield Diagnostic(message, span, code="E304", related=related, help=help_line)
    if (more := len(required) - _MOST_NAMED) > 0:
        message = f"{verb} {more} more required assertions"
        yield Diagnostic(message, span, code="E304", help=help_line)


def _check_scaled(
    rule: nodes.Scale, matched: list[nodes.Assertion], shares: Collection[int]
) -> Iterator[Diagnostic]:
    """Reports a rule that scales only shares."""
    if rule.factor > 0 and matched and all(id(assertion) in shares for assertion in matched):
        first = matched[0]
        kind, scaled = "a share", "shares"
        if isinstance(first.claim, nodes.Composite):
            kind = scaled = "several assertions in one"
        related = (Related(first.claim.span, kind),)
        subject = f"{_name_of(first)}, which is {kind}" if len(matched) == 1 else "only shares"
        yield Diagnostic(
            f"this rule scales {subject}",
            rule.selector.span,
            code="E305",
            related=related,
            help=f"{scaled} cannot be scaled: remove the rule, or write `downgrade` or `disable`",
        )


def _name_of(assertion: nodes.Assertion) -> str:
    return f"'{assertion.name.value}'" if assertion.name else "an unnamed assertion"


def _place_of_requirement(assertion: nodes.Assertion) -> Span:
    """The position at which an assertion is marked as required."""
    for annotation in assertion.annotations:
        if annotation.name.text == "required":
            return annotation.span
    return assertion.severity.span if assertion.severity else assertion.span


def _severity_of(assertion: nodes.Assertion) -> str:
    severity = assertion.severity
    return nodes.DEFAULT_SEVERITY.value if severity is None else severity.text


def _check_downgrade(rule: nodes.Downgrade, matched: list[nodes.Assertion]) -> Iterator[Diagnostic]:
    wanted = rule.severity.text
    for assertion in matched:
        severity = assertion.severity
        current = _severity_of(assertion)
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
