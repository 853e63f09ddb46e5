"""All proposals of a tuner for a suite: what follows what is usual, and values of the other
tunables."""

from __future__ import annotations

from collections.abc import Sequence

from dqx_airflow.results.past_days import PastDay
from dqx_airflow.tuning import tuner
from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.tuning.forms import tuned_forms
from dqx_airflow.tuning.suite_file import SuiteText


def tune(
    text: SuiteText,
    days: Sequence[PastDay],
    rules: tuner.Rules | None = None,
    *,
    holidays: str | None = None,
    gate: str | None = None,
) -> tuple[tuner.Tuned, ...]:
    """The proposals first, then the tunables without one, those with the most unlabelled alarms
    first.

    An assertion that should follow what is usual gets no other proposal.

    :param holidays: the country whose public holidays count.
    """
    rules = rules or tuner.Rules()
    past = tuner.KnownPast.of(Backtest(text.suite, days))
    forms = tuned_forms(past, rules, text, gate, holidays)
    values = tuner.tuned_values(
        past,
        rules,
        gate,
        without={name for row in forms for name in past.backtest.assertions[row].tunables},
    )
    found = (*forms.values(), *values)
    return tuple(sorted(found, key=lambda one: (one.proposal is None, -one.alarms, -one.labels)))
