"""The CPU seconds of each test file, including its JVM and other processes.

`DQX_TEST_COSTS=30 pytest` prints the 30 costliest files. Unlike `--durations`, it says the same
beside other work on the machine. Linux alone, which knows the children of a process.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
_COST = "cpu_s"


class CpuCosts:
    """A plugin: workers measure, and whoever prints the summary adds up."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.file: Path | None = None
        self.is_last_of_file = False
        self.began = 0.0
        self.by_file: Counter[str] = Counter()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        # Not for each test: to look through the threads of a JVM takes as long as a small one.
        if item.path != self.file:
            self.file = item.path
            self.began = _spent_s(os.getpid())
        self.is_last_of_file = nextitem is None or nextitem.path != item.path

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        if call.when == "teardown" and self.is_last_of_file:
            # The JVM ends with the last test, and what it has spent is no longer seen.
            cost = max(0.0, _spent_s(os.getpid()) - self.began)
            item.user_properties.append((_COST, cost))

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
    """The CPU seconds of a process and its children, including ended children that were waited
    for."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(errors="replace")
    except OSError:
        return 0.0  # it has ended meanwhile
    times = stat.rpartition(")")[2].split()[11:15]
    return sum(map(int, times)) / _TICKS_A_SECOND + sum(map(_spent_s, _children(process)))


def _children(process: int) -> Iterator[int]:
    """Threads of a JVM end all the time; the children of the others are there all the same."""
    threads = Path(f"/proc/{process}/task")
    with suppress(OSError):
        for thread in os.listdir(threads):
            with suppress(OSError):
                yield from map(int, (threads / thread / "children").read_text().split())
