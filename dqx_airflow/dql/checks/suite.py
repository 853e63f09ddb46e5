"""Checks a whole suite: its statements, what its assertions mean, the rules of its profiles and
the assertions that they select.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeAlias

from dqx_airflow.diagnostics.diagnostic import Diagnostic, Related, did_you_mean, errors_of
from dqx_airflow.diagnostics.verdicts import format_value
from dqx_airflow.dql import nodes, satisfiability
from dqx_airflow.dql.annotations import check_annotation
from dqx_airflow.dql.checks import assertions
from dqx_airflow.dql.checks.expressions import is_about_share
from dqx_airflow.dql.dates import check_date, is_backwards
from dqx_airflow.dql.linking import placeholders_in, placeholders_of
from dqx_airflow.dql.walk import filters_over, fold, joined, repetitions, settle_one
from dqx_airflow.values import Severity, Span
from dqx_airflow.values.exact import NUMBERS, Exact, exact, exact_text

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
    selector = rule.selector
    if isinstance(rule, nodes.Downgrade):
        yield from _check_severity(rule.severity)
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


def _check_severity(severity: nodes.Name) -> Iterator[Diagnostic]:
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


@dataclass(frozen=True, slots=True)
class MeaningChecker:
    """Checks the assertions of one suite, with the units and ranges of its constants."""

    quantities: Mapping[str, assertions.Quantity]
    ranges: Mapping[str, satisfiability.Range]
    questions_left: Iterator[int] = field(
        default_factory=lambda: iter(range(satisfiability.MOST_SYMBOLIC_QUESTIONS))
    )

    def check(
        self, assertion: nodes.Assertion, check: nodes.Check, *, is_scaled: bool
    ) -> Iterator[Diagnostic]:
        """The diagnostics of a valid assertion of a check.

        :param is_scaled: a profile may multiply the value, which changes its range.
        """
        claim = assertion.claim
        if isinstance(claim, nodes.Composite):
            inner = replace(check, where=joined(check.where, assertion.where))
            for part in claim.parts:
                yield from self.check(part, inner, is_scaled=False)
            return
        for where in filters_over(check, assertion):
            yield from satisfiability.check_rows(where, where.span, self.ranges, is_filter=True)
        misfits = tuple(assertions.check_units(claim, self.quantities))
        yield from misfits
        if misfits or is_scaled:
            return
        if isinstance(claim, nodes.Rows):
            yield from satisfiability.check_rows(claim.predicate, claim.span, self.ranges)
        else:
            surroundings = satisfiability.Surroundings(self.ranges, check.datasets[0].text)
            yield from satisfiability.check_measure(
                claim, assertion.tolerance, surroundings, self.questions_left
            )


IMPLICIT_CHECK = "implicit"
"""The name of the check that contains the assertions which every suite has implicitly."""


def check_suite(suite: nodes.Suite, used: set[str]) -> list[Diagnostic]:
    """The diagnostics of an expanded suite, in no particular order.

    :param used: collects the names of the constants that are used.
    """
    diagnostics: list[Diagnostic] = []
    constants: dict[str, nodes.Constant] = {}
    valid: list[nodes.Constant] = []
    for constant in suite.constants:
        wrong = list(check_constant(constant, constants, used))
        diagnostics += wrong
        if not wrong:
            valid.append(constant)
        constants.setdefault(constant.name.text, settle_one(constant, constants))
    threshold = suite.availability_threshold
    if threshold is not None and threshold.value > 1:
        diagnostics.append(Diagnostic("a share cannot exceed 100%", threshold.span, code="E109"))
    for repeated in suite.repeated:
        message, help_line = "duplicate modifier", "remove one of them"
        diagnostics.append(Diagnostic(message, repeated, code="E013", help=help_line))
    diagnostics += _check_title(suite.name)
    meaning = MeaningChecker(
        assertions.constant_quantities(valid), satisfiability.constant_ranges(valid)
    )
    selection = SelectableAssertions(suite.checks if suite.profiles else ())
    scaled = {
        id(assertion)
        for profile in suite.profiles
        for rule in profile.rules
        if isinstance(rule, nodes.Scale)
        for assertion in selection.of(rule.selector)
    }
    shares: set[int] = set()
    for check in suite.checks:
        diagnostics += _check_head(check)
        datasets = tuple(dict.fromkeys(check.datasets))
        around = _check_filter(
            check, assertions.ClaimChecker(datasets, constants, diagnostics.append, used)
        )
        for assertion in check.assertions:
            is_scaled = id(assertion) in scaled
            if is_scaled and is_about_share(assertion.claim, constants, check.datasets[0].text):
                is_scaled = False
                shares.add(id(assertion))
            report = _reporter(diagnostics, assertion.uses)
            holes = list(placeholders_of(assertion))
            for hole in holes:
                report(_unfilled(hole, assertion.uses))
            if holes:
                continue
            earlier = len(diagnostics)
            assertions.ClaimChecker(datasets, constants, report, used).check(assertion, around)
            if not errors_of(diagnostics[earlier:]):
                filtered = replace(check, where=around)
                for diagnostic in meaning.check(assertion, filtered, is_scaled=is_scaled):
                    report(diagnostic)
            for diagnostic in _check_assertion(assertion):
                report(diagnostic)
        diagnostics += _check_names(check)
    diagnostics += _check_unique_titles(suite)
    diagnostics += _check_that_something_is_checked(suite)
    for annotation in suite.annotations:
        diagnostics += check_annotation(annotation, "suite")
    for profile in suite.profiles:
        diagnostics += _check_profile(profile, selection, shares)
    for constant in suite.constants:
        is_own = constant.span.file == suite.span.file and not constant.is_exported
        if is_own and constant.name.text not in used:
            message = f"constant '{constant.name.text}' is never used"
            diagnostics.append(
                Diagnostic(message, constant.name.span, code="W004", help="remove it")
            )
    return diagnostics


def _check_title(title: nodes.Text) -> Iterator[Diagnostic]:
    if not title.value.strip():
        help_line = "describe its purpose: results and messages show the name"
        yield Diagnostic("empty name", title.span, code="E016", help=help_line)


def _check_head(check: nodes.Check) -> Iterator[Diagnostic]:
    yield from _check_title(check.name)
    for dataset, first in repetitions(check.datasets):
        message = f"dataset '{dataset.text}' is listed twice"
        related, help_line = (Related(first, "first given here"),), "remove one of them"
        yield Diagnostic(message, dataset.span, code="E017", related=related, help=help_line)


def _check_filter(check: nodes.Check, checker: assertions.ClaimChecker) -> nodes.Expression | None:
    """The filter of a check; None if it has no valid one."""
    where = check.where
    if where is None:
        return None
    wrong: list[Diagnostic] = [_unfilled(hole, ()) for hole in placeholders_in(where)]
    if not wrong:
        replace(checker, report=wrong.append).check_filter(where)
    for diagnostic in wrong:
        checker.report(diagnostic)
    return None if wrong else where


def _unfilled(hole: nodes.Placeholder, uses: tuple[Span, ...]) -> Diagnostic:
    if uses:
        message = f"the macro has no parameter '{hole.name}'"
        return Diagnostic(message, hole.span, code="E205")
    message = f"`{{{hole.name}}}` refers to a macro parameter, outside any macro"
    help_line = f"write {hole.name}, without braces"
    return Diagnostic(message, hole.span, code="E205", help=help_line)


def _reporter(
    diagnostics: list[Diagnostic], uses: tuple[Span, ...]
) -> Callable[[Diagnostic], None]:
    """Returns a function that collects diagnostics, with the enclosing uses added to the ones in
    the body of a macro."""
    if not uses:
        return diagnostics.append

    def report(item: Diagnostic) -> None:
        led = tuple(
            Related(use, "used here")
            for use in reversed(uses)
            # A mistake in an argument is in the use itself.
            if use.file != item.span.file or not use.line <= item.span.line <= use.end_line
        )
        diagnostics.append(replace(item, related=(*item.related, *led)))

    return report


def check_constant(
    constant: nodes.Constant, earlier: dict[str, nodes.Constant], used: set[str]
) -> Iterator[Diagnostic]:
    name = constant.name
    if name.text in earlier:  # reported when names are linked
        return
    for used_name in _names(constant.value):
        if used_name.text not in earlier:
            message = f"unknown constant '{used_name.text}'"
            help_line = did_you_mean(used_name.text, earlier) or "define it above this constant"
            yield Diagnostic(message, used_name.span, code="E003", help=help_line)
            return
        used.add(used_name.text)
    value = fold(constant.value, earlier)
    if value is None:
        message = "a constant is a number, a string or a date"
        yield Diagnostic(message, constant.value.span, code="E107")
        return
    if constant.bounds is None:
        return
    low, high = (fold(bound, earlier) for bound in constant.bounds)
    if not all(isinstance(number, NUMBERS) for number in (value, low, high)):
        yield Diagnostic("only numbers can be tunable", constant.span, code="E107")
    elif low > high:  # type: ignore[operator]
        message = f"the bounds are empty: {format_value(low)} is above {format_value(high)}"
        yield Diagnostic(message, constant.bounds[0].span, code="E105")
    elif not low <= value <= high:  # type: ignore[operator]
        bounds = f"[{format_value(low)}, {format_value(high)}]"
        message = f"{format_value(value)} is outside its bounds {bounds}"
        yield Diagnostic(message, constant.value.span, code="E105")


def _names(node: nodes.Expression) -> Iterator[nodes.Name]:
    match node:
        case nodes.Name():
            yield node
        case nodes.Negative(operand=operand):
            yield from _names(operand)
        case nodes.Arithmetic(left=left, right=right):
            yield from _names(left)
            yield from _names(right)


def _check_assertion(assertion: nodes.Assertion) -> Iterator[Diagnostic]:
    if assertion.severity is not None:
        yield from _check_severity(assertion.severity)
    for repeated in assertion.repeated:
        yield Diagnostic("duplicate modifier", repeated, code="E013", help="remove one of them")
    for annotation in assertion.annotations:
        yield from check_annotation(annotation, "assertion")
        if annotation.name.text == "max_groups" and assertion.for_each is None:
            message = "'@max_groups' needs groups, but this assertion has none"
            help_line = "remove it, or write `for each column`"
            yield Diagnostic(message, annotation.name.span, code="E012", help=help_line)
    if assertion.name is not None:
        yield from _check_title(assertion.name)
    else:
        label = "add a descriptive name"
        yield Diagnostic("assertion has no name", assertion.claim.span, code="W001", label=label)


def _check_names(check: nodes.Check) -> Iterator[Diagnostic]:
    names = (assertion.name for assertion in check.assertions if assertion.name is not None)
    for name, first in repetitions(names):
        message, related = "duplicate assertion name", (Related(first, "first defined here"),)
        yield Diagnostic(message, name.span, code="E002", label="duplicate", related=related)


def _check_unique_titles(suite: nodes.Suite) -> Iterator[Diagnostic]:
    for check in suite.checks:
        if check.name.value == IMPLICIT_CHECK:
            message = f"'{IMPLICIT_CHECK}' is the name of the implicit check of every dataset"
            yield Diagnostic(message, check.name.span, code="E002", help="choose another name")
    for kind, items in (("check", suite.checks), ("profile", suite.profiles)):
        for title, first in repetitions(item.name for item in items):
            message = f"there are two {kind}s named '{title.value}'"
            related = (Related(first, "first defined here"),)
            yield Diagnostic(message, title.span, code="E002", related=related)


def _check_that_something_is_checked(suite: nodes.Suite) -> Iterator[Diagnostic]:
    help_line = "write an assertion, such as assert num_rows() > 0"
    if not suite.checks:
        message = f"suite '{suite.name.value}' checks nothing, so its gate would be broken"
        yield Diagnostic(message, suite.name.span, code="W012", help=help_line)
    for check in suite.checks:
        if not check.assertions:
            message = f"check '{check.name.value}' checks nothing"
            yield Diagnostic(message, check.name.span, code="W012", help=help_line)


def _check_profile(
    profile: nodes.Profile, selection: SelectableAssertions, shares: Collection[int]
) -> Iterator[Diagnostic]:
    """The diagnostics of a profile.

    :param shares: the ids of the scaled assertions that are about a share.
    """
    yield from _check_title(profile.name)
    for annotation in profile.annotations:
        yield from check_annotation(annotation, "profile")
    kind = profile.type
    if kind is not None and kind.text not in ("holiday", "recurring"):
        help_line = "write `holiday` or `recurring`"
        yield Diagnostic(
            f"unknown profile type '{kind.text}'", kind.span, code="E303", help=help_line
        )
    for repeated in profile.repeated:
        yield Diagnostic("duplicate modifier", repeated, code="E013", help="remove one of them")
    is_valid = True
    for keyword, expression in (("from", profile.start), ("to", profile.end)):
        if expression is None:
            message = f"profile '{profile.name.value}' has no `{keyword}` date"
            help_line = f"add {keyword} 2024-12-24, or another date expression"
            yield Diagnostic(message, profile.name.span, code="E302", help=help_line)
            is_valid = False
        else:
            wrong = list(check_date(expression))
            yield from wrong
            is_valid = is_valid and not wrong
    if is_valid and profile.start and profile.end and is_backwards(profile.start, profile.end):
        related = (Related(profile.start.span, "starts here"),)
        message = "the profile ends before it starts"
        yield Diagnostic(message, profile.end.span, code="E302", related=related)
    yield from check_rules(profile, selection, shares)
