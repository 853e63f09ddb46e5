"""What each file of tests costs: seconds of the processor, with those of its JVM and processes.

`DQX_TEST_COSTS=30 pytest` prints the 30 costliest files. Unlike `--durations`, it says the same
beside other work on the machine. Linux alone, which knows the children of a process.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
_COST = "cpu_s"


class CpuCosts:
    """A plugin: workers measure, and whoever prints the summary adds up."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.began = 0.0
        self.by_file: Counter[str] = Counter()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        self.began = _spent_s(os.getpid())

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        if call.when == "teardown":
            item.user_properties.append((_COST, _spent_s(os.getpid()) - self.began))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            cost = dict(report.user_properties).get(_COST, 0.0)
            self.by_file[report.nodeid.partition("::")[0]] += float(str(cost))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        whole = sum(self.by_file.values())
        terminalreporter.section(f"{whole:.0f} s of the processor, by file")
        for file, cost in self.by_file.most_common(self.most):
            terminalreporter.line(f"{cost:7.1f} s  {file}")


def _spent_s(process: int) -> float:
    """Of a process and its children, those that have ended too if they were waited for."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(errors="replace")
        threads = os.listdir(f"/proc/{process}/task")
        times = stat.rpartition(")")[2].split()[11:15]
        children = [
            int(child)
            for thread in threads
            for child in Path(f"/proc/{process}/task/{thread}/children").read_text().split()
        ]
    except OSError:
        return 0.0  # it has ended meanwhile
    return sum(map(int, times)) / _TICKS_A_SECOND + sum(map(_spent_s, children))
