"""The plan of an evolution: releases of steps, each in words and as statements."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Phase(IntEnum):
    """When a step is due."""

    ADD = 0
    FILL = 1
    DROP = 2


@dataclass(frozen=True, slots=True)
class EvolutionStep:
    """What is done about a change, in words and as statements of Spark SQL."""

    phase: Phase
    what: str
    statements: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EvolutionRelease:
    """The steps of one release; `condition` is what has to hold before."""

    version: str
    condition: str
    steps: tuple[EvolutionStep, ...]


@dataclass(frozen=True, slots=True)
class Evolution:
    """The way of a table from one version to another."""

    title: str
    releases: tuple[EvolutionRelease, ...]

    def as_sql(self) -> str:
        """A script of SQL: what is not a statement stands in comments."""
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
    """A comment of SQL; no line of it gets out."""
    return f"-- {one_line(''.join(letter if letter.isprintable() else ' ' for letter in text))}"
