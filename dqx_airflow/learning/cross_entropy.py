"""A small agent: the cross-entropy method over the values of all tunables.

See Rubinstein, "The Cross-Entropy Method for Combinatorial and Continuous Optimization",
Methodology and Computing in Applied Probability 1 (1999).
"""

from __future__ import annotations

import numpy as np

from dqx_airflow.learning.environment import ThresholdEnv, Vector


def learned_action(
    env: ThresholdEnv, *, rounds: int = 20, population: int = 40, elite: int = 8, seed: int = 0
) -> Vector:
    """The action with the lowest cost on the days of the environment, among those that were tried.

    Each round draws actions around the mean of the best ones of the previous round, beginning with
    the current values. The current action is always among them. Deterministic for a given seed.

        action = learned_action(ThresholdEnv(backtest))
        env.step(action)

    :param rounds: the number of rounds.
    :param population: the number of actions per round.
    :param elite: the number of best actions that define the next round.
    :param seed: the seed of the random numbers.
    """
    chance = np.random.default_rng(seed)
    best, least = env.today, env.cost(env.today).cost
    mean, spread = env.today.astype(float), np.full(env.today.shape, 0.3)
    for _ in range(rounds):
        tried = np.clip(chance.normal(mean, spread, (population, len(mean))), 0.0, 1.0)
        costs = np.array([env.cost(action.astype(np.float32)).cost for action in tried])
        order = np.argsort(costs, kind="stable")[:elite]
        mean, spread = tried[order].mean(axis=0), tried[order].std(axis=0) + 0.01
        if costs[order[0]] < least:
            best, least = tried[order[0]].astype(np.float32), float(costs[order[0]])
    return best
