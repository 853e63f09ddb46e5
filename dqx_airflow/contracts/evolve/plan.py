"""The plan of a migration: releases with steps, each in words and as statements."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Phase(IntEnum):
    """The phase of a migration in which a step is due."""

    ADD = 0
    FILL = 1
    DROP = 2


@dataclass(frozen=True, slots=True)
class EvolutionStep:
    """The step for a change, in words and as Spark SQL statements."""

    phase: Phase
    what: str
    statements: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EvolutionRelease:
    """The steps of one release; `condition` must be true before."""

    version: str
    condition: str
    steps: tuple[EvolutionStep, ...]


@dataclass(frozen=True, slots=True)
class Evolution:
    """The migration of a table from one version to another."""

    title: str
    releases: tuple[EvolutionRelease, ...]

    def as_sql(self) -> str:
        """An SQL script, with everything but statements in comments."""
        blocks = [_comment(self.title)]
        for release in self.releases:
            head = f"Release {release.version}"
            if release.condition:
                head += f": {release.condition}"
            blocks.append(_comment(head))
            for step in release.steps:
                statements = [f"{statement};" for statement in step.statements]
                blocks.append("\n".join([_comment(step.what), *statements]))
        return "\n\n".join(blocks) + "\n"


def one_line(text: str) -> str:
    """A text without its line breaks."""
    return " ".join(text.split())


def _comment(text: str) -> str:
    """An SQL comment that cannot end early."""
    return f"-- {one_line(''.join(letter if letter.isprintable() else ' ' for letter in text))}"
