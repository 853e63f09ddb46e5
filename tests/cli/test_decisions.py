"""Commands that delete or decide: who does it and why, a rehearsal, and a question before it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from dqx_airflow.cli.decisions import author_of
from dqx_airflow.errors import RequestError
from tests.cli.test_output import COMMANDS
from tests.command_line import dql

ASKING = {
    *("quarantine discard", "results optimize", "results prune", "results vacuum"),
    *("tables adopt", "tables publish"),
    *("tune approve", "tune label", "tune rollback", "waivers end"),
}
"""The commands that say what they would do, and ask before they do it."""
SUITE = """suite "Orders" {
    const LEAST = 800 tunable [100, 2000]
    check "C" on orders {
        assert num_rows() >= LEAST name "rows"
    }
}
"""
ENTRY = (
    '{"ts": "2024-12-15T14:30:00Z", "action": "set_param", "param": "LEAST", "old": 1000, '
    '"new": 800, "agent": "human"}\n'
)
CALL = ("tune", "rollback", "orders.dql", "--to-entry", "0")


def test_what_deletes_or_decides_can_be_rehearsed_and_confirmed() -> None:
    for name, command in COMMANDS.items():
        flags = {flag for each in command.params for flag in each.opts}
        assert ("--yes" in flags) == (name in ASKING), name
        if name in ASKING:
            assert {"--dry-run", "-y"} <= flags, name


def test_who_decides_also_says_why() -> None:
    for name, command in COMMANDS.items():
        flags = {flag for each in command.params for flag in each.opts}
        # The end of a waiver keeps the reason of the waiver.
        if "--author" in flags and name != "waivers end":
            assert "--reason" in flags, name


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("orders.dql").write_text(SUITE)
    Path("orders.dql.history").write_text(ENTRY)
    return tmp_path


def test_without_a_terminal_nothing_is_done_unasked(home: Path) -> None:
    refused = dql(*CALL)
    assert refused.returncode == 2
    assert "this would write orders.dql: LEAST: 800 -> 1000" in refused.output
    rehearsed = dql(*CALL, "--dry-run")
    assert rehearsed.returncode == 0
    assert "would write orders.dql: LEAST: 800 -> 1000" in rehearsed.output
    assert dql(*CALL, "--dry-run", "--yes").returncode == 2
    assert Path("orders.dql").read_text() == SUITE
    done = dql(*CALL, "--yes", "--author", "eve", "--reason", "too low")
    assert done.returncode == 0
    assert "LEAST = 1000" in Path("orders.dql").read_text()
    assert '"author": "eve"' in Path("orders.dql.history").read_text()


@pytest.mark.few(1)
@pytest.mark.parametrize(("answer", "code", "value"), [(b"n\n", 130, 800), (b"y\n", 0, 1000)])
def test_a_terminal_is_asked(home: Path, answer: bytes, code: int, value: int) -> None:
    ours, theirs = pty.openpty()
    program = Path(sys.executable).with_name("dql")
    with subprocess.Popen([program, *CALL], stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.write(ours, answer)
        assert process.wait(60) == code
    os.close(theirs)
    assert "This will write orders.dql: LEAST: 800 -> 1000. Go on?" in os.read(ours, 9999).decode()
    os.close(ours)
    assert f"LEAST = {value}" in Path("orders.dql").read_text()


@pytest.mark.parametrize("error", [KeyError("uid not found: 50000"), OSError("no user")])
def test_a_user_without_a_name_is_asked_for_one(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """As in a container that runs with any number as its user."""

    def unknown() -> str:
        raise error

    monkeypatch.setattr("getpass.getuser", unknown)
    assert author_of("ada") == "ada"
    with pytest.raises(RequestError) as raised:
        author_of(None)
    assert raised.value.hint == "add --author NAME"
