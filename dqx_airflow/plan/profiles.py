"""The profiles that are active on a date, and their effect on an assertion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from dqx_airflow.dql import nodes
from dqx_airflow.dql.checks.profile_selectors import selects
from dqx_airflow.dql.checks.shares import is_about_share
from dqx_airflow.dql.dates import is_active
from dqx_airflow.exact import Exact, exact
from dqx_airflow.values import Severity


@dataclass(frozen=True, slots=True)
class Adjustment:
    """The effect of the active profiles on one assertion.

    Multipliers compound, the last severity wins, and `profiles` are the names of those with a rule
    for the assertion, in definition order.
    """

    severity: Severity
    multiplier: Exact = 1
    disabled_by: str | None = None
    profiles: tuple[str, ...] = ()


def active_profiles(suite: nodes.Suite, on: date) -> tuple[nodes.Profile, ...]:
    """The profiles whose period contains `on`, in definition order."""
    return tuple(
        profile
        for profile in suite.profiles
        if profile.start and profile.end and is_active(profile.start, profile.end, on)
    )


def adjust(
    profiles: Iterable[nodes.Profile],
    check: nodes.Check,
    assertion: nodes.Assertion,
    constants: Mapping[str, nodes.Constant],
) -> Adjustment:
    """Applies all rules of the profiles in definition order. A share is not scaled.

    :param constants: those of the suite, evaluated.
    """
    severity = Severity(assertion.severity.text) if assertion.severity else nodes.DEFAULT_SEVERITY
    multiplier: Exact = 1
    disabled_by, names = None, []
    for profile in profiles:
        for rule in profile.rules:
            if not selects(rule.selector, check, assertion):
                continue
            if isinstance(rule, nodes.Scale) and is_about_share(
                assertion.claim, constants, check.datasets[0].text
            ):
                continue
            names.append(profile.name.value)
            match rule:
                case nodes.Scale(factor=factor):
                    multiplier = exact(multiplier * factor)
                case nodes.Downgrade(severity=name):
                    severity = Severity(name.text)
                case nodes.Disable():
                    disabled_by = disabled_by or profile.name.value
    return Adjustment(severity, multiplier, disabled_by, tuple(dict.fromkeys(names)))
