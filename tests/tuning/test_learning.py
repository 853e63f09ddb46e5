"""The environment follows Gymnasium's interface, respects bounds and protection, and an agent
learns in it.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Collection
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest

from tests.sound_suites import sound_suite

pytest.importorskip("gymnasium")
from gymnasium.utils.env_checker import check_env

from dqx_airflow.plan.measurements import Measurements
from dqx_airflow.results.past_days import PastDay
from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.tuning.learning import Rewards, ThresholdEnv

FIRST = date(2025, 1, 6)
SUITE = """\
suite "{name}" {{
    const LEAST = 580 tunable [0, 1000]
    const MOST = 5% tunable [0%, 20%]
    check "C" on orders {{
        assert num_rows() >= LEAST name "rows"
        @required
        assert null_count(id) / num_rows() <= MOST name "nulls"
    }}
    profile "Sale" {{ from 2025-01-10 to 2025-01-11 scale assertion "rows" in "C" by 1.0x }}
}}
"""


def past(
    days: int = 80, *, name: str = "S", without: Collection[int] = (), seed: int = 1
) -> Backtest:
    """Rows around 600 with losses, all days labelled; the second half is like the first."""
    chance, found = random.Random(seed), []
    for n in range(days):
        is_real = chance.random() < 0.1
        rows = int(chance.gauss(600, 30) * (0.4 if is_real else 1))
        keys = {'["orders","num_rows",[],0]': rows, '["orders","null_count",["id"],0]': 0}
        day = PastDay(FIRST + timedelta(days=n), Measurements(keys))
        if n not in without:
            found.append(replace(day, labels={("C", "rows"): is_real}))
    suite = sound_suite(SUITE.format(name=name))
    return Backtest(suite, found)


def test_gymnasium_accepts_the_environment() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(ThresholdEnv({"S": past()}), skip_render_check=True)


def test_values_keep_to_their_bounds_and_required_assertions_to_todays_limit() -> None:
    env = ThresholdEnv({"S": past()})
    assert env.values(np.ones(2, np.float32)) == {"S": {"LEAST": 1000, "MOST": 0.05}}
    assert env.values(np.zeros(2, np.float32)) == {"S": {"LEAST": 0, "MOST": 0}}
    assert env.values(env.today)["S"]["LEAST"] == 580


def test_the_observation_has_values_profiles_and_what_ran() -> None:
    suites = {"bronze": past(20), "silver": past(20, name="T", without=(4,))}
    env = ThresholdEnv(suites, dates=range(4, 6), episode=2)
    seen, _ = env.reset(seed=1)
    assert seen.shape == (4 + 2 + 2,)
    assert seen[4:].tolist() == [1, 0, 1, 0], "Friday: a sale, and silver did not run"
    seen, *_ = env.step(env.today)
    assert seen[4:].tolist() == [1, 1, 1, 1]


def test_a_reward_is_the_negative_cost_of_a_day() -> None:
    backtest = past(40)
    env = ThresholdEnv({"S": backtest}, episode=40)
    env.reset(seed=1)
    total, is_over, false_alarms = 0.0, False, 0
    while not is_over:
        _, reward, is_over, _, info = env.step(env.today)
        total, false_alarms = total + reward, false_alarms + info["false_alarms"]
    assert total == pytest.approx(-env.cost(env.today).cost)
    assert false_alarms == env.cost(env.today).false_alarms > 0


@pytest.mark.more
def test_days_that_stop_early_and_issues_seen_twice_are_rewarded() -> None:
    twins = {"bronze": past(60), "silver": past(60, name="T")}
    env = ThresholdEnv(twins, episode=60)
    assert [(pair.one[0], pair.other[0]) for pair in env.co_failures] == [("bronze", "silver")]
    assert env.co_failures[0].strength == pytest.approx(1)

    def bonuses(env: ThresholdEnv) -> list[float]:
        env.reset(seed=1)
        return [env.step(env.today)[4]["bonus"] for _ in env.dates]

    assert max(bonuses(env)) == 5
    lost = [n for n, day in enumerate(past(60).days) if day.labels["C", "rows"]]
    stopped = {"bronze": past(60), "silver": past(60, name="T", without=lost)}
    env = ThresholdEnv(stopped, episode=60, rewards=Rewards(early_stop=3, co_failure=0))
    assert [n for n, bonus in enumerate(bonuses(env)) if bonus == 3] == lost
