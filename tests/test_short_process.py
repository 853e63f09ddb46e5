"""The end of a short process loses nothing that was printed or registered."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.processes import ended

PROGRAM = """
import atexit, sys, threading
from dqx_airflow.engine.session.launch import collect_rarely, leave

collect_rarely()
atexit.register(lambda: print("at exit"))
print("said")
print("warned", file=sys.stderr)
threading.Thread(target=threading.Event().wait).start()
leave(3)
"""


def test_exit_keeps_the_code_the_output_and_exit_handlers() -> None:
    call = [sys.executable, "-c", PROGRAM]
    done = ended(call, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (3, "said\nat exit\n", "warned\n")


@pytest.mark.more
def test_the_program_ends_with_the_code_of_its_command(tmp_path: Path) -> None:
    code = "from dqx_airflow.cli.main import main; main()"
    for arguments, expected in ((["--version"], 0), (["check", "nowhere.dql"], 2)):
        call = [sys.executable, "-c", code, *arguments]
        done = ended(call, cwd=tmp_path)
        assert done.returncode == expected, done.stderr
