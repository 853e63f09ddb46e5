"""Checks a whole suite: its statements, and the meaning of its assertions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from dqx_airflow.diagnostics.diagnostic import Diagnostic, Related, did_you_mean, errors_of
from dqx_airflow.diagnostics.verdicts import format_value
from dqx_airflow.dql import nodes, satisfiability
from dqx_airflow.dql.annotations import check_annotation
from dqx_airflow.dql.checks import assertions, quantities
from dqx_airflow.dql.checks.profile_rules import SelectableAssertions, check_rules, check_severity
from dqx_airflow.dql.checks.shares import is_about_share
from dqx_airflow.dql.constants import fold, settle_one
from dqx_airflow.dql.dates import check_date, is_backwards
from dqx_airflow.dql.expansion import placeholders_in, placeholders_of
from dqx_airflow.dql.walk import filters_over, joined, repetitions
from dqx_airflow.values import Span
from dqx_airflow.values.exact import NUMBERS


@dataclass(frozen=True, slots=True)
class MeaningChecker:
    """Checks the assertions of one suite, with the units and ranges of its constants."""

    quantities: Mapping[str, quantities.Quantity]
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
        misfits = tuple(quantities.check_units(claim, assertion.tolerance, self.quantities))
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
    diagnostics += _check_modifiers(suite)
    diagnostics += _check_title(suite.name)
    selection = SelectableAssertions(suite.checks if suite.profiles else ())
    checks = _ChecksChecker(
        constants,
        used,
        MeaningChecker(
            quantities.constant_quantities(valid), satisfiability.constant_ranges(valid)
        ),
        _scaled_by(suite.profiles, selection),
        diagnostics,
    )
    for check in suite.checks:
        checks.check(check)
    diagnostics += _check_unique_titles(suite)
    diagnostics += _check_that_something_is_checked(suite)
    for annotation in suite.annotations:
        diagnostics += check_annotation(annotation, "suite")
    for profile in suite.profiles:
        diagnostics += _check_profile(profile, selection, checks.shares)
    diagnostics += _unused_constants(suite, used)
    return diagnostics


def _check_modifiers(suite: nodes.Suite) -> Iterator[Diagnostic]:
    threshold = suite.availability_threshold
    if threshold is not None and threshold.value > 1:
        yield Diagnostic("a share cannot exceed 100%", threshold.span, code="E109")
    for repeated in suite.repeated:
        yield Diagnostic("duplicate modifier", repeated, code="E013", help="remove one of them")


def _scaled_by(
    profiles: Iterable[nodes.Profile], selection: SelectableAssertions
) -> frozenset[int]:
    """The ids of the assertions that a profile scales."""
    return frozenset(
        id(assertion)
        for profile in profiles
        for rule in profile.rules
        if isinstance(rule, nodes.Scale)
        for assertion in selection.of(rule.selector)
    )


def _unused_constants(suite: nodes.Suite, used: Collection[str]) -> Iterator[Diagnostic]:
    for constant in suite.constants:
        is_own = constant.span.file == suite.span.file and not constant.is_exported
        if is_own and constant.name.text not in used:
            message = f"constant '{constant.name.text}' is never used"
            yield Diagnostic(message, constant.name.span, code="W004", help="remove it")


@dataclass(slots=True)
class _ChecksChecker:
    """Collects the diagnostics of the checks of a suite.

    `constants` are evaluated, `used` collects the names of the used ones. `scaled` are the ids of
    assertions that a profile scales, and `shares` collects those that are about a share, which
    cannot be scaled.
    """

    constants: nodes.Constants
    used: set[str]
    meaning: MeaningChecker
    scaled: frozenset[int]
    diagnostics: list[Diagnostic]
    shares: set[int] = field(default_factory=set)

    def check(self, check: nodes.Check) -> None:
        """Adds the diagnostics of a check and its assertions."""
        self.diagnostics += _check_head(check)
        around = _check_filter(check, self._claims(check, self.diagnostics.append))
        for assertion in check.assertions:
            report = _reporter(self.diagnostics, assertion.uses)
            holes = list(placeholders_of(assertion))
            for hole in holes:
                report(_unfilled(hole, assertion.uses))
            if not holes:
                self._check_claims(check, assertion, around, report)
        self.diagnostics += _check_names(check)

    def _check_claims(
        self,
        check: nodes.Check,
        assertion: nodes.Assertion,
        around: nodes.Expression | None,
        report: Callable[[Diagnostic], None],
    ) -> None:
        """Adds the diagnostics of an assertion, and of its meaning if it is valid.

        :param around: the filter of the check.
        """
        is_scaled = self._is_scaled(check, assertion)
        earlier = len(self.diagnostics)
        self._claims(check, report).check(assertion, around)
        if not errors_of(self.diagnostics[earlier:]):
            filtered = replace(check, where=around)
            for diagnostic in self.meaning.check(assertion, filtered, is_scaled=is_scaled):
                report(diagnostic)
        for diagnostic in _check_assertion(assertion):
            report(diagnostic)

    def _is_scaled(self, check: nodes.Check, assertion: nodes.Assertion) -> bool:
        """True if a profile scales an assertion, which is not about a share."""
        if id(assertion) not in self.scaled:
            return False
        if is_about_share(assertion.claim, self.constants, check.datasets[0].text):
            self.shares.add(id(assertion))
            return False
        return True

    def _claims(
        self, check: nodes.Check, report: Callable[[Diagnostic], None]
    ) -> assertions.ClaimChecker:
        datasets = tuple(dict.fromkeys(check.datasets))
        return assertions.ClaimChecker(datasets, self.constants, report, self.used)


def _check_title(title: nodes.Text) -> Iterator[Diagnostic]:
    if not title.value.strip():
        help_line = "describe its purpose: results and messages show the name"
        yield Diagnostic("empty name", title.span, code="E016", help=help_line)


def _check_head(check: nodes.Check) -> Iterator[Diagnostic]:
    yield from _check_title(check.name)
    for dataset, first in repetitions(check.datasets):
        message = f"dataset '{dataset.text}' is listed twice"
        related = (Related(first, "first given here"),)
        help_line = "remove one of them"
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
    """Checks a constant against the constants that are defined above it."""
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
        yield from check_severity(assertion.severity)
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
        message = "duplicate assertion name"
        related = (Related(first, "first defined here"),)
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
            help_line = f"add `{keyword} 2024-12-24`, or another date expression"
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
