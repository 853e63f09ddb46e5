"""All proposals of a tuner for a suite: first other forms, then profiles, then values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.tuning.calendars import calendars
from dqx_airflow.tuning.clusters import tuned_profiles
from dqx_airflow.tuning.forms import tuned_forms
from dqx_airflow.tuning.past_days import PastDay
from dqx_airflow.tuning.suite_text import SuiteText
from dqx_airflow.tuning.tuner import KnownPast, Rules, Tuned, tuned_values


def tune(
    text: SuiteText,
    days: Sequence[PastDay],
    rules: Rules | None = None,
    *,
    holidays: Mapping[date, str] | None = None,
    gate: str | None = None,
) -> tuple[Tuned, ...]:
    """The results for the tunables, for false alarms that cluster on the calendar, and for the
    forms of assertions.

    An assertion with a proposal of another form gets no other proposals. Days with a proposed
    profile do not count for the values that the same assertion depends on: loosening a limit for
    Sundays would loosen it for all days.

    :param holidays: names of public holidays by date; by default they are not considered.
    """
    rules = rules or Rules()
    past = KnownPast.of(Backtest(text.suite, days))
    assertions = past.backtest.assertions
    profiles, left_out = tuned_profiles(past, rules, calendars(holidays), text, gate)
    texts = {row: tuned.proposal.profile or "" for row, tuned in profiles.items() if tuned.proposal}
    forms = tuned_forms(past, rules, text, texts, gate)
    values = tuned_values(
        past.without({row: reason for row, reason in left_out.items() if row not in forms}),
        rules,
        gate,
        without={name for row in forms for name in assertions[row].tunables},
    )
    kept = (tuned for row, tuned in profiles.items() if row not in forms)
    return (*values, *kept, *forms.values())
