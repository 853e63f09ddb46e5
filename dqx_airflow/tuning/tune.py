"""Everything that a tuner proposes for a suite: profiles first, then values on the other days."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date

from dqx_airflow.dql import nodes
from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.tuning.calendars import calendars
from dqx_airflow.tuning.clusters import tuned_profiles
from dqx_airflow.tuning.past_days import PastDay
from dqx_airflow.tuning.tuner import KnownPast, Rules, Tuned, tuned_values


def tune(
    suite: nodes.Suite,
    days: Sequence[PastDay],
    with_profile: Callable[[str], nodes.Suite],
    rules: Rules | None = None,
    *,
    holidays: Mapping[date, str] | None = None,
    gate: str | None = None,
) -> tuple[Tuned, ...]:
    """What becomes of the tunables and of false alarms that cluster on the calendar.

    Days for which a profile is proposed do not count for the values that the same assertion
    depends on: loosening a limit for Sundays would loosen it for all days.

    :param with_profile: the suite with one more profile, of its text; raises SourceError where
        that has errors.
    :param holidays: names of public holidays by date; without them they are not looked at.
    """
    rules = rules or Rules()
    past = KnownPast.of(Backtest(suite, days))
    profiles, left_out = tuned_profiles(past, rules, calendars(holidays), with_profile, gate)
    return (*tuned_values(past.without(left_out), rules, gate), *profiles)
