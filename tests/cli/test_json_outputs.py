"""`--format json` of every command prints one array or object, with one word for one thing.

`run` prints one object a line instead, because its reports follow one another. Each command is run
here, in the project of `test_calls_run.py`, or in the test that `ELSEWHERE` names, because it needs
Spark, a quarantine or a shadow.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_calls_run import BAD, TODAY, ids, project
from tests.cli.test_output import COMMANDS
from tests.command_line import dql
from tests.json_heads import require_same_head
from tests.vocabulary.test_operators_and_json import keys_in, require_known

__all__ = ["ids", "project"]

ROOT = Path(__file__).parents[2]
YESTERDAY = TODAY - timedelta(1)
CALLS = {
    "init": "init gates --dataset lake",
    "import": "import checks.yml --output imported.dql",
    "check": "check wrong.dql",
    "explain": f"explain orders.dql --date {YESTERDAY}..{TODAY}",
    "explain CODE": "explain E001",
    "explain --cost": "explain orders.dql --cost",
    "diff": "diff --git HEAD changed.dql orders.dql",
    "mutate": f"mutate orders.dql --date {YESTERDAY}",
    "contract lint": "contract lint orders.yaml",
    "contract clauses": "contract clauses orders.yaml",
    "contract diff": "contract diff orders.yaml stricter.yaml",
    "contract registry consumers": "contract registry consumers orders --registry registry",
    "contract registry list": "contract registry list --registry registry",
    "contract registry show": "contract registry show orders --registry registry",
    "incidents list": "incidents list",
    "incidents show": "incidents show ID",
    "waivers list": "waivers list",
    "results list": "results list",
    "results show": "results show latest",
    "results optimize": "results optimize --dry-run",
    "results prune": "results prune --older-than 400d --dry-run",
    "results vacuum": "results vacuum --dry-run",
    "tune alerts": "tune alerts orders.dql",
    "tune propose": "tune propose orders.dql",
    "tune backtest": "tune backtest orders.dql --set MIN_ORDERS=8",
    "tune review": "tune review orders.dql",
    "tune history": "tune history orders.dql",
    "tables verify": "tables verify lake/orders",
    "lineage coverage": "lineage coverage orders.dql --events events/events.jsonl",
    "lineage flush": "lineage flush",
}
ELSEWHERE = {
    "run": "tests/cli/test_run.py::test_several_suites_share_a_session",
    "contract test": "tests/cli/test_run.py::test_several_suites_share_a_session",
    "contract impact": "tests/contracts/test_datalex.py::",
    "doctor": "tests/cli/test_doctor.py::",
    "quarantine list": "tests/engine/test_quarantine_commands.py::test_rows_in_quarantine_are",
    "quarantine show": "tests/engine/test_quarantine_commands.py::test_rows_in_quarantine_are",
    "quarantine release": "tests/engine/test_quarantine_commands.py::",
    "quarantine discard": "tests/engine/test_quarantine_commands.py::",
    "tune shadow": "tests/tuning/test_shadow_days.py::test_labels_show_false_alarms",
}
NAMES_AS_KEYS = {"counts", "labels", "masked", "not_judged", "reads", "reasons", "row_counts"}
"""The keys of mappings whose own keys are names that users chose."""


def test_each_command_with_json_is_run() -> None:
    choices = {
        name: getattr(option.type, "choices", ())
        for name, command in COMMANDS.items()
        for option in command.params
        if "--format" in option.opts
    }
    with_json = {name for name, own in choices.items() if "json" in own}
    here = {call.partition(" --cost")[0].partition(" CODE")[0] for call in CALLS}
    assert with_json == here | ELSEWHERE.keys()
    for place in ELSEWHERE.values():
        file, _, test = place.partition("::")
        assert f"def {test}" in (ROOT / file).read_text(encoding="utf-8"), place


@pytest.fixture(scope="module")
def printed(
    project: Path, ids: Mapping[str, Mapping[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Any]:
    """The JSON of each call."""
    here = shutil.copytree(project, tmp_path_factory.mktemp("printed") / "project")
    suite = (here / "orders.dql").read_text()
    (here / "changed.dql").write_text(suite.replace('name "orders.min_rows"', 'name "rows"'))
    (here / "wrong.dql").write_text(suite.replace("MIN_ORDERS = 10", "MIN_ORDERS = 1000"))
    contract = (here / "orders.yaml").read_text()
    (here / "stricter.yaml").write_text(contract.replace("integer}", "integer, required: true}"))
    found = {}
    for name, call in CALLS.items():
        words = [ids["incidents"].get(word, word) for word in call.split()]
        done = dql(*words, "--format", "json", cwd=here)
        assert done.stdout.startswith(("{", "[")), f"{call}: {done.output}"
        found[name] = json.loads(done.stdout)
    return found


@pytest.mark.nightly
def test_each_command_prints_one_array_or_object_with_the_same_head(
    printed: Mapping[str, Any],
) -> None:
    for name, found in printed.items():
        assert isinstance(found, dict | list), name
        require_same_head(found)
    assert printed["incidents list"][0]["date"] == str(BAD)


@pytest.mark.nightly
def test_each_key_that_a_command_prints_is_a_known_word(printed: Mapping[str, Any]) -> None:
    require_known("keys that commands print", keys_in(_without_names([*printed.values()])))


def _without_names(found: Any) -> Any:
    if isinstance(found, list):
        return [_without_names(item) for item in found]
    if not isinstance(found, dict):
        return found
    return {
        key: [] if key in NAMES_AS_KEYS else _without_names(value) for key, value in found.items()
    }
