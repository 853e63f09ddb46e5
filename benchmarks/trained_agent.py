"""A small agent and the tuner on a simulated year: whose thresholds do better on the second half?

    python -m benchmarks.trained_agent [--seed N ...] [--ppo]

Both learn from the same half year with labels on 60 of its alerts. The agent is trained in the
Gymnasium environment of `dqx_airflow.tuning.learning`, by the cross-entropy method, or by PPO if
stable-baselines3 is installed. The tuner is run twice: once as a search alone, which sets the same
values from the same labels without evidence on held-out days, like the agent; once as it is used,
with labels for each assertion, evidence, profiles and other forms, until it proposes nothing more.
The cost is that of the default `@cost`.
"""

from __future__ import annotations

import argparse
import random
from dataclasses import replace

from benchmarks.simulated_years import SHAPES, Day
from benchmarks.tuned_year import (
    LEARNED,
    MOST_LABELS,
    SUITE,
    Score,
    held_out,
    node_of,
    past_day,
    score,
    total,
)
from dqx_airflow.plan.model import DEFAULT_COST
from dqx_airflow.results.past import PastDay, StoredVerdict
from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.tuning.learning import ThresholdEnv, Vector, learned_action
from dqx_airflow.tuning.search import Search, groups_of
from dqx_airflow.tuning.suite_file import SuiteText, with_edits
from dqx_airflow.tuning.tune import tune
from dqx_airflow.tuning.tuner import KnownPast
from dqx_airflow.values import Status

_MOST_RUNS = 8


def labelled(days: list[Day], seed: int) -> list[PastDay]:
    """The past as the store has it, with labels on some alerts, chosen at random."""
    backtest = Backtest(node_of(SUITE), [past_day(day) for day in days])
    statuses = dict(
        zip((one.key for one in backtest.assertions), backtest.judge().statuses, strict=True)
    )
    alerts = [
        (key, n)
        for key, row in statuses.items()
        for n, one in enumerate(row)
        if one is Status.FAILED
    ]
    chosen = random.Random(seed).sample(alerts, min(MOST_LABELS, len(alerts)))
    found = []
    for n, day in enumerate(days):
        verdicts = {
            key: StoredVerdict(status, "", None)
            for key, row in statuses.items()
            if (status := row[n]) is not None
        }
        said = {key: key[1] in day.issues for key, place in chosen if place == n}
        found.append(replace(past_day(day), verdicts=verdicts, labels=said))
    return found


def with_agent(past: list[PastDay], *, is_ppo: bool) -> str:
    suite = node_of(SUITE)
    env = ThresholdEnv({"Shop": Backtest(suite, past)})
    action = _ppo_action(env) if is_ppo else learned_action(env)
    return with_edits(SUITE, suite, env.values(action)["Shop"], None)


def _ppo_action(env: ThresholdEnv) -> Vector:
    from stable_baselines3 import PPO

    model = PPO("MlpPolicy", env, seed=0, n_steps=256, verbose=0)
    model.learn(20_000)
    return model.predict(env.reset(seed=0)[0], deterministic=True)[0]


def with_search(past: list[PastDay]) -> str:
    suite = node_of(SUITE)
    known = KnownPast.of(Backtest(suite, past))
    values: dict[str, float] = {}
    for tunables in groups_of(known.backtest):
        search = Search(
            known.backtest, known.known, tunables, max_move=1.0, is_allowed=lambda _: True
        )
        values |= search.named(search.best(range(len(past))))
    return with_edits(SUITE, suite, values, None)


def with_tuner(past: list[PastDay]) -> str:
    text = SUITE
    for _ in range(_MOST_RUNS):
        found = tune(SuiteText(text, node_of(text), node_of), past)
        proposals = [one.proposal for one in found if one.proposal is not None]
        for one in proposals:
            text = with_edits(text, node_of(text), one.values, one.profile, one.form)
        if not proposals:
            break
    return text


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seed", type=int, nargs="*", default=[1, 2, 3])
    arguments.add_argument("--ppo", action="store_true", help="needs stable-baselines3")
    given = arguments.parse_args()
    print("false alarms/missed issues = cost")
    print("seed           start           agent          search           tuner", flush=True)
    every = []
    for seed in given.seed:
        days = SHAPES["shop"].days(seed)
        past = labelled(days[:LEARNED], seed)
        found = [SUITE, with_agent(past, is_ppo=given.ppo), with_search(past), with_tuner(past)]
        every.append([score(text, days, held_out(days)) for text in found])
        print(f"{seed:>4}", *map(_told, every[-1]), flush=True)
    print(" all", *(_told(total(column)) for column in zip(*every, strict=True)))


def _told(found: Score) -> str:
    cost = DEFAULT_COST.false_positive * found.false_alarms
    cost += DEFAULT_COST.false_negative * found.missed
    return f"{f'{found.false_alarms}/{found.missed} = {cost:g}':>15}"


if __name__ == "__main__":
    main()
