"""Test cases as Markdown sections: a title, an input block, and a block with the expected result.

    ## An unknown metric names the nearest one

    ```dql
    assert avg(price) > 0
    ```

    ```text
    error[E001]: ...
    ```

Words behind `dql` are options of the case. With DQX_REWRITE_GOLDEN=1 the last block of every case
is rewritten with what came out; the diff is the review.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dqx_airflow.engine.proof.cases import Block, sections

__all__ = ["REWRITE", "Block", "Case", "cases", "rewrite_case", "rows"]

REWRITE = os.environ.get("DQX_REWRITE_GOLDEN") == "1"

_FENCE = re.compile(r"^```\w+[^\n]*\n(?P<text>.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Case:
    path: Path
    title: str
    blocks: tuple[Block, ...]

    def __str__(self) -> str:
        return f"{self.path.stem}: {self.title}"

    def block(self, kind: str) -> Block:
        found = next((block for block in self.blocks if block.kind == kind), None)
        return found or Block(kind, (), "")

    def expect(self, actual: str) -> None:
        """Compares with the last block of the case, or rewrites it."""
        actual = actual.rstrip("\n") + "\n"
        if REWRITE:
            rewrite_case(self.path, self.title, actual)
        else:
            assert actual == self.blocks[-1].text


def cases(*paths: Path, fewest_blocks: int = 2) -> Iterator[Case]:
    """The cases of Markdown files, in order."""
    for path in sorted(paths):
        for title, blocks in sections(path.read_text(encoding="utf-8")):
            message = f"{path.name}: {title}: a case needs {fewest_blocks} blocks"
            assert len(blocks) >= fewest_blocks, message
            yield Case(path, title, blocks)


def rows(path: Path, title: str) -> list[tuple[str, ...]]:
    """The rows of the tables in a section of a Markdown file. The marks of code are left out."""
    _, _, section = path.read_text(encoding="utf-8").partition(f"## {title}\n")
    lines = [line for line in section.partition("\n## ")[0].split("\n") if line.startswith("|")]
    rules = {number for number, line in enumerate(lines) if line.startswith("|---")}
    found = [
        tuple(map(_cell, re.split(r"(?<!\\)\|", line.strip("|"))))
        for number, line in enumerate(lines)
        if not {number, number + 1} & rules
    ]
    assert found, f"{path.name}: no table in the section {title}"
    return found


def _cell(text: str) -> str:
    text = text.strip().replace(r"\|", "|")
    code = re.fullmatch(r"(`+)(.*)\1", text)
    if code is None:
        return text
    return code[2] if len(code[1]) == 1 else code[2].strip()


def rewrite_case(path: Path, title: str, actual: str) -> None:
    """Replaces the last block of a case."""
    text = path.read_text(encoding="utf-8")
    start = text.index(f"## {title}\n")
    following = text.find("\n## ", start + 1)
    end = len(text) if following < 0 else following
    last = list(_FENCE.finditer(text, start, end))[-1]
    path.write_text(text[: last.start("text")] + actual + text[last.end("text") :], "utf-8")
