"""One exit code for one cause, in all commands; and no colours where they are not wanted."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_output import COMMANDS, CONTRACT, SUITE
from tests.command_line import dql

MISSING: dict[str, tuple[str, ...]] = {
    "check": ("none.dql",),
    "contract annotate-table": ("none.yaml", "--table", "t"),
    "contract clauses": ("none.yaml",),
    "contract codeowners": ("none.yaml",),
    "contract diff": ("none.yaml", "orders.yaml"),
    "contract evolve": ("none.yaml", "orders.yaml", "--table", "a.b"),
    "contract export": ("none.yaml", "--format", "odcs"),
    "contract lint": ("none.yaml",),
    "contract registry publish": ("none.yaml", "--registry", "registry"),
    "contract rfc": ("none.yaml",),
    "contract test": ("none.yaml",),
    "contract to-suite": ("none.yaml",),
    "explain": ("none.dql",),
    "fmt": ("none.dql",),
    "import": ("none.yaml",),
    "mutate": ("none.dql",),
    "run": ("none.dql",),
    "tune alerts": ("none.dql", "-R", "store"),
    "tune apply": ("none.dql",),
    "tune approve": ("none.dql", "1f"),
    "tune backtest": ("none.dql", "-R", "store"),
    "tune enforce": ("none.dql", "--assertion", "a"),
    "tune history": ("none.dql",),
    "tune label": (
        *("none.dql", "-R", "store", "--missed"),
        *("--assertion", "a", "--date", "yesterday"),
    ),
    "tune propose": ("none.dql", "-R", "store"),
    "tune reject": ("none.dql", "1f", "--reason", "r"),
    "tune review": ("none.dql",),
    "tune rollback": ("none.dql", "--to-entry", "1"),
    "tune shadow": ("none.dql", "-R", "store"),
}
"""A call of each command that reads a suite or a contract, about a file that does not exist."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("orders.dql").write_text(SUITE)
    Path("wrong.dql").write_text(SUITE.replace("num_rows", "num_row"))
    Path("orders.yaml").write_text(CONTRACT)
    Path("wrong.yaml").write_text(CONTRACT.replace("type: integer", "type: intejer"))
    return tmp_path


@pytest.mark.parametrize("name", COMMANDS)
def test_a_wrong_option_ends_with_2(home: Path, name: str) -> None:
    called = dql(*name.split(), "--no-such-option")
    assert called.returncode == 2
    assert called.stderr.startswith("error: ")
    assert called.stdout == ""


@pytest.mark.parametrize("name", MISSING)
def test_a_missing_file_ends_with_2(home: Path, name: str) -> None:
    called = dql(*name.split(), *MISSING[name])
    assert called.returncode == 2, called.output
    assert "none" in called.output


def test_a_missing_contract_is_not_looked_for_among_suites(home: Path) -> None:
    shown = dql("contract", "test", "order.yaml").output
    assert "no contract found at this path" in shown
    assert "did you mean 'orders.yaml'?" in shown


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("call", "setting"),
    [
        (("check", "wrong.dql"), {"NO_COLOR": "1"}),
        (("check", "wrong.dql"), {"TERM": "dumb"}),
        (("contract", "lint", "wrong.yaml"), {"NO_COLOR": "1"}),
        (("run", "wrong.dql"), {"NO_COLOR": "1"}),
        (("init", "lake_gates", "--dataset", "lake"), {"TERM": "dumb"}),
        (("check", "wrong.dql"), {}),
    ],
    ids=str,
)
def test_colours_are_left_out_where_they_are_not_wanted(
    home: Path, call: tuple[str, ...], setting: dict[str, str]
) -> None:
    Path("lake").mkdir()
    for name in ("orders", "items"):
        Path("lake", f"{name}.csv").write_text("id,paid_on\n1,2026-01-01\n2,2026-01-02\n")
    unset = {"NO_COLOR", "FORCE_COLOR"}
    variables = {name: value for name, value in os.environ.items() if name not in unset}
    ours, theirs = pty.openpty()
    subprocess.run(
        [Path(sys.executable).with_name("dql"), *call],
        stdout=theirs,
        stderr=theirs,
        env={**variables, "TERM": "xterm-256color", **setting},
        check=False,
    )
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert ("lake" if call[0] == "init" else "wrong") in shown
    assert ("\x1b" in shown) == (not setting)
