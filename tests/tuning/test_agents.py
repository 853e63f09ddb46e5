"""The agents in the specification of the language run as printed, except for the package name and
the policy.
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dqx_airflow import MemoryDatabase, StoredDatabase
from dqx_airflow.dql import History, Suite, UpstreamFailure
from dqx_airflow.results.stored_labels import Label, write_labels
from tests.markdown_cases import cases
from tests.tuning.stored_days import FIRST, SUITE, orders, store_days

PRINTED = {
    case.title: case.blocks[0].text.replace("from dqx.dql", "from dqx_airflow.dql")
    for case in cases(Path(__file__).parent / "agents.md", fewest_blocks=1)
}
TODAY = date.today()
HOLIDAY = TODAY - timedelta(days=3)
WITH_PROFILE = re.sub(
    r"}\s*\Z",
    f'    profile "Holiday" {{ from {HOLIDAY} to {HOLIDAY + timedelta(days=1)}\n'
    '        scale assertion "orders.volume.min_rows" in "Volume" by 2.0x }\n}\n',
    PRINTED["The suite"],
)


class RandomPolicy:
    """Chooses values within the bounds, as the printed loop asks for them."""

    def __init__(self, suite: Suite) -> None:
        self.params = suite.get_tunable_params()
        self.choices = np.random.default_rng(7)
        self.updates = 0

    def select_action(self, state: np.ndarray) -> dict[str, float]:
        assert state.shape == (len(self.params),)
        assert ((state >= 0) & (state <= 1)).all()
        chosen = {
            param.name: self.choices.uniform(param.min_bound, param.max_bound)
            for param in self.params
        }
        return {**chosen, "MIN_ORDERS": self.choices.integers(100, 10_000)}

    def update(self, *_: Any) -> None:
        self.updates += 1


class Days(MemoryDatabase):
    """Three rows a day; on some dates nothing came, since something before had failed."""

    def __init__(self, *stopped: date) -> None:
        days = [TODAY - timedelta(days=back) for back in range(100)]
        rows = [{"customer_id": 1, "email": "a", "ds": day} for day in days for _ in range(3)]
        super().__init__({"orders": rows}, date_columns={"orders": "ds"})
        self.stopped = stopped

    def measure(self, plan: Any) -> Any:
        if plan.date in self.stopped:
            raise UpstreamFailure("the ingestion failed")
        return super().measure(plan)


@pytest.fixture
def path(here: Path) -> Path:
    path = here / "suite.dql"
    path.write_text(WITH_PROFILE)
    return path


def defined(*titles: str, **names: Any) -> dict[str, Any]:
    """What the printed code of some sections defines, one after the other."""
    names.update(date=date, timedelta=timedelta, np=np, Suite=Suite, History=History)
    for title in titles:
        exec(PRINTED[title], names)
    return names


@pytest.mark.nightly
def test_the_training_loop_tunes_saves_and_logs(path: Path) -> None:
    loop = PRINTED["The training loop"].replace("range(1000)", "range(101)")
    names = defined("The agent", db_connection=Days(), policy=RandomPolicy(Suite.load(path)))
    names["labeled_data"] = {TODAY - timedelta(days=5): {"orders.volume.min_rows": True}}
    exec(loop, names)
    assert names["policy"].updates == 101
    agent, saved = names["agent"], Suite.load(path)
    assert [one.value for one in saved.get_tunable_params()] == [
        one.value for one in agent.suite.get_tunable_params()
    ]
    entries = agent.history.entries
    assert len(entries) == 3 * 101, "what the agent logged is not logged again when it saves"
    assert [entry["episode"] for entry in entries[-3:]] == [100] * 3
    last = saved.get_param_history("MIN_ORDERS")[-1]
    assert (last.new_value, last.agent) == (saved.get_param("MIN_ORDERS"), "rl_optimizer")
    values = r"= \S+ tunable"
    assert re.sub(values, "", path.read_text()) == re.sub(values, "", WITH_PROFILE)


def test_an_agent_sees_and_avoids_profiles(path: Path) -> None:
    names = defined("The agent", "The agent that sees profiles", "The two strategies for profiles")
    agent = names["DQThresholdAgent"](str(path), Days())
    seen = names["run_and_observe"](agent, HOLIDAY)
    assert seen["is_special_period"]
    (profile,) = seen["profiles"]
    assert profile == {
        "name": "Holiday",
        "multipliers": {'assertion "orders.volume.min_rows" in "Volume"': 2.0},
    }
    agent.current_date = HOLIDAY
    assert names["get_state"](agent)[-1] == 1.0
    agent.current_date = HOLIDAY - timedelta(days=1)
    assert names["get_state"](agent)[-1] == 0.0
    days = {names["sample_training_date"](agent) for _ in range(200)}
    assert not {HOLIDAY, HOLIDAY + timedelta(days=1)} & days


def test_an_agent_sees_values_before_and_after_multipliers(path: Path) -> None:
    results = Suite.load(path).run(db=Days(), date=HOLIDAY)
    rows = next(one for one in results.assertions if one.name == "orders.volume.min_rows")
    assert (rows.passed, rows.metric_value, rows.raw_value, rows.scaled_value) == (False, 3, 3, 6)
    assert (rows.multiplier, rows.threshold) == (2.0, 1000)
    assert rows.cost == rows["cost"] == {"false_positive": 5.0, "false_negative": 200.0}
    implicit = results.assertions[0]
    assert implicit.cost == {"false_positive": 1.0, "false_negative": 10.0}
    assert (rows.get("is_fp"), rows.get("nothing", 7)) == (None, 7)
    with pytest.raises(KeyError):
        rows["nothing"]


def test_agents_train_together_over_checkpoints(path: Path, tmp_path: Path) -> None:
    stopped = TODAY - timedelta(days=9)
    late = tmp_path / "serving.dql"
    late.write_text(path.read_text())
    names = defined("Joint training", "Run status as signal", UpstreamFailure=UpstreamFailure)
    observe, masked = names["run_and_observe"], names["get_state"]
    names = defined("Reward for early stops", **names)

    class Agent(names["JointTrainingAgent"]):  # type: ignore[misc]
        get_threshold_params = names["JointTrainingAgent"].get_state

        def get_correlated(self, name: str) -> list[tuple[str, float]]:
            return [("orders.volume.min_rows", 0.5)] if name.endswith("email_null") else []

        def also_failed(self, results: dict[str, Any], name: str) -> bool:
            return any(a["name"] == name and not a["passed"] for a in results["assertions"])

        def assertion_rewards(self, results: dict[str, Any], name: str) -> float:
            return 1.0

    class Checkpoints(Days):
        def __init__(self, *stopped: date) -> None:
            super().__init__(*stopped)
            self.measured = 0

        def measure(self, plan: Any) -> Any:
            self.measured += 1
            return (
                MemoryDatabase.measure(self, plan) if self.measured == 1 else super().measure(plan)
            )

    agent = Agent([str(path), str(late)], None)
    agent.db = Checkpoints(stopped)
    results = observe(agent, stopped)
    assert [*results["run_status"].values()] == ["completed", "skipped"]
    assert agent.compute_reward(results) == 2.5  # for what failed together
    assert names["compute_reward"](agent, results) == 1.0 + 5
    agent.run_status = results["run_status"]
    assert masked(agent)[-2:].tolist() == [1.0, 0.0]


@pytest.mark.more
def test_an_agent_learns_from_stored_results(tmp_path: Path, path: Path) -> None:
    back = TODAY - FIRST
    root, late = str(tmp_path / "results"), TODAY - timedelta(days=2)
    text = SUITE.replace("2024-12-05", str(late)).replace("2024-12-06", str(late))
    path.write_text(text)
    counts = {back.days - n: (20 - 4 * n, n) for n in range(1, 5)}
    store_days(root, orders(counts), range(back.days - 4, back.days - 1), suite=text)
    rows = "orders.volume.min_rows"
    write_labels(root, [Label("orders_gate", TODAY - timedelta(4), "Volume", rows, False, "ada")])
    stored = StoredDatabase(root)
    observe = defined("The agent")["DQThresholdAgent"](str(path), stored).run_and_observe
    seen = {one["name"]: one for one in observe(TODAY - timedelta(days=4))["assertions"]}
    assert (seen[rows]["passed"], seen[rows]["value"]) == (False, 4)
    results = Suite.load(path).run(db=stored, date=TODAY - timedelta(days=4))
    assert [one.is_fp for one in results.assertions if one.name == rows] == [True]
    with pytest.raises(UpstreamFailure, match="the gate did not run"):
        observe(TODAY)

    class Agent(defined("Joint training")["JointTrainingAgent"]):  # type: ignore[misc]
        def pivot_failures(self, history: list[dict[str, Any]]) -> np.ndarray:
            names = sorted({row["assertion_name"] for row in history})
            days = sorted({row["date"] for row in history})
            failed = np.zeros((len(days), len(names)))
            for row in history:
                place = days.index(row["date"]), names.index(row["assertion_name"])
                failed[place] = not row["passed"]
            return failed

    agent = Agent([str(path)], None)
    agent.db = stored
    with np.errstate(invalid="ignore"):  # what never failed correlates with nothing
        agent.learn_correlations()
    assert agent.correlation_matrix.shape == (4, 4)


def test_agents_train_where_their_checkpoint_ran(path: Path) -> None:
    trained = []

    class Agent:
        def __init__(self, name: str) -> None:
            self.name = name

        def train_step(self, on: date) -> None:
            trained.append((self.name, on))

    checkpoints = defined("Per-checkpoint training")["PerCheckpointAgents"]()
    checkpoints.agents = {name: Agent(name) for name in ("bronze", "silver")}
    checkpoints.did_run = lambda name, on: name == "bronze"
    checkpoints.train_episode(TODAY)
    assert trained == [("bronze", TODAY)]
