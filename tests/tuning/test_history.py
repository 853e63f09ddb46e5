"""The history of a suite has each logged entry once, with any writers and crashes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import date, datetime, timezone
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dqx_airflow.dql import History, Suite
from dqx_airflow.errors import RequestError

SEED = """\
{"ts": "2024-12-01T10:00:00Z", "action": "set_param", "param": "NULL_THRESHOLD", "old": 0.10, "new": 0.05, "agent": "rl_optimizer", "episode": 42}
{"ts": "2024-12-15T14:30:00Z", "action": "set_param", "param": "MIN_ORDERS", "old": 1000, "new": 800, "agent": "autotuner", "reason": "seasonal adjustment"}
{"ts": "2024-12-20T09:00:00Z", "action": "set_param", "param": "TOLERANCE", "old": 0.001, "new": 0.002, "agent": "human", "reason": "reduce false positives"}
"""  # noqa: E501 (as the specification prints it)


def test_entries_of_the_specification_are_read(tmp_path: Path) -> None:
    path = tmp_path / "suite.dql.history"
    path.write_text(SEED)
    history = History(str(path))
    assert [entry["param"] for entry in history.entries] == [
        "NULL_THRESHOLD",
        "MIN_ORDERS",
        "TOLERANCE",
    ]
    (change,) = history.changes("MIN_ORDERS")
    assert (change.old_value, change.new_value, change.agent) == (1000, 800, "autotuner")
    assert change.timestamp == datetime(2024, 12, 15, 14, 30, tzinfo=timezone.utc)
    assert (change.reason, change.entry) == ("seasonal adjustment", 2)


def test_entries_are_appended_with_their_time(tmp_path: Path) -> None:
    history = History(tmp_path / "suite.dql.history")
    assert history.entries == ()
    history.flush()
    history.log({"action": "set_param", "param": "A", "old": 1, "new": np.float64(0.5)})
    history.log({"ts": "2024-12-01T10:00:00Z", "new": np.int64(3), "on": date(2024, 12, 1)})
    history.log({"reason": "line\nbreak, ä", "new": Fraction(1, 4)})
    history.flush()
    first, second, third = history.entries
    assert datetime.fromisoformat(first["ts"].replace("Z", "+00:00")).tzinfo is not None
    assert (first["new"], second["new"], second["on"]) == (0.5, 3, "2024-12-01")
    assert (third["reason"], third["new"]) == ("line\nbreak, ä", 0.25)
    with pytest.raises(RequestError, match="a history entry has an invalid value"):
        history.log({"new": float("nan")})
    assert len(history.entries) == 3


@pytest.mark.parametrize("torn", [b'{"action": "set_par', b"\xff\x00", b"[1]", b"1"])
def test_a_torn_line_is_closed_and_skipped(
    tmp_path: Path, torn: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "suite.dql.history"
    path.write_bytes(SEED.encode() + torn)
    history = History(path)
    assert len(history.entries) == 3
    assert "suite.dql.history:4: invalid entry" in caplog.text
    history.log({"param": "B", "new": 1})
    entries, damaged = history.read()
    assert [number for number, _ in entries] == [1, 2, 3, 5]
    assert [(item.code, item.span.line) for item in damaged] == [("W050", 4)]
    assert path.read_bytes().startswith(SEED.encode())


def test_a_complete_entry_without_a_line_end_is_read(tmp_path: Path) -> None:
    path = tmp_path / "suite.dql.history"
    path.write_text(SEED.rstrip("\n"))
    history = History(path)
    history.log({"param": "B", "new": 1})
    assert len(history.entries) == 4


WRITER = """
import sys
from dqx_airflow.dql import History
history = History(sys.argv[1])
for number in range(10_000):
    history.log({"writer": sys.argv[2], "number": number, "reason": "x" * 5_000})
    print(number, flush=True)
"""


@pytest.mark.slow
def test_killed_writers_lose_no_acknowledged_entry(tmp_path: Path) -> None:
    path = tmp_path / "suite.dql.history"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(number)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.readline()
    time.sleep(0.5)
    acknowledged = {}
    for number, writer in enumerate(writers):
        writer.send_signal(signal.SIGKILL)
        out, _ = writer.communicate()
        whole = [line for line in out.splitlines(keepends=True) if line.endswith("\n")]
        acknowledged[number] = int(whole[-1]) if whole else 0
    entries = History(path).entries
    for number, last in acknowledged.items():
        logged = [entry["number"] for entry in entries if entry["writer"] == str(number)]
        assert logged == [*range(len(logged))], "in order, nothing doubled"
        assert len(logged) > last


def test_a_suite_logs_what_it_saves_once(tmp_path: Path) -> None:
    path = tmp_path / "s.dql"
    path.write_text(
        'suite "S" { const LEAST = 4 tunable [1, 9]\n'
        'check "C" on orders { assert num_rows() >= LEAST name "rows" } }\n'
    )
    suite = Suite.load(path)
    suite.set_param("LEAST", 5)
    suite.set_param("LEAST", 3, agent="rl_optimizer", reason="Episode 42")
    assert [one.new_value for one in suite.get_param_history("LEAST")] == [5, 3]
    suite.save()
    suite.save()
    (line,) = Path(f"{path}.history").read_text().splitlines()
    entry = json.loads(line)
    assert entry.pop("ts")
    assert entry == {
        "action": "set_param",
        "param": "LEAST",
        "old": 4,
        "new": 3,
        "agent": "rl_optimizer",
        "reason": "Episode 42",
    }
    (change,) = suite.get_param_history("LEAST")
    assert (change.old_value, change.new_value, change.reason) == (4, 3, "Episode 42")


def test_an_unreadable_history_is_reported(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="cannot read the history"):
        _ = History(tmp_path).entries
    assert os.listdir(tmp_path) == []
