"""Shared by the attacks: the tally of attempts, printed as a table at the end of the session.

`pytest -m nightly tests/attacks` runs them all; a seed of most runs in every session, or in
the lane slow. With `DQX_ATTACK_TABLE=FILE` the table is also written into a file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest


@dataclass
class Tally:
    """How often an attack was tried, and what did not survive it."""

    tries: int = 0
    losses: list[str] = field(default_factory=list)

    def tried(self, survived: bool, what: str) -> None:
        """Counts one try.

        :param what: describes the try, so that a loss can be reproduced from it.
        """
        self.tries += 1
        if not survived:
            self.losses.append(what)


_TALLIES: dict[str, Tally] = {}


@pytest.fixture
def attack() -> Iterator[Callable[[str], Tally]]:
    """The tally of an attack by its name; a test with a loss fails and lists its losses."""
    seen: dict[str, int] = {}

    def tally(name: str) -> Tally:
        found = _TALLIES.setdefault(name, Tally())
        seen.setdefault(name, len(found.losses))
        return found

    yield tally
    losses = [loss for name, before in seen.items() for loss in _TALLIES[name].losses[before:]]
    assert not losses, f"{len(losses)} lost:\n" + "\n".join(losses[:200])


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if not _TALLIES:
        return
    rows = [
        f"| {name} | {tally.tries:,} | {tally.tries - len(tally.losses):,} |"
        for name, tally in sorted(_TALLIES.items())
    ]
    table = "\n".join(["| attack | tries | survived |", "|---|---|---|", *rows])
    terminalreporter.section("attacks")
    terminalreporter.write_line(table)
    if target := os.environ.get("DQX_ATTACK_TABLE"):
        Path(target).write_text(table + "\n", encoding="utf-8")
