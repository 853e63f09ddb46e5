"""The help of `dql`: its panels, the first line of each command, short options, and what the shell
completes."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from dqx_airflow.cli import option_panels
from dqx_airflow.cli.main import PANELS, STARTED_BY_PROGRAMS, app
from dqx_airflow.cli.stores import results_of
from dqx_airflow.results.decisions import new_waiver, write_waivers
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.tuning.proposals import Proposal, ProposedValue, propose
from tests.command_line import dql, dql_prints
from tests.processes import output_of
from tests.results.samples import RUN_KEY, sample_report

# fmt: off
VERBS = (
    "accept", "approve", "check", "compare", "draft", "drop", "close", "delete", "end",
    "explain", "find", "format", "inspect", "label", "let", "list", "merge", "plant", "print",
    "promote", "propose", "publish", "reject", "restore", "run", "send", "serve", "show", "test",
    "translate", "verify", "write",
)
# fmt: on
"""The words with which the help of a command begins."""


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if words:
        yield words, command
    if hasattr(command, "list_commands"):
        for name in command.list_commands(None):
            yield from commands(command.get_command(None, name), (*words, name))


ALL = dict(commands(typer.main.get_command(app)))


def test_the_panels_are_in_the_order_of_their_use() -> None:
    panels = re.findall(r"╭─ (.+?) ─", dql_prints("--help"))
    assert panels == ["Options", *PANELS]
    assert list(PANELS) == [
        "Start",
        "Write suites",
        "Run",
        "Contracts",
        "Night call",
        "Tune",
        "Tables and tools",
    ]


def test_many_options_are_in_the_same_panels_and_the_same_order_everywhere() -> None:
    places = [(panel, flag) for panel, flags in option_panels.PANELS.items() for flag in flags]
    used = set()
    for words, command in ALL.items():
        options = [each for each in command.params if each.param_type_name == "option"]
        if len(options) <= option_panels.MOST_WITHOUT_PANELS:
            continue
        shown = [(each.rich_help_panel, max(each.opts, key=len)) for each in options]
        in_panels = [place for place in shown if place[0] is not None]
        assert in_panels == [place for place in places if place in shown], words
        assert len(shown) - len(in_panels) < option_panels.MOST_WITHOUT_PANELS, words
        used.update(in_panels)
    assert used == set(places), "an option that no long help has"


def test_what_only_programs_start_is_not_listed() -> None:
    listed = re.findall(r"^│ ([a-z]+) ", dql_prints("--help"), re.M)
    names = [name for panel in PANELS.values() for name in panel]
    assert listed == [name for name in names if name not in STARTED_BY_PROGRAMS]
    assert len(listed) == 21
    assert "Model Context Protocol" in dql_prints("mcp", "--help")


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_the_first_line_of_a_help_is_an_order_of_at_most_70_characters(
    words: tuple[str, ...],
) -> None:
    first, *rest = ALL[words].help.split("\n")
    assert len(first) <= 70
    assert first.count(".") == 1 or first.endswith("dqx.toml.")
    assert first.endswith(".")
    assert re.split(r"[ ,]", first.lower())[0] in VERBS
    assert not rest or rest[0] == ""


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_command_has_a_short_option_for_its_help_and_a_plain_usage(
    words: tuple[str, ...],
) -> None:
    shown = dql_prints(*words, "-h")
    usage = re.search(r"Usage: (.*?)\n *\n", shown, re.S)
    assert usage is not None
    assert usage[1].startswith(" ".join(("dql", *words)))
    assert not re.search("[{}]", usage[1])


def test_the_version_has_a_short_option() -> None:
    assert dql_prints("-V") == dql_prints("--version")


@pytest.mark.parametrize("call", ["", "contract", "contract registry", "tune", "tables", "results"])
def test_a_group_alone_prints_its_help_and_is_a_wrong_call(call: str) -> None:
    done = dql(*call.split())
    assert done.returncode == 2
    assert done.stderr == ""
    assert done.stdout.strip() == dql_prints(*call.split(), "--help").strip()


def completed(line: str, **variables: str) -> list[str]:
    """The words that a shell offers for the last word of a line."""
    asked = {
        "_DQL_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
    }
    done = CliRunner().invoke(app, [], env={**asked, **variables}, prog_name="dql")
    assert done.exit_code == 0
    return done.stdout.split()


def test_the_shell_completes_commands_and_options() -> None:
    assert completed("dql ta") == ["tables"]
    assert completed("dql contract re") == ["registry"]
    assert completed("dql tune ap") == ["approve", "apply"]
    assert completed("dql tune approve --re") == ["--reason", "--results-root"]


SUITE = """\
suite "Orders" {
    const LEAST = 100 tunable [1, 1000]
    const MOST = 200 tunable [1, 1000]
    check "C" on orders {
        assert num_rows() >= LEAST name "rows" tags [nightly, volume]
        assert num_rows() <= MOST name "rush"
    }
}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("orders.dql").write_text(SUITE)
    Path("dqx.toml").write_text(
        '[defaults]\nresults_root = "store"\n[datasets.orders]\npath = "lake/orders"\n'
    )
    for number, gate in enumerate(("shop.gate", "shop.other"), start=3):
        report = sample_report(number, run_key=replace(RUN_KEY, gate=gate))
        ResultsStore("store").write(report)
    change = ProposedValue("LEAST", 100, 90)
    propose("store", Proposal("Orders", "tuner", (change,), reason="2 false alarms"))
    write_waivers(
        results_of(None),
        [
            new_waiver(
                results_of(None),
                "shop.gate",
                "trend",
                until=date.today() + timedelta(3),
                reason="r",
                owner="o",
                author="a",
            )
        ],
    )
    return tmp_path


@pytest.mark.more
def test_the_shell_completes_values_of_the_store_and_the_suite(here: Path) -> None:
    (incident,) = json.loads(dql_prints("incidents", "--format", "json"))
    (waiver,) = json.loads(dql_prints("waivers", "--format", "json"))
    (proposal,) = json.loads(dql_prints("tune", "review", "orders.dql", "--format", "json"))
    (run, *_) = json.loads(dql_prints("results", "list", "--format", "json"))
    assert completed("dql results list --gate shop.") == ["shop.gate", "shop.other"]
    assert completed("dql incidents accept shop.o") == ["shop.other"]
    assert completed(f"dql incidents show {incident['id'][:4]}") == [incident["id"][:8]]
    assert completed("dql results show la") == ["latest"]
    assert completed(f"dql results show {run['run_id'][:8]}") == [run["run_id"]]
    assert completed("dql waivers end ") == [waiver["id"][:8]]
    assert completed("dql waivers add shop.gate tr") == ["trend"]
    assert completed("dql tune approve orders.dql ") == [proposal["id"]]
    assert completed("dql tune label orders.dql --assertion r") == ["rows", "rush"]
    assert completed("dql tune backtest orders.dql --set L") == ["LEAST="]
    assert completed("dql tune history orders.dql --tunable MO") == ["MOST"]
    assert completed("dql run orders.dql --dataset o") == ["orders="]
    assert completed("dql run orders.dql --only r") == ["rows", "rush"]
    assert completed("dql explain orders.dql --exclude-tag ") == ["nightly", "volume"]
    assert completed("dql run orders.dql --tag vo") == ["volume"]
    assert completed("dql run orders.dql --min-severity ") == ["P0", "P1", "P2", "P3"]
    assert "trend" in completed("dql shrink latest --assertion ")


def test_what_cannot_be_read_completes_nothing(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("orders.dql").write_text("suite")
    assert completed("dql results show ") == []
    assert completed("dql results list --results-root none --gate ") == []
    assert completed("dql tune label orders.dql --assertion ") == []
    assert completed("dql tune approve nowhere.dql ") == []


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "line", ["dql ", "dql tune label --ga", "dql results list --gate s", "dql tune enforce s --ass"]
)
def test_a_word_is_completed_without_spark(here: Path, line: str) -> None:
    code = (
        "import sys\n"
        "from dqx_airflow.cli.main import app\n"
        "try: app(prog_name='dql')\n"
        "except SystemExit: pass\n"
        "print('loaded', *sys.modules.keys() & {'pyspark', 'airflow', 'pandas', 'sympy'})\n"
    )
    asked = {
        "_DQL_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
    }
    *names, last = output_of([sys.executable, "-c", code], env={**os.environ, **asked}).splitlines()
    assert names
    assert last == "loaded"


def test_a_name_of_a_command_is_completed_without_the_command() -> None:
    code = (
        "import sys\n"
        "from dqx_airflow.cli.main import app\n"
        "try: app(prog_name='dql')\n"
        "except SystemExit: pass\n"
        "print('loaded', *sys.modules.keys() & {'pyarrow', 'lark', 'dqx_airflow.cli.run'})\n"
    )
    asked = {"_DQL_COMPLETE": "complete_bash", "COMP_WORDS": "dql ", "COMP_CWORD": "1"}
    *names, last = output_of([sys.executable, "-c", code], env={**os.environ, **asked}).splitlines()
    assert names[:3] == ["init", "demo", "suggest"]
    assert "lsp" not in names
    assert last == "loaded"
