"""The effect of the profiles of a day on assertions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from dqx_airflow.dql import nodes
from dqx_airflow.dql.checks.profile_rules import is_beyond, is_required, is_scalable, selects
from dqx_airflow.dql.checks.shares import is_about_share
from dqx_airflow.dql.dates import is_active
from dqx_airflow.dql.printer import show_claim
from dqx_airflow.errors import RequestError
from dqx_airflow.values import Severity
from dqx_airflow.values.exact import Exact, exact, exact_text


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
    constants: nodes.Constants,
) -> Adjustment:
    """Applies all rules of the profiles in definition order. A share is not scaled.

    :param constants: the constants of the suite, evaluated.
    :raises RequestError: together they nearly disable a required assertion.
    """
    severity = Severity(assertion.severity.text) if assertion.severity else nodes.DEFAULT_SEVERITY
    multiplier: Exact = 1
    unallowed: Exact = 1
    disabled_by = None
    names: list[str] = []
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
                    unallowed = unallowed if profile.allows_required else exact(unallowed * factor)
                case nodes.Downgrade(severity=name):
                    severity = Severity(name.text)
                case nodes.Disable():
                    disabled_by = disabled_by or profile.name.value
    if is_beyond(unallowed) and is_required(assertion) and is_scalable(assertion.claim):
        title = assertion.name.value if assertion.name else show_claim(assertion.claim)
        together = ", ".join(map(repr, dict.fromkeys(names)))
        raise RequestError(
            f"the profiles {together} are active together: by the factor {exact_text(unallowed)} "
            f"they nearly disable {title!r}, which is required",
            "write factors that are together from 0.1x to 10x, or @allow_required above a profile",
        )
    return Adjustment(severity, multiplier, disabled_by, tuple(dict.fromkeys(names)))
